// The TCP sockets of the process. Where messages come over them, data that come end a sleep, which a timer could only guess.
#pragma once

#include <poll.h>

#include <array>
#include <cstdint>

#include "pmpi/trust.hpp"

namespace fallow::pmpi {

/// Finds the sockets by itself and looks at them, but never reads: whose they are and what is in them is not its business.
/// That messages come over them is believed only as long as it is seen. One thread at a time.
class Sockets {
 public:
  enum class End : std::uint8_t { time, data, bell, ready };

  /// From now on it may be used.
  void enable() noexcept { enabled_ = true; }

  /// Whether there are sockets to sleep on; looks for them now and then.
  bool usable() noexcept;

  /// Sleeps for `ns` at most, or until data come, or until `bell` (a descriptor; below 0: none) can be read. `ready`: data
  /// were there already, it has not slept.
  End sleep(double ns, int bell) noexcept;

  /// Before a wait, as long as evidence() is asked for: what has come so far, bytes.
  std::uint64_t received() const noexcept;
  /// Whether it is to be told of the next wait.
  bool wants_evidence() noexcept { return enabled_ && (++asked_ <= kFirst || asked_ % kSeldom == 0) && usable(); }
  /// What a wait was for has come, over the sockets or in some other way.
  void came(bool over_sockets) noexcept;
  /// Messages from other nodes come over the sockets.
  bool trusted() const noexcept { return trust_.holds(); }

 private:
  static constexpr std::size_t kMost = 128;       // sockets; with more, looking at all of them costs too much
  static constexpr std::uint32_t kStrikes = 3;    // times that there were data which nobody has read: not the library's
  static constexpr std::uint32_t kFirst = 64, kSeldom = 64;  // waits that are looked at, and of how many one is later
  static constexpr std::uint32_t kFirstLook = 4, kLongest = 4096;  // sleeps until the sockets are looked for again
  static constexpr double kFew = 0.1;  // messages that may come in another way

  struct Socket {
    int fd;
    std::uint32_t strikes;
    bool ignored;
  };
  void find() noexcept;
  void keep(int fd) noexcept;

  std::array<Socket, kMost> sockets_{};
  std::array<pollfd, kMost + 1> polled_{};
  std::size_t count_ = 0;
  std::uint32_t asked_ = 0, until_look_ = 0, look_again_ = kFirstLook;
  Trust trust_{kFew, 1.0};
  bool enabled_ = false;
};

}  // namespace fallow::pmpi
