#include "predict/option_table.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace fallow::predict {
namespace {

using Unit = OptionUnit;

constexpr double kHour = 3.6e12;   // ns; longer than any gap that is worth a prediction
constexpr double kMany = 1 << 24;  // elements of a table: more would be gigabytes

Nanoseconds ns(double value) noexcept { return Nanoseconds(static_cast<std::int64_t>(value)); }
std::uint32_t whole(double value) noexcept { return static_cast<std::uint32_t>(value); }
double number(Nanoseconds t) noexcept { return static_cast<double>(t.value); }
double number(auto value) noexcept { return static_cast<double>(value); }

std::string text_of(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

#define FALLOW_GET(expression) [](const PredictorOptions& o) noexcept { return number(expression); }
#define FALLOW_SET(...) [](PredictorOptions& o, double v) noexcept { __VA_ARGS__; }
/// Rows of options that pps and spps share.
#define FALLOW_BOTH(member, unit, least, most, conversion, help)                                             \
  PredictOption {                                                                                            \
    #member, "pps spps", unit, least, most, help, FALLOW_GET(o.pps.member),                                  \
        FALLOW_SET(o.pps.member = o.spps.pps.member = conversion)                                            \
  }
#define FALLOW_SPPS(member, unit, least, most, conversion, help) \
  PredictOption { #member, "spps", unit, least, most, help, FALLOW_GET(o.spps.member), FALLOW_SET(o.spps.member = conversion) }
#define FALLOW_ADAPTIVE(member, unit, least, most, conversion, help)                                                     \
  PredictOption {                                                                                                        \
    #member, "adaptive", unit, least, most, help, FALLOW_GET(o.adaptive.member), FALLOW_SET(o.adaptive.member = conversion) \
  }

constexpr std::array kOptions{
    PredictOption{"react_down", "oracle last pps spps adaptive", Unit::time, 0, kHour, "time from full power to rest",
                  FALLOW_GET(o.react.down), FALLOW_SET(o.set_react({ns(v), o.react.up}))},
    PredictOption{"react_up", "oracle last pps spps adaptive", Unit::time, 0, kHour, "time from rest to full power",
                  FALLOW_GET(o.react.up), FALLOW_SET(o.set_react({o.react.down, ns(v)}))},
    PredictOption{"threshold", "pps", Unit::time, 0, kHour, "gaps longer than this part grams (GT)",
                  FALLOW_GET(o.pps.threshold), FALLOW_SET(o.pps.threshold = ns(v))},
    PredictOption{"lead", "pps spps last", Unit::share, 0, 1, "share of a predicted gap by which to wake earlier (displacement)",
                  FALLOW_GET(o.pps.lead), FALLOW_SET(o.pps.lead = o.spps.pps.lead = o.last.lead = v)},
    FALLOW_BOTH(repeats, Unit::count, 2, 1000, static_cast<int>(v), "times in a row that a pattern must be seen to be predicted"),
    FALLOW_BOTH(min_pattern, Unit::count, 1, 1000, static_cast<int>(v), "grams of the shortest pattern"),
    FALLOW_BOTH(cap_by_first, Unit::flag, 0, 1, v != 0, "the first predicted pattern's length caps later ones"),
    FALLOW_BOTH(call_is_op_only, Unit::flag, 0, 1, v != 0, "calls are alike if the operation is, whatever peer and communicator"),
    FALLOW_BOTH(max_grams, Unit::count, 16, kMany, whole(v), "grams remembered"),
    FALLOW_BOTH(max_events, Unit::count, 16, kMany, whole(v), "calls remembered"),
    FALLOW_BOTH(max_patterns, Unit::count, 16, kMany, whole(v), "patterns remembered"),
    FALLOW_BOTH(max_positions, Unit::count, 16, kMany, whole(v), "places of patterns remembered"),
    FALLOW_SPPS(skip_gaps, Unit::count, 0, kMany, whole(v), "gaps passed over before the sample"),
    FALLOW_SPPS(sample_gaps, Unit::count, 4, kMany, whole(v), "gaps in the sample"),
    FALLOW_SPPS(demanded_share, Unit::share, 0, 1, v, "idle time that gaps above the threshold are to hold, at first"),
    FALLOW_SPPS(demanded_decay, Unit::share, 0.01, 0.9999, v, "factor by which the demand is lowered"),
    FALLOW_SPPS(demanded_least, Unit::share, 0.0001, 1, v, "demand below which the tuning gives up"),
    FALLOW_SPPS(alpha, Unit::number, 0, 1e6, v, "tolerance of gaps in the chosen bin"),
    FALLOW_SPPS(bin_gaps, Unit::number, 0, 1e6, v, "gaps that a bin may hold, times alpha over the number of bins"),
    FALLOW_SPPS(margin, Unit::share, 0, 0.9, v, "noise of gaps, and half the width of the danger zone"),
    PredictOption{"histogram_from", "spps", Unit::time, 1, kHour, "shortest gap of the tuning's histogram",
                  FALLOW_GET(o.spps.histogram_from), FALLOW_SET(o.spps.histogram_from = ns(v))},
    PredictOption{"histogram_to", "spps", Unit::time, 1, kHour, "longest gap of the tuning's histogram",
                  FALLOW_GET(o.spps.histogram_to), FALLOW_SET(o.spps.histogram_to = ns(v))},
    FALLOW_SPPS(restarts, Unit::flag, 0, 1, v != 0, "tune again when gaps come near the threshold"),
    FALLOW_SPPS(restart_within_patterns, Unit::number, 0, 1e6, v, "pattern lengths within which a second such gap restarts"),
    FALLOW_SPPS(skip_again, Unit::flag, 0, 1, v != 0, "pass over the first gaps after a restart too"),
    PredictOption{"max_sites", "last", Unit::count, 16, kMany, "call sites remembered", FALLOW_GET(o.last.max_sites),
                  FALLOW_SET(o.last.max_sites = whole(v))},
    FALLOW_ADAPTIVE(budget, Unit::share, 0, 1, v, "delay that may be caused, as a share of the run time"),
    FALLOW_ADAPTIVE(delay_price, Unit::number, 0, 1e9, v, "rest given up to avoid one unit of delay"),
    FALLOW_ADAPTIVE(late_share, Unit::share, 0, 1, v, "least share of a gap given up to avoid a late wake-up"),
    FALLOW_ADAPTIVE(start_up, Unit::time, 0, kHour, ns(v), "run time before the first call, which the budget is a share of too"),
    FALLOW_ADAPTIVE(silence, Unit::number, 0, 1e9, v, "rest after a silence of so many wake-ups; 0: never"),
    PredictOption{"memory", "adaptive", Unit::bytes, 4096, 1 << 30, "memory of its contexts",
                  FALLOW_GET(o.adaptive.memory_bytes), FALLOW_SET(o.adaptive.memory_bytes = static_cast<std::size_t>(v))},
};

#undef FALLOW_GET
#undef FALLOW_SET
#undef FALLOW_BOTH
#undef FALLOW_SPPS
#undef FALLOW_ADAPTIVE

}  // namespace

std::span<const PredictOption> option_table() noexcept { return kOptions; }

std::string set_option(PredictorOptions& options, std::string_view name, double value) {
  for (const PredictOption& row : kOptions) {
    if (row.name != name) continue;
    const bool fraction = row.unit == Unit::share || row.unit == Unit::number;
    if (!(value >= row.least && value <= row.most) || (!fraction && value != std::floor(value))) {
      return std::string(name) + " must be " + (fraction ? "a number from " : "a whole number from ") + text_of(row.least) + " to " +
             text_of(row.most) + (row.unit == Unit::time ? " ns" : "");
    }
    row.set(options, value);
    return {};
  }
  return "no predictor has an option '" + std::string(name) + "'";
}

std::string options_conflict(const PredictorOptions& options) {
  if (options.spps.histogram_from >= options.spps.histogram_to) return "histogram_from must be less than histogram_to";
  if (options.spps.demanded_share < options.spps.demanded_least) return "demanded_share must not be less than demanded_least";
  return {};
}

}  // namespace fallow::predict
