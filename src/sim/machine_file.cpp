#include "sim/machine_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <toml++/toml.h>

#include "base/ascii.hpp"
#include "base/nearest.hpp"
#include "power/platform.hpp"

namespace fallow::sim {
namespace {

[[noreturn]] void fail(std::string_view file, const toml::source_region& where, const std::string& what) {
  throw MachineFileError(std::string(file) + ":" + std::to_string(where.begin.line) + ": " + what);
}

constexpr std::uint32_t kDefaultNodes = 1024;  // of the crossbar that stands for a network of which nothing is said

/// One table: keys are asked for, and what nobody asked for is refused.
class Section {
 public:
  Section(std::string_view file, const toml::table* table, std::string name) : file_(file), table_(table), name_(std::move(name)) {}

  /// Null if the file does not have it.
  const toml::table* table() const noexcept { return table_; }

  /// Leaves `value` alone if the key is absent.
  bool number(std::string_view key, double low, double high, double& value) {
    const toml::node* node = find(key);
    if (node == nullptr) return false;
    const auto v = node->value<double>();
    if (!v || !(*v >= low && *v <= high)) refuse(*node, key, "a number from " + text_of(low) + " to " + text_of(high));
    value = *v;
    return true;
  }
  void whole(std::string_view key, std::int64_t low, std::int64_t high, auto& value) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const auto v = node->value_exact<std::int64_t>();
    if (!v || *v < low || *v > high) refuse(*node, key, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    value = static_cast<std::remove_reference_t<decltype(value)>>(*v);
  }
  bool time(std::string_view key, Time unit, Time& value) {
    double v = 0;
    if (!number(key, 0, 1e9, v)) return false;
    value = std::llround(v * static_cast<double>(unit));
    return true;
  }
  bool watts(std::string_view key, Watts& value) { return number(key, 0, 1e6, value.value); }
  void flag(std::string_view key, bool& value) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    if (!node->is_boolean()) refuse(*node, key, "true or false");
    value = *node->value<bool>();
  }
  const toml::node* text(std::string_view key, std::string& value) {
    const toml::node* node = find(key);
    if (node == nullptr) return nullptr;
    if (!node->is_string()) refuse(*node, key, "a text");
    value = *node->value<std::string>();
    return node;
  }
  const toml::node* find(std::string_view key) {
    asked_.emplace(key);
    return table_ == nullptr ? nullptr : table_->get(key);
  }
  [[noreturn]] void refuse(const toml::node& node, std::string_view key, const std::string& wanted) const {
    fail(file_, node.source(), (name_.empty() ? "" : name_ + ".") + std::string(key) + " must be " + wanted);
  }
  Section section(std::string_view key) {
    const toml::node* node = find(key);
    if (node != nullptr && !node->is_table()) refuse(*node, key, "a table");
    return {file_, node == nullptr ? nullptr : node->as_table(), std::string(key)};
  }
  /// Every table of an array of tables; none if the key is absent.
  std::vector<Section> sections(std::string_view key) {
    std::vector<Section> found;
    const toml::node* node = find(key);
    if (node == nullptr) return found;
    const std::string name = (name_.empty() ? "" : name_ + ".") + std::string(key);
    if (!node->is_array_of_tables()) refuse(*node, key, "written [[" + name + "]]");
    for (const toml::node& n : *node->as_array()) found.emplace_back(file_, n.as_table(), name);
    return found;
  }
  [[noreturn]] void missing(std::string_view key) const { fail(file_, table_->source(), name_ + "." + std::string(key) + " is missing"); }
  /// Keys of platform files that mean nothing here; power::parse_platform has checked them.
  void leave(std::initializer_list<const char*> keys) { asked_.insert(keys.begin(), keys.end()); }
  void finish() const {
    if (table_ == nullptr) return;
    for (const auto& [key, node] : *table_) {
      if (asked_.contains(key.str())) continue;
      fail(file_, key.source(), (name_.empty() ? "" : name_ + ".") + std::string(key.str()) + " is not known" + did_you_mean(key.str(), asked_));
    }
  }

 private:
  static std::string text_of(double v) {
    char text[32];
    std::snprintf(text, sizeof(text), "%g", v);
    return text;
  }
  std::string_view file_;
  const toml::table* table_;
  std::string name_;
  std::set<std::string, std::less<>> asked_;
};

/// Gigabytes per second as picoseconds per KiB.
void rate(Section& s, std::string_view key, double gigabytes_per_unit, Time& ps_per_kib, double least = 1e-3) {
  double v = 0;
  if (s.number(key, least, 1e5, v)) ps_per_kib = std::llround(1024e3 / (v * gigabytes_per_unit));
}

Routing routing_of(Section& s, Routing fallback) {
  std::string name;
  const toml::node* node = s.text("routing", name);
  if (node == nullptr || name == "automatic") return fallback;
  constexpr std::pair<const char*, Routing> kNames[] = {
      {"d-mod-k", Routing::d_mod_k}, {"random", Routing::random}, {"minimal", Routing::minimal}, {"valiant", Routing::valiant}};
  for (const auto& [known, routing] : kNames) {
    if (name == known) return routing;
  }
  s.refuse(*node, "routing", "automatic, d-mod-k, random, minimal or valiant");
}

/// A network whose ways are chosen otherwise than the file says would be another machine.
void check_routing(Section& s, const TopologySpec& spec) {
  struct Row {
    const char* kind;
    Routing one, other;
    const char* names;
  };
  constexpr Row kRows[] = {{"xgft", Routing::d_mod_k, Routing::random, "d-mod-k or random in a fat tree"},
                           {"dragonfly", Routing::minimal, Routing::valiant, "minimal or valiant in a dragonfly"},
                           {"torus", Routing::minimal, Routing::valiant, "minimal or valiant in a torus"},
                           {"graph", Routing::minimal, Routing::random, "minimal or random in a graph"}};
  for (const Row& row : kRows) {
    if (spec.kind != row.kind || spec.routing == Routing::automatic || spec.routing == row.one || spec.routing == row.other) continue;
    s.refuse(*s.find("routing"), "routing", std::string("automatic, ") + row.names);
  }
  if (spec.kind == "crossbar" && spec.routing != Routing::automatic) {
    s.refuse(*s.find("routing"), "routing", "left out: the network is a crossbar, which has one way only");
  }
}

/// What is of another kind of network would be passed over: whoever wrote it meant another machine.
void check_shape(Section& s, const TopologySpec& spec) {
  struct Row {
    const char* kind;
    const char* name;
    std::initializer_list<std::string_view> keys;
  };
  static const Row kRows[] = {{"crossbar", "a crossbar", {"nodes"}},
                              {"xgft", "a fat tree, whose text says its shape", {}},
                              {"dragonfly", "a dragonfly", {"nodes_per_switch", "switches_per_group", "global_links", "groups"}},
                              {"torus", "a torus", {"extent", "nodes_per_switch"}},
                              {"graph", "a graph", {"nodes", "vertices", "edges"}}};
  for (const Row& row : kRows) {
    if (spec.kind != row.kind) continue;
    for (const char* key : {"nodes", "nodes_per_switch", "switches_per_group", "global_links", "groups", "vertices", "extent", "edges"}) {
      const toml::node* const node = s.find(key);
      if (node == nullptr || std::find(row.keys.begin(), row.keys.end(), key) != row.keys.end()) continue;
      s.refuse(*node, key, std::string("left out: the network is ") + row.name);
    }
  }
}

void read_lists(Section& s, TopologySpec& spec) {
  if (const toml::node* node = s.find("extent")) {
    const toml::array* list = node->as_array();
    if (list == nullptr || list->empty()) s.refuse(*node, "extent", "a list of whole numbers");
    for (const toml::node& n : *list) {
      const auto v = n.value_exact<std::int64_t>();
      if (!v || *v < 1 || *v > 65536) s.refuse(n, "extent", "a list of whole numbers from 1 to 65536");
      spec.extent.push_back(static_cast<std::uint32_t>(*v));
    }
  }
  const toml::node* node = s.find("edges");
  if (node == nullptr) return;
  const toml::array* list = node->as_array();
  if (list == nullptr) s.refuse(*node, "edges", "a list of [a, b] or [a, b, relative bandwidth]");
  for (const toml::node& n : *list) {
    const toml::array* edge = n.as_array();
    if (edge == nullptr || edge->size() < 2 || edge->size() > 3) s.refuse(n, "edges", "a list of [a, b] or [a, b, relative bandwidth]");
    const auto a = (*edge)[0].value_exact<std::int64_t>(), b = (*edge)[1].value_exact<std::int64_t>();
    const auto relative = edge->size() == 3 ? (*edge)[2].value<double>() : 1.0;
    if (!a || !b || *a < 0 || *b < 0 || *a >= kMaxNodes || *b >= kMaxNodes || !relative || !(*relative >= 1e-3 && *relative <= 1e3)) {
      s.refuse(n, "edges", "vertices, and a relative bandwidth from 0.001 to 1000");
    }
    spec.edges.push_back({static_cast<std::uint32_t>(*a), static_cast<std::uint32_t>(*b), static_cast<std::uint32_t>(std::llround(*relative * 1000))});
  }
}

void read_network(Section s, std::string_view file, Machine& m) {
  TopologySpec spec = m.topology;
  std::string kind;
  const toml::node* node = s.text("topology", kind);
  if (kind.starts_with("XGFT")) {
    try {
      spec = parse_xgft(kind);
    } catch (const std::invalid_argument& e) {
      fail(file, node->source(), e.what());
    }
  } else if (node != nullptr) {
    spec.kind = kind;
  }
  spec.routing = routing_of(s, spec.routing);
  s.whole("seed", 0, std::int64_t{1} << 62, spec.seed);
  s.whole("nodes", 1, kMaxNodes, spec.nodes);
  s.whole("nodes_per_switch", 1, kMaxNodes, spec.nodes_per_switch);
  s.whole("switches_per_group", 1, 65536, spec.switches_per_group);
  s.whole("global_links", 1, 65536, spec.global_links);
  s.whole("groups", 1, kMaxNodes, spec.groups);
  s.whole("vertices", 1, kMaxNodes, spec.vertices);
  read_lists(s, spec);
  if (node == nullptr && spec.nodes == 0) spec.nodes = kDefaultNodes;
  bool contention = true;
  s.flag("contention", contention);
  m.contention = contention ? Contention::full : Contention::none;
  s.time("lookahead_ns", kNs, m.lookahead);
  s.leave({"source"});
  s.finish();
  try {
    make_topology(spec);
  } catch (const std::invalid_argument& e) {
    if (node == nullptr) node = s.table();
    if (node == nullptr) throw MachineFileError(std::string(file) + ": " + e.what());
    fail(file, node->source(), e.what());
  }
  check_routing(s, spec);
  check_shape(s, spec);
  m.topology = spec;
}

/// A deeper rest draws no more than the other and takes no less to come back from. What the file leaves open is so.
void read_deep(Section& s, LinkSpec& link) {
  s.time("deep_react_us", kUs, link.deep.up);
  s.time("deep_react_down_us", kUs, link.deep.down);
  s.number("deep_fraction", 0, 1, link.deep.fraction);
  if (link.deep.up < link.rest.up) {
    const toml::node* const given = s.find("deep_react_us");
    if (given != nullptr) s.refuse(*given, "deep_react_us", "no less than react_us: a deeper rest takes longer to come back from");
    link.deep.up = link.rest.up;
  }
  if (link.deep.fraction > link.rest.fraction) {
    const toml::node* const given = s.find("deep_fraction");
    if (given != nullptr) s.refuse(*given, "deep_fraction", "no more than low_power_fraction: a deeper rest draws less");
    link.deep.fraction = link.rest.fraction;
  }
}

void read_link(Section s, LinkSpec& link) {
  rate(s, "gbit_s", 0.125, link.ps_per_kib, 2e-3);  // slower ones do not fit into the network's 32 bits
  s.whole("lanes", 1, 64, link.lanes);
  s.time("switch_latency_ns", kNs, link.latency);
  s.time("react_us", kUs, link.rest.up);
  link.rest.down = link.rest.up;
  s.time("react_down_us", kUs, link.rest.down);
  s.number("low_power_fraction", 0, 1, link.rest.fraction);
  read_deep(s, link);
  s.watts("port_w", link.port);
  s.number("share_of_switch", 0.01, 1, link.share_of_switch);
  if (const toml::node* node = s.find("lane_fractions")) {
    const toml::array* list = node->as_array();
    double last = 0;
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const auto v = (*list)[i].value<double>();
      if (!v || !(*v >= last && *v <= 1)) s.refuse(*node, "lane_fractions", "a list of ascending shares, with 1, 2, .. lanes on");
      link.lane_fractions.push_back(last = *v);
    }
    if (link.lane_fractions.size() != link.lanes) s.refuse(*node, "lane_fractions", "a list with a share for each number of lanes");
    if (last != 1) s.refuse(*node, "lane_fractions", "a list whose last is 1, as nominal power is with all lanes on");
  }
  s.leave({"source"});
  s.finish();
}

void read_message(Section s, MessageSpec& message) {
  s.time("latency_us", kUs, message.latency);
  s.time("overhead_ns", kNs, message.overhead);
  s.time("receive_overhead_ns", kNs, message.receive_overhead);
  s.time("unexpected_ns", kNs, message.unexpected);
  s.time("call_overhead_ns", kNs, message.call_overhead);
  s.time("match_ns", kNs, message.match);
  s.whole("eager_bytes", 0, std::int64_t{1} << 40, message.eager_limit);
  s.whole("segment_bytes", 64, 1 << 20, message.segment);
  s.whole("train_segments", 1, 1 << 20, message.train_segments);
  rate(s, "reduce_gb_s", 1, message.reduce_ps_per_kib);
  s.leave({"source"});
  s.finish();
}

/// The file describes a whole node as well: its watts are taken from there.
void read_platform(std::string_view text, std::string_view name, Section& top, Machine& m) {
  try {
    const power::Platform p = power::parse_platform(text, name);
    m.node.card.idle = p.nic.idle;
    m.node.card.active = p.nic.active;
    m.node.core.power = p.core;
    m.node.cores = p.cores();
    m.node.memory_idle = p.memory.idle;
    m.node.memory_active = p.memory.active;
    m.node.base = p.base;
  } catch (const power::PlatformError& e) {
    throw MachineFileError(e.what());
  }
  top.leave({"cpu", "memory", "base"});
}

/// The one state that a switch or a card rests in.
void read_rest(Section& s, RestStates& states) {
  RestState& rest = states.rest;
  s.number("rest_fraction", 0, 1, rest.fraction);
  s.time("rest_react_us", kUs, rest.up);
  s.time("rest_react_down_us", kUs, rest.down);
  states.deep = rest;
}

void read_switch(Section s, SwitchSpec& spec) {
  s.number("idle_fraction", 0, 1, spec.idle_fraction);
  read_rest(s, spec.states);
  s.leave({"share_w", "source"});
  s.finish();
}

void read_card(Section s, CardSpec& card) {
  s.watts("idle_w", card.idle);
  s.watts("active_w", card.active);
  read_rest(s, card.states);
  s.leave({"source"});
  s.finish();
}

/// `described`: the file describes a whole node, and with it the cores' frequencies.
void read_core(Section s, CoreSpec& core, bool described) {
  s.watts("compute_w", core.power.compute);
  s.watts("spin_w", core.power.spin);
  s.watts("yield_w", core.power.yield);
  s.watts("sleep_w", core.power.sleep);
  s.time("sleep_down_us", kUs, core.sleep_down);
  s.time("wake_us", kUs, core.wake);
  s.time("frequency_us", kUs, core.frequency_change);
  s.time("throttle_us", kUs, core.throttle_change);
  s.whole("throttle_steps", 2, 256, core.throttle_steps);
  s.time("yield_us", kUs, core.yield_round);
  for (Section& t : s.sections("sleep")) {
    CoreSleepState state;
    const toml::node* const named = t.text("name", state.name);
    if (named == nullptr) t.missing("name");
    const auto taken = [&](const CoreSleepState& other) { return other.name == state.name; };
    if (std::any_of(core.sleeps.begin(), core.sleeps.end(), taken)) t.refuse(*named, "name", "another: two states have this one");
    const bool drawn = t.watts("w", state.power), left = t.time("down_us", kUs, state.down), back = t.time("up_us", kUs, state.up);
    t.finish();  // before what is missing: a key may be misspelt
    if (!drawn) t.missing("w");
    if (!left) t.missing("down_us");
    if (!back) t.missing("up_us");
    core.sleeps.push_back(std::move(state));
  }
  for (const char* key : {"nominal_ghz", "at"}) {
    const toml::node* const node = s.find(key);
    if (node != nullptr && !described) s.refuse(*node, key, "in a complete platform, which has a table [cpu]");
  }
  s.leave({"source"});
  s.finish();
}

void read_node(Section s, NodeSpec& node) {
  rate(s, "memory_gb_s", 1, node.memory_ps_per_kib);
  s.time("memory_latency_ns", kNs, node.memory_latency);
  double speed = 1;
  if (s.number("cpu_speed", 1e-6, 1e6, speed)) node.compute_ps_per_ns = 1000 / speed;
  s.leave({"source"});
  s.finish();
}

void read_storage(Section s, StorageSpec& storage) {
  s.time("latency_us", kUs, storage.latency);
  rate(s, "node_gb_s", 1, storage.node_ps_per_kib);
  rate(s, "gb_s", 1, storage.ps_per_kib);
  s.leave({"source"});
  s.finish();
}

}  // namespace

Machine parse_machine(std::string_view given, std::string_view name) {
  const std::string text = with_ascii_comments(given);
  if (const std::size_t line = line_beyond_ascii(text); line != 0) {
    throw MachineFileError(std::string(name) + ":" + std::to_string(line) + ": " + kBeyondAscii);
  }
  toml::table root;
  try {
    root = toml::parse(text, name);
  } catch (const toml::parse_error& e) {
    fail(name, e.source(), std::string(e.description()));
  }
  Machine m;
  Section top(name, &root, "");
  m.name = std::filesystem::path(name).stem().string();
  if (const toml::node* node = top.text("name", m.name); node != nullptr && m.name.empty()) top.refuse(*node, "name", "a text, and not empty");
  std::string description;
  top.text("description", description);
  top.whole("ranks_per_node", 1, 65536, m.node.ranks);
  std::string library;
  if (const toml::node* node = top.text("collectives", library)) {
    if (library != "openmpi" && library != "mpich") top.refuse(*node, "collectives", "openmpi or mpich");
    m.collectives = library == "mpich" ? coll::Library::mpich : coll::Library::openmpi;
  }
  if (root.contains("cpu")) read_platform(text, name, top, m);
  read_network(top.section("network"), name, m);
  read_link(top.section("link"), m.link);
  read_message(top.section("message"), m.message);
  read_switch(top.section("switch"), m.switches);
  read_card(top.section("nic"), m.node.card);
  read_node(top.section("node"), m.node);
  read_core(top.section("core"), m.node.core, root.contains("cpu"));
  read_storage(top.section("storage"), m.storage);
  top.finish();
  return m;
}

Machine read_machine(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) throw MachineFileError(path + ": is a directory, not a platform file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw MachineFileError(path + ": " + std::strerror(errno));
  constexpr std::size_t kLargest = 64u << 20;  // bytes; a graph of 100000 links takes 1 MiB
  std::string text;
  std::array<char, 65536> piece;
  while (file.read(piece.data(), piece.size()), file.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kLargest) throw MachineFileError(path + ": larger than any platform file");
  }
  if (file.bad() || text.empty()) throw MachineFileError(path + ": is empty, or cannot be read");
  return parse_machine(text, path);
}

}  // namespace fallow::sim
