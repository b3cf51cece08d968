// The plain predictors: the upper bound and the reference.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "predict/predictor.hpp"

namespace fallow::predict {

/// Knows every gap in advance.
class OraclePredictor final : public Predictor {
 public:
  /// `future`: the events that will be fed, in order; must outlive the predictor.
  OraclePredictor(std::span<const Event> future, const ReactTimes& react) : future_(future), react_(react) {}
  WaitForecast on_enter(const Call& call) noexcept override;
  Answer on_exit(const Event& event) noexcept override;
  [[nodiscard]] PredictorState state() const noexcept override { return {}; }
  /// Goes on with another piece of the future: the event that ends next, and what follows it.
  void look_at(std::span<const Event> future) noexcept {
    future_ = future;
    next_ = 0;
  }

 private:
  std::span<const Event> future_;
  ReactTimes react_;
  std::size_t next_ = 0;  // event that is about to end
};

struct LastOptions {
  double lead = 0.05;            ///< as for pps
  ReactTimes react;
  std::uint32_t max_sites = 4096;  ///< rounded up to a power of two; colliding sites share a place
};

/// Expects after each call what followed the last call from the same site.
class LastPredictor final : public Predictor {
 public:
  explicit LastPredictor(const LastOptions& options);
  WaitForecast on_enter(const Call& call) noexcept override;
  Answer on_exit(const Event& event) noexcept override;
  [[nodiscard]] PredictorState state() const noexcept override;

 private:
  struct Site {
    Nanoseconds gap, wait;
    std::uint64_t next = 0;  ///< the call that came next
    bool known = false;
  };
  [[nodiscard]] Site& site_of(const Call& call) noexcept;

  LastOptions options_;
  std::vector<Site> sites_;
  Site* previous_ = nullptr;
  Nanoseconds last_exit_;
};

}  // namespace fallow::predict
