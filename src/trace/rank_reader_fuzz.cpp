// libFuzzer target over the reader of rank files; tools/fuzz builds and runs it.
#include <cmath>

#include "trace/rank_walk.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  try {
    if (!std::isfinite(fallow::trace::testing::walk_rank({input.begin(), input.end()}))) __builtin_trap();
  } catch (const fallow::trace::RankFileError& e) {
    if (e.reason().empty()) __builtin_trap();
  }
  return 0;
}
