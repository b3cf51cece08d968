// Carries every algorithm out for many sizes with what each rank knows instead of data: that all messages find their
// counterpart, of the same size and in order, and that in the end every rank knows what the operation promises.
#include "coll/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "coll/families.hpp"

namespace fallow::coll {
namespace {

struct Message {
  std::uint64_t bytes;
  std::set<std::uint32_t> known;
};

struct Outcome {
  bool finished = true;
  std::string problem;
  std::vector<std::set<std::uint32_t>> known;
  std::vector<std::uint64_t> sent;
  std::uint64_t combined = 0;  // bytes that all ranks reduced
};

/// Runs all ranks round robin: receives of a step wait until their message is there, sends never do.
Outcome carry_out(Algorithm algorithm, std::uint32_t size, std::uint32_t root, std::uint64_t bytes) {
  Outcome out;
  out.known.resize(size);
  out.sent.resize(size);
  struct Rank {
    std::uint32_t step = 0, steps = 0;
    bool sent = false;
    std::vector<Step> open;  // receives not yet there
  };
  std::vector<Rank> ranks(size);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Message>> wires;
  const auto shape_of = [&](std::uint32_t r) { return Shape{r, size, root, bytes, 1000}; };
  for (std::uint32_t r = 0; r < size; ++r) {
    out.known[r].insert(r);
    ranks[r].steps = step_count(algorithm, shape_of(r));
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t r = 0; r < size; ++r) {
      Rank& rank = ranks[r];
      while (rank.step < rank.steps || !rank.open.empty()) {
        if (rank.step < rank.steps && !rank.sent) {
          const Step step = step_at(algorithm, shape_of(r), rank.step);
          rank.sent = moved = true;
          if (step.to != kNobody) {
            EXPECT_LT(step.to, size);
            EXPECT_NE(step.to, r);
            wires[{r, step.to}].push_back({step.send_bytes, out.known[r]});
            out.sent[r] += step.send_bytes;
          }
          if (step.from != kNobody) rank.open.push_back(step);
          EXPECT_LE(step.reduce_bytes, step.from != kNobody ? step.recv_bytes : 0);
          out.combined += step.reduce_bytes;
          if (!step.wait) ++rank.step, rank.sent = false;
          continue;
        }
        bool all = true;
        for (std::size_t i = 0; i < rank.open.size();) {
          auto& wire = wires[{rank.open[i].from, r}];
          if (wire.empty()) {
            all = false;
            ++i;
            continue;
          }
          if (wire.front().bytes != rank.open[i].recv_bytes) out.problem = "sizes differ at rank " + std::to_string(r);
          out.known[r].insert(wire.front().known.begin(), wire.front().known.end());
          wire.pop_front();
          rank.open.erase(rank.open.begin() + static_cast<std::ptrdiff_t>(i));
          moved = true;
        }
        if (!all) break;
        if (rank.step < rank.steps) ++rank.step;
        rank.sent = false;
      }
    }
  }
  for (const Rank& rank : ranks) out.finished = out.finished && rank.step == rank.steps && rank.open.empty();
  for (const auto& [ends, wire] : wires) {
    if (!wire.empty()) out.problem = "messages nobody received";
  }
  return out;
}

bool everybody_learns_all(Operation o) {
  return o == Operation::barrier || o == Operation::allreduce || o == Operation::allgather || o == Operation::alltoall ||
         o == Operation::reduce_scatter;
}

class EveryAlgorithm : public ::testing::TestWithParam<int> {};

TEST_P(EveryAlgorithm, DeliversWhatItPromises) {
  const auto algorithm = static_cast<Algorithm>(GetParam());
  const Operation operation = operation_of(algorithm);
  for (std::uint32_t size = 1; size <= 33; ++size) {
    for (const std::uint32_t root : {0u, size / 3, size - 1}) {
      for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{4096}}) {
        const Outcome out = carry_out(algorithm, size, root, bytes);
        ASSERT_TRUE(out.finished) << name_of(operation) << " " << name_of(algorithm) << " " << size << " root " << root;
        ASSERT_EQ(out.problem, "") << name_of(operation) << " " << name_of(algorithm) << " " << size << " root " << root;
        for (std::uint32_t r = 0; r < size; ++r) {
          if (everybody_learns_all(operation)) {
            ASSERT_EQ(out.known[r].size(), size) << name_of(algorithm) << " " << size;
          }
          if (operation == Operation::bcast || operation == Operation::scatter) {
            ASSERT_TRUE(out.known[r].contains(root));
          }
          if (operation == Operation::scan) {
            ASSERT_EQ(out.known[r].size(), r + 1);
          }
        }
        if (operation == Operation::reduce || operation == Operation::gather) {
          ASSERT_EQ(out.known[root].size(), size) << name_of(algorithm) << " " << size << " root " << root;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryAlgorithm, ::testing::Range(0, kAlgorithms));

std::uint64_t total(Algorithm algorithm, std::uint32_t size, std::uint64_t bytes) {
  std::uint64_t sum = 0;
  for (const std::uint64_t s : carry_out(algorithm, size, 0, bytes).sent) sum += s;
  return sum;
}

TEST(Volume, IsThatOfThePublications) {
  constexpr std::uint64_t n = 4096;
  EXPECT_EQ(total(Algorithm::bcast_binomial, 16, n), 15 * n);
  EXPECT_EQ(total(Algorithm::allreduce_recursive_doubling, 16, n), 16 * 4 * n);
  EXPECT_EQ(total(Algorithm::allreduce_ring, 16, n), 2 * 15 * n);
  EXPECT_EQ(total(Algorithm::allreduce_rabenseifner, 16, n), 2 * 15 * n);
  EXPECT_EQ(total(Algorithm::allgather_ring, 16, n), 16 * 15 * n);
  EXPECT_EQ(total(Algorithm::allgather_bruck, 13, n), 13 * 12 * n);
  EXPECT_EQ(total(Algorithm::allgather_recursive_doubling, 16, n), 16 * 15 * n);
  EXPECT_EQ(total(Algorithm::allgather_neighbor_exchange, 16, n), 16 * 15 * n);
  EXPECT_EQ(total(Algorithm::alltoall_pairwise, 16, n), 16 * 15 * n);
  EXPECT_EQ(total(Algorithm::alltoall_bruck, 16, n), 16 * 4 * 8 * n);
  EXPECT_EQ(total(Algorithm::gather_binomial, 16, n), (8 * 1 + 4 * 2 + 2 * 4 + 8) * n);
  EXPECT_EQ(total(Algorithm::scatter_linear, 16, n), 15 * n);
  EXPECT_EQ(total(Algorithm::reduce_scatter_ring, 16, n), 15 * n);
}

struct Work {
  std::uint64_t sent = 0, combined = 0;
};

/// In blocks of `n` bytes, which the powers of two below `size` divide.
Work work_of(Algorithm algorithm, std::uint32_t size, std::uint32_t root, std::uint64_t n) {
  const std::uint64_t others = size - 1, power = std::bit_floor(size), extra = size - power;
  const auto levels = static_cast<std::uint64_t>(std::bit_width(power) - 1);
  std::uint64_t subtrees = 0, scattered = 0, distances = 0, earlier = 0;
  for (std::uint64_t v = 1; v < size; ++v) {  // below rank v of a binomial tree hang the ranks up to the next that has its lowest bit
    const std::uint64_t below = std::min<std::uint64_t>(v & (~v + 1), size - v);
    subtrees += below;
    scattered += detail::cut(n, size, static_cast<std::uint32_t>(v + below)) - detail::cut(n, size, static_cast<std::uint32_t>(v));
    distances += static_cast<std::uint64_t>(std::popcount(v));
  }
  for (std::uint64_t distance = 1; distance < size; distance *= 2) earlier += size - distance;
  switch (algorithm) {
    case Algorithm::bcast_binomial:
    case Algorithm::bcast_chain:
    case Algorithm::gather_linear:
    case Algorithm::scatter_linear: return {others * n, 0};
    case Algorithm::bcast_scatter_allgather:
    case Algorithm::bcast_scatter_doubling: return {scattered + others * n, 0};
    case Algorithm::reduce_binomial:
    case Algorithm::reduce_scatter_ring:
    case Algorithm::scan_linear: return {others * n, others * n};
    case Algorithm::reduce_scatter_gather: {
      const bool sits_out = root < 2 * extra && root % 2 == 0;
      return {(extra + power - 1) * n + levels * n / 2 + (sits_out ? n : 0), (extra + power - 1) * n};
    }
    case Algorithm::allreduce_recursive_doubling: return {(2 * extra + power * levels) * n, (extra + power * levels) * n};
    case Algorithm::allreduce_ring: return {2 * others * n, others * n};
    case Algorithm::allreduce_rabenseifner: return {2 * (extra + power - 1) * n, (extra + power - 1) * n};
    case Algorithm::gather_binomial:
    case Algorithm::scatter_binomial: return {subtrees * n, 0};
    case Algorithm::allgather_ring:
    case Algorithm::allgather_bruck:
    case Algorithm::allgather_recursive_doubling:
    case Algorithm::allgather_neighbor_exchange:
    case Algorithm::alltoall_linear:
    case Algorithm::alltoall_pairwise: return {size * others * n, 0};
    case Algorithm::alltoall_bruck: return {size * distances * n, 0};
    case Algorithm::reduce_scatter_halving: return {(extra + power - 1) * n + extra * (n / size), (extra + power - 1) * n};
    case Algorithm::scan_doubling: return {earlier * n, earlier * n};
    default: return {};  // barriers
  }
}

TEST(Volume, IsThatOfTheAlgorithmForAnySizeAndRoot) {
  for (int a = 0; a < kAlgorithms; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    const bool barrier = operation_of(algorithm) == Operation::barrier;
    for (std::uint32_t size = 2; size <= 33; ++size) {
      for (const std::uint32_t root : {0u, size / 3, size - 1}) {
        const std::uint64_t n = barrier ? 0 : 4096;
        const Outcome out = carry_out(algorithm, size, root, n);
        const Work work = work_of(algorithm, size, root, n);
        ASSERT_EQ(std::accumulate(out.sent.begin(), out.sent.end(), std::uint64_t{0}), work.sent) << name_of(algorithm) << " " << size << " root " << root;
        ASSERT_EQ(out.combined, work.combined) << name_of(algorithm) << " " << size << " root " << root;
      }
    }
  }
}

/// Of a vector of one byte only the last block is not empty: who passes it on is who has just got it, and in the end every rank has
/// what the operation promises.
TEST(Rings, PassOnTheBlockThatIsThere) {
  for (std::uint32_t size = 2; size <= 17; ++size) {
    const auto sends = [size](Algorithm algorithm, std::uint32_t r, std::uint32_t k) { return step_at(algorithm, {r, size, 0, 1}, k).send_bytes == 1; };
    const auto takes = [size](Algorithm algorithm, std::uint32_t r, std::uint32_t k) { return step_at(algorithm, {r, size, 0, 1}, k).recv_bytes == 1; };
    for (std::uint32_t k = 0; k < 2 * (size - 1); ++k) {
      for (std::uint32_t r = 0; r < size; ++r) {
        const std::uint32_t holds = (size - 1 + k) % size;  // first its own block, then the sum so far, then that of all
        EXPECT_EQ(sends(Algorithm::allreduce_ring, r, k), r == holds) << size << " step " << k;
        EXPECT_EQ(takes(Algorithm::allreduce_ring, r, k), r == (holds + 1) % size) << size << " step " << k;
        EXPECT_EQ(step_at(Algorithm::allreduce_ring, {r, size, 0, 1}, k).reduce_bytes, k < size - 1 && r == (holds + 1) % size ? 1u : 0u);
        if (k >= size - 1) continue;
        EXPECT_EQ(sends(Algorithm::reduce_scatter_ring, r, k), r == k) << size << " step " << k;  // so that the last one has it in the end
        EXPECT_EQ(takes(Algorithm::reduce_scatter_ring, r, k), r == k + 1) << size << " step " << k;
        const std::uint32_t after = step_count(Algorithm::bcast_scatter_allgather, {r, size, 0, 1}) - (size - 1);
        EXPECT_EQ(sends(Algorithm::bcast_scatter_allgather, r, after + k), r == holds) << size << " step " << k;
      }
    }
  }
}

TEST(Steps, OfANeighborExchangeBeginWithPairs) {  // 0 and 1, 2 and 3, ..; then 1 and 2, .., and the last and 0 (Chen et al.)
  for (std::uint32_t r = 0; r < 6; ++r) {
    for (std::uint32_t k = 0; k < 3; ++k) {
      const Step step = step_at(Algorithm::allgather_neighbor_exchange, {r, 6, 0, 100}, k);
      const std::uint32_t pairs[] = {1, 0, 3, 2, 5, 4}, others[] = {5, 2, 1, 4, 3, 0};
      EXPECT_EQ(step.to, k == 1 ? others[r] : pairs[r]) << r << " step " << k;
      EXPECT_EQ(step.from, step.to);
      EXPECT_EQ(step.send_bytes, k == 0 ? 100u : 200u);
    }
  }
}

TEST(Steps, OfLinearAlgorithmsAreUnderWayAtOnce) {
  const Shape root{2, 6, 2, 8};
  for (std::uint32_t k = 0; k < 5; ++k) {
    EXPECT_FALSE(step_at(Algorithm::scatter_linear, root, k).wait);
    EXPECT_FALSE(step_at(Algorithm::gather_linear, root, k).wait);
    EXPECT_FALSE(step_at(Algorithm::alltoall_linear, root, k).wait);
    EXPECT_TRUE(step_at(Algorithm::alltoall_pairwise, root, k).wait);
  }
}

TEST(Steps, AreAsFewAsTheRoundsSay) {
  EXPECT_EQ(step_count(Algorithm::barrier_dissemination, {0, 1000, 0, 0}), 10u);
  EXPECT_EQ(step_count(Algorithm::allgather_bruck, {5, 1000, 0, 8}), 10u);
  EXPECT_EQ(step_count(Algorithm::bcast_binomial, {0, 1, 0, 8}), 0u);
  EXPECT_EQ(step_count(Algorithm::allreduce_ring, {0, 8, 0, 8}), 14u);
  for (const auto& [bytes, segments] : {std::pair(0u, 1u), std::pair(1u, 1u), std::pair(1000u, 1u), std::pair(1001u, 2u), std::pair(4000u, 4u)}) {
    EXPECT_EQ(step_count(Algorithm::bcast_chain, {0, 8, 0, bytes, 1000}), segments + 1) << bytes;  // the last is passed on in one more
  }
}

}  // namespace
}  // namespace fallow::coll
