// What must hold of any program on any machine: generated programs of calls of every kind, and what follows from one
// replay for another.
#include <gtest/gtest.h>

#include <random>
#include <string_view>

#include "sim/recorder.hpp"
#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

using Random = std::mt19937_64;

std::int64_t below(Random& random, std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); }

/// A program of rounds; in each all ranks make calls that belong together.
class Generator {
 public:
  Generator(std::uint64_t seed, std::uint32_t ranks) : random_(seed), ranks_(ranks), program_(ranks) {
    trace::Comm odd;
    for (std::uint32_t r = 1; r < ranks; r += 2) odd.group.append(static_cast<std::int32_t>(r), 1, 1);
    odd_ = program_.source().edit().comms.add(odd);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::uint64_t bytes = 40'000;
      program_.p2p(r, Op::recv_init, from(r, 1), bytes, 77, 30).p2p(r, Op::send_init, to(r, 1), bytes, 77, 31);
    }
  }

  Program& make() {
    const int rounds = 3 + static_cast<int>(random_() % 12);
    for (int i = 0; i < rounds; ++i) {
      bytes_ = kSizes[random_() % std::size(kSizes)];
      switch (random_() % 12) {
        case 0: exchange(); break;
        case 1: pairs(); break;
        case 2: shift(); break;
        case 3:
        case 4: collective(); break;
        case 5: deferred(); break;
        case 6: fence(); break;
        case 7: epoch(); break;
        case 8: persistent(); break;
        case 9: gathered(); break;
        case 10: files(); break;
        default: modes(); break;
      }
    }
    return program_;
  }

 private:
  static constexpr std::uint64_t kSizes[] = {0, 8, 1000, 4096, 20'000, 65'536, 65'537, 300'000};
  std::int32_t to(std::uint32_t r, std::uint32_t by) const { return static_cast<std::int32_t>((r + by) % ranks_); }
  std::int32_t from(std::uint32_t r, std::uint32_t by) const { return static_cast<std::int32_t>((r + ranks_ - by) % ranks_); }
  Program& busy() {
    const auto kind = random_() % 8;
    return program_.compute(kind < 2 ? 0 : kind < 6 ? below(random_, 100'000) : below(random_, 3'000'000));
  }
  void exchange() {
    const auto by = static_cast<std::uint32_t>(random_() % ranks_);
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      busy().p2p(r, Op::irecv, from(r, by), bytes_, 1, 0);
      busy().p2p(r, Op::isend, to(r, by), bytes_, 1, 1);
      busy().wait(r, Op::waitall, {0, 1});
    }
  }
  void pairs() {
    for (std::uint32_t r = 0; r + 1 < ranks_; r += 2) {
      busy().p2p(r, Op::send, to(r, 1), bytes_, 2);
      busy().p2p(r, Op::recv, to(r, 1), bytes_, 3);
      busy().p2p(r + 1, Op::recv, static_cast<std::int32_t>(r), bytes_, 2);
      busy().p2p(r + 1, Op::send, static_cast<std::int32_t>(r), bytes_, 3);
    }
  }
  void shift() {
    const auto by = static_cast<std::uint32_t>(random_() % ranks_);
    for (std::uint32_t r = 0; r < ranks_; ++r) busy().sendrecv(r, to(r, by), from(r, by), bytes_);
  }
  CallEvent any_collective(std::uint32_t r, std::uint64_t draw) const {
    static constexpr Op kOps[] = {Op::barrier,   Op::bcast,    Op::reduce,         Op::allreduce, Op::gather, Op::scatter,
                                  Op::allgather, Op::alltoall, Op::reduce_scatter, Op::scan,      Op::exscan};
    CallEvent call;
    call.op = kOps[draw % std::size(kOps)];
    call.root = static_cast<std::int32_t>(draw / 16 % ranks_);
    call.bytes = bytes_ * (call.op == Op::alltoall ? ranks_ : 1);
    call.recv_bytes = bytes_ * (call.op == Op::alltoall || call.op == Op::allgather ? ranks_ : 1);
    if (call.op == Op::scatter) call.bytes = static_cast<std::int32_t>(r) == call.root ? bytes_ * ranks_ : 0;
    return call;
  }
  void collective() {
    const auto draw = random_();
    for (std::uint32_t r = 0; r < ranks_; ++r) busy().add(r, any_collective(r, draw));
    for (std::uint32_t r = 1; r < ranks_ && draw % 3 == 0; r += 2) busy().collective(r, Op::allreduce, bytes_, 0, odd_);
  }
  void deferred() {
    const auto draw = random_();
    const std::uint32_t number = 4;
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      CallEvent call = any_collective(r, draw);
      call.op = draw % 2 == 0 ? Op::iallreduce : Op::ibcast;
      call.bytes = bytes_;
      call.requests = {&number, 1};
      busy().add(r, call);
      busy().wait(r, Op::wait, {4});
    }
  }
  void fence() {
    const auto by = static_cast<std::uint32_t>(random_() % ranks_);
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      busy().p2p(r, Op::put, to(r, by), bytes_);
      busy().p2p(r, Op::get, from(r, by), bytes_ / 2);
      busy().collective(r, Op::win_fence, 0);
    }
  }
  void epoch() {
    const std::vector<std::uint64_t> root{0};
    std::vector<std::uint64_t> rest;
    for (std::uint32_t r = 1; r < ranks_; ++r) rest.push_back(r);
    const auto call = [](Op op, const std::vector<std::uint64_t>& members) {
      CallEvent c;
      c.op = op;
      c.counts = members;
      return c;
    };
    busy().add(0, call(Op::win_post, rest));
    busy().add(0, call(Op::win_wait, {}));
    for (std::uint32_t r = 1; r < ranks_; ++r) {
      busy().add(r, call(Op::win_start, root));
      program_.p2p(r, Op::accumulate, 0, bytes_);
      busy().add(r, call(Op::win_complete, {}));
    }
  }
  void persistent() {
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      busy().on_requests(r, Op::startall, {30, 31});
      busy().wait(r, Op::waitall, {31, 30});
    }
  }
  /// By rank 0 from any source, announced by a probe to the first of them.
  void gathered() {
    for (std::uint32_t r = 1; r < ranks_; ++r) {
      busy().p2p(0, Op::recv, trace::kAnyPeer, bytes_, 5);
      busy().p2p(r, random_() % 2 == 0 ? Op::send : Op::ssend, 0, bytes_, 5);
    }
    for (std::uint32_t r = 0; r < ranks_; ++r) busy().collective(r, Op::barrier, 0);
  }
  void files() {
    for (std::uint32_t r = 0; r < ranks_; ++r) busy().collective(r, random_() % 2 == 0 ? Op::file_write_at : Op::file_read, bytes_);
    for (std::uint32_t r = 0; r < ranks_; ++r) busy().collective(r, Op::file_write_all, bytes_);
  }
  void modes() {
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      busy().p2p(r, Op::ibsend, to(r, 1), bytes_, 6, 0);
      busy().p2p(r, Op::issend, to(r, 1), bytes_, 7, 1);
      busy().p2p(r, Op::probe, from(r, 1), 0, 6);
      busy().p2p(r, Op::recv, from(r, 1), bytes_, 6);
      busy().p2p(r, Op::recv, from(r, 1), bytes_, 7);
      busy().wait(r, Op::waitall, {1, 0});
    }
  }

  Random random_;
  std::uint32_t ranks_;
  Program program_;
  std::uint32_t odd_ = 0;
  std::uint64_t bytes_ = 0;
};

Machine any_machine(Random& random) {
  Machine m;
  switch (random() % 5) {
    case 0: m.topology.nodes = 12; break;
    case 1: m.topology = parse_xgft("XGFT(2;4,3;1,2)"); break;
    case 2: m.topology = parse_xgft("XGFT(3;2,2,3;1,2,2)"), m.topology.routing = Routing::random; break;
    case 3:
      m.topology.kind = "dragonfly";
      m.topology.nodes_per_switch = 2, m.topology.switches_per_group = 3, m.topology.global_links = 1;
      if (random() % 2 == 0) m.topology.routing = Routing::valiant;
      break;
    default:
      m.topology.kind = "torus";
      m.topology.extent = {3, 2, 2};
      if (random() % 2 == 0) m.topology.routing = Routing::valiant;
  }
  m.node.ranks = 1 + static_cast<std::uint32_t>(random() % 3);
  m.node.cores = random() % 2 == 0 ? 0 : 4;
  m.contention = random() % 4 == 0 ? Contention::none : Contention::full;
  m.lookahead = random() % 3 == 0 ? 0 : kUs;
  m.collectives = random() % 2 == 0 ? coll::Library::openmpi : coll::Library::mpich;
  if (random() % 2 == 0) {
    m.message.overhead = 500 * kNs;
    m.message.unexpected = 300 * kNs;
    m.message.call_overhead = 200 * kNs;
    m.message.match = 100 * kNs;
    m.message.reduce_ps_per_kib = 102'400;
  }
  m.switches.idle_fraction = 0.75;
  m.node.memory_idle = Watts(5), m.node.memory_active = Watts(20), m.node.base = Watts(40);
  m.node.core.power.at = {{Hertz(1.2e9), Watts(5.5), Watts(5.0)}, {Hertz(2.53e9), Watts(10.0), Watts(9.0)}};
  return m;
}

struct Replayed {
  Result result;
  Details details;
};

Replayed replay(Program& p, const Machine& m, const Policy& policy) {
  auto& source = p.source();
  const auto ranks = static_cast<std::uint32_t>(source.info().ranks.size());
  for (std::uint32_t r = 0; r < ranks; ++r) source.rewind(r);
  Engine engine(m, policy, source);
  Replayed out{engine.run(), {}};
  out.details = engine.details();
  return out;
}

std::vector<double> parts(const Energy& e) {
  return {e.edge_links.value, e.upper_links.value, e.switches.value, e.cards.value, e.cores.value, e.nodes.value};
}

/// Times and energies but for what rests.
void expect_same(const Replayed& a, const Replayed& b, const std::string& where) {
  EXPECT_EQ(a.result.makespan, b.result.makespan) << where;
  for (std::size_t r = 0; r < a.details.ranks.size(); ++r) ASSERT_EQ(a.details.ranks[r].end, b.details.ranks[r].end) << where << ", rank " << r;
  EXPECT_EQ(a.result.edge.busy, b.result.edge.busy) << where;
  EXPECT_EQ(a.result.upper.busy, b.result.upper.busy) << where;
}

void expect_sane(const Replayed& x, const Machine& m, const std::string& where) {
  const Result& r = x.result;
  const CoreTotals& c = r.cores;
  EXPECT_EQ(c.computing + c.in_calls + c.waiting + c.resting + c.changing, static_cast<Time>(r.ranks) * r.makespan) << where;
  EXPECT_GE(c.in_calls, 0) << where;
  for (const LinkTotals* t : {&r.edge, &r.upper}) {
    const TimeSum all = static_cast<TimeSum>(t->links) * r.makespan;
    EXPECT_GE(all - t->low - t->deep - t->narrow, 0) << where;
    EXPECT_LE(t->busy, all - t->low - t->deep) << where;
  }
  for (const LinkTotals& t : x.details.links) {
    EXPECT_GE(r.makespan - t.low - t.deep - t.narrow, 0) << where;
    EXPECT_LE(t.busy, r.makespan - t.low - t.deep) << where;
    EXPECT_GE(t.low, 0) << where;
    EXPECT_GE(t.narrow, 0) << where;
  }
  for (const RankDetail& d : x.details.ranks) {
    EXPECT_LE(d.end, r.makespan) << where;
    EXPECT_EQ(d.computing + d.in_calls + d.waiting + d.resting, d.end) << where;
    for (const Time t : {d.computing, d.in_calls, d.waiting, d.resting}) EXPECT_GE(t, 0) << where;
  }
  const double span = seconds(r.makespan).value;
  EXPECT_LE(r.energy.edge_links.value, (1 + 1e-12) * span * static_cast<double>(r.edge.links) * m.link.port.value) << where;
  EXPECT_LE(r.energy.upper_links.value, (1 + 1e-12) * span * static_cast<double>(r.upper.links) * m.link.port.value) << where;
  for (const double e : parts(r.energy)) EXPECT_GE(e, 0) << where;
}

class AnyProgram : public ::testing::TestWithParam<int> {
 protected:
  AnyProgram() : random_(static_cast<std::uint64_t>(GetParam()) * 7919) {
    machine_ = any_machine(random_);
    const std::uint32_t ranks = 2 + static_cast<std::uint32_t>(random_() % std::min(11u, 12 * machine_.node.ranks - 1));
    generator_ = std::make_unique<Generator>(random_(), ranks);
    program_ = &generator_->make();
    base_ = replay(*program_, machine_, make_policy("always-on", {}, machine_));
    where_ = "seed " + std::to_string(GetParam()) + " on " + machine_.topology.kind + (machine_.contention == Contention::none ? " loggp" : "");
  }
  PolicyOptions any_options(bool parts = true) {
    PolicyOptions o;
    o.deep_timer = random_() % 3 == 0 ? 400 * kUs : kNever;
    o.switches = parts && random_() % 3 == 0;
    o.cards = parts && random_() % 3 == 0;
    o.upper_links = random_() % 4 != 0;
    o.idle_timer = below(random_, 3) * 30 * kUs;
    o.part_timer = 200 * kUs;
    return o;
  }

  Random random_;
  Machine machine_;
  std::unique_ptr<Generator> generator_;
  Program* program_ = nullptr;
  Replayed base_;
  std::string where_;
};

TEST_P(AnyProgram, AddsUpUnderEveryPolicy) {
  for (const PolicyInfo& info : policies()) {
    PolicyOptions o = any_options();
    o.compress.ratio = random_() % 3 == 0 ? 0.5 : 1;
    o.core.name = core_policies()[random_() % core_policies().size()].name;
    if (o.core.name == "fixed") o.core.frequency = Hertz(1.2e9);
    expect_sane(replay(*program_, machine_, make_policy(info.name, o, machine_)), machine_, where_ + ", " + info.name + ", cores " + o.core.name);
  }
}

TEST_P(AnyProgram, RecordingChangesNothingAndItsPathAddsUp) {
  for (const PolicyInfo& info : policies()) {
    PolicyOptions o = any_options();
    o.compress.ratio = random_() % 3 == 0 ? 0.5 : 1;
    o.core.name = random_() % 2 == 0 ? "sleep" : "yield";
    const Policy policy = make_policy(info.name, o, machine_);
    const Result bare = replay(*program_, machine_, policy).result;
    auto& source = program_->source();
    const auto ranks = static_cast<std::uint32_t>(source.info().ranks.size());
    for (std::uint32_t r = 0; r < ranks; ++r) source.rewind(r);
    TimelineOptions timeline;
    Recorder recorder(ranks, machine_.node.ranks, &timeline, true);
    Engine engine(machine_, policy, source);
    engine.record(recorder);
    std::string with = to_json(engine.run()), without = to_json(bare);
    EXPECT_EQ(with, without) << where_ << ", " << info.name;
    const Details d = engine.details();
    std::uint32_t last = 0;
    for (std::uint32_t r = 1; r < ranks; ++r) last = d.ranks[r].end > d.ranks[last].end ? r : last;
    Time sum = 0;
    for (const PathShare& s : recorder.path()->result(last, d.ranks[last].end).ranks) {
      sum += s.total();
      for (const Time t : {s.computing, s.in_calls, s.transfer, s.link_wake, s.core_wake}) EXPECT_GE(t, 0) << where_ << ", " << info.name;
      if (std::string_view(info.name) == "oracle") {
        EXPECT_EQ(s.link_wake, 0) << where_;  // its links are back in time
      }
    }
    EXPECT_EQ(sum, bare.makespan) << where_ << ", " << info.name;
    if (recorder.complete_until() < kNever) continue;
    TimeSum low = 0, deep = 0;
    for (const LinkSpan& s : recorder.links()) {
      low += s.state == LinkState::low ? s.end - s.begin : 0;
      deep += s.state == LinkState::deep ? s.end - s.begin : 0;
    }
    EXPECT_EQ(static_cast<Time>(low), static_cast<Time>(bare.edge.low)) << where_ << ", " << info.name;
    EXPECT_EQ(static_cast<Time>(deep), static_cast<Time>(bare.edge.deep)) << where_ << ", " << info.name;
  }
}

TEST_P(AnyProgram, TheOracleTakesNoTimeAndNoMoreEnergy) {
  PolicyOptions o = any_options();
  o.core.name = "oracle";
  const Replayed oracle = replay(*program_, machine_, make_policy("oracle", o, machine_));
  expect_same(oracle, base_, where_);
  const auto ours = parts(oracle.result.energy), all = parts(base_.result.energy);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_LE(ours[i], all[i] * (1 + 1e-12)) << where_ << ", part " << i;
}

TEST_P(AnyProgram, WhatNeverRestsTakesAsLong) {
  PolicyOptions never;
  never.idle_timer = kNever;
  never.budget = 0;
  never.upper_links = random_() % 2 == 0;
  for (const char* name : {"hardware", "adaptive"}) {
    const Replayed found = replay(*program_, machine_, make_policy(name, never, machine_));
    expect_same(found, base_, where_ + ", " + name);
    EXPECT_EQ(found.result.edge.low, 0) << where_ << ", " << name;
    EXPECT_DOUBLE_EQ(found.result.energy.edge_links.value, base_.result.energy.edge_links.value) << where_ << ", " << name;
  }
}

TEST_P(AnyProgram, WhatRestsAndWakesAtOnceTakesAsLong) {
  Machine quick = machine_;
  quick.link.rest.down = quick.link.rest.up = 0;
  PolicyOptions o = any_options(false);
  o.deep_timer = kNever;
  const Replayed found = replay(*program_, quick, make_policy("hardware", o, quick));
  expect_same(found, base_, where_);
  EXPECT_LE(found.result.energy.total().value, base_.result.energy.total().value * (1 + 1e-12)) << where_;
}

TEST_P(AnyProgram, TwiceTheWattsAreTwiceTheEnergy) {
  Machine twice = machine_;
  for (Watts* w : {&twice.link.port, &twice.node.card.idle, &twice.node.card.active, &twice.node.memory_idle, &twice.node.memory_active, &twice.node.base,
                   &twice.node.core.power.compute, &twice.node.core.power.spin, &twice.node.core.power.yield, &twice.node.core.power.sleep}) {
    w->value *= 2;
  }
  const PolicyOptions o = any_options();
  for (const char* name : {"hardware", "oracle"}) {
    const Result once = replay(*program_, machine_, make_policy(name, o, machine_)).result;
    const Result both = replay(*program_, twice, make_policy(name, o, twice)).result;
    EXPECT_EQ(once.makespan, both.makespan) << where_;
    const auto a = parts(once.energy), b = parts(both.energy);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_DOUBLE_EQ(b[i], 2 * a[i]) << where_ << ", part " << i;
  }
}

TEST_P(AnyProgram, TwiceAsSlowIsTwiceAsLong) {
  Machine slow = machine_;
  for (Time* t : {&slow.link.ps_per_kib, &slow.link.latency, &slow.link.rest.down, &slow.link.rest.up, &slow.link.deep.down, &slow.link.deep.up,
                  &slow.node.memory_ps_per_kib, &slow.node.memory_latency, &slow.message.overhead, &slow.message.unexpected, &slow.message.call_overhead,
                  &slow.message.latency, &slow.message.match, &slow.message.reduce_ps_per_kib, &slow.storage.latency, &slow.storage.node_ps_per_kib,
                  &slow.storage.ps_per_kib, &slow.lookahead, &slow.node.card.states.rest.down, &slow.node.card.states.rest.up,
                  &slow.switches.states.rest.down, &slow.switches.states.rest.up, &slow.node.core.sleep_down, &slow.node.core.wake}) {
    *t *= 2;
  }
  slow.node.compute_ps_per_ns *= 2;
  PolicyOptions o = any_options();
  o.core.name = "sleep";
  for (const char* name : {"always-on", "hardware", "calls", "oracle"}) {
    const Result once = replay(*program_, machine_, make_policy(name, o, machine_)).result;
    PolicyOptions with = o;
    with.idle_timer *= 2;
    with.part_timer *= 2;
    if (with.deep_timer != kNever) with.deep_timer *= 2;
    const Result twice = replay(*program_, slow, make_policy(name, with, slow)).result;
    EXPECT_EQ(twice.makespan, 2 * once.makespan) << where_ << ", " << name;
    EXPECT_EQ(twice.edge.low, 2 * once.edge.low) << where_ << ", " << name;
    EXPECT_EQ(twice.upper.low, 2 * once.upper.low) << where_ << ", " << name;
    EXPECT_EQ(twice.cores.resting, 2 * once.cores.resting) << where_ << ", " << name;
    const auto a = parts(once.energy), b = parts(twice.energy);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i], 2 * a[i], 1e-12 * b[i]) << where_ << ", " << name << ", part " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyProgram, ::testing::Range(1, 41));

}  // namespace
}  // namespace fallow::sim
