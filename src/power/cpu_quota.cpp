#include "power/cpu_quota.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace fallow::power {
namespace {

constexpr std::uint64_t kNsPerUs = 1000;

/// The beginning of a file; nothing if it cannot be read. No streams: this is part of what is loaded into programs.
std::string contents(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  std::array<char, 4096> part;
  for (ssize_t n; text.size() < kMost && (n = read(fd, part.data(), part.size())) > 0;) text.append(part.data(), static_cast<std::size_t>(n));
  close(fd);
  return text;
}

/// Takes what comes before `between` off the front of `text`.
std::string_view take(std::string_view& text, char between) noexcept {
  const std::size_t end = std::min(text.find(between), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// The whole number that `text` begins with; 0 if with none.
double number(std::string_view text) noexcept {
  std::int64_t value = 0;
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{} ? static_cast<double>(value) : 0.0;
}

bool has_word(std::string_view words, std::string_view word) noexcept {
  while (!words.empty()) {
    if (take(words, ',') == word) return true;
  }
  return false;
}

/// A hierarchy of control groups that is seen here.
struct Mount {
  std::string root;  ///< the group that is mounted
  std::string point;
};

/// The first mount of control groups, for version 1 of those that have the controller of processors.
bool find_mount(std::string_view mountinfo, bool v2, Mount& found) {
  while (!mountinfo.empty()) {
    std::string_view line = take(mountinfo, '\n');
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::string_view file_system = line.substr(dash + 3);
    for (int skipped = 0; skipped < 3; ++skipped) take(line, ' ');
    const std::string_view root = take(line, ' '), point = take(line, ' ');
    const std::string_view kind = take(file_system, ' ');
    take(file_system, ' ');
    if (kind != (v2 ? "cgroup2" : "cgroup") || (!v2 && !has_word(take(file_system, ' '), "cpu"))) continue;
    found = {std::string(root), std::string(point)};
    return true;
  }
  return false;
}

/// The group of a process in the hierarchy of version 2, or in that of version 1 which has the controller of processors.
bool find_group(std::string_view cgroups, bool v2, std::string& found) {
  while (!cgroups.empty()) {
    std::string_view line = take(cgroups, '\n');
    take(line, ':');
    const std::string_view controllers = take(line, ':');
    if (v2 ? !controllers.empty() : !has_word(controllers, "cpu")) continue;
    found = line;
    return true;
  }
  return false;
}

/// `group` as seen below a mount of `root`; the mount itself where it is not below it, as in containers that see their own group only.
std::string below(const std::string& group, const std::string& root) {
  if (group.find("/..") != std::string::npos) return {};
  if (root == "/") return group == "/" ? std::string{} : group;
  if (!group.starts_with(root) || (group.size() > root.size() && group[root.size()] != '/')) return {};
  return group.substr(root.size());
}

/// Processors whose time a group may have; 0: no limit of its own.
double limit_of(const std::string& group, bool v2) {
  const std::string first = contents(group + (v2 ? "/cpu.max" : "/cpu.cfs_quota_us"));
  const std::string second = v2 ? std::string{} : contents(group + "/cpu.cfs_period_us");
  std::string_view text = first;
  const double quota = number(v2 ? take(text, ' ') : text), period = number(v2 ? text : second);
  return quota > 0 && period > 0 ? quota / period : 0.0;
}

/// The number behind `name` in lines of "name number"; false where there is none.
bool number_of(std::string_view text, std::string_view name, std::uint64_t& value) noexcept {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    const char* const begin = text.data() + std::min(at + name.size() + 1, text.size());
    if (std::from_chars(begin, text.data() + text.size(), value).ec == std::errc{}) return true;
  }
  return false;
}

}  // namespace

void CpuQuota::look_up(std::string group, const std::string& top, bool v2) {
  for (;; group.erase(group.rfind('/'))) {
    if (const double limit = limit_of(top + group, v2); limit > 0) {
      groups_.push_back({top + group + "/cpu.stat", v2});
      processors_ = processors_ > 0 ? std::min(processors_, limit) : limit;
    }
    if (group.rfind('/') == std::string::npos) return;
  }
}

CpuQuota::CpuQuota(const std::string& root) {
  const std::string mounts = contents(root + "/proc/self/mountinfo"), own = contents(root + "/proc/self/cgroup");
  for (const bool v2 : {false, true}) {
    Mount mount;
    std::string group;
    if (!find_mount(mounts, v2, mount) || !find_group(own, v2, group)) continue;
    look_up(below(group, mount.root), root + mount.point, v2);
  }
}

std::uint64_t CpuQuota::throttled_ns() const noexcept {
  std::uint64_t sum = 0;
  bool told = false;
  for (const Group& group : groups_) {
    std::array<char, 512> text;
    const int fd = open(group.statistics.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    const ssize_t length = read(fd, text.data(), text.size());
    close(fd);
    std::uint64_t value = 0;
    const std::string_view lines(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    if (!number_of(lines, group.v2 ? "throttled_usec" : "throttled_time", value)) continue;
    told = true;
    sum += group.v2 ? value * kNsPerUs : value;
  }
  return told ? sum : kUnknown;
}

}  // namespace fallow::power
