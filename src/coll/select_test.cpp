#include "coll/select.hpp"

#include <gtest/gtest.h>

namespace fallow::coll {
namespace {

TEST(Choose, GivesAnAlgorithmOfTheOperationForEverySize) {
  for (const Library library : {Library::openmpi, Library::mpich}) {
    for (int o = 0; o < kOperations; ++o) {
      const auto operation = static_cast<Operation>(o);
      const Operation expected = operation == Operation::exscan ? Operation::scan : operation;
      for (const std::uint32_t size : {1u, 2u, 3u, 8u, 13u, 64u, 1000u, 65536u}) {
        for (std::uint64_t bytes = 0; bytes <= std::uint64_t{1} << 26; bytes = bytes * 4 + 1) {
          EXPECT_EQ(operation_of(choose(library, operation, size, bytes)), expected);
          EXPECT_GT(segment_of(library, bytes), 0u);
        }
      }
    }
  }
}

TEST(Choose, FollowsThePublishedThresholds) {
  EXPECT_EQ(choose(Library::mpich, Operation::allreduce, 16, 2048), Algorithm::allreduce_recursive_doubling);
  EXPECT_EQ(choose(Library::mpich, Operation::allreduce, 16, 2049), Algorithm::allreduce_rabenseifner);
  EXPECT_EQ(choose(Library::mpich, Operation::bcast, 64, 12287), Algorithm::bcast_binomial);
  EXPECT_EQ(choose(Library::mpich, Operation::bcast, 64, 12288), Algorithm::bcast_scatter_doubling);
  EXPECT_EQ(choose(Library::mpich, Operation::bcast, 60, 1 << 20), Algorithm::bcast_scatter_allgather);
  EXPECT_EQ(choose(Library::openmpi, Operation::alltoall, 64, 199), Algorithm::alltoall_bruck);
  EXPECT_EQ(choose(Library::openmpi, Operation::alltoall, 64, 200), Algorithm::alltoall_linear);
  EXPECT_EQ(choose(Library::openmpi, Operation::alltoall, 64, 3000), Algorithm::alltoall_pairwise);
  EXPECT_EQ(choose(Library::openmpi, Operation::allreduce, 64, 9999), Algorithm::allreduce_recursive_doubling);
  EXPECT_EQ(choose(Library::openmpi, Operation::allreduce, 64, 10000), Algorithm::allreduce_ring);
}

}  // namespace
}  // namespace fallow::coll
