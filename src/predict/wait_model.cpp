#include "predict/wait_model.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "base/libm.hpp"
#include "predict/hash.hpp"
#include "predict/log_code.hpp"

namespace fallow::predict {
namespace {

constexpr std::uint16_t kSeenCap = 512;                   // memory of the rate of novelty, observations
constexpr int kBit = 4;                                   // units of suspicion
constexpr int kUsualBits = 2;                             // of an unseen end; a window that is right has 1.4 on the mean
constexpr int kSeenBits = 1;                              // less for each that was seen
constexpr int kPastAllBits = 1;                           // of an end unseen in a sleep past all samples: about shorter waits it tells nothing
constexpr int kDoubtedBits = 10;                          // of ends unseen in a row until the window is doubted
constexpr int kHalvingBits = 2;                           // more of them, and it is taken to have been later by half of the rest
constexpr std::int64_t kFirstDoubt = 8;                   // part of the sleep that the rank is then taken to have been late
constexpr std::uint16_t kAlike = kCodeOctave / 8;         // waits within 1/8 octave (9 %) count as alike
constexpr std::ptrdiff_t kNeighbours = 4;                 // samples whose distances tell how far apart they are there
constexpr std::uint8_t kKnownWaits = 8;                   // of a kind before a plan goes by it; of a place before it trusts the shortest
constexpr double kMaxPrice = 1e9;                         // also stands for NaN: never risk a delay
constexpr std::size_t kDenseCandidates = 8;                // wake before the k-th sample: each k to here, then each 8th
constexpr double kMinSleepNs = 1000.0;                    // shorter requests are all overshoot
constexpr double kMinSpinNs = 1000.0;                     // a plan costs a tenth of this
constexpr double kMaxSpinNs = 50000.0;
constexpr double kSpinShare = 1.0 / 32;    // ask again after this share of the time already waited
constexpr double kPriorMaxGrowth = 4.0;    // of an unknown wait, sleep at most this many times what has passed
constexpr double kNoveltyStart = 0.5;       // Krichevsky-Trofimov estimate of the rate of novelty
constexpr double kFirstSampleDoubt = 0.5;  // the wait after n samples may be shorter than all by 1/2 / (n + 1) ...
constexpr double kLastSampleDoubt = 0.01;  // ... and by 1 % however many there are
constexpr double kPriorScale = 1.0 / 8;    // a wait like none before is rarely below this share of the shortest

/// The residual wait's distribution: the window's samples that are longer than what has passed; one more whose
/// place is unknown, spread evenly below the first of them; and a Pareto tail of exponent 1, which is what
/// "lasts about as long again" means.
struct Residual {
  std::array<double, WaitModel::kWindow> left;       // ns from now, ascending
  std::array<double, WaitModel::kWindow + 1> total;  // total[i]: sum of the first i
  std::size_t count = 0;
  bool outlasts_first = false;  // no wait that is known of was over by now, and enough are known
  double doubt_from = 0;   // the unknown sample lies between here and left[0]
  double novelty = 1.0;    // weight of the Pareto part
  double prior_scale = 0;  // ns
};

struct Terms {
  double price, sleep_cost, overshoot;
  double after;      // what the delay costs that any sleep causes, once in a wait
  double longest;    // sleep at whose end the wait may be over: it may be late by all of it
  double late_most;  // latest that a sleep outlasts its wait: a peer's wake, or no limit
};

/// Expected value under the Pareto tail, P(r > x) = a / (a + x), of waking `t` from now.
double value_of_prior(double a, double t, const Terms& c) noexcept {
  const double asleep = a * libm::log1p(t / a);
  const double ended = t / (a + t);
  return asleep - c.price * std::min(t - asleep, c.late_most * ended);
}

/// Mean of min(x, t) for x spread evenly over [low, high].
double mean_below(double low, double high, double t) noexcept {
  if (t <= low) return t;
  if (t >= high) return 0.5 * (low + high);
  return t - (t - low) * (t - low) / (2.0 * (high - low));
}

/// Expected value under the samples. `shorter`: how many end before `t`. They count as slept through, and as
/// delayed by what is left of the sleep, at most by `late_most`.
double value_of_samples(const Residual& d, std::size_t shorter, double t, const Terms& c) noexcept {
  std::size_t woken = 0;  // these end so early that the peer's wake comes before the timer
  if (std::isfinite(c.late_most)) {
    const auto end = d.left.begin() + static_cast<std::ptrdiff_t>(shorter);
    woken = static_cast<std::size_t>(std::lower_bound(d.left.begin(), end, t - c.late_most) - d.left.begin());
  }
  const double unknown = mean_below(d.doubt_from, d.left[0], t);
  const double asleep = d.total[shorter] + static_cast<double>(d.count - shorter) * t + unknown;
  double late = static_cast<double>(shorter - woken) * t - (d.total[shorter] - d.total[woken]);
  if (woken > 0) late += c.late_most * static_cast<double>(woken);
  late += std::min(t - unknown, c.late_most);
  late *= 1.0 + 1.0 / libm::sqrt(static_cast<double>(shorter) + 1.0);  // so many, give or take their root
  return (asleep - c.price * late) / static_cast<double>(d.count + 1);
}

/// Length of the sleeps for which a wait that may end at any time, `left` from now on the mean, costs least: each costs
/// sleep_cost, and the last one is half its length too long.
double best_slice(double left, const Terms& c) noexcept {
  return std::max(libm::sqrt(2.0 * left * c.sleep_cost / c.price), c.overshoot + kMinSleepNs);
}

/// Value of a wait that lasts for `left` more on the mean, slept in to its end in such slices.
double value_of_rest(double left, const Terms& c) noexcept {
  const double slice = best_slice(left, c);
  return std::max(0.0, left * (1.0 - c.sleep_cost / slice) - c.price * slice / 2.0);
}

/// What can still be had of the wait after `t`, if it outlasts that. Not where a peer wakes, as one long sleep is best there.
double value_after(const Residual& d, std::size_t shorter, double t, const Terms& c) noexcept {
  if (std::isfinite(c.late_most)) return 0.0;
  const double later = d.prior_scale + t;
  double value = d.novelty * d.prior_scale / later * value_of_rest(later, c);
  if (shorter == d.count) return value;
  const auto longer = static_cast<double>(d.count - shorter);
  const double left = (d.total[d.count] - d.total[shorter]) / longer - t;
  return value + (1.0 - d.novelty) * longer / static_cast<double>(d.count + 1) * value_of_rest(left, c);
}

/// Mean of what is left of the wait; of one like none before, as long again.
double mean_of(const Residual& d) noexcept {
  const double seen = d.count > 0 ? d.total[d.count] / static_cast<double>(d.count) : 0.0;
  return (1.0 - d.novelty) * seen + d.novelty * d.prior_scale;
}

/// The wake-up time (ns from now) of highest value, together with what follows; 0 if none is worth a sleep.
double best_wake(const Residual& d, const Terms& c) noexcept {
  double best = c.after, best_t = 0.0;
  const auto consider = [&](std::size_t shorter, double t) {
    if (t < c.overshoot + kMinSleepNs || (t > c.longest && !(d.outlasts_first && shorter == 0))) return;
    const double seen = d.count > 0 ? (1.0 - d.novelty) * value_of_samples(d, shorter, t, c) : 0.0;
    if (seen + d.novelty * t <= c.sleep_cost) return;  // the prior is worth at most t
    const double now = seen + d.novelty * value_of_prior(d.prior_scale, t, c) - c.sleep_cost;
    if (now <= 0.0) return;
    const double v = now + value_after(d, shorter, t, c);
    if (v <= best) return;
    best = v;
    best_t = t;
  };
  const auto consider_time = [&](double t) {
    const auto end = d.left.begin() + static_cast<std::ptrdiff_t>(d.count);
    consider(static_cast<std::size_t>(std::lower_bound(d.left.begin(), end, t) - d.left.begin()), t);
  };
  for (std::size_t k = 0; k < d.count; k += k < kDenseCandidates ? 1 : kDenseCandidates) consider(k, d.left[k]);
  if (d.count > 0) {  // where the unknown sample's risk outgrows what is gained
    const double share = std::min(1.0, static_cast<double>(d.count + 1) / (2.0 * c.price));
    consider(0, d.doubt_from + share * (d.left[0] - d.doubt_from));
  }
  for (const double growth : {1.0 / c.price, 1.0, kPriorMaxGrowth}) consider_time(growth * d.prior_scale);
  if (!std::isfinite(c.late_most)) consider_time(std::min(best_slice(mean_of(d), c), c.longest));
  if (std::isfinite(c.longest)) consider_time(c.longest);
  return best_t;
}

/// Fills `out` with what of the ascending codes outlasts `waited_ns`.
void residual_of(const std::uint16_t* sorted, std::size_t count, double waited_ns, Residual& out) noexcept {
  const std::uint16_t passed = encode_ns(static_cast<std::int64_t>(waited_ns));
  auto first = static_cast<std::size_t>(std::upper_bound(sorted, sorted + count, passed) - sorted);
  if (waited_ns < static_cast<double>(kCodeMinNs)) first = 0;
  out.count = count - first;
  for (std::size_t i = 0; i < out.count; ++i) out.left[i] = decode_double(sorted[first + i]) - waited_ns;
  out.total[0] = 0.0;
  for (std::size_t i = 0; i < out.count; ++i) out.total[i + 1] = out.total[i] + out.left[i];
  if (out.count == 0 || first > 0) return;  // between samples, the next end may come at any time
  out.outlasts_first = count >= kKnownWaits;
  const double doubt = kFirstSampleDoubt / (static_cast<double>(count) + 1.0) + kLastSampleDoubt;
  const double shortest = out.left[0] + waited_ns;
  out.doubt_from = std::max(0.0, shortest * (1.0 - doubt) - waited_ns);
}

/// Rate of waits that are like none before.
double novelty_of(std::uint16_t novel, std::uint16_t seen) noexcept { return (novel + kNoveltyStart) / (seen + 2.0 * kNoveltyStart); }

}  // namespace

WaitModel::WaitModel(std::span<std::byte> arena) noexcept {
  void* start = arena.data();
  std::size_t room = arena.size();
  if (start == nullptr || std::align(alignof(Slot), sizeof(Slot), start, room) == nullptr) return;
  sets_ = std::bit_floor(room / (sizeof(Slot) * kWays));
  if (sets_ == 0) return;
  slots_ = static_cast<Slot*>(start);
  for (std::size_t i = 0; i < capacity(); ++i) new (slots_ + i) Slot{};
}

WaitModel::Slot* WaitModel::find(std::uint64_t key) const noexcept {
  if (sets_ == 0) return nullptr;
  Slot* const set = slots_ + ((key * kGolden >> 32) & (sets_ - 1)) * kWays;
  for (std::size_t i = 0; i < kWays; ++i)
    if (set[i].used != 0 && set[i].key == key) return set + i;
  return nullptr;
}

WaitModel::Slot& WaitModel::claim(std::uint64_t key) noexcept {
  Slot* const set = slots_ + ((key * kGolden >> 32) & (sets_ - 1)) * kWays;
  const auto age = [this](const Slot& s) {
    return s.used == 0 ? std::numeric_limits<std::uint32_t>::max() : clock_ - s.used;
  };
  Slot* oldest = std::max_element(set, set + kWays, [&](const Slot& a, const Slot& b) { return age(a) < age(b); });
  *oldest = Slot{};
  oldest->key = key;
  return *oldest;
}

void WaitModel::insert(Slot& slot, std::uint16_t code) noexcept {
  std::uint16_t* const sorted = slot.sorted;
  if (slot.count == kWindow) {
    std::uint16_t* const gone = std::lower_bound(sorted, sorted + kWindow, slot.ring[slot.head]);
    std::memmove(gone, gone + 1, static_cast<std::size_t>(sorted + kWindow - gone - 1) * sizeof(*sorted));
    --slot.count;
  }
  std::uint16_t* const at = std::upper_bound(sorted, sorted + slot.count, code);
  std::memmove(at + 1, at, static_cast<std::size_t>(sorted + slot.count - at) * sizeof(*sorted));
  *at = code;
  ++slot.count;
  slot.ring[slot.head] = code;
  slot.head = static_cast<std::uint8_t>((slot.head + 1U) % kWindow);
}

/// By how much less than this sample waits like it may last: three times the distance of samples about it. Of several on each side, as
/// values made up here lie close together.
unsigned WaitModel::spread_below(const Slot& slot, const std::uint16_t* sample) noexcept {
  const std::uint16_t* const from = sample - std::min<std::ptrdiff_t>(kNeighbours, sample - slot.sorted);
  const std::uint16_t* const to = sample + std::min<std::ptrdiff_t>(kNeighbours, slot.sorted + slot.count - 1 - sample);
  return to == from ? *sample : 3 * static_cast<unsigned>((*to - *from) / (to - from));
}

/// An end was not seen, but the wait was over by `code`: the fewer waits are as short, the more suspect is the window.
void WaitModel::suspect(Slot& slot, std::uint16_t code) noexcept {
  const auto shorter = std::upper_bound(slot.sorted, slot.sorted + slot.count, code) - slot.sorted;
  const double share = (static_cast<double>(shorter) + 0.5) / (slot.count + 1.0);
  const double bits = shorter == slot.count ? kPastAllBits : -libm::log2(share) - kUsualBits;
  slot.suspicion = static_cast<std::uint8_t>(std::clamp(slot.suspicion + static_cast<int>(bits * kBit), 0, 255));
}

/// A value for a wait that ended unseen in (low, high]: drawn from what the window says of that range, smoothed
/// so that values made up here cannot pile up and pass for knowledge. Where the window knows of later ends only, this one
/// came just before the rank woke, unless it is like nothing in the window. When ends stay unseen several times in a
/// row the window is wrong, and the value is put ever lower until an end is seen again.
std::uint16_t WaitModel::impute(const Slot& slot, std::int64_t low_ns, std::int64_t high_ns,
                                std::uint32_t draw) noexcept {
  const std::uint16_t high = encode_ns(high_ns), low = std::min(encode_ns(low_ns), high);
  if (slot.suspicion < kDoubtedBits * kBit) {
    const std::uint16_t* const end = slot.sorted + slot.count;
    const std::uint16_t* const first = std::upper_bound<const std::uint16_t*>(slot.sorted, end, low);
    const std::uint16_t* const next = std::upper_bound<const std::uint16_t*>(first, end, high);
    const unsigned after = next != end ? spread_below(slot, next) : 0;
    const double reach = after > 0 ? std::max(0.0, 1.0 - static_cast<double>(*next - high) / after) : 0.0;  // the next one's part
    const double chance = static_cast<double>(draw >> 16) * 0x1p-16, part = static_cast<double>(draw & 0xffffU) * 0x1p-16;
    const double chosen = chance * (static_cast<double>(next - first) + reach);
    const auto below = [part, low](unsigned from, unsigned most) {
      return static_cast<std::uint16_t>(from - static_cast<unsigned>(part * std::min<double>(most, from - low)));
    };
    if (chosen < static_cast<double>(next - first)) {
      const std::uint16_t* const at = first + static_cast<std::ptrdiff_t>(chosen);
      return below(*at, spread_below(slot, at));
    }
    if (next != end && (first != next || chance >= novelty_of(slot.novel, slot.seen))) return below(high, static_cast<unsigned>(reach * after));
  }
  const std::int64_t asleep = high_ns - low_ns;
  const int beyond = slot.suspicion / kBit - kDoubtedBits;
  if (beyond >= 0 && beyond < kHalvingBits && slot.count > 0) return encode_ns(high_ns - asleep / kFirstDoubt);
  return encode_ns(low_ns + (asleep >> std::clamp(beyond / kHalvingBits, 1, 8)));
}

Nanoseconds WaitModel::observe(std::uint64_t key, Nanoseconds wait, Nanoseconds uncertain) noexcept {
  if (sets_ == 0) return Nanoseconds(wait.value - std::clamp<std::int64_t>(uncertain.value, 0, wait.value) / 2);
  if (++clock_ == 0) clock_ = 1;
  Slot* found = find(key);
  Slot& slot = found != nullptr ? *found : claim(key);
  slot.used = clock_;
  std::uint16_t code = encode_ns(wait.value);
  std::int64_t lasted = wait.value;
  if (uncertain.value > 0) {
    suspect(slot, encode_ns(wait.value));
    const std::int64_t low = wait.value - std::min(uncertain.value, wait.value);
    code = impute(slot, low, wait.value, static_cast<std::uint32_t>(clock_ * kGolden >> 32));
    lasted = std::clamp(decode_ns(code), low, wait.value);
  } else {
    slot.suspicion = static_cast<std::uint8_t>(std::max(0, slot.suspicion - kSeenBits * kBit));
  }
  const bool made_up = uncertain.value > 0 && slot.suspicion < kDoubtedBits * kBit;  // tells nothing new
  if (slot.count > 0 && !made_up) {
    const int low = std::max(0, code - kAlike);
    const std::uint16_t* const end = slot.sorted + slot.count;
    const std::uint16_t* const near =
        std::lower_bound<const std::uint16_t*>(slot.sorted, end, static_cast<std::uint16_t>(low));
    if (near == end || *near > code + kAlike) ++slot.novel;
    if (++slot.seen >= kSeenCap) {
      slot.seen /= 2;
      slot.novel /= 2;
    }
  }
  insert(slot, code);
  return Nanoseconds(lasted);
}

WaitPlan WaitModel::plan(std::uint64_t key, Nanoseconds waited, const WaitCosts& costs,
                         double price_of_delay) const noexcept {
  const auto positive = [](Nanoseconds t) {
    return static_cast<double>(std::clamp<std::int64_t>(t.value, 0, kCodeMaxNs));
  };
  const double waited_ns = positive(waited);
  const Nanoseconds peer_delay = costs.peer_wake_delay.value > 0 ? costs.peer_wake_delay : costs.wake_delay;
  const double price = price_of_delay < kMaxPrice ? std::max(1.0, price_of_delay) : kMaxPrice;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const bool limited = !costs.peer_can_wake && costs.longest.value > 0;
  const Terms terms{.price = price,
              .sleep_cost = positive(costs.sleep_cost),
              .overshoot = positive(costs.wake_delay),
              .after = price * positive(costs.delay_after),
              .longest = limited ? positive(costs.longest) + positive(costs.wake_delay) : kNever,
              .late_most = costs.peer_can_wake ? positive(peer_delay) : kNever};
  Residual residual;
  residual.prior_scale = std::max({waited_ns, terms.sleep_cost, kMinSpinNs});
  if (const Slot* slot = find(key); slot != nullptr) {
    residual_of(slot->sorted, slot->count, waited_ns, residual);
    if (residual.count > 0) {
      const double rate = novelty_of(slot->novel, slot->seen);
      const double scale = std::max(terms.sleep_cost, decode_double(slot->sorted[0]) * kPriorScale);
      const double novel_left = rate * scale / (scale + waited_ns);  // Bayes: who has outlasted what has passed?
      const double alike_left = (1.0 - rate) * static_cast<double>(residual.count) / slot->count;
      residual.novelty = novel_left / (novel_left + alike_left);
      residual.prior_scale = std::max(residual.prior_scale, residual.left[0] * kPriorScale);
    }
  }
  const double wake = best_wake(residual, terms);
  const double spin = std::clamp((wake > 0.0 ? wake : waited_ns) * kSpinShare, kMinSpinNs, kMaxSpinNs);
  const double request = wake > 0.0 ? wake - terms.overshoot : 0.0;
  return {Nanoseconds(static_cast<std::int64_t>(request)), Nanoseconds(static_cast<std::int64_t>(spin))};
}

WaitSummary WaitModel::summary(std::uint64_t key) const noexcept {
  const Slot* slot = find(key);
  if (slot == nullptr || slot->count == 0) return {};
  const auto quantile = [slot](std::size_t tenths) {
    return Nanoseconds(decode_ns(slot->sorted[(slot->count - 1U) * tenths / 10]));
  };
  return {slot->count, quantile(1), quantile(5), quantile(9)};
}

std::uint64_t WaitModel::more_telling(std::uint64_t kind, std::uint64_t place) const noexcept {
  const Slot* const some = kind != 0 ? find(kind) : nullptr;
  if (some == nullptr || some->count < kKnownWaits) return place;
  const Slot* const all = find(place);
  if (all == nullptr || all->count == 0) return kind;
  const auto quantile = [](const Slot* slot, unsigned tenths) -> unsigned { return slot->sorted[(slot->count - 1U) * tenths / 10]; };
  const unsigned low = quantile(all, 1), high = quantile(all, 9), median = quantile(some, 5);
  const bool elsewhere = median + kAlike < low || median > high + kAlike;
  const bool narrower = 2 * (quantile(some, 9) - quantile(some, 1)) + kAlike < high - low;
  return elsewhere || narrower ? kind : place;
}

}  // namespace fallow::predict
