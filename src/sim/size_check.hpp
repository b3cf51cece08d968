// Whether all ranks name the same size for a collective call.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "sim/details.hpp"

namespace fallow::sim {

class SizeCheck {
 public:
  /// A rank makes its collective call number `number` on a communicator of `members`. Sizes of 0 are not compared.
  void see(trace::Op op, std::uint32_t comm, std::uint32_t number, std::uint32_t members, UnlikeSizes::Side side) {
    const auto [place, first] = open_.try_emplace(std::uint64_t{comm} << 32 | number, Call{op, side});
    Call& call = place->second;
    if (call.first.bytes == 0) call.first = side;
    const bool alike = trace::traits(call.op).blocking == trace::traits(op).blocking;
    if (alike && side.bytes != 0 && side.bytes != call.first.bytes && !call.told) {
      call.told = true;
      if (found_.count++ == 0) found_ = {1, op, comm, call.first, side};
    }
    if (++call.seen == members) open_.erase(place);
  }
  const UnlikeSizes& found() const noexcept { return found_; }

 private:
  struct Call {
    trace::Op op;
    UnlikeSizes::Side first;
    std::uint32_t seen = 0;
    bool told = false;
  };
  std::unordered_map<std::uint64_t, Call> open_;  ///< those that not all members have made, by communicator and number
  UnlikeSizes found_;
};

}  // namespace fallow::sim
