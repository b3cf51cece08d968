#include "trace/request_ids.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace fallow::trace {
namespace {

TEST(RequestIds, GivesTheLowestFreeNumber) {
  RequestIds ids(100);
  EXPECT_EQ(ids.add(111, false), 0u);
  EXPECT_EQ(ids.add(222, true), 1u);
  EXPECT_EQ(ids.add(333, false), 2u);
  EXPECT_EQ(ids.complete(111), 0u);
  EXPECT_EQ(ids.complete(111), kNoRequest);
  EXPECT_EQ(ids.complete(222), 1u);
  EXPECT_EQ(ids.find(222), 1u);
  EXPECT_EQ(ids.add(444, false), 0u);
  EXPECT_EQ(ids.free(222), 1u);
  EXPECT_EQ(ids.find(222), kNoRequest);
  EXPECT_EQ(ids.add(555, false), 1u);
}

TEST(RequestIds, SeveralBehindOneHandle) {
  RequestIds ids(100);
  EXPECT_EQ(ids.add(111, false), 0u);
  EXPECT_EQ(ids.add(111, false), 1u);
  EXPECT_EQ(ids.add(222, false), 2u);
  EXPECT_EQ(ids.add(111, false), 3u);
  EXPECT_EQ(ids.complete(111), 0u);  // the oldest first
  EXPECT_EQ(ids.add(111, false), 0u);
  EXPECT_EQ(ids.complete(111), 1u);
  EXPECT_EQ(ids.complete(111), 3u);
  EXPECT_EQ(ids.complete(222), 2u);
  EXPECT_EQ(ids.complete(111), 0u);
  EXPECT_EQ(ids.complete(111), kNoRequest);
}

TEST(RequestIds, AThreadCompletesItsOwnFirst) {
  RequestIds ids(100);
  EXPECT_EQ(ids.add(7, false, 1), 0u);
  EXPECT_EQ(ids.add(7, false, 2), 1u);
  EXPECT_EQ(ids.add(7, false, 1), 2u);
  EXPECT_EQ(ids.add(7, false, 2), 3u);
  EXPECT_EQ(ids.complete(7, 2), 1u);
  EXPECT_EQ(ids.complete(7, 2), 3u);
  EXPECT_EQ(ids.complete(7, 2), 0u);  // another's
  EXPECT_EQ(ids.add(7, false, 3), 0u);
  EXPECT_EQ(ids.complete(7, 3), 0u);
  EXPECT_EQ(ids.complete(7, 1), 2u);
  EXPECT_EQ(ids.complete(7, 1), kNoRequest);
}

TEST(RequestIds, AHandleThatComesBackPersistentIsNew) {
  RequestIds ids(100);
  EXPECT_EQ(ids.add(7, false), 0u);
  EXPECT_EQ(ids.add(7, true), 1u);
  EXPECT_EQ(ids.find(7), 1u);
  EXPECT_EQ(ids.free(7), 1u);
  EXPECT_EQ(ids.find(7), kNoRequest);
}

TEST(RequestIds, AHandleThatAnotherThreadHasGotMeanwhile) {
  RequestIds ids(100);
  EXPECT_EQ(ids.add(7, false, 1), 0u);  // completes; thread 1 has yet to say so
  EXPECT_EQ(ids.add(7, true, 2), 1u);
  EXPECT_EQ(ids.find(7), 1u);
  EXPECT_EQ(ids.completing(7, 2), 1u);
  EXPECT_EQ(ids.completing(7, 1), 0u);
  EXPECT_EQ(ids.complete(7, 1), 0u);
  EXPECT_EQ(ids.complete(7, 2), 1u);
  EXPECT_EQ(ids.find(7), 1u);
  EXPECT_EQ(ids.add(7, true, 3), 0u);  // that of thread 2 is freed, which it has yet to say
  EXPECT_EQ(ids.find(7), 0u);
  EXPECT_EQ(ids.free(7, 2), 1u);
  EXPECT_EQ(ids.add(7, false, 2), 1u);  // and that of thread 3
  ids.moved(7, 8);                      // not persistent
  EXPECT_EQ(ids.find(7), 1u);
  EXPECT_EQ(ids.free(7, 3), 0u);
  EXPECT_EQ(ids.complete(7, 3), 1u);
  EXPECT_EQ(ids.completing(7, 2), kNoRequest);
}

TEST(RequestIds, APersistentOneLeavesAHandleWithOthersBehindIt) {
  RequestIds ids(100);
  EXPECT_EQ(ids.add(7, false, 1), 0u);
  EXPECT_EQ(ids.add(7, false, 2), 1u);
  EXPECT_EQ(ids.add(7, true, 3), 2u);
  ids.moved(7, 8);
  EXPECT_EQ(ids.find(8), 2u);
  EXPECT_EQ(ids.find(7), 1u);
  EXPECT_EQ(ids.complete(7, 2), 1u);
  EXPECT_EQ(ids.complete(7, 1), 0u);
  EXPECT_EQ(ids.free(8, 3), 2u);
  EXPECT_EQ(ids.find(8), kNoRequest);
}

TEST(RequestIds, StaysWithinItsRoomUnderChurn) {
  RequestIds ids(50);
  for (std::uint64_t i = 1; i <= 50; ++i) EXPECT_NE(ids.add(i * 64, false), kNoRequest);
  EXPECT_EQ(ids.add(9999, false), kNoRequest);
  for (std::uint64_t i = 1; i < 10'000; ++i) {
    ASSERT_NE(ids.complete(i * 64), kNoRequest) << i;
    ASSERT_NE(ids.add((i + 50) * 64, false), kNoRequest) << i;
  }
}

TEST(RequestIds, APersistentOneKeepsItsNumberUnderAnotherHandle) {
  RequestIds ids(4);
  EXPECT_EQ(ids.add(64, true), 0u);
  EXPECT_EQ(ids.add(128, false), 1u);
  ids.moved(64, 192);
  EXPECT_EQ(ids.find(64), kNoRequest);
  EXPECT_EQ(ids.find(192), 0u);
  EXPECT_EQ(ids.add(64, false), 2u);  // the old handle may be another's
  EXPECT_EQ(ids.complete(192), 0u);
  EXPECT_EQ(ids.complete(64), 2u);
  ids.moved(128, 256);  // not persistent
  EXPECT_EQ(ids.complete(128), 1u);
  ids.moved(999, 256);
  EXPECT_EQ(ids.find(256), kNoRequest);
  for (std::uint64_t i = 1; i < 1000; ++i) ids.moved(192 * i, 192 * (i + 1));
  EXPECT_EQ(ids.free(192'000), 0u);
}

TEST(RequestIds, AlwaysGivesTheLowestFreeNumberAndFindsAll) {
  constexpr std::uint32_t kRoom = 256;
  RequestIds ids(kRoom);
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> handles(kRoom, 0);  // by number; 0: free
  for (int i = 0; i < 40'000; ++i) {
    const std::uint32_t some = static_cast<std::uint32_t>(random() % kRoom);
    if (handles[some] != 0) {
      ASSERT_EQ(ids.complete(handles[some]), some);
      handles[some] = 0;
    } else {
      const std::uint64_t handle = random() | 1;
      const auto lowest = std::find(handles.begin(), handles.end(), 0u);
      ASSERT_EQ(ids.add(handle, false), static_cast<std::uint32_t>(lowest - handles.begin()));
      *lowest = handle;
    }
    const std::uint32_t other = static_cast<std::uint32_t>(random() % kRoom);
    if (handles[other] != 0) {
      ASSERT_EQ(ids.find(handles[other]), other);
    }
  }
}

}  // namespace
}  // namespace fallow::trace
