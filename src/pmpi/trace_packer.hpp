// A thread that packs a rank's trace where the rank itself does not wait often enough to do it. It begins when a ring
// first gets crowded, runs only where a processor has nothing else to do, and stays out of the program's sight: it takes
// no signals, and has a table of file descriptors of its own. See docs/adr/0017-a-thread-packs-traces.md.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace fallow::pmpi {

class TracePacker {
 public:
  /// What it does, a little at a time. Returns how many records were packed of the ring that had most.
  struct Work {
    std::uint32_t (*pack)(void* context, std::uint32_t most) noexcept = nullptr;
    void* context = nullptr;
    std::uint32_t ring = 0;  ///< records that a ring holds: it is emptied when it should be half full
  };

  TracePacker() = default;
  TracePacker(const TracePacker&) = delete;
  TracePacker& operator=(const TracePacker&) = delete;
  ~TracePacker() { stop(); }

  /// Starts the thread unless that has been tried before.
  void start(const Work& work) noexcept;
  /// Ends it, and waits for that. It cannot be started again.
  void stop() noexcept;

  /// It got a processor when it last wanted one.
  bool helps() const noexcept { return helps_.load(std::memory_order_relaxed); }
  /// CPU time that it used, once it has ended.
  std::uint64_t cpu_ns() const noexcept { return cpu_ns_.load(std::memory_order_relaxed); }

  /// Held while it works: whoever holds it finds none of the locks taken that the work takes.
  std::mutex& work_mutex() noexcept { return work_mutex_; }
  /// In the child of a fork, which has no such thread.
  void forget() noexcept;

 private:
  enum class State : std::uint32_t { none, starting, running, over };
  static void* entry(void* self) noexcept;
  bool get_ready() noexcept;
  void run() noexcept;
  std::uint64_t round(std::uint64_t slept_ns) noexcept;
  bool sleep(std::uint64_t ns) noexcept;

  Work work_;
  std::mutex work_mutex_;
  pthread_t thread_{};
  std::atomic<State> state_{State::none};
  std::atomic<std::uint32_t> stopping_{0};  ///< a futex
  std::atomic<bool> helps_{false};
  std::atomic<std::uint64_t> cpu_ns_{0};
  std::uint64_t back_off_ns_ = 0;
};

}  // namespace fallow::pmpi
