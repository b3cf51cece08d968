#include "trace/ring_tail.hpp"

#include <algorithm>

#include "trace/direction.hpp"
#include "trace/histogram.hpp"

namespace fallow::trace {
namespace {

/// A blocking call that took this long where ranks outnumber processors waited, even if it polled only a few times.
constexpr double kDescheduledNs = 20'000;

/// What a tail event says of one call, in ticks.
struct Call {
  std::uint64_t duration, gap, awake, asleep;
};

double to_ns(const RankHeader& h, std::uint64_t ticks) noexcept { return static_cast<double>(ticks) * (1e9 / h.tick_hz); }

Call look_at(const RankHeader& h, const Event& e, std::uint64_t last_exit) noexcept {
  Call c{e.exit - e.enter, last_exit != 0 && e.enter > last_exit ? e.enter - last_exit : 0, 0, 0};
  const auto ticks = [&](std::uint32_t us) { return static_cast<std::uint64_t>(us * (h.tick_hz * 1e-6)); };
  if (e.awake_us != 0) {  // the mark of an event that waited
    c.asleep = std::min(ticks(e.asleep_us), c.duration);
    c.awake = std::min(ticks(e.awake_us), c.duration - c.asleep);
  } else if (waited_unmarked(h, e)) {
    c.awake = c.duration;
  }
  return c;
}

void add(Histogram& histogram, const RankHeader& h, std::uint64_t ticks) noexcept {
  add_intervals(histogram, static_cast<std::uint64_t>(std::min(to_ns(h, ticks), 9e18)), ticks);
}

/// Adds a call to statistics that OpStats and SiteStats share.
template <class Stats>
void add(Stats& s, const Event& e, const Call& c) noexcept {
  ++s.calls;
  s.ticks += c.duration;
  s.bytes += e.bytes;
  s.wait_awake += c.awake;
  s.wait_asleep += c.asleep;
}

/// What all calls add to a thread.
void add(ThreadCounters& t, const RankHeader& h, std::uint16_t op, const Call& c) noexcept {
  t.wait_awake += c.awake;
  t.wait_asleep += c.asleep;
  t.sleeps += c.asleep != 0 ? 1 : 0;
  t.computing += c.gap;
  (static_cast<OpKind>(h.ops[op].kind) == OpKind::io ? t.io : t.transfer) += c.duration - c.awake - c.asleep;
  add(t.gaps, h, c.gap);
  if (h.ops[op].blocks != 0 || c.awake + c.asleep != 0) add(t.waits, h, c.awake + c.asleep);  // tests may rest
}

void add(ThreadCounters& t, const RankHeader& h, const Event& e, const Call& c) noexcept {
  add(t, h, e.op, c);
  const auto kind = static_cast<OpKind>(h.ops[e.op].kind);
  const Direction direction = direction_of(h.ops[e.op].name, kind);
  if (direction.sends) t.bytes_sent += e.bytes;
  if (direction.receives) t.bytes_received += e.bytes;
  if (t.first_tick == 0) t.first_tick = e.enter;
  t.last_exit_tick = e.exit;
  ++t.events;
}

std::span<const Module> modules(const RankHeader& header) noexcept { return {header.modules, std::min(header.modules_used, kMaxModules)}; }

bool lies_in(const Module& m, std::uint64_t address) noexcept { return address >= m.base && address < m.end; }

/// An address that lies in no module is not told.
void set_place(SiteStats& site, const RankHeader& header, std::uint64_t address) noexcept {
  const auto all = modules(header);
  const auto module = std::ranges::find_if(all, [&](const Module& m) { return lies_in(m, address); });
  const bool known = address != 0 && module != all.end();
  site.module = known ? static_cast<std::uint32_t>(module - all.begin()) : kNoModule;
  site.address = known ? address : 0;
}

/// Exit of the last of the totalled events that is not one of a call made in a callback, which takes no time: the next
/// call may be the one around it, which has begun earlier.
std::uint64_t last_outer_exit(const ThreadCounters& counters, std::span<const Event> ring) noexcept {
  const std::uint64_t kept = std::min<std::uint64_t>(counters.events, std::min<std::size_t>(ring.size(), kPendingEvents));
  for (std::uint64_t n = 1; n <= kept; ++n) {
    const Event& e = ring[(counters.events - n) % ring.size()];
    if (e.enter != e.exit) return e.exit;
  }
  return 0;
}

}  // namespace

bool waited_unmarked(const RankHeader& header, const Event& e) noexcept {
  return e.awake_us == 0 && header.ops[e.op].blocks != 0 && header.oversubscribed != 0 && to_ns(header, e.exit - e.enter) > kDescheduledNs;
}

std::vector<Event> ring_tail(const RankHeader& header, const ThreadCounters& counters, std::span<const Event> ring) {
  std::vector<Event> out;
  if (ring.empty()) return out;
  std::uint64_t outer_exit = std::max(last_outer_exit(counters, ring), header.tick_start);
  std::uint64_t exit = counters.last_exit_tick;
  const std::size_t most = std::min<std::size_t>(ring.size(), kPendingEvents);
  for (std::size_t n = 0; n < most; ++n) {
    const Event& e = ring[(counters.events + n) % ring.size()];
    if (e.op >= header.op_slots || header.ops[e.op].name[0] == '\0') break;
    if (e.exit < e.enter || e.exit < exit || e.enter < outer_exit) break;
    exit = e.exit;
    if (e.enter != e.exit) outer_exit = e.exit;
    out.push_back(e);
  }
  return out;
}

void add_tail(const RankHeader& header, std::span<const Event> tail, ThreadCounters& counters, std::span<OpStats> ops) {
  // A kill, or a copy while the rank runs, may come between the totals of a function and those of the thread.
  std::uint64_t ahead = 0;
  for (const OpStats& op : ops) ahead += op.calls;
  ahead = ahead > counters.events ? ahead - counters.events : 0;
  for (const Event& e : tail) {
    const Call call = look_at(header, e, counters.last_exit_tick);
    add(counters, header, e, call);
    if (ahead != 0) {
      --ahead;
    } else {
      add(ops[e.op], e, call);
    }
  }
}

OpenCall open_call(const RankHeader& header, const ThreadCounters& counters, std::span<const Event> ring, std::span<const Event> tail) {
  const OpenCall& open = counters.open;
  if (open.op >= header.op_slots || header.ops[open.op].name[0] == '\0') return {};
  if (open.enter < header.tick_start || open.seen < open.enter || open.asleep > open.seen - open.enter) return {};
  std::uint64_t exit = ring.empty() ? counters.last_exit_tick : last_outer_exit(counters, ring);
  for (const Event& e : tail) {
    if (e.enter != e.exit) exit = std::max(exit, e.exit);
  }
  return open.enter < exit ? OpenCall{} : open;
}

SiteStats add_open(const RankHeader& header, const OpenCall& open, ThreadCounters& counters, std::span<OpStats> ops) {
  Call call{open.seen - open.enter, 0, 0, open.asleep};
  if (counters.last_exit_tick != 0 && open.enter > counters.last_exit_tick) call.gap = open.enter - counters.last_exit_tick;
  call.awake = call.duration - call.asleep;
  add(counters, header, open.op, call);
  if (counters.first_tick == 0) counters.first_tick = open.enter;
  counters.last_exit_tick = std::max(counters.last_exit_tick, open.seen);
  Event e{};
  e.enter = open.enter;
  e.exit = open.seen;
  e.peer = open.peer;
  e.op = open.op;
  e.comm = open.comm;
  add(ops[open.op], e, call);
  SiteStats site{};
  site.op = open.op;
  site.comm = comm_of_site(open.comm);
  add(site, e, call);
  site.gap_ticks = call.gap;
  site.sleeps = call.asleep != 0 ? 1 : 0;
  site.wait_max = call.duration;
  set_place(site, header, open.address);
  return site;
}

std::uint64_t return_address(const RankHeader& header, const Event& e) noexcept {
  constexpr std::uint64_t kTurn = std::uint64_t{1} << 32;
  if (e.site < header.site_slots) return 0;  // its totals were under way: that is the site already
  std::uint64_t found = 0;
  for (const Module& m : modules(header)) {
    std::uint64_t address = (m.base & ~(kTurn - 1)) | e.site;
    if (address < m.base) address += kTurn;
    if (!lies_in(m, address)) continue;
    if (found != 0 || m.end - address > kTurn) return 0;
    found = address;
  }
  return found;
}

std::vector<SiteStats> sites_of_tail(const RankHeader& header, std::span<const Event> tail, std::uint64_t last_exit) {
  std::vector<SiteStats> out;
  for (const Event& e : tail) {
    const Call call = look_at(header, e, last_exit);
    last_exit = e.exit;
    const std::uint64_t address = return_address(header, e);
    const std::uint32_t comm = comm_of_site(e.comm);
    auto site = std::ranges::find_if(out, [&](const SiteStats& s) { return s.op == e.op && s.comm == comm && s.address == address; });
    if (site == out.end()) {
      SiteStats fresh{};
      fresh.op = e.op;
      fresh.comm = comm;
      set_place(fresh, header, address);
      site = out.insert(out.end(), fresh);
    }
    add(*site, e, call);
    site->gap_ticks += call.gap;
    site->sleeps += call.asleep != 0 ? 1 : 0;
    site->wait_max = std::max(site->wait_max, call.awake + call.asleep);
  }
  return out;
}

}  // namespace fallow::trace
