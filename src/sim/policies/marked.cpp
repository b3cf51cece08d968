// Two calls added to the program, one that wakes a node's links and one that lets them rest (Dickov 4.5.2): around each
// communication call, or around loops of them.
#include "sim/policies/policies.hpp"

namespace fallow::sim::policies_detail {
namespace {

Policy marked(const PolicyOptions& options, Marks marks, Time gap) {
  Policy policy;
  policy.edge = {LinkRule::planned, 0, options.deep_timer};
  policy.marks = marks;
  policy.loop_gap = gap;
  return policy;
}

}  // namespace

Policy calls(const PolicyOptions& options, const LinkSpec&) { return marked(options, Marks::calls, 0); }
Policy loops(const PolicyOptions& options, const LinkSpec&) { return marked(options, Marks::loops, options.loop_gap); }

}  // namespace fallow::sim::policies_detail
