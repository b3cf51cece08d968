// Access to files: each takes the latency of the file system and the time that its bytes need at the rate that the
// rank's node has. A node's accesses take turns; what the file system carries in all is shared evenly by the nodes, so
// that no access depends on those of another node (docs/reference/simulation.md).
#include "sim/engine.hpp"

namespace fallow::sim {

using trace::CallEvent;
using trace::Op;

namespace {

bool begins(Op op) noexcept {
  switch (op) {
    case Op::file_read_all_begin:
    case Op::file_read_at_all_begin:
    case Op::file_read_ordered_begin:
    case Op::file_write_all_begin:
    case Op::file_write_at_all_begin:
    case Op::file_write_ordered_begin: return true;
    default: return false;
  }
}

bool ends(Op op) noexcept {
  switch (op) {
    case Op::file_read_all_end:
    case Op::file_read_at_all_end:
    case Op::file_read_ordered_end:
    case Op::file_write_all_end:
    case Op::file_write_at_all_end:
    case Op::file_write_ordered_end: return true;
    default: return false;
  }
}

/// An operation that ends stands behind the one that begins.
Op begin_of(Op end) noexcept { return static_cast<Op>(static_cast<std::uint16_t>(end) - 1); }
static_assert(static_cast<int>(Op::file_read_all_end) == static_cast<int>(Op::file_read_all_begin) + 1);

/// Calls that only say where later accesses go.
bool is_local(Op op) noexcept {
  switch (op) {
    case Op::file_get_size:
    case Op::file_set_view:
    case Op::file_set_atomicity:
    case Op::file_seek:
    case Op::file_seek_shared: return true;
    default: return false;
  }
}

}  // namespace

/// The request of an access that begins now; an event completes it.
std::uint32_t Engine::access(std::uint32_t r, std::uint64_t bytes) {
  const StorageSpec& s = machine_.storage;
  Rank& rank = ranks_[r];
  const Time per_kib = std::max(s.node_ps_per_kib, s.ps_per_kib * static_cast<Time>(nodes_in_use()));
  Time& free = side_.files_free[r / machine_.node.ranks];
  free = std::min(kNever, std::max(free, rank.now) + duration_of(bytes, per_kib));
  const std::uint32_t request = take_request(r);
  if (lags_ != nullptr) [[unlikely]] lags_->request(request) = acting_;
  queue_.push({free + s.latency, tie_of(r, r, ++rank.messages), request, EventKind::access});
  return request;
}

bool Engine::file(std::uint32_t r, const CallEvent& call) {
  const bool collective = trace::has(call.op, trace::kOpCollective);
  if (trace::has(call.op, trace::kOpCreates)) return keep(r, call, access(r, call.bytes)), true;
  if (begins(call.op)) return side_.split[SideTables::split_key(r, call.comm, call.op)].push_back(access(r, call.bytes)), true;
  bool done = true;
  if (ends(call.op)) {
    // Of one file's accesses one is under way at a time. The trace does not say which file: those of several end in order.
    const auto found = side_.split.find(SideTables::split_key(r, call.comm, begin_of(call.op)));
    if (found != side_.split.end() && !found->second.empty()) {  // else its begin was lost
      done = block_on(r, found->second.front());
      found->second.erase(found->second.begin());
    }
  } else if (!is_local(call.op)) {
    done = block_on(r, access(r, call.bytes));
  }
  return (!collective || synchronize(r, call)) && done;
}

}  // namespace fallow::sim
