#include "trace/rank_reader.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "trace/ring_tail.hpp"

namespace fallow::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "rank files are read in place");
static_assert(std::is_trivially_copyable_v<RankHeader> && std::is_trivially_copyable_v<ThreadCounters>);

// Bounds beyond which a header is damaged rather than generous. The runtime stays far below all of them.
constexpr std::uint32_t kMaxSites = 1U << 20;
constexpr std::uint32_t kMaxRingEvents = 1U << 24;
constexpr std::uint64_t kMaxBlockPadding = 1U << 20;  // blocks may end on a page of any size
constexpr double kMinTickHz = 1e5;
constexpr double kMaxTickHz = 1e11;

std::uint64_t block_payload(const RankHeader& h) noexcept {
  return sizeof(ThreadCounters) + std::uint64_t{h.op_slots} * sizeof(OpStats) +
         std::uint64_t{h.site_slots} * sizeof(SiteStats) + std::uint64_t{h.ring_events} * sizeof(Event);
}

template <class T>
T load(const std::vector<std::byte>& bytes, std::size_t offset) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace

RankFileError::RankFileError(std::string_view file, std::uint64_t offset, std::string_view reason)
    : std::runtime_error(std::string(file) + ": at offset " + std::to_string(offset) + ": " + std::string(reason)),
      offset_(offset),
      reason_(reason) {}

RankFileError::RankFileError(std::string_view file, std::string_view reason)
    : std::runtime_error(std::string(file) + ": " + std::string(reason)), reason_(reason) {}

ThreadBlock::ThreadBlock(const RankHeader& header, std::vector<std::byte> bytes)
    : bytes_(std::move(bytes)),
      counters_(load<ThreadCounters>(bytes_, 0)),
      ring_events_(header.ring_events),
      op_slots_(header.op_slots),
      start_(header.tick_start) {
  std::size_t at = sizeof(ThreadCounters);
  ops_.reserve(op_slots_);
  for (std::uint32_t i = 0; i < op_slots_; ++i, at += sizeof(OpStats)) ops_.push_back(load<OpStats>(bytes_, at));
  const std::uint32_t modules = std::min(header.modules_used, kMaxModules);
  for (std::uint32_t i = 0; i < header.site_slots; ++i, at += sizeof(SiteStats)) {
    auto site = load<SiteStats>(bytes_, at);
    if (site.calls == 0 || site.op >= op_slots_) continue;
    if (site.module >= modules) site.module = kNoModule;
    sites_.push_back({i, site});
  }
  ring_offset_ = at;
  if (header.finalized != 1) add_ring_tail(header);
}

void ThreadBlock::add_ring_tail(const RankHeader& header) {
  std::vector<Event> ring(ring_events_);
  if (!ring.empty()) std::memcpy(ring.data(), bytes_.data() + ring_offset_, ring.size() * sizeof(Event));
  std::vector<Event> tail = ring_tail(header, counters_, ring);
  for (const SiteStats& site : sites_of_tail(header, tail, counters_.last_exit_tick)) add_site(header, site);
  open_ = open_call(header, counters_, ring, tail);
  std::uint64_t number = counters_.events;
  add_tail(header, tail, counters_, ops_);
  if (open_.enter != 0) open_slot_ = add_site(header, add_open(header, open_, counters_, ops_));
  for (Event& e : tail) {
    const auto site = find_site(return_address(header, e), e.op, comm_of_site(e.comm));
    e.site = site != sites_.end() ? site->slot : 0;
    std::memcpy(bytes_.data() + ring_offset_ + (number++ % ring_events_) * sizeof(Event), &e, sizeof(e));
  }
}

std::vector<ThreadBlock::Site>::iterator ThreadBlock::find_site(std::uint64_t address, std::uint32_t op, std::uint32_t comm) noexcept {
  if (address == 0) return sites_.end();
  return std::ranges::find_if(sites_, [&](const Site& s) { return s.stats.address == address && s.stats.op == op && s.stats.comm == comm; });
}

std::uint32_t ThreadBlock::add_site(const RankHeader& header, SiteStats calls) {
  const auto known = find_site(calls.address, calls.op, calls.comm);
  if (known == sites_.end()) {
    for (const Site& s : sites_) {
      if (s.stats.comm == calls.comm && s.stats.comm_size != 0) calls.comm_size = s.stats.comm_size;
    }
    const auto added = std::ranges::count_if(sites_, [&](const Site& s) { return s.slot >= header.site_slots; });
    const std::uint32_t slot = calls.address != 0 ? header.site_slots + static_cast<std::uint32_t>(added) : 0;
    sites_.push_back({slot, calls});
    return slot;
  }
  SiteStats& s = known->stats;
  s.calls += calls.calls;
  s.ticks += calls.ticks;
  s.bytes += calls.bytes;
  s.gap_ticks += calls.gap_ticks;
  s.wait_awake += calls.wait_awake;
  s.wait_asleep += calls.wait_asleep;
  s.sleeps += calls.sleeps;
  s.wait_max = std::max(s.wait_max, calls.wait_max);
  return known->slot;
}

std::vector<Event> ThreadBlock::events(std::size_t limit) const {
  std::vector<Event> out;
  skipped_ = 0;
  if (ring_events_ == 0) return out;
  const std::uint64_t total = counters_.events;
  const std::uint64_t kept = std::min({total, std::uint64_t{ring_events_}, std::uint64_t{limit}});
  out.reserve(kept);
  // Newest first: the one slot that a running writer may be overwriting is the oldest, and must not decide
  // which of the others are in order.
  std::uint64_t next_enter = UINT64_MAX;
  for (std::uint64_t n = 1; n <= kept; ++n) {
    const auto event = load<Event>(bytes_, ring_offset_ + ((total - n) % ring_events_) * sizeof(Event));
    if (event.op >= op_slots_ || event.exit < event.enter || event.exit > next_enter || event.enter < start_) {
      ++skipped_;
      continue;
    }
    next_enter = event.enter;
    out.push_back(event);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

RankReader RankReader::open(const std::string& path) {
  std::string reason;
  auto source = open_regular_file(path, reason);
  if (source == nullptr) throw RankFileError(path, reason);
  return RankReader(std::move(source), path);
}

RankReader::RankReader(std::unique_ptr<ByteSource> source, std::string name)
    : source_(std::move(source)), name_(std::move(name)), header_(std::make_unique<RankHeader>()) {
  if (source_->size() < kHeaderBytes) {
    refuse(source_->size(), "truncated: the header needs " + std::to_string(kHeaderBytes) + " bytes");
  }
  if (!source_->read(0, std::as_writable_bytes(std::span(header_.get(), 1)))) refuse(0, "cannot read the header");
  if (std::memcmp(header_->magic, kRankMagic, sizeof(kRankMagic)) != 0) refuse(0, "not a Fallow rank file");
  if (header_->version != kRankVersion) {
    refuse(offsetof(RankHeader, version), "version " + std::to_string(header_->version) + ", this reader knows " +
                                              std::to_string(kRankVersion));
  }
  check_sizes();
  check_values();
}

void RankReader::refuse(std::uint64_t offset, const std::string& reason) const {
  throw RankFileError(name_, offset, reason);
}

void RankReader::check_sizes() const {
  const RankHeader& h = *header_;
  const auto exactly = [&](std::uint64_t offset, const char* what, std::uint64_t is, std::uint64_t must) {
    if (is != must) refuse(offset, std::string(what) + " is " + std::to_string(is) + ", not " + std::to_string(must));
  };
  const auto at_most = [&](std::uint64_t offset, const char* what, std::uint64_t is, std::uint64_t limit) {
    if (is > limit) {
      refuse(offset, std::string(what) + " is " + std::to_string(is) + ", above the limit of " + std::to_string(limit));
    }
  };
  exactly(offsetof(RankHeader, header_bytes), "header_bytes", h.header_bytes, kHeaderBytes);
  exactly(offsetof(RankHeader, bins), "bins", h.bins, kHistogramBins);
  exactly(offsetof(RankHeader, op_info_bytes), "op_info_bytes", h.op_info_bytes, sizeof(OpInfo));
  exactly(offsetof(RankHeader, counters_bytes), "counters_bytes", h.counters_bytes, sizeof(ThreadCounters));
  exactly(offsetof(RankHeader, op_stats_bytes), "op_stats_bytes", h.op_stats_bytes, sizeof(OpStats));
  exactly(offsetof(RankHeader, site_stats_bytes), "site_stats_bytes", h.site_stats_bytes, sizeof(SiteStats));
  exactly(offsetof(RankHeader, event_bytes), "event_bytes", h.event_bytes, sizeof(Event));
  at_most(offsetof(RankHeader, op_slots), "op_slots", h.op_slots, kMaxOps);
  at_most(offsetof(RankHeader, site_slots), "site_slots", h.site_slots, kMaxSites);
  at_most(offsetof(RankHeader, ring_events), "ring_events", h.ring_events, kMaxRingEvents);
  at_most(offsetof(RankHeader, blocks_used), "blocks_used", h.blocks_used, kMaxBlocks);
  at_most(offsetof(RankHeader, modules_used), "modules_used", h.modules_used, kMaxModules);
  const std::uint64_t payload = block_payload(h);
  if (h.block_bytes < payload || h.block_bytes > payload + kMaxBlockPadding) {
    refuse(offsetof(RankHeader, block_bytes), "block_bytes is " + std::to_string(h.block_bytes) + ", its parts need " +
                                                  std::to_string(payload));
  }
  const std::uint64_t need = kHeaderBytes + std::uint64_t{h.blocks_used} * h.block_bytes;
  if (source_->size() < need) {
    refuse(source_->size(), "truncated: " + std::to_string(h.blocks_used) + " thread blocks need " +
                                std::to_string(need) + " bytes");
  }
}

void RankReader::check_values() const {
  const RankHeader& h = *header_;
  if (!std::isfinite(h.tick_hz) || h.tick_hz < kMinTickHz || h.tick_hz > kMaxTickHz) {
    refuse(offsetof(RankHeader, tick_hz), "tick_hz is not a clock rate");
  }
  if (!std::isfinite(h.slowdown_budget) || h.slowdown_budget < 0) {
    refuse(offsetof(RankHeader, slowdown_budget), "slowdown_budget is not a share");
  }
  const bool rank_known = h.world_size != 0;
  if (h.world_size < 0 || h.world_rank < -1 || (rank_known && h.world_rank >= h.world_size)) {
    refuse(offsetof(RankHeader, world_rank), "rank " + std::to_string(h.world_rank) + " of " +
                                                 std::to_string(h.world_size));
  }
}

ThreadBlock RankReader::block(std::uint32_t index) const {
  if (index >= header_->blocks_used) throw std::out_of_range("thread block " + std::to_string(index));
  const std::uint64_t offset = kHeaderBytes + std::uint64_t{index} * header_->block_bytes;
  std::vector<std::byte> bytes(block_payload(*header_));
  if (!source_->read(offset, bytes)) refuse(offset, "cannot read thread block " + std::to_string(index));
  return ThreadBlock(*header_, std::move(bytes));
}

Seconds RankReader::seconds(std::uint64_t ticks) const noexcept {
  return Seconds(static_cast<double>(ticks) / header_->tick_hz);
}

Nanoseconds RankReader::wall_time(std::uint64_t tick) const noexcept {
  // Ticks before the start (a damaged file) count backwards; beyond a century they are clamped.
  constexpr double kCenturyNs = 3.2e18;
  const double ticks = tick >= header_->tick_start ? static_cast<double>(tick - header_->tick_start)
                                                   : -static_cast<double>(header_->tick_start - tick);
  const double since = std::clamp(ticks * (1e9 / header_->tick_hz), -kCenturyNs, kCenturyNs);
  const auto start = static_cast<std::int64_t>(std::min<std::uint64_t>(header_->wall_start_ns, 3'000'000'000'000'000'000));
  return Nanoseconds(start + static_cast<std::int64_t>(since));
}

}  // namespace fallow::trace
