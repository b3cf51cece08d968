// Opens bytes as a trace and walks over all of it; for fuzzing. True if it could be read, false if it was refused.
#pragma once

#include "trace/outcomes.hpp"
#include "trace/trace_test_files.hpp"

namespace fallow::trace::testing {

inline bool walk_trace(std::vector<std::byte> bytes, bool may_be_damaged = true) {
  try {
    const auto trace = read_bytes(std::move(bytes));
    CallEvent e;
    std::uint64_t sum = 0;
    for (std::uint32_t r = 0; r < trace->info().ranks.size() && r < 1024; ++r) {
      std::uint64_t last = 0;
      while (trace->next(r, e)) {
        if (static_cast<std::size_t>(e.op) >= kOps || e.exit_ns < e.enter_ns || e.site >= trace->info().sites.size()) __builtin_trap();
        if (e.thread == 0 && e.enter_ns < last && trace->blocks(r).back().thread == 0) __builtin_trap();
        last = e.thread == 0 ? e.exit_ns : last;
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
    return trace->problems().empty() && sum != 1;
  } catch (const TraceFileError& e) {
    if (!may_be_damaged || std::string_view(e.what()).find(": at offset ") == std::string_view::npos) __builtin_trap();
    return false;
  }
}

}  // namespace fallow::trace::testing
