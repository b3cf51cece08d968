// What rests when: one policy per simulation. A policy is one source in policies/, one test and one line in
// policy.cpp (of links) or core_policy.cpp (of cores).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "predict/predictor.hpp"
#include "sim/core_policy.hpp"
#include "sim/link_rest.hpp"
#include "sim/silence.hpp"

namespace fallow::sim {

/// Messages are made smaller at the cards (Dickov, chapter 4): so many fewer lanes carry them as fast.
struct CompressPolicy {
  enum class What : std::uint8_t { all, point_to_point, collectives };
  double ratio = 1;                 ///< size of a message after it, of before; 1: none
  std::uint64_t least_bytes = 1024; ///< smaller messages stay as they are
  What what = What::all;            ///< which messages hold data that bears it

  bool active() const noexcept { return ratio < 1; }
  /// Lanes that carry compressed messages at the rate of whole ones.
  std::uint32_t lanes_of(std::uint32_t lanes) const noexcept;
};

struct NetworkPolicy {
  LinkPolicy edge, upper, switches, cards;
  SilencePolicy silence;  ///< edge links whose rule is `planned` also rest after silences
  CompressPolicy compress;
};

/// What rests of a node's links do without a predictor.
enum class Marks : std::uint8_t {
  none,
  calls,  ///< links wake for each call and rest after it
  loops,  ///< the same for calls that follow each other closely
};

/// Time that a predictor takes of its core.
struct PredictorCost {
  Time call = 0;    ///< each call
  Time search = 0;  ///< each pattern search
  Time tuning = 0;  ///< each tuning of the threshold

  /// As published for pps and spps: interception 1 us, 16.5 us a search on average (table 5.4), tuning 5 to 10 us (5.3.3).
  static constexpr PredictorCost published() noexcept { return {1 * kUs, 16'500 * kNs, 7'500 * kNs}; }
};

struct PolicyOptions {
  double lead = 0.05;                ///< displacement factor of predictors
  double budget = 0.01;              ///< adaptive: accepted slowdown
  Time idle_timer = 50 * kUs;        ///< hardware: idling before the rest
  Time deep_timer = kNever;          ///< likewise before the deep state; not kNever: other policies may use it, too
  Nanoseconds threshold{20'000};     ///< pps: grouping threshold
  std::uint32_t sample_gaps = 0;     ///< spps: gaps that its threshold is tuned on; 0: its default
  bool cap_by_first = true;          ///< pps, spps: the first predicted pattern's length caps that of later ones
  bool restarts = true;              ///< spps: tunes again when gaps come close to the threshold
  Time loop_gap = 20 * kUs;          ///< loops: calls closer than this belong together
  PredictorCost cost;
  CoreOptions core;
  CompressPolicy compress;
  bool upper_links = true;           ///< links between switches too
  bool switches = false;             ///< the switches themselves too
  bool cards = false;                ///< network cards too
  Time part_timer = 2 * kMs;         ///< hardware: idling of a switch or card before its rest
};

using MakePredictor = std::function<std::unique_ptr<predict::Predictor>()>;

/// A policy at work.
struct Policy : NetworkPolicy {
  std::string name = "always-on";
  CorePolicy core;
  MakePredictor predictor;  ///< one per rank; null: none
  PredictorCost cost;
  Marks marks = Marks::none;
  Time loop_gap = 0;        ///< with marks: what ends a burst of calls
};

struct PolicyInfo {
  const char* name;
  const char* help;  ///< one sentence
  Policy (*make)(const PolicyOptions& options, const LinkSpec& link);
};

std::span<const PolicyInfo> policies() noexcept;
/// Throws std::invalid_argument if there is no such policy, or an option is out of range.
Policy make_policy(std::string_view name, const PolicyOptions& options, const Machine& machine);

}  // namespace fallow::sim
