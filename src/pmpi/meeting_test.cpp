#include "pmpi/meeting.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace fallow::pmpi {
namespace {

TEST(Meeting, IsACallThatNobodyLeavesBeforeAllHaveCome) {
  for (const char* name : {"MPI_Barrier", "MPI_Allreduce", "MPI_Allreduce_c", "MPI_Allgather", "MPI_Alltoall_c", "MPI_Reduce_scatter_block"}) {
    EXPECT_TRUE(is_meeting(name)) << name;
  }
  // Roots and leaves may leave early, sizes of some ranks may be 0, and who starts a call has not come to its end.
  for (const char* name : {"MPI_Bcast", "MPI_Reduce", "MPI_Scan", "MPI_Alltoallv", "MPI_Allgatherv_c", "MPI_Reduce_scatter", "MPI_Iallreduce",
                           "MPI_Neighbor_allgather", "MPI_Comm_dup", "MPI_Ibarrier", ""}) {
    EXPECT_FALSE(is_meeting(name)) << name;
  }
}

TEST(Meeting, RanksInAnOrderHaveTheirNumber) {
  using Ranks = std::vector<std::int32_t>;
  EXPECT_EQ(number_of(Ranks{0, 1, 2}), number_of(Ranks{0, 1, 2}));
  EXPECT_NE(number_of(Ranks{0, 1, 2}), number_of(Ranks{0, 2, 1}));
  EXPECT_NE(number_of(Ranks{0, 1, 2}), number_of(Ranks{0, 1}));
  EXPECT_NE(number_of(Ranks{0}), number_of(Ranks{0, 0}));
  EXPECT_NE(number_of(Ranks{}), 0u);
}

TEST(Meeting, WhoHasComeIsToldByWhatRanksDoOnlyWhereAllAreSeen) {
  EXPECT_TRUE(tells_who_came({}));
  EXPECT_FALSE(tells_who_came({.shared_cores = true})) << "ranks that have come may wait for a core";
  EXPECT_FALSE(tells_who_came({.started_here = false}));
  EXPECT_FALSE(tells_who_came({.several_threads = true}));
}

TEST(Meeting, WhoComesEarlyWakesNobodyInIt) {
  EXPECT_TRUE(leaves_meetings_asleep(true, true, true, 0));
  EXPECT_TRUE(leaves_meetings_asleep(true, true, true, 10e3));
  EXPECT_FALSE(leaves_meetings_asleep(true, true, true, 11e3)) << "long messages are passed on";
  EXPECT_FALSE(leaves_meetings_asleep(true, true, false, 0)) << "nobody may be there to wake all";
}

TEST(Meeting, OtherCollectiveCallsAreNotWhatSleepersInOneWaitFor) {
  EXPECT_TRUE(leaves_meetings_asleep(true, false, false, 0));
  EXPECT_TRUE(leaves_meetings_asleep(true, false, false, 1e6));
  EXPECT_FALSE(leaves_meetings_asleep(false, false, false, 0)) << "a message may be for them";
}

TEST(Arrivals, TellWhenTheLastRankCame) {
  Arrivals arrivals;
  constexpr std::uint64_t kTick = 123'456'789'012;
  const std::array<std::int32_t, 3> some{0, 1, 2}, others{0, 1, 3};
  const std::uint32_t here = number_of(some), there = number_of(others);
  EXPECT_EQ(arrivals.latest(here), 0u);
  arrivals.last_came(here, kTick);
  EXPECT_LE(arrivals.latest(here), kTick);
  EXPECT_GT(arrivals.latest(here), kTick - 1024);
  EXPECT_EQ(arrivals.latest(there), 0u) << "that was another group";
  EXPECT_EQ(arrivals.latest(here ^ 2u), 0u) << "also of one with the same place";
  arrivals.last_came(here ^ 2u, kTick);
  EXPECT_EQ(arrivals.latest(here), 0u) << "its place is another's now";
}

TEST(Meeting, RanksToWakeFitIntoAWord) {
  constexpr std::int32_t kMost = 0x7fff'ffff;
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 1}, {3, 17}, {kMost - 1, kMost}, {0, kMost}}) {
    EXPECT_EQ(begin_of(range_of(from, to)), from);
    EXPECT_EQ(end_of(range_of(from, to)), to);
    EXPECT_NE(range_of(from, to), 0u) << "that is no range";
  }
}

/// Ranks in a meeting, of which some sleep. A wake takes its waker one step, and the woken go on two steps later.
struct Sleepers {
  explicit Sleepers(std::size_t n) : asleep(n, true), woken(n, 0) {}
  std::vector<bool> asleep;
  std::vector<int> woken;
  int last = 0;  // step at which the last one was woken

  void wake(std::int32_t from, std::int32_t to, int step) {
    wake_by_halves(from, to, [&](std::int32_t i, std::int32_t end) {
      const auto rank = static_cast<std::size_t>(i);
      if (!asleep[rank]) return false;
      asleep[rank] = false;
      ++woken[rank];
      last = std::max(last, ++step);
      wake(i + 1, end, step + 2);
      return true;
    });
  }
};

TEST(Meeting, EveryoneWhoSleepsIsWokenOnceAndSoon) {
  for (std::int32_t n = 1; n <= 300; ++n) {
    Sleepers all(static_cast<std::size_t>(n));
    const std::int32_t me = n / 3;  // who came last is awake
    all.asleep[static_cast<std::size_t>(me)] = false;
    all.wake(0, n, 0);
    EXPECT_EQ(std::accumulate(all.woken.begin(), all.woken.end(), 0), n - 1);
    EXPECT_EQ(*std::max_element(all.woken.begin(), all.woken.end()), n > 1 ? 1 : 0);
    EXPECT_LE(all.last, 3 * std::bit_width(static_cast<unsigned>(n))) << n;
  }
}

TEST(Meeting, WhoIsAwakeAlreadyHoldsUpNobody) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto n = static_cast<std::int32_t>(1 + random() % 70);
    Sleepers some(static_cast<std::size_t>(n));
    int sleeping = 0;
    for (std::size_t i = 0; i < some.asleep.size(); ++i) {
      some.asleep[i] = random() % 3 != 0;
      sleeping += some.asleep[i] ? 1 : 0;
    }
    some.wake(0, n, 0);
    EXPECT_EQ(std::accumulate(some.woken.begin(), some.woken.end(), 0), sleeping);
    EXPECT_LE(some.last, 3 * std::bit_width(static_cast<unsigned>(n)));
  }
}

}  // namespace
}  // namespace fallow::pmpi
