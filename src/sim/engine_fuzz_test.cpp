// Random programs, right and wrong ones: the engine must end or get stuck exactly as a replay without clock does
// that searches lists from their beginning, whatever the network, and give the same bytes twice.
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>
#include <sstream>

#include "sim/test_programs.hpp"

namespace fallow::sim {
namespace {

using namespace testing;

struct Action {
  bool send;
  std::int32_t peer, tag;
  std::int64_t request;         // >= 0: non-blocking receive
  std::vector<std::uint32_t> waits;
};
using Actions = std::vector<std::vector<Action>>;

/// Pairs of sends and receives in random places; sometimes one of them is lost, or receives change places.
Actions random_program(std::mt19937_64& random, std::uint32_t ranks) {
  Actions program(ranks);
  std::vector<std::vector<std::uint32_t>> open(ranks);
  std::vector<std::uint32_t> next(ranks, 0);
  const auto length = 20 + random() % 200;
  const auto loss = 50 + random() % 2000;
  for (std::uint64_t i = 0; i < length; ++i) {
    const auto from = static_cast<std::uint32_t>(random() % ranks), to = static_cast<std::uint32_t>(random() % ranks);
    const auto tag = static_cast<std::int32_t>(random() % 3);
    if (random() % loss != 0) program[from].push_back({true, static_cast<std::int32_t>(to), tag, -1, {}});
    if (random() % loss == 0) continue;
    if (random() % 2 == 0) {
      open[to].push_back(next[to]);
      program[to].push_back({false, static_cast<std::int32_t>(from), tag, next[to]++, {}});
    } else {
      program[to].push_back({false, static_cast<std::int32_t>(from), tag, -1, {}});
    }
    if (random() % 4 == 0 && !open[to].empty()) program[to].push_back({false, 0, 0, -1, std::exchange(open[to], {})});
    if (random() % 40 == 0 && program[to].size() > 1) std::swap(program[to].back(), program[to][program[to].size() - 2]);
  }
  // A wait that has come before its receives would be refused, not stuck: put those back in order.
  for (auto& actions : program) {
    std::set<std::uint32_t> made;
    std::erase_if(actions, [&](const Action& a) {
      if (a.request >= 0) made.insert(static_cast<std::uint32_t>(a.request));
      for (const std::uint32_t w : a.waits) {
        if (!made.contains(w)) return true;
      }
      return false;
    });
  }
  return program;
}

/// Ranks that never end.
std::set<std::uint32_t> stuck_without_clock(const Actions& program) {
  struct Receive {
    std::int32_t source, tag;
    std::int64_t request;
    bool blocking;
  };
  struct Message {
    std::int32_t source, tag;
  };
  const auto ranks = static_cast<std::uint32_t>(program.size());
  std::vector<std::size_t> at(ranks, 0);
  std::vector<std::deque<Receive>> posted(ranks);
  std::vector<std::deque<Message>> unexpected(ranks);
  std::vector<std::set<std::uint32_t>> done(ranks);
  std::vector<bool> blocked(ranks, false);
  const auto post = [&](std::uint32_t r, Receive receive) {
    auto& queue = unexpected[r];
    for (auto m = queue.begin(); m != queue.end(); ++m) {
      if (m->source != receive.source || m->tag != receive.tag) continue;
      queue.erase(m);
      if (receive.request >= 0) done[r].insert(static_cast<std::uint32_t>(receive.request));
      return true;
    }
    posted[r].push_back(receive);
    return false;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      while (!blocked[r] && at[r] < program[r].size()) {
        const Action& a = program[r][at[r]];
        if (!a.waits.empty()) {
          bool all = true;
          for (const std::uint32_t w : a.waits) all = all && done[r].contains(w);
          if (!all) break;
        } else if (a.send) {
          const auto to = static_cast<std::uint32_t>(a.peer);
          auto& queue = posted[to];
          auto q = queue.begin();
          while (q != queue.end() && !(q->source == static_cast<std::int32_t>(r) && q->tag == a.tag)) ++q;
          if (q == queue.end()) {
            unexpected[to].push_back({static_cast<std::int32_t>(r), a.tag});
          } else {
            if (q->blocking) blocked[to] = false, ++at[to];
            if (q->request >= 0) done[to].insert(static_cast<std::uint32_t>(q->request));
            queue.erase(q);
          }
        } else if (!post(r, {a.peer, a.tag, a.request, a.request < 0}) && a.request < 0) {
          blocked[r] = moved = true;
          break;
        }
        if (!blocked[r] || a.send) ++at[r];
        moved = true;
      }
    }
  }
  std::set<std::uint32_t> stuck;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (at[r] < program[r].size()) stuck.insert(r);
  }
  return stuck;
}

Program written(const Actions& actions, std::mt19937_64& random) {
  Program p(static_cast<std::uint32_t>(actions.size()));
  for (std::uint32_t r = 0; r < actions.size(); ++r) {
    for (const Action& a : actions[r]) {
      p.compute(static_cast<std::int64_t>(random() % 3 == 0 ? random() % 20000 : 0));
      if (!a.waits.empty()) {
        p.wait(r, Op::waitall, a.waits);
      } else if (a.send) {
        p.p2p(r, Op::send, a.peer, random() % 60000, a.tag);
      } else {
        p.p2p(r, a.request >= 0 ? Op::irecv : Op::recv, a.peer, 0, a.tag, a.request);
      }
    }
  }
  return p;
}

std::set<std::uint32_t> stuck_in(const std::string& text) {
  std::set<std::uint32_t> stuck;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  rank ")) stuck.insert(static_cast<std::uint32_t>(std::stoul(line.substr(7))));
  }
  return stuck;
}

class RandomPrograms : public ::testing::TestWithParam<int> {};

TEST_P(RandomPrograms, EndOrGetStuckAsWithoutAClock) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  for (int round = 0; round < 20; ++round) {
    const auto ranks = static_cast<std::uint32_t>(1 + random() % 8);
    const Actions actions = random_program(random, ranks);
    const std::set<std::uint32_t> expected = stuck_without_clock(actions);
    Program p = written(actions, random);
    Machine machine = crossbar(8);
    if (round % 2 == 0) machine.topology = parse_xgft("XGFT(2;2,4;1,2)");
    machine.node.ranks = 1 + random() % 2;
    machine.lookahead = static_cast<Time>(random() % 2) * kUs;
    machine.contention = random() % 4 == 0 ? Contention::none : Contention::full;
    const Policy policy = make_policy(policies()[random() % policies().size()].name, {}, machine);
    std::string first;
    machine.domains = static_cast<std::uint32_t>(random() % 5);
    for (unsigned i = 0; i < 3; ++i) {
      std::string outcome;
      std::set<std::uint32_t> stuck;
      try {
        outcome = to_json(p.run(machine, policy, 1 + i / 2));
      } catch (const SimError& e) {
        outcome = e.what();
        stuck = stuck_in(outcome);
      }
      ASSERT_EQ(stuck, expected) << outcome;
      if (i == 0) first = outcome;
      ASSERT_EQ(outcome, first);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, ::testing::Range(0, 40));

}  // namespace
}  // namespace fallow::sim
