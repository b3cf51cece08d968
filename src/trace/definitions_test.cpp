// Definitions that make no sense are refused, and it is said why.
#include "trace/definitions.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "trace/block_format.hpp"
#include "trace/coding.hpp"

namespace fallow::trace {
namespace {

using Numbers = std::vector<std::uint64_t>;

std::vector<std::byte> payload(const Numbers& numbers) {
  std::vector<std::byte> bytes(kMaxVarint * numbers.size());
  ByteWriter w(bytes);
  for (const std::uint64_t n : numbers) w.varint(n);
  bytes.resize(w.size());
  return bytes;
}

template <class Take>
std::string refusal(Take&& take) {
  TraceInfo info;
  info.ranks.resize(4);
  info.comms = CommGroups(4);
  Definitions definitions(info);
  try {
    take(definitions);
  } catch (const DefinitionError& e) {
    return e.what();
  }
  return "";
}

std::string comm(const Numbers& numbers) {
  return refusal([&](Definitions& d) { d.comm(payload(numbers)); });
}

/// What is said of a communicator of rank 0 with these runs, of first, stride and count.
std::string group(const std::vector<std::array<std::int64_t, 3>>& runs) {
  Numbers numbers{0, kFirstComm, 0, runs.size()};
  for (const auto& [first, stride, count] : runs) numbers.insert(numbers.end(), {zigzag(first), zigzag(stride), static_cast<std::uint64_t>(count)});
  return comm(numbers);
}

TEST(Definitions, GroupsHaveRanksThatAreThere) {
  EXPECT_EQ(group({{0, 1, 4}}), "");
  EXPECT_EQ(group({{3, -1, 4}}), "");
  EXPECT_EQ(group({{0, 2, 2}, {3, -2, 2}}), "");
  EXPECT_EQ(group({{3, 99, 1}}), "") << "the stride of one member says nothing";
  const std::string why = "a group names ranks that are not there";
  EXPECT_EQ(group({{4, 1, 1}}), why);
  EXPECT_EQ(group({{-1, 1, 1}}), why);
  EXPECT_EQ(group({{0, 1, 0}}), why);
  EXPECT_EQ(group({{0, 1, 5}}), why);
  EXPECT_EQ(group({{1, 1, 4}}), why);
  EXPECT_EQ(group({{0, 2, 3}}), why);
  EXPECT_EQ(group({{2, -1, 4}}), why);
  EXPECT_EQ(group({{0, 0, 2}}), why);
  EXPECT_EQ(group({{0, 4, 2}}), why);
  EXPECT_EQ(group({{3, -4, 2}}), why);
  EXPECT_EQ(group({{0, 1, 3}, {2, 1, 2}}), why) << "more members than ranks";
}

TEST(Definitions, CommunicatorsComeInTurn) {
  EXPECT_EQ(comm({0, kFirstComm + 1, 0, 1, 0, 2, 4}), "communicator 4 is not the next");
  EXPECT_EQ(comm({0, kFirstComm - 1, 0, 1, 0, 2, 4}), "communicator 2 is not the next");
  EXPECT_EQ(comm({0, kMaxDefined + 1, 0, 1, 0, 2, 4}), "communicator 16777217 is out of range");
  EXPECT_EQ(comm({0, kFirstComm, 2, 1, 0, 2, 4}), "kind 2 is out of range");
  EXPECT_EQ(comm({0, kFirstComm, 0, 1, 0, 2, 4, kFirstComm, 0}), "communicator 3 is made from one that comes later");
  EXPECT_EQ(comm({0, kFirstComm, 0, 1, 0, 2, 4, kCommSelf, 1ULL << 32}), "tag 4294967296 is out of range");
}

TEST(Definitions, EndWhereTheyShould) {
  EXPECT_EQ(comm({0, kFirstComm, 0, 1, 0, 2}), "a definition ends early");
  EXPECT_EQ(comm({0, kFirstComm, 0, 9, 0, 2, 4}), "a group is damaged");
  EXPECT_EQ(comm({0, kFirstComm, 1, 1, 0, 2, 1}), "a definition ends early") << "without the other side";
  const auto site = [](const Numbers& n) {
    return refusal([&](Definitions& d) { d.site(payload(n)); });
  };
  EXPECT_EQ(site({0, 1, 7, 1, 'a', 0}), "");
  EXPECT_EQ(site({0, 2, 7, 1, 'a', 0}), "call site 2 is not the next");
  EXPECT_EQ(site({0, 0, 7, 1, 'a', 0}), "call site 0 is not the next");
  EXPECT_EQ(site({0, 1, 7, 3, 'a', 0}), "a text is too long");
}

TEST(Definitions, ARankIsNotShiftedBeyondTheLastTime) {
  const auto rank = [](std::uint64_t shift) {
    return refusal([&](Definitions& d) { EXPECT_EQ(d.rank(payload({2, shift, 0, 0, 0})).shift_ns, shift); });
  };
  EXPECT_EQ(rank(kLatestNs), "");
  EXPECT_EQ(rank(kLatestNs + 1), "impossible shift in time");
}

TEST(Definitions, AnEndSaysWhatIsMissing) {
  const auto end = [](const Numbers& n) {
    TraceInfo info;
    info.ranks.resize(4);
    const auto e = Definitions(info).end(payload(n));
    return Numbers{e.rank, e.dropped, e.left_out};
  };
  EXPECT_EQ(end({3, 5}), (Numbers{3, 5, 0}));
  EXPECT_EQ(end({3, 5, 7}), (Numbers{3, 5, 7}));
}

}  // namespace
}  // namespace fallow::trace
