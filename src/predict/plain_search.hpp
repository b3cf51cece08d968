// The pattern search and the tuning of its threshold, written down plainly for tests: grams are lists of calls, patterns are lists of grams,
// nothing is hashed and nothing forgotten. And programs that are made up at random, for them to agree on with the predictors.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "predict/spps.hpp"
#include "predict/test_streams.hpp"

namespace fallow::predict::plainly {

using streams::kUs;

/// Algorithms 1 to 4 of Dickov (2015) with what docs/adr/0011 says.
class Search {
 public:
  explicit Search(const PpsOptions& options) : o_(options), longest_(~std::size_t{0}) { search_from(0); }

  Answer on_exit(const Event& e) {
    const bool was = predicting_;
    if (last_exit_ >= 0) gap_before(e.enter.value - last_exit_);
    last_exit_ = e.exit.value;
    running_.push_back(e.op);
    if (predicting_ && !begins_like_expected()) mispredict();
    const bool expected = was && predicting_;
    if (!predicting_ && grams_.size() >= next_ + size_) step();
    Answer answer;
    if (predicting_ && running_.size() == predicted_[at_].calls.size()) {
      at_end_ = true;
      const auto gap = static_cast<double>(predicted_[at_].gap);
      answer.rest_for = Nanoseconds(std::max<std::int64_t>(0, static_cast<std::int64_t>(gap - (gap * o_.lead + static_cast<double>(o_.react.up.value)))));
    }
    answer.call_expected = expected;
    return answer;
  }
  bool predicting() const { return predicting_; }
  std::size_t pattern_size() const { return predicting_ ? predicted_.size() : size_; }
  std::uint64_t mispredictions() const { return mispredictions_; }
  std::size_t grams() const { return grams_.size(); }

 private:
  using Gram = std::vector<int>;
  using Pattern = std::vector<Gram>;
  struct Closed {
    Gram calls;
    std::int64_t gap;
  };
  struct Seen {
    std::set<std::size_t> at;
    bool used = false;
  };

  void gap_before(std::int64_t gap) {
    if (gap <= o_.threshold.value) return;
    grams_.push_back({running_, gap});
    running_.clear();
    if (!predicting_) return;
    if (!at_end_) return mispredict();  // it ended too early
    predicted_[at_].gap = gap;
    at_ = (at_ + 1) % predicted_.size();
    at_end_ = false;
  }
  bool begins_like_expected() const {
    const Gram& expected = predicted_[at_].calls;
    return running_.size() <= expected.size() && std::equal(running_.begin(), running_.end(), expected.begin());
  }
  void mispredict() {
    predicting_ = false;
    ++mispredictions_;
    search_from(grams_.size());
  }
  void search_from(std::size_t position) {
    now_ = position;
    size_ = static_cast<std::size_t>(o_.min_pattern);
    next_ = now_ + size_;
    in_a_row_ = 1;
    fresh_ = true;
    comparing_ = longer_ = matched_ = false;
  }
  Pattern pattern(std::size_t from, std::size_t size) const {
    Pattern p;
    for (std::size_t i = from; i < from + size; ++i) p.push_back(grams_[i].calls);
    return p;
  }
  bool alike(std::size_t a, std::size_t b, std::size_t size) const { return pattern(a, size) == pattern(b, size); }
  /// Whether it was not known.
  bool note(std::size_t position) {
    const auto [place, made] = known_.try_emplace(pattern(position, size_));
    place->second.at.insert(position);
    return made;
  }

  void step() {
    const bool seen_apart = !fresh_ && !comparing_;
    if (seen_apart && size_ >= longest_) return search_from(now_ + std::max<std::size_t>(1, size_ - 1));
    if (seen_apart && !grow()) return;
    if (comparing_) return compare();
    fresh_ = note(now_);
    comparing_ = true;
    if (!fresh_ && known_.at(pattern(now_, size_)).used) go_on(next_);
  }
  bool grow() {
    if (grams_.size() < next_ + size_ + 2) return false;
    const auto shorter = known_.find(pattern(now_, size_));
    bool all = true;
    if (shorter != known_.end()) {
      for (const std::size_t at : shorter->second.at) all = all && grams_[at + size_].calls == grams_[now_ + size_].calls;
    }
    ++size_;
    next_ = now_ + size_;
    fresh_ = note(now_);
    longer_ = true;
    matched_ = false;
    if (!fresh_ && known_.at(pattern(now_, size_)).used && go_on(next_)) return false;
    matched_ = all;
    comparing_ = true;
    return true;
  }
  void compare() {
    if (alike(now_, next_, size_)) {
      ++in_a_row_;
      note(next_);
      matched_ = true;
      now_ += size_;
      next_ += size_;
      if (in_a_row_ < o_.repeats) return;
      if (o_.cap_by_first && longest_ == ~std::size_t{0}) longest_ = size_;
      known_.at(pattern(now_, size_)).used = true;
      go_on(next_);
      return;
    }
    comparing_ = false;
    in_a_row_ = 1;
    const bool dropped = longer_ && !matched_;
    if (dropped) known_.erase(pattern(now_, size_));
    if (dropped || (fresh_ && !matched_)) search_from(now_ + std::max<std::size_t>(1, size_ - 1));
  }
  /// Predicts the pattern that ends before `position`, if all that has come since is like it.
  bool go_on(std::size_t position) {
    for (std::size_t i = position; i < grams_.size(); ++i) {
      if (grams_[i].calls != grams_[i - size_].calls) return false;
    }
    std::vector<Closed> expected(size_);
    for (std::size_t i = grams_.size() - size_; i < grams_.size(); ++i) expected[(i - position + size_) % size_] = grams_[i];
    const std::size_t at = (grams_.size() - position) % size_;
    const Gram& next = expected[at].calls;
    if (running_.size() > next.size() || !std::equal(running_.begin(), running_.end(), next.begin())) return false;
    predicted_ = expected;
    at_ = at;
    at_end_ = false;
    return predicting_ = true;
  }

  PpsOptions o_;
  std::vector<Closed> grams_, predicted_;
  Gram running_;
  std::map<Pattern, Seen> known_;
  std::size_t now_ = 0, next_ = 0, size_ = 0, at_ = 0, longest_;
  int in_a_row_ = 1;
  bool fresh_ = true, comparing_ = false, longer_ = false, matched_ = false, predicting_ = false, at_end_ = false;
  std::int64_t last_exit_ = -1;
  std::uint64_t mispredictions_ = 0;
};

/// Algorithm 5 of Dickov (2015) with what docs/adr/0012 says, on a sample of gaps.
inline std::optional<Nanoseconds> threshold_for(std::vector<std::int64_t> gaps, const SppsOptions& o) {
  const auto bins = static_cast<std::size_t>(std::floor(std::sqrt(static_cast<double>(gaps.size()))));
  if (bins == 0) return std::nullopt;
  std::vector<double> edges;
  for (std::size_t b = 0; b <= bins; ++b) {
    const double part = static_cast<double>(b) / static_cast<double>(bins);
    edges.push_back(static_cast<double>(o.histogram_from.value) * std::pow(o.histogram_to / o.histogram_from, part));
  }
  std::vector<int> count(bins);
  std::vector<double> time(bins);
  double total = 0;
  for (const std::int64_t gap : gaps) {
    std::size_t b = 0;
    while (b + 1 < bins && static_cast<double>(gap) >= edges[b + 1]) ++b;
    ++count[b];
    time[b] += static_cast<double>(gap);
    total += static_cast<double>(gap);
  }
  const double few = std::floor(o.alpha * o.bin_gaps / static_cast<double>(bins));
  for (double demanded = o.demanded_share; demanded >= o.demanded_least; demanded *= o.demanded_decay) {
    std::optional<std::size_t> bin;
    double upto = 0;
    for (std::size_t b = 0; b < bins; ++b) {
      upto += time[b];
      if (upto >= (1 - demanded) * total) break;
      if (!bin || count[b] <= count[*bin]) bin = b;
    }
    if (!bin) return std::nullopt;
    if (count[*bin] >= few) continue;
    std::vector<double> inside = {edges[*bin], edges[*bin + 1]};
    for (const std::int64_t gap : gaps) {
      const auto g = static_cast<double>(gap);
      if (g > edges[*bin] && g < edges[*bin + 1]) inside.push_back(g);
    }
    std::sort(inside.begin(), inside.end());
    for (std::size_t i = 0; i + 1 < inside.size(); ++i) {
      if (inside[i + 1] / inside[i] >= o.gap_ratio()) return Nanoseconds(std::llround(inside[i] * (1 + o.margin) / (1 - o.margin)));
    }
  }
  return std::nullopt;
}

/// The search with a threshold that is found so, and sought again where gaps come near it (section 5.3).
class TunedSearch {
 public:
  explicit TunedSearch(const SppsOptions& options) : o_(options), skip_(options.skip_gaps) {}

  Answer on_exit(const Event& e) {
    if (last_exit_ >= 0) gap_before(e.enter.value - last_exit_);
    last_exit_ = e.exit.value;
    return search_ ? search_->on_exit(e) : Answer{};
  }
  bool tuned() const { return search_.has_value(); }
  std::uint64_t restarts() const { return restarts_; }

 private:
  void gap_before(std::int64_t gap) {
    if (!search_) return sample(gap);
    const double ratio = static_cast<double>(gap) / static_cast<double>(threshold_.value);
    if (!o_.restarts || ratio < 1 - o_.margin || ratio > 1 + o_.margin) return;
    const std::size_t now = search_->grams();
    const bool again = danger_ && static_cast<double>(now - *danger_) <= o_.restart_within_patterns * static_cast<double>(search_->pattern_size());
    danger_ = now;
    if (!again) return;
    ++restarts_;
    search_.reset();
    danger_.reset();
    skip_ = o_.skip_again ? o_.skip_gaps : 0;
  }
  void sample(std::int64_t gap) {
    if (gap < o_.pps.react.down.value + o_.pps.react.up.value) return;
    if (skip_ > 0) {
      --skip_;
      return;
    }
    gaps_.push_back(gap);
    if (gaps_.size() < o_.sample_gaps) return;
    const auto found = threshold_for(gaps_, o_);
    gaps_.clear();
    if (!found) return;
    threshold_ = *found;
    PpsOptions options = o_.pps;
    options.threshold = threshold_;
    search_.emplace(options);
  }

  SppsOptions o_;
  std::optional<Search> search_;
  std::optional<std::size_t> danger_;  // grams there were when a gap last came near the threshold
  std::vector<std::int64_t> gaps_;
  Nanoseconds threshold_;
  std::uint32_t skip_;
  std::int64_t last_exit_ = -1;
  std::uint64_t restarts_ = 0;
};

/// Loops of bodies that share parts with each other, some of them nested, broken off, or with a call more now and then.
inline std::vector<Event> program(std::uint64_t seed, int phases = 8) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  streams::Builder b(seed);
  const std::uint64_t calls = 1 + draw(4);
  std::vector<std::vector<std::pair<std::uint16_t, bool>>> bodies(1 + draw(3));  // operation, whether a gram ends before it
  for (auto& body : bodies) {
    for (std::uint64_t n = 1 + draw(6); n > 0; --n) body.emplace_back(10 + draw(calls), draw(3) != 0);
  }
  std::vector<double> kinds(1 + draw(3));  // of gaps between grams, by operation
  const auto emit = [&](std::uint64_t op, bool apart) {
    b.call(static_cast<std::uint16_t>(op), 1, apart ? kinds[op % kinds.size()] * b.uniform(0.9, 1.1) : b.uniform(0, 15 * kUs));
  };
  for (int phase = 0; phase < phases; ++phase) {
    for (double& kind : kinds) {
      if (phase == 0 || draw(3) == 0) kind = 12 * kUs * std::exp(b.uniform(0, 4));
    }
    const auto& body = bodies[draw(bodies.size())];
    const auto& inner = bodies[draw(bodies.size())];
    const bool nested = draw(3) == 0, disturbed = draw(3) == 0;
    for (std::uint64_t turn = 1 + draw(9); turn > 0; --turn) {
      for (const auto& [op, apart] : body) emit(op, apart);
      for (std::uint64_t again = nested ? 1 + draw(3) : 0; again > 0; --again) {
        for (const auto& [op, apart] : inner) emit(op, apart);
      }
      if (disturbed && draw(4) == 0) emit(10 + draw(calls), draw(2) == 0);
    }
  }
  return b.take();
}

}  // namespace fallow::predict::plainly
