#include "sim/synth.hpp"

#include <array>
#include <stdexcept>
#include <string>

#include "sim/time.hpp"
#include "sim/topology.hpp"

namespace fallow::sim {
namespace {

using trace::CallEvent;
using trace::Op;

constexpr std::int64_t kLongestRun = std::int64_t{1} << 62;  // ns, as traces count

/// What a generator says of one call; the rest of the event follows from it.
struct Call {
  Op op = Op::other;
  std::int32_t peer = trace::kNoPeer;
  std::uint64_t bytes = 0;
  std::uint32_t request = trace::kNoRequest;
  std::uint32_t waits_for = 0;  ///< requests 0 .. waits_for - 1
  std::uint32_t site = 0;
  std::int32_t tag = trace::kNoTag;
  bool computes = false;        ///< the iteration's computation comes before it
};

/// How ranks lie in three dimensions, as even as their number's factors allow.
struct Grid {
  std::uint32_t n[3] = {1, 1, 1};

  explicit Grid(std::uint32_t ranks) {
    std::vector<std::uint32_t> factors;
    for (std::uint32_t f = 2; std::uint64_t{f} * f <= ranks; ++f) {
      for (; ranks % f == 0; ranks /= f) factors.push_back(f);
    }
    if (ranks > 1) factors.push_back(ranks);
    for (; !factors.empty(); factors.pop_back()) *smallest() *= factors.back();
  }

  /// Neighbour 0 .. 5: down and up along each dimension, around the ends.
  std::uint32_t neighbor(std::uint32_t rank, std::uint32_t which) const noexcept {
    const std::uint32_t d = which / 2;
    const std::uint32_t stride = d == 0 ? 1 : d == 1 ? n[0] : n[0] * n[1];
    const std::uint32_t x = rank / stride % n[d];
    const std::uint32_t to = (which & 1) == 0 ? (x == 0 ? n[d] - 1 : x - 1) : (x + 1 == n[d] ? 0 : x + 1);
    return rank - x * stride + to * stride;
  }

 private:
  std::uint32_t* smallest() noexcept {
    std::uint32_t* s = &n[0];
    for (std::uint32_t* d = n + 1; d != n + 3; ++d) {
      if (*d < *s) s = d;
    }
    return s;
  }
};

constexpr std::uint32_t kMaxCalls = 64;  // per iteration and rank

/// A rank's calls of one iteration; the same number in each.
class Program : public trace::EventSource {
 public:
  Program(const SynthOptions& options, std::uint32_t calls, const char* name)
      : options_(options), calls_(calls), next_(options.ranks, 0) {
    info_.program = name;
    info_.ranks.resize(options.ranks);
    for (auto& rank : info_.ranks) rank.events = std::uint64_t{calls} * options.iterations;
    info_.comms = trace::CommGroups(options.ranks);
    for (std::uint32_t i = 0; i < kMaxCalls; ++i) numbers_[i] = i;
    info_.modules.resize(1);
    info_.sites.resize(1);
    for (std::uint32_t i = 1; i <= calls; ++i) info_.sites.push_back({.label = std::string(name) + ", call " + std::to_string(i)});
  }

  const trace::TraceInfo& info() const noexcept override { return info_; }
  void rewind(std::uint32_t rank) override { next_[rank] = 0; }

  bool next(std::uint32_t rank, CallEvent& event) final {
    const std::uint64_t position = next_[rank];
    const auto iteration = static_cast<std::uint32_t>(position / kMaxCalls);
    const auto index = static_cast<std::uint32_t>(position % kMaxCalls);
    if (iteration >= options_.iterations) return false;
    next_[rank] = index + 1 == calls_ ? std::uint64_t{iteration + 1} * kMaxCalls : position + 1;
    give(rank, iteration, index, event);
    return true;
  }
  void again(std::uint32_t rank, CallEvent& event) final {
    const std::uint64_t next = next_[rank];
    const auto index = static_cast<std::uint32_t>(next % kMaxCalls), iteration = static_cast<std::uint32_t>(next / kMaxCalls);
    give(rank, index == 0 ? iteration - 1 : iteration, index == 0 ? calls_ - 1 : index - 1, event);
  }
  void prefetch(std::uint32_t rank, unsigned step) const noexcept final {
    if (step == 0) __builtin_prefetch(&next_[rank], 1);
  }

 protected:
  virtual void make(std::uint32_t rank, std::uint32_t iteration, std::uint32_t index, Call& call) const noexcept = 0;
  const SynthOptions& options() const noexcept { return options_; }
  /// Step 0 to 2 of a message from one rank and one to another: a receive, the send, the wait for the receive.
  void exchange(std::uint32_t step, std::uint32_t from, std::uint32_t to, std::uint32_t tag, Call& call) const noexcept {
    call.op = step == 0 ? Op::irecv : step == 1 ? Op::send : Op::wait;
    if (step == 2) {
      call.waits_for = 1;
      return;
    }
    call.peer = static_cast<std::int32_t>(step == 0 ? from : to);
    call.bytes = options_.bytes;
    call.tag = static_cast<std::int32_t>(tag);
    if (step == 0) call.request = 0;
  }

 private:
  void give(std::uint32_t rank, std::uint32_t iteration, std::uint32_t index, CallEvent& event) const noexcept {
    Call call;
    make(rank, iteration, index, call);
    event.op = call.op;
    event.flags = 0;
    event.comm = trace::kCommWorld;
    event.site = call.site;
    event.peer = call.peer;
    event.tag = call.tag;
    event.root = trace::kNoPeer;
    event.bytes = call.bytes;
    event.recv_bytes = call.op == Op::alltoall ? call.bytes : 0;
    event.compute_ns = call.computes ? compute(rank, iteration) : 0;
    event.requests = {numbers_.data() + (call.request == trace::kNoRequest ? 0 : call.request), call.request == trace::kNoRequest ? 0u : 1u};
    event.completed = {numbers_.data(), call.waits_for};
  }

  std::uint64_t compute(std::uint32_t rank, std::uint32_t iteration) const noexcept {
    const auto base = static_cast<std::uint64_t>(options_.compute.value);
    if (options_.jitter == 0) return base;
    const std::uint64_t draw = mix(options_.seed ^ mix(std::uint64_t{rank} << 32 | iteration)) >> 40;  // 24 bits
    const double share = options_.jitter * (static_cast<double>(draw) / (1 << 23) - 1);
    return static_cast<std::uint64_t>(static_cast<double>(base) * (1 + share));
  }

  SynthOptions options_;
  std::uint32_t calls_;
  trace::TraceInfo info_;
  std::vector<std::uint64_t> next_;
  std::array<std::uint32_t, kMaxCalls> numbers_{};
};

/// Six neighbours, one wait, one all-reduce.
class Stencil final : public Program {
 public:
  explicit Stencil(const SynthOptions& o) : Program(o, 14, "stencil3d"), grid_(o.ranks) {}
  void make(std::uint32_t rank, std::uint32_t, std::uint32_t index, Call& call) const noexcept override {
    call.site = index + 1;
    if (index < 12) {
      const std::uint32_t which = index < 6 ? index : (index - 6) ^ 1u;
      call.op = index < 6 ? Op::irecv : Op::isend;
      call.peer = static_cast<std::int32_t>(grid_.neighbor(rank, index < 6 ? which : index - 6));
      call.tag = static_cast<std::int32_t>(which);
      call.bytes = options().bytes;
      call.request = index;
      call.computes = index == 0;
    } else if (index == 12) {
      call.op = Op::waitall;
      call.waits_for = 12;
    } else {
      call.op = Op::allreduce;
      call.bytes = options().reduce_bytes;
    }
  }

 private:
  Grid grid_;
};

/// Conjugate gradients: partners at distances of 1, 4 and 16 for the matrix product, two dot products.
class Cg final : public Program {
 public:
  explicit Cg(const SynthOptions& o) : Program(o, 3 * kPartners + 2, "cg") {}
  static constexpr std::uint32_t kPartners = 3;
  void make(std::uint32_t rank, std::uint32_t, std::uint32_t index, Call& call) const noexcept override {
    call.site = index + 1;
    if (index < 3 * kPartners) {
      const std::uint32_t distance = (std::uint32_t{1} << (index / 3 * 2)) % options().ranks;
      const std::uint32_t n = options().ranks;
      exchange(index % 3, (rank + n - distance) % n, (rank + distance) % n, index / 3, call);
      call.computes = index == 0;
    } else {
      call.op = Op::allreduce;
      call.bytes = options().reduce_bytes;
    }
  }
};

/// A transposition and a check sum.
class Fft final : public Program {
 public:
  explicit Fft(const SynthOptions& o) : Program(o, 2, "fft") {}
  void make(std::uint32_t, std::uint32_t, std::uint32_t index, Call& call) const noexcept override {
    call.site = index + 1;
    call.op = index == 0 ? Op::alltoall : Op::allreduce;
    call.bytes = index == 0 ? options().bytes * options().ranks : 16;
    call.computes = index == 0;
  }
};

class Alltoall final : public Program {
 public:
  explicit Alltoall(const SynthOptions& o) : Program(o, 1, "alltoall") {}
  void make(std::uint32_t, std::uint32_t, std::uint32_t, Call& call) const noexcept override {
    call.site = 1;
    call.op = Op::alltoall;
    call.bytes = options().bytes * options().ranks;
    call.computes = true;
  }
};

/// Every iteration each rank exchanges with one that a random shift picks.
class Random final : public Program {
 public:
  explicit Random(const SynthOptions& o) : Program(o, 3, "random") {}
  void make(std::uint32_t rank, std::uint32_t iteration, std::uint32_t index, Call& call) const noexcept override {
    const std::uint32_t n = options().ranks;
    const auto shift = static_cast<std::uint32_t>(mix(options().seed ^ iteration) % n);
    call.site = index + 1;
    exchange(index, (rank + n - shift) % n, (rank + shift) % n, 0, call);
    call.computes = index == 0;
  }
};

template <class P>
std::unique_ptr<trace::EventSource> make_program(const SynthOptions& options) {
  return std::make_unique<P>(options);
}

constexpr SynthInfo kInfos[] = {
    {"stencil3d", "six neighbours in three dimensions, one all-reduce"},
    {"cg", "conjugate gradients: three partners, two all-reduces"},
    {"fft", "one all-to-all, one small all-reduce"},
    {"alltoall", "one all-to-all"},
    {"random", "a permutation by a random shift"},
};
constexpr std::unique_ptr<trace::EventSource> (*kMakers[])(const SynthOptions&) = {
    make_program<Stencil>, make_program<Cg>, make_program<Fft>, make_program<Alltoall>, make_program<Random>};

}  // namespace

std::span<const SynthInfo> synth_programs() noexcept { return kInfos; }

std::unique_ptr<trace::EventSource> synthesize(std::string_view program, const SynthOptions& options) {
  if (options.ranks == 0 || options.ranks > kMaxRanks) throw std::invalid_argument("a program has 1 to 1048576 ranks");
  const double longest = static_cast<double>(options.compute.value) * (1 + options.jitter) * options.iterations;
  if (longest > static_cast<double>(kLongestRun)) throw std::invalid_argument("the program computes for more than 146 years, which no trace holds");
  if (options.jitter < 0 || options.jitter >= 1) throw std::invalid_argument("jitter is a share from 0 to below 1");
  for (std::size_t i = 0; i < std::size(kInfos); ++i) {
    if (program == kInfos[i].name) return kMakers[i](options);
  }
  throw std::invalid_argument("no program is called '" + std::string(program) + "'");
}

}  // namespace fallow::sim
