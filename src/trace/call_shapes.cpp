#include "trace/call_shapes.hpp"

#include <algorithm>
#include <bit>

namespace fallow::trace {
namespace {

class Hash {
 public:
  void add(std::uint64_t v) noexcept { value_ = (std::rotl(value_, 29) ^ v) * 0x9e3779b97f4a7c15u; }
  template <class T>
  void add(std::span<const T> list) noexcept {
    add(list.size());
    for (const T v : list) add(std::uint64_t{v});
  }
  std::uint64_t value() const noexcept { return value_ ^ value_ >> 32; }

 private:
  std::uint64_t value_ = 0;
};

std::uint64_t pair(std::int64_t a, std::int64_t b) noexcept { return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b); }

std::uint64_t hash_of(const CallEvent& c) noexcept {
  Hash h;
  h.add(pair(static_cast<std::int64_t>(c.op) << 16 | c.flags, c.thread));
  h.add(pair(c.comm, c.site));
  h.add(pair(c.tag, c.recv_tag));
  h.add(static_cast<std::uint64_t>(c.root));
  h.add(c.bytes);
  h.add(c.recv_bytes);
  h.add(c.counts);
  h.add(c.recv_counts);
  h.add(c.requests);
  h.add(c.completed);
  return h.value();
}

bool same(const CallEvent& a, const CallEvent& b) noexcept {
  return a.op == b.op && a.flags == b.flags && a.thread == b.thread && a.comm == b.comm && a.site == b.site && a.tag == b.tag &&
         a.recv_tag == b.recv_tag && a.root == b.root && a.bytes == b.bytes && a.recv_bytes == b.recv_bytes &&
         std::ranges::equal(a.counts, b.counts) && std::ranges::equal(a.recv_counts, b.recv_counts) &&
         std::ranges::equal(a.requests, b.requests) && std::ranges::equal(a.completed, b.completed);
}

/// A copy of the list that lives as long as the table.
template <class T>
std::span<const T> keep(std::span<const T> list, std::vector<std::unique_ptr<T[]>>& kept) {
  if (list.empty()) return {};
  kept.push_back(std::make_unique<T[]>(list.size()));
  std::ranges::copy(list, kept.back().get());
  return {kept.back().get(), list.size()};
}

}  // namespace

std::uint32_t CallShapes::number_of(const CallEvent& c) {
  if (c.counts.size() + c.recv_counts.size() + c.requests.size() + c.completed.size() > kMaxWords) return 0;
  const std::uint64_t hash = hash_of(c);
  const std::lock_guard lock(mutex_);
  for (auto [at, end] = by_hash_.equal_range(hash); at != end; ++at) {
    if (same((*this)[at->second], c)) return at->second;
  }
  if (next_ == kMost) return 0;
  auto& block = blocks_[next_ / kBlock];
  if (!block) block = std::make_unique<CallEvent[]>(kBlock);
  CallEvent& kept = block[next_ % kBlock];
  kept = c;
  kept.peer = kept.recv_peer = kNoPeer;
  kept.enter_ns = kept.exit_ns = kept.compute_ns = kept.wait_ns = 0;
  kept.counts = keep(c.counts, counts_), kept.recv_counts = keep(c.recv_counts, counts_);
  kept.requests = keep(c.requests, requests_), kept.completed = keep(c.completed, requests_);
  by_hash_.emplace(hash, next_);
  return next_++;
}

}  // namespace fallow::trace
