#include "trace/ring_tail.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "trace/direction.hpp"
#include "trace/rank_test_writer.hpp"

namespace fallow::trace {
namespace {

constexpr std::uint16_t kRecv = 1, kWrite = 2, kTest = 3;

/// A rank with a clock of 1 GHz, a receive and a file access.
std::unique_ptr<RankHeader> header() {
  auto h = std::make_unique<RankHeader>();
  h->op_slots = 4;
  h->tick_hz = 1e9;
  h->tick_start = 1'000;
  std::strcpy(h->ops[kRecv].name, "MPI_Recv");
  h->ops[kRecv].kind = static_cast<std::uint8_t>(OpKind::recv);
  h->ops[kRecv].blocks = 1;
  std::strcpy(h->ops[kWrite].name, "MPI_File_write");
  h->ops[kWrite].kind = static_cast<std::uint8_t>(OpKind::io);
  return h;
}

Event event(std::uint64_t enter, std::uint64_t exit, std::uint16_t op = kRecv, std::uint32_t awake_us = 0,
            std::uint32_t asleep_us = 0) {
  return {enter, exit, 8, 0, 0, op, 0, 0, awake_us, asleep_us};
}

ThreadCounters totalled(std::uint64_t events, std::uint64_t last_exit) {
  ThreadCounters c{};
  c.events = events;
  c.last_exit_tick = last_exit;
  return c;
}

TEST(RingTail, IsWhatFollowsTheTotalsUpToAnOlderTurn) {
  // The fourth and fifth slot hold events 3 and 4 of the turn before; event 8, the last, is in slot 2.
  const std::vector<Event> ring{event(6'000, 6'100), event(7'000, 7'100), event(8'000, 8'100),
                                event(3'000, 3'100), event(4'000, 4'100), event(5'000, 5'100)};
  const auto tail = ring_tail(*header(), totalled(7, 6'100), ring);
  ASSERT_EQ(tail.size(), 2u);
  EXPECT_EQ(tail[0].enter, 7'000u);
  EXPECT_EQ(tail[1].enter, 8'000u);
  EXPECT_TRUE(ring_tail(*header(), totalled(9, 8'100), ring).empty());
  EXPECT_TRUE(ring_tail(*header(), totalled(9, 8'100), {}).empty());
}

TEST(RingTail, EndsAtATornEvent) {
  const auto ends_after = [](Event torn) {
    const std::vector<Event> ring{event(2'000, 2'100), event(3'000, 3'100), torn, event(5'000, 5'100)};
    return ring_tail(*header(), totalled(1, 2'100), ring).size();
  };
  EXPECT_EQ(ends_after(event(4'000, 4'100)), 3u);
  EXPECT_EQ(ends_after(event(4'000, 3'999)), 1u);         // its end is not written yet
  EXPECT_EQ(ends_after(event(2'050, 4'100)), 1u);         // its start
  EXPECT_EQ(ends_after(event(0, 0)), 1u);                 // nothing of it
  EXPECT_EQ(ends_after(event(4'000, 4'100, kTest)), 1u);  // no such function here
  EXPECT_EQ(ends_after(event(4'000, 4'100, 500)), 1u);
}

TEST(RingTail, ACallAroundACallbacksCallsBeganBeforeThem) {
  const std::vector<Event> ring{event(2'000, 2'100), event(3'000, 3'000), event(3'050, 3'050), event(2'900, 3'100)};
  EXPECT_EQ(ring_tail(*header(), totalled(1, 2'100), ring).size(), 3u);
  EXPECT_EQ(ring_tail(*header(), totalled(2, 3'000), ring).size(), 2u);
  EXPECT_EQ(ring_tail(*header(), totalled(3, 3'050), ring).size(), 1u);
  const std::vector<Event> begins_so{event(3'000, 3'000), event(2'900, 3'100), event(4'000, 4'100)};
  EXPECT_EQ(ring_tail(*header(), totalled(1, 3'000), begins_so).size(), 2u);
}

OpenCall open_wait(std::uint64_t enter, std::uint64_t seen, std::uint64_t asleep = 0, std::uint16_t op = kRecv) {
  return {enter, seen, asleep, 0x400123, 2, op, 1};
}

TEST(RingTail, TheCallUnderWayBeganWhenOthersWereOver) {
  const std::vector<Event> ring{event(2'000, 2'100), event(3'000, 3'100), event(3'500, 3'500)};  // the last in a callback
  const auto begun = [&](OpenCall open, std::uint64_t totals) {
    auto c = totalled(totals, ring[totals - 1].exit);
    c.open = open;
    return open_call(*header(), c, ring, std::span(ring).subspan(totals)).enter;
  };
  EXPECT_EQ(begun(open_wait(3'200, 9'000, 5'800), 2), 3'200u);
  EXPECT_EQ(begun(open_wait(3'200, 9'000), 1), 3'200u);
  EXPECT_EQ(begun(open_wait(3'200, 9'000), 3), 3'200u);
  EXPECT_EQ(begun(open_wait(3'000, 9'000), 1), 0u);         // it is over: in the tail
  EXPECT_EQ(begun(open_wait(3'000, 9'000), 2), 0u);         // in the totals
  EXPECT_EQ(begun(open_wait(3'200, 3'100), 2), 0u);         // torn
  EXPECT_EQ(begun(open_wait(3'200, 9'000, 5'801), 2), 0u);
  EXPECT_EQ(begun(open_wait(3'200, 9'000, 0, kTest), 2), 0u);
  EXPECT_EQ(begun(open_wait(3'200, 9'000, 0, 500), 2), 0u);
  EXPECT_EQ(begun({}, 2), 0u);
}

TEST(RingTail, TheCallUnderWayCountsAsAWait) {
  const auto h = header();
  h->modules_used = 1;
  h->modules[0].base = 0x400000;
  h->modules[0].end = 0x500000;
  auto c = totalled(5, 9'000);
  c.first_tick = 1'500;
  std::vector<OpStats> ops(h->op_slots);
  const SiteStats site = add_open(*h, open_wait(10'000, 500'000, 300'000), c, ops);
  EXPECT_EQ(c.events, 5u);  // it is none
  EXPECT_EQ(c.computing, 1'000u);
  EXPECT_EQ(c.wait_asleep, 300'000u);
  EXPECT_EQ(c.wait_awake, 190'000u);
  EXPECT_EQ(c.transfer, 0u);
  EXPECT_EQ(c.last_exit_tick, 500'000u);
  EXPECT_EQ(c.waits.coarse_count[2], 1u);
  EXPECT_EQ(ops[kRecv].calls, 1u);
  EXPECT_EQ(ops[kRecv].ticks, 490'000u);
  EXPECT_EQ(site.address, 0x400123u);
  EXPECT_EQ(site.wait_max, 490'000u);
  EXPECT_EQ(site.sleeps, 1u);
  EXPECT_EQ(site.gap_ticks, 1'000u);
  h->modules[0].end = 0x400123;
  EXPECT_EQ(add_open(*h, open_wait(600'000, 700'000), c, ops).address, 0u);  // of no module that is known
  ThreadCounters nothing{};
  EXPECT_EQ(add_open(*h, open_wait(2'000, 9'000), nothing, ops).gap_ticks, 0u);
  EXPECT_EQ(nothing.computing, 0u) << "what was before the first call is no gap";
  EXPECT_EQ(nothing.first_tick, 2'000u);
}

TEST(RingTail, IsAddedAsTheRuntimeAdds) {
  const auto h = header();
  const std::vector<Event> tail{event(10'000, 10'500), event(40'000, 140'000, kRecv, 30, 60), event(140'000, 150'000, kWrite)};
  auto c = totalled(5, 9'000);
  c.transfer = 7;
  std::vector<OpStats> ops(h->op_slots);
  ops[kRecv].calls = 5;
  add_tail(*h, tail, c, ops);
  EXPECT_EQ(c.events, 8u);
  EXPECT_EQ(c.last_exit_tick, 150'000u);
  EXPECT_EQ(c.computing, 1'000u + 29'500u);
  EXPECT_EQ(c.transfer, 7u + 500u + 10'000u);
  EXPECT_EQ(c.wait_awake, 30'000u);
  EXPECT_EQ(c.wait_asleep, 60'000u);
  EXPECT_EQ(c.io, 10'000u);
  EXPECT_EQ(c.sleeps, 1u);
  EXPECT_EQ(c.bytes_received, 16u);
  EXPECT_EQ(c.gaps.coarse_count[0], 2u);
  EXPECT_EQ(c.gaps.coarse_count[1], 1u);
  EXPECT_EQ(c.waits.coarse_count[0], 1u);  // the file access does not block
  EXPECT_EQ(c.waits.count[0], 1u);
  EXPECT_EQ(c.waits.coarse_ticks[1], 90'000u);
  EXPECT_EQ(ops[kRecv].calls, 7u);
  EXPECT_EQ(ops[kRecv].ticks, 100'500u);
  EXPECT_EQ(ops[kRecv].bytes, 16u);
  EXPECT_EQ(ops[kWrite].calls, 1u);
}

TEST(RingTail, ATestThatRestedHasWaited) {
  const auto h = header();
  std::strcpy(h->ops[kTest].name, "MPI_Test");
  h->ops[kTest].kind = static_cast<std::uint8_t>(OpKind::test);
  const std::vector<Event> tail{event(10'000, 10'100, kTest), event(10'200, 110'200, kTest, 50, 50), event(110'300, 110'400, kTest)};
  auto c = totalled(5, 9'000);
  std::vector<OpStats> ops(h->op_slots);
  add_tail(*h, tail, c, ops);
  EXPECT_EQ(c.wait_asleep, 50'000u);
  EXPECT_EQ(c.waits.coarse_count[0], 0u);
  EXPECT_EQ(c.waits.coarse_count[1], 1u);
  EXPECT_EQ(c.waits.coarse_ticks[1], 100'000u);
}

TEST(RingTail, BytesGoWhereTheCallMovesThem) {
  const auto is = [](const char* name, OpKind kind, bool sends, bool receives) {
    const Direction d = direction_of(name, kind);
    EXPECT_EQ(d.sends, sends) << name;
    EXPECT_EQ(d.receives, receives) << name;
  };
  for (const char* name : {"MPI_Isend", "MPI_Ibcast", "MPI_Isendrecv_c", "MPI_Psend_init"}) is(name, OpKind::start, true, false);
  for (const char* name : {"MPI_Irecv", "MPI_Imrecv_c", "MPI_Precv_init"}) is(name, OpKind::start, false, true);
  is("MPI_Isendrecv_replace", OpKind::start, true, false);
  is("MPI_Recv", OpKind::recv, false, true);
  is("MPI_Sendrecv", OpKind::recv, true, false);
  for (const char* name : {"MPI_Put", "MPI_Raccumulate"}) is(name, OpKind::rma, true, false);
  for (const char* name : {"MPI_Get", "MPI_Rget_c"}) is(name, OpKind::rma, false, true);
  is("MPI_Rget_accumulate", OpKind::rma, true, false);
  is("MPI_File_read", OpKind::io, false, false);
}

TEST(RingTail, WaitsOfCrowdedRanksThatHardlyPolledCount) {
  const auto h = header();
  h->oversubscribed = 1;
  ThreadCounters c = totalled(0, 0);
  std::vector<OpStats> ops(h->op_slots);
  add_tail(*h, std::vector<Event>{event(2'000, 32'000), event(32'000, 33'000)}, c, ops);
  EXPECT_EQ(c.wait_awake, 30'000u);
  EXPECT_EQ(c.first_tick, 2'000u);
  EXPECT_EQ(c.computing, 0u);
}

TEST(RingTail, AFunctionThatIsAheadOfItsThreadIsNotCountedTwice) {
  const auto h = header();
  ThreadCounters c = totalled(4, 1'500);
  std::vector<OpStats> ops(h->op_slots);
  ops[kRecv].calls = 5;
  add_tail(*h, std::vector<Event>{event(2'000, 2'100), event(3'000, 3'100)}, c, ops);
  EXPECT_EQ(c.events, 6u);
  EXPECT_EQ(ops[kRecv].calls, 6u);
}

TEST(RingTail, HasSitesByFunctionCommunicatorAndAddress) {
  auto other = event(4'000, 4'200);
  other.comm = 3;
  const std::vector<Event> tail{event(2'000, 2'100), event(3'000, 3'100, kRecv, 1, 0), other, event(5'000, 15'000, kRecv, 2, 6),
                                event(16'000, 17'000, kRecv, 1, 50)};
  const auto sites = sites_of_tail(*header(), tail, 1'500);
  ASSERT_EQ(sites.size(), 2u);
  EXPECT_EQ(sites[0].calls, 4u);
  EXPECT_EQ(sites[0].ticks, 11'200u);
  EXPECT_EQ(sites[0].gap_ticks, 500u + 900u + 800u + 1'000u);
  EXPECT_EQ(sites[0].wait_awake, 100u + 2'000u);  // never more than the call
  EXPECT_EQ(sites[0].wait_asleep, 6'000u + 1'000u);
  EXPECT_EQ(sites[0].wait_max, 8'000u);
  EXPECT_EQ(sites[0].sleeps, 2u);
  EXPECT_EQ(sites[1].comm, 3u);
  EXPECT_EQ(sites[1].address, 0u);
  EXPECT_EQ(sites[1].module, kNoModule) << "of none that is known";
}

TEST(RingTail, TellsReturnAddressesThatLieInOneModule) {
  const auto h = header();
  h->site_slots = 1024;
  h->modules_used = 3;
  h->modules[0] = {0x5555'5555'4000, 0x5555'5556'0000, ""};
  h->modules[1] = {0x7fff'ffff'0000, 0x8000'0001'0000, ""};  // across a multiple of 4 GiB
  h->modules[2] = {0x7ff0'0000'8000, 0x7ff0'0001'8000, ""};
  const auto address = [&](std::uint32_t low) {
    Event e = event(2'000, 2'100);
    e.site = low;
    return return_address(*h, e);
  };
  EXPECT_EQ(address(0x5555'4123), 0x5555'5555'4123u);
  EXPECT_EQ(address(0xffff'0001), 0x7fff'ffff'0001u);
  EXPECT_EQ(address(0x0000'7fff), 0x8000'0000'7fffu);
  EXPECT_EQ(address(0x0001'7fff), 0x7ff0'0001'7fffu);
  EXPECT_EQ(address(0x0000'8000), 0u) << "in two of them";
  EXPECT_EQ(address(0x5556'0000), 0u) << "behind the end";
  EXPECT_EQ(address(1023), 0u) << "a slot";
  EXPECT_EQ(address(0), 0u);
  h->modules[0] = {0x1'0000, 0x2'0000'0000, ""};
  EXPECT_EQ(address(0x5555'4123), 0u) << "twice in a module";
  h->modules_used = 0;
  EXPECT_EQ(address(0xffff'0001), 0u);
}

TEST(RingTail, AReaderGivesItTheSitesOfTheTotalsAndNewOnes) {
  auto bytes = testing::TestFile{}.build();
  std::memset(bytes.data() + offsetof(RankHeader, finalized), 0, sizeof(std::uint32_t));
  auto* const counters = reinterpret_cast<ThreadCounters*>(bytes.data() + kHeaderBytes);
  counters->events -= 3;
  counters->last_exit_tick -= 3 * (testing::TestFile::kGap + testing::TestFile::kCall);
  auto* const ops = reinterpret_cast<OpStats*>(counters + 1);
  ops[1].calls -= 3;
  auto* const sites = reinterpret_cast<SiteStats*>(ops + 4);
  sites[3].calls -= 3;
  sites[3].comm_size = 4;
  auto* const ring = reinterpret_cast<Event*>(sites + 8);
  const std::uint32_t low[] = {0x40'0456, 0x40'0123, 0x40'0456};
  for (std::uint32_t i = 0; i < 3; ++i) ring[(17 + i) % 16].site = low[i];
  const auto block = testing::read_rank(bytes).block(0);
  ASSERT_EQ(block.sites().size(), 2u);
  const auto &old = block.sites()[0], &fresh = block.sites()[1];
  EXPECT_EQ(old.slot, 3u);
  EXPECT_EQ(old.stats.calls, 18u);
  EXPECT_EQ(fresh.slot, 8u);
  EXPECT_EQ(fresh.stats.calls, 2u);
  EXPECT_EQ(fresh.stats.address, 0x40'0456u);
  EXPECT_EQ(fresh.stats.module, 0u);
  EXPECT_EQ(fresh.stats.comm_size, 4u);
  const auto events = block.events(4);
  ASSERT_EQ(events.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(events[i].site, i % 2 == 0 ? 3u : 8u) << i;
}

TEST(RingTail, AReaderAddsItUnlessTheRankReachedFinalize) {
  for (const std::uint32_t finalized : {0u, 1u, 2u}) {
    auto bytes = testing::TestFile{}.build();
    std::memcpy(bytes.data() + offsetof(RankHeader, finalized), &finalized, sizeof(finalized));
    auto* const counters = reinterpret_cast<ThreadCounters*>(bytes.data() + kHeaderBytes);
    counters->events -= 3;
    counters->last_exit_tick -= 3 * (testing::TestFile::kGap + testing::TestFile::kCall);
    reinterpret_cast<OpStats*>(counters + 1)[1].calls -= 3;
    const auto block = testing::read_rank(bytes).block(0);
    EXPECT_EQ(block.counters().events, finalized == 1 ? 17u : 20u);
    EXPECT_EQ(block.ops()[1].calls, finalized == 1 ? 17u : 20u);
    EXPECT_EQ(block.sites().size(), finalized == 1 ? 1u : 2u);
    const auto events = block.events(1000);
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events.back().bytes, finalized == 1 ? 16u : 19u);
  }
}

}  // namespace
}  // namespace fallow::trace
