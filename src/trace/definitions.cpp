#include "trace/definitions.hpp"

#include <algorithm>

#include "trace/block_format.hpp"
#include "trace/coding.hpp"

namespace fallow::trace {
namespace {

constexpr std::size_t kMaxText = 1 << 16;

std::uint64_t number(ByteReader& in) {
  const std::uint64_t v = in.varint();
  if (!in.ok()) throw DefinitionError("a definition ends early");
  return v;
}

std::uint32_t small(ByteReader& in, std::uint32_t limit, const char* what) {
  const std::uint64_t v = number(in);
  if (v > limit) throw DefinitionError(std::string(what) + " " + std::to_string(v) + " is out of range");
  return static_cast<std::uint32_t>(v);
}

std::string text(ByteReader& in) {
  const std::uint64_t n = number(in);
  if (n > kMaxText || n > in.left()) throw DefinitionError("a text is too long");
  const auto b = in.take(n);
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

Group group(ByteReader& in, std::uint32_t world_size) {
  const std::uint64_t runs = number(in);
  if (runs > in.left()) throw DefinitionError("a group is damaged");
  Group g;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const std::int64_t first = unzigzag(number(in)), written = unzigzag(number(in));
    const std::uint64_t count = number(in);
    const std::int64_t stride = count == 1 ? 1 : written;  // of one member it says nothing
    const std::int64_t limit = world_size;
    const bool good = count >= 1 && count <= world_size && g.size() + count <= world_size && first >= 0 && first < limit &&
                      (count == 1 || (stride > -limit && stride < limit && stride != 0));
    const std::int64_t last = good ? first + static_cast<std::int64_t>(count - 1) * stride : -1;
    if (!good || last < 0 || last >= limit) throw DefinitionError("a group names ranks that are not there");
    g.append(static_cast<std::int32_t>(first), static_cast<std::uint32_t>(count), static_cast<std::int32_t>(stride));
  }
  return g;
}

void append_key(std::string& key, const Group& g) {
  for (const Group::Run& r : g.runs()) {
    key += std::to_string(r.first) + ':' + std::to_string(r.stride) + ':' + std::to_string(r.count) + ',';
  }
  key += '|';
}

/// Older files end before it.
CommOrigin origin(ByteReader& in, std::uint32_t local) {
  CommOrigin o;
  if (in.left() == 0) return o;
  o.parent = small(in, kMaxDefined, "communicator");
  if (o.parent >= local) throw DefinitionError("communicator " + std::to_string(local) + " is made from one that comes later");
  o.tag = small(in, UINT32_MAX, "tag");
  return o;
}

std::int32_t lowest(const Group& g) {
  std::int32_t low = INT32_MAX;
  for (const Group::Run& r : g.runs()) {
    low = std::min({low, r.first, static_cast<std::int32_t>(r.first + static_cast<std::int64_t>(r.count - 1) * r.stride)});
  }
  return low;
}

}  // namespace

Definitions::Definitions(TraceInfo& info) : info_(info), ranks_(info.ranks.size()) {
  info_.sites.resize(1);
  info_.modules.resize(1);
}

void Definitions::check_rank(std::uint64_t rank, bool may_be_all) const {
  if (rank >= ranks_.size() && !(may_be_all && rank == kEveryRank)) throw DefinitionError("rank " + std::to_string(rank) + " is not in this trace");
}

Definitions::RankText Definitions::rank(std::span<const std::byte> payload) const {
  ByteReader in(payload);
  RankText t;
  t.rank = small(in, kEveryRank, "rank");
  check_rank(t.rank, false);
  t.shift_ns = number(in);
  if (t.shift_ns > kLatestNs) throw DefinitionError("impossible shift in time");
  t.host = text(in), t.program = text(in), t.mpi_version = text(in);
  return t;
}

void Definitions::comm(std::span<const std::byte> payload) {
  ByteReader in(payload);
  const std::uint32_t rank = small(in, kEveryRank, "rank");
  check_rank(rank, true);
  const std::uint32_t local = small(in, kMaxDefined, "communicator");
  const auto kind = static_cast<CommKind>(small(in, 1, "kind"));
  const auto world = static_cast<std::uint32_t>(ranks_.size());
  Comm c;
  c.group = group(in, world);
  if (kind == CommKind::inter) {
    c.remote = group(in, world);
    if (lowest(c.remote) < lowest(c.group)) std::swap(c.group, c.remote);
  }
  Local& l = of(rank);
  if (local != kFirstComm + l.comms.size()) throw DefinitionError("communicator " + std::to_string(local) + " is not the next");
  std::string key;
  append_key(key, c.group);
  append_key(key, c.remote);
  const CommOrigin from = origin(in, local);
  c.parent = from.parent < kFirstComm ? from.parent : l.comms[from.parent - kFirstComm];
  key += std::to_string(c.parent) + '/' + std::to_string(from.tag) + '|';
  c.ordinal = l.ordinals[key]++;
  key += std::to_string(c.ordinal);
  auto [known, is_new] = comms_.try_emplace(std::move(key), info_.comms.size());
  if (is_new) info_.comms.add(std::move(c));
  l.comms.push_back(known->second);
}

void Definitions::site(std::span<const std::byte> payload) {
  ByteReader in(payload);
  const std::uint32_t rank = small(in, kEveryRank, "rank");
  check_rank(rank, true);
  const std::uint32_t local = small(in, kMaxDefined, "call site");
  Site s;
  s.address = number(in);
  const std::string module = text(in);
  s.label = text(in);
  Local& l = of(rank);
  if (local != 1 + l.sites.size()) throw DefinitionError("call site " + std::to_string(local) + " is not the next");
  if (!module.empty()) {
    auto [known, is_new] = modules_.try_emplace(module, static_cast<std::uint32_t>(info_.modules.size()));
    if (is_new) info_.modules.push_back(module);
    s.module = known->second;
  }
  auto [known, is_new] = sites_.try_emplace(std::to_string(s.module) + '+' + std::to_string(s.address) + '+' + s.label,
                                            static_cast<std::uint32_t>(info_.sites.size()));
  if (is_new) info_.sites.push_back(std::move(s));
  l.sites.push_back(known->second);
}

Definitions::End Definitions::end(std::span<const std::byte> payload) const {
  ByteReader in(payload);
  End e;
  e.rank = small(in, kEveryRank, "rank");
  check_rank(e.rank, false);
  e.dropped = number(in);
  if (in.left() != 0) e.left_out = number(in);
  return e;
}

}  // namespace fallow::trace
