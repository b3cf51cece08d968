// Keeps the program's handlers of signals from coming, and leaving, in the middle of what must be done whole.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <mutex>

namespace fallow {

/// While it lives, no signal reaches the thread but those that its own instructions raise. A handler may leave by siglongjmp(),
/// and never comes back: what is locked then stays locked. About 300 ns, so for slow paths only.
class SignalGuard {
 public:
  SignalGuard() noexcept {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, own);
    pthread_sigmask(SIG_BLOCK, &all, &saved_);
  }
  ~SignalGuard() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  sigset_t saved_;
};

/// A lock that no handler leaves behind, nor waits for where its own thread holds it.
class WholeLock {
 public:
  explicit WholeLock(std::mutex& mutex) noexcept : lock_(mutex) {}

 private:
  SignalGuard signals_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace fallow
