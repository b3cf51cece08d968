// What Fallow changes of a thread for a while.
#pragma once

#include "pmpi/thread_state.hpp"

namespace fallow::pmpi {

/// What a look at a wait changes of the thread is known while it lasts, should a signal's handler jump out of it.
class OwnState {
 public:
  OwnState(Thread& thread, int cancel_state) noexcept : thread_(thread) { thread_.cancel_state = cancel_state; }
  ~OwnState() { thread_.cancel_state = -1; }
  OwnState(const OwnState&) = delete;
  OwnState& operator=(const OwnState&) = delete;

 private:
  Thread& thread_;
};

}  // namespace fallow::pmpi
