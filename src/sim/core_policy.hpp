// What a core does while its rank waits, and at which frequency it computes. A core policy is one source in policies/
// (core_NAME.cpp), one test and one line in core_policy.cpp.
//
// A wait's length is known when it ends, so a policy is a function of it, as the links' rules are (docs/adr/0033): how
// much of it was polled, rested and spent on changing state, and by how much its end was noticed late.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/machine.hpp"

namespace fallow::sim {

enum class CoreRule : std::uint8_t {
  poll,      ///< stays awake
  timer,     ///< polls for a time, then rests until what it waits for comes
  planned,   ///< sleeps as predict::WaitModel says, waking by timer
  oracle,    ///< rests in every wait that is long enough and is always awake in time: the upper bound
};

/// Where a waiting core rests.
struct CoreRestState {
  Watts power{};
  Time down = 0, up = 0;
  /// 0: it stands still until it is up. Else it polls and computes at this share of its speed until then.
  double speed = 0;
};

/// A core policy at work, on one machine.
struct CorePolicy {
  std::string name = "spin";
  CoreRule rule = CoreRule::poll;
  Time timer = 0;
  Time notice = 0;             ///< from the coming of what it waits for until a polling core sees it
  CoreRestState rest;
  Watts compute{}, poll{};
  double slower = 1;           ///< computation takes so many times as long as at nominal frequency
  double calls_slower = 1;     ///< likewise what a core does inside calls
  double budget = 0.01;        ///< planned: accepted slowdown
};

struct CoreOptions {
  std::string name = "spin";
  Time timer = kNever;         ///< kNever: the policy's own
  Hertz frequency{};           ///< fixed, countdown: 0 is the lowest that the platform lists
  std::uint32_t throttle = 7;  ///< throttle: state, T0 is none
  std::string state;           ///< sleep, adaptive, oracle: of CoreSpec::sleeps; empty: blocked
  double memory_share = 0;     ///< share of computation that does not depend on the frequency (memory)
  double budget = 0.01;        ///< adaptive: accepted slowdown
};

struct CorePolicyInfo {
  const char* name;
  const char* help;  ///< one sentence
  CorePolicy (*make)(const CoreOptions& options, const CoreSpec& core);
};

std::span<const CorePolicyInfo> core_policies() noexcept;
/// Throws std::invalid_argument if there is no such policy, or no such frequency or state on this core.
CorePolicy make_core_policy(const CoreOptions& options, const CoreSpec& core);

namespace policies_detail {
CorePolicy core_spin(const CoreOptions& options, const CoreSpec& core);
CorePolicy core_yield(const CoreOptions& options, const CoreSpec& core);
CorePolicy core_sleep(const CoreOptions& options, const CoreSpec& core);
CorePolicy core_countdown(const CoreOptions& options, const CoreSpec& core);
CorePolicy core_throttle(const CoreOptions& options, const CoreSpec& core);
CorePolicy core_adaptive(const CoreOptions& options, const CoreSpec& core);
CorePolicy core_fixed(const CoreOptions& options, const CoreSpec& core);
CorePolicy core_oracle(const CoreOptions& options, const CoreSpec& core);
/// The state that the options name: blocked, or one of the deeper ones.
CoreRestState sleep_state(const CoreOptions& options, const CoreSpec& core);
/// The frequency that the options name, one within the platform's list.
Hertz frequency_of(const CoreOptions& options, const CoreSpec& core);
}  // namespace policies_detail

}  // namespace fallow::sim
