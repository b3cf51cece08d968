// Binds the reader of rank files. Times leave here as seconds (durations) and as nanoseconds since the epoch
// (points in time), so that the Python side knows nothing of ticks.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "trace/rank_reader.hpp"
#include "trace/ring_tail.hpp"

namespace nb = nanobind;
using namespace fallow::trace;

namespace {

template <std::size_t N>
const char* name_of(const std::array<const char*, N>& names, std::uint32_t index) {
  return index < N ? names[index] : "unknown";
}

constexpr std::array kFamilies{"unknown", "openmpi", "mpich", "mpiabi"};
constexpr std::array kModes{"spin", "yield", "sleep", "auto"};
constexpr std::array kStates{"none", "computing", "in_mpi", "waiting", "asleep", "io", "ended"};
constexpr std::array kEnds{"running", "finalized", "aborted"};
constexpr std::array kClocks{"unknown", "tsc", "monotonic"};
constexpr std::array kHooks{"none", "opal_progress", "ucp_worker_progress", "sched_yield", "libfabric", "twin"};
constexpr std::array kKinds{"other", "send", "recv",     "start", "wait", "test",
                            "probe", "collective", "rma", "rma_sync", "io", "setup"};

nb::object text(std::string_view s) {
  return nb::steal(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}

template <std::size_t N>
void add_bins(nb::dict& d, const char* count_key, const char* time_key, const RankReader& r,
              const std::uint64_t (&count)[N], const std::uint64_t (&ticks)[N]) {
  nb::list counts, times;
  for (std::size_t i = 0; i < N; ++i) {
    counts.append(count[i]);
    times.append(r.seconds(ticks[i]).value);
  }
  d[count_key] = counts;
  d[time_key] = times;
}

nb::dict histogram(const RankReader& r, const Histogram& h) {
  nb::dict d;
  add_bins(d, "count", "time_s", r, h.count, h.ticks);
  add_bins(d, "coarse_count", "coarse_time_s", r, h.coarse_count, h.coarse_ticks);
  return d;
}

nb::list op_list(const RankReader& r, const ThreadBlock& b) {
  nb::list out;
  std::uint32_t index = 0;
  for (const OpStats& s : b.ops()) {
    const std::uint32_t op = index++;
    if (s.calls == 0) continue;
    nb::dict d;
    d["op"] = op;
    d["calls"] = s.calls;
    d["time_s"] = r.seconds(s.ticks).value;
    d["size_bytes"] = s.bytes;
    d["wait_awake_s"] = r.seconds(s.wait_awake).value;
    d["wait_asleep_s"] = r.seconds(s.wait_asleep).value;
    d["wake_delay_s"] = r.seconds(s.wake_delay).value;
    out.append(d);
  }
  return out;
}

/// Where a call was made; an address that is 0 is not known.
void add_place(nb::dict& d, const SiteStats& s) {
  d["address"] = s.address;
  d["module"] = s.module == kNoModule ? -1 : static_cast<int>(s.module);
  d["comm_size"] = s.comm_size;
}

nb::list site_list(const RankReader& r, const ThreadBlock& b) {
  nb::list out;
  for (const auto& [slot, s] : b.sites()) {
    nb::dict d;
    d["slot"] = slot;
    d["op"] = s.op;
    d["comm"] = s.comm;
    add_place(d, s);
    d["calls"] = s.calls;
    d["time_s"] = r.seconds(s.ticks).value;
    d["size_bytes"] = s.bytes;
    d["gap_s"] = r.seconds(s.gap_ticks).value;
    d["wait_awake_s"] = r.seconds(s.wait_awake).value;
    d["wait_asleep_s"] = r.seconds(s.wait_asleep).value;
    d["wake_delay_s"] = r.seconds(s.wake_delay).value;
    d["sleeps"] = s.sleeps;
    d["wait_max_s"] = r.seconds(s.wait_max).value;
    out.append(d);
  }
  return out;
}

nb::list event_list(const RankReader& r, const ThreadBlock& b, std::size_t limit) {
  nb::list out;
  for (const Event& e : b.events(limit)) {
    const std::int64_t enter = r.wall_time(e.enter).value, exit = r.wall_time(e.exit).value;
    const std::int64_t awake_us = fallow::trace::waited_unmarked(r.header(), e) ? (exit - enter) / 1000 : e.awake_us;
    out.append(nb::make_tuple(enter, exit, e.op, e.peer, e.bytes, e.tag, e.comm, e.site, awake_us, e.asleep_us));
  }
  if (const OpenCall& open = b.open(); open.enter != 0) {
    const std::int64_t enter = r.wall_time(open.enter).value, seen = r.wall_time(open.seen).value;
    const auto asleep_us = static_cast<std::int64_t>(r.seconds(open.asleep).value * 1e6);
    out.append(nb::make_tuple(enter, seen, open.op, open.peer, 0, -1, open.comm, 0, (seen - enter) / 1000 - asleep_us, asleep_us));
  }
  return out;
}

SiteStats site_in(const ThreadBlock& b, std::uint32_t slot) {
  const auto& sites = b.sites();
  const auto site = std::ranges::find(sites, slot, &ThreadBlock::Site::slot);
  if (slot != 0 && site != sites.end()) return site->stats;
  SiteStats none{};
  none.module = kNoModule;
  return none;
}

/// The wait in which the thread's record ends; None if there is none.
nb::object open_wait(const RankReader& r, const ThreadBlock& b) {
  const OpenCall& open = b.open();
  if (open.enter == 0) return nb::none();
  nb::dict d;
  d["op"] = open.op;
  d["peer"] = open.peer;
  d["since_ns"] = r.wall_time(open.enter).value;
  d["seen_ns"] = r.wall_time(open.seen).value;
  add_place(d, site_in(b, b.open_slot()));
  return d;
}

/// The last call of the thread that is over and has an event; None if there is none.
nb::object last_call(const RankReader& r, const ThreadBlock& b) {
  const std::vector<Event> events = b.events(1);
  if (events.empty()) return nb::none();
  const Event& e = events.back();
  nb::dict d;
  d["op"] = e.op;
  d["ended_ns"] = r.wall_time(e.exit).value;
  add_place(d, site_in(b, e.site));
  return d;
}

nb::dict thread_dict(const RankReader& r, std::uint32_t index, std::size_t max_events) {
  const ThreadBlock b = r.block(index);
  const ThreadCounters& c = b.counters();
  nb::dict d;
  d["thread_id"] = c.thread_id;
  d["first_ns"] = r.wall_time(c.first_tick).value;
  d["last_ns"] = r.wall_time(c.last_exit_tick).value;
  d["calls"] = c.events + c.counted + (b.open().enter != 0 ? 1 : 0);
  d["calls_counted"] = c.counted;
  d["computing_s"] = r.seconds(c.computing).value;
  d["transfer_s"] = r.seconds(c.transfer).value;
  d["wait_awake_s"] = r.seconds(c.wait_awake).value;
  d["wait_asleep_s"] = r.seconds(c.wait_asleep).value;
  d["io_s"] = r.seconds(c.io).value;
  d["wake_delay_s"] = r.seconds(c.wake_delay).value;
  d["wake_absorbed_s"] = r.seconds(c.wake_absorbed).value;
  d["sleeps"] = c.sleeps;
  d["wakes_by_peer"] = c.wakes_by_peer;
  d["wakes_sent"] = c.wakes_sent;
  d["wake_send_s"] = r.seconds(c.wake_send_ticks).value;
  d["sent_bytes"] = c.bytes_sent;
  d["received_bytes"] = c.bytes_received;
  d["gaps"] = histogram(r, c.gaps);
  d["waits"] = histogram(r, c.waits);
  d["ops"] = op_list(r, b);
  d["sites"] = site_list(r, b);
  d["last"] = last_call(r, b);  // before the list, which says what it left out
  d["events"] = event_list(r, b, max_events);
  d["events_skipped"] = b.events_skipped();
  d["open"] = open_wait(r, b);
  return d;
}

void add_identity(nb::dict& d, const RankHeader& h) {
  d["family"] = name_of(kFamilies, h.family);
  d["mode"] = name_of(kModes, h.mode);
  d["state"] = name_of(kStates, h.state);
  d["end"] = name_of(kEnds, h.finalized);
  d["clock"] = name_of(kClocks, h.clock);
  d["hook"] = name_of(kHooks, h.hook);
  d["rank"] = h.world_rank;
  d["launch"] = h.launch;
  d["size"] = h.world_size;
  d["local_rank"] = h.local_rank;
  d["local_size"] = h.local_size;
  d["pid"] = h.pid;
  d["thread_level"] = h.thread_level;
  d["oversubscribed"] = h.oversubscribed != 0;
  d["slowdown_budget"] = h.slowdown_budget;
  d["host"] = text(field_text(h.host));
  d["program"] = text(field_text(h.program));
  d["mpi_version"] = text(field_text(h.mpi_version));
}

nb::dict read_rank(const std::string& path, std::size_t max_events) {
  const RankReader r = RankReader::open(path);
  const RankHeader& h = r.header();
  nb::dict d;
  d["path"] = nb::cast(path);
  add_identity(d, h);
  d["start_ns"] = r.wall_time(h.tick_start).value;
  d["last_ns"] = r.wall_time(h.tick_last).value;
  d["cpu_user_s"] = static_cast<double>(h.cpu_user_ns) * 1e-9;
  d["cpu_system_s"] = static_cast<double>(h.cpu_system_ns) * 1e-9;
  d["switches_voluntary"] = h.switches_voluntary;
  d["switches_involuntary"] = h.switches_involuntary;
  d["threads_dropped"] = h.threads_dropped;
  nb::list ops;
  for (std::uint32_t i = 0; i < h.op_slots; ++i) {
    ops.append(nb::make_tuple(text(field_text(h.ops[i].name)), name_of(kKinds, h.ops[i].kind), h.ops[i].blocks != 0));
  }
  d["ops"] = ops;
  nb::list modules;
  for (std::uint32_t i = 0; i < std::min(h.modules_used, kMaxModules); ++i) {
    modules.append(nb::make_tuple(h.modules[i].base, text(field_text(h.modules[i].path))));
  }
  d["modules"] = modules;
  nb::list threads;
  for (std::uint32_t i = 0; i < r.block_count(); ++i) threads.append(thread_dict(r, i, max_events));
  d["threads"] = threads;
  return d;
}

}  // namespace

void bind_trace(nb::module_& m) {
  nb::exception<RankFileError>(m, "RankFileError", PyExc_ValueError);
  m.def("read_rank", &read_rank, nb::arg("path"), nb::arg("max_events"),
        "Reads one rank file: totals, per-function and per-site statistics, and the last max_events calls of each "
        "thread. Raises RankFileError, which names file, offset and reason.");
}
