// What rests when: one policy per simulation. A policy is one source in policies/, one test and one line in
// policy.cpp.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "predict/predictor.hpp"
#include "sim/link_rest.hpp"

namespace fallow::sim {

enum class CoreRule : std::uint8_t {
  spin,   ///< polls while it waits
  sleep,  ///< polls for `timer`, then blocks; waking takes NodeSpec::core_wake
};

struct CorePolicy {
  CoreRule rule = CoreRule::spin;
  Time timer = 50 * kUs;
};

struct PolicyOptions {
  double lead = 0.05;                ///< displacement factor of predictors
  double budget = 0.01;              ///< adaptive: accepted slowdown
  Time idle_timer = 50 * kUs;        ///< hardware: idling before the rest
  Time deep_timer = kNever;          ///< likewise before the deep state
  Nanoseconds threshold{20'000};     ///< pps: grouping threshold
  Time call_cost = 0;                ///< of a core per call, for the predictor
  CorePolicy core;
  bool upper_links = true;           ///< hardware and oracle: links between switches too
};

using MakePredictor = std::function<std::unique_ptr<predict::Predictor>()>;

/// A policy at work.
struct Policy {
  std::string name = "always-on";
  LinkPolicy edge, upper;
  CorePolicy core;
  MakePredictor predictor;  ///< one per rank; null: none
  Time call_cost = 0;
};

struct PolicyInfo {
  const char* name;
  const char* help;  ///< one sentence
  Policy (*make)(const PolicyOptions& options, const LinkSpec& link);
};

std::span<const PolicyInfo> policies() noexcept;
/// Throws std::invalid_argument if there is no such policy.
Policy make_policy(std::string_view name, const PolicyOptions& options, const LinkSpec& link);

}  // namespace fallow::sim
