// Binds trace files: reading as lists of events, writing from them, statistics, merging and cutting. An event is a
// tuple in the order of fallow.traces.model.Event.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <typeinfo>

#include "trace/file_tools.hpp"
#include "trace/outcomes.hpp"
#include "trace/statistics.hpp"
#include "trace/stream_writer.hpp"
#include "trace_columns.hpp"

namespace nb = nanobind;
using namespace fallow::trace;

namespace {

nb::object text(std::string_view s) {
  return nb::steal(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}

template <class T>
nb::object numbers(std::span<const T> values) {
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (std::size_t i = 0; i < values.size(); ++i) {
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromUnsignedLongLong(values[i]));
  }
  return out;
}

nb::tuple event_tuple(const CallEvent& e) {
  return nb::make_tuple(static_cast<unsigned>(e.op), e.flags, e.thread, e.comm, e.site, e.peer, e.tag, e.recv_peer, e.recv_tag, e.root,
                        e.bytes, e.recv_bytes, e.enter_ns, e.exit_ns, e.compute_ns, e.wait_ns, numbers(e.counts), numbers(e.recv_counts),
                        numbers(e.requests), numbers(e.completed));
}

constexpr std::size_t kEventFields = 20;

struct StoredEvent {
  CallEvent event;
  std::vector<std::uint64_t> counts, recv_counts;
  std::vector<std::uint32_t> requests, completed;
};

void take_event(nb::handle item, StoredEvent& s) {
  const auto t = nb::cast<nb::tuple>(item);
  if (nb::len(t) != kEventFields) throw nb::value_error("an event has 20 fields");
  CallEvent& e = s.event;
  const auto op = nb::cast<std::uint16_t>(t[0]);
  if (op >= kOps) throw nb::value_error("unknown operation");
  e.op = static_cast<Op>(op);
  e.flags = nb::cast<std::uint16_t>(t[1]);
  e.thread = nb::cast<std::uint16_t>(t[2]);
  e.comm = nb::cast<std::uint32_t>(t[3]);
  e.site = nb::cast<std::uint32_t>(t[4]);
  e.peer = nb::cast<std::int32_t>(t[5]);
  e.tag = nb::cast<std::int32_t>(t[6]);
  e.recv_peer = nb::cast<std::int32_t>(t[7]);
  e.recv_tag = nb::cast<std::int32_t>(t[8]);
  e.root = nb::cast<std::int32_t>(t[9]);
  e.bytes = nb::cast<std::uint64_t>(t[10]);
  e.recv_bytes = nb::cast<std::uint64_t>(t[11]);
  e.enter_ns = nb::cast<std::uint64_t>(t[12]);
  e.exit_ns = nb::cast<std::uint64_t>(t[13]);
  e.compute_ns = nb::cast<std::uint64_t>(t[14]);
  e.wait_ns = nb::cast<std::uint64_t>(t[15]);
  e.counts = s.counts = nb::cast<std::vector<std::uint64_t>>(t[16]);
  e.recv_counts = s.recv_counts = nb::cast<std::vector<std::uint64_t>>(t[17]);
  e.requests = s.requests = nb::cast<std::vector<std::uint32_t>>(t[18]);
  e.completed = s.completed = nb::cast<std::vector<std::uint32_t>>(t[19]);
}

nb::list runs(const Group& g) {
  nb::list out;
  for (const Group::Run& r : g.runs()) out.append(nb::make_tuple(r.first, r.count, r.stride));
  return out;
}

Group group(const nb::list& from, std::uint32_t world) {
  Group g;
  for (nb::handle item : from) {
    const auto t = nb::cast<nb::tuple>(item);
    const auto first = nb::cast<std::int32_t>(t[0]);
    const auto count = nb::cast<std::uint32_t>(t[1]);
    const auto stride = nb::cast<std::int32_t>(t[2]);
    const std::int64_t last = first + (static_cast<std::int64_t>(count) - 1) * stride;
    if (count == 0 || count > world || first < 0 || last < 0 || static_cast<std::uint32_t>(first) >= world || last >= world) {
      throw nb::value_error("a communicator names ranks that are not there");
    }
    g.append(first, count, stride);
  }
  return g;
}

nb::dict info_dict(const TraceInfo& i) {
  nb::dict d;
  d["program"] = text(i.program);
  d["mpi_version"] = text(i.mpi_version);
  d["start_wall_ns"] = i.start_wall_ns;
  d["clock"] = i.clock == ComputeClock::cpu ? "cpu" : "wall";
  nb::list ranks, comms, sites;
  for (const RankInfo& r : i.ranks) {
    nb::dict x;
    x["host"] = text(r.host);
    x["events"] = r.events;
    x["dropped"] = r.dropped;
    x["left_out"] = r.left_out;
    x["first_ns"] = r.first_ns;
    x["last_ns"] = r.last_ns;
    x["complete"] = r.complete;
    ranks.append(x);
  }
  for (std::uint32_t c = kFirstComm; c < i.comms.size(); ++c) comms.append(nb::make_tuple(runs(i.comms[c].group), runs(i.comms[c].remote)));
  for (std::size_t s = 1; s < i.sites.size(); ++s) {
    sites.append(nb::make_tuple(i.sites[s].address, text(i.modules[i.sites[s].module]), text(i.sites[s].label)));
  }
  d["ranks"] = ranks;
  d["comms"] = comms;
  d["sites"] = sites;
  return d;
}

TraceInfo info_from(const nb::dict& d) {
  TraceInfo i;
  i.program = nb::cast<std::string>(d["program"]);
  i.mpi_version = nb::cast<std::string>(d["mpi_version"]);
  i.start_wall_ns = nb::cast<std::uint64_t>(d["start_wall_ns"]);
  i.clock = nb::cast<std::string>(d["clock"]) == "cpu" ? ComputeClock::cpu : ComputeClock::wall;
  for (nb::handle h : nb::cast<nb::list>(d["ranks"])) i.ranks.emplace_back().host = nb::cast<std::string>(nb::cast<nb::dict>(h)["host"]);
  if (i.ranks.empty() || i.ranks.size() > kMaxRanks) throw nb::value_error("impossible number of ranks");
  const auto world = static_cast<std::uint32_t>(i.ranks.size());
  i.comms = CommGroups(world);
  for (nb::handle h : nb::cast<nb::list>(d["comms"])) {
    const auto t = nb::cast<nb::tuple>(h);
    i.comms.add({group(nb::cast<nb::list>(t[0]), world), group(nb::cast<nb::list>(t[1]), world), 0});
  }
  i.sites.resize(1);
  i.modules.resize(1);
  for (nb::handle h : nb::cast<nb::list>(d["sites"])) {
    const auto t = nb::cast<nb::tuple>(h);
    const auto module = nb::cast<std::string>(t[1]);
    if (i.modules.back() != module) i.modules.push_back(module);
    i.sites.push_back({nb::cast<std::uint64_t>(t[0]), static_cast<std::uint32_t>(i.modules.size() - 1), nb::cast<std::string>(t[2])});
  }
  return i;
}

nb::list batch(EventSource& r, std::uint32_t rank, std::size_t most) {
  if (rank >= r.info().ranks.size()) throw nb::index_error("no such rank");
  nb::list out;
  CallEvent e;
  for (std::size_t n = 0; n < most && r.next(rank, e); ++n) out.append(event_tuple(e));
  return out;
}

nb::tuple columns(EventSource& r, std::uint32_t rank, std::size_t most) {
  if (rank >= r.info().ranks.size()) throw nb::index_error("no such rank");
  return fallow::trace_columns(r, rank, most);
}

void rewind(EventSource& r, std::uint32_t rank) {
  if (rank >= r.info().ranks.size()) throw nb::index_error("no such rank");
  r.rewind(rank);
}

/// Ctrl-C and the like end what takes long: their handlers run here, and may throw.
void heed_signals() {
  const nb::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

nb::dict statistics(TraceReader& r) {
  Statistics s;
  {
    const nb::gil_scoped_release unlocked;
    s = summarize(r, heed_signals);
  }
  nb::dict d;
  d["events"] = s.events;
  d["dropped"] = s.dropped;
  d["first_ns"] = s.first_ns;
  d["last_ns"] = s.last_ns;
  d["mpi_ns"] = s.mpi_ns;
  d["compute_ns"] = s.compute_ns;
  d["incomplete_ranks"] = s.incomplete_ranks;
  d["empty_ranks"] = s.empty_ranks;
  d["stored_bytes"] = r.stored_bytes();
  nb::list ops, gaps;
  for (std::size_t i = 0; i < kOps; ++i) {
    const OpTotals& o = s.ops[i];
    if (o.calls != 0) ops.append(nb::make_tuple(text(op_name(static_cast<Op>(i))), o.calls, o.bytes, o.time_ns, o.wait_ns));
  }
  for (std::size_t i = 0; i < kGapBins; ++i) {
    const std::uint64_t below = i < kGapBoundsNs.size() ? kGapBoundsNs[i] : 0;
    gaps.append(nb::make_tuple(i == 0 ? 0 : kGapBoundsNs[i - 1], below, s.gap_count[i], s.gap_ns[i]));
  }
  d["ops"] = ops;
  d["gaps"] = gaps;
  return d;
}

nb::list op_rows() {
  nb::list out;
  for (const OpTraits& t : kOpTraits) out.append(nb::make_tuple(text(t.name), static_cast<unsigned>(t.kind), t.bits, static_cast<unsigned>(t.blocking)));
  return out;
}

void cut(TraceReader& r, const std::string& out, std::uint64_t from_ns, std::uint64_t to_ns, std::vector<std::uint32_t> ranks) {
  write_trace(r, out, {from_ns, to_ns, std::move(ranks), heed_signals});
}

void merge(const TraceReader& r, const std::string& out, const nb::object& progress) {
  Progress tell = [](std::uint64_t, std::uint64_t) { heed_signals(); };
  if (!progress.is_none()) tell = [&progress](std::uint64_t done, std::uint64_t total) { progress(done, total); };
  merge_trace(r, out, tell);
}

}  // namespace

void bind_tracefile(nb::module_& m) {
  nb::exception<TraceFileError>(m, "TraceFileError", PyExc_ValueError);
  m.def("trace_ops", &op_rows, "(name, kind, bits, blocking form) of each operation, in order of its number.");
  nb::class_<TraceReader>(m, "TraceReader")
      .def(nb::init<const std::vector<std::string>&>(), nb::arg("paths"))
      .def("info", [](const TraceReader& r) { return info_dict(r.info()); })
      .def("problems", [](const TraceReader& r) { return r.problems(); })
      .def("batch", [](TraceReader& r, std::uint32_t rank, std::size_t most) { return batch(r, rank, most); }, nb::arg("rank"), nb::arg("most"),
           "The next events of a rank, at most so many; empty at its end.")
      .def("columns", [](TraceReader& r, std::uint32_t rank, std::size_t most) { return columns(r, rank, most); }, nb::arg("rank"),
           nb::arg("most"), "The same column by column: how many, 16 columns of int64, 4 lists (begins as int32, numbers as uint64).")
      .def("rewind", [](TraceReader& r, std::uint32_t rank) { rewind(r, rank); }, nb::arg("rank"))
      .def("statistics", &statistics)
      .def("merge", &merge, nb::arg("out"), nb::arg("progress") = nb::none(), "Calls progress(done, total) every 64 MiB.")
      .def("cut", &cut, nb::arg("out"), nb::arg("from_ns"), nb::arg("to_ns"), nb::arg("ranks"));
  nb::class_<Outcomes>(m, "TraceOutcomes", "The events of a reader, which say where requests begin what became of them.")
      .def("__init__", [](Outcomes* o, TraceReader& r) { new (o) Outcomes(r); }, nb::arg("reader"), nb::keep_alive<1, 2>())
      .def("batch", [](Outcomes& o, std::uint32_t rank, std::size_t most) { return batch(o, rank, most); }, nb::arg("rank"), nb::arg("most"))
      .def("rewind", [](Outcomes& o, std::uint32_t rank) { rewind(o, rank); }, nb::arg("rank"));
  nb::class_<StreamWriter>(m, "TraceWriter")
      .def("__init__", [](StreamWriter* w, const std::string& path, const nb::dict& info) { new (w) StreamWriter(path, info_from(info)); },
           nb::arg("path"), nb::arg("info"))
      .def("add", [](StreamWriter& w, std::uint32_t rank, const nb::list& events) {
        StoredEvent s;
        for (nb::handle item : events) {
          try {
            take_event(item, s);
          } catch (const std::bad_cast&) {
            const std::string op(op_name(s.event.op));
            throw nb::value_error(("rank " + std::to_string(rank) + ": " + op + " has a number that a trace cannot hold").c_str());
          }
          w.add(rank, s.event);
        }
      }, nb::arg("rank"), nb::arg("events"))
      .def("close_rank", &StreamWriter::close_rank, nb::arg("rank"))
      .def("end_rank", &StreamWriter::end_rank, nb::arg("rank"), nb::arg("dropped"), nb::arg("left_out") = 0)
      .def("finish", &StreamWriter::finish);
}
