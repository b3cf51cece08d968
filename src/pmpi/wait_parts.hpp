// What the parts of a wait share: wait.cpp lives through it, wait_plan.cpp says how long to sleep, wait_end.cpp learns from it.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "pmpi/runtime.hpp"
#include "predict/wait_model.hpp"

namespace fallow::pmpi {

inline constexpr std::uint32_t kPollsBetweenLooks = 8;     // about a microsecond of polling
inline constexpr double kGraceNs = 50e3;                   // polling after a wake by a peer or after data moved: more is on its way
inline constexpr double kGiveWayNs = 200e3;                // polling before a sleep that gives way to whoever shares the core; also after what came late
inline constexpr double kAfterSleepNs = 10e3;              // what cold caches cost after a sleep, in the rest of the call and in the program
inline constexpr double kLongestSleepNs = 10e6;            // a wake may get lost with a killed peer: look at least this often

/// By what the waits of the call under way are told apart where nothing is predicted: where it was called from.
inline std::uint64_t key_of(const Thread& t) noexcept {
  return (reinterpret_cast<std::uint64_t>(t.caller) ^ (std::uint64_t{t.op} << 48)) * 0x9e3779b97f4a7c15u;
}

/// The predicted kind of wait where that says more, else the call site.
inline std::uint64_t known_key(const Thread& t) noexcept { return runtime().waits.more_telling(t.wait.kind, key_of(t)); }

inline Nanoseconds to_nanoseconds(double ns) noexcept { return Nanoseconds(static_cast<std::int64_t>(ns)); }

/// Follows a measured cost.
inline void smooth(double& value, double sample) noexcept { value += (sample - value) / 8; }

inline trace::OpKind kind_of(const Thread& t) noexcept { return static_cast<trace::OpKind>(runtime().writer.header().ops[t.op].kind); }

/// The call takes one message after the other among its ranks, and those inside it wake nobody. So each of them may
/// find the rest asleep, and what such calls last is no measure: all would sleep for as long as all have slept before.
inline bool has_many_steps(const Thread& t) noexcept {
  const trace::OpKind kind = kind_of(t);
  return kind == trace::OpKind::collective || kind == trace::OpKind::io || kind == trace::OpKind::other || kind == trace::OpKind::setup;
}

/// What was waited for came during the last sleep.
inline bool found_late(const WaitState& w) noexcept { return w.found_at != 0 && w.found_at == w.last_wake; }

/// Takes down the sign that says that we sleep. True if a peer woke us, which it may have done before we slept.
bool disarm(Thread& t) noexcept;

/// What to do next in the call under way, at this tick.
predict::WaitPlan make_plan(Thread& t, std::uint64_t now) noexcept;

}  // namespace fallow::pmpi
