#include "predict/plain.hpp"

#include <algorithm>
#include <bit>

#include "predict/hash.hpp"

namespace fallow::predict {
namespace {

/// What tells calls apart: traces of other tools know no call sites, so the operation counts too.
std::uint64_t identity(const Call& call) noexcept { return (std::uint64_t{call.site} << 16) | call.op; }

}  // namespace

WaitForecast OraclePredictor::on_enter(const Call&) noexcept {
  if (next_ >= future_.size()) return {};
  const Nanoseconds wait = future_[next_].wait;
  return {next_, 1, wait, wait, wait};
}

Answer OraclePredictor::on_exit(const Event&) noexcept {
  const std::size_t now = next_++;
  if (next_ >= future_.size()) return {Nanoseconds(0), Nanoseconds(0), true};
  const Nanoseconds gap = future_[next_].enter - future_[now].exit;
  return {oracle_rest(gap, react_), gap, true};
}

LastPredictor::LastPredictor(const LastOptions& options)
    : options_(options), sites_(std::bit_ceil(std::max(16U, options.max_sites))) {}

LastPredictor::Site& LastPredictor::site_of(const Call& call) noexcept {
  return sites_[(mix(identity(call)) >> 20) & (sites_.size() - 1)];
}

WaitForecast LastPredictor::on_enter(const Call& call) noexcept {
  const Site& site = site_of(call);
  return {identity(call), site.known ? 1U : 0U, site.wait, site.wait, site.wait};
}

Answer LastPredictor::on_exit(const Event& event) noexcept {
  Site& site = site_of(event);
  bool expected = false;
  if (previous_ != nullptr) {
    expected = previous_->known && previous_->next == identity(event);
    previous_->gap = event.enter - last_exit_;
    previous_->next = identity(event);
    previous_->known = true;
  }
  site.wait = event.wait;
  last_exit_ = event.exit;
  previous_ = &site;
  if (!site.known) return {Nanoseconds(0), Nanoseconds(0), expected};
  const auto gap = static_cast<double>(site.gap.value);
  const auto rest = static_cast<std::int64_t>(gap - gap * options_.lead) - options_.react.up.value;
  return {Nanoseconds(rest > options_.react.down.value ? rest : 0), site.gap, expected};
}

PredictorState LastPredictor::state() const noexcept {
  PredictorState s;
  s.memory_bytes = sites_.size() * sizeof(Site);
  return s;
}

}  // namespace fallow::predict
