// Pattern prediction as published: M. Dickov, 2015, chapter 5, Algorithms 1 to 4.
//
// Calls separated by gaps up to the grouping threshold form a gram; the search looks for a sequence of grams
// that repeats; while one does, the gap after each of its grams is predicted from its last occurrence and the
// link rests for gap - (gap x lead + T_react). What the pseudo-code leaves open is decided in
// docs/adr/0011-what-pattern-search-leaves-open.md.
//
// Memory is bounded: the last `max_grams` grams are kept, more than the longest run of the publication has
// (12,923 gaps over 20 us), and patterns and their positions in pools; a pool that is full is emptied.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/predictor.hpp"

namespace fallow::predict {

struct PpsOptions {
  Nanoseconds threshold{20'000};   ///< grouping threshold, GT; published: at least 2 x T_react
  double lead = 0.05;              ///< displacement factor
  ReactTimes react;                ///< `up` is what is subtracted from a predicted gap
  int repeats = 3;                 ///< occurrences in a row until a pattern is predicted to go on, two at least
  int min_pattern = 2;             ///< grams of the shortest pattern
  bool cap_by_first = true;        ///< the first predicted pattern's length caps that of later ones
  bool call_is_op_only = true;     ///< calls are alike if the operation is; false: also communicator and peer
  std::uint32_t max_grams = 16384;       ///< rounded up to a power of two, as are the others
  std::uint32_t max_events = 65536;      ///< calls whose identity is kept
  std::uint32_t max_patterns = 8192;
  std::uint32_t max_positions = 32768;
};

/// The array of grams (Algorithm 1), of which the last `capacity` are kept. Positions count from the start.
class GramArray {
 public:
  struct Gram {
    std::uint64_t hash = 0;         ///< of its calls, in order
    std::uint64_t first_event = 0;  ///< position of its first call
    std::uint32_t length = 0;       ///< calls
    Nanoseconds gap;                ///< that follows
  };

  GramArray(std::uint32_t max_grams, std::uint32_t max_events);
  void append(std::uint32_t call) noexcept;   ///< to the running gram
  void close(Nanoseconds gap) noexcept;       ///< the running gram is complete
  void clear() noexcept;

  [[nodiscard]] std::uint64_t size() const noexcept { return closed_; }  ///< complete grams so far
  [[nodiscard]] const Gram& running() const noexcept { return running_; }
  [[nodiscard]] const Gram& operator[](std::uint64_t position) const noexcept {
    return grams_[position & (grams_.size() - 1)];
  }
  [[nodiscard]] bool holds(std::uint64_t position) const noexcept {
    return position < closed_ && position + grams_.size() > closed_;
  }
  [[nodiscard]] bool same(std::uint64_t a, std::uint64_t b) const noexcept {
    return holds(a) && holds(b) && (*this)[a].hash == (*this)[b].hash && (*this)[a].length == (*this)[b].length;
  }
  /// The `index`-th call of a gram still held; false if it is forgotten.
  [[nodiscard]] bool call_at(const Gram& gram, std::uint32_t index, std::uint32_t& call) const noexcept;
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  std::vector<Gram> grams_;
  std::vector<std::uint32_t> events_;
  Gram running_;
  std::uint64_t closed_ = 0;
  std::uint64_t events_seen_ = 0;
};

/// The pattern list (Algorithm 3): pattern -> frequency, positions, and whether it was ever predicted.
class PatternList {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Pattern {
    std::uint64_t hash = 0;
    std::uint32_t length = 0;        ///< grams; 0: unused
    std::uint32_t frequency = 0;
    std::uint32_t calls = 0;         ///< MPI calls in it
    std::uint32_t newest = kNone;    ///< list of positions, newest first
    std::uint64_t latest = 0;        ///< newest position
    bool was_used = false;
  };
  struct Position {
    std::uint64_t at = 0;
    std::uint32_t older = kNone;
  };

  PatternList(std::uint32_t max_patterns, std::uint32_t max_positions);
  /// updatePL: true if the pattern is new. A pool that is full is emptied first (`overflows` counts).
  bool update(std::uint64_t hash, std::uint32_t length, std::uint64_t position, const GramArray& grams) noexcept;
  [[nodiscard]] Pattern* find(std::uint64_t hash, std::uint32_t length) noexcept;
  void remove(std::uint64_t hash, std::uint32_t length) noexcept;
  void clear() noexcept;
  [[nodiscard]] const Position& position(std::uint32_t index) const noexcept { return positions_[index]; }
  [[nodiscard]] std::uint64_t overflows() const noexcept { return overflows_; }
  [[nodiscard]] std::uint32_t patterns() const noexcept { return used_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  std::vector<Pattern> table_;       // open addressing, linear probing
  std::vector<Position> positions_;
  std::uint32_t used_ = 0;
  std::uint32_t free_position_ = 0;
  std::uint32_t recycled_ = kNone;   // positions of removed patterns
  std::uint64_t overflows_ = 0;
};

class PpsPredictor final : public Predictor {
 public:
  explicit PpsPredictor(const PpsOptions& options);
  WaitForecast on_enter(const Call&) noexcept override { return {}; }
  Answer on_exit(const Event& event) noexcept override;
  [[nodiscard]] PredictorState state() const noexcept override;

  /// Forgets all grams and patterns and goes on with another threshold.
  void restart(Nanoseconds threshold) noexcept;

  // For tests and for spps.
  [[nodiscard]] bool predicting() const noexcept { return predicting_; }
  [[nodiscard]] std::uint32_t pattern_size() const noexcept { return predicting_ ? predicted_size_ : pat_size_; }
  [[nodiscard]] const GramArray& grams() const noexcept { return grams_; }
  /// The gram at `index` of the predicted pattern, and the gap that it predicts.
  [[nodiscard]] const GramArray::Gram& predicted_gram(std::uint32_t index) const noexcept { return predicted_[index]; }
  [[nodiscard]] std::uint64_t predicted_from() const noexcept { return pos_next_; }
  [[nodiscard]] PatternList& patterns() noexcept { return patterns_; }

 private:
  void search() noexcept;                 // Algorithm 2, one step
  bool grow() noexcept;                   // its lines 1 to 17; false: nothing was or could be done
  void check_consecutive() noexcept;      // its lines 18 to 38
  void insert() noexcept;                 // its lines 39 to 42
  [[nodiscard]] bool extends_everywhere(const PatternList::Pattern& shorter) const noexcept;
  [[nodiscard]] bool repeats_at(std::uint64_t position) const noexcept;
  bool predict_from(std::uint64_t position) noexcept;
  void start_search_at(std::uint64_t position) noexcept;
  void follow(bool gram_closed) noexcept;
  Answer control() noexcept;              // Algorithm 4
  [[nodiscard]] bool prefix_matches() const noexcept;
  [[nodiscard]] std::uint64_t hash_at(std::uint64_t position, std::uint32_t length) const noexcept;

  PpsOptions options_;
  GramArray grams_;
  PatternList patterns_;
  std::vector<GramArray::Gram> predicted_;  // the predicted pattern, gaps refreshed as they are seen

  std::uint64_t pos_cur_ = 0, pos_next_ = 0;
  std::uint32_t pat_size_ = 2;
  std::uint64_t curr_hash_ = 0;
  int repeats_seen_ = 1;
  bool new_pattern_ = true, check_consec_ = false, check_previous_ = false, match_ = false;
  std::uint32_t max_pattern_ = 0xffffffff;
  bool capped_ = false;

  bool predicting_ = false;
  std::uint32_t predicted_size_ = 0, index_ = 0;
  bool rested_ = false;                 // the running gram has reached the predicted length
  Nanoseconds last_exit_;
  bool started_ = false;
  std::uint64_t searches_ = 0, mispredictions_ = 0;
};

}  // namespace fallow::predict
