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

TEST(Choose, FollowsTheThresholdsOfOpenMpi) {
  const auto is = [](Operation operation, std::uint32_t size, std::uint64_t bytes) { return choose(Library::openmpi, operation, size, bytes); };
  EXPECT_EQ(is(Operation::barrier, 64, 0), Algorithm::barrier_recursive_doubling);
  EXPECT_EQ(is(Operation::barrier, 63, 0), Algorithm::barrier_dissemination);
  EXPECT_EQ(is(Operation::bcast, 64, 2047), Algorithm::bcast_binomial);
  EXPECT_EQ(is(Operation::bcast, 64, 2048), Algorithm::bcast_scatter_doubling);
  EXPECT_EQ(is(Operation::bcast, 4, 2048), Algorithm::bcast_binomial);
  EXPECT_EQ(is(Operation::bcast, 5, 2048), Algorithm::bcast_scatter_doubling);
  EXPECT_EQ(is(Operation::bcast, 64, 370728), Algorithm::bcast_chain);
  EXPECT_EQ(is(Operation::reduce, 64, 1 << 20), Algorithm::reduce_binomial);
  EXPECT_EQ(is(Operation::gather, 61, 5999), Algorithm::gather_binomial);
  EXPECT_EQ(is(Operation::gather, 61, 6000), Algorithm::gather_linear);
  EXPECT_EQ(is(Operation::gather, 60, 5999), Algorithm::gather_linear);
  EXPECT_EQ(is(Operation::gather, 11, 1023), Algorithm::gather_binomial);
  EXPECT_EQ(is(Operation::gather, 11, 1024), Algorithm::gather_linear);
  EXPECT_EQ(is(Operation::gather, 10, 1023), Algorithm::gather_linear);
  EXPECT_EQ(is(Operation::scatter, 11, 299), Algorithm::scatter_binomial);
  EXPECT_EQ(is(Operation::scatter, 11, 300), Algorithm::scatter_linear);
  EXPECT_EQ(is(Operation::scatter, 10, 299), Algorithm::scatter_linear);
  EXPECT_EQ(is(Operation::allreduce, 2000, 15999), Algorithm::allreduce_recursive_doubling);  // an element a rank at least
  EXPECT_EQ(is(Operation::allreduce, 2000, 16000), Algorithm::allreduce_ring);
  EXPECT_EQ(is(Operation::allgather, 64, 781), Algorithm::allgather_recursive_doubling);
  EXPECT_EQ(is(Operation::allgather, 64, 782), Algorithm::allgather_neighbor_exchange);
  EXPECT_EQ(is(Operation::allgather, 50, 999), Algorithm::allgather_bruck);
  EXPECT_EQ(is(Operation::allgather, 51, 1000), Algorithm::allgather_ring);
  EXPECT_EQ(is(Operation::alltoall, 12, 199), Algorithm::alltoall_linear);
  EXPECT_EQ(is(Operation::alltoall, 64, 2999), Algorithm::alltoall_linear);
  EXPECT_EQ(is(Operation::reduce_scatter, 63, 12 << 10), Algorithm::reduce_scatter_halving);
  EXPECT_EQ(is(Operation::reduce_scatter, 63, (12 << 10) + 1), Algorithm::reduce_scatter_ring);
  EXPECT_EQ(is(Operation::reduce_scatter, 64, 256 << 10), Algorithm::reduce_scatter_halving);
  EXPECT_EQ(is(Operation::reduce_scatter, 64, (256 << 10) + 1), Algorithm::reduce_scatter_ring);
  EXPECT_EQ(is(Operation::scan, 64, 8), Algorithm::scan_linear);
}

TEST(Choose, FollowsTheThresholdsOfMpich) {
  const auto is = [](Operation operation, std::uint32_t size, std::uint64_t bytes) { return choose(Library::mpich, operation, size, bytes); };
  EXPECT_EQ(is(Operation::barrier, 64, 0), Algorithm::barrier_dissemination);
  EXPECT_EQ(is(Operation::bcast, 7, 12288), Algorithm::bcast_binomial);
  EXPECT_EQ(is(Operation::bcast, 8, 12288), Algorithm::bcast_scatter_doubling);
  EXPECT_EQ(is(Operation::bcast, 64, (512 << 10) - 1), Algorithm::bcast_scatter_doubling);
  EXPECT_EQ(is(Operation::bcast, 64, 512 << 10), Algorithm::bcast_scatter_allgather);
  EXPECT_EQ(is(Operation::reduce, 64, 2048), Algorithm::reduce_binomial);
  EXPECT_EQ(is(Operation::reduce, 64, 2049), Algorithm::reduce_scatter_gather);
  EXPECT_EQ(is(Operation::gather, 64, 1 << 20), Algorithm::gather_binomial);
  EXPECT_EQ(is(Operation::scatter, 64, 1 << 20), Algorithm::scatter_binomial);
  EXPECT_EQ(is(Operation::allgather, 64, (8 << 10) - 1), Algorithm::allgather_recursive_doubling);  // 512 KiB in all
  EXPECT_EQ(is(Operation::allgather, 64, 8 << 10), Algorithm::allgather_ring);
  EXPECT_EQ(is(Operation::allgather, 40, (2 << 10) - 1), Algorithm::allgather_bruck);  // 80 KiB in all
  EXPECT_EQ(is(Operation::allgather, 40, 2 << 10), Algorithm::allgather_ring);
  EXPECT_EQ(is(Operation::alltoall, 8, 256), Algorithm::alltoall_bruck);
  EXPECT_EQ(is(Operation::alltoall, 7, 256), Algorithm::alltoall_linear);
  EXPECT_EQ(is(Operation::alltoall, 8, 257), Algorithm::alltoall_linear);
  EXPECT_EQ(is(Operation::alltoall, 8, 32 << 10), Algorithm::alltoall_linear);
  EXPECT_EQ(is(Operation::alltoall, 8, (32 << 10) + 1), Algorithm::alltoall_pairwise);
  EXPECT_EQ(is(Operation::reduce_scatter, 8, (512 << 10) - 1), Algorithm::reduce_scatter_halving);
  EXPECT_EQ(is(Operation::reduce_scatter, 8, 512 << 10), Algorithm::reduce_scatter_ring);
  EXPECT_EQ(is(Operation::exscan, 8, 8), Algorithm::scan_doubling);
}

TEST(Choose, CutsLongerVectorsIntoLongerSegments) {
  for (const Library library : {Library::openmpi, Library::mpich}) {
    EXPECT_EQ(segment_of(library, (1 << 20) - 1), 16u << 10);
    EXPECT_EQ(segment_of(library, 1 << 20), 64u << 10);
  }
}

}  // namespace
}  // namespace fallow::coll
