// Packed calls come back as they were.
#include "trace/packed_call.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace fallow::trace {
namespace {

constexpr std::uint32_t kUntouched = 0xdeadbeef;

PackedCall back(std::uint32_t number, std::int32_t peer, std::int32_t recv_peer, std::uint64_t compute_ns, std::uint32_t& places) {
  std::array<std::uint32_t, PackedCall::kMostPlaces + 1> room{};
  room.fill(kUntouched);
  const std::uint32_t* const end = PackedCall::pack(room.data(), number, peer, recv_peer, compute_ns);
  places = PackedCall::places(room.data());
  EXPECT_EQ(end, room.data() + places);
  EXPECT_EQ(room.back(), kUntouched);
  return PackedCall::unpack(room.data());
}

TEST(PackedCall, ComesBack) {
  for (const std::uint32_t number : {0u, 1u, 0x3fffu, 0x4000u, 0xffffu, 0x7fffffffu}) {
    for (const std::uint64_t compute : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xffff}, std::uint64_t{0x10000}, (std::uint64_t{1} << 48) - 1,
                                        std::uint64_t{1} << 48, std::numeric_limits<std::uint64_t>::max()}) {
      std::uint32_t places = 0;
      const PackedCall call = back(number, kNoPeer, kNoPeer, compute, places);
      EXPECT_EQ(call.number, number);
      EXPECT_EQ(call.compute_ns, compute);
      EXPECT_FALSE(call.own_peers);
      const bool fits = number <= 0x3fff;
      EXPECT_EQ(places, fits && compute <= 0xffff ? 1u : fits && compute >> 48 == 0 ? 2u : PackedCall::kMostPlaces) << number << ", " << compute;
      const PackedCall with_peers = back(number | PackedCall::kOwnPeers, 7, kAnyPeer, compute, places);
      EXPECT_EQ(with_peers.number, number);
      EXPECT_EQ(with_peers.compute_ns, compute);
      EXPECT_TRUE(with_peers.own_peers);
      EXPECT_EQ(with_peers.peer, 7);
      EXPECT_EQ(with_peers.recv_peer, kAnyPeer);
    }
  }
}

}  // namespace
}  // namespace fallow::trace
