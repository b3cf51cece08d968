#include "power/cpu_info.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "power/text_file.hpp"

namespace fallow::power {
namespace {

constexpr std::size_t kMostProcessors = 65536;  // Linux's NR_CPUS stays below; more is not a cpuinfo

std::string_view trimmed(std::string_view s) noexcept {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = s.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(kBlank) - first + 1);
}

bool has_word(std::string_view words, std::string_view word) noexcept {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const bool starts = at == 0 || words[at - 1] == ' ';
    const std::size_t end = at + word.size();
    if (starts && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

// One logical processor, filled line by line.
struct Processor {
  bool any = false;
  std::optional<std::uint64_t> socket{}, core{};
};

class Listing {
 public:
  void line(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return;
    const std::string_view key = trimmed(text.substr(0, colon));
    const std::string_view value = trimmed(text.substr(colon + 1));
    if (key == "processor" && parse_unsigned(value)) {
      close();
      now_.any = true;
    } else if (key == "physical id") {
      now_.socket = parse_unsigned(value);
    } else if (key == "core id") {
      now_.core = parse_unsigned(value);
    } else if ((key == "model name" || key == "cpu") && model.empty()) {  // "cpu": POWER
      model = value;
    } else if (key == "CPU part" && part.empty()) {  // Arm, which names no model
      part = value;
    } else if (key == "flags") {
      virtual_machine = virtual_machine || has_word(value, "hypervisor");
    }
  }
  void close() {
    if (!std::exchange(now_.any, false)) return;
    const std::uint64_t number = listed_++;
    const std::uint64_t socket = now_.socket.value_or(0);
    if (cores.size() < kMostProcessors) {
      sockets.insert(socket);
      cores.emplace(socket, now_.core.value_or(number));  // threads of one core fall together
    }
    now_ = {};
  }

  std::string model, part;
  bool virtual_machine = false;
  std::set<std::uint64_t> sockets;
  std::set<std::pair<std::uint64_t, std::uint64_t>> cores;

 private:
  Processor now_;
  std::uint64_t listed_ = 0;
};

}  // namespace

CpuInfo read_cpu_info(const std::filesystem::path& root) {
  Listing listing;
  std::ifstream in(root / "proc/cpuinfo");
  for (std::string text; std::getline(in, text);) listing.line(text);
  listing.close();
  CpuInfo info;
  info.model = !listing.model.empty()  ? listing.model
               : !listing.part.empty() ? std::string("Arm part ").append(listing.part)
                                       : "unknown processor";
  info.sockets = static_cast<unsigned>(listing.sockets.size());
  info.cores = static_cast<unsigned>(listing.cores.size());
  info.virtual_machine = listing.virtual_machine;
  return info;
}

}  // namespace fallow::power
