// How what takes long is ended, as by Ctrl-C.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace fallow::trace {

/// Called now and then by what takes long; what it throws ends that.
using Look = std::function<void()>;

/// Calls it once in so many events that it costs nothing.
class Looking {
 public:
  explicit Looking(Look look) : look_(std::move(look)) {}

  void event() {
    if (++events_ % kEvery == 0) rank();
  }
  void rank() const {
    if (look_) look_();
  }

 private:
  static constexpr std::uint64_t kEvery = 1 << 14;
  Look look_;
  std::uint64_t events_ = 0;
};

}  // namespace fallow::trace
