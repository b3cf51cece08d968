#include "trace/block_decoder.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "trace/lz.hpp"

namespace fallow::trace {
namespace {

constexpr std::size_t kMaxStructure = 256 * 1024 + kMaxVarint * std::size_t{kMaxListWords};

std::string number(std::uint64_t v) { return std::to_string(v); }

}  // namespace

BlockHead read_block_head(std::span<const std::byte> bytes, std::uint64_t block_bytes) {
  if (bytes.size() < sizeof(BlockHead) || block_bytes < sizeof(BlockHead)) throw BlockError(0, "the block is too short for its head");
  BlockHead h;
  std::memcpy(&h, bytes.data(), sizeof h);
  const auto require = [](bool good, std::size_t at, const std::string& reason) {
    if (!good) throw BlockError(at, reason);
  };
  require(h.events != 0 && h.events <= kBlockEvents, offsetof(BlockHead, events), "a block cannot hold " + number(h.events) + " events");
  require(h.time_bits >= kMinTimeBits && h.time_bits <= kMaxTimeBits, offsetof(BlockHead, time_bits), "unknown precision of times");
  require(h.context_bits >= kMinContextBits && h.context_bits <= kMaxContextBits, offsetof(BlockHead, context_bits), "unknown size of the context table");
  require((h.flags & ~std::uint32_t{kBlockExactTimes | kBlockWaits | kBlockOutcomes}) == 0, offsetof(BlockHead, flags), "unknown flags");
  require(h.base_ns <= h.first_ns && h.first_ns <= h.last_ns && h.last_ns <= kLatestNs, offsetof(BlockHead, base_ns), "times are out of order");
  require(h.structure_bytes <= kMaxStructure && h.packed_bytes <= h.structure_bytes, offsetof(BlockHead, structure_bytes), "the sizes of the sections are impossible");
  require(std::uint64_t{h.control_bytes} + h.literal_bytes <= h.structure_bytes, offsetof(BlockHead, control_bytes), "the structure is shorter than its parts");
  require(std::uint64_t{h.packed_bytes} + h.bit_bytes == block_bytes - sizeof(BlockHead), offsetof(BlockHead, bit_bytes), "the sections do not fill the block");
  return h;
}

void BlockDecoder::begin(std::vector<std::byte> block) {
  block_ = std::move(block);
  head_ = read_block_head(block_, block_.size());
  const std::span<const std::byte> all(block_);
  std::span<const std::byte> structure = all.subspan(sizeof(BlockHead), head_.packed_bytes);
  if (head_.packed_bytes != head_.structure_bytes) {
    structure_.resize(head_.structure_bytes);
    if (!lz_unpack(structure, structure_)) throw BlockError(sizeof(BlockHead), "the packed structure is damaged");
    structure = structure_;
  }
  control_ = ByteReader(structure.first(head_.control_bytes));
  literals_ = ByteReader(structure.subspan(head_.control_bytes, head_.literal_bytes));
  definitions_ = ByteReader(structure.subspan(head_.control_bytes + head_.literal_bytes));
  bits_ = BitReader(all.subspan(sizeof(BlockHead) + head_.packed_bytes));
  model_.begin(head_.context_bits);
  decoded_ = 0;
  clock_ = head_.base_ns;
  largest_code_ = time_code_max(head_.time_bits);
  run_ = 0;
  run_read_ = false;
  last_defined_ = {};
  lists_.assign(1, {});
  words_.clear();
  requests_.clear();
}

void BlockDecoder::refuse(const std::string& reason) const {
  throw BlockError(sizeof(BlockHead), "event " + number(decoded_) + " of " + number(head_.events) + ": " + reason);
}

std::uint32_t BlockDecoder::read_miss() {
  if (!run_read_) [[unlikely]] {
    run_ = control_.varint();
    run_read_ = true;
    if (!control_.ok() || run_ > head_.events - decoded_) refuse("the control column is damaged");
  }
  if (run_ > 0) [[likely]] {
    --run_;
    return 0;
  }
  run_read_ = false;
  const std::uint64_t miss = control_.varint();
  if (!control_.ok() || miss == 0 || miss >= kMissEnd) refuse("the control column is damaged");
  return static_cast<std::uint32_t>(miss);
}

void BlockDecoder::read_template() {
  const auto narrow = [this](std::int64_t v, std::int64_t lowest, std::int64_t highest) {
    if (!definitions_.ok() || v < lowest || v > highest) refuse("a definition is damaged");
    return v;
  };
  constexpr std::int64_t kU16 = 0xffff, kU32 = 0xffffffff;
  constexpr std::int64_t kLow = std::numeric_limits<std::int32_t>::min(), kHigh = std::numeric_limits<std::int32_t>::max();
  const auto moved = [&](std::int64_t from, std::int64_t lowest, std::int64_t highest) {
    const std::int64_t d = definitions_.zigzag_varint();
    narrow(d, -2 * kU32, 2 * kU32);
    return narrow(from + d, lowest, highest);
  };
  Template t;
  const std::uint64_t op = definitions_.varint();
  if (!definitions_.ok() || op >= kOps) refuse("operation " + number(op) + " is unknown to this version");
  t.op = static_cast<std::uint16_t>(op);
  t.flags = static_cast<std::uint16_t>(narrow(static_cast<std::int64_t>(definitions_.varint()), 0, kU16));
  const Template& p = last_defined_;
  t.comm = static_cast<std::uint32_t>(moved(p.comm, 0, kU32));
  t.site = static_cast<std::uint32_t>(moved(p.site, 0, kU32));
  t.peer = static_cast<std::int32_t>(moved(p.peer, kLow, kHigh));
  t.recv_peer = static_cast<std::int32_t>(moved(p.recv_peer, kLow, kHigh));
  t.root = static_cast<std::int32_t>(moved(p.root, kLow, kHigh));
  last_defined_ = t;
  if (!model_.add_template(t)) refuse("too many templates");
}

std::uint16_t BlockDecoder::read_list() {
  const std::uint64_t n = literals_.varint();
  if (!literals_.ok() || n > lists_.size() || n >= kLists) refuse("a list is unknown");
  if (n < lists_.size()) return static_cast<std::uint16_t>(n);
  const std::uint64_t count = definitions_.varint();
  if (!definitions_.ok() || count == 0 || count > definitions_.left()) refuse("a list is damaged");
  List list{static_cast<std::uint32_t>(words_.size()), static_cast<std::uint32_t>(count), true};
  std::uint64_t v = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    words_.push_back(v += static_cast<std::uint64_t>(definitions_.zigzag_varint()));
    requests_.push_back(static_cast<std::uint32_t>(v));
    list.are_requests = list.are_requests && v < kNoRequest;
  }
  if (!definitions_.ok()) refuse("a list is damaged");
  lists_.push_back(list);
  return static_cast<std::uint16_t>(n);
}

void BlockDecoder::read_values(Values& v, std::uint32_t miss) {
  const auto tag = [this](std::int32_t from) {
    const std::int64_t d = literals_.zigzag_varint();
    constexpr std::int64_t kLimit = std::int64_t{1} << 33;
    const std::int64_t t = d > -kLimit && d < kLimit ? from + d : kLimit;
    if (t < std::numeric_limits<std::int32_t>::min() || t > std::numeric_limits<std::int32_t>::max()) refuse("a tag is out of range");
    return static_cast<std::int32_t>(t);
  };
  if ((miss & kMissBytes) != 0) v.bytes += static_cast<std::uint64_t>(literals_.zigzag_varint());
  if ((miss & kMissRecvBytes) != 0) v.recv_bytes += static_cast<std::uint64_t>(literals_.zigzag_varint());
  if ((miss & kMissRequests) != 0) v.requests = read_list();
  if ((miss & kMissCompleted) != 0) v.completed = read_list();
  if ((miss & kMissTag) != 0) v.tag = tag(v.tag);
  if ((miss & kMissRecvTag) != 0) v.recv_tag = tag(v.recv_tag);
  if ((miss & kMissCounts) != 0) v.counts = read_list();
  if ((miss & kMissRecvCounts) != 0) v.recv_counts = read_list();
  if (!literals_.ok()) refuse("the literals are damaged");
}

std::uint64_t BlockDecoder::read_any_time(TimeState& state) {
  const unsigned n = head_.time_bits;
  const std::uint64_t residual = read_rice(bits_, state.rice_parameter());
  const std::uint64_t code = state.mean + static_cast<std::uint64_t>(unzigzag(residual));
  if (code > largest_code_) [[unlikely]] refuse("a duration is damaged");
  std::uint64_t d = time_code_value(code, n);
  if ((head_.flags & kBlockExactTimes) != 0) {
    if (const unsigned dropped = time_code_dropped(code, n); dropped != 0) d |= bits_.long_bits(dropped);
  }
  state.learn(code, residual, n);
  return d;
}

/// A time that is as expected, which is what most are in a program that repeats itself, is as many zeros as the code's
/// parameter and one more.
inline std::uint64_t BlockDecoder::read_time(TimeState& state) {
  const unsigned k = state.rice_parameter();
  if (state.seen() == 0 || (bits_.peek() & ((std::uint64_t{2} << k) - 1)) != 0) return read_any_time(state);
  bits_.drop(k + 1);
  state.confirm();
  const unsigned n = head_.time_bits;
  const unsigned dropped = time_code_dropped(state.mean, n);
  if (dropped == 0) return state.mean;
  const std::uint64_t d = time_code_value(state.mean, n);
  return (head_.flags & kBlockExactTimes) != 0 ? d | bits_.long_bits(dropped) : d;
}

inline BlockDecoder::Times BlockDecoder::read_times(Expectation& x, bool cpu_time) {
  Times t;
  const std::uint64_t gap = read_time(x.gap);
  const std::uint64_t duration = read_time(x.duration);
  t.enter = clock_ + gap;
  t.exit = t.enter + duration;
  if (decoded_ == 0 && t.enter != head_.first_ns) [[unlikely]] refuse("it does not begin where its block says");
  if (t.exit > head_.last_ns || (decoded_ + 1 == head_.events && t.exit != head_.last_ns)) [[unlikely]] refuse("it does not end where its block says");
  if ((head_.flags & kBlockWaits) != 0) t.wait = read_time(x.wait);
  if ((head_.flags & kBlockExactTimes) == 0) t.wait = std::min(t.wait, duration);
  t.compute = cpu_time ? read_time(x.compute) : gap;
  if (!bits_.ok()) [[unlikely]] refuse("the times end early");
  clock_ = t.exit;
  return t;
}

std::span<const std::uint64_t> BlockDecoder::list(std::uint32_t n) const noexcept {
  return {words_.data() + lists_[n].begin, lists_[n].count};
}

std::span<const std::uint32_t> BlockDecoder::requests(std::uint32_t n) const {
  if (!lists_[n].are_requests) refuse("a request's number is out of range");
  return {requests_.data() + lists_[n].begin, lists_[n].count};
}

/// What the next event is but for its times; the values are its own.
inline Expectation& BlockDecoder::read_expectation(std::uint32_t& t) {
  t = model_.expected();
  const std::uint32_t miss = read_miss();
  if ((miss & kMissTemplate) != 0) {
    const std::uint64_t literal = literals_.varint();
    if (!literals_.ok() || literal > model_.templates()) refuse("a template is unknown");
    t = static_cast<std::uint32_t>(literal);
    if (t == model_.templates()) read_template();
  } else if (t == BlockModel::kNone) {
    refuse("the first event has no template");
  }
  Expectation& x = model_.expectation(t);
  if ((miss & ~std::uint32_t{kMissTemplate}) != 0) {
    read_values(x.values, miss);
    x.shape = 0;
  }
  return x;
}

void BlockDecoder::fill(CallEvent& e, std::uint32_t t, const Values& v) const {
  const Template& f = model_.event_template(t);
  e.op = static_cast<Op>(f.op);
  e.flags = f.flags;
  e.thread = head_.thread;
  e.comm = f.comm, e.site = f.site, e.peer = f.peer, e.recv_peer = f.recv_peer, e.root = f.root;
  e.tag = v.tag, e.recv_tag = v.recv_tag, e.bytes = v.bytes, e.recv_bytes = v.recv_bytes;
  e.counts = list(v.counts), e.recv_counts = list(v.recv_counts);
  e.requests = requests(v.requests), e.completed = requests(v.completed);
}

bool BlockDecoder::next(CallEvent& e) {
  if (decoded_ == head_.events) return false;
  std::uint32_t t;
  Expectation& x = read_expectation(t);
  fill(e, t, x.values);
  const Times times = read_times(x, (e.flags & kEventCpuTime) != 0);
  e.enter_ns = times.enter, e.exit_ns = times.exit, e.wait_ns = times.wait, e.compute_ns = times.compute;
  model_.learned_seldom(t, x.values.bytes);
  ++decoded_;
  return true;
}

std::size_t BlockDecoder::next_calls(std::span<std::uint32_t> places, ShapeNumbers& shapes, CallEvent& odd) {
  std::uint32_t* at = places.data();
  const std::uint32_t* const last = at + places.size() - PackedCall::kMostPlaces;
  for (bool numbered = true; numbered && at <= last && decoded_ < head_.events; ++decoded_) {
    std::uint32_t t;
    Expectation& x = read_expectation(t);
    if (x.shape == 0) [[unlikely]] {
      fill(odd, t, x.values);
      x.shape = shapes.number_of(odd);
      numbered = x.shape != 0;
    }
    const Times times = read_times(x, x.cpu_time != 0);
    if (!numbered) [[unlikely]] odd.enter_ns = times.enter, odd.exit_ns = times.exit, odd.wait_ns = times.wait, odd.compute_ns = times.compute;
    std::int32_t peer = kNoPeer, recv_peer = kNoPeer;
    if ((x.shape & PackedCall::kOwnPeers) != 0) [[unlikely]] {
      const Template& f = model_.event_template(t);
      peer = f.peer, recv_peer = f.recv_peer;
    }
    at = PackedCall::pack(at, x.shape, peer, recv_peer, times.compute);
    model_.learned_seldom(t, x.values.bytes);
  }
  return static_cast<std::size_t>(at - places.data());
}

}  // namespace fallow::trace
