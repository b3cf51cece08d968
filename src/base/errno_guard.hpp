// Keeps what our calls of the system say out of the program's sight.
#pragma once

#include <cerrno>

namespace fallow {

/// While it lives, errno may change; then it is put back.
class ErrnoGuard {
 public:
  ErrnoGuard() noexcept : saved_(errno) {}
  ~ErrnoGuard() { errno = saved_; }
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int saved_;
};

}  // namespace fallow
