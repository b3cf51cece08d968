// Places of calls for tests.
#pragma once

#include <cstdint>

#include "pmpi/counted_calls.hpp"

namespace fallow::pmpi {

inline constexpr std::uint16_t kOp = 7, kOther = 8;
inline constexpr std::uint64_t kLasts = 100, kGap = 60;
inline const int kHere = 0, kThere = 0;  // where they are made

inline CallPlace place(std::uint16_t op = kOp, const void* caller = &kHere, std::uint16_t comm = 3) {
  CallPlace p;
  p.caller = caller;
  p.op = op;
  p.comm = comm;
  p.lasts = kLasts;
  p.tests = true;
  return p;
}

inline CallPlace one_sided(std::uint16_t op = kOther, const void* caller = &kThere) {
  CallPlace p = place(op, caller, 0);
  p.tests = false;
  return p;
}

}  // namespace fallow::pmpi
