#include "sim/result.hpp"

#include <cstdio>

namespace fallow::sim {
namespace {

Joules ports(const LinkTotals& t, Time end, const LinkSpec& link) noexcept {
  const Seconds all(seconds(end).value * static_cast<double>(t.links));
  const double saved = (1 - link.rest.fraction) * seconds(t.low).value + (1 - link.deep.fraction) * seconds(t.deep).value;
  return link.port * Seconds(all.value - saved);
}

void add(std::string& out, const char* key, double value) {
  char text[96];
  std::snprintf(text, sizeof(text), "\"%s\":%.9g,", key, value);
  out += text;
}
void begin(std::string& out, const char* key) { out.append("\"").append(key).append("\":"); }
void add(std::string& out, const char* key, std::uint64_t value) {
  begin(out, key);
  out.append(std::to_string(value)).append(",");
}
void add(std::string& out, const char* key, Time value) {
  begin(out, key);
  out.append(std::to_string(value)).append(",");
}
void close(std::string& out) {
  out.back() = '}';
  out += ',';
}

void add_links(std::string& out, const char* key, const LinkTotals& t) {
  begin(out, key);
  out += '{';
  add(out, "links", t.links);
  add(out, "busy_ps", t.busy);
  add(out, "low_ps", t.low);
  add(out, "deep_ps", t.deep);
  add(out, "rests", t.rests);
  add(out, "late", t.late);
  add(out, "delay_ps", t.delay);
  close(out);
}

}  // namespace

// A switch draws what its ports do at full width divided by their share; the rest of it does not rest. Of an edge
// link one direction is driven by the card, whose port counts with the links.
Energy energy_of(const Result& r, const Machine& m) noexcept {
  Energy e;
  const double span = seconds(r.makespan).value;
  e.edge_links = ports(r.edge, r.makespan, m.link);
  e.upper_links = ports(r.upper, r.makespan, m.link);
  const double switch_ports = static_cast<double>(r.edge.links) / 2 + static_cast<double>(r.upper.links);
  e.switches = m.link.port * Seconds(span * switch_ports * (1 - m.link.share_of_switch) / m.link.share_of_switch);
  const double card_busy = seconds(r.edge.busy).value / 2;
  e.cards = m.node.card_idle * Seconds(span * r.nodes - card_busy) + m.node.card_active * Seconds(card_busy);
  e.cores = m.node.core_busy * seconds(r.cores.computing + r.cores.in_calls) + m.node.core_spin * seconds(r.cores.waiting) +
            m.node.core_sleep * seconds(r.cores.sleeping);
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
  add_links(out, "edge", r.edge);
  add_links(out, "upper", r.upper);
  out += "\"cores\":{";
  add(out, "computing_ps", r.cores.computing);
  add(out, "in_calls_ps", r.cores.in_calls);
  add(out, "waiting_ps", r.cores.waiting);
  add(out, "sleeping_ps", r.cores.sleeping);
  close(out);
  out += "\"energy_model_j\":{";
  add(out, "edge_links", r.energy.edge_links.value);
  add(out, "upper_links", r.energy.upper_links.value);
  add(out, "switches", r.energy.switches.value);
  add(out, "cards", r.energy.cards.value);
  add(out, "cores", r.energy.cores.value);
  add(out, "total", r.energy.total().value);
  close(out);
  close(out);
  out.back() = '\n';
  return out;
}

}  // namespace fallow::sim
