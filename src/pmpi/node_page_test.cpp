#include "pmpi/node_page.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

namespace fallow::pmpi {
namespace {

std::string unique_run() { return "test-" + std::to_string(getpid()) + "-" + std::to_string(rand()); }

bool segment_exists(const std::string& run) {
  const std::string name = "/fallow-" + run + "-" + job_key();
  const int fd = shm_open(name.c_str(), O_RDWR, 0);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

bool shared_memory_has(const std::string& prefix) {
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().rfind(prefix, 0) == 0) return true;
  }
  return false;
}

TEST(NodePage, NameIsGivenBackWhenTheLastRankHasCome) {
  const std::string run = unique_run();
  Node first, second;
  ASSERT_EQ(first.attach(run, 0, 2), Status::ok);
  EXPECT_TRUE(segment_exists(run));
  ASSERT_EQ(second.attach(run, 1, 2), Status::ok);
  EXPECT_FALSE(segment_exists(run));
  EXPECT_EQ(first.attached(), 2u);
  EXPECT_EQ(first.slot_of(1)->world_rank.load(), 1);
  EXPECT_EQ(second.slot_of(0)->world_rank.load(), 0);
  EXPECT_EQ(first.slot_of(7), nullptr);
  EXPECT_EQ(first.slot_of(1)->wanted.load(), -1);
}

TEST(NodePage, ANameThatWasGivenBackMayBeAnotherJobs) {
  const std::string run = unique_run();
  Node first, second, another;
  ASSERT_EQ(first.attach(run, 0, 2), Status::ok);
  ASSERT_EQ(second.attach(run, 1, 2), Status::ok);
  ASSERT_EQ(another.attach(run, 0, 0), Status::ok);
  second.detach();
  EXPECT_TRUE(segment_exists(run));
  another.detach();
  Node last;
  ASSERT_EQ(last.attach(run, 0, 0), Status::ok);
  another.detach();
  EXPECT_TRUE(segment_exists(run));
}

TEST(NodePage, RanksAreFoundInWhicheverOrderTheyCame) {
  for (const std::array<std::int32_t, 3>& order : {std::array{0, 1, 2}, std::array{1, 2, 0}, std::array{2, 0, 1}, std::array{2, 1, 0}}) {
    const std::string run = unique_run();
    Node nodes[3];
    for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(nodes[i].attach(run, order[i], 3), Status::ok);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(nodes[0].slot_of(order[i]), &nodes[0].page().slots[i]);
  }
}

/// Programs expect the low numbers for what they open.
TEST(NodePage, TakesNoLowDescriptors) {
  int fd = -1;
  const auto lowest_free = [&fd] { return close(fd = open("/dev/null", O_RDONLY)) == 0 ? fd : -1; };
  const int before = lowest_free();
  Node node;
  ASSERT_EQ(node.attach(unique_run(), 0, 1), Status::ok);
  node.hang_bell();
  job_key();
  const int bell = node.bell();
  EXPECT_GT(bell, before + 100);
  EXPECT_EQ(lowest_free(), before);
  node.detach();
  EXPECT_LT(node.bell(), 0);
  EXPECT_LT(fcntl(bell, F_GETFD), 0);
}

/// What job_key() gives two ranks of a launcher that is a child of this process, one of which it starts through a script.
std::array<std::string, 2> keys_of_ranks() {
  int answer[2];
  std::array<std::array<char, 64>, 2> keys{};
  if (pipe(answer) != 0) return {};
  if (fork() == 0) {
    prctl(PR_SET_NAME, "mpirun");
    for (std::size_t rank = 0; rank < keys.size(); ++rank) {
      if (fork() == 0) {
        prctl(PR_SET_NAME, "sh");
        const bool by_script = rank == 1;  // which starts the rank
        if (by_script && fork() != 0) _exit(wait(nullptr) < 0);
        job_key().copy(keys[rank].data(), keys[rank].size() - 1);
        _exit(write(answer[1], keys[rank].data(), keys[rank].size()) < 0);
      }
    }
    while (wait(nullptr) > 0) {
    }
    _exit(0);
  }
  close(answer[1]);
  for (auto& key : keys) EXPECT_EQ(read(answer[0], key.data(), key.size()), static_cast<ssize_t>(key.size()));
  close(answer[0]);
  wait(nullptr);
  return {keys[0].data(), keys[1].data()};
}

/// As launchers in two containers, which have other starts but may have equal numbers.
TEST(NodePage, LaunchersAreToldApartByMoreThanTheirNumber) {
  const auto job = keys_of_ranks();
  usleep(static_cast<useconds_t>(2'000'000 / sysconf(_SC_CLK_TCK)));
  const auto another = keys_of_ranks();
  EXPECT_EQ(job[0], job[1]);
  EXPECT_EQ(another[0], another[1]);
  const auto without_number = [](const std::string& key) { return key.substr(key.find('-')); };
  EXPECT_NE(without_number(job[0]), without_number(another[0]));
}

TEST(NodePage, DetachingGivesTheNameBackWhenTheNumberOfRanksIsUnknown) {
  const std::string run = unique_run();
  {
    Node alone;
    ASSERT_EQ(alone.attach(run, 0, 0), Status::ok);
    EXPECT_TRUE(segment_exists(run));
  }
  EXPECT_FALSE(segment_exists(run));
}

TEST(NodePage, ARankThatIsAloneLeavesNoName) {
  const std::string run = unique_run();
  Node alone, another;
  ASSERT_EQ(alone.attach(run, 0, 1), Status::ok);
  EXPECT_FALSE(shared_memory_has("fallow-" + run));
  ASSERT_EQ(another.attach(run, 0, 1), Status::ok);  // of another program that the same shell runs
  EXPECT_EQ(alone.attached(), 1u);
  EXPECT_EQ(another.attached(), 1u);
}

TEST(NodePage, ThePageOfAnotherUserIsNotJoined) {
  const std::string run = unique_run();
  Node first, other, second;
  ASSERT_EQ(first.attach(run, 0, 2), Status::ok);
  EXPECT_EQ(other.attach(run, 1, 2, true, geteuid() + 1), Status::failed);
  EXPECT_TRUE(other.usable());
  EXPECT_FALSE(other.shared());
  EXPECT_EQ(first.attached(), 1u);
  struct stat page {};
  ASSERT_EQ(stat(("/dev/shm/fallow-" + run + "-" + job_key()).c_str(), &page), 0);
  EXPECT_EQ(page.st_mode & 0777, 0600u);
  ASSERT_EQ(second.attach(run, 1, 2), Status::ok);
}

TEST(NodePage, AllRanksKnowWhetherAllHaveCome) {
  const std::string run = unique_run();
  Node first, second;
  ASSERT_EQ(first.attach(run, 0, 2), Status::ok);
  ASSERT_EQ(second.attach(run, 1, 2), Status::ok);
  EXPECT_TRUE(first.is_complete(2));
  EXPECT_TRUE(second.is_complete(2));
}

TEST(NodePage, ARankThatWakesNobodyIsNotReliedUpon) {
  const std::string run = unique_run();
  Node first, second;
  ASSERT_EQ(first.attach(run, 0, 2), Status::ok);
  ASSERT_EQ(second.attach(run, 1, 2, false), Status::ok);
  EXPECT_FALSE(first.is_complete(2));
  EXPECT_FALSE(second.is_complete(2));
}

TEST(NodePage, WhoComesTooLateIsToldTheSameAsTheOthers) {
  const std::string run = unique_run();
  Node first, second;
  ASSERT_EQ(first.attach(run, 0, 2), Status::ok);
  EXPECT_FALSE(first.is_complete(2));
  ASSERT_EQ(second.attach(run, 1, 2), Status::ok);
  EXPECT_FALSE(second.is_complete(2));
  EXPECT_FALSE(first.is_complete(2));
}

/// Where this machine is busy, who is on the way may be held up for longer than the others wait.
TEST(NodePage, TheOthersAreWaitedForAsLongAsTheyKeepComing) {
  constexpr int kTries = 8;
  bool complete = false;
  for (int i = 0; i < kTries && !complete; ++i) {
    const std::string run = unique_run();
    Node ranks[5];
    ASSERT_EQ(ranks[0].attach(run, 0, 5), Status::ok);
    std::thread others([&] {
      for (std::int32_t rank = 1; rank < 5; ++rank) {
        usleep(100'000);
        EXPECT_EQ(ranks[rank].attach(run, rank, 5), Status::ok);
      }
    });
    complete = ranks[0].is_complete(5);
    others.join();
  }
  EXPECT_TRUE(complete);
}

TEST(NodePage, MoreRanksThanSlotsHaveAPageOfTheirOwn) {
  const std::string run = unique_run();
  Node first, last, another;
  ASSERT_EQ(first.attach(run, 0, 0), Status::ok);
  first.page().attached.store(kNodeSlots - 1);
  ASSERT_EQ(last.attach(run, kNodeSlots - 1, 0), Status::ok);
  EXPECT_EQ(another.attach(run, kNodeSlots, 0), Status::unsupported);
  EXPECT_TRUE(another.usable());
  EXPECT_FALSE(another.shared());
  EXPECT_EQ(first.attached(), kNodeSlots);
  EXPECT_EQ(&another.own(), &another.page().slots[0]);
}

TEST(NodePage, ARankOnItsWayIsNotTakenForTheFirst) {
  Node node;
  ASSERT_EQ(node.attach(unique_run(), 5, 0), Status::ok);
  node.page().attached.store(2);  // another has its slot, in which nothing is set yet
  EXPECT_EQ(node.slot_of(0), nullptr);
  EXPECT_EQ(node.slot_of(5), &node.own());
}

TEST(NodePage, WhoHasLeftIsSeenToHaveEnded) {
  const std::string run = unique_run();
  Node first, second;
  ASSERT_EQ(first.attach(run, 0, 2), Status::ok);
  ASSERT_EQ(second.attach(run, 1, 2), Status::ok);
  EXPECT_TRUE(first.some_compute_since(std::array<std::int32_t, 1>{1}, 1000));
  second.detach();
  EXPECT_FALSE(first.some_compute_since(std::array<std::int32_t, 1>{1}, 1000));
}

TEST(NodePage, ProcessorsAreThoseOfAllThatAdded) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  Node node;
  ASSERT_EQ(node.attach(unique_run(), 0, 1), Status::ok);
  EXPECT_EQ(node.page().processors.count(), static_cast<std::uint32_t>(CPU_COUNT(&before)));
  Processors processors;
  EXPECT_EQ(processors.count(), 0u);
  std::uint32_t added = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (!CPU_ISSET(cpu, &before) || sched_setaffinity(0, sizeof one, &one) != 0) continue;
    for (int twice = 0; twice < 2; ++twice) processors.add_own();
    EXPECT_EQ(processors.count(), ++added);
  }
  sched_setaffinity(0, sizeof before, &before);
}

TEST(NodePage, TheLinkRestsWhileAllItsRanksArePredictedIdle) {
  const auto page = std::make_unique<NodePage>();
  NodeSlot& a = page->slots[0];
  NodeSlot& b = page->slots[1];
  EXPECT_EQ(page->link_asked, 0u);
  EXPECT_EQ(link_rests_until(*page, 2, 100), 0u);  // nobody is there
  EXPECT_EQ(page->link_asked, 1u);
  a.doing(trace::RankState::computing, 90);
  a.rest_until = 500;
  EXPECT_EQ(link_rests_until(*page, 2, 100), 0u);
  EXPECT_EQ(link_rests_until(*page, 1, 100), 500u);
  b.doing(trace::RankState::asleep, 95);
  EXPECT_EQ(link_rests_until(*page, 2, 100), 0u);  // nothing is predicted of it
  b.rest_until = 300;
  EXPECT_EQ(link_rests_until(*page, 2, 100), 300u);
  EXPECT_EQ(link_rests_until(*page, 2, 300), 0u);  // it may need the link any time now
  b.doing(trace::RankState::in_mpi, 110);
  EXPECT_EQ(link_rests_until(*page, 2, 120), 0u);
  b.doing(trace::RankState::ended, 130);
  EXPECT_EQ(link_rests_until(*page, 2, 140), 500u);
  a.doing(trace::RankState::ended, 150);
  EXPECT_EQ(link_rests_until(*page, 2, 160), ~std::uint64_t{0});
}

TEST(NodePage, WhoStoppedWaitingInTheMeantimeMayHaveWaitedForUs) {
  const auto page = std::make_unique<NodePage>();
  NodeSlot& own = page->slots[0];
  NodeSlot& other = page->slots[1];
  const auto stopped = [&](std::uint64_t from, std::uint64_t to) { return others_stopped_waiting(*page, 2, own, from, to); };
  EXPECT_FALSE(stopped(0, 1000));  // nobody has waited yet
  own.wait_over(900);
  EXPECT_FALSE(stopped(0, 1000));  // only the rank itself
  EXPECT_TRUE(others_stopped_waiting(*page, 2, other, 0, 1000));
  other.wait_over(100);
  EXPECT_TRUE(stopped(100, 200));
  EXPECT_TRUE(stopped(50, 100));
  EXPECT_FALSE(stopped(101, 1000));  // before we were late
  EXPECT_FALSE(stopped(0, 99));      // long after
  EXPECT_FALSE(others_stopped_waiting(*page, 1, own, 0, 1000));  // a slot that no rank has
}

TEST(NodePage, EndsOfWaitsThatAreNoLongerKnownCount) {
  const auto page = std::make_unique<NodePage>();
  NodeSlot& other = page->slots[1];
  for (const std::uint64_t end : {100u, 300u, 400u, 500u, 600u}) other.wait_over(end);
  const auto stopped = [&](std::uint64_t from, std::uint64_t to) { return others_stopped_waiting(*page, 2, page->slots[0], from, to); };
  EXPECT_TRUE(stopped(150, 250));    // the end at 100 is forgotten: there may have been one here
  EXPECT_TRUE(stopped(150, 300));
  EXPECT_FALSE(stopped(310, 390));   // between two that are known
  EXPECT_FALSE(stopped(601, 1000));
}

TEST(NodePage, WhoComputesSinceBeforeATickHasNotComeToACallMadeThen) {
  const std::string run = unique_run();
  Node ranks[3];
  for (std::int32_t rank = 0; rank < 3; ++rank) ASSERT_EQ(ranks[rank].attach(run, rank, 3), Status::ok);
  const std::array<std::int32_t, 3> all{0, 1, 2};
  ranks[0].own().doing(trace::RankState::in_mpi, 1000);
  ranks[1].own().doing(trace::RankState::asleep, 900);
  ranks[2].own().doing(trace::RankState::computing, 800);
  EXPECT_TRUE(ranks[0].some_compute_since(all, 1000));
  EXPECT_FALSE(ranks[0].some_compute_since(std::array<std::int32_t, 2>{0, 1}, 1000));
  EXPECT_FALSE(ranks[0].some_compute_since(all, 800)) << "it has just left the call that is being asked about";
  ranks[2].own().doing(trace::RankState::in_mpi, 1100);
  EXPECT_FALSE(ranks[0].some_compute_since(all, 1000));
  ranks[2].own().doing(trace::RankState::computing, 1200);
  EXPECT_FALSE(ranks[0].some_compute_since(all, 1000)) << "it has been there, and left";
  EXPECT_FALSE(ranks[0].some_compute_since(std::array<std::int32_t, 1>{77}, 1000)) << "of another node nothing is known";
}

TEST(NodePage, ARankThatWaitsUnseenMayHaveWaited) {
  const auto page = std::make_unique<NodePage>();
  EXPECT_FALSE(others_stopped_waiting(*page, 2, page->slots[0], 50, 60));
  page->slots[1].unseen_until = 51;
  EXPECT_TRUE(others_stopped_waiting(*page, 2, page->slots[0], 50, 60));
  EXPECT_FALSE(others_stopped_waiting(*page, 2, page->slots[0], 51, 60)) << "no longer";
  EXPECT_FALSE(others_stopped_waiting(*page, 1, page->slots[0], 50, 60)) << "a slot that no rank has";
  page->slots[1].unseen_until = 0;
  page->slots[0].unseen_until = 100;
  EXPECT_FALSE(others_stopped_waiting(*page, 2, page->slots[0], 50, 60)) << "only the rank itself";
  page->unseen = 1;
  EXPECT_TRUE(others_stopped_waiting(*page, 2, page->slots[0], 50, 60));
  EXPECT_TRUE(others_stopped_waiting(*page, 0, page->slots[0], 50, 60));
}

/// A rank that sleeps until it is woken. Exit status 0: by the waker's stamp.
int sleep_as_rank_1(const std::string& run) {
  Node node;
  if (node.attach(run, 1, 2) != Status::ok) return 1;
  node.own().sleep_word.store(static_cast<std::uint32_t>(SleepWord::asleep));
  node.page().sleepers.fetch_add(1);
  const timespec patience{240, 0};
  while (node.own().sleep_word.load() == static_cast<std::uint32_t>(SleepWord::asleep)) {
    if (syscall(SYS_futex, &node.own().sleep_word, FUTEX_WAIT, 1, &patience, nullptr, 0) != 0 && errno == ETIMEDOUT) return 2;
  }
  return node.own().wake_tick.load() == 4711 ? 0 : 3;
}

int wake_as_rank_0(const std::string& run) {
  Node node;
  if (node.attach(run, 0, 2) != Status::ok) return 1;
  for (int i = 0; i < 2'000'000 && node.page().sleepers.load() == 0; ++i) usleep(100);
  NodeSlot* const slot = node.slot_of(1);
  if (slot == nullptr || !node.wake(*slot, 4711)) return 2;
  return node.wake(*slot, 1) ? 3 : 0;  // it is awake now: no second system call
}

TEST(NodePage, WakesASleeperInAnotherProcess) {
  const std::string run = unique_run();
  const auto start = [&](int (*body)(const std::string&)) {
    const pid_t pid = fork();
    if (pid == 0) _exit(body(run));
    return pid;
  };
  for (const pid_t child : {start(sleep_as_rank_1), start(wake_as_rank_0)}) {  // siblings, as ranks are
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

/// A rank with a bell is woken by that.
TEST(NodePage, RingsForWhoSleepsOnMoreThanTheFutex) {
  const std::string run = unique_run();
  Node waker, sleeper;
  ASSERT_EQ(waker.attach(run, 0, 2), Status::ok);
  ASSERT_EQ(sleeper.attach(run, 1, 2), Status::ok);
  EXPECT_LT(sleeper.bell(), 0);
  waker.hang_bell();
  sleeper.hang_bell();
  Node of_another_job;
  ASSERT_EQ(of_another_job.attach(unique_run(), 1, 0), Status::ok);
  of_another_job.hang_bell();
  EXPECT_GE(of_another_job.bell(), 0);
  pollfd bell{sleeper.bell(), POLLIN, 0};
  ASSERT_GE(bell.fd, 3);
  const auto sleeps = [&] {
    sleeper.own().by_bell.store(1);
    sleeper.own().sleep_word.store(static_cast<std::uint32_t>(SleepWord::asleep));
  };
  sleeps();
  EXPECT_EQ(poll(&bell, 1, 0), 0);
  EXPECT_TRUE(waker.wake(*waker.slot_of(1), 7));
  EXPECT_EQ(poll(&bell, 1, 5000), 1);
  sleeper.hush();
  EXPECT_EQ(poll(&bell, 1, 0), 0);
  EXPECT_FALSE(waker.wake(*waker.slot_of(1), 8));  // it is awake
  for (int i = 0; i < 2; ++i) {  // the first time it had woken by itself
    sleeps();
    EXPECT_TRUE(waker.wake(*waker.slot_of(1), 8));
  }
  sleeper.hush();
  EXPECT_EQ(poll(&bell, 1, 0), 0);
  ASSERT_NE(fcntl(bell.fd, F_GETFD) & FD_CLOEXEC, 0);

  const int other = open("/dev/zero", O_RDONLY);  // the program closes what it does not know, and uses the number
  ASSERT_EQ(dup2(other, bell.fd), bell.fd);
  EXPECT_LT(sleeper.bell(), 0);
  sleeps();
  EXPECT_TRUE(waker.wake(*waker.slot_of(1), 9));
  close(other);
  close(bell.fd);
}

TEST(NodePage, AMessageIsSaidOncePerNode) {
  const std::string run = unique_run();
  Node first, second;
  ASSERT_EQ(first.attach(run, 0, 2), Status::ok);
  ASSERT_EQ(second.attach(run, 1, 2), Status::ok);
  EXPECT_TRUE(first.first_to_say(3));
  EXPECT_FALSE(second.first_to_say(3));
  EXPECT_TRUE(second.first_to_say(4));
}

TEST(NodePage, RunNameThatCannotBeSharedMemoryFallsBackToAPrivatePage) {
  Node node;
  EXPECT_EQ(node.attach(std::string(300, 'x'), 5, 1), Status::failed);
  EXPECT_FALSE(node.shared());
  EXPECT_EQ(node.attached(), 1u);
  EXPECT_EQ(node.own().world_rank.load(), 5);
  EXPECT_EQ(node.slot_of(5), nullptr);  // nobody to wake
  EXPECT_FALSE(node.is_complete(1));
}

}  // namespace
}  // namespace fallow::pmpi
