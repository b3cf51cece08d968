#include "pmpi/sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace fallow::pmpi {
namespace {

constexpr double kLongNs = 20e9, kShortNs = 1e6;

/// Two ends of a TCP connection inside this process.
class Connection {
 public:
  Connection() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener, any, length), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, any, &length), 0);
    here = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(here, any, length), 0);
    there = accept(listener, nullptr, nullptr);
    EXPECT_GE(there, 0);
    close(listener);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    for (const int fd : {here, there}) {
      if (fd >= 0) close(fd);
    }
  }
  void say(std::size_t bytes = 1) const { EXPECT_EQ(write(there, std::string(bytes, 'x').data(), bytes), static_cast<ssize_t>(bytes)); }
  void hear() const {
    char buffer[4096];
    EXPECT_GT(read(here, buffer, sizeof buffer), 0);
  }
  int here = -1, there = -1;
};

TEST(Sockets, NothingIsDoneUnlessEnabled) {
  const Connection c;
  Sockets s;
  EXPECT_FALSE(s.usable());
  EXPECT_FALSE(s.wants_evidence());
  s.enable();
  EXPECT_TRUE(s.usable());
}

TEST(Sockets, ProcessesWithoutConnectionsHaveNone) {
  Sockets s;
  s.enable();
  const int unconnected = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_FALSE(s.usable());
  close(unconnected);
  close(local);
}

TEST(Sockets, DataEndASleep) {
  const Connection c;
  Sockets s;
  s.enable();
  ASSERT_TRUE(s.usable());
  EXPECT_EQ(s.sleep(kShortNs, -1), Sockets::End::time);
  std::thread peer([&c] {
    usleep(20'000);
    c.say();
  });
  EXPECT_EQ(s.sleep(kLongNs, -1), Sockets::End::data);
  peer.join();
  EXPECT_EQ(s.sleep(kLongNs, -1), Sockets::End::ready);  // they are still there: nothing to sleep for
  c.hear();
  EXPECT_EQ(s.sleep(kShortNs, -1), Sockets::End::time);
}

TEST(Sockets, DataThatNobodyReadsAreNotTheLibrarys) {
  const Connection program, library;
  Sockets s;
  s.enable();
  ASSERT_TRUE(s.usable());
  program.say();
  int slept = 0;
  for (; slept < 5 && s.sleep(kShortNs, -1) == Sockets::End::ready; ++slept) ASSERT_TRUE(s.usable());
  EXPECT_EQ(slept, 2);
  EXPECT_EQ(s.sleep(kShortNs, -1), Sockets::End::time);
  library.say();
  EXPECT_EQ(s.sleep(kLongNs, -1), Sockets::End::ready);
  library.hear();
  std::thread peer([&library] {
    usleep(20'000);
    library.say();
  });
  EXPECT_EQ(s.sleep(kLongNs, -1), Sockets::End::data);
  peer.join();
}

TEST(Sockets, WhatIsNotTheLibrarysStaysSoWhenSocketsAreLookedForAgain) {
  const Connection program, library;
  Sockets s;
  s.enable();
  program.say();
  for (int i = 0; i < 3 && s.usable(); ++i) s.sleep(kShortNs, -1);
  for (int i = 0; i < 20; ++i) {
    s.came(false);
    ASSERT_TRUE(s.usable());
    EXPECT_EQ(s.sleep(kShortNs, -1), Sockets::End::time) << i;
  }
}

TEST(Sockets, ASleepLastsAsLongAsItIsToWithoutData) {
  const Connection c;
  Sockets s;
  s.enable();
  ASSERT_TRUE(s.usable());
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(s.sleep(kShortNs, -1), Sockets::End::time);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::nanoseconds(static_cast<std::int64_t>(kShortNs)));
}

TEST(Sockets, WhatMayBecomeAConnectionCounts) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(listen(listener, 1), 0);
  Sockets s;
  s.enable();
  EXPECT_TRUE(s.usable());
  close(listener);
}

TEST(Sockets, LookingForThemLeavesNothingOpen) {
  const auto lowest_free = [] {
    const int fd = dup(STDERR_FILENO);
    close(fd);
    return fd;
  };
  const int before = lowest_free();
  Sockets s;
  s.enable();
  EXPECT_FALSE(s.usable());
  EXPECT_EQ(lowest_free(), before);
}

TEST(Sockets, RoomToWriteEndsASleep) {
  const Connection c;
  for (const int fd : {c.here, c.there}) fcntl(fd, F_SETFL, O_NONBLOCK);
  const std::string much(1 << 16, 'x');
  while (write(c.here, much.data(), much.size()) > 0) {
  }
  Sockets s;
  s.enable();
  ASSERT_TRUE(s.usable());
  std::thread peer([&c] {
    usleep(20'000);
    std::vector<char> buffer(1 << 20);
    for (int idle = 0; idle < 50;) {
      if (read(c.there, buffer.data(), buffer.size()) <= 0) ++idle, usleep(1000);
    }
  });
  EXPECT_EQ(s.sleep(kLongNs, -1), Sockets::End::ready);  // the other end has unread data for ever: see above
  EXPECT_EQ(s.sleep(kLongNs, -1), Sockets::End::ready);
  EXPECT_EQ(s.sleep(kLongNs, -1), Sockets::End::data);
  peer.join();
}

TEST(Sockets, TheBellEndsASleep) {
  const Connection c;
  Sockets s;
  s.enable();
  ASSERT_TRUE(s.usable());
  int bell[2];
  ASSERT_EQ(pipe(bell), 0);
  ASSERT_EQ(write(bell[1], "", 1), 1);
  EXPECT_EQ(s.sleep(kLongNs, bell[0]), Sockets::End::bell);
  close(bell[0]);
  close(bell[1]);
}

TEST(Sockets, ClosedOnesAreLeftAndNewOnesFound) {
  Sockets s;
  s.enable();
  EXPECT_FALSE(s.usable());
  auto first = std::make_unique<Connection>();
  for (int i = 0; i < 100 && !s.usable(); ++i) s.came(false);
  ASSERT_TRUE(s.usable());
  first.reset();
  EXPECT_EQ(s.sleep(kShortNs, -1), Sockets::End::time);  // with numbers that are nothing now
  EXPECT_FALSE(s.usable());
  const Connection second;
  for (int i = 0; i < 100 && !s.usable(); ++i) s.came(false);
  ASSERT_TRUE(s.usable());
  second.say();
  EXPECT_EQ(s.sleep(kLongNs, -1), Sockets::End::ready);
}

TEST(Sockets, NewOnesAreLookedForOnceSomethingCameInAnotherWay) {
  const Connection first;
  Sockets s;
  s.enable();
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(s.usable());
    s.sleep(kShortNs, -1);
  }
  const Connection second;
  second.say();
  s.came(false);
  int sleeps = 0;
  while (sleeps < 10 && s.usable() && s.sleep(kShortNs, -1) != Sockets::End::ready) ++sleeps;
  EXPECT_LT(sleeps, 10);
}

TEST(Sockets, TooManyAreNotLookedAt) {
  std::vector<std::unique_ptr<Connection>> many;
  for (int i = 0; i < 65; ++i) many.push_back(std::make_unique<Connection>());
  Sockets s;
  s.enable();
  EXPECT_FALSE(s.usable());
}

TEST(Sockets, CountsWhatHasComeOfNoMoreThanItKeeps) {
  Connection c;
  constexpr int kNoLowByte = 256;  // with it, what lies behind the table looks like a socket that counts
  ASSERT_EQ(dup2(c.there, kNoLowByte), kNoLowByte);
  close(c.there);
  c.there = kNoLowByte;
  c.say(1000);
  c.hear();
  Sockets s;
  s.enable();
  ASSERT_TRUE(s.usable());
  ASSERT_EQ(s.received(), 1000u);
  std::vector<std::unique_ptr<Connection>> many;
  for (int i = 0; i < 64; ++i) many.push_back(std::make_unique<Connection>());
  for (int i = 0; i < 100 && s.usable(); ++i) s.sleep(kShortNs, -1);
  ASSERT_FALSE(s.usable());
  EXPECT_EQ(s.received(), 1000u);
}

TEST(Sockets, CountsWhatHasCome) {
  const Connection c;
  Sockets s;
  s.enable();
  ASSERT_TRUE(s.usable());
  const std::uint64_t before = s.received();
  c.say(1000);
  EXPECT_EQ(s.received() - before, 1000u);
}

TEST(Sockets, EvidenceIsWantedOfTheFirstWaitsAndOfSomeLaterOnes) {
  Sockets none;
  none.enable();
  EXPECT_FALSE(none.wants_evidence());
  const Connection c;
  Sockets s;
  s.enable();
  int first = 0, later = 0;
  for (int i = 0; i < 10; ++i) first += s.wants_evidence() ? 1 : 0;
  for (int i = 10; i < 1000; ++i) later += s.wants_evidence() ? 1 : 0;
  EXPECT_EQ(first, 10);
  EXPECT_LT(later, 250);
  int last = 0;
  for (int i = 0; i < 1000; ++i) last += s.wants_evidence() ? 1 : 0;
  EXPECT_GT(last, 1);
}

TEST(Sockets, TrustIsEarnedAndLost) {
  Sockets s;
  s.enable();
  EXPECT_FALSE(s.trusted());
  for (int i = 0; i < 30; ++i) s.came(true);
  EXPECT_TRUE(s.trusted());
  s.came(false);
  EXPECT_FALSE(s.trusted());
}

}  // namespace
}  // namespace fallow::pmpi
