#include "pmpi/doubts.hpp"

#include <gtest/gtest.h>

namespace fallow::pmpi {
namespace {

TEST(Doubts, LastUntilTheRequestCompletes) {
  Doubts d(8);
  EXPECT_FALSE(d.any());
  d.open(3, false);
  EXPECT_TRUE(d.any() && d.is_open(3) && !d.is_open(2) && !d.is_cancelling(3));
  d.cancelling(3);
  d.cancelling(5);
  EXPECT_TRUE(d.is_open(3) && d.is_cancelling(3) && d.is_cancelling(5));
  d.completed(3);
  EXPECT_TRUE(d.any() && !d.is_open(3) && !d.is_cancelling(3));
  d.completed(5);
  EXPECT_FALSE(d.any());
  d.completed(5);
  EXPECT_FALSE(d.any());
}

TEST(Doubts, APersistentRequestStaysOpenUntilFreed) {
  Doubts d(8);
  d.open(1, true);
  d.cancelling(1);
  d.completed(1);
  EXPECT_TRUE(d.is_open(1) && !d.is_cancelling(1));
  d.forget(1);
  EXPECT_FALSE(d.any());
}

TEST(Doubts, NumbersWithoutRoomStayUnsaid) {
  Doubts d(8);
  d.open(8, false);
  d.cancelling(trace::kNoRequest);
  d.completed(8);
  d.forget(trace::kNoRequest);
  EXPECT_FALSE(d.any() || d.is_open(8) || d.is_cancelling(trace::kNoRequest));
}

}  // namespace
}  // namespace fallow::pmpi
