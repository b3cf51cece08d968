// Keeps the program's threads from ending inside our code.
#pragma once

#include <pthread.h>

namespace fallow {

/// While it lives, pthread_cancel() does not reach the thread. The program asks for no more than that its own calls be
/// points of cancellation: an open() or a poll() of ours may not be one, least of all where nothing may be thrown. About
/// 10 ns, so for slow paths only.
class CancelGuard {
 public:
  CancelGuard() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved_); }
  ~CancelGuard() { pthread_setcancelstate(saved_, nullptr); }
  int saved() const noexcept { return saved_; }
  CancelGuard(const CancelGuard&) = delete;
  CancelGuard& operator=(const CancelGuard&) = delete;

 private:
  int saved_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace fallow
