#include "sim/match.hpp"

namespace fallow::sim {
namespace {

std::size_t hash_of(std::uint64_t key, std::int32_t tag) noexcept {
  std::uint64_t h = (key ^ (std::uint64_t{static_cast<std::uint32_t>(tag)} << 17)) * 0x9e3779b97f4a7c15u;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9u;
  return h ^ (h >> 32);
}

constexpr std::size_t kFirstChains = 32;

}  // namespace

void Matcher::append(MatchQueue& queue, std::uint32_t node) {
  Node& n = pool_[node];
  n.prev = queue.tail;
  n.next = kNone;
  n.order = queue.tail == kNone ? 0 : pool_[queue.tail].order + 1;
  (queue.tail == kNone ? queue.head : pool_[queue.tail].next) = node;
  queue.tail = node;
  ++queue.count;
  if (queue.index != kNone) {
    Index& index = *indices_[queue.index];
    if (index.entries >= 2 * index.chains.size()) {
      grow(index, queue);
    } else {
      link(index, node);
    }
  } else if (queue.count > kLinear) {
    build(queue);
  }
}

void Matcher::remove(MatchQueue& queue, std::uint32_t node) {
  Node& n = pool_[node];
  if (queue.index != kNone) unlink(*indices_[queue.index], node);
  (n.prev == kNone ? queue.head : pool_[n.prev].next) = n.next;
  (n.next == kNone ? queue.tail : pool_[n.next].prev) = n.prev;
  if (--queue.count == 0 && queue.index != kNone) drop(queue);
}

std::uint32_t Matcher::find_receive(const MatchQueue& posted, std::uint64_t key, std::int32_t tag) const {
  if (posted.index == kNone) {
    for (std::uint32_t i = posted.head; i != kNone; i = pool_[i].next) {
      if (accepts(pool_[i].key, pool_[i].tag, key, tag)) return i;
    }
    return kNone;
  }
  const Index& index = *indices_[posted.index];
  const std::uint32_t exact = find_exact(index, key, tag);
  std::uint32_t wild = index.wild.head;
  while (wild != kNone && !accepts(pool_[wild].key, pool_[wild].tag, key, tag)) wild = pool_[wild].chain;
  if (exact == kNone || wild == kNone) return exact == kNone ? wild : exact;
  return static_cast<std::int32_t>(pool_[exact].order - pool_[wild].order) < 0 ? exact : wild;
}

std::uint32_t Matcher::find_message(const MatchQueue& unexpected, std::uint64_t key, std::int32_t tag) const {
  const bool exact = static_cast<std::uint32_t>(key) != kAnySource && tag != kAnyTag;
  if (exact && unexpected.index != kNone) return find_exact(*indices_[unexpected.index], key, tag);
  for (std::uint32_t i = unexpected.head; i != kNone; i = pool_[i].next) {
    if (accepts(key, tag, pool_[i].key, pool_[i].tag)) return i;
  }
  return kNone;
}

std::uint32_t Matcher::find_exact(const Index& index, std::uint64_t key, std::int32_t tag) const noexcept {
  std::uint32_t i = index.chains[hash_of(key, tag) & (index.chains.size() - 1)].head;
  while (i != kNone && (pool_[i].key != key || pool_[i].tag != tag)) i = pool_[i].chain;
  return i;
}

Matcher::Chain& Matcher::chain_of(Index& index, const Node& node) noexcept {
  if (is_wild(node)) return index.wild;
  return index.chains[hash_of(node.key, node.tag) & (index.chains.size() - 1)];
}

void Matcher::link(Index& index, std::uint32_t node) {
  Chain& chain = chain_of(index, pool_[node]);
  pool_[node].chain = kNone;
  (chain.tail == kNone ? chain.head : pool_[chain.tail].chain) = node;
  chain.tail = node;
  ++index.entries;
}

void Matcher::unlink(Index& index, std::uint32_t node) {
  Chain& chain = chain_of(index, pool_[node]);
  std::uint32_t before = kNone;
  for (std::uint32_t i = chain.head; i != node; i = pool_[i].chain) before = i;
  (before == kNone ? chain.head : pool_[before].chain) = pool_[node].chain;
  if (chain.tail == node) chain.tail = before;
  --index.entries;
}

void Matcher::build(MatchQueue& queue) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(indices_.size()));
    indices_.push_back(std::make_unique<Index>());
    indices_.back()->chains.resize(kFirstChains);
  }
  queue.index = free_.back();
  free_.pop_back();
  Index& index = *indices_[queue.index];
  for (std::uint32_t i = queue.head; i != kNone; i = pool_[i].next) link(index, i);
}

void Matcher::drop(MatchQueue& queue) {
  free_.push_back(queue.index);
  queue.index = kNone;
}

void Matcher::grow(Index& index, const MatchQueue& queue) {
  index.chains.assign(4 * index.chains.size(), Chain{});
  index.wild = Chain{};
  index.entries = 0;
  for (std::uint32_t i = queue.head; i != kNone; i = pool_[i].next) link(index, i);
}

std::size_t Matcher::memory_bytes() const noexcept {
  std::size_t bytes = indices_.capacity() * sizeof(indices_[0]) + free_.capacity() * sizeof(free_[0]);
  for (const auto& index : indices_) bytes += sizeof(Index) + index->chains.capacity() * sizeof(Chain);
  return bytes;
}

}  // namespace fallow::sim
