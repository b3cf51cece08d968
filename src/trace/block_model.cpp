#include "trace/block_model.hpp"

#include <algorithm>

#include "trace/event.hpp"

namespace fallow::trace {

BlockModel::BlockModel(bool fixed) {
  if (!fixed) return;
  known_.resize(kTemplates);
  slots_.resize(std::size_t{1} << kMaxContextBits);
  contexts_.resize(slots_.size());
  saved_.resize(kTemplates);
}

void BlockModel::begin(unsigned context_bits) {
  context_bits_ = context_bits;
  const std::size_t slots = std::size_t{1} << context_bits;
  if (slots_.size() < slots) slots_.resize(slots);
  std::fill_n(slots_.begin(), slots, std::uint16_t{0});
  templates_ = 0;
  recent_ = {};
  previous_ = kNone;
  previous_place_ = kNowhere;
  used_ = replaced_ = 0;
}

Expectation BlockModel::last_of(std::uint32_t event_template) const noexcept {
  const std::uint16_t place = known_[event_template].place;
  if (place == kNowhere) return {};
  return place == kSaved ? saved_[event_template] : contexts_[place];
}

/// Gives the present context to an event of this template.
std::uint16_t BlockModel::place_for(std::uint32_t event_template) {
  Expectation entry = last_of(event_template);
  std::uint16_t place = place_;
  if (place == kNowhere) {
    if (used_ == contexts_.size()) contexts_.resize(std::max<std::size_t>(16, 2 * contexts_.size()));
    place = static_cast<std::uint16_t>(used_++);
    slots_[slot_] = static_cast<std::uint16_t>(used_);
  } else {
    if (!context_valid_) ++replaced_;
    const std::uint32_t old = contexts_[place].event_template;
    if (known_[old].place == place && old != event_template) {
      if (saved_.size() <= old) saved_.resize(known_.size());
      saved_[old] = contexts_[place];
      known_[old].place = kSaved;
    }
  }
  entry.event_template = static_cast<std::uint16_t>(event_template);
  entry.check = check_;
  entry.slot = static_cast<std::uint16_t>(slot_);
  entry.next = kNowhere;
  entry.successor = Expectation::kNoSuccessor;
  entry.newest = 0;
  entry.cpu_time = (known_[event_template].fields.flags & kEventCpuTime) != 0 ? 1 : 0;
  contexts_[place] = entry;
  return place;
}

/// The present context has the last event of its template.
void BlockModel::take_over(std::uint32_t t) noexcept {
  Known& k = known_[t];
  if (k.place < used_) contexts_[k.place].newest = 0;
  k.place = place_;
  contexts_[place_].newest = 1;
  contexts_[place_].successor = Expectation::kNoSuccessor;  // others may have written it meanwhile
}

/// The present context, of this template, follows the last event's.
void BlockModel::follow(std::uint32_t t) noexcept {
  known_[previous_].successor = t;
  contexts_[previous_place_].next = place_;
  // The event's entry may have taken the place of the last one's.
  if (previous_place_ != place_ || previous_ == t) contexts_[previous_place_].successor = static_cast<std::uint16_t>(t & Expectation::kNoSuccessor);
}

bool BlockModel::add_template(const Template& t) {
  if (templates_ == kTemplates) return false;
  if (templates_ == known_.size()) known_.resize(std::max<std::size_t>(16, 2 * known_.size()));
  known_[templates_] = Known{t, kNone, kNowhere};
  ++templates_;
  return true;
}

}  // namespace fallow::trace
