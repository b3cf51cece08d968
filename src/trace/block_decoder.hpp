// Unpacks one block of events. Nothing in the block is trusted: every number is checked before use, memory stays
// in proportion to the block.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "trace/block_model.hpp"
#include "trace/coding.hpp"
#include "trace/event.hpp"
#include "trace/packed_call.hpp"

namespace fallow::trace {

/// Why a block was refused; the offset counts from its first byte.
class BlockError : public std::runtime_error {
 public:
  BlockError(std::uint64_t offset, const std::string& reason) : std::runtime_error(reason), offset_(offset) {}
  std::uint64_t offset() const noexcept { return offset_; }

 private:
  std::uint64_t offset_;
};

/// Checks the head of a block of this many bytes; throws BlockError.
BlockHead read_block_head(std::span<const std::byte> bytes, std::uint64_t block_bytes);

class ShapeNumbers {
 public:
  /// Number of what `event` (as its rank numbers communicators and sites) is but for times, and with PackedCall::kOwnPeers
  /// but for peers; 0: it gets none.
  virtual std::uint32_t number_of(const CallEvent& event) = 0;

 protected:
  ~ShapeNumbers() = default;
};

class BlockDecoder {
 public:
  BlockDecoder() : model_(false) {}

  /// Takes over a block; throws BlockError.
  void begin(std::vector<std::byte> block);

  /// The next event, communicator and site as numbered by its rank; false at the block's end. Throws BlockError.
  /// Spans stay valid until the next call.
  bool next(CallEvent& event);

  /// More events, packed, as many as there is room for, fewer at the block's end; none once it is reached. Returns the places that
  /// they take up. Throws BlockError. Events whose shape is new are given to `shapes`; one that it gives no number comes last, as
  /// `odd`, whose spans stay valid until the next call.
  std::size_t next_calls(std::span<std::uint32_t> places, ShapeNumbers& shapes, CallEvent& odd);

  /// Brings nearer what next() will touch beyond the decoder itself.
  void prefetch() const noexcept {
    if (decoded_ == head_.events) return;
    model_.prefetch();
    bits_.prefetch();
    __builtin_prefetch(lists_.data());
    __builtin_prefetch(requests_.data());
  }

  const BlockHead& head() const noexcept { return head_; }
  /// The bytes given to begin(), to be used again.
  std::vector<std::byte> take_buffer() noexcept { return std::move(block_); }

 private:
  [[noreturn]] void refuse(const std::string& reason) const;
  std::uint32_t read_miss();
  void read_template();
  void read_values(Values& v, std::uint32_t miss);
  std::uint16_t read_list();
  Expectation& read_expectation(std::uint32_t& event_template);
  void fill(CallEvent& event, std::uint32_t event_template, const Values& v) const;
  std::uint64_t read_time(TimeState& state);
  std::uint64_t read_any_time(TimeState& state);
  struct Times {
    std::uint64_t enter = 0, exit = 0, wait = 0, compute = 0;
  };
  Times read_times(Expectation& x, bool cpu_time);
  std::span<const std::uint64_t> list(std::uint32_t number) const noexcept;
  std::span<const std::uint32_t> requests(std::uint32_t number) const;

  struct List {
    std::uint32_t begin = 0, count = 0;
    bool are_requests = true;  ///< all are small enough
  };
  static_assert(kMaxListWords < 1u << 31);
  BlockModel model_;
  BlockHead head_{};
  std::vector<std::byte> block_, structure_;
  ByteReader control_, literals_, definitions_;
  BitReader bits_;
  std::uint32_t decoded_ = 0;
  std::uint64_t clock_ = 0;
  std::uint64_t largest_code_ = 0;
  std::uint64_t run_ = 0;
  bool run_read_ = false;
  Template last_defined_;
  std::vector<List> lists_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> requests_;  ///< words_ once more, where they may be requests' numbers
};

}  // namespace fallow::trace
