// What is known of the wait of the call under way, what resting costs here, and the times that waits go by: nothing of MPI, nor of the
// runtime. What is decided by these alone is in sleep_plan.hpp, wait_outcome.hpp and meeting.hpp.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace fallow::pmpi {

inline constexpr std::uint32_t kPollsBetweenLooks = 8;     // about a microsecond of polling
inline constexpr double kBusyPolls = 4.0, kBusyNs = 300.0; // a poll this much longer than an idle one moved data
inline constexpr double kLullNs = 20e3;                    // polls in vain for as long as this are not part of a transfer
inline constexpr double kSeenNs = 3e3;                     // what is found this soon after a sleep had come during it
inline constexpr double kGraceNs = 50e3;                   // polling after a wake by a peer or after data moved: more is on its way
inline constexpr double kGiveWayNs = 200e3;                // polling before a sleep that gives way to whoever shares the core; also where data moved, between nodes
inline constexpr double kColdPollNs = 10e3;                // the first poll after a sleep is slow; one that lasts longer has found something
inline constexpr double kLongestLullNs = 2e6;              // in a transfer between ranks that share cores
inline constexpr double kAfterSleepNs = 10e3;              // what cold caches cost after a sleep, in the rest of the call and in the program
inline constexpr double kLongestSleepNs = 10e6;            // a wake may get lost with a killed peer: look at least this often

/// Idle polls of a blocking call before the time is looked at: a few microseconds, and so less where a poll takes long.
inline constexpr std::uint32_t kFirstPolls = 64;
inline constexpr double kFirstLookNs = 6e3;
/// At least, and where ranks outnumber processors and a polling rank keeps another from working.
inline constexpr std::uint32_t kFirstPollsShared = 8;

/// Phase of the wait inside the blocking call under way; see wait.cpp.
enum class WaitPhase : std::uint8_t { none, spinning, armed };

/// The wait of the call under way. Reset lazily: only a call that polls long enough touches it.
struct WaitState {
  WaitPhase phase = WaitPhase::none;
  std::uint64_t asleep = 0;      ///< ticks asleep in this call
  std::uint64_t delay = 0;       ///< ticks by which sleeps outlasted the wait, upper estimate
  std::uint64_t absorbed = 0;    ///< ticks of earlier delays that this wait made good
  std::uint64_t busy = 0;        ///< ticks of polls that moved data
  std::uint64_t last_poll = 0;
  std::uint64_t quiet_since = 0; ///< tick since when no poll has moved data
  std::uint64_t quiet_until = 0; ///< tick at which data moved after the last lull worth sleeping in; 0: there was none
  std::uint64_t spin_until = 0;
  std::uint64_t planned_end = 0; ///< tick at which the armed sleep is to end
  std::uint64_t last_sleep = 0;  ///< length of the last sleep, ticks
  std::uint64_t last_wake = 0;   ///< tick at which the last sleep ended
  std::uint64_t woken_tick = 0;  ///< tick at which the peer woke us
  std::uint64_t spin_after = 0;  ///< ticks to poll after the sleep, as planned
  std::uint64_t awake_since = 0; ///< tick at which the first poll after the last sleep was over, or the sleep if there was none
  std::uint64_t moved_last = 0;  ///< tick at which the library last went on, where ranks share cores; 0: not in this call
  std::uint64_t flows_since = 0; ///< tick since when it has done so again and again
  std::uint64_t stirred = 0;     ///< the same, or tick at which a peer woke us last in a call of many steps; 0: neither
  std::uint64_t moved_at = 0;    ///< tick of the first poll after that which moved data; 0: none has
  std::uint64_t held_up = 0;     ///< ticks by which sleeps are taken to have held up the call before the last of them; paid
  std::uint64_t received = 0;    ///< if `watched`: bytes that had come over sockets before
  std::uint64_t all_came = 0;    ///< tick at which all were seen to have come to a call that nobody leaves before; 0: not yet
  std::uint64_t moves_until = 0; ///< tick until which the data of a collective call, to which all have come, may be on their way; 0: not seen yet
  std::uint64_t kind = 0;        ///< key of the predicted kind of this wait; 0: only the call site is known
  std::uint32_t polls_since = 1; ///< polls between two looks at the time
  std::uint32_t sleeps = 0;
  bool woken_by_peer = false;    ///< how the last sleep ended
  bool woken_by_data = false;    ///< or so
  std::uint32_t found_before = 0;///< Thread::found at the end of the last sleep
  bool woken_by_test = false;    ///< the peer that ended the last sleep had tested in vain
  bool worked = false;           ///< the library was at work before it first polled, in a call of many steps
  bool found_at_once = false;    ///< the first poll after it found something
  bool served = false;           ///< the peer had to be answered
  bool settled = true;           ///< what the last sleep held up is in `held_up`
  bool from_here = false;        ///< what it is for comes from a certain rank of this node, which wakes us
  bool watched = false;          ///< what comes over sockets meanwhile is to be seen
  std::uint32_t armed_polls = 0; ///< looks that are left before the armed sleep
  std::uint32_t fresh = 0;       ///< polls to be looked at one by one, as they are the first since the sleep
  bool yields = false;           ///< its polls give way to other ranks
  bool compared = false;         ///< spent awake, to be compared with those that are slept in
  bool held = false;             ///< others wanted the core, and it was kept for a while
  bool others_had_core = false;  ///< for more than a moment at the end of the last sleep
};

/// What resting costs here; starts from typical values and follows what is measured.
struct MeasuredCosts {
  double sleep_cpu_ns = 20e3;   ///< CPU time of a sleep: measured on virtual machines, less on bare metal
  double overshoot_ns = 30e3;   ///< lateness of a timed sleep
  double peer_wake_ns = 45e3;   ///< lateness of a wake by a peer
  double waking_ns = 5e3;       ///< what waking us takes of the peer's time
  double idle_poll_ns = 0;      ///< one poll of the library that finds nothing
  double usual_gap_ns = 0;      ///< from one poll to the next where ranks share cores: a fifth are shorter; 0: not known
};

/// Where the wait takes place.
struct Surroundings {
  bool automatic = true;         ///< mode auto, not sleep
  bool whole_job_here = true;
  bool oversubscribed = false;
  bool wakes = true;             ///< ranks wake each other
  bool limited = false;          ///< the process gets less of the processors' time than it wants
};

/// The call that waits, in ticks.
struct WaitingCall {
  std::uint64_t enter = 0, now = 0;
  bool many_steps = false;
};

inline Nanoseconds to_nanoseconds(double ns) noexcept { return Nanoseconds(static_cast<std::int64_t>(ns)); }

}  // namespace fallow::pmpi
