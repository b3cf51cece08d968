// Binds src/sim: machines, programs (recorded or made up) and simulations of them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/machine_file.hpp"
#include "sim/policy.hpp"
#include "sim/recorder.hpp"
#include "sim/synth.hpp"
#include "sim/threads_in_turn.hpp"
#include "trace/file_reader.hpp"
#include "trace/outcomes.hpp"
#include "trace/stream_writer.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace fallow;
using namespace fallow::sim;

/// A source that says how far it has been read, by the rank with the most calls if all are read side by side, and that can
/// be stopped from another thread.
class Watched final : public trace::EventSource {
 public:
  explicit Watched(std::unique_ptr<trace::EventSource> source) : source_(std::move(source)) {
    const auto& ranks = info().ranks;
    const auto most = std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.events < b.events; });
    if (most == ranks.end()) return;
    watched_ = static_cast<std::uint32_t>(most - ranks.begin());
    all_ = most->events;
  }

  const trace::TraceInfo& info() const noexcept override { return source_->info(); }
  bool next(std::uint32_t rank, trace::CallEvent& event) override {
    if (rank == watched_ || in_turn_) done_.fetch_add(1, std::memory_order_relaxed);
    if (stopped_.load(std::memory_order_relaxed)) [[unlikely]] throw Stopped();
    return source_->next(rank, event);
  }
  void again(std::uint32_t rank, trace::CallEvent& event) override { source_->again(rank, event); }
  void rewind(std::uint32_t rank) override { source_->rewind(rank); }
  void leave_out_times(bool out) override { source_->leave_out_times(out); }
  void prefetch(std::uint32_t rank, unsigned step) const noexcept override { source_->prefetch(rank, step); }

  /// From the beginning; `in_turn`: one rank after the other.
  void begin(bool in_turn = false) {
    in_turn_ = in_turn;
    if (in_turn) {
      std::uint64_t all = 0;
      for (const auto& rank : info().ranks) all += rank.events;
      all_ = all;
    }
    done_ = 0;  // but who was stopped before stays so
    for (std::uint32_t r = 0; r < info().ranks.size(); ++r) rewind(r);
  }
  void stop() noexcept { stopped_ = true; }
  const std::atomic<bool>& stopped() const noexcept { return stopped_; }
  double progress() const noexcept {
    const std::uint64_t all = all_.load(std::memory_order_relaxed);
    return all == 0 ? 1 : std::min(1.0, static_cast<double>(done_.load(std::memory_order_relaxed)) / static_cast<double>(all));
  }

 private:
  std::unique_ptr<trace::EventSource> source_;
  std::uint32_t watched_ = 0;
  bool in_turn_ = false;
  std::atomic<std::uint64_t> all_{0}, done_{0};
  std::atomic<bool> stopped_{false};
};

struct SimProgram {
  Watched source;
  std::vector<std::string> problems;

  std::uint64_t events() const {
    std::uint64_t sum = 0;
    for (const auto& rank : source.info().ranks) sum += rank.events;
    return sum;
  }
};

std::unique_ptr<SimProgram> open_trace(const std::vector<std::string>& paths) {
  auto reader = std::make_unique<trace::TraceReader>(paths);
  std::vector<std::string> problems = reader->problems();
  return std::unique_ptr<SimProgram>(new SimProgram{Watched(trace::with_outcomes(with_threads_in_turn(std::move(reader)))), std::move(problems)});
}

std::unique_ptr<SimProgram> make_synth(const std::string& name, const nb::kwargs& kwargs) {
  SynthOptions o;
  for (const auto& [key, value] : kwargs) {
    const auto option = nb::cast<std::string>(key);
    if (option == "ranks") o.ranks = nb::cast<std::uint32_t>(value);
    else if (option == "iterations") o.iterations = nb::cast<std::uint32_t>(value);
    else if (option == "size_bytes") o.bytes = nb::cast<std::uint64_t>(value);
    else if (option == "reduce_bytes") o.reduce_bytes = nb::cast<std::uint64_t>(value);
    else if (option == "compute_ns") o.compute = Nanoseconds(nb::cast<std::int64_t>(value));
    else if (option == "jitter") o.jitter = nb::cast<double>(value);
    else if (option == "seed") o.seed = nb::cast<std::uint64_t>(value);
    else throw std::invalid_argument("made-up programs have no option '" + option + "'");
  }
  return std::unique_ptr<SimProgram>(new SimProgram{Watched(synthesize(name, o)), {}});
}

/// Writes the calls as a trace.
void write_program(SimProgram& p, const std::string& path) {
  const nb::gil_scoped_release unlocked;
  p.source.begin(true);
  trace::write_program(p.source, path);
}

/// Nodes that so many ranks need; what takes its size from the program comes after `ranks_per_node`.
std::uint32_t nodes_for(const Machine& m, nb::handle ranks) {
  const std::uint64_t count = nb::cast<std::uint32_t>(ranks);
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(2, (count + m.node.ranks - 1) / m.node.ranks));
}

/// A change to a machine that the command line asks for; throws std::invalid_argument.
void set_machine(Machine& m, const std::string& key, nb::handle v) {
  if (key == "ranks_per_node") m.node.ranks = nb::cast<std::uint32_t>(v);
  else if (key == "contention") m.contention = nb::cast<bool>(v) ? Contention::full : Contention::none;
  else if (key == "message_share") {  // messages of this share of their size, at full width: the same as faster links
    const double share = nb::cast<double>(v);
    if (!(share > 0 && share <= 1)) throw std::invalid_argument("message_share is above 0 and at most 1");
    m.link.ps_per_kib = static_cast<Time>(static_cast<double>(m.link.ps_per_kib) * share);
    m.message.eager_limit = static_cast<std::uint64_t>(static_cast<double>(m.message.eager_limit) / share);
  } else if (key == "cpu_speed") {
    const double speed = nb::cast<double>(v);
    if (!(speed >= 1e-6 && speed <= 1e6)) throw std::invalid_argument("cores compute from 0.000001 to 1000000 times as fast as where the trace was recorded");
    m.node.compute_ps_per_ns = 1000 / speed;
  } else if (key == "xgft") {
    const Routing routing = m.topology.routing;
    const std::uint64_t seed = m.topology.seed;
    m.topology = parse_xgft(nb::cast<std::string>(v));
    m.topology.routing = routing == Routing::random ? routing : Routing::automatic;
    m.topology.seed = seed;
  } else if (key == "crossbar") {
    m.topology = TopologySpec{};
    m.topology.nodes = nodes_for(m, v);
  } else if (key == "fat_tree") {
    const std::uint64_t seed = m.topology.seed;
    const Routing routing = m.topology.routing;
    m.topology = full_fat_tree(nodes_for(m, v), 3);
    m.topology.routing = routing == Routing::random ? routing : Routing::automatic;
    m.topology.seed = seed;
  } else {
    throw std::invalid_argument("a machine has no setting '" + key + "'");
  }
}

std::string shape_of(const TopologySpec& t) {
  if (t.kind != "xgft") return t.kind;
  std::string text = "XGFT(" + std::to_string(t.children.size());
  for (const auto* list : {&t.children, &t.parents}) {
    for (std::size_t i = 0; i < list->size(); ++i) text += (i == 0 ? ";" : ",") + std::to_string((*list)[i]);
  }
  return text + ")";
}

const char* routing_name(const TopologySpec& t) {
  switch (t.routing) {
    case Routing::automatic: return t.kind == "xgft" ? "d-mod-k" : "minimal";
    case Routing::d_mod_k: return "d-mod-k";
    case Routing::random: return "random";
    case Routing::minimal: return "minimal";
    case Routing::valiant: return "valiant";
  }
  return "?";
}

double us(Time t) { return static_cast<double>(t) / static_cast<double>(kUs); }

/// What is assumed of the machine, for those who read results.
nb::dict machine_facts(const Machine& m) {
  nb::dict d;
  const auto topology = make_topology(m.topology);
  d["name"] = m.name;
  d["topology"] = shape_of(m.topology);
  d["routing"] = routing_name(m.topology);
  d["nodes"] = topology->nodes();
  d["links"] = topology->links();
  d["switches"] = topology->switches();
  d["contention"] = m.contention == Contention::full;
  d["ranks_per_node"] = m.node.ranks;
  d["cores_per_node"] = m.node.cores;
  d["collectives"] = m.collectives == coll::Library::mpich ? "MPICH" : "Open MPI";
  d["link_gbit_s"] = 8192e3 / static_cast<double>(m.link.ps_per_kib);
  d["link_lanes"] = m.link.lanes;
  d["link_port_w"] = m.link.port.value;
  d["link_rest_fraction"] = m.link.rest.fraction;
  d["link_rest_down_us"] = us(m.link.rest.down);
  d["link_rest_up_us"] = us(m.link.rest.up);
  d["link_share_of_switch"] = m.link.share_of_switch;
  d["switch_latency_us"] = us(m.link.latency);
  d["mpi_latency_us"] = us(m.message.latency);
  d["eager_bytes"] = m.message.eager_limit;
  d["segment_bytes"] = m.message.segment;
  d["memory_gb_s"] = 1024e3 / static_cast<double>(m.node.memory_ps_per_kib);
  d["cpu_speed"] = 1000.0 / m.node.compute_ps_per_ns;
  d["card_idle_w"] = m.node.card.idle.value;
  d["card_active_w"] = m.node.card.active.value;
  d["card_rest_up_us"] = us(m.node.card.states.rest.up);
  d["switch_rest_up_us"] = us(m.switches.states.rest.up);
  d["core_compute_w"] = m.node.core.power.compute.value;
  d["core_spin_w"] = m.node.core.power.spin.value;
  d["core_sleep_w"] = m.node.core.power.sleep.value;
  d["core_wake_us"] = us(m.node.core.wake);
  d["core_frequency_us"] = us(m.node.core.frequency_change);
  d["core_throttle_us"] = us(m.node.core.throttle_change);
  d["node_w"] = (m.node.base + m.node.memory_idle).value;
  return d;
}

/// What is longer than the simulator's clock lasts is never.
Time from_us(nb::handle v) { return static_cast<Time>(std::min(nb::cast<double>(v) * static_cast<double>(kUs), static_cast<double>(kNever))); }

CompressPolicy::What compressed(const std::string& name) {
  if (name == "all") return CompressPolicy::What::all;
  if (name == "point-to-point") return CompressPolicy::What::point_to_point;
  if (name == "collectives") return CompressPolicy::What::collectives;
  throw std::invalid_argument("what is compressed is all, point-to-point or collectives, not '" + name + "'");
}

/// What concerns cores; false: another option.
bool core_option(CoreOptions& o, const std::string& name, nb::handle v) {
  if (name == "core") o.name = nb::cast<std::string>(v);
  else if (name == "core_timer_us") o.timer = from_us(v);
  else if (name == "core_ghz") o.frequency = Hertz(nb::cast<double>(v) * 1e9);
  else if (name == "core_state") o.state = nb::cast<std::string>(v);
  else if (name == "core_throttle") o.throttle = nb::cast<std::uint32_t>(v);
  else if (name == "memory_share") o.memory_share = nb::cast<double>(v);
  else return false;
  return true;
}

PolicyOptions policy_options(const nb::dict& options) {
  PolicyOptions o;
  for (const auto& [key, v] : options) {
    const auto name = nb::cast<std::string>(key);
    if (core_option(o.core, name, v)) continue;
    if (name == "lead") o.lead = nb::cast<double>(v);
    else if (name == "budget") o.budget = o.core.budget = nb::cast<double>(v);
    else if (name == "idle_timer_us") o.idle_timer = from_us(v);
    else if (name == "deep_timer_us") o.deep_timer = from_us(v);
    else if (name == "threshold_us") o.threshold = nanoseconds(from_us(v));
    else if (name == "sample_gaps") o.sample_gaps = nb::cast<std::uint32_t>(v);
    else if (name == "cap_by_first") o.cap_by_first = nb::cast<bool>(v);
    else if (name == "restarts") o.restarts = nb::cast<bool>(v);
    else if (name == "call_cost_us") o.cost.call = from_us(v);
    else if (name == "search_cost_us") o.cost.search = from_us(v);
    else if (name == "tuning_cost_us") o.cost.tuning = from_us(v);
    else if (name == "loop_gap_us") o.loop_gap = from_us(v);
    else if (name == "compress") o.compress.ratio = nb::cast<double>(v);
    else if (name == "compress_least_bytes") o.compress.least_bytes = nb::cast<std::uint64_t>(v);
    else if (name == "compress_what") o.compress.what = compressed(nb::cast<std::string>(v));
    else if (name == "rest_switches") o.switches = nb::cast<bool>(v);
    else if (name == "rest_cards") o.cards = nb::cast<bool>(v);
    else if (name == "part_timer_us") o.part_timer = from_us(v);
    else if (name == "upper_links") o.upper_links = nb::cast<bool>(v);
    else throw std::invalid_argument("policies have no option '" + name + "'");
  }
  return o;
}

nb::dict idle_dict(const IdleHistogram& h) {
  nb::list bins, classes;
  for (std::size_t i = 0; i < IdleHistogram::kBins; ++i) bins.append(nb::make_tuple(h.count[i], static_cast<double>(h.time[i])));
  for (std::size_t i = 0; i < h.class_count.size(); ++i) classes.append(nb::make_tuple(h.class_count[i], static_cast<double>(h.class_time[i])));
  nb::dict d;
  d["bins"] = bins;
  d["classes"] = classes;
  return d;
}

nb::dict details_dict(const Engine& engine, const Machine& m, Recorder& recorder) {
  const Details d = engine.details();
  nb::list ranks, links, path;
  std::uint32_t last = 0;
  for (std::uint32_t n = 0; n < d.ranks.size(); ++n) {
    const RankDetail& r = d.ranks[n];
    if (r.end > d.ranks[last].end) last = n;
    ranks.append(nb::make_tuple(r.end, r.computing, r.in_calls, r.waiting, r.resting, r.calls, r.mispredictions, r.predicted_delay,
                              recorder.expected()[n], r.searches));
  }
  const std::uint32_t nodes = make_topology(m.topology)->nodes();
  for (std::size_t i = 0; i < d.links.size(); ++i) {
    const std::uint32_t l = d.numbers[i];
    const LinkTotals& t = d.links[i];
    links.append(nb::make_tuple(l < nodes ? "up" : l < 2 * nodes ? "down" : "upper", l < nodes ? l : l < 2 * nodes ? l - nodes : l - 2 * nodes,
                                static_cast<Time>(t.busy), static_cast<Time>(t.low), static_cast<Time>(t.deep), t.rests, t.late, static_cast<Time>(t.delay)));
  }
  nb::dict out;
  out["ranks"] = ranks;
  out["links"] = links;
  out["edge_idle"] = idle_dict(recorder.edge_idle());
  out["upper_idle"] = idle_dict(recorder.upper_idle());
  out["path"] = path;
  const TooShort& brief = d.too_short;
  out["too_short"] = nb::none();
  if (brief.count != 0) out["too_short"] = nb::make_tuple(brief.count, brief.source, brief.target, brief.comm, brief.tag, brief.bytes, brief.room);
  const UnlikeSizes& unlike = d.unlike_sizes;
  out["unlike_sizes"] = nb::none();
  if (unlike.count != 0) {
    const auto side = [](const UnlikeSizes::Side& s) { return nb::make_tuple(s.rank, s.call, s.bytes); };
    out["unlike_sizes"] = nb::make_tuple(unlike.count, std::string(trace::op_name(unlike.op)), unlike.comm, side(unlike.before), side(unlike.then));
  }
  out["path_messages"] = 0;
  out["path_unsplit"] = nb::none();
  if (recorder.path() == nullptr) return out;
  const CriticalPathResult found = recorder.path()->result(last, d.ranks[last].end);
  const auto parts = [](const PathShare& s) { return nb::make_tuple(s.computing, s.in_calls, s.transfer, s.link_wake, s.core_wake); };
  for (const PathShare& s : found.ranks) path.append(parts(s));
  if (found.unsplit.total() != 0) out["path_unsplit"] = parts(found.unsplit);
  out["path_messages"] = found.messages;
  return out;
}

nb::bytes packed(const std::vector<std::int64_t>& values) {
  return nb::bytes(values.data(), values.size() * sizeof(std::int64_t));
}

/// Spans as flat arrays of 64-bit integers: calls (rank, operation, begin, end, waited, slept), links (node, 0 to the
/// switch or 1 from it, state, begin, end); times in picoseconds.
nb::dict timeline_dict(const Recorder& recorder, const Machine& m) {
  const std::uint32_t nodes = make_topology(m.topology)->nodes();
  std::vector<std::int64_t> calls, links;
  for (const CallSpan& s : recorder.calls()) calls.insert(calls.end(), {s.rank, static_cast<std::int64_t>(s.op), s.begin, s.end, s.waited, s.slept});
  for (const LinkSpan& s : recorder.links()) {
    links.insert(links.end(), {s.link % nodes, s.link / nodes, static_cast<std::int64_t>(s.state), s.begin, s.end});
  }
  nb::dict d;
  d["calls"] = packed(calls);
  d["links"] = packed(links);
  d["complete_until"] = recorder.complete_until() == kNever ? nb::none() : nb::cast(recorder.complete_until());
  return d;
}

TimelineOptions timeline_options(const nb::dict& d) {
  TimelineOptions o;
  o.from = from_us(d["from_us"]);
  if (!d["to_us"].is_none()) o.to = from_us(d["to_us"]);
  o.ranks = nb::cast<std::uint32_t>(d["ranks"]);
  o.most = nb::cast<std::size_t>(d["most"]);
  return o;
}

nb::dict run(const Machine& machine, SimProgram& program, const std::string& policy_name, const nb::dict& options, bool details,
             const nb::object& timeline, unsigned threads) {
  const Policy policy = make_policy(policy_name, policy_options(options), machine);
  TimelineOptions shown;
  const bool draws = !timeline.is_none();
  if (draws) shown = timeline_options(nb::cast<nb::dict>(timeline));
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Recorder> recorder;
  std::string json;
  {
    const nb::gil_scoped_release unlocked;
    program.source.begin();
    const bool recorded = details || draws;  // by one thread
    engine = std::make_unique<Engine>(machine, policy, program.source, recorded ? 1 : threads);
    engine->stop_by(program.source.stopped());
    if (recorded) {
      const auto ranks = static_cast<std::uint32_t>(program.source.info().ranks.size());
      recorder = std::make_unique<Recorder>(ranks, machine.node.ranks, draws ? &shown : nullptr, details);
      engine->record(*recorder);
    }
    json = to_json(engine->run());
  }
  nb::dict out;
  out["result"] = json;
  out["details"] = details ? nb::object(details_dict(*engine, machine, *recorder)) : nb::none();
  out["timeline"] = draws ? nb::object(timeline_dict(*recorder, machine)) : nb::none();
  return out;
}

template <class Infos>
nb::list named(const Infos& infos) {
  nb::list out;
  for (const auto& info : infos) out.append(nb::make_tuple(info.name, info.help));
  return out;
}

}  // namespace

void bind_sim(nb::module_& m) {
  nb::exception<SimError>(m, "SimError", PyExc_ValueError);
  nb::exception<MachineFileError>(m, "MachineFileError", PyExc_ValueError);
  nb::exception<Stopped>(m, "SimCancelled", PyExc_RuntimeError);
  m.def("sim_policies", [] { return named(policies()); }, "(name, what it does) of each policy.");
  m.def("sim_core_policies", [] { return named(core_policies()); }, "(name, what it does) of each policy of cores.");
  m.def("published_predictor_cost", [] {
    const PredictorCost c = PredictorCost::published();
    return nb::make_tuple(us(c.call), us(c.search), us(c.tuning));
  }, "What pps and spps were measured to take, microseconds: each call, each search, each tuning.");
  m.def("sim_model", [] { return kModel; }, "Which model simulations are of: their results may differ from those of another.");
  m.def("sim_programs", [] { return named(synth_programs()); }, "(name, what it does) of each made-up program.");
  nb::class_<Machine>(m, "SimMachine", "A machine to simulate.")
      .def("set", &set_machine, "key"_a, "value"_a)
      .def("check_policy", [](const Machine& machine, const nb::dict& options) { make_core_policy(policy_options(options).core, machine.node.core); },
           "options"_a, "ValueError says what of the options its cores do not have.")
      .def("facts", &machine_facts, "What is assumed of it.");
  m.def("read_sim_machine", &read_machine, "path"_a, "ValueError names file and line.");
  nb::class_<SimProgram>(m, "SimProgram", "The calls of a program's ranks.")
      .def_prop_ro("ranks", [](const SimProgram& p) { return p.source.info().ranks.size(); })
      .def_prop_ro("events", &SimProgram::events)
      .def_prop_ro("name", [](const SimProgram& p) { return p.source.info().program; })
      .def_prop_ro("clock", [](const SimProgram& p) { return p.source.info().clock == trace::ComputeClock::cpu ? "cpu" : "wall"; })
      .def_prop_ro("incomplete", [](const SimProgram& p) {
        std::size_t n = 0;
        for (const auto& rank : p.source.info().ranks) n += rank.complete ? 0 : 1;
        return n;
      })
      .def_ro("problems", &SimProgram::problems)
      .def("progress", [](const SimProgram& p) { return p.source.progress(); }, "Share that has been replayed, or written.")
      .def("stop", [](SimProgram& p) { p.source.stop(); }, "Ends the simulation that runs in another thread.")
      .def("write", &write_program, "path"_a, "Writes the calls as a trace.");
  m.def("open_sim_trace", &open_trace, "paths"_a);
  m.def("make_sim_program", &make_synth, "name"_a, "options"_a);
  m.def("simulate", &run, "machine"_a, "program"_a, "policy"_a, "options"_a, "details"_a, "timeline"_a = nb::none(), "threads"_a = 1,
        "Replays the program: {'result': JSON, 'details': by rank and link or None, 'timeline': spans or None}. Others run meanwhile.");
}
