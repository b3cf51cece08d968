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

template <class Record>
void Matcher<Record>::append(MatchQueue& queue, std::uint32_t record) {
  ++queue.count;
  if (queue.indexed != 0) [[unlikely]] return add(*indices_[queue.head], record);
  pool_[record].next = kNone;
  (queue.tail == kNone ? queue.head : pool_[queue.tail].next) = record;
  queue.tail = record;
  if (queue.count > kLinear) [[unlikely]] build(queue);
}

template <class Record>
void Matcher<Record>::unlink(MatchQueue& queue, std::uint32_t before, std::uint32_t record) noexcept {
  const std::uint32_t next = pool_[record].next;
  (before == kNone ? queue.head : pool_[before].next) = next;
  if (next == kNone) queue.tail = before;
  --queue.count;
}

template <class Record>
void Matcher<Record>::remove(MatchQueue& queue, std::uint32_t record) {
  if (queue.indexed != 0) {
    take_entry(queue, pool_[record].next);
    return;
  }
  std::uint32_t before = kNone;
  for (std::uint32_t i = queue.head; i != record; i = pool_[i].next) before = i;
  unlink(queue, before, record);
}

template <class Record>
template <class Fits>
std::uint32_t Matcher<Record>::take_linear(MatchQueue& queue, Fits&& fits) {
  for (std::uint32_t i = queue.head, before = kNone; i != kNone; before = i, i = pool_[i].next) {
    if (!fits(pool_[i])) continue;
    unlink(queue, before, i);
    return i;
  }
  return kNone;
}

template <class Record>
std::uint32_t Matcher<Record>::take_receive(MatchQueue& posted, std::uint64_t key, std::int32_t tag) {
  if (posted.indexed != 0) [[unlikely]] return take_entry(posted, entry_of_receive(*indices_[posted.head], key, tag));
  return take_linear(posted, [&](const Record& r) { return accepts(r.key, r.tag, key, tag); });
}

template <class Record>
std::uint32_t Matcher<Record>::take_message(MatchQueue& unexpected, std::uint64_t key, std::int32_t tag) {
  if (unexpected.indexed != 0) [[unlikely]] return take_entry(unexpected, entry_of_message(*indices_[unexpected.head], key, tag));
  return take_linear(unexpected, [&](const Record& r) { return accepts(key, tag, r.key, r.tag); });
}

template <class Record>
std::uint32_t Matcher<Record>::find_receive(const MatchQueue& posted, std::uint64_t key, std::int32_t tag) const {
  if (posted.indexed != 0) {
    const Index& index = *indices_[posted.head];
    const std::uint32_t entry = entry_of_receive(index, key, tag);
    return entry == kNone ? kNone : index.entries[entry].record;
  }
  std::uint32_t i = posted.head;
  while (i != kNone && !accepts(pool_[i].key, pool_[i].tag, key, tag)) i = pool_[i].next;
  return i;
}

template <class Record>
std::uint32_t Matcher<Record>::find_message(const MatchQueue& unexpected, std::uint64_t key, std::int32_t tag) const {
  if (unexpected.indexed != 0) {
    const Index& index = *indices_[unexpected.head];
    const std::uint32_t entry = entry_of_message(index, key, tag);
    return entry == kNone ? kNone : index.entries[entry].record;
  }
  std::uint32_t i = unexpected.head;
  while (i != kNone && !accepts(key, tag, pool_[i].key, pool_[i].tag)) i = pool_[i].next;
  return i;
}

template <class Record>
std::uint32_t Matcher<Record>::entry_of_receive(const Index& index, std::uint64_t key, std::int32_t tag) const noexcept {
  const std::uint32_t exact = find_exact(index, key, tag);
  std::uint32_t wild = index.wild.head;
  while (wild != kNone) {
    const Record& r = pool_[index.entries[wild].record];
    if (accepts(r.key, r.tag, key, tag)) break;
    wild = index.entries[wild].chain;
  }
  if (exact == kNone || wild == kNone) return exact == kNone ? wild : exact;
  return static_cast<std::int32_t>(index.entries[exact].order - index.entries[wild].order) < 0 ? exact : wild;
}

template <class Record>
std::uint32_t Matcher<Record>::entry_of_message(const Index& index, std::uint64_t key, std::int32_t tag) const noexcept {
  if (static_cast<std::uint32_t>(key) != kAnySource && tag != kAnyTag) return find_exact(index, key, tag);
  for (std::uint32_t i = index.head; i != kNone; i = index.entries[i].next) {
    const Record& r = pool_[index.entries[i].record];
    if (accepts(key, tag, r.key, r.tag)) return i;
  }
  return kNone;
}

template <class Record>
std::uint32_t Matcher<Record>::find_exact(const Index& index, std::uint64_t key, std::int32_t tag) const noexcept {
  std::uint32_t i = index.chains[hash_of(key, tag) & (index.chains.size() - 1)].head;
  while (i != kNone && (pool_[index.entries[i].record].key != key || pool_[index.entries[i].record].tag != tag)) i = index.entries[i].chain;
  return i;
}

template <class Record>
typename Matcher<Record>::Chain& Matcher<Record>::chain_of(Index& index, const Record& record) noexcept {
  if (is_wild(record)) return index.wild;
  return index.chains[hash_of(record.key, record.tag) & (index.chains.size() - 1)];
}

template <class Record>
void Matcher<Record>::chain_up(Index& index, std::uint32_t entry) noexcept {
  Chain& chain = chain_of(index, pool_[index.entries[entry].record]);
  index.entries[entry].chain = kNone;
  (chain.tail == kNone ? chain.head : index.entries[chain.tail].chain) = entry;
  chain.tail = entry;
}

template <class Record>
void Matcher<Record>::unchain(Index& index, std::uint32_t entry) noexcept {
  Chain& chain = chain_of(index, pool_[index.entries[entry].record]);
  std::uint32_t before = kNone;
  for (std::uint32_t i = chain.head; i != entry; i = index.entries[i].chain) before = i;
  (before == kNone ? chain.head : index.entries[before].chain) = index.entries[entry].chain;
  if (chain.tail == entry) chain.tail = before;
}

template <class Record>
void Matcher<Record>::add(Index& index, std::uint32_t record) {
  std::uint32_t entry = index.free;
  if (entry != kNone) {
    index.free = index.entries[entry].next;
  } else {
    entry = static_cast<std::uint32_t>(index.entries.size());
    index.entries.emplace_back();
  }
  Entry& e = index.entries[entry];
  e = {record, index.tail, kNone, kNone, index.tail == kNone ? 0 : index.entries[index.tail].order + 1};
  (index.tail == kNone ? index.head : index.entries[index.tail].next) = entry;
  index.tail = entry;
  pool_[record].next = entry;
  if (index.entries.size() <= 2 * index.chains.size()) return chain_up(index, entry);
  index.chains.assign(4 * index.chains.size(), Chain{});
  index.wild = Chain{};
  for (std::uint32_t i = index.head; i != kNone; i = index.entries[i].next) chain_up(index, i);
}

/// Takes out what stands in this entry, which may be kNone, and gives back the index with the last one.
template <class Record>
std::uint32_t Matcher<Record>::take_entry(MatchQueue& queue, std::uint32_t entry) {
  if (entry == kNone) return kNone;
  Index& index = *indices_[queue.head];
  unchain(index, entry);
  Entry& e = index.entries[entry];
  (e.prev == kNone ? index.head : index.entries[e.prev].next) = e.next;
  (e.next == kNone ? index.tail : index.entries[e.next].prev) = e.prev;
  e.next = index.free;
  index.free = entry;
  const std::uint32_t record = e.record;
  if (--queue.count == 0) {
    free_.push_back(queue.head);
    queue = MatchQueue{};
  }
  return record;
}

template <class Record>
void Matcher<Record>::build(MatchQueue& queue) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(indices_.size()));
    indices_.push_back(std::make_unique<Index>());
    indices_.back()->chains.resize(kFirstChains);
  }
  const std::uint32_t first = queue.head;
  queue.head = free_.back();
  queue.tail = kNone;
  queue.indexed = 1;
  free_.pop_back();
  for (std::uint32_t i = first, next = kNone; i != kNone; i = next) {
    next = pool_[i].next;
    add(*indices_[queue.head], i);
  }
}

template <class Record>
std::vector<std::uint32_t> Matcher<Record>::in_order(const MatchQueue& queue) const {
  std::vector<std::uint32_t> records;
  if (queue.indexed == 0) {
    for (std::uint32_t i = queue.head; i != kNone; i = pool_[i].next) records.push_back(i);
  } else {
    const Index& index = *indices_[queue.head];
    for (std::uint32_t i = index.head; i != kNone; i = index.entries[i].next) records.push_back(index.entries[i].record);
  }
  return records;
}

template <class Record>
std::size_t Matcher<Record>::memory_bytes() const noexcept {
  std::size_t bytes = indices_.capacity() * sizeof(indices_[0]) + free_.capacity() * sizeof(free_[0]);
  for (const auto& index : indices_) {
    bytes += sizeof(Index) + index->chains.capacity() * sizeof(Chain) + index->entries.capacity() * sizeof(Entry);
  }
  return bytes;
}

template class Matcher<Node>;
template class Matcher<Request>;

}  // namespace fallow::sim
