// The critical path is that which a whole history of all messages has, in little memory.
#include "sim/critical_path.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace fallow::sim {
namespace {

/// Every rank's whole path.
class History {
 public:
  struct Step {
    std::shared_ptr<const Step> before;
    std::uint32_t from = 0, to = 0;
    PathShare share;
  };
  struct Head {
    std::shared_ptr<const Step> step;
    Time since = 0, computing = 0;
  };
  struct Message {
    Head head;
    std::uint32_t rank = 0;
    Time at = 0, held = 0;
  };

  explicit History(std::uint32_t ranks) : heads_(ranks) {}
  void computed(std::uint32_t rank, Time duration) { heads_[rank].computing += duration; }
  Message sent(std::uint32_t rank, Time at) const { return {heads_[rank], rank, at, 0}; }
  void adopt(const Message& m, std::uint32_t rank, Time at) {
    auto step = std::make_shared<Step>(Step{m.head.step, m.rank, rank, own(m.head, m.at)});
    step->share.link_wake = m.held;
    step->share.transfer = at - m.at - m.held;
    heads_[rank] = {step, at, 0};
  }
  CriticalPathResult result(std::uint32_t rank, Time end) const {
    CriticalPathResult out{std::vector<PathShare>(heads_.size()), 0};
    const PathShare last = own(heads_[rank], end);
    out.ranks[rank].computing += last.computing;
    out.ranks[rank].in_calls += last.in_calls;
    for (const Step* s = heads_[rank].step.get(); s != nullptr; s = s->before.get()) {
      out.ranks[s->from].computing += s->share.computing;
      out.ranks[s->from].in_calls += s->share.in_calls;
      out.ranks[s->to].transfer += s->share.transfer;
      out.ranks[s->to].link_wake += s->share.link_wake;
      ++out.messages;
    }
    return out;
  }

 private:
  static PathShare own(const Head& head, Time until) {
    PathShare share;
    share.computing = head.computing;
    share.in_calls = until - head.since - head.computing;
    return share;
  }
  std::vector<Head> heads_;
};

/// Ranks that compute, and send and wait at random within their groups; messages stay under way for long, and several are received at a
/// time.
struct Play {
  explicit Play(std::uint32_t n, std::uint32_t among = 1) : ranks(n), groups(among) {}
  std::uint32_t ranks, groups;
  CriticalPath path{ranks};
  History history{ranks};
  std::mt19937 random{42};
  std::vector<Time> now = std::vector<Time>(ranks, 0);
  std::vector<std::pair<std::uint32_t, History::Message>> under_way;
  std::uint32_t next = 0;
  std::vector<std::uint32_t> free;

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }
  void send(std::uint32_t rank) {
    std::uint32_t message = next;
    if (free.empty()) ++next;
    else message = free.back(), free.pop_back();
    path.sent(message, rank, now[rank], now[rank]);
    under_way.emplace_back(message, history.sent(rank, now[rank]));
    if (below(4) != 0) return;
    path.held(message, 5);
    under_way.back().second.held += 5;
  }
  /// A rank gets a message, and before that is over perhaps another one.
  void receive(std::uint32_t depth) {
    if (under_way.empty()) return;
    const std::size_t i = below(static_cast<std::uint32_t>(under_way.size()));
    const auto [message, theirs] = under_way[i];
    under_way[i] = under_way.back();
    under_way.pop_back();
    const PathMessage mine = path.receive(message);
    free.push_back(message);
    if (depth != 0) receive(depth - 1);
    const std::uint32_t rank = below(ranks / groups) * groups + theirs.rank % groups;
    const Time at = std::max(now[rank], theirs.at + 20) + 1;
    path.adopt(mine, rank, at);
    history.adopt(theirs, rank, at);
    now[rank] = at;
    path.forget();
  }
  void step(std::uint32_t most_under_way) {
    const std::uint32_t rank = below(ranks);
    now[rank] += 10;
    path.computed(rank, 7);
    history.computed(rank, 7);
    send(rank);
    if (under_way.size() > most_under_way) receive(below(3));
  }
};

TEST(CriticalPath, IsThatOfTheWholeHistory) {
  for (const auto& [ranks, groups] : {std::pair{2u, 1u}, {40u, 1u}, {40u, 10u}}) {
    Play play(ranks, groups);
    for (int i = 0; i < 60'000; ++i) play.step(100);
    for (std::uint32_t rank = 0; rank < ranks; rank += 39) {
      const CriticalPathResult mine = play.path.result(rank, play.now[rank] + 3), theirs = play.history.result(rank, play.now[rank] + 3);
      EXPECT_GT(mine.messages, 300u);
      EXPECT_EQ(mine.messages, theirs.messages);
      EXPECT_TRUE(mine.ranks == theirs.ranks);
      EXPECT_TRUE(mine.unsplit == PathShare{});
      Time all = 0;
      for (const PathShare& share : mine.ranks) all += share.total();
      EXPECT_EQ(all, play.now[rank] + 3);
    }
  }
}

TEST(CriticalPath, TakesNoMoreMemoryForLongerPrograms) {
  for (const std::uint32_t groups : {1u, 20u}) {
    Play play(40, groups);
    for (int i = 0; i < 100'000; ++i) play.step(100);
    const std::size_t before = play.path.memory_bytes();
    for (int i = 0; i < 400'000; ++i) play.step(100);
    EXPECT_LE(play.path.memory_bytes(), before) << groups;
  }
}

/// Each rank waits for another one, at the same time: there are as many paths as ranks, and each goes through most of these.
TEST(CriticalPath, OfRanksInLockstepTakesNoMoreMemoryEither) {
  constexpr std::uint32_t kRanks = 1024;
  CriticalPath path(kRanks);
  History history(kRanks);
  Time now = 0;
  std::size_t before = 0;
  for (int round = 0; round < 1000; ++round) {
    std::vector<History::Message> sent;
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      path.computed(r, 10);
      history.computed(r, 10);
      path.sent(r, r, now + 11, now + 11);
      sent.push_back(history.sent(r, now + 11));
    }
    now += 30;
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      const std::uint32_t from = (r * 5 + static_cast<std::uint32_t>(round)) % kRanks;
      const PathMessage message = path.receive(from);
      path.adopt(message, r, now);
      path.forget();
      history.adopt(sent[from], r, now);
    }
    if (round == 600) before = path.memory_bytes();
  }
  EXPECT_LE(path.memory_bytes(), before);
  const CriticalPathResult mine = path.result(7, now), theirs = history.result(7, now);
  EXPECT_EQ(mine.messages, theirs.messages);
  PathShare sum = mine.unsplit, whole;
  for (std::uint32_t r = 0; r < kRanks; ++r) sum += mine.ranks[r], whole += theirs.ranks[r];
  EXPECT_TRUE(sum == whole);
  EXPECT_GT(mine.unsplit.total(), now / 2);
}

}  // namespace
}  // namespace fallow::sim
