#include "sim/result.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace fallow::sim {
namespace {

Joules ports(const LinkTotals& t, Time end, const LinkSpec& link, std::uint32_t lanes_on) noexcept {
  const Seconds all(seconds(end).value * static_cast<double>(t.links));
  const double saved = (1 - link.rest.fraction) * seconds(t.low).value + (1 - link.deep.fraction) * seconds(t.deep).value +
                       (1 - link.fraction_at(lanes_on)) * seconds(t.narrow).value;
  return link.port * Seconds(all.value - saved);
}

/// What rests saved of a constant idle power per part.
Joules saved(const PartTotals& t, Watts idle, const RestStates& states) noexcept {
  return idle * Seconds((1 - states.rest.fraction) * seconds(t.low).value + (1 - states.deep.fraction) * seconds(t.deep).value);
}

void begin(std::string& out, const char* key) { out.append("\"").append(key).append("\":"); }
void add(std::string& out, const char* key, double value) {
  char text[32];  // as "%.9g", but with a point whatever the locale of the process
  const std::to_chars_result end = std::to_chars(std::begin(text), std::end(text), value, std::chars_format::general, 9);
  begin(out, key);
  out.append(text, end.ptr).append(",");
}
void add(std::string& out, const char* key, std::uint64_t value) {
  begin(out, key);
  out.append(std::to_string(value)).append(",");
}
void add(std::string& out, const char* key, Time value) {
  begin(out, key);
  out.append(std::to_string(value)).append(",");
}
void add(std::string& out, const char* key, TimeSum value) {
  char text[40];  // a sign and 39 digits
  char* digit = std::end(text);
  TimeSum left = value < 0 ? -value : value;
  do {
    *--digit = static_cast<char>('0' + static_cast<int>(left % 10));
  } while ((left /= 10) != 0);
  if (value < 0) *--digit = '-';
  begin(out, key);
  out.append(digit, std::end(text)).append(",");
}
void close(std::string& out) {
  out.back() = '}';
  out += ',';
}

void add_parts(std::string& out, const char* key, const PartTotals& t) {
  begin(out, key);
  out += '{';
  add(out, "parts", t.parts);
  add(out, "low_ps", t.low);
  add(out, "deep_ps", t.deep);
  add(out, "rests", t.rests);
  add(out, "late", t.late);
  add(out, "delay_ps", t.delay);
  close(out);
}

void add_links(std::string& out, const char* key, const LinkTotals& t) {
  begin(out, key);
  out += '{';
  add(out, "links", t.links);
  add(out, "busy_ps", t.busy);
  add(out, "low_ps", t.low);
  add(out, "deep_ps", t.deep);
  add(out, "narrow_ps", t.narrow);
  add(out, "rests", t.rests);
  add(out, "late", t.late);
  add(out, "delay_ps", t.delay);
  close(out);
}

/// Memory is active in proportion to the cores that compute; cores without a rank sleep.
Joules rest_of_nodes(const Result& r, const Machine& m) noexcept {
  const double span = seconds(r.makespan).value;
  const double cores = std::max<double>(m.node.cores, m.node.ranks);
  const double working = seconds(r.cores.computing + r.cores.in_calls).value / cores;
  const double unused = span * std::max(0.0, r.nodes * cores - r.ranks);
  return (m.node.base + m.node.memory_idle) * Seconds(span * r.nodes) + (m.node.memory_active - m.node.memory_idle) * Seconds(working) +
         m.node.core.power.sleep * Seconds(m.node.cores == 0 ? 0 : unused);
}

}  // namespace

// A switch draws what its ports do at full width divided by their share. What it is beside them draws less where
// nothing passes, port by port, and less again at rest. Of an edge link one direction is driven by the card, whose port
// counts with the links.
Energy energy_of(const Result& r, const Machine& m) noexcept {
  Energy e;
  const double span = seconds(r.makespan).value;
  // Every message takes a link at either end; without contention that of its sender alone is kept account of.
  const double carried = seconds(r.edge.busy).value / (m.contention == Contention::none ? 1 : 2);
  e.edge_links = ports(r.edge, r.makespan, m.link, r.lanes_on);
  e.upper_links = ports(r.upper, r.makespan, m.link, r.lanes_on);
  const double switch_ports = static_cast<double>(r.edge.links) / 2 + static_cast<double>(r.upper.links);
  const double passing = carried + seconds(r.upper.busy).value;
  const Watts busy = m.link.port * ((1 - m.link.share_of_switch) / m.link.share_of_switch);
  const Watts idle = busy * m.switches.idle_fraction;
  e.switches = idle * Seconds(span * switch_ports) + (busy - idle) * Seconds(passing) - saved(r.switch_parts, idle, m.switches.states);
  const CardSpec& card = m.node.card;
  e.cards = card.idle * Seconds(span * r.nodes) + (card.active - card.idle) * Seconds(carried) - saved(r.card_parts, card.idle, card.states);
  const CorePolicy& core = r.core_policy;
  e.cores = core.compute * seconds(r.cores.computing + r.cores.in_calls) + core.poll * seconds(r.cores.waiting + r.cores.changing) +
            core.rest.power * seconds(r.cores.resting);
  e.nodes = rest_of_nodes(r, m);
  return e;
}

std::string to_json(const Result& r) {
  std::string out = "{\"policy\":\"";
  out.append(r.policy).append("\",");
  add(out, "ranks", std::uint64_t{r.ranks});
  add(out, "nodes", std::uint64_t{r.nodes});
  add(out, "switches", std::uint64_t{r.switches});
  add(out, "makespan_ps", r.makespan);
  add(out, "calls", r.calls);
  add(out, "messages", r.messages);
  add(out, "events", r.events);
  add(out, "mispredictions", r.mispredictions);
  if (r.unplaced != 0) add(out, "unplaced", r.unplaced);
  if (r.let_go != 0) add(out, "let_go", r.let_go);
  if (r.refused != 0) add(out, "refused", r.refused);
  if (const Unreceived& left = r.unreceived; left.count != 0) {
    out += "\"unreceived\":{";
    add(out, "count", left.count);
    add(out, "source", std::uint64_t{left.source});
    add(out, "target", std::uint64_t{left.target});
    add(out, "communicator", std::uint64_t{left.comm});
    add(out, "tag", static_cast<std::int64_t>(left.tag));
    close(out);
  }
  add_links(out, "edge", r.edge);
  add_links(out, "upper", r.upper);
  add_parts(out, "switch_parts", r.switch_parts);
  add_parts(out, "card_parts", r.card_parts);
  out += "\"cores\":{";
  add(out, "computing_ps", r.cores.computing);
  add(out, "in_calls_ps", r.cores.in_calls);
  add(out, "waiting_ps", r.cores.waiting);
  add(out, "resting_ps", r.cores.resting);
  add(out, "changing_ps", r.cores.changing);
  add(out, "late_ps", r.cores.late);
  add(out, "rests", r.cores.rests);
  close(out);
  out += "\"energy_model_j\":{";
  add(out, "edge_links", r.energy.edge_links.value);
  add(out, "upper_links", r.energy.upper_links.value);
  add(out, "switches", r.energy.switches.value);
  add(out, "cards", r.energy.cards.value);
  add(out, "cores", r.energy.cores.value);
  add(out, "nodes", r.energy.nodes.value);
  add(out, "total", r.energy.total().value);
  close(out);
  close(out);
  out.back() = '\n';
  return out;
}

}  // namespace fallow::sim
