#include "predict/option_table.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

namespace fallow::predict {
namespace {

TEST(OptionTable, DefaultsAreInRangeAndEveryOptionCanBeSetAndReadBack) {
  std::set<std::string_view> names;
  for (const PredictOption& row : option_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
    PredictorOptions options;
    const double before = row.get(options);
    EXPECT_GE(before, row.least) << row.name;
    EXPECT_LE(before, row.most) << row.name;
    for (const double value : {row.least, row.most}) {
      EXPECT_EQ(set_option(options, row.name, value), "") << row.name;
      EXPECT_EQ(row.get(options), value) << row.name;
    }
  }
}

TEST(OptionTable, OptionsReachTheirPredictors) {
  PredictorOptions options;
  set_option(options, "lead", 0.25);
  EXPECT_EQ(options.pps.lead, 0.25);
  EXPECT_EQ(options.spps.pps.lead, 0.25);
  EXPECT_EQ(options.last.lead, 0.25);
  set_option(options, "react_up", 7000);
  EXPECT_EQ(options.adaptive.react.up.value, 7000);
  EXPECT_EQ(options.adaptive.react.down.value, 10000);
  EXPECT_EQ(options.spps.pps.react.up.value, 7000);
}

TEST(OptionTable, WhatIsWrongIsSaid) {
  PredictorOptions options;
  EXPECT_EQ(set_option(options, "magic", 1), "no predictor has an option 'magic'");
  EXPECT_NE(set_option(options, "lead", 1.5), "");
  EXPECT_NE(set_option(options, "lead", std::numeric_limits<double>::quiet_NaN()), "");
  EXPECT_NE(set_option(options, "repeats", 2.5), "");
  EXPECT_EQ(options.pps.lead, PpsOptions{}.lead);
}

TEST(OptionTable, OptionsThatDoNotGoTogetherAreTold) {
  PredictorOptions options;
  EXPECT_EQ(options_conflict(options), "");
  set_option(options, "histogram_to", static_cast<double>(options.spps.histogram_from.value));
  EXPECT_EQ(options_conflict(options), "histogram_from must be less than histogram_to");
  set_option(options, "histogram_from", static_cast<double>(options.spps.histogram_to.value - 1));
  EXPECT_EQ(options_conflict(options), "");
  set_option(options, "demanded_least", options.spps.demanded_share);
  EXPECT_EQ(options_conflict(options), "");
  set_option(options, "demanded_share", options.spps.demanded_least / 2);
  EXPECT_EQ(options_conflict(options), "demanded_share must not be less than demanded_least");
}

TEST(OptionTable, NamesOfPredictorsExist) {
  for (const PredictOption& row : option_table()) {
    std::string_view rest = row.predictors;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      EXPECT_NE(make_predictor(name, {}), nullptr) << name;
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
  }
}

}  // namespace
}  // namespace fallow::predict
