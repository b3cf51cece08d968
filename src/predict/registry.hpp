// All predictors by name. A new one is a source, a test and one line in registry.cpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "predict/adaptive.hpp"
#include "predict/plain.hpp"
#include "predict/pps.hpp"
#include "predict/predictor.hpp"
#include "predict/spps.hpp"

namespace fallow::predict {

/// Options of all predictors. `react` is copied into each.
struct PredictorOptions {
  ReactTimes react;
  std::span<const Event> future;  ///< for the oracle; must outlive it
  PpsOptions pps;
  SppsOptions spps;
  LastOptions last;
  AdaptiveOptions adaptive;

  void set_react(ReactTimes times) noexcept;  ///< for all of them
};

struct PredictorEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Predictor> (*make)(const PredictorOptions&);
};

[[nodiscard]] std::span<const PredictorEntry> predictors() noexcept;

/// nullptr: no predictor has this name.
[[nodiscard]] std::unique_ptr<Predictor> make_predictor(std::string_view name, const PredictorOptions& options);

}  // namespace fallow::predict
