// Adds calls to the totals of thread, functions and call sites: those that lie in the ring, and those that were only counted.
#include <algorithm>

#include "pmpi/counting.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/wait_parts.hpp"
#include "trace/histogram.hpp"

namespace fallow::pmpi {

namespace {

inline void add(trace::Histogram& h, std::uint64_t ticks, std::uint64_t ns_per_tick_q32, std::uint64_t times = 1) noexcept {
  trace::add_intervals(h, to_ns(ticks, ns_per_tick_q32), ticks, times);
}

/// Looks on from slot `i` of the table of call sites, and takes a free slot for a new one. The overflow slot 0 when the
/// table is crowded.
__attribute__((noinline)) std::uint32_t find_site(Thread& t, const void* caller, const trace::Event& e, std::uint32_t comm, std::uint32_t i) noexcept {
  constexpr unsigned kProbes = 8;
  const auto address = reinterpret_cast<std::uint64_t>(caller);
  for (unsigned probe = 0; probe < kProbes; ++probe, i = (i + 1) & t.site_mask) {
    if (i == 0) continue;
    trace::SiteStats& s = t.sites[i];
    if (s.address == address && s.op == e.op && s.comm == comm) return i;
    if (s.address == 0 && address != 0) {
      s.op = e.op;
      s.comm = comm;
      s.comm_size = runtime().comms.size_of(e.comm);
      s.module = runtime().writer.module_of(caller);
      s.address = address;
      return i;
    }
  }
  return 0;
}

/// Slot of a call site; 0, the overflow, when the table is crowded. Programs that make communicators all the time
/// would crowd it with sites that differ by nothing else, so only the first communicators are told apart.
inline std::uint32_t site_slot(Thread& t, const void* caller, const trace::Event& e) noexcept {
  const std::uint32_t comm = trace::comm_of_site(e.comm);
  const auto address = reinterpret_cast<std::uint64_t>(caller);
  const std::uint64_t hash = (address ^ (std::uint64_t{e.op} << 48) ^ (std::uint64_t{comm} << 32)) * 0x9e3779b97f4a7c15u;
  const std::uint32_t i = static_cast<std::uint32_t>(hash >> 40) & t.site_mask;
  const trace::SiteStats& s = t.sites[i];
  const std::uint64_t differ = (s.address ^ address) | (s.op ^ e.op) | (s.comm ^ comm) | std::uint64_t{i == 0};
  return differ == 0 ? i : find_site(t, caller, e, comm, i);
}

void add_wait(Thread& t, const PendingWait& w, trace::OpStats& op, trace::SiteStats& site) noexcept {
  trace::ThreadCounters& c = *t.counters;
  c.wait_asleep += w.asleep;
  c.wait_awake += w.wait - w.asleep;
  c.wake_delay += w.delay;
  c.wake_absorbed += w.absorbed;
  c.sleeps += w.sleeps;
  op.wait_awake += w.wait - w.asleep;
  op.wait_asleep += w.asleep;
  op.wake_delay += w.delay;
  site.wait_awake += w.wait - w.asleep;
  site.wait_asleep += w.asleep;
  site.wake_delay += w.delay;
  site.sleeps += w.sleeps;
  if (w.wait > site.wait_max) site.wait_max = w.wait;
}

/// A rank whose tests are not watched may be waiting at any time without our seeing it.
void announce_tests(Thread& t) noexcept {
  t.tells_tests = true;
  if (!runtime().watches_tests) runtime().node.page().unseen.store(1, std::memory_order_relaxed);
}

/// What is the same for all events that are added together.
struct Batch {
  std::uint64_t scale;  ///< nanoseconds per tick, times 2^32
  unsigned rare;        ///< OpTraits that need a closer look
};

/// What is rare in an event: waits, tests for the first time, and input and output. Returns its wait.
__attribute__((noinline)) std::uint64_t add_rare(Thread& t, Batch& b, std::uint64_t number, const trace::Event& e, unsigned traits) noexcept {
  const std::uint64_t duration = e.exit - e.enter;
  std::uint64_t wait = 0;
  if (e.awake_us != 0) {  // the mark of an event that waited
    const PendingWait& pending = t.waits[number % kPendingEvents];
    wait = pending.wait;
    add_wait(t, pending, t.ops[e.op], t.sites[e.site]);
  } else if (wait = unmarked_wait(traits, duration); wait != 0) {
    add_wait(t, {wait, 0, 0, 0, 0}, t.ops[e.op], t.sites[e.site]);
  }
  if ((traits & kOpFiles) != 0) {
    t.counters->io += duration - wait;
    t.counters->transfer -= duration - wait;
  }
  if ((traits & kOpTests) != 0 && !t.tells_tests) {
    announce_tests(t);
    b.rare &= ~static_cast<unsigned>(kOpTests);
  }
  return wait;
}

inline void add_event(Thread& t, Batch& b, std::uint64_t number) noexcept {
  trace::ThreadCounters& c = *t.counters;
  trace::Event& e = t.ring[number & t.ring_mask];
  const unsigned traits = runtime().op_traits[e.op];
  const std::uint64_t duration = e.exit - e.enter;
  const std::uint64_t gap = t.last_exit != 0 && e.enter > t.last_exit ? e.enter - t.last_exit : 0;
  const std::uint32_t slot = site_slot(t, t.callers[number % kPendingEvents], e);
  e.site = slot;
  std::uint64_t wait = 0;
  if (((traits & b.rare) | e.awake_us) != 0) [[unlikely]] wait = add_rare(t, b, number, e, traits);
  c.computing += gap;
  c.transfer += duration - wait;
  add(c.gaps, gap, b.scale);
  if (wait != 0) {
    add(c.waits, wait, b.scale);
  } else if ((traits & kOpBlocks) != 0) {
    ++c.waits.count[0];
    ++c.waits.coarse_count[0];
  }
  trace::OpStats& op = t.ops[e.op];
  ++op.calls;
  op.ticks += duration;
  op.bytes += e.bytes;
  trace::SiteStats& site = t.sites[slot];
  ++site.calls;
  site.ticks += duration;
  site.bytes += e.bytes;
  site.gap_ticks += gap;
  if ((traits & kOpSends) != 0) c.bytes_sent += e.bytes;
  if ((traits & kOpReceives) != 0) c.bytes_received += e.bytes;
  c.last_exit_tick = t.last_exit = e.exit;
  ++c.events;  // last: a reader of a killed program's file sees complete totals
}

/// Of `added` events those that are not tests in vain are told to the node. Now and then some of the latter have been counted
/// that are yet to be added: the number is right in the long run only.
void tell_calls(Thread& t, std::uint64_t added) noexcept {
  const std::uint64_t vain = t.all_vain_tests - t.told_vain_tests;
  t.told_vain_tests = t.all_vain_tests;
  runtime().node.own().calls.fetch_add(added - vain, std::memory_order_relaxed);
}

/// Calls at one place that were counted only.
void add_calls(Thread& t, const CallPlace& place, const CountedTime& time) noexcept {
  trace::ThreadCounters& c = *t.counters;
  const std::uint64_t ticks = place.count * place.lasts * time.calls / time.of, computing = place.count * time.gap;
  trace::Event like{};
  like.op = place.op;
  like.comm = place.comm;
  c.counted += place.count;
  c.computing += computing;
  c.transfer += ticks;
  add(c.gaps, time.gap, runtime().ns_per_tick_q32, place.count);
  const unsigned traits = runtime().op_traits[place.op];
  if ((traits & kOpBlocks) != 0) {  // those that waited were recorded
    c.waits.count[0] += place.count;
    c.waits.coarse_count[0] += place.count;
  }
  if ((traits & kOpSends) != 0) c.bytes_sent += place.bytes;
  if ((traits & kOpReceives) != 0) c.bytes_received += place.bytes;
  c.bytes_received += place.received;
  trace::OpStats& op = t.ops[place.op];
  op.calls += place.count;
  op.ticks += ticks;
  op.bytes += place.bytes;
  trace::SiteStats& site = t.sites[site_slot(t, place.caller, like)];
  site.calls += place.count;
  site.ticks += ticks;
  site.bytes += place.bytes;
  site.gap_ticks += computing;
  t.last_exit += ticks + computing;
}

}  // namespace

void add_counted(Thread& t, std::uint64_t now) noexcept {
  add_to_totals(t);
  if (t.counted.open() == 0 || !t.begin_totals(this_thread().thread == &t ? Totalling::itself : Totalling::other)) return;
  const CountedTime time = t.counted.divide(runtime().count_limits, now - std::min(now, t.last_exit));
  for (const CallPlace& changing : t.counted.places()) {
    const CallPlace place = changing;  // the process may be ending while the thread goes on
    if (place.count != 0) add_calls(t, place, time);
  }
  if (runtime().oversubscribed) runtime().node.own().calls.fetch_add(t.counted.useful(), std::memory_order_relaxed);
  t.counted.close();
  t.counters->last_exit_tick = t.last_exit;
  t.end_totals();
}

void add_to_totals(Thread& t, std::uint64_t most) noexcept {
  const bool own = this_thread().thread == &t;
  if (t.totalled == t.recorded || !t.begin_totals(own ? Totalling::itself : Totalling::other)) return;
  const Runtime& rt = runtime();
  trace::ThreadCounters& c = *t.counters;
  if (c.first_tick == 0) c.first_tick = t.ring[t.totalled & t.ring_mask].enter;
  Batch b{rt.ns_per_tick_q32, kOpFiles | (t.tells_tests ? 0u : kOpTests) | (rt.oversubscribed ? kOpBlocks : 0u)};
  const std::uint64_t all = std::atomic_ref(t.recorded).load(std::memory_order_acquire);  // of another thread there may be more soon
  const std::uint64_t until = t.totalled + std::min(most, all - t.totalled);
  const std::uint64_t added = until - t.totalled;
  for (; t.totalled != until; ++t.totalled) add_event(t, b, t.totalled);
  c.bytes_received += t.received_too;
  t.received_too = 0;
  if (rt.oversubscribed) tell_calls(t, added);
  t.end_totals();
}

}  // namespace fallow::pmpi
