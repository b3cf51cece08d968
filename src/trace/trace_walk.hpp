// Opens bytes as a trace and walks over all of it; for fuzzing. True if it could be read, false if it was refused.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "trace/outcomes.hpp"
#include "trace/trace_test_files.hpp"

namespace fallow::trace::testing {

/// All of an event but its times.
class Digest {
 public:
  void add(const CallEvent& e) noexcept {
    for (const std::uint64_t v : {std::uint64_t{static_cast<std::uint16_t>(e.op)}, std::uint64_t{e.flags}, std::uint64_t{e.thread}, std::uint64_t{e.comm},
                                  std::uint64_t{e.site}, e.bytes, e.recv_bytes, e.compute_ns}) mix(v);
    for (const std::int32_t v : {e.peer, e.tag, e.recv_peer, e.recv_tag, e.root}) mix(static_cast<std::uint32_t>(v));
    add_all(e.counts), add_all(e.recv_counts), add_all(e.requests), add_all(e.completed);
  }
  friend bool operator==(const Digest&, const Digest&) = default;

 private:
  void mix(std::uint64_t v) noexcept { sum_ = (sum_ ^ v) * 0x9e3779b97f4a7c15u, sum_ ^= sum_ >> 29; }
  template <class Numbers>
  void add_all(const Numbers& numbers) noexcept {
    mix(numbers.size());
    for (const auto v : numbers) mix(v);
  }
  std::uint64_t sum_ = 0;
};

inline Digest digest(const CallEvent& e) noexcept {
  Digest d;
  d.add(e);
  return d;
}

/// Whether what replays is given the same events, less their times, as `whole` tells by rank: a few calls of each rank in turn, some
/// of them twice, and all again after some.
inline bool replays_alike(TraceReader& trace, std::span<const Digest> whole) {
  trace.leave_out_times(true);
  CallEvent e;
  for (const std::uint64_t most : {std::uint64_t{37}, ~std::uint64_t{0}}) {
    std::vector<Digest> got(whole.size());
    for (std::uint32_t r = 0; r < whole.size(); ++r) trace.rewind(r);
    std::uint64_t given = 0;
    for (bool more = true; more && given < most;) {
      more = false;
      for (std::uint32_t r = 0; r < whole.size(); ++r) {
        for (std::uint32_t n = 0; n < 1 + r % 5 && trace.next(r, e); ++n, ++given, more = true) {
          got[r].add(e);
          const Digest before = digest(e);
          if (given % 7 == 0 && (trace.again(r, e), digest(e) != before)) return false;
        }
      }
    }
    if (most == ~std::uint64_t{0} && !std::ranges::equal(got, whole)) return false;
  }
  return true;
}

inline bool walk_trace(std::vector<std::byte> bytes, bool may_be_damaged = true) {
  try {
    const auto trace = read_bytes(std::move(bytes));
    CallEvent e;
    std::uint64_t sum = 0;
    std::vector<Digest> whole(std::min<std::size_t>(trace->info().ranks.size(), 1024));
    for (std::uint32_t r = 0; r < trace->info().ranks.size() && r < 1024; ++r) {
      std::uint64_t last = 0;
      while (trace->next(r, e)) {
        if (static_cast<std::size_t>(e.op) >= kOps || e.exit_ns < e.enter_ns || e.site >= trace->info().sites.size()) __builtin_trap();
        if (e.thread == 0 && e.enter_ns < last && trace->blocks(r).back().thread == 0) __builtin_trap();
        last = e.thread == 0 ? e.exit_ns : last;
        whole[r].add(e);
        for (const auto v : e.counts) sum += v;
        for (const auto v : e.completed) sum += v;
        sum += op_name(e.op).size() + static_cast<std::uint64_t>(trace->info().comms.world_rank(e.comm, static_cast<std::int32_t>(r), e.peer));
      }
      trace->seek(r, sum % 100'000);
    }
    Outcomes told(*trace);
    for (std::uint32_t r = 0; r < trace->info().ranks.size() && r < 1024; ++r) {
      told.rewind(r);
      while (told.next(r, e)) {
        sum += static_cast<std::uint64_t>(e.peer) + e.requests.size();
        for (const auto v : e.counts) sum += v;
      }
    }
    if (!replays_alike(*trace, whole)) __builtin_trap();
    return trace->problems().empty() && sum != 1;
  } catch (const TraceFileError& e) {
    if (!may_be_damaged || std::string_view(e.what()).find(": at offset ") == std::string_view::npos) __builtin_trap();
    return false;
  }
}

}  // namespace fallow::trace::testing
