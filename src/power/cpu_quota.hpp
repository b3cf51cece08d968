// What control groups let this process have of the processors' time, and for how long they have throttled it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fallow::power {

/// The limits (cgroup v2: cpu.max; v1: cpu.cfs_quota_us) on the group that the process was in when they were looked for, and on those
/// above it, as far as they are seen from where it runs. Whoever takes more time stands still until the next period, of 0.1 s by default.
class CpuQuota {
 public:
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

  CpuQuota() = default;  ///< of a process without a limit
  /// Looks under `root` for /proc and for what is mounted there. What cannot be read limits nothing. May throw std::bad_alloc.
  explicit CpuQuota(const std::string& root);

  bool limited() const noexcept { return !groups_.empty(); }
  /// Processors whose time the process may have, all of its groups together with it; 0: as many as there are.
  double processors() const noexcept { return processors_; }

  /// For how long groups were throttled, that is stood still for these limits, in nanoseconds since they were made: the sum over processors, and over
  /// groups with a limit. kUnknown where there is none, or the kernel does not tell. Some microseconds.
  std::uint64_t throttled_ns() const noexcept;

 private:
  struct Group {
    std::string statistics;  ///< file
    bool v2 = false;
  };

  void look_up(std::string group, const std::string& top, bool v2);

  std::vector<Group> groups_;
  double processors_ = 0;
};

}  // namespace fallow::power
