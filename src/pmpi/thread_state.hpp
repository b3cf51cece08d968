// State of one thread that calls MPI: where its counters lie, and how its current call waits.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "pmpi/counted_calls.hpp"
#include "pmpi/mpi_header.hpp"
#include "pmpi/idle_tests.hpp"
#include "pmpi/patience.hpp"
#include "pmpi/test_loop.hpp"
#include "pmpi/wait_state.hpp"
#include "trace/rank_file.hpp"

namespace fallow::pmpi {

struct CommInfo;
struct ThreadTrace;

/// What the idle hook has done in the call under way: nothing yet, left it alone for a while, see Patience, or looked at it.
enum class Look : std::uint8_t { none, patient, taken };

/// A peer of a recent point-to-point or one-sided call, to be woken when it may be waiting for us.
struct RecentPeer {
  std::uint64_t where = 0;  ///< communicator or window
  std::int32_t rank = -1;
};

/// Thread::peer of a call that exchanges data with all of its ranks, or may. No MPI has a rank or a special one of this number.
inline constexpr std::int32_t kSeveralPeers = std::numeric_limits<std::int32_t>::min();

inline constexpr std::size_t kRecentPeers = 16;
inline constexpr std::size_t kTypeSlots = 64;
inline constexpr std::uint64_t kRecentCalls = 64;  ///< after which a collective call that was started is taken to be over

struct TypeSlot {
  std::uint64_t handle = 0;
  std::uint64_t size = 0;
  std::uint32_t generation = 0;  ///< of the table of types when the size was read; 0: empty
};

/// The wait of an event that is not yet in the totals, in ticks.
struct PendingWait {
  std::uint64_t wait = 0, asleep = 0, delay = 0, absorbed = 0;
  std::uint32_t sleeps = 0;
};

/// The totals are brought up to date while the rank waits, so that the latency of a call does not carry their cost.
using trace::kPendingEvents;

/// Who adds a thread's events to its totals: the thread, or who ends it or the process.
enum class Totalling : std::uint8_t { nobody, itself, other };

/// What a call like the last one at its place is about.
struct RepeatedDetails {
  std::uint64_t bytes = 0, received = 0;
  std::int32_t peer = -1;
  std::uint16_t comm = 0;
};

/// The last call that the program made in a callback of the MPI library.
struct NestedCall {
  const void* frame = nullptr;
  const void* caller = nullptr;  ///< where it returns to, as its frame says while it lasts
  std::uint16_t op = 0;
};

struct alignas(64) Thread {
  // --- what almost every call reads or writes: three lines of the caches (docs/adr/0047)
  std::uint64_t enter = 0;
  const void* caller = nullptr;
  std::uint64_t comm_handle = 0;   ///< 0: the call names none
  std::int32_t peer = -1;
  std::uint32_t wanted_calls = 0;  ///< peers that the call names
  std::uint16_t op = 0;
  std::uint16_t last_comm_id = 0;  ///< see `last_comm`
  bool tells_tests = false;        ///< this rank's tests have been told to the node
  bool polled = false;             ///< a wait has been looked at: the library calls the hook while it waits
  Look look = Look::none;
  std::uint32_t patient_polls = 0; ///< idle polls left to the call under way before it is looked at
  std::uint64_t recorded = 0;      ///< events in the ring so far
  trace::Event* ring = nullptr;
  std::uint32_t ring_mask = 0, site_mask = 0;
  std::uint64_t last_comm = 0;     ///< handle of the communicator that was used last, of which the next is known, and its number for events
  const CommInfo* last_info = nullptr;
  std::uint32_t comm_generation = 0;
  std::uint32_t recent_next = 0;
  std::uint64_t collective_on = 0; ///< communicator of the last collective call that was started and returned at once; 0: none
  std::uint64_t collective_at = 0; ///< events in the ring then
  ThreadTrace* trace = nullptr;    ///< null: the run is not recorded call by call
  std::uint64_t totalled = 0;      ///< events in the totals
  std::uint64_t received_too = 0;  ///< bytes of the receiving halves of calls that send and receive, not yet in the totals
  std::array<RecentPeer, kRecentPeers> recent{};

  // --- the call under way
  std::uint64_t woke_at = 0;       ///< tick at which it last woke a rank
  std::uint64_t idle_poll = 0;     ///< ticks of a poll that finds nothing; 0: not known
  std::uint64_t part = 0;          ///< elements of a rank's part in a collective call, as the caller says: to be taken for an estimate
  std::uint64_t part_type = 0;     ///< their datatype; may be none
  WaitState wait;
  std::uint64_t poll_began = 0;    ///< tick of the last poll before a look
  std::int64_t core_lost = 0;      ///< times that the kernel gave its core to others, before the poll that is under way
  std::uint32_t found = 0;         ///< polls of blocking calls that found something, where the hook is told
  std::uint32_t gave_way = 0;      ///< times that the library gave way to others, where it is seen
  std::uint32_t gave_way_before = 0;  ///< of these, before the last poll or test that gave way
  std::uint64_t vain_tests = 0;    ///< tests in a row that found nothing, with nothing else in between, where ranks share cores
  std::uint64_t tested_at = 0;     ///< tick at the end of the last of them
  std::uint64_t kept_since = 0;    ///< tick since when it has kept its core in them
  std::uint64_t all_vain_tests = 0, told_vain_tests = 0;  ///< where ranks share cores; of these, those left out of NodeSlot::calls
  bool spares_meetings = false;    ///< others are being woken in a call that those who sleep in a meeting do not wait for
  std::uint32_t vain_waits = 0;    ///< waits in a row in which tests have woken it, each time for nothing
  bool woken_in_vain = false;      ///< so far this is one
  bool tests_in_vain = false;      ///< others are being woken after a test that found nothing
  bool tests_softly = false;       ///< it did nothing either that they may wait for, as far as one can tell
  bool tested_long = false;        ///< the test under way did something, though others were made after it
  bool owes_wake = false;          ///< a test has done something, and a rank that sleeps may be woken for that a little later only
  IdleTests idle_tests;
  TestLoop loop;                   ///< of tests, where each rank has a core
  std::uint64_t measured_gap = 0;  ///< tick at which what is between its tests was last compared with readings of the clock
  CountedCalls counted;
  RepeatedDetails repeated;        ///< of a RepeatedCall under way that is looked at after all
  PendingWait loop_rest;           ///< of the test under way
  WaitState loop_wait;             ///< that the loop is, between its tests
  Patience patience;
  NestedCall nested;
  int cancel_state = -1;           ///< while a look is under way, whether the thread could be cancelled before; else below 0
  int timer_slack = -1;            ///< ns; while it sleeps, what it had before; else, or where that is not to be had, below 0

  // --- events
  std::uint64_t foreseen = 0;      ///< of the events in the ring, those that the forecast has learnt or passed over
  std::uint64_t considered = 0;    ///< events in the ring when it was last considered whether to count calls only
  std::uint64_t caught_up = 0;     ///< events in the ring when there was last time for that though the rank did not wait
  std::array<const void*, kPendingEvents> callers{};
  std::array<PendingWait, kPendingEvents> waits{};

  // --- where things are written
  trace::ThreadCounters* counters = nullptr;
  trace::OpStats* ops = nullptr;
  trace::SiteStats* sites = nullptr;
  std::uint64_t last_exit = 0;
  std::uint32_t index = 0;       ///< number of the thread block
  std::atomic<Totalling> totalling{Totalling::nobody};

  /// The next event in the ring. Until push() it has the exit of an older one, so that readers leave it where the thread is
  /// killed or the process ends in between.
  trace::Event& next_event(std::uint64_t entered, std::uint64_t bytes, std::int32_t with, std::int32_t tag, std::uint16_t function,
                           std::uint16_t comm, const void* returns_to) noexcept {
    trace::Event& e = ring[recorded & ring_mask];
    e.enter = entered;
    e.bytes = bytes;
    e.peer = with;
    e.tag = tag;
    e.op = function;
    e.comm = comm;
    e.site = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(returns_to));
    e.awake_us = e.asleep_us = 0;
    callers[recorded % kPendingEvents] = returns_to;
    return e;
  }
  void push(trace::Event& e, std::uint64_t exit) noexcept {
    std::atomic_ref(e.exit).store(exit, std::memory_order_release);
    std::atomic_ref(recorded).store(recorded + 1, std::memory_order_release);
  }
  /// False if somebody is at it.
  bool begin_totals(Totalling who) noexcept {
    Totalling before = Totalling::nobody;
    return totalling.compare_exchange_strong(before, who, std::memory_order_acquire);
  }
  void end_totals() noexcept { totalling.store(Totalling::nobody, std::memory_order_release); }
  /// If the program jumped out of its totals: the event that was being added is added again.
  void take_up_totals() noexcept {
    if (totalling.load(std::memory_order_relaxed) != Totalling::itself) return;
    totalled = counters->events;
    end_totals();
  }

  void keep_recent(std::uint64_t where, std::int32_t rank) noexcept {
    const RecentPeer& newest = recent[(recent_next - 1) % kRecentPeers];
    if (newest.rank != rank || newest.where != where) recent[recent_next++ % kRecentPeers] = {where, rank};
  }

  /// A collective call may be under way that returned at once and goes on in waits and tests.
  bool has_started_collective() const noexcept { return collective_on != 0 && recorded - collective_at < kRecentCalls; }

  // --- caches
  std::vector<std::uint64_t> starting;  ///< the persistent requests that the call under way starts
  std::size_t starting_count = 0;
  std::array<TypeSlot, kTypeSlots> types{};
};

}  // namespace fallow::pmpi
