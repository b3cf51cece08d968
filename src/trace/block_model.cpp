#include "trace/block_model.hpp"

namespace fallow::trace {

BlockModel::BlockModel(bool fixed) {
  if (!fixed) return;
  known_.resize(kTemplates);
  slots_.resize(std::size_t{1} << kMaxContextBits);
  contexts_.resize(slots_.size());
}

void BlockModel::begin(unsigned context_bits) {
  context_bits_ = context_bits;
  const std::size_t slots = std::size_t{1} << context_bits;
  if (slots_.size() < slots) slots_.resize(slots);
  std::fill_n(slots_.begin(), slots, std::uint16_t{0});
  templates_ = 0;
  recent_ = {};
  previous_ = kNone;
  used_ = replaced_ = 0;
}

Expectation& BlockModel::take_context(std::uint32_t t) {
  std::uint16_t& place = slots_[slot_];
  if (place == 0) {
    if (used_ == contexts_.size()) contexts_.resize(std::max<std::size_t>(16, 2 * contexts_.size()));
    place = static_cast<std::uint16_t>(++used_);
  } else {
    if (!context_valid_) ++replaced_;
    const Expectation& pushed_out = contexts_[place - 1u];
    Known& owner = known_[pushed_out.event_template];
    if (owner.place == place) {
      owner.last = pushed_out;
      owner.place = 0;
    }
  }
  Known& known = known_[t];
  Expectation& x = contexts_[place - 1u];
  x = known.place != 0 ? contexts_[known.place - 1u] : known.last;
  x.event_template = t;
  x.check = check_;
  known.place = place;
  return x;
}

bool BlockModel::add_template(const Template& t) {
  if (templates_ == kTemplates) return false;
  if (templates_ == known_.size()) known_.resize(std::max<std::size_t>(16, 2 * known_.size()));
  known_[templates_] = Known{t, kNone, 0, {}};
  ++templates_;
  return true;
}

}  // namespace fallow::trace
