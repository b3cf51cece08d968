// Programs for tests, written call by call.
#pragma once

#include <vector>

#include "sim/engine.hpp"
#include "trace/outcomes.hpp"

namespace fallow::sim::testing {

using trace::CallEvent;
using trace::Op;

/// A program in memory whose calls are appended rank by rank.
class Program {
 public:
  explicit Program(std::uint32_t ranks) : source_(ranks) {
    source_.edit().comms = trace::CommGroups(ranks);
    source_.edit().ranks.resize(ranks);
  }

  Program& add(std::uint32_t rank, CallEvent call) {
    call.comm = call.comm == trace::kCommNone ? trace::kCommWorld : call.comm;
    call.compute_ns = static_cast<std::uint64_t>(compute_);
    compute_ = 0;
    source_.add(rank, call);
    return *this;
  }
  Program& compute(std::int64_t ns) {
    compute_ = ns;
    return *this;
  }
  Program& p2p(std::uint32_t rank, Op op, std::int32_t peer, std::uint64_t bytes, std::int32_t tag = 0, std::int64_t request = -1) {
    CallEvent call;
    call.op = op;
    call.peer = peer;
    call.tag = tag;
    call.bytes = bytes;
    const auto number = static_cast<std::uint32_t>(request);
    if (request >= 0) call.requests = {&number, 1};
    return add(rank, call);
  }
  Program& sendrecv(std::uint32_t rank, std::int32_t to, std::int32_t from, std::uint64_t bytes) {
    CallEvent call;
    call.op = Op::sendrecv;
    call.peer = to;
    call.recv_peer = from;
    call.tag = call.recv_tag = 0;
    call.bytes = call.recv_bytes = bytes;
    return add(rank, call);
  }
  Program& wait(std::uint32_t rank, Op op, const std::vector<std::uint32_t>& completed, std::uint16_t flags = 0) {
    CallEvent call;
    call.op = op;
    call.completed = completed;
    call.flags = flags;
    return add(rank, call);
  }
  /// A wait of which the trace says what became of its requests: Outcome and tag of each.
  Program& wait(std::uint32_t rank, const std::vector<std::uint32_t>& completed, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& told) {
    std::vector<std::uint64_t> outcomes, tags;
    for (const auto& [outcome, tag] : told) outcomes.push_back(outcome), tags.push_back(tag);
    CallEvent call;
    call.op = Op::waitall;
    call.completed = completed;
    call.counts = outcomes;
    call.recv_counts = tags;
    return add(rank, call);
  }
  Program& on_requests(std::uint32_t rank, Op op, const std::vector<std::uint32_t>& requests) {
    CallEvent call;
    call.op = op;
    call.requests = requests;
    return add(rank, call);
  }
  Program& collective(std::uint32_t rank, Op op, std::uint64_t bytes, std::int32_t root = 0, std::uint32_t comm = trace::kCommWorld) {
    CallEvent call;
    call.op = op;
    call.bytes = bytes;
    call.root = root;
    call.comm = comm;
    return add(rank, call);
  }

  trace::MemorySource& source() noexcept { return source_; }
  Result run(const Machine& machine, const Policy& policy = {}, unsigned threads = 1) {
    trace::Outcomes told(source_);
    for (std::uint32_t r = 0; r < source_.info().ranks.size(); ++r) told.rewind(r);
    return Engine(machine, policy, told, threads).run();
  }

 private:
  trace::MemorySource source_;
  std::int64_t compute_ = 0;
};

/// A crossbar of 5 GB/s links, 100 ns each, and 1 us of latency of MPI.
inline Machine crossbar(std::uint32_t nodes, std::uint32_t ranks_per_node = 1) {
  Machine machine;
  machine.topology.nodes = nodes;
  machine.node.ranks = ranks_per_node;
  return machine;
}

inline constexpr Time kLatency = 1 * kUs + 2 * 100 * kNs;
inline constexpr Time kPerKib = 204800;

}  // namespace fallow::sim::testing
