#include "trace/call_shapes.hpp"

#include <algorithm>
#include <bit>

#include "trace/packed_call.hpp"

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

std::uint64_t hash_of(const CallShapes::Shape& shape) noexcept {
  const CallEvent& c = shape.call;
  Hash h;
  h.add(pair(c.peer, c.recv_peer));
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

bool same(const CallShapes::Shape& one, const CallShapes::Shape& other) noexcept {
  const CallEvent &a = one.call, &b = other.call;
  return one.peer_moves == other.peer_moves && one.recv_peer_moves == other.recv_peer_moves && a.peer == b.peer && a.recv_peer == b.recv_peer &&
         a.op == b.op && a.flags == b.flags && a.thread == b.thread && a.comm == b.comm && a.site == b.site && a.tag == b.tag &&
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

std::uint32_t CallShapes::find(const Shape& shape) const {
  for (auto [at, end] = by_hash_.equal_range(hash_of(shape)); at != end; ++at) {
    if (same((*this)[at->second], shape)) return at->second;
  }
  return 0;
}

std::uint32_t CallShapes::add(const Shape& shape) {
  if (next_ == kMost) return 0;
  auto& block = blocks_[next_ / kBlock];
  if (!block) block = std::make_unique<Shape[]>(kBlock);
  Shape& kept = block[next_ % kBlock] = shape;
  CallEvent& c = kept.call;
  c.enter_ns = c.exit_ns = c.compute_ns = c.wait_ns = 0;
  c.counts = keep(c.counts, counts_), c.recv_counts = keep(c.recv_counts, counts_);
  c.requests = keep(c.requests, requests_), c.completed = keep(c.completed, requests_);
  by_hash_.emplace(hash_of(kept), next_);
  return next_++;
}

std::uint32_t CallShapes::number_of(std::uint32_t rank, const CallEvent& c) {
  if (c.counts.size() + c.recv_counts.size() + c.requests.size() + c.completed.size() > kMaxWords) return 0;
  Shape shape{c, c.peer >= 0 ? -1 : 0, c.recv_peer >= 0 ? -1 : 0};
  const std::int32_t own = static_cast<std::int32_t>(rank);
  shape.call.peer -= own & shape.peer_moves;
  shape.call.recv_peer -= own & shape.recv_peer_moves;
  const std::lock_guard lock(mutex_);
  if (const std::uint32_t found = find(shape)) return found;
  if (with_peers_ < kMostWithPeers) {
    const std::uint32_t added = add(shape);
    if (added != 0) return ++with_peers_, added;
  }
  shape = {c};
  shape.call.peer = shape.call.recv_peer = kNoPeer;
  std::uint32_t found = find(shape);
  if (found == 0) found = add(shape);
  return found != 0 ? found | PackedCall::kOwnPeers : 0;
}

}  // namespace fallow::trace
