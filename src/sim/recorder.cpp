#include "sim/recorder.hpp"

namespace fallow::sim {

void Recorder::rested(std::uint32_t link, std::uint32_t nodes, Time from, const RestResult& r, const LinkPolicy& policy,
                      const RestPlan& plan, const LinkSpec& spec) {
  if (!draws_ || r.rests == 0 || !shown(link, nodes) || !wanted(from, r.ready)) return;
  Time begin = from;
  if (policy.rule == LinkRule::timer) begin = from + policy.timer;
  if (policy.rule == LinkRule::planned) begin = std::max(from, plan.begin);
  const bool both = r.low != 0 && r.deep != 0;
  const bool deep = r.deep != 0 || (policy.rule == LinkRule::planned && plan.deep);
  Time t = begin + (deep && !both ? spec.deep.down : spec.rest.down);
  span(link, LinkState::changing, begin, t);
  span(link, LinkState::low, t, t + r.low);
  t += r.low;
  if (both) span(link, LinkState::changing, t, t + spec.deep.down);
  if (both) t += spec.deep.down;
  span(link, LinkState::deep, t, t + r.deep);
  t += r.deep;
  span(link, LinkState::changing, t, t + (deep ? spec.deep.up : spec.rest.up));
}

void Recorder::finish(Time end) {
  std::erase_if(links_, [end](const LinkSpan& s) { return s.begin >= end; });
  for (LinkSpan& s : links_) s.end = std::min(s.end, end);
}

}  // namespace fallow::sim
