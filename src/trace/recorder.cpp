#include "trace/recorder.hpp"

#include <xmmintrin.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace fallow::trace {
namespace {

constexpr std::uint32_t kSiteSlots = 4096;            // half of them are used at most
constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;

}  // namespace

Recorder::Recorder(FileWriter& writer, std::uint32_t rank, std::uint16_t thread, const TraceClock& clock, SiteNamer namer,
                   const RecorderOptions& options)
    : writer_(writer),
      namer_(namer),
      rank_(rank),
      max_age_ns_(options.max_age_ns),
      encoder_(rank, thread, options.encoder),
      clock_(clock),
      sites_(std::make_unique<Site[]>(kSiteSlots)),
      ring_size_(std::bit_ceil(std::max(options.ring_records, 2u))),
      side_size_(std::bit_ceil(std::max(options.side_words, 2u))) {
  ring_ = std::make_unique<RawRecord[]>(ring_size_);
  side_ = std::make_unique_for_overwrite<std::uint64_t[]>(side_size_);
  counts_ = std::make_unique_for_overwrite<std::uint64_t[]>(side_size_);
  requests_ = std::make_unique_for_overwrite<std::uint32_t[]>(side_size_ + 2);
}

std::uint32_t Recorder::find_site(std::uint64_t caller) noexcept {
  for (std::uint64_t h = (caller * kMix) >> 40;; ++h) {
    Site& s = sites_[h % kSiteSlots];
    if (s.caller == caller) {
      last_site_ = s;
      return s.number;
    }
    if (s.caller != 0) continue;
    if (sites_used_ >= kSiteSlots / 2) return 0;
    std::uint64_t offset = caller;
    const std::string_view module = namer_.name != nullptr ? namer_.name(namer_.context, caller, offset) : std::string_view();
    s = {caller, writer_.define_site(rank_, module, offset, {})};
    ++sites_used_;
    return s.number;
  }
}

void Recorder::take_lists(const RawRecord& r, CallEvent& e) noexcept {
  std::uint64_t at = side_tail_.load(std::memory_order_relaxed);
  const auto side = [&] { return side_[at++ & (side_size_ - 1)]; };
  const RawExtra* const more = r.extra();
  const std::uint32_t sent = more != nullptr ? more->counts : 0, received = more != nullptr ? more->recv_counts : 0;
  const std::uint32_t counts = sent + received;
  for (std::uint32_t i = 0; i < counts; ++i) counts_[i] = side();
  std::uint32_t n = 0;
  if (r.requests != 0) requests_[n++] = r.first_request;
  for (std::uint32_t i = 1; i < r.requests; ++i) requests_[n++] = static_cast<std::uint32_t>(side());
  if (r.completed != 0) requests_[n++] = r.first_completed;
  for (std::uint32_t i = 1; i < r.completed; ++i) requests_[n++] = static_cast<std::uint32_t>(side());
  side_tail_.store(at, std::memory_order_release);
  // A list that was cut short says less than none.
  if ((r.flags & kEventCountsLost) == 0) {
    e.counts = {counts_.get(), sent};
    e.recv_counts = {counts_.get() + sent, received};
  }
  e.requests = {requests_.get(), r.requests};
  e.completed = {requests_.get() + r.requests, r.completed};
}

namespace {

// What of a record's first part is in its key, and of its second one, where it has that.
constexpr std::size_t kKeyFrom = offsetof(RawRecord, caller), kKeyBytes = 48;
constexpr std::size_t kMoreFrom = offsetof(RawExtra, recv_bytes), kMoreBytes = 28;
static_assert(kKeyFrom == 16 && offsetof(RawRecord, completed) == kKeyFrom + kKeyBytes - 4);
static_assert(kMoreFrom == 16 && offsetof(RawExtra, recv_counts) == kMoreFrom + kMoreBytes - 4);

template <class T>
T read(const void* from, std::size_t at) noexcept {
  T v;
  std::memcpy(&v, static_cast<const std::byte*>(from) + at, sizeof v);
  return v;
}

/// Bits in which `a` and `b` differ, in `n` bytes from 0 on, a multiple of 4.
template <std::size_t n>
std::uint64_t differ(const void* a, const void* b) noexcept {
  std::uint64_t found = 0;
  for (std::size_t at = 0; at + 8 <= n; at += 8) found |= read<std::uint64_t>(a, at) ^ read<std::uint64_t>(b, at);
  if constexpr (n % 8 != 0) found |= read<std::uint32_t>(a, n - 4) ^ read<std::uint32_t>(b, n - 4);
  return found;
}

}  // namespace

EventKey RawRecord::key() const noexcept {
  EventKey key;
  std::memcpy(key.words.data(), reinterpret_cast<const std::byte*>(this) + kKeyFrom, kKeyBytes);
  if ((flags & kRawExtra) != 0) {
    std::memcpy(key.words.data() + kKeyBytes / 8, reinterpret_cast<const std::byte*>(&second) + kMoreFrom, kMoreBytes);
    if ((second.counts | second.recv_counts) != 0) key.words[0] = kNoKey;
  }
  if ((requests | completed) > 1) key.words[0] = kNoKey;
  return key;
}

/// Flags and numbers of what is in lists are in the first part: who has the same has the same parts, and as short lists.
inline bool RawRecord::has(const EventKey& known) const noexcept {
  if (differ<kKeyBytes>(&caller, known.words.data()) != 0) [[unlikely]] return false;
  return (flags & kRawExtra) == 0 || differ<kMoreBytes>(&second.recv_bytes, known.words.data() + kKeyBytes / 8) == 0;
}

inline EventTimes Recorder::times_of(const RawRecord& r) noexcept {
  EventTimes times{.enter_ns = clock_.to_ns(r.enter), .exit_ns = clock_.to_ns(r.exit)};
  if (const RawExtra* const more = r.extra(); more != nullptr) {
    times.compute_ns = more->cpu_ns;
    times.wait_ns = more->wait != 0 ? clock_.scaled(more->wait) : 0;
    times.has_compute = (r.flags & kEventCpuTime) != 0;
  }
  return times;
}

/// Whether the event is the last one of its context again, and was packed.
inline bool Recorder::pack_again(const RawRecord& r, const EventTimes& times) noexcept {
  if (lost_.load(std::memory_order_relaxed) != lost_noted_) [[unlikely]] return false;
  return encoder_.add_again([&r](const EventKey& known) noexcept { return r.has(known); }, times);
}

inline void Recorder::pack(const RawRecord& r) noexcept {
  const EventTimes times = times_of(r);
  if (!pack_again(r, times)) [[unlikely]] pack_new(r, times);
}

/// Of an event that is not the last one of its context again.
void Recorder::pack_new(const RawRecord& r, const EventTimes& times) noexcept {
  CallEvent e;
  e.op = r.op;
  e.flags = r.flags & static_cast<std::uint16_t>(~kRawExtra);
  e.comm = r.comm;
  e.site = site_of(r.caller);
  e.peer = r.peer;
  e.tag = r.tag;
  e.bytes = r.bytes;
  e.enter_ns = times.enter_ns;
  e.exit_ns = times.exit_ns;
  e.compute_ns = times.compute_ns;
  e.wait_ns = times.wait_ns;
  std::uint32_t lists = r.requests | r.completed;
  if (const RawExtra* const more = r.extra(); more != nullptr) {
    e.recv_peer = more->recv_peer;
    e.recv_tag = more->recv_tag;
    e.root = more->root;
    e.recv_bytes = more->recv_bytes;
    lists |= more->counts | more->recv_counts;
  }
  if (lists != 0) take_lists(r, e);
  EventKey known = r.key();
  if (const std::uint64_t lost = lost_.load(std::memory_order_relaxed); lost != lost_noted_) [[unlikely]] {
    write_out();
    encoder_.note_dropped(static_cast<std::uint32_t>(lost - lost_noted_));
    lost_noted_ = lost;
    e.flags = static_cast<std::uint16_t>(e.flags | kEventAfterLoss);
    known.words[0] = kNoKey;
  }
  if (!encoder_.add(e, known)) {
    write_out();
    encoder_.add(e, known);
  }
}

/// A block learns its program's loop anew, so one of few events is kept open for longer.
bool Recorder::is_due(std::uint64_t now_ns) const noexcept {
  constexpr std::uint32_t kEnough = 2048, kPatience = 6;
  const std::uint64_t allowed = encoder_.events() >= kEnough ? max_age_ns_ : kPatience * max_age_ns_;
  return encoder_.events() != 0 && now_ns > encoder_.first_ns() + allowed;
}

void Recorder::write_out() noexcept { writer_.write_block(encoder_.finish()); }

std::uint32_t Recorder::pump_locked(std::uint32_t most) noexcept {
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed), head = head_.load(std::memory_order_acquire);
  const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(head - tail, most));
  clock_.refresh();
  if (!writer_.ok()) {  // nowhere to put them, for good: their lists may stay
    tail_.store(tail + n, std::memory_order_release);
    return n;
  }
  // Told now and then: where another thread packs, each time takes the line from the thread that records.
  constexpr std::uint32_t kTellEvery = 32;
  for (std::uint32_t i = 0; i < n; ++i) {
    pack(ring_[(tail + i) & (ring_size_ - 1)]);
    if (i % kTellEvery == kTellEvery - 1) tail_.store(tail + i + 1, std::memory_order_release);
  }
  tail_.store(tail + n, std::memory_order_release);
  return n;
}

std::uint32_t Recorder::pump(std::uint32_t most, std::uint64_t now_ticks) noexcept {
  if (!lock()) return 0;
  const std::uint32_t n = pump_locked(most);
  if (now_ticks != 0 && is_due(clock_.to_ns(now_ticks))) write_out();
  unlock();
  return n;
}

std::uint32_t Recorder::pump_repeated(std::uint32_t most) noexcept {
  if (!lock()) return 0;
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed), head = head_.load(std::memory_order_acquire);
  const std::uint64_t end = tail + std::min<std::uint64_t>(head - tail, most);
  std::uint64_t at = tail;
  clock_.refresh();
  for (; at != end; ++at) {
    const RawRecord& r = ring_[at & (ring_size_ - 1)];
    const EventTimes times = times_of(r);
    if (is_due(times.exit_ns) || !writer_.ok() || !pack_again(r, times)) break;
  }
  tail_.store(at, std::memory_order_release);
  unlock();
  return static_cast<std::uint32_t>(at - tail);
}

void Recorder::flush() noexcept {
  if (!lock()) return;
  pump_locked(~0u);
  write_out();
  unlock();
}

std::uint64_t Recorder::finish() noexcept {
  while (!lock()) _mm_pause();
  pump_locked(~0u);
  write_out();
  const std::uint64_t lost = lost_.load(std::memory_order_relaxed) - lost_noted_;
  unlock();
  return lost;
}

}  // namespace fallow::trace
