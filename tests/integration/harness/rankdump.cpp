// Prints one rank file's totals as JSON. It shares only the layout with the code under test.
#include "trace/rank_file.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

using namespace fallow::trace;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<char> data((std::istreambuf_iterator<char>(file)), {});
  if (data.size() < kHeaderBytes) return std::fprintf(stderr, "%s: short\n", argv[1]), 1;
  const auto* head = reinterpret_cast<const RankHeader*>(data.data());
  if (head->version != kRankVersion) return std::fprintf(stderr, "%s: version %u\n", argv[1], head->version), 1;
  std::vector<std::uint64_t> calls(head->op_slots);
  std::uint64_t sleeps = 0, wakes = 0, sent = 0, received = 0, awake = 0, asleep = 0, delay = 0, absorbed = 0;
  for (std::uint32_t b = 0; b < head->blocks_used; ++b) {
    const std::size_t offset = head->header_bytes + b * head->block_bytes;
    if (offset + head->block_bytes > data.size()) break;
    const auto* counters = reinterpret_cast<const ThreadCounters*>(data.data() + offset);
    const auto* ops = reinterpret_cast<const OpStats*>(data.data() + offset + head->counters_bytes);
    sleeps += counters->sleeps;
    wakes += counters->wakes_sent;
    sent += counters->bytes_sent;
    received += counters->bytes_received;
    awake += counters->wait_awake;
    asleep += counters->wait_asleep;
    delay += counters->wake_delay;
    absorbed += counters->wake_absorbed;
    for (std::uint32_t o = 0; o < head->op_slots; ++o) calls[o] += ops[o].calls;
  }
  const double hz = head->tick_hz > 0 ? head->tick_hz : 1e9;
  std::printf("{\"world_rank\": %d, \"world_size\": %d, \"local_size\": %d, \"pid\": %d, \"mode\": %u, \"finalized\": %u, \"hook\": %u, \"sleeps\": %" PRIu64 ", \"wakes_sent\": %" PRIu64
              ", \"bytes_sent\": %" PRIu64 ", \"bytes_received\": %" PRIu64 ", \"wait_awake_s\": %.6f, \"wait_asleep_s\": %.6f, \"wake_delay_s\": %.9f, \"wake_absorbed_s\": %.9f, "
              "\"calls\": {",
              head->world_rank, head->world_size, head->local_size, head->pid, head->mode, head->finalized, head->hook, sleeps, wakes, sent, received,
              static_cast<double>(awake) / hz, static_cast<double>(asleep) / hz, static_cast<double>(delay) / hz, static_cast<double>(absorbed) / hz);
  const char* comma = "";
  for (std::uint32_t o = 0; o < head->op_slots; ++o) {
    if (calls[o] == 0) continue;
    std::printf("%s\"%.*s\": %" PRIu64, comma, static_cast<int>(sizeof head->ops[o].name), head->ops[o].name, calls[o]);
    comma = ", ";
  }
  std::puts("}}");
}
