#include "pmpi/interpreting.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace fallow::pmpi {
namespace {

enum class Op : std::uint8_t { push, load, store, add, mix, bump, skip_if_even, jump_if, halt };

struct Step {
  Op op;
  std::int8_t arg = 0;
};

// Half of its jumps hang on what it computes. Variable 0 counts its rounds, 1 is the value.
constexpr std::int8_t kRounds = 12;
constexpr std::array kProgram{
    Step{Op::push, kRounds}, Step{Op::store, 0},
    Step{Op::load, 1}, Step{Op::push, 13}, Step{Op::add}, Step{Op::load, 1}, Step{Op::mix}, Step{Op::skip_if_even, 1}, Step{Op::bump, 7}, Step{Op::store, 1},
    Step{Op::load, 0}, Step{Op::bump, -1}, Step{Op::store, 0}, Step{Op::load, 0}, Step{Op::jump_if, 2}, Step{Op::halt},
};
constexpr std::size_t kDepth = 4;
constexpr double kReferenceNs = 225;  // where Python's loops take 60 to 250 ns between tests
constexpr int kTries = 4;              // the first has none of it in its caches, and some are interrupted

}  // namespace

std::uint32_t interpret(std::uint32_t seed) noexcept {
  std::array<std::uint32_t, kDepth> stack{};
  std::array<std::uint32_t, 2> variables{0, seed};
  std::size_t depth = 0;
  for (const Step* at = kProgram.data();; ++at) {
    switch (at->op) {
      case Op::push: stack[depth++] = static_cast<std::uint32_t>(at->arg); break;
      case Op::load: stack[depth++] = variables[static_cast<std::size_t>(at->arg)]; break;
      case Op::store: variables[static_cast<std::size_t>(at->arg)] = stack[--depth]; break;
      case Op::add: --depth; stack[depth - 1] += stack[depth]; break;
      case Op::mix: --depth; stack[depth - 1] ^= 2654435761u * stack[depth]; break;
      case Op::bump: stack[depth - 1] += static_cast<std::uint32_t>(at->arg); break;
      case Op::skip_if_even: if (stack[depth - 1] % 2 == 0) at += at->arg; break;
      case Op::jump_if: if (stack[--depth] != 0) at = kProgram.data() + at->arg - 1; break;
      case Op::halt: return variables[1];
    }
  }
}

double slowness_of_interpreting(const TickClock& clock) noexcept {
  std::uint64_t shortest = ~std::uint64_t{0}, before = clock.now();
  std::uint32_t value = static_cast<std::uint32_t>(before);
  for (int k = 0; k < kTries; ++k) {
    value = interpret(value);
    __asm__ volatile("" : "+r"(value));
    const std::uint64_t now = clock.now();
    shortest = std::min(shortest, now - std::exchange(before, now));
  }
  return std::max(1.0, clock.to_ns(shortest) / kReferenceNs);
}

}  // namespace fallow::pmpi
