#include "trace/event.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace fallow::trace {
namespace {

TEST(Op, NamesAndOperationsMapBothWays) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kOps; ++i) {
    const auto op = static_cast<Op>(i);
    EXPECT_TRUE(names.insert(op_name(op)).second) << op_name(op);
    if (op != Op::other) {
      EXPECT_EQ(op_from_name(op_name(op)), op);
    }
    EXPECT_LT(static_cast<std::size_t>(traits(op).blocking), kOps);
  }
  EXPECT_EQ(op_from_name("MPI_Allreduce_c"), Op::allreduce);
  EXPECT_EQ(op_from_name("PMPI_Isend"), Op::isend);
  EXPECT_EQ(op_from_name("MPIX_Bcast_init"), Op::bcast_init);
  EXPECT_EQ(op_from_name("MPI_Unheard_of"), Op::other);
  EXPECT_EQ(op_from_name(""), Op::other);
}

TEST(Op, FormsOfACollectiveShareTheirBlockingForm) {
  EXPECT_EQ(traits(Op::iallreduce).blocking, Op::allreduce);
  EXPECT_EQ(traits(Op::neighbor_alltoallw_init).blocking, Op::neighbor_alltoallw);
  EXPECT_TRUE(has(Op::ibcast, kOpCreates));
  EXPECT_FALSE(has(Op::ibcast, kOpBlocks));
  EXPECT_TRUE(has(Op::bcast, kOpBlocks));
}

TEST(Group, KeepsRunsAndFindsMembers) {
  const std::array<std::int32_t, 9> ranks{4, 6, 8, 10, 3, 2, 1, 0, 77};
  const Group g(ranks);
  EXPECT_EQ(g.runs().size(), 3u);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    EXPECT_EQ(g.world_rank(static_cast<std::int32_t>(i)), ranks[i]);
    EXPECT_EQ(g.member(ranks[i]), static_cast<std::int32_t>(i));
  }
  EXPECT_EQ(g.world_rank(9), -1);
  EXPECT_EQ(g.world_rank(-1), -1);
  EXPECT_EQ(g.member(5), -1);
  EXPECT_EQ(g.member(12), -1);
  EXPECT_EQ(Group(std::span<const std::int32_t>{}).size(), 0u);
}

TEST(CommGroups, ResolvesPeersOfIntraAndIntercommunicators) {
  CommGroups comms(8);
  EXPECT_EQ(comms.world_rank(kCommWorld, 3, 7), 7);
  EXPECT_EQ(comms.world_rank(kCommWorld, 3, 8), -1);
  EXPECT_EQ(comms.world_rank(kCommSelf, 3, 0), 3);
  EXPECT_EQ(comms.world_rank(kCommNone, 3, 0), -1);
  const std::uint32_t inter = comms.add({Group::contiguous(0, 2), Group::contiguous(2, 3, 2), 0});
  EXPECT_EQ(inter, kFirstComm);
  EXPECT_EQ(comms.world_rank(inter, 1, 2), 6);
  EXPECT_EQ(comms.world_rank(inter, 4, 1), 1);
  EXPECT_EQ(comms.rank_in(inter, 4), 1);
  EXPECT_EQ(comms.size_of(inter, 4), 3u);
  EXPECT_EQ(comms.size_of(inter, 0), 2u);
  EXPECT_EQ(comms.rank_in(inter, 1), 1);
  EXPECT_EQ(comms.rank_in(inter, 5), -1);
  EXPECT_EQ(comms.size_of(kCommSelf, 3), 1u);
  EXPECT_EQ(comms.rank_in(kCommSelf, 3), 0);
  EXPECT_EQ(comms.world_rank(kCommSelf, 3, 1), -1);
  EXPECT_EQ(comms.size_of(kCommWorld, 3), 8u);
  EXPECT_EQ(comms.size_of(inter + 1, 3), 0u);
}

TEST(MemorySource, GivesBackWhatWasAdded) {
  MemorySource source(2);
  const std::array<std::uint64_t, 2> counts{5, 6};
  const std::array<std::uint32_t, 3> requests{1, 2, 3};
  CallEvent e;
  e.op = Op::alltoallv;
  e.counts = counts;
  e.recv_counts = counts;
  e.exit_ns = 7;
  source.add(1, e);
  CallEvent w;
  w.op = Op::waitall;
  w.enter_ns = 9;
  w.exit_ns = 11;
  w.completed = requests;
  source.add(1, w);
  CallEvent out;
  EXPECT_FALSE(source.next(0, out));
  ASSERT_TRUE(source.next(1, out));
  EXPECT_EQ(out.recv_counts[1], 6u);
  ASSERT_TRUE(source.next(1, out));
  EXPECT_TRUE(out.requests.empty());
  EXPECT_EQ(out.completed[2], 3u);
  EXPECT_FALSE(source.next(1, out));
  source.rewind(1);
  ASSERT_TRUE(source.next(1, out));
  EXPECT_EQ(out.op, Op::alltoallv);
  EXPECT_EQ(source.info().ranks[1].last_ns, 11u);
}

}  // namespace
}  // namespace fallow::trace
