// Several engines replay one program, each its share of the machine's domains on its own thread. They go from window
// to window of simulated time: a window begins with the earliest event of all and is as long as the latency of a link,
// so nothing that one share does in it reaches another one before its end (conservative synchronisation: R. Fujimoto,
// "Parallel discrete event simulation", 1990). Events have a total order of their own, so each share does the same
// whoever replays the others.
#pragma once

#include <atomic>
#include <exception>
#include <vector>

#include "sim/engine.hpp"

namespace fallow::sim {

/// All threads of a team wait for each other.
class Barrier {
 public:
  explicit Barrier(std::uint32_t threads) noexcept : threads_(threads) {}
  void wait() noexcept;

 private:
  std::uint32_t threads_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> round_{0};
  alignas(64) std::atomic<std::uint32_t> sleeping_{0};
};

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
    Time next[2] = {kNever, kNever};   ///< the earliest of its own events and those that it has sent
    bool failed[2] = {false, false};
    std::vector<Mailbox> outgoing[2];  ///< by share
    std::exception_ptr error;
    Time error_time = kNever;
    std::uint64_t error_tie = 0;
  };
  void work(std::uint32_t index);
  void collect(std::uint32_t index, std::uint32_t parity);
  void replay(Member& member, std::uint32_t parity, Time end) noexcept;
  Time earliest(std::uint32_t parity) const noexcept;

  std::vector<Member> members_;
  Barrier barrier_;
  Time window_;
};

}  // namespace fallow::sim
