#include "predict/pps.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "predict/evaluate.hpp"
#include "predict/hash.hpp"
#include "predict/test_streams.hpp"

namespace fallow::predict {
namespace {

using streams::Builder;
using streams::kMs;
using streams::kUs;

constexpr std::uint16_t kSendrecv = 41, kAllreduce = 10;

/// Figure 5.3 without the lengths of gaps: grams 41-41-41 | 10 | 10.
std::vector<Event> figure_5_3(int iterations) { return streams::alya(iterations, 0.0); }

std::uint64_t gram_hash(std::initializer_list<std::uint32_t> calls) {
  std::uint64_t hash = 0;
  for (const std::uint32_t call : calls) hash = extend_hash(hash, call);
  return hash;
}

std::uint64_t pattern_hash(std::initializer_list<std::initializer_list<std::uint32_t>> grams) {
  std::uint64_t hash = 0;
  for (const auto& gram : grams) hash = extend_hash(hash, gram_hash(gram) + gram.size());
  return hash;
}

TEST(Pps, FormsGramsAsInFigure52) {
  PpsPredictor pps({});
  const auto stream = figure_5_3(2);
  for (const Event& event : stream) pps.on_exit(event);
  const GramArray& grams = pps.grams();
  ASSERT_EQ(grams.size(), 5U);  // the sixth is still running
  EXPECT_EQ(grams[0].hash, gram_hash({kSendrecv, kSendrecv, kSendrecv}));
  EXPECT_EQ(grams[0].length, 3U);
  EXPECT_EQ(grams[0].gap.value, 400 * 1000);
  EXPECT_EQ(grams[1].hash, gram_hash({kAllreduce}));
  EXPECT_EQ(grams[2].gap.value, 2'000'000);
  EXPECT_TRUE(grams.same(0, 3));
  EXPECT_FALSE(grams.same(0, 1));
  EXPECT_FALSE(grams.same(1, 5));  // not complete
}

TEST(Pps, ARestartForgetsAll) {
  PpsPredictor again({}), fresh({});
  const auto stream = figure_5_3(12);
  for (const Event& event : stream) again.on_exit(event);
  ASSERT_TRUE(again.predicting());
  again.restart(PpsOptions{}.threshold);
  const std::uint64_t before = again.state().searches;
  for (const Event& event : stream) {
    EXPECT_EQ(again.on_exit(event).rest_for, fresh.on_exit(event).rest_for);
    EXPECT_EQ(again.predicting(), fresh.predicting());
  }
  EXPECT_EQ(again.state().searches - before, fresh.state().searches);
}

TEST(Pps, PredictsAtTheTwentyFirstCallOfFigure53) {
  PpsPredictor pps({});
  const auto stream = figure_5_3(6);
  for (std::size_t call = 1; call <= 20; ++call) {
    pps.on_exit(stream[call - 1]);
    ASSERT_FALSE(pps.predicting()) << "call " << call;
  }
  pps.on_exit(stream[20]);
  ASSERT_TRUE(pps.predicting());
  EXPECT_EQ(pps.pattern_size(), 3U);
  EXPECT_EQ(pps.predicted_from(), 12U);
  EXPECT_EQ(pps.predicted_gram(0).hash, gram_hash({kSendrecv, kSendrecv, kSendrecv}));
  EXPECT_EQ(pps.predicted_gram(1).hash, gram_hash({kAllreduce}));
  EXPECT_EQ(pps.predicted_gram(2).hash, gram_hash({kAllreduce}));
}

/// Rows of figure 5.3 (c): when each pattern is inserted and how often it has been seen.
TEST(Pps, FillsThePatternListAsInFigure53) {
  PpsPredictor pps({});
  const auto stream = figure_5_3(6);
  const auto ab = pattern_hash({{41, 41, 41}, {10}});
  const auto bc = pattern_hash({{10}, {10}});
  const auto ca = pattern_hash({{10}, {41, 41, 41}});
  const auto abc = pattern_hash({{41, 41, 41}, {10}, {10}});
  const auto frequency = [&pps](std::uint64_t hash, std::uint32_t length) {
    const auto* pattern = pps.patterns().find(hash, length);
    return pattern == nullptr ? 0U : pattern->frequency;
  };
  for (std::size_t call = 1; call <= 21; ++call) {
    pps.on_exit(stream[call - 1]);
    EXPECT_EQ(frequency(ab, 2), call < 9 ? 0U : call < 15 ? 1U : 2U) << call;
    EXPECT_EQ(frequency(bc, 2), call < 11 ? 0U : 1U) << call;
    EXPECT_EQ(frequency(ca, 2), call < 13 ? 0U : 1U) << call;
    EXPECT_EQ(frequency(abc, 3), call < 17 ? 0U : call < 21 ? 2U : 3U) << call;
  }
  EXPECT_EQ(pps.patterns().find(ab, 2)->calls, 4U);
  EXPECT_EQ(pps.patterns().find(bc, 2)->calls, 2U);
  EXPECT_EQ(pps.patterns().find(abc, 3)->calls, 5U);
  const auto* pattern = pps.patterns().find(abc, 3);
  std::vector<std::uint64_t> positions;
  for (auto i = pattern->newest; i != PatternList::kNone; i = pps.patterns().position(i).older)
    positions.push_back(pps.patterns().position(i).at);
  EXPECT_EQ(positions, (std::vector<std::uint64_t>{9, 6, 3}));
}

TEST(Pps, RestsForTheGapLessLeadAndReactTime) {
  PpsOptions options;
  options.lead = 0.10;
  options.react.up = Nanoseconds(15'000);
  PpsPredictor pps(options);
  const auto stream = figure_5_3(8);
  std::vector<Answer> answers;
  for (const Event& event : stream) answers.push_back(pps.on_exit(event));
  // Iteration 7 (calls 31 to 35): after the gram of three, 0.4 ms; after the all-reduces, 0.9 ms and 2 ms.
  EXPECT_EQ(answers[30].rest_for.value, 0);
  EXPECT_EQ(answers[31].rest_for.value, 0);
  EXPECT_EQ(answers[32].rest_for.value, 400'000 - 40'000 - 15'000);
  EXPECT_EQ(answers[32].expected_gap.value, 400'000);
  EXPECT_EQ(answers[33].rest_for.value, 900'000 - 90'000 - 15'000);
  EXPECT_EQ(answers[34].rest_for.value, 2'000'000 - 200'000 - 15'000);
  EXPECT_TRUE(answers[34].call_expected);
}

TEST(Pps, GapsAreRefreshedFromTheLatestOccurrence) {
  PpsPredictor pps({});
  Builder b(1);
  for (int i = 0; i < 20; ++i) b.call(1, 1, (1.0 + 0.1 * i) * kMs).call(2, 2, 5 * kUs).call(3, 3, 0.5 * kMs);
  Answer last;
  for (const Event& event : b.take()) {
    const Answer answer = pps.on_exit(event);
    if (event.op == 3) last = answer;
  }
  EXPECT_EQ(last.expected_gap.value, 2'900'000);  // as long as before the last iteration
}

TEST(Pps, MispredictionStopsAndFirstReappearanceResumes) {
  PpsPredictor pps({});
  Builder b(1);
  const auto iterate = [&b](int n) {
    for (int i = 0; i < n; ++i) b.call(1, 1, kMs).call(2, 2, kMs).call(3, 3, kMs);
  };
  iterate(10);
  b.call(7, 7, kMs).call(8, 8, kMs).call(7, 7, kMs);  // something else
  const std::size_t foreign = 30;
  iterate(10);
  const auto stream = b.take();
  std::vector<bool> predicting;
  for (const Event& event : stream) {
    pps.on_exit(event);
    predicting.push_back(pps.predicting());
  }
  EXPECT_TRUE(predicting[foreign - 1]);
  EXPECT_FALSE(predicting[foreign]);
  std::size_t resumed = foreign;
  while (resumed < predicting.size() && !predicting[resumed]) ++resumed;
  ASSERT_LT(resumed, predicting.size());
  // Three repetitions would take nine calls and more; the first reappearance is enough.
  EXPECT_LT(resumed, foreign + 3 + 12);
  EXPECT_EQ(pps.state().mispredictions, 1U);
  for (std::size_t i = resumed; i < predicting.size(); ++i) EXPECT_TRUE(predicting[i]) << i;
}

TEST(Pps, FirstPatternCapsTheLengthOfLaterOnes) {
  for (const bool cap : {true, false}) {
    PpsOptions options;
    options.cap_by_first = cap;
    PpsPredictor pps(options);
    Builder b(1);
    for (int i = 0; i < 10; ++i) b.call(1, 1, kMs).call(2, 2, kMs);
    for (int i = 0; i < 40; ++i) b.call(1, 1, kMs).call(3, 1, kMs).call(1, 1, kMs).call(4, 1, kMs).call(5, 1, kMs);
    for (const Event& event : b.take()) pps.on_exit(event);
    EXPECT_EQ(pps.predicting(), !cap);
    if (!cap) {
      EXPECT_EQ(pps.pattern_size(), 5U);
    }
  }
}

TEST(Pps, CallsInsideAGramAreChecked) {
  PpsPredictor pps({});
  auto stream = figure_5_3(10);
  stream[41].op = 99;  // the second sendrecv of the ninth iteration
  for (std::size_t i = 0; i < 41; ++i) pps.on_exit(stream[i]);
  ASSERT_TRUE(pps.predicting());
  EXPECT_FALSE(pps.on_exit(stream[41]).call_expected);
  EXPECT_FALSE(pps.predicting());
}

TEST(Pps, AGramThatEndsTooEarlyEndsThePrediction) {
  PpsPredictor pps({});
  const auto stream = figure_5_3(10);
  for (std::size_t i = 0; i < 41; ++i) pps.on_exit(stream[i]);  // the first sendrecv of the ninth iteration
  ASSERT_TRUE(pps.predicting());
  Event early = stream[41];
  early.enter += Nanoseconds(30'000);
  early.exit += Nanoseconds(30'000);
  EXPECT_FALSE(pps.on_exit(early).call_expected);
  EXPECT_FALSE(pps.predicting());
  EXPECT_EQ(pps.state().mispredictions, 1U);
}

TEST(Pps, AGramThatGoesOnEndsThePrediction) {
  PpsPredictor pps({});
  auto stream = figure_5_3(10);
  for (std::size_t i = 0; i < 43; ++i) pps.on_exit(stream[i]);  // the third sendrecv
  ASSERT_TRUE(pps.predicting());
  Event more = stream[42];
  more.enter = stream[42].exit + Nanoseconds(2'000);
  more.exit = more.enter + Nanoseconds(1'500);
  EXPECT_FALSE(pps.on_exit(more).call_expected);
  EXPECT_FALSE(pps.predicting());
  EXPECT_EQ(pps.state().mispredictions, 1U);
}

TEST(Pps, GramsEndAtGapsLongerThanTheThreshold) {
  PpsOptions options;
  options.threshold = Nanoseconds(50'000);
  PpsPredictor pps(options);
  Builder b(1);
  b.call(1, 1, 0).call(2, 2, 50'000).call(3, 3, 50'001);
  for (const Event& event : b.take()) pps.on_exit(event);
  ASSERT_EQ(pps.grams().size(), 1U);
  EXPECT_EQ(pps.grams()[0].length, 2U);
}

TEST(Pps, SmallPoolsAreEmptiedAndStillPredict) {
  PpsOptions options;
  options.max_grams = 64;
  options.max_events = 64;
  options.max_patterns = 16;
  options.max_positions = 16;
  PpsPredictor pps(options);
  for (const Event& event : streams::chaos(20000)) pps.on_exit(event);
  EXPECT_GT(pps.state().restarts, 0U);
  EXPECT_LT(pps.state().memory_bytes, 16384U);
  Nanoseconds from(1'000'000'000'000'000);
  for (Event event : figure_5_3(100)) {
    event.enter += from;
    event.exit += from;
    pps.on_exit(event);
  }
  EXPECT_TRUE(pps.predicting());
}

TEST(Pps, PredictsPatternsOfTheShortestLengthAskedForFromSmallPools) {
  PpsOptions options;
  options.max_grams = 16;
  options.min_pattern = 7;
  options.repeats = 2;
  PpsPredictor pps(options);
  Builder b(1);
  for (int i = 0; i < 40; ++i) {
    for (std::uint16_t op = 1; op <= 7; ++op) b.call(op, op, kMs);
  }
  bool predicted = false;
  for (const Event& event : b.take()) {
    pps.on_exit(event);
    predicted = predicted || (pps.predicting() && pps.pattern_size() == 7);
  }
  EXPECT_TRUE(predicted);
}

TEST(Pps, DefaultPoolsAreLargeEnoughForThePublishedRuns) {
  // The longest published run has 12,923 gaps over 20 us per process (WRF, 64 processes).
  const auto stream = streams::bt(700, 0.02);
  PpsOptions larger;
  larger.max_grams *= 8;
  larger.max_events *= 8;
  larger.max_patterns *= 8;
  larger.max_positions *= 8;
  PpsPredictor a({}), b(larger);
  for (const Event& event : stream) {
    const Answer x = a.on_exit(event), y = b.on_exit(event);
    ASSERT_EQ(x.rest_for, y.rest_for);
  }
  EXPECT_GT(a.grams().size(), 12'923U);
  EXPECT_EQ(a.state().restarts, 0U);
}

TEST(GramArray, SaysWhichCallsAreForgotten) {
  GramArray grams(16, 16);
  for (std::uint32_t call = 0; call < 16; ++call) grams.append(100 + call);
  grams.close(Nanoseconds(1));
  std::uint32_t call = 0;
  ASSERT_TRUE(grams.call_at(grams[0], 0, call));
  EXPECT_EQ(call, 100U);
  EXPECT_FALSE(grams.call_at(grams[0], 16, call));
  grams.append(7);  // in the place of the first one
  EXPECT_FALSE(grams.call_at(grams[0], 0, call));
  ASSERT_TRUE(grams.call_at(grams[0], 1, call));
  EXPECT_EQ(call, 101U);
}

TEST(PatternList, EmptiedGivesNoPlaceTwice) {
  PatternList list(64, 256);
  GramArray grams(64, 64);
  for (std::uint64_t hash = 0; hash < 4; ++hash) list.update(hash, 2, 10, grams);
  list.remove(1, 2);
  list.clear();
  for (std::uint64_t hash = 0; hash < 4; ++hash) list.update(hash, 2, 20 + hash, grams);
  for (std::uint64_t hash = 0; hash < 4; ++hash) {
    const PatternList::Position& newest = list.position(list.find(hash, 2)->newest);
    EXPECT_EQ(newest.at, 20 + hash);
    EXPECT_EQ(newest.older, PatternList::kNone);
  }
}

TEST(PatternList, RemovesWithoutLosingOthers) {
  PatternList list(64, 256);
  GramArray grams(64, 64);
  for (std::uint32_t i = 0; i < 8; ++i) {
    grams.append(i);
    grams.close(Nanoseconds(1));
  }
  for (std::uint64_t hash = 0; hash < 60; ++hash) EXPECT_TRUE(list.update(hash, 2, hash % 4, grams));
  for (std::uint64_t hash = 0; hash < 60; hash += 2) list.remove(hash, 2);
  EXPECT_EQ(list.patterns(), 30U);
  for (std::uint64_t hash = 0; hash < 60; ++hash) EXPECT_EQ(list.find(hash, 2) != nullptr, hash % 2 == 1) << hash;
  for (int round = 0; round < 100; ++round) {  // positions of removed patterns are used again
    for (std::uint64_t hash = 0; hash < 30; hash += 2) list.update(hash, 2, 1, grams);
    for (std::uint64_t hash = 0; hash < 30; hash += 2) list.remove(hash, 2);
  }
  EXPECT_EQ(list.overflows(), 0U);
}

}  // namespace
}  // namespace fallow::predict
