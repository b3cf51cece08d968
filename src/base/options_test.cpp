#include "base/options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace fallow {
namespace {

TEST(Options, FractionsAcceptPercentAndPlainNumbers) {
  double v = -1;
  EXPECT_TRUE(parse_fraction("1%", v));
  EXPECT_DOUBLE_EQ(v, 0.01);
  EXPECT_TRUE(parse_fraction(" 2.5 % ", v));
  EXPECT_DOUBLE_EQ(v, 0.025);
  EXPECT_TRUE(parse_fraction("0.03", v));
  EXPECT_DOUBLE_EQ(v, 0.03);
  for (const char* bad : {"", "%", "-1%", "1%%", "nan", "inf", "one", "0x1"}) EXPECT_FALSE(parse_fraction(bad, v)) << bad;
}

TEST(Options, TimesHaveUnits) {
  double ns = -1;
  for (const auto& [text, expected] : {std::pair{"400ns", 400.0}, {" 1.5 us ", 1500.0}, {"2ms", 2e6}, {"0.5s", 5e8}, {"0", 0.0}}) {
    EXPECT_TRUE(parse_time(text, ns)) << text;
    EXPECT_DOUBLE_EQ(ns, expected);
  }
  for (const char* bad : {"", "5", "us", "-1us", "1 us us", "nanns", "1h", "auto"}) EXPECT_FALSE(parse_time(bad, ns)) << bad;
}

TEST(Options, TheGapOfTestsIsATimeOrAuto) {
  Options o;
  EXPECT_LT(test_gap_of(o, "/bin/app"), test_gap_of(o, "/usr/bin/python3.11"));
  EXPECT_EQ(test_gap_of(o, "/opt/python/app"), test_gap_of(o, ""));
  EXPECT_EQ(test_gap_of(o, "/usr/bin/python3.11", 2), 2 * test_gap_of(o, "/usr/bin/python3.11"));
  EXPECT_EQ(test_gap_of(o, "/usr/bin/python3.11", 100), 1000);
  EXPECT_EQ(test_gap_of(o, "/bin/app", 2), test_gap_of(o, "/bin/app"));
  EXPECT_TRUE(test_gap_is_of_interpreter(o, "pypy3"));
  EXPECT_FALSE(test_gap_is_of_interpreter(o, "/bin/app"));
  EXPECT_TRUE(set_option(o, "test_gap", "1us").empty());
  EXPECT_EQ(test_gap_of(o, "pypy3"), 1000);
  EXPECT_EQ(test_gap_of(o, "pypy3", 2), 1000);
  EXPECT_FALSE(test_gap_is_of_interpreter(o, "pypy3"));
  EXPECT_DOUBLE_EQ(o.test_gap_ns, 1000);
  EXPECT_NE(set_option(o, "test_gap", "2ms").find("auto|0ns..1ms"), std::string::npos);
  EXPECT_DOUBLE_EQ(o.test_gap_ns, 1000);
  EXPECT_TRUE(set_option(o, "test_gap", "auto").empty());
  EXPECT_LT(o.test_gap_ns, 0);
}

TEST(Options, BadValueKeepsTheOldOneAndSaysWhatIsAccepted) {
  Options o;
  const std::string problem = set_option(o, "mode", "snooze");
  EXPECT_NE(problem.find("spin|yield|sleep|auto"), std::string::npos) << problem;
  EXPECT_EQ(o.mode, WaitMode::automatic);
  EXPECT_FALSE(set_option(o, "slowdown", "250%").empty());
  EXPECT_DOUBLE_EQ(o.slowdown, 0.01);
  EXPECT_FALSE(set_option(o, "ring_events", "3").empty());
  EXPECT_EQ(o.ring_events, 16384u);
  EXPECT_FALSE(set_option(o, "no_such", "1").empty());
}

TEST(Options, CountsReachToTheirBounds) {
  Options o;
  for (const char* good : {"256", "16777216"}) EXPECT_EQ(set_option(o, "ring_events", good), "");
  EXPECT_EQ(o.ring_events, 16777216u);
  for (const char* bad : {"255", "16777217", "4294967552", "-256", "1e4", ""}) EXPECT_NE(set_option(o, "ring_events", bad), "") << bad;
  EXPECT_EQ(o.ring_events, 16777216u);
}

TEST(Options, TheNameOfSharedMemoryIsOneThatThereCanBe) {
  Options o;
  EXPECT_EQ(set_option(o, "run_id", std::string(100, 'a')), "");
  EXPECT_NE(set_option(o, "run_id", std::string(101, 'b')), "");
  EXPECT_NE(set_option(o, "run_id", "a/b"), "");
  EXPECT_EQ(o.run_id, std::string(100, 'a'));
}

TEST(Options, EveryDefaultInTheTableParsesAndIsTheDefault) {
  std::set<std::string> names;
  for (const OptionInfo& row : option_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    Options o;
    EXPECT_TRUE(row.parse(o, row.default_value)) << row.name;
    EXPECT_EQ(o.mode, Options{}.mode);
    EXPECT_DOUBLE_EQ(o.slowdown, Options{}.slowdown);
    EXPECT_EQ(o.ring_events, Options{}.ring_events);
    EXPECT_EQ(o.wake, Options{}.wake);
    EXPECT_EQ(o.test_gap_ns, Options{}.test_gap_ns);
    EXPECT_GT(std::string(row.help).size(), 10u);
  }
}

TEST(Options, EnvironmentIsReadAndProblemsAreCollected) {
  setenv("FALLOW_MODE", "sleep", 1);
  setenv("FALLOW_SLOWDOWN", "lots", 1);
  std::vector<std::string> problems;
  const Options o = options_from_environment(problems);
  unsetenv("FALLOW_MODE");
  unsetenv("FALLOW_SLOWDOWN");
  EXPECT_EQ(o.mode, WaitMode::sleep);
  EXPECT_DOUBLE_EQ(o.slowdown, 0.01);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].find("FALLOW_SLOWDOWN = 'lots' is not a fraction"), 0u) << problems[0];
}

TEST(Options, AVariableThatIsSetToNothingIsNotSet) {
  setenv("FALLOW_SLOWDOWN", "", 1);
  std::vector<std::string> problems;
  EXPECT_DOUBLE_EQ(options_from_environment(problems).slowdown, 0.01);
  unsetenv("FALLOW_SLOWDOWN");
  EXPECT_TRUE(problems.empty());
}

}  // namespace
}  // namespace fallow
