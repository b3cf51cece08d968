// Node-wide energy counters of Cray systems, filled by the blade's controller about ten times a second.
// Interface: HPE Cray EX documentation, "User access to compute node power data"; CNL man page pm_counters.
#include <array>
#include <cerrno>
#include <cctype>

#include "power/channel_meter.hpp"

namespace fallow::power {
namespace {

constexpr Seconds kUpdatePeriod{0.1};     // raw_scan_hz is 10 on all systems documented
constexpr Watts kCeiling{100000};         // no node draws this; more is a counter that was restarted
constexpr Seconds kReadAtLeast{60.0};     // the counters do not wrap; a stopped controller is to be noticed
constexpr Seconds kStale{10.0};           // 100 updates missed
constexpr int kAttempts = 3;              // a read that straddles an update is repeated this often

struct KindOfName {
  std::string_view prefix;
  DomainKind kind;
};
constexpr std::array kKinds{
    KindOfName{"cpu", DomainKind::cpu},
    KindOfName{"memory", DomainKind::memory},
    KindOfName{"accel", DomainKind::accelerator},
};

// "energy" -> node; "cpu_energy", "accel3_energy" -> what they say; anything else is none.
std::optional<Domain> domain_of(const std::string& file) {
  if (file == "energy") return Domain{"node", DomainKind::node, {}};
  for (const KindOfName& k : kKinds) {
    const bool total = file == std::string(k.prefix) + "_energy";
    if (total || numbered(file, k.prefix, "_energy")) {
      constexpr std::string_view kSuffix = "_energy";
      return Domain{file.substr(0, file.size() - kSuffix.size()), k.kind, {}};
    }
  }
  return std::nullopt;
}

std::string without_number(std::string name) {
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) name.pop_back();
  return name;
}

// cpu0 is in cpu where there is such a figure, and everything is in the node.
void nest(std::vector<Channel>& channels) {
  const auto index_of = [&](std::string_view name) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < channels.size(); ++i) {
      if (channels[i].domain.name == name) return i;
    }
    return std::nullopt;
  };
  for (Channel& c : channels) {
    if (c.domain.kind == DomainKind::node) continue;
    const std::string family = without_number(c.domain.name);
    if (family != c.domain.name) c.domain.inside = index_of(family);
    if (!c.domain.inside) c.domain.inside = index_of("node");
  }
}

class CrayMeter final : public ChannelMeter {
 public:
  CrayMeter(std::vector<Channel> channels, std::filesystem::path freshness, Clock clock)
      : ChannelMeter("cray_pm",
                     {"the whole node, by its board's sensors; parts of it where the system tells them apart",
                      Joules{1.0}, kUpdatePeriod, kReadAtLeast, true},
                     std::move(channels), std::move(clock)),
        freshness_(std::move(freshness)) {}

  std::span<const DomainReading> read() noexcept override {
    try {
      std::string before = read_text(freshness_).text;
      for (int attempt = 0; attempt < kAttempts; ++attempt) {
        sample();
        std::string after = read_text(freshness_).text;
        if (after == before) break;
        before = std::move(after);
      }
      commit();
      check_freshness(before);
    } catch (...) {  // memory, or what an injected clock throws
      turn_off_all();
    }
    return readings();
  }

 private:
  // Counters that stand still would look like energy saved.
  void check_freshness(const std::string& value) {
    if (value.empty()) return;  // a system without the file
    const Nanoseconds t = now();
    if (value != last_fresh_ || !started_) {
      started_ = true;
      last_fresh_ = value;
      fresh_at_ = t;
    } else if (to_seconds(t - fresh_at_) >= kStale) {
      turn_off_all(freshness_.string() + " has stood still at '" + value.substr(0, 20) + "': the counters are not updated");
    }
  }

  std::filesystem::path freshness_;
  std::string last_fresh_;
  Nanoseconds fresh_at_{};
  bool started_ = false;
};

}  // namespace

Probe probe_cray_pm(const std::filesystem::path& root, const Clock& clock) {
  const std::filesystem::path dir = root / "sys/cray/pm_counters";
  constexpr const char* kRemedy = "only HPE Cray XC and EX nodes have these counters; nothing to do elsewhere";
  int error = 0;
  const auto entries = list_directory(dir, &error);
  if (error != 0) return {nullptr, read_failure(dir, error), kRemedy};
  std::vector<Channel> channels;
  std::string failure;
  for (const auto& entry : entries) {
    auto domain = domain_of(entry.filename().string());
    if (!domain) continue;
    Channel c{std::move(*domain), entry, EnergyFile{Joules{1.0}, std::numeric_limits<std::uint64_t>::max(), kCeiling, "J"}};
    const TextFile text = read_text(entry);
    const bool number = !text.text.empty() && std::isdigit(static_cast<unsigned char>(text.text.front())) != 0;
    if (number) {
      channels.push_back(std::move(c));
    } else if (failure.empty()) {
      failure = text.ok() ? entry.string() + " holds no number" : read_failure(entry, text.error);
    }
  }
  if (channels.empty()) {
    return {nullptr, failure.empty() ? "no counter of energy in " + dir.string() : failure,
            "ask the system's administrators to make the files in /sys/cray/pm_counters readable"};
  }
  nest(channels);
  return {std::make_unique<CrayMeter>(std::move(channels), dir / "freshness", clock)};
}

}  // namespace fallow::power
