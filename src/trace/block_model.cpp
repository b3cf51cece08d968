#include "trace/block_model.hpp"

#include <algorithm>
#include <bit>

#include "trace/coding.hpp"

namespace fallow::trace {
namespace {

constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
constexpr std::uint64_t kLargestResidual = 1u << 24;  // longer ones teach no more about the spread
constexpr std::uint32_t kUnseenSpread = 16u << 12;
constexpr unsigned kSlow = 2, kSpreadSlow = 3;      // weights of a new value: 1/4 and 1/8

std::uint32_t fold(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t h = (a ^ std::rotl(b, 29)) * kMix;
  return static_cast<std::uint32_t>(h >> 32);
}

}  // namespace

unsigned TimeState::rice_parameter() const noexcept {
  // The best k is about log2(mean * ln 2); 11/16 stands for ln 2, and spread is in sixteenths.
  const std::uint64_t mean_residual = seen == 0 ? kUnseenSpread : spread;
  return static_cast<unsigned>(std::bit_width((mean_residual * 11) >> 8));
}

void TimeState::learn(std::uint64_t code, std::uint64_t residual, unsigned time_bits) noexcept {
  if (seen == 0) {
    mean = code;
    spread = 1u << time_bits;  // a sixteenth of the duration, in sixteenths of a step
    seen = 1;
    return;
  }
  // The first few count more, so that the mean settles soon.
  const unsigned weight = seen < kSlow ? seen : kSlow;
  mean = static_cast<std::uint64_t>(static_cast<std::int64_t>(mean) +
                                    (static_cast<std::int64_t>(code - mean) >> weight));
  const auto r = static_cast<std::int64_t>(std::min(residual, kLargestResidual) << 4);
  spread = static_cast<std::uint32_t>(spread + ((r - static_cast<std::int64_t>(spread)) >> kSpreadSlow));
  ++seen;
}

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
  at_ = 0;
  previous_ = kNone;
  used_ = replaced_ = 0;
}

std::uint32_t BlockModel::expected() noexcept {
  std::uint64_t h = kMix;
  for (std::size_t i = 0; i < kOrder; ++i) h = (std::rotl(h, 17) ^ recent_[(at_ + i) % kOrder]) * kMix;
  slot_ = h >> (64 - context_bits_);
  check_ = static_cast<std::uint32_t>(h);
  const std::uint16_t place = slots_[slot_];
  context_valid_ = place != 0 && contexts_[place - 1u].check == check_;
  if (context_valid_) return contexts_[place - 1u].event_template;
  return previous_ == kNone ? kNone : known_[previous_].successor;
}

const Expectation& BlockModel::expectation(std::uint32_t event_template) const noexcept {
  if (context_valid_ && contexts_[slots_[slot_] - 1u].event_template == event_template) return contexts_[slots_[slot_] - 1u];
  return known_[event_template].last;
}

void BlockModel::learn(Expectation& learned) {
  const std::uint32_t t = learned.event_template;
  learned.check = check_;
  std::uint16_t& place = slots_[slot_];
  if (place == 0) {
    if (used_ == contexts_.size()) contexts_.resize(std::max<std::size_t>(16, 2 * contexts_.size()));
    place = static_cast<std::uint16_t>(++used_);
  } else if (!context_valid_) {
    ++replaced_;
  }
  contexts_[place - 1u] = learned;
  known_[t].last = learned;
  if (previous_ != kNone) known_[previous_].successor = t;
  previous_ = t;
  recent_[at_ % kOrder] = fold(t, learned.values.bytes);
  ++at_;
}

bool BlockModel::add_template(const Template& t) {
  if (templates_ == kTemplates) return false;
  if (templates_ == known_.size()) known_.resize(std::max<std::size_t>(16, 2 * known_.size()));
  known_[templates_] = Known{t, kNone, {}};
  ++templates_;
  return true;
}

}  // namespace fallow::trace
