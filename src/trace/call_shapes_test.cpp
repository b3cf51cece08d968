// Calls that are read without their times are the same calls.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "trace/call_shapes.hpp"
#include "trace/packed_call.hpp"
#include "trace/stream_writer.hpp"
#include "trace/trace_test_files.hpp"

namespace fallow::trace {
namespace {

using testing::TemporaryFolder;

void expect_same_calls(EventSource& whole, EventSource& untimed, bool again = false) {
  CallEvent a, b;
  for (std::uint32_t r = 0; r < whole.info().ranks.size(); ++r) {
    for (std::uint64_t i = 0; whole.next(r, a); ++i) {
      ASSERT_TRUE(untimed.next(r, b)) << "rank " << r << ", event " << i;
      if (again) b = {}, untimed.again(r, b);
      const auto short_of = [](const CallEvent& c) {
        return std::make_tuple(c.op, c.flags, c.thread, c.comm, c.site, c.peer, c.tag, c.recv_peer, c.recv_tag, c.root, c.bytes, c.recv_bytes, c.compute_ns);
      };
      ASSERT_EQ(short_of(a), short_of(b)) << "rank " << r << ", event " << i;
      ASSERT_TRUE(std::ranges::equal(a.counts, b.counts) && std::ranges::equal(a.recv_counts, b.recv_counts)) << i;
      ASSERT_TRUE(std::ranges::equal(a.requests, b.requests) && std::ranges::equal(a.completed, b.completed)) << i;
    }
    EXPECT_FALSE(untimed.next(r, b));
  }
}

/// Loops whose calls vary now and then, lists of all lengths, long computations; with `any_peers`, peers that follow no order.
void add_calls(MemorySource& program, std::uint32_t rank, std::uint32_t calls, bool all_differ, bool any_peers) {
  std::mt19937 random(rank + 1);
  std::vector<std::uint64_t> counts(2 * CallShapes::kMaxWords);
  std::vector<std::uint32_t> requests(counts.size());
  std::iota(requests.begin(), requests.end(), 0u);
  std::uint64_t now = 0;
  for (std::uint32_t i = 0; i < calls; ++i) {
    CallEvent e;
    e.op = i % 5 == 0 ? Op::alltoallv : i % 5 == 1 ? Op::waitall : i % 5 == 2 ? Op::sendrecv : i % 5 == 3 ? Op::irecv : Op::isend;
    e.comm = e.op == Op::waitall ? kCommNone : kCommWorld;
    e.peer = static_cast<std::int32_t>(any_peers ? random() % 3000 : i % 5), e.recv_peer = e.op == Op::sendrecv ? static_cast<std::int32_t>(random() % 2) : kNoPeer;
    if (e.op == Op::irecv && random() % 3 == 0) e.peer = kAnyPeer;
    e.tag = static_cast<std::int32_t>(i % 3), e.bytes = all_differ ? rank * calls + i : random() % 10 == 0 ? random() % 1000 : 64;
    const std::size_t longest = random() % 20 == 0 ? counts.size() : 3;
    if (e.op == Op::waitall) e.completed = {requests.data(), random() % longest};
    if (e.op == Op::irecv) e.requests = {requests.data() + random() % 4, 1};
    for (std::uint64_t& c : counts) c = random() % 3;
    if (e.op == Op::alltoallv) e.counts = {counts.data(), longest}, e.recv_counts = {counts.data() + 1, random() % longest};
    e.compute_ns = random() % 50 == 0 ? std::uint64_t{random()} << 10 : 1000 + random() % 3;
    if (i == calls / 2) e.compute_ns = std::uint64_t{1} << 50;
    e.enter_ns = now + e.compute_ns;
    e.exit_ns = now = e.enter_ns + 100;
    program.add(rank, e);
  }
}

TEST(CallShapes, WithoutTimesTheCallsAreTheSame) {
  for (const int kind : {0, 1, 2}) {
    const bool all_differ = kind == 1, any_peers = kind == 2;  // then there are more than the table takes, or takes with their peers
    MemorySource program(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) add_calls(program, rank, 40'000, all_differ, any_peers);
    const TemporaryFolder folder;
    write_program(program, folder / "trace");
    TraceReader whole({folder / "trace"}), untimed({folder / "trace"});
    untimed.leave_out_times(true);
    for (const RankInfo& rank : whole.info().ranks) EXPECT_TRUE(rank.complete && rank.events == 40'000);
    for (const bool again : {true, false}) {
      expect_same_calls(whole, untimed, again);
      for (std::uint32_t rank = 0; rank < 2; ++rank) whole.rewind(rank), untimed.rewind(rank);
    }
    CallEvent e;
    ASSERT_TRUE(untimed.next(0, e));  // decodes more than this one
    untimed.leave_out_times(false);
    untimed.rewind(0);
    expect_same_calls(whole, untimed);
    untimed.rewind(1), whole.rewind(1);
    for (CallEvent timed; whole.next(1, timed);) {
      ASSERT_TRUE(untimed.next(1, e));
      ASSERT_EQ(timed.exit_ns, e.exit_ns);
    }
  }
}

TEST(CallShapes, TellsApartWhatDiffers) {
  CallShapes shapes;
  CallEvent e;
  e.peer = 3, e.recv_peer = kAnyPeer;
  const std::uint32_t plain = shapes.number_of(2, e);
  EXPECT_NE(plain, 0u);
  e.enter_ns = 5, e.compute_ns = 6;
  EXPECT_EQ(shapes.number_of(2, e), plain);
  const std::uint64_t counts[] = {1, 2};
  const std::uint32_t requests[] = {1, 2};
  std::vector<std::uint32_t> seen{plain};
  const auto differs = [&](auto&& change) {
    CallEvent other = e;
    change(other);
    const std::uint32_t number = shapes.number_of(2, other);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), number), 0);
    EXPECT_EQ(shapes.number_of(2, other), number);
    seen.push_back(number);
  };
  differs([](CallEvent& c) { c.peer = 4; });
  differs([](CallEvent& c) { c.peer = 1; });  // before its rank, where a distance looks like what is no rank
  differs([](CallEvent& c) { c.peer = kAnyPeer; });
  differs([](CallEvent& c) { c.recv_peer = kNullPeer; });
  differs([](CallEvent& c) { c.op = Op::send; });
  differs([](CallEvent& c) { c.flags = kEventInPlace; });
  differs([](CallEvent& c) { c.thread = 1; });
  differs([](CallEvent& c) { c.comm = 5; });
  differs([](CallEvent& c) { c.site = 5; });
  differs([](CallEvent& c) { c.tag = 5; });
  differs([](CallEvent& c) { c.recv_tag = 5; });
  differs([](CallEvent& c) { c.root = 5; });
  differs([](CallEvent& c) { c.bytes = 5; });
  differs([](CallEvent& c) { c.recv_bytes = 5; });
  differs([&](CallEvent& c) { c.counts = counts; });
  differs([&](CallEvent& c) { c.recv_counts = counts; });
  differs([&](CallEvent& c) { c.requests = requests; });
  differs([&](CallEvent& c) { c.completed = requests; });
  differs([&](CallEvent& c) { c.completed = {requests, 1}; });
}

TEST(CallShapes, TellsPeersByDistanceAsLongAsThereAreFew) {
  CallShapes shapes;
  CallEvent e;
  e.peer = 5;
  const std::uint32_t up = shapes.number_of(4, e);
  e.peer = 9;
  EXPECT_EQ(shapes.number_of(8, e), up);
  EXPECT_EQ(shapes[up].peer_of(8), 9);
  EXPECT_EQ(shapes[up].recv_peer_of(8), kNoPeer);
  std::uint32_t with_peers = 1, number = 0;
  for (std::int32_t distance = 2; with_peers <= CallShapes::kMostWithPeers; ++distance, ++with_peers) {
    e.peer = distance;
    number = shapes.number_of(0, e);
    if ((number & PackedCall::kOwnPeers) != 0) break;
  }
  EXPECT_EQ(with_peers, CallShapes::kMostWithPeers);
  e.peer += 7;
  EXPECT_EQ(shapes.number_of(3, e), number);
  EXPECT_EQ(shapes[number & ~PackedCall::kOwnPeers].call.peer, kNoPeer);
  e.peer = 1001;
  EXPECT_EQ(shapes.number_of(1000, e), up);
}

}  // namespace
}  // namespace fallow::trace
