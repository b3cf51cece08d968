#include "trace/block_encoder.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

/// What every event goes through is one function: the calls would be a tenth of its cost.
#define FALLOW_EACH_EVENT __attribute__((always_inline)) inline

namespace fallow::trace {
namespace {

constexpr std::size_t kControlBytes = 48 * 1024, kLiteralBytes = 64 * 1024, kBitBytes = 128 * 1024;
constexpr std::size_t kTemplateBytes = 32 * 1024;   // definitions of templates
constexpr std::size_t kWorstControl = 2 * kMaxVarint;
constexpr std::size_t kWorstLiterals = 10 * kMaxVarint;
constexpr std::size_t kWorstTemplate = 7 * kMaxVarint;
constexpr std::size_t kWorstTimes = 4 * (kMaxRiceBits + 64) / 8 + 8;
constexpr std::uint32_t kTemplateSlots = 2 * kTemplates, kListSlots = 2 * kLists;  // half full at most
constexpr std::size_t kShortLists = 4;  // numbers in all lists of an event: most have no more
constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;

Template template_of(const CallEvent& e) noexcept {
  return {static_cast<std::uint16_t>(e.op), e.flags, e.comm, e.site, e.peer, e.recv_peer, e.root};
}

std::uint64_t hash_of(const Template& t) noexcept {
  std::uint64_t h = (t.op | std::uint64_t{t.flags} << 16 | std::uint64_t{t.comm} << 32) * kMix;
  h = (std::rotl(h, 23) ^ (t.site | std::uint64_t{static_cast<std::uint32_t>(t.peer)} << 32)) * kMix;
  return (std::rotl(h, 23) ^ (static_cast<std::uint32_t>(t.root) | std::uint64_t{static_cast<std::uint32_t>(t.recv_peer)} << 32)) * kMix;
}

constexpr std::uint32_t when(bool failed, Miss bit) noexcept { return failed ? std::uint32_t{bit} : 0u; }

std::uint32_t misses(const Values& a, const Values& b) noexcept {
  return when(a.bytes != b.bytes, kMissBytes) | when(a.recv_bytes != b.recv_bytes, kMissRecvBytes) |
         when(a.requests != b.requests, kMissRequests) | when(a.completed != b.completed, kMissCompleted) |
         when(a.tag != b.tag, kMissTag) | when(a.recv_tag != b.recv_tag, kMissRecvTag) |
         when(a.counts != b.counts, kMissCounts) | when(a.recv_counts != b.recv_counts, kMissRecvCounts);
}

/// What is left of an event whose lists are too long for any block.
CallEvent without_lists(CallEvent e) noexcept {
  if (!e.counts.empty() || !e.recv_counts.empty()) e.flags = static_cast<std::uint16_t>(e.flags | kEventCountsLost);
  if (!e.requests.empty() || !e.completed.empty()) e.flags = static_cast<std::uint16_t>(e.flags | kEventRequestsLost);
  e.counts = e.recv_counts = {};
  e.requests = e.completed = {};
  return e;
}

}  // namespace

BlockEncoder::BlockEncoder(std::uint32_t rank, std::uint16_t thread, const EncoderOptions& options)
    : options_(options), lz_(std::make_unique<LzTable>()) {
  head_.rank = rank;
  head_.thread = thread;
  head_.time_bits = static_cast<std::uint8_t>(std::clamp(options.time_bits, kMinTimeBits, kMaxTimeBits));
  options_.list_words = std::min(options.list_words, kMaxListWords);
  options_.max_events = std::clamp(options.max_events, 1u, kBlockEvents);
  const std::size_t definitions = kTemplateBytes + kMaxVarint * options_.list_words;
  const std::size_t structure = kControlBytes + kLiteralBytes + definitions;
  const std::size_t block = sizeof(BlockHead) + structure + kBitBytes;
  memory_ = std::make_unique_for_overwrite<std::byte[]>(2 * structure + kBitBytes + block);
  std::span<std::byte> rest(memory_.get(), 2 * structure + kBitBytes + block);
  const auto take = [&rest](std::size_t n) {
    const auto part = rest.first(n);
    rest = rest.subspan(n);
    return part;
  };
  control_ = ByteWriter(take(kControlBytes));
  literals_ = ByteWriter(take(kLiteralBytes));
  definitions_ = ByteWriter(take(definitions));
  bits_ = BitWriter(take(kBitBytes));
  structure_ = take(structure);
  block_ = take(block);
  template_slots_ = std::make_unique<Slot[]>(kTemplateSlots);
  list_slots_ = std::make_unique<Slot[]>(kListSlots);
  list_table_ = std::make_unique<List[]>(kLists);
  list_words_ = std::make_unique_for_overwrite<std::uint64_t[]>(options_.list_words);
  keys_ = std::make_unique_for_overwrite<EventKey[]>(std::size_t{1} << kMaxContextBits);
  constexpr unsigned kFirstContextBits = 10;
  begin(kFirstContextBits);
}

void BlockEncoder::begin(unsigned context_bits) noexcept {
  model_.begin(context_bits);
  ++epoch_;
  head_.context_bits = static_cast<std::uint8_t>(context_bits);
  head_.events = 0;
  head_.first_event = next_event_;
  control_.clear(), literals_.clear(), definitions_.clear(), bits_.clear();
  lists_ = 1;
  words_ = 0;
  sure_ = 0;
  run_ = 0;
  last_defined_ = {};
}

FALLOW_EACH_EVENT bool BlockEncoder::has_room(const CallEvent& e) noexcept {
  const std::size_t words = e.counts.size() + e.recv_counts.size() + e.requests.size() + e.completed.size();
  const bool waits_as_block = e.wait_ns == 0 || waits_ || head_.events == 0;
  if (sure_ != 0 && words <= kShortLists && waits_as_block) [[likely]] {
    --sure_;
    return true;
  }
  sure_ = 0;
  if (!fits(words) || !waits_as_block) return false;
  if (words <= kShortLists) sure_ = surely() - 1;
  return true;
}

/// An event with so many numbers in its lists fits, whatever they are.
bool BlockEncoder::fits(std::size_t words) const noexcept {
  return head_.events < options_.max_events && model_.templates() < kTemplates && lists_ + 4 <= kLists &&
         words <= options_.list_words - words_ && control_.room() >= kWorstControl &&
         literals_.room() >= kWorstLiterals && definitions_.room() >= kWorstTemplate + (words + 4) * kMaxVarint &&
         bits_.room() >= kWorstTimes;
}

/// At least so many events with short lists fit; after fits(), at least 1.
std::uint32_t BlockEncoder::surely() const noexcept {
  const std::size_t events[] = {options_.max_events - head_.events,
                                kTemplates - model_.templates(),
                                (kLists - lists_) / 4,
                                (options_.list_words - words_) / kShortLists,
                                control_.room() / kWorstControl,
                                literals_.room() / kWorstLiterals,
                                definitions_.room() / (kWorstTemplate + (kShortLists + 4) * kMaxVarint),
                                bits_.room() / kWorstTimes};
  return static_cast<std::uint32_t>(std::max<std::size_t>(*std::min_element(std::begin(events), std::end(events)), 1));
}

void BlockEncoder::write_first(const CallEvent& e) noexcept {
  head_.base_ns = clock_ = next_event_ == 0 ? std::min(e.enter_ns, kLatestNs) : clock_;
  waits_ = waits_ || e.wait_ns != 0;
  head_.flags = (options_.exact_times ? std::uint32_t{kBlockExactTimes} : 0u) | (waits_ ? std::uint32_t{kBlockWaits} : 0u);
  head_.dropped = dropped_;
  dropped_ = 0;
}

std::uint32_t BlockEncoder::find_template(const Template& t) noexcept {
  for (std::uint64_t h = hash_of(t) >> 40;; ++h) {
    Slot& slot = template_slots_[h % kTemplateSlots];
    if (slot.epoch != epoch_) {
      slot = {epoch_, model_.templates()};
      return slot.value;
    }
    if (model_.event_template(slot.value) == t) return slot.value;
  }
}

void BlockEncoder::define(const Template& t) noexcept {
  const Template& p = last_defined_;
  definitions_.varint(t.op);
  definitions_.varint(t.flags);
  definitions_.zigzag_varint(static_cast<std::int64_t>(t.comm) - p.comm);
  definitions_.zigzag_varint(static_cast<std::int64_t>(t.site) - p.site);
  definitions_.zigzag_varint(static_cast<std::int64_t>(t.peer) - p.peer);
  definitions_.zigzag_varint(static_cast<std::int64_t>(t.recv_peer) - p.recv_peer);
  definitions_.zigzag_varint(static_cast<std::int64_t>(t.root) - p.root);
  last_defined_ = t;
  model_.add_template(t);
}

template <class T>
std::uint16_t BlockEncoder::find_list(std::span<const T> list) noexcept {
  std::uint64_t h = list.size() * kMix;
  for (const T v : list) h = (std::rotl(h, 23) ^ v) * kMix;
  const auto same = [&](const List& known) {
    return known.count == list.size() && std::equal(list.begin(), list.end(), list_words_.get() + known.begin);
  };
  for (h >>= 40;; ++h) {
    Slot& slot = list_slots_[h % kListSlots];
    if (slot.epoch == epoch_) {
      if (same(list_table_[slot.value])) return static_cast<std::uint16_t>(slot.value);
      continue;
    }
    slot = {epoch_, lists_};
    list_table_[lists_] = {words_, static_cast<std::uint32_t>(list.size())};
    definitions_.varint(list.size());
    std::int64_t last = 0;
    for (const T v : list) {
      definitions_.zigzag_varint(static_cast<std::int64_t>(v - static_cast<std::uint64_t>(last)));
      list_words_[words_++] = v;
      last = static_cast<std::int64_t>(v);
    }
    return static_cast<std::uint16_t>(lists_++);
  }
}

void BlockEncoder::write_miss(std::uint32_t miss) noexcept {
  control_.varint(run_);
  control_.varint(miss);
  run_ = 0;
}

void BlockEncoder::write_values(const Values& p, const Values& v, std::uint32_t miss) noexcept {
  if ((miss & kMissBytes) != 0) literals_.zigzag_varint(static_cast<std::int64_t>(v.bytes - p.bytes));
  if ((miss & kMissRecvBytes) != 0) literals_.zigzag_varint(static_cast<std::int64_t>(v.recv_bytes - p.recv_bytes));
  if ((miss & kMissRequests) != 0) literals_.varint(v.requests);
  if ((miss & kMissCompleted) != 0) literals_.varint(v.completed);
  if ((miss & kMissTag) != 0) literals_.zigzag_varint(static_cast<std::int64_t>(v.tag) - p.tag);
  if ((miss & kMissRecvTag) != 0) literals_.zigzag_varint(static_cast<std::int64_t>(v.recv_tag) - p.recv_tag);
  if ((miss & kMissCounts) != 0) literals_.varint(v.counts);
  if ((miss & kMissRecvCounts) != 0) literals_.varint(v.recv_counts);
}

/// Writes one duration; returns it as the decoder will have it. `follow`: it moves the clock, so it takes over what
/// earlier ones were off, by no more than it is rounded anyway.
std::uint64_t BlockEncoder::write_time(std::uint64_t duration, TimeState& state, bool follow) noexcept {
  const unsigned n = head_.time_bits;
  std::uint64_t d = std::min(duration, kLatestNs - 1);
  if (follow && drift_ != 0) {
    const auto step = static_cast<std::int64_t>(d >> n);
    const std::int64_t correction = std::clamp(drift_, -step, step);
    d = static_cast<std::uint64_t>(static_cast<std::int64_t>(d) + correction);
  }
  TimeCode code = time_code_floor(d, n);
  if (!options_.exact_times) code = {time_code_round(d, n), 0};
  const std::uint64_t residual = zigzag(static_cast<std::int64_t>(code.code - state.mean));
  write_long_rice(bits_, residual, state.rice_parameter(), d & ((std::uint64_t{1} << code.dropped) - 1), code.dropped);
  state.learn(code.code, residual, n);
  const std::uint64_t decoded = options_.exact_times ? d : time_code_value(code.code, n);
  if (follow) drift_ += static_cast<std::int64_t>(duration) - static_cast<std::int64_t>(decoded);
  return decoded;
}

/// Writes one duration that is kept to the nanosecond and in range.
void BlockEncoder::write_exact_time(std::uint64_t d, TimeState& state) noexcept {
  const unsigned n = head_.time_bits;
  const TimeCode code = time_code_floor(d, n);
  const std::uint64_t residual = zigzag(static_cast<std::int64_t>(code.code - state.mean));
  write_long_rice(bits_, residual, state.rice_parameter(), d & ((std::uint64_t{1} << code.dropped) - 1), code.dropped);
  state.learn(code.code, residual, n);
}

void BlockEncoder::write_times(const EventTimes& e, Expectation& x) noexcept {
  if (exact(e)) [[likely]] {
    write_exact_time(e.enter_ns - clock_, x.gap);
    write_exact_time(e.exit_ns - e.enter_ns, x.duration);
    if (head_.events == 0) head_.first_ns = e.enter_ns;
    clock_ = e.exit_ns;
  } else {
    write_moved_times(e, x);
  }
  write_other_times(e, x);
}

/// Of an event whose times are rounded, or not after those of the one before.
void BlockEncoder::write_moved_times(const EventTimes& e, Expectation& x) noexcept {
  // Where the decoder's clock would be without rounding.
  const std::uint64_t last_exit = static_cast<std::uint64_t>(static_cast<std::int64_t>(clock_) + drift_);
  const std::uint64_t enter = std::clamp(e.enter_ns, last_exit, kLatestNs);
  const std::uint64_t exit = std::clamp(e.exit_ns, enter, kLatestNs);
  const std::uint64_t gap = write_time(enter - last_exit, x.gap, true);
  if (head_.events == 0) head_.first_ns = clock_ + gap;
  const std::uint64_t duration = write_time(exit - enter, x.duration, true);
  clock_ += gap + duration;
}

FALLOW_EACH_EVENT void BlockEncoder::write(const CallEvent& e) noexcept {
  if (head_.events == 0) write_first(e);
  const std::uint32_t expected = model_.expected();
  const bool as_expected = expected != BlockModel::kNone && model_.event_template(expected) == template_of(e);
  const std::uint32_t t = as_expected ? expected : find_template(template_of(e));
  std::uint32_t miss = when(t != expected, kMissTemplate);
  if (miss != 0) literals_.varint(t);
  if (t == model_.templates()) define(template_of(e));
  Expectation& x = model_.expectation(t);
  const Values values{e.bytes, e.recv_bytes, e.tag, e.recv_tag, find_numbers(e.requests), find_numbers(e.completed),
                      find_numbers(e.counts), find_numbers(e.recv_counts)};
  if (x.values != values) miss |= misses(x.values, values);
  if (miss == 0) [[likely]] {
    ++run_;
  } else {
    write_miss(miss);
    write_values(x.values, values, miss);
    if ((miss & kMissCounts) != 0 && !ended_in(e).empty()) head_.flags |= kBlockOutcomes;
    x.values = values;
  }
  write_times({e.enter_ns, e.exit_ns, e.compute_ns, e.wait_ns, (e.flags & kEventCpuTime) != 0}, x);
  model_.learned(t, values.bytes);
  ++head_.events;
  ++next_event_;
}

bool BlockEncoder::add(const CallEvent& event) noexcept {
  if (has_room(event)) [[likely]] {
    write(event);
    return true;
  }
  if (head_.events != 0) return false;
  sure_ = 0;
  return add(without_lists(event));  // the block is empty
}

std::span<const std::byte> BlockEncoder::finish() noexcept {
  if (head_.events == 0) return {};
  if (run_ != 0) control_.varint(run_);
  const std::span<const std::byte> parts[] = {control_.bytes(), literals_.bytes(), definitions_.bytes()};
  std::size_t n = 0;
  for (const auto part : parts) {
    std::copy(part.begin(), part.end(), structure_.begin() + static_cast<std::ptrdiff_t>(n));
    n += part.size();
  }
  const auto structure = structure_.first(n);
  const auto bits = bits_.finish();
  auto body = block_.subspan(sizeof(BlockHead));
  std::size_t packed = lz_pack(structure, body, *lz_);
  if (packed == 0) {
    std::copy(structure.begin(), structure.end(), body.begin());
    packed = n;
  }
  std::copy(bits.begin(), bits.end(), body.begin() + static_cast<std::ptrdiff_t>(packed));
  head_.structure_bytes = static_cast<std::uint32_t>(n);
  head_.packed_bytes = static_cast<std::uint32_t>(packed);
  head_.control_bytes = static_cast<std::uint32_t>(control_.size());
  head_.literal_bytes = static_cast<std::uint32_t>(literals_.size());
  head_.bit_bytes = static_cast<std::uint32_t>(bits.size());
  head_.last_ns = clock_;
  std::memcpy(block_.data(), &head_, sizeof head_);
  finished_ = head_;
  const unsigned wanted = static_cast<unsigned>(std::bit_width(2 * (model_.contexts_used() + model_.contexts_replaced())));
  begin(std::clamp(wanted, kMinContextBits, kMaxContextBits));
  return block_.first(sizeof(BlockHead) + packed + bits.size());
}

}  // namespace fallow::trace
