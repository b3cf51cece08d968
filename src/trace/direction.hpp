// Whether the bytes of a call, as an event of the rank file has them, leave the rank or come to it.
#pragma once

#include <string_view>

#include "trace/rank_file.hpp"

namespace fallow::trace {

struct Direction {
  bool sends = false, receives = false;
};

/// By the function's name, "MPI_Irecv": what starts a receive is of the same kind as what starts a send.
constexpr Direction direction_of(std::string_view name, OpKind kind) noexcept {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  const bool gets = has("MPI_Get") || has("MPI_Rget");
  switch (kind) {
    case OpKind::send:
    case OpKind::collective:
      return {.sends = true};
    case OpKind::recv:
    case OpKind::start:
      if (has("endrecv")) return {.sends = true};  // what is received has a size of its own, see ThreadCounters
      return has("recv") || has("Recv") ? Direction{.receives = true} : Direction{.sends = true};
    case OpKind::rma:
      return {.sends = !gets || has("accumulate"), .receives = gets && !has("accumulate")};  // as above
    default:
      return {};
  }
}

}  // namespace fallow::trace
