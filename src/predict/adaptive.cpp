#include "predict/adaptive.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "predict/adaptive_learning.hpp"
#include "predict/hash.hpp"

namespace fallow::predict {
namespace {

using namespace adaptive_detail;

constexpr std::uint64_t kBase = 0x5851F42D4C957F2DULL;  // of the running hashes, odd (Knuth's MMIX multiplier)

/// How a level looks at the past: the last `calls` calls, with their sizes or without.
struct Level {
  unsigned calls;
  bool sizes;
};
constexpr unsigned kRoot = 0, kSinceUnusual = 1, kFirstHistory = 2;
constexpr unsigned kNextCallLevel = AdaptivePredictor::kLevels;  // not a context: by this the next call is foreseen
constexpr std::array<Level, AdaptivePredictor::kLevels + 1> kLevel{
    {{1, false}, {1, false}, {2, false}, {16, true}, {64, true}, {4, true}}};

constexpr std::uint64_t power(std::uint64_t base, unsigned n) noexcept {
  std::uint64_t p = 1;
  for (unsigned i = 0; i < n; ++i) p *= base;
  return p;
}
constexpr std::array<std::uint64_t, kLevel.size()> kOldest = [] {
  std::array<std::uint64_t, kLevel.size()> p{};
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = power(kBase, kLevel[i].calls);
  return p;
}();

constexpr float kStartDoubt = 0.1F;    // an expert starts as if it had been late in every tenth of its first visits
constexpr float kGood = 0.97F;         // share of the ideal from which a context needs no help
constexpr float kLastBetter = 0.01F;   // share of the ideal by which the last gap must do better than the sample
constexpr float kClearlyBetter = 0.01F;  // share of the ideal by which a longer context must do better
constexpr std::uint16_t kExploreFirst = 96;  // visits in which a call tries all levels; afterwards one in ...
constexpr std::uint32_t kExploreEach = 4;
constexpr float kExplorationMost = 16384.0F;  // contexts looked at on trial: at first and after calm, at most ...
constexpr float kExplorationRate = 0.25F;     // ... and per call in the long run, which bounds the cost
constexpr float kWorthwhile = 0.1F;           // share of the mean call's ideal below which a call needs no help ...
constexpr float kMeanWeight = 1.0F / 1024;     // ... that mean taken over so many calls
constexpr float kUnforeseenWeight = 1.0F / 32;  // of one of the gaps that no context foresaw
constexpr float kBenefit = 16.0F;             // units of benefit for one gain of the size of the mean ideal ...
constexpr float kBenefitCost = 0.5F;          // ... less these for each visit that changes the choice
constexpr std::uint32_t kBenefitLoss = 8;     // one visit in so many without a change costs one unit
constexpr unsigned kBenefitNeeded = 24;       // to be looked at each time; noise alone seldom gets there
constexpr double kLeastLeft = 0.05, kLeastOthersLeft = 0.02;  // shares of budgets by which the price is divided, at least
constexpr std::uint64_t kStillMade = 16384;  // calls within which a call comes again if it is still made
constexpr float kWaitErrorGood = 100.0F;  // codes: 5 %
constexpr float kWaitClearlyBetter = 0.8F;
constexpr std::uint8_t kWaitsNeeded = 3;

/// Sizes within a factor of four count as alike.
std::uint64_t size_class(std::uint64_t bytes) noexcept {
  return static_cast<std::uint64_t>(std::bit_width(bytes << 1U | 1U)) / 2U;
}

}  // namespace

AdaptivePredictor::AdaptivePredictor(const AdaptiveOptions& options, std::span<std::byte> arena)
    : options_(options),
      down_(static_cast<float>(options.react.down.value)),
      up_(std::max(1.0F, static_cast<float>(options.react.up.value))),
      late_share_(static_cast<float>(options.late_share) / up_),
      exploration_(kExplorationMost),
      price_(static_cast<float>(options.delay_price)) {
  carve(arena);
}

AdaptivePredictor::AdaptivePredictor(const AdaptiveOptions& options) : AdaptivePredictor(options, {}) {
  own_arena_ = std::make_unique<std::byte[]>(options.memory_bytes);
  carve({own_arena_.get(), options.memory_bytes});
  if (contexts_ == nullptr) throw std::bad_alloc();
}

void AdaptivePredictor::carve(std::span<std::byte> arena) {
  if (arena.empty()) return;
  void* start = arena.data();
  std::size_t room = arena.size();
  constexpr std::size_t kSet = kWays * sizeof(Context) + sizeof(*tags_);
  if (std::align(alignof(Context), kSet, start, room) == nullptr) throw std::bad_alloc();
  const std::size_t sets = std::bit_floor(room / kSet);
  contexts_ = static_cast<Context*>(start);
  tags_ = reinterpret_cast<std::array<std::uint32_t, kWays>*>(contexts_ + sets * kWays);
  for (std::size_t i = 0; i < sets * kWays; ++i) new (contexts_ + i) Context{};
  for (std::size_t i = 0; i < sets; ++i) new (tags_ + i) std::array<std::uint32_t, kWays>{};
  set_mask_ = sets - 1;
  arena_bytes_ = arena.size();
}

double AdaptivePredictor::credit_ns() const noexcept {
  const double run = static_cast<double>((last_exit_ - first_enter_ + options_.start_up).value) - paid_ns_;
  return options_.budget * run - paid_ns_;
}

std::uint32_t AdaptivePredictor::random() noexcept {
  random_state_ = random_state_ * 1664525U + 1013904223U;  // Numerical Recipes' linear congruence
  return random_state_ >> 8;
}

/// Which context of a set gives way to a new one: an unused one, else one never seen again, else the oldest longer one, else
/// the oldest. Of those never seen again any: the oldest is the next to be seen where calls come in turn. A longer one takes no
/// place of a call that is still made: without that it would be of no use. None: nullptr.
AdaptivePredictor::Context* AdaptivePredictor::replaced(Context* first, const std::array<std::uint32_t, kWays>& tags,
                                                        unsigned level) noexcept {
  Context* victim = nullptr;
  std::uint64_t best = 0;
  for (unsigned way = 0; way < kWays; ++way) {
    const Context& c = first[way];
    const std::uint64_t age = clock_ - c.stamp;
    if (tags[way] != 0 && c.is_root && level != kRoot && age < kStillMade) continue;
    const std::uint64_t worth = tags[way] == 0 ? 3U : (c.visits < 2 ? 2U : (c.is_root ? 0U : 1U));
    const std::uint64_t rank = (worth << 40) + (worth == 2U ? random() : age) + 1;
    if (rank > best) {
      best = rank;
      victim = first + way;
    }
  }
  return victim;
}

/// The context of a key. A new one where there is none, if asked for, and if there is room.
AdaptivePredictor::Context* AdaptivePredictor::look_up(std::uint64_t key, unsigned level, bool create) noexcept {
  const std::uint64_t h = mix(key);
  const std::uint64_t set = h & set_mask_;
  const auto tag = static_cast<std::uint32_t>(h >> 32) | 1U;
  std::array<std::uint32_t, kWays>& tags = tags_[set];
  Context* const first = contexts_ + set * kWays;
  for (unsigned way = 0; way < kWays; ++way)
    if (tags[way] == tag) return first + way;
  Context* const fresh = create ? replaced(first, tags, level) : nullptr;
  if (fresh == nullptr) return nullptr;
  tags[static_cast<std::size_t>(fresh - first)] = tag;
  std::memset(static_cast<void*>(fresh), 0, sizeof *fresh);
  fresh->gap.clear();
  fresh->wait.clear();
  fresh->is_root = level == kRoot;
  for (float& score : fresh->score) score = -kStartDoubt * price_ * up_;
  return fresh;
}

/// Keeps account of which levels are worth looking at after this call.
void AdaptivePredictor::reward(Context& root, const Visit& visit, float gain) noexcept {
  std::uint8_t& benefit = root.benefit[visit.level];
  if (visit.after == visit.before) {
    if (benefit > 0 && random() % kBenefitLoss == 0) --benefit;
    return;
  }
  const float units = smaller(larger(kBenefit * gain / (root.ideal + 1.0F) - kBenefitCost, -255.0F), 255.0F);
  benefit = static_cast<std::uint8_t>(smaller(larger(static_cast<float>(benefit) + units, 0.0F), 255.0F));
}

/// Whether all that is known of a context are gaps too short to rest in.
bool AdaptivePredictor::is_quiet(const Context& c) noexcept {
  return c.ideal == 0.0F && c.rival == 0.0F && c.gaps == SampleWindow::kSize && c.gap.sorted[SampleWindow::kSize - 1] == 0;
}

/// The gap after the last call is over: pay for the rest taken in it, and learn from it.
void AdaptivePredictor::settle(Nanoseconds gap) noexcept {
  const Nanoseconds delay = rest_outcome(taken_, gap, options_.react).delay;
  paid_ns_ += static_cast<double>(delay.value);
  if (delay.value > 0) ++mispredictions_;
  taken_ = {};
  const bool fits = gap > options_.react.down + options_.react.up;
  const std::uint16_t code = fits ? std::max<std::uint16_t>(1, encode_ns(gap.value)) : std::uint16_t{0};
  const auto gap_ns = static_cast<float>(gap.value);
  Context& root = *visits_[0].context;
  mean_ideal_ = nearer(mean_ideal_, larger(0.0F, gap_ns - up_ - down_), kMeanWeight);
  if (silence_ > 0.0F && gap_ns > silence_) unforeseen_ = nearer(unforeseen_, gap_ns - silence_ - down_ - price_ * up_, kUnforeseenWeight);
  float earned_before = 0.0F;  // by what the contexts so far had chosen
  for (std::size_t i = 0; i < visited_; ++i) {
    const Visit& visit = visits_[i];
    Context& c = *visit.context;
    const bool is_root = i == 0;
    if (code == 0 && earned_before == 0.0F && is_quiet(c)) {  // a short gap as always: nothing to learn
      pass_by(c, code, is_root);
      continue;
    }
    const bool scored = c.visits < kSettled || &c == trusted_ || random() % kScoreEach == 0;
    Earnings earnings{{0.0F, 0.0F}, earned_before};
    if (scored) {
      earnings.own[kSample] = earned(c.target[kSample], gap_ns);
      if (is_root) earnings.own[kLast] = earned(c.target[kLast], gap_ns);
    }
    if (visit.after != visit.before) earned_before = earned(visit.after, gap_ns);
    if (!is_root) reward(root, visit, earned_before - earnings.rival);
    if (scored) {
      learn(c, gap_ns, code, earnings, is_root);
    } else {
      pass_by(c, code, is_root);
    }
  }
}

/// The sample, unless the last gap has done better: as a rule that is chance, the more so the fewer visits there are,
/// so that longer contexts go by the sample alone.
int AdaptivePredictor::better_expert(const Context& c, unsigned level) noexcept {
  return level == kRoot && c.score[kLast] > c.score[kSample] + kLastBetter * c.ideal ? kLast : kSample;
}

/// Enters a context into the list of those that predict what follows, and chooses it if it has earned more
/// than the shorter ones.
void AdaptivePredictor::visit(Context* context, unsigned level) noexcept {
  const float before = chosen_;
  context->stamp = clock_;
  if (context->visits >= 2) {
    const int expert = better_expert(*context, level);
    const float score = context->score[expert];
    const float target = score > 0.0F ? context->target[expert] : 0.0F;  // not to rest earns nothing
    if (level == kRoot || score > context->rival + kClearlyBetter * context->ideal) {
      chosen_ = target;
      trusted_ = context;
    }
  }
  visits_[visited_++] = {context, before, chosen_, static_cast<std::uint8_t>(level)};
}

/// Which levels to look at after this call, beyond the call itself: those that have been of benefit, and all
/// when there is something to gain and exploration is affordable.
unsigned AdaptivePredictor::wanted_levels(const Context& root) noexcept {
  const float best = std::max(root.score[kSample], root.score[kLast]);
  const bool gaps_good = root.ideal <= kWorthwhile * mean_ideal_ + 1.0F || (root.visits > 2 && best >= kGood * root.ideal);
  const bool waits_good = root.waits < kWaitsNeeded || root.wait_error < kWaitErrorGood;
  exploration_ = std::min(kExplorationMost, exploration_ + kExplorationRate);
  if (gaps_good && waits_good) return 0;
  if (exploration_ >= kLevels && (root.visits < kExploreFirst || random() % kExploreEach == 0)) {
    exploration_ -= kLevels;
    return ~0U;
  }
  unsigned wanted = 0;
  for (unsigned level = kSinceUnusual; level < kLevels; ++level)
    wanted |= (root.benefit[level] >= kBenefitNeeded ? 1U : 0U) << level;
  return wanted;
}

/// What the context of a level is found by.
std::uint64_t AdaptivePredictor::key_of(const Context& root, unsigned level) const noexcept {
  if (level == kRoot) return root_key_;
  if (level == kSinceUnusual) return root_key_ + (std::uint64_t{root.since_unusual} << 3) * kGolden + level;
  return history(level) + level * kGolden;
}

/// The hash of the last calls, as a level looks at them.
std::uint64_t AdaptivePredictor::history(unsigned level) const noexcept {
  const auto& hashes = kLevel[level].sizes ? full_hashes_ : hashes_;
  return hashes[clock_ % kHistory] - hashes[(clock_ - kLevel[level].calls) % kHistory] * kOldest[level];
}

/// Looks up the contexts of the call.
void AdaptivePredictor::walk() noexcept {
  visited_ = 0;
  chosen_ = 0.0F;
  trusted_ = nullptr;
  Context* const root = look_up(root_key_, kRoot, true);
  visit(root, kRoot);
  const unsigned wanted = wanted_levels(*root);
  if (wanted == 0) return;
  bool deeper_is_new = false;  // a context longer than one never seen is new too
  for (unsigned level = kSinceUnusual; level < kLevels; ++level) {
    if ((wanted >> level & 1U) == 0) continue;
    Context* const context = look_up(key_of(*root, level), level, !deeper_is_new);
    if (context == nullptr && deeper_is_new) break;
    if (context == nullptr) continue;
    visit(context, level);
    if (level >= kFirstHistory) deeper_is_new = context->visits == 0;
  }
}

/// A call has begun: the gap before it is known, and so are the contexts that it stands in.
void AdaptivePredictor::arrive(const Call& call) noexcept {
  if (started_) {
    if (!broken_) settle(call.enter - last_exit_);
    broken_ = false;
  } else {
    first_enter_ = last_exit_ = call.enter;
    started_ = true;
  }
  root_key_ = extend_hash((std::uint64_t{call.op} << 48) | (std::uint64_t{call.comm} << 32) | call.site, 0);
  const std::uint64_t symbol = mix(root_key_ + static_cast<std::uint32_t>(call.peer));
  const std::uint64_t full = mix(symbol + size_class(call.bytes));
  const std::size_t before = clock_ % kHistory;
  const std::size_t now = ++clock_ % kHistory;
  hashes_[now] = hashes_[before] * kBase + symbol;
  full_hashes_[now] = full_hashes_[before] * kBase + full;
  const auto name = static_cast<std::uint16_t>(root_key_ >> 40 | 1U);
  expected_ = next_call_[next_slot_] == name;
  next_call_[next_slot_] = name;
  next_slot_ = static_cast<std::uint32_t>(mix(history(kNextCallLevel)) % kNextCalls);
  walk();
  arrived_ = true;
}

/// The visited context whose median wait has been off least; a longer one must be clearly better.
const AdaptivePredictor::Visit& AdaptivePredictor::best_for_waits() const noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < visited_; ++i) {
    const Context& c = *visits_[i].context;
    if (c.waits >= kWaitsNeeded && c.wait_error < kWaitClearlyBetter * visits_[best].context->wait_error) best = i;
  }
  return visits_[best];
}

WaitForecast AdaptivePredictor::on_enter(const Call& call) noexcept {
  arrive(call);
  const Visit& best = best_for_waits();
  const Context& c = *best.context;
  const std::uint64_t key = key_of(*visits_[0].context, best.level);
  if (c.waits == 0) return {key, 0, {}, {}, {}};
  const auto at = [&c](unsigned tenths) {
    return Nanoseconds(decode_ns(c.wait.sorted[(c.waits - 1U) * tenths / 10U]));
  };
  return {key, c.waits, at(1), at(5), at(9)};
}

void AdaptivePredictor::pass_over() noexcept {
  broken_ = true;
  arrived_ = false;
}

void AdaptivePredictor::learn_wait(Nanoseconds wait) noexcept {
  Context& root = *visits_[0].context;
  const bool waits = wait.value > kCodeMinNs;
  if (!waits && root.waits == 0) return;
  const std::uint16_t code = encode_ns(wait.value);
  const unsigned level = best_for_waits().level;
  if (level != kRoot && root.benefit[level] < 255) ++root.benefit[level];
  const std::size_t several = root.waits < kWaitsNeeded || root.wait_error >= kWaitErrorGood ? visited_ : 1;
  for (std::size_t i = 0; i < several; ++i) {
    Context& c = *visits_[i].context;
    if (c.waits > 0) {
      const auto error = static_cast<float>(std::abs(code - c.wait.sorted[c.waits / 2U]));
      c.wait_error += (error - c.wait_error) * kWeights[std::min<std::size_t>(c.visits, kWeights.size() - 1)];
    }
    if (c.visits < kSettled || random() % kScoreEach == 0) c.wait.insert(code, c.waits, c.wait_head);
  }
}

/// The dearer delay, the less of the credit is left, and of the budget that others keep.
void AdaptivePredictor::set_price(double credit) noexcept {
  const double whole = credit + (1.0 + options_.budget) * paid_ns_;
  const double left = std::max(kLeastLeft, credit / whole);
  price_ = static_cast<float>(options_.delay_price / (left * others_left_));
}

void AdaptivePredictor::budget_left(double share) noexcept {
  others_left_ = std::max(kLeastOthersLeft, share);
  const double credit = credit_ns();
  if (credit > 0.0) set_price(credit);
}

Answer AdaptivePredictor::on_exit(const Event& event) noexcept {
  if (!arrived_) arrive(event);
  arrived_ = false;
  learn_wait(event.wait);
  last_exit_ = event.exit;
  Answer answer;
  answer.call_expected = expected_;
  const double credit = credit_ns();
  const double worst = static_cast<double>(up_) + static_cast<double>(down_);
  if (chosen_ > 0.0F) {
    answer.expected_gap = Nanoseconds(static_cast<std::int64_t>(chosen_));
    if (credit >= worst) {  // one more mistake can be paid
      set_price(credit);
      answer.rest_for = Nanoseconds(static_cast<std::int64_t>(chosen_ - up_));
    }
  }
  answer.rest_after = rest_after(credit);
  taken_ = answer;
  return answer;
}

PredictorState AdaptivePredictor::state() const noexcept {
  PredictorState s;
  s.delay = Nanoseconds(static_cast<std::int64_t>(paid_ns_));
  s.mispredictions = mispredictions_;
  s.memory_bytes = arena_bytes_ + sizeof(*this);
  return s;
}

}  // namespace fallow::predict
