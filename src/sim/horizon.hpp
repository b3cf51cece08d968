// How far other shares of a machine may go on before something of this one can reach them (docs/adr/0036): messages that
// are held on their way to them, by when they may cross the border at the earliest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "sim/time.hpp"

namespace fallow::sim {

class Horizon {
 public:
  /// What happens at `event` may reach another share at `earliest`, and not before.
  void add(Time event, Time earliest) {
    pending_.push_back({earliest, event});
    std::push_heap(pending_.begin(), pending_.end(), std::greater<>());
  }

  /// The earliest of all that are yet to happen: those before `done` have. kNever if there is none.
  Time earliest(Time done) {
    while (!pending_.empty() && pending_.front().event < done) {
      std::pop_heap(pending_.begin(), pending_.end(), std::greater<>());
      pending_.pop_back();
    }
    return pending_.empty() ? kNever : pending_.front().earliest;
  }

  std::size_t memory_bytes() const noexcept { return pending_.capacity() * sizeof(Pending); }

 private:
  struct Pending {
    Time earliest, event;
    auto operator<=>(const Pending&) const = default;
  };
  std::vector<Pending> pending_;  // a heap; what has happened stays until it comes to the front
};

}  // namespace fallow::sim
