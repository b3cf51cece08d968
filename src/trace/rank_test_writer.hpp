// Builds rank files in memory for tests: a valid file with known contents, to be read or damaged.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "trace/memory_bytes.hpp"
#include "trace/rank_reader.hpp"

namespace fallow::trace::testing {

/// Shape and contents of a test file. Times are ticks of a 1 GHz clock: nanoseconds.
struct TestFile {
  std::uint32_t op_slots = 4;
  std::uint32_t site_slots = 8;
  std::uint32_t ring_events = 16;
  std::uint32_t blocks = 1;
  std::uint64_t events = 20;  ///< of 1,000 ns each, 2,000 ns apart; more than ring_events wraps the ring

  static constexpr std::uint64_t kStart = 1'000'000;
  static constexpr std::uint64_t kGap = 2'000;
  static constexpr std::uint64_t kCall = 1'000;

  std::vector<std::byte> build() const {
    RankHeader h{};
    fill(h);
    std::vector<std::byte> bytes(kHeaderBytes + blocks * h.block_bytes);
    std::memcpy(bytes.data(), &h, sizeof(h));
    for (std::uint32_t b = 0; b < blocks; ++b) fill_block(bytes.data() + kHeaderBytes + b * h.block_bytes);
    return bytes;
  }

 private:
  void fill(RankHeader& h) const {
    std::memcpy(h.magic, kRankMagic, sizeof(kRankMagic));
    h.version = kRankVersion;
    h.header_bytes = kHeaderBytes;
    h.op_slots = op_slots;
    h.site_slots = site_slots;
    h.ring_events = ring_events;
    h.bins = kHistogramBins;
    h.op_info_bytes = sizeof(OpInfo);
    h.counters_bytes = sizeof(ThreadCounters);
    h.op_stats_bytes = sizeof(OpStats);
    h.site_stats_bytes = sizeof(SiteStats);
    h.event_bytes = sizeof(Event);
    h.block_bytes = sizeof(ThreadCounters) + op_slots * sizeof(OpStats) + site_slots * sizeof(SiteStats) +
                    ring_events * sizeof(Event);
    h.blocks_used = blocks;
    h.world_rank = 1;
    h.world_size = 4;
    h.tick_hz = 1e9;
    h.slowdown_budget = 0.01;
    h.tick_start = kStart;
    h.wall_start_ns = 1'700'000'000'000'000'000;
    std::strcpy(h.host, "node");
    std::strcpy(h.ops[1].name, "MPI_Recv");
    h.ops[1].kind = static_cast<std::uint8_t>(OpKind::recv);
    h.ops[1].blocks = 1;
    h.modules_used = 1;
    h.modules[0].base = 0x400000;
    h.modules[0].end = 0x500000;
    std::strcpy(h.modules[0].path, "/bin/program");
  }

  void fill_block(std::byte* at) const {
    ThreadCounters c{};
    c.thread_id = 4711;
    c.events = events;
    c.first_tick = kStart + kGap;
    c.last_exit_tick = kStart + events * (kGap + kCall);
    c.transfer = events * kCall / 2;
    c.wait_awake = events * kCall / 2;
    c.computing = events * kGap;
    std::memcpy(at, &c, sizeof(c));
    at += sizeof(c);
    const OpStats op{events, events * kCall, events * 8, events * kCall / 2, 0, 0};
    std::memcpy(at + sizeof(OpStats), &op, sizeof(op));
    at += op_slots * sizeof(OpStats);
    SiteStats site{};
    site.address = 0x400123;
    site.op = 1;
    site.calls = events;
    std::memcpy(at + 3 * sizeof(SiteStats), &site, sizeof(site));
    at += site_slots * sizeof(SiteStats);
    for (std::uint64_t i = 0; i < events; ++i) {
      Event e{};
      e.enter = kStart + i * (kGap + kCall) + kGap;
      e.exit = e.enter + kCall;
      e.bytes = i;
      e.op = 1;
      e.site = 3;
      std::memcpy(at + (i % ring_events) * sizeof(Event), &e, sizeof(e));
    }
  }
};

inline RankReader read_rank(std::vector<std::byte> bytes) {
  return RankReader(std::make_unique<MemoryBytes>(std::move(bytes)), "test");
}

}  // namespace fallow::trace::testing
