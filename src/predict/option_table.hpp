// The one table of what predictors can be told: the command line, the bindings and the documentation come from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "predict/registry.hpp"

namespace fallow::predict {

enum class OptionUnit : std::uint8_t { time, share, number, count, bytes, flag };  ///< time: ns

struct PredictOption {
  std::string_view name;        ///< "sample_gaps"
  std::string_view predictors;  ///< names of those that heed it, separated by blanks
  OptionUnit unit;
  double least, most;           ///< accepted values; a flag has 0 and 1
  std::string_view help;        ///< one sentence without a full stop
  double (*get)(const PredictorOptions& options) noexcept;
  void (*set)(PredictorOptions& options, double value) noexcept;  ///< for all predictors that heed it
};

[[nodiscard]] std::span<const PredictOption> option_table() noexcept;

/// Sets one option. Returns an empty string, or what is wrong in one line: no such option, out of range, not whole.
std::string set_option(PredictorOptions& options, std::string_view name, double value);

/// An empty string, or in one line which options do not go together though each is in its range.
std::string options_conflict(const PredictorOptions& options);

}  // namespace fallow::predict
