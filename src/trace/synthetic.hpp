// Streams of events like those of real programs, for tests and measurements. The same seed gives the same events.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

#include "trace/event.hpp"

namespace fallow::trace::synthetic {

/// Feeds events of one rank to `sink(const CallEvent&)`.
template <class Sink>
class Program {
 public:
  Program(Sink sink, std::uint32_t seed, double jitter) : sink_(sink), random_(seed), jitter_(jitter) {}

  void compute(double ns) { now_ += noisy(ns); }

  void call(CallEvent e, double ns, double wait_share = 0.0) {
    e.enter_ns = now_;
    const std::uint64_t d = noisy(ns);
    e.exit_ns = now_ + d;
    e.wait_ns = static_cast<std::uint64_t>(wait_share * static_cast<double>(d));
    e.compute_ns = now_ - last_exit_;
    now_ = last_exit_ = e.exit_ns;
    ++events_;
    sink_(e);
  }

  void exchange(std::int32_t peer, std::uint64_t bytes, std::int32_t tag, std::uint32_t site) {
    const std::uint32_t requests[] = {0, 1};
    CallEvent e;
    e.comm = kCommWorld, e.peer = peer, e.tag = tag, e.bytes = bytes, e.site = site;
    e.op = Op::irecv, e.requests = {requests, 1};
    call(e, 400);
    compute(300);
    e.op = Op::isend, e.requests = {requests + 1, 1}, e.site = site + 1;
    call(e, 1200);
    compute(200);
    CallEvent w;
    w.op = Op::waitall, w.completed = requests, w.site = site + 2;
    call(w, 4000 + static_cast<double>(bytes) / 5, 0.7);
  }

  void allreduce(std::uint64_t bytes, std::uint32_t site) {
    CallEvent e;
    e.op = Op::allreduce, e.comm = kCommWorld, e.bytes = bytes, e.site = site;
    call(e, 15000, 0.8);
  }

  /// Six neighbours, then a reduction: one step of a stencil.
  void stencil_step() {
    for (std::int32_t p = 0; p < 6; ++p) {
      compute(20e3);
      exchange(p + 1, 8192, p, 1 + 3 * static_cast<std::uint32_t>(p));
    }
    compute(1e6);
    allreduce(8, 40);
  }

  /// A V-cycle: exchanges on each level, of the size and the computation of the level.
  void multigrid_cycle(int levels) {
    for (int i = 0; i < 2 * levels; ++i) {
      const int level = i < levels ? levels - i : i - levels + 1;
      const auto bytes = std::uint64_t{64} << (2 * level);
      for (std::int32_t axis = 0; axis < 3; ++axis) {
        for (std::int32_t side = 0; side < 2; ++side) {
          compute(500.0 * static_cast<double>(1 << (2 * level)));
          exchange(2 * axis + side + 1 + 8 * (level == 1 ? 1 : 0), bytes, 10 + axis, (i < levels ? 1u : 20u) + 6 * static_cast<std::uint32_t>(axis) + 3 * static_cast<std::uint32_t>(side));
        }
      }
    }
    allreduce(8, 60);
  }

  /// Pipelined sweep of small messages, as in LU.
  void wavefront(int planes) {
    for (int k = 0; k < planes; ++k) {
      CallEvent e;
      e.comm = kCommWorld, e.bytes = 1320, e.tag = 1;
      e.op = Op::recv, e.peer = 1, e.site = 70;
      call(e, 6000, 0.9);
      e.peer = 2, e.site = 71;
      call(e, 3000, 0.9);
      compute(60e3);
      e.op = Op::send, e.peer = 3, e.site = 72;
      call(e, 900);
      e.peer = 4, e.site = 73;
      call(e, 900);
    }
  }

  /// Sizes and partners that change from time to time, as in molecular dynamics.
  void particles_step() {
    for (std::int32_t p = 0; p < 6; ++p) {
      CallEvent e;
      e.comm = kCommWorld, e.peer = p, e.recv_peer = p ^ 1, e.tag = e.recv_tag = 0;
      e.op = Op::sendrecv, e.site = 80 + static_cast<std::uint32_t>(p);
      e.bytes = 24 * (1000 + random_() % 40), e.recv_bytes = 24 * (1000 + random_() % 40);
      call(e, 9000, 0.4);
      compute(5e3);
    }
    compute(400e3);
    if (random_() % 8 == 0) allreduce(48, 90);
  }

  std::uint64_t events() const noexcept { return events_; }

 private:
  std::uint64_t noisy(double ns) {
    // Log-normal, so that waits have their long tail.
    return static_cast<std::uint64_t>(ns * std::exp(jitter_ * normal_(random_)));
  }

  Sink sink_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  double jitter_;
  std::uint64_t now_ = 1000, last_exit_ = 0, events_ = 0;
};

}  // namespace fallow::trace::synthetic
