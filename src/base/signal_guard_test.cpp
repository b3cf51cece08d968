#include "base/signal_guard.hpp"

#include <atomic>
#include <csetjmp>
#include <csignal>

#include <gtest/gtest.h>

namespace fallow {
namespace {

std::mutex g_mutex;
std::atomic<int> g_came{0}, g_found_free{0};
sigjmp_buf g_out;

void look(int) {
  ++g_came;
  if (!g_mutex.try_lock()) return;
  ++g_found_free;
  g_mutex.unlock();
}

void leave(int) { siglongjmp(g_out, 1); }

class SignalGuards : public testing::Test {
 protected:
  void SetUp() override {
    g_came = 0;
    g_found_free = 0;
    sigaction(SIGALRM, nullptr, &before_);
  }
  void TearDown() override { sigaction(SIGALRM, &before_, nullptr); }
  static void handle_with(void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, nullptr);
  }
  struct sigaction before_ {};
};

TEST_F(SignalGuards, AHandlerComesWhenTheLockIsFree) {
  handle_with(look);
  {
    const WholeLock lock(g_mutex);
    raise(SIGALRM);
    EXPECT_EQ(g_came, 0);
  }
  EXPECT_EQ(g_came, 1);
  EXPECT_EQ(g_found_free, 1);
}

TEST_F(SignalGuards, AHandlerThatLeavesLeavesNoLockBehind) {
  handle_with(leave);
  if (sigsetjmp(g_out, 1) == 0) {
    const WholeLock lock(g_mutex);
    raise(SIGALRM);
  }
  ASSERT_TRUE(g_mutex.try_lock());
  g_mutex.unlock();
}

TEST_F(SignalGuards, TheMaskIsAsItWas) {
  sigset_t before, within, after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  {
    const SignalGuard guard;
    const SignalGuard another;
    pthread_sigmask(SIG_BLOCK, nullptr, &within);
  }
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  for (int s = 1; s < NSIG; ++s) EXPECT_EQ(sigismember(&before, s), sigismember(&after, s)) << s;
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) EXPECT_EQ(sigismember(&within, own), 0) << own;
  for (const int others : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGPROF, SIGCHLD}) EXPECT_EQ(sigismember(&within, others), 1) << others;
}

}  // namespace
}  // namespace fallow
