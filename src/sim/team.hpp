// Several engines replay one program, each its share of the machine's domains on its own thread. They go from window
// to window of simulated time: a window begins with the earliest event of all and ends with the earliest time at which
// something that one share does may reach another one (conservative synchronisation: R. Fujimoto, "Parallel discrete
// event simulation", 1990). Events have a total order of their own, so each share does the same whoever replays the
// others.
#pragma once

#include <atomic>
#include <exception>
#include <vector>

#include "sim/engine.hpp"

namespace fallow::sim {

/// What a share tells the others after a window, in a cache line of its own: all that they need to begin the next one.
struct alignas(64) Board {
  std::atomic<std::uint32_t> windows{0};  ///< how many are over; the others wait for it
  bool failed = false;
  std::uint64_t letters = 0;  ///< to whom it has sent something: bit `share % 64`
  Time next = kNever;         ///< the earliest of its own events and those that it has sent
  Time reaches = kNever;      ///< before that nothing of it reaches another share
  Time ended = kNever;        ///< when the last of its ranks has; kNever: one has not
};
static_assert(sizeof(Board) == 64);

class Team {
 public:
  /// `leader` and the engines that it has made.
  explicit Team(Engine& leader);
  /// Replays all; the calling thread takes the leader's share. Throws what the earliest event threw that did.
  void run();

 private:
  struct alignas(64) Member {
    Engine* engine = nullptr;
    // Of even and odd windows: the others read the one while it writes the other.
    Board boards[2];
    std::vector<Mailbox> outgoing[2];  ///< by share
    Time replayed = 0;  ///< up to then
    std::exception_ptr error;
    Time error_time = kNever;
    std::uint64_t error_tie = 0;
  };
  struct Window {
    Time begin = kNever, end = kNever;
    Time over = kNever;  // when all ranks have ended, if they have
  };
  void work(std::uint32_t index);
  Window next_window(std::uint32_t windows);
  void wait_for(Board& board, std::uint32_t windows) noexcept;
  void tell(Board& board, std::uint32_t windows) noexcept;
  void collect(std::uint32_t index, std::uint32_t parity);
  void replay(std::uint32_t index, std::uint32_t parity, Time end) noexcept;

  std::vector<Member> members_;
  alignas(64) std::atomic<std::uint32_t> sleeping_{0};
};

}  // namespace fallow::sim
