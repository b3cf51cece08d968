#include "power/text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace fallow::power {
namespace {

constexpr std::size_t kLongestAttribute = 4096;  // bytes, one page: Documentation/filesystems/sysfs.rst

template <class Int>
std::optional<Int> parse(std::string_view text) noexcept {
  Int value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Orders runs of digits by their value, everything else by its bytes.
bool natural_less(std::string_view a, std::string_view b) noexcept {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const auto digits = [](std::string_view s) { return std::find_if_not(s.begin(), s.end(), is_digit) - s.begin(); };
      const std::string_view x = a.substr(0, static_cast<std::size_t>(digits(a)));
      const std::string_view y = b.substr(0, static_cast<std::size_t>(digits(b)));
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      a.remove_prefix(x.size());
      b.remove_prefix(y.size());
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

}  // namespace

TextFile read_text(const std::filesystem::path& file) {
  TextFile result;
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    result.error = errno;
    return result;
  }
  std::array<char, kLongestAttribute> buffer;
  std::size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t n = ::read(fd, buffer.data() + size, buffer.size() - size);
    if (n == 0) break;
    if (n < 0) {
      if (errno == EINTR) continue;
      result.error = errno;
      break;
    }
    size += static_cast<std::size_t>(n);
  }
  ::close(fd);
  if (!result.ok()) return result;
  while (size > 0 && std::isspace(static_cast<unsigned char>(buffer[size - 1])) != 0) --size;
  result.text.assign(buffer.data(), size);
  return result;
}

std::string read_failure(const std::filesystem::path& file, int error) {
  return "cannot read " + file.string() + ": " + std::generic_category().message(error);
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) noexcept { return parse<std::uint64_t>(text); }
std::optional<std::int64_t> parse_signed(std::string_view text) noexcept { return parse<std::int64_t>(text); }

std::vector<std::filesystem::path> list_directory(const std::filesystem::path& dir, int* error) {
  std::vector<std::filesystem::path> entries;
  std::error_code failure;
  std::filesystem::directory_iterator it(dir, failure);
  while (!failure && it != std::filesystem::directory_iterator()) {
    entries.push_back(it->path());
    it.increment(failure);
  }
  if (error != nullptr) *error = failure.value();
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return natural_less(a.filename().native(), b.filename().native());
  });
  return entries;
}

std::optional<unsigned> numbered(std::string_view name, std::string_view prefix, std::string_view suffix) noexcept {
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix)) {
    return std::nullopt;
  }
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  return parse<unsigned>(name);
}

}  // namespace fallow::power
