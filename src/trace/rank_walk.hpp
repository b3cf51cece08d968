// Opens bytes as a rank file and walks over all of it; for fuzzing. Throws RankFileError if it is refused.
#pragma once

#include "trace/rank_test_writer.hpp"

namespace fallow::trace::testing {

/// Reads everything there is; the sum keeps the reads from being optimized away.
inline double walk_rank(std::vector<std::byte> bytes) {
  const RankReader reader = read_rank(std::move(bytes));
  double sum = static_cast<double>(field_text(reader.header().program).size());
  for (const auto& op : reader.header().ops) sum += static_cast<double>(field_text(op.name).size());
  for (std::uint32_t i = 0; i < reader.block_count(); ++i) {
    const ThreadBlock block = reader.block(i);
    sum += reader.seconds(block.counters().computing).value;
    for (const auto& op : block.ops()) sum += static_cast<double>(op.calls);
    for (const auto& site : block.sites()) {
      if (site.stats.op >= reader.header().op_slots) __builtin_trap();
      sum += reader.seconds(site.stats.ticks).value;
    }
    std::uint64_t last = 0;
    for (const auto& event : block.events(1U << 20)) {
      if (event.enter < last) __builtin_trap();
      last = event.exit;
      sum += static_cast<double>(reader.wall_time(event.enter).value);
    }
  }
  return sum;
}

}  // namespace fallow::trace::testing
