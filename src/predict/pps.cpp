#include "predict/pps.hpp"

#include <algorithm>

#include "predict/hash.hpp"

namespace fallow::predict {
namespace {

std::uint32_t identity(const Event& event, bool op_only) noexcept {
  if (op_only) return event.op;
  const std::uint64_t who = (std::uint64_t{event.comm} << 32) | static_cast<std::uint32_t>(event.peer);
  return static_cast<std::uint32_t>(extend_hash(event.op, who));
}

std::uint64_t gram_element(const GramArray::Gram& gram) noexcept { return gram.hash + gram.length; }

}  // namespace

PpsPredictor::PpsPredictor(const PpsOptions& options)
    : options_(options),
      grams_(options.max_grams, options.max_events),
      patterns_(options.max_patterns, options.max_positions),
      predicted_(std::max(std::max(16U, options.max_grams) / 4, static_cast<std::uint32_t>(std::max(1, options.min_pattern)))) {
  options_.min_pattern = std::max(1, options.min_pattern);
  options_.repeats = std::max(2, options.repeats);
  restart(options.threshold);
}

void PpsPredictor::restart(Nanoseconds threshold) noexcept {
  options_.threshold = threshold;
  grams_.clear();
  patterns_.clear();
  predicting_ = false;
  capped_ = false;
  max_pattern_ = static_cast<std::uint32_t>(predicted_.size());
  started_ = false;
  start_search_at(0);
}

void PpsPredictor::start_search_at(std::uint64_t position) noexcept {
  pat_size_ = static_cast<std::uint32_t>(options_.min_pattern);
  pos_cur_ = position;
  pos_next_ = position + pat_size_;
  repeats_seen_ = 1;
  new_pattern_ = true;
  check_consec_ = check_previous_ = match_ = false;
}

Answer PpsPredictor::on_exit(const Event& event) noexcept {
  const bool was_predicting = predicting_;
  if (started_) {  // Algorithm 1
    const Nanoseconds gap = event.enter - last_exit_;
    const bool closes = gap > options_.threshold;
    if (closes) grams_.close(gap);
    follow(closes);
  }
  started_ = true;
  last_exit_ = event.exit;
  grams_.append(identity(event, options_.call_is_op_only));
  if (predicting_ && !prefix_matches()) {
    predicting_ = false;
    ++mispredictions_;
    start_search_at(grams_.size());
  }
  const bool expected = was_predicting && predicting_;
  if (!predicting_ && grams_.size() >= pos_next_ + pat_size_) search();
  Answer answer = control();
  answer.call_expected = expected;
  return answer;
}

/// Keeps the predicted pattern's place when a gram ends, and its gaps fresh.
void PpsPredictor::follow(bool gram_closed) noexcept {
  if (!predicting_) return;
  if (gram_closed && rested_) {
    predicted_[index_] = grams_[grams_.size() - 1];
    index_ = (index_ + 1) % predicted_size_;
    rested_ = false;
  } else if (gram_closed) {  // it ended too early
    predicting_ = false;
    ++mispredictions_;
    start_search_at(grams_.size());
  }
}

bool PpsPredictor::prefix_matches() const noexcept {
  const GramArray::Gram& expected = predicted_[index_];
  const GramArray::Gram& running = grams_.running();
  if (running.length > expected.length) return false;
  if (running.length == expected.length) return running.hash == expected.hash;
  std::uint32_t was = 0, is = 0;
  const std::uint32_t last = running.length - 1;
  if (!grams_.call_at(expected, last, was) || !grams_.call_at(running, last, is)) return true;  // forgotten
  return was == is;
}

Answer PpsPredictor::control() noexcept {
  if (!predicting_) return {};
  const GramArray::Gram& expected = predicted_[index_];
  if (grams_.running().length != expected.length) return {};
  rested_ = true;
  const auto gap = static_cast<double>(expected.gap.value);
  const double rest = gap - (gap * options_.lead + static_cast<double>(options_.react.up.value));
  return {Nanoseconds(std::max<std::int64_t>(0, static_cast<std::int64_t>(rest))), expected.gap, false};
}

std::uint64_t PpsPredictor::hash_at(std::uint64_t position, std::uint32_t length) const noexcept {
  std::uint64_t hash = 0;
  for (std::uint32_t k = 0; k < length; ++k) hash = extend_hash(hash, gram_element(grams_[position + k]));
  return hash;
}

void PpsPredictor::search() noexcept {
  if (!grams_.holds(pos_cur_)) return start_search_at(grams_.size());  // fell behind what is kept
  const bool seen_apart = !new_pattern_ && !check_consec_;
  if (seen_apart && pat_size_ >= max_pattern_) {  // may not grow: leave it
    const std::uint64_t next = pos_cur_ + std::max(1U, pat_size_ - 1);
    return start_search_at(next);
  }
  ++searches_;
  if (seen_apart && !grow()) return;
  if (check_consec_) {
    check_consecutive();
  } else {
    insert();
  }
}

bool PpsPredictor::grow() noexcept {
  if (grams_.size() < pos_next_ + pat_size_ + 2) return false;  // the longer pattern could not be compared yet
  const PatternList::Pattern* shorter = patterns_.find(curr_hash_, pat_size_);
  check_previous_ = true;
  match_ = false;
  const std::uint64_t longer = extend_hash(curr_hash_, gram_element(grams_[pos_cur_ + pat_size_]));
  const bool extends = shorter == nullptr || extends_everywhere(*shorter);
  ++pat_size_;
  pos_next_ = pos_cur_ + pat_size_;
  curr_hash_ = longer;
  new_pattern_ = patterns_.update(longer, pat_size_, pos_cur_, grams_);
  if (!new_pattern_) {
    const PatternList::Pattern* known = patterns_.find(longer, pat_size_);
    if (known != nullptr && known->was_used && predict_from(pos_next_)) return false;
  }
  match_ = extends;
  check_consec_ = true;
  return true;
}

bool PpsPredictor::extends_everywhere(const PatternList::Pattern& shorter) const noexcept {
  for (std::uint32_t i = shorter.newest; i != PatternList::kNone; i = patterns_.position(i).older) {
    const std::uint64_t at = patterns_.position(i).at;
    if (!grams_.holds(at)) break;  // forgotten, and so is all that is older
    if (!grams_.same(at + shorter.length, pos_cur_ + shorter.length)) return false;
  }
  return true;
}

bool PpsPredictor::repeats_at(std::uint64_t position) const noexcept {
  for (std::uint32_t k = 0; k < pat_size_; ++k)
    if (!grams_.same(position + k, pos_cur_ + k)) return false;
  return true;
}

void PpsPredictor::check_consecutive() noexcept {
  if (repeats_at(pos_next_)) {
    ++repeats_seen_;
    patterns_.update(curr_hash_, pat_size_, pos_next_, grams_);
    match_ = true;
    pos_cur_ += pat_size_;
    pos_next_ += pat_size_;
    if (repeats_seen_ < options_.repeats) return;
    if (!capped_ || !options_.cap_by_first) {
      if (options_.cap_by_first) max_pattern_ = pat_size_;
      capped_ = true;
    }
    if (PatternList::Pattern* used = patterns_.find(curr_hash_, pat_size_)) used->was_used = true;
    predict_from(pos_next_);
    return;
  }
  check_consec_ = false;
  repeats_seen_ = 1;
  const bool dropped = !match_ && check_previous_;
  if (dropped) patterns_.remove(curr_hash_, pat_size_);
  if (dropped || (new_pattern_ && !match_)) start_search_at(pos_cur_ + std::max(1U, pat_size_ - 1));
}

void PpsPredictor::insert() noexcept {
  curr_hash_ = hash_at(pos_cur_, pat_size_);
  new_pattern_ = patterns_.update(curr_hash_, pat_size_, pos_cur_, grams_);
  check_consec_ = true;
  if (new_pattern_) return;
  const PatternList::Pattern* known = patterns_.find(curr_hash_, pat_size_);
  if (known != nullptr && known->was_used) predict_from(pos_next_);
}

/// Predicts that the pattern of pat_size_ grams that ends before `position` goes on from there, if all that
/// has come since agrees: the search may lag behind the calls.
bool PpsPredictor::predict_from(std::uint64_t position) noexcept {
  const std::uint64_t now = grams_.size();
  for (std::uint64_t p = position; p < now; ++p)
    if (!grams_.same(p, p - pat_size_)) return false;
  if (!grams_.holds(now - pat_size_)) return false;
  predicted_size_ = pat_size_;
  for (std::uint64_t p = now - pat_size_; p < now; ++p)
    predicted_[(p - position + pat_size_) % pat_size_] = grams_[p];
  index_ = static_cast<std::uint32_t>((now - position) % pat_size_);
  const GramArray::Gram& running = grams_.running();
  for (std::uint32_t i = 0; i < std::min(running.length, predicted_[index_].length); ++i) {
    std::uint32_t was = 0, is = 0;
    if (grams_.call_at(predicted_[index_], i, was) && grams_.call_at(running, i, is) && was != is) return false;
  }
  if (running.length > predicted_[index_].length) return false;
  rested_ = false;
  predicting_ = true;
  return true;
}

PredictorState PpsPredictor::state() const noexcept {
  PredictorState s;
  s.threshold = options_.threshold;
  s.searches = searches_;
  s.restarts = patterns_.overflows();
  s.mispredictions = mispredictions_;
  s.memory_bytes = grams_.memory_bytes() + patterns_.memory_bytes() + predicted_.size() * sizeof(GramArray::Gram);
  return s;
}

}  // namespace fallow::predict
