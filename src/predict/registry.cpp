#include "predict/registry.hpp"

#include <array>

namespace fallow::predict {
namespace {

constexpr std::array<PredictorEntry, 5> kPredictors{{
    {"oracle", "knows every gap in advance",
     [](const PredictorOptions& o) -> std::unique_ptr<Predictor> {
       return std::make_unique<OraclePredictor>(o.future, o.react);
     }},
    {"last", "expects the gap that followed this call site last",
     [](const PredictorOptions& o) -> std::unique_ptr<Predictor> { return std::make_unique<LastPredictor>(o.last); }},
    {"pps", "repeating patterns of grams, fixed threshold and lead (Dickov 2015)",
     [](const PredictorOptions& o) -> std::unique_ptr<Predictor> { return std::make_unique<PpsPredictor>(o.pps); }},
    {"spps", "the same with a threshold that tunes itself (Dickov 2015)",
     [](const PredictorOptions& o) -> std::unique_ptr<Predictor> { return std::make_unique<SppsPredictor>(o.spps); }},
    {"adaptive", "contexts of variable length, rest by expected gain under a delay budget",
     [](const PredictorOptions& o) -> std::unique_ptr<Predictor> {
       return std::make_unique<AdaptivePredictor>(o.adaptive);
     }},
}};

}  // namespace

void PredictorOptions::set_react(ReactTimes times) noexcept {
  react = pps.react = spps.pps.react = last.react = adaptive.react = times;
}

std::span<const PredictorEntry> predictors() noexcept { return kPredictors; }

std::unique_ptr<Predictor> make_predictor(std::string_view name, const PredictorOptions& options) {
  for (const PredictorEntry& entry : kPredictors)
    if (entry.name == name) return entry.make(options);
  return nullptr;
}

}  // namespace fallow::predict
