#include "pmpi/trace_packer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace fallow::pmpi {
namespace {

/// A ring that somebody fills; what is packed leaves it.
struct FakeRing {
  std::atomic<std::uint64_t> waiting{0}, packed{0};
  std::atomic<bool> signals_blocked{false}, sees_descriptors{true};
  int descriptor = -1;

  static std::uint32_t pack(void* self, std::uint32_t most) noexcept {
    auto& ring = *static_cast<FakeRing*>(self);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    ring.signals_blocked = sigismember(&mask, SIGALRM) == 1 && sigismember(&mask, SIGTERM) == 1;
    ring.sees_descriptors = fcntl(ring.descriptor, F_GETFD) != -1;
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(ring.waiting, most));
    ring.waiting -= n;
    ring.packed += n;
    return n;
  }
};

/// The machine may be busy, and then the packer waits: as long as it takes.
template <class Condition>
bool becomes_true(Condition condition) {
  for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return condition();
}

TEST(TracePacker, PacksWhatComes) {
  FakeRing ring;
  ring.descriptor = open("/dev/null", O_RDONLY);
  ring.waiting = 1000;
  TracePacker packer;
  EXPECT_FALSE(packer.helps());
  packer.start({FakeRing::pack, &ring, 4096});
  packer.start({FakeRing::pack, &ring, 4096});  // a second start is none
  EXPECT_TRUE(becomes_true([&] { return ring.packed == 1000; }));
  ring.waiting += 5000;
  EXPECT_TRUE(becomes_true([&] { return ring.packed == 6000; }));
  EXPECT_TRUE(ring.signals_blocked);
  EXPECT_FALSE(ring.sees_descriptors);
  packer.stop();
  EXPECT_FALSE(packer.helps());
  EXPECT_GT(packer.cpu_ns(), 0u);
  ring.waiting = 10;
  packer.start({FakeRing::pack, &ring, 4096});
  packer.stop();
  EXPECT_EQ(ring.waiting, 10u);
  EXPECT_EQ(fcntl(ring.descriptor, F_GETFD), FD_CLOEXEC & fcntl(ring.descriptor, F_GETFD));  // ours is still open
  close(ring.descriptor);
}

TEST(TracePacker, IsNotStoppedWithoutAStart) {
  TracePacker packer;
  packer.stop();
  packer.stop();
  FakeRing ring;
  packer.start({FakeRing::pack, &ring, 4096});
  EXPECT_EQ(ring.packed, 0u);
}

TEST(TracePacker, AForkedChildEndsWithoutIt) {
  FakeRing ring;
  TracePacker packer;
  ring.waiting = 100;
  packer.start({FakeRing::pack, &ring, 4096});
  EXPECT_TRUE(becomes_true([&] { return ring.packed == 100; }));
  packer.work_mutex().lock();
  const pid_t child = fork();
  packer.work_mutex().unlock();
  if (child == 0) {
    packer.forget();
    packer.stop();
    _exit(packer.helps() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ring.waiting = 100;
  EXPECT_TRUE(becomes_true([&] { return ring.packed == 200; }));
}

}  // namespace
}  // namespace fallow::pmpi
