#include "trace/comm_groups.hpp"

#include <algorithm>

namespace fallow::trace {

Group::Group(std::span<const std::int32_t> world_ranks) {
  for (std::size_t i = 0; i < world_ranks.size();) {
    const std::int32_t first = world_ranks[i];
    std::size_t end = i + 1;
    std::int32_t stride = 1;
    if (end < world_ranks.size()) {
      stride = static_cast<std::int32_t>(static_cast<std::uint32_t>(world_ranks[end]) - static_cast<std::uint32_t>(first));
      while (end < world_ranks.size() &&
             static_cast<std::int64_t>(world_ranks[end]) == first + static_cast<std::int64_t>(end - i) * stride) {
        ++end;
      }
    }
    append(first, static_cast<std::uint32_t>(end - i), end - i > 1 ? stride : 1);
    i = end;
  }
}

Group Group::contiguous(std::int32_t first, std::uint32_t count, std::int32_t stride) {
  Group g;
  g.append(first, count, stride);
  return g;
}

void Group::append(std::int32_t first, std::uint32_t count, std::int32_t stride) {
  if (count == 0) return;
  runs_.push_back({first, stride, count, size_});
  size_ += count;
}

std::int32_t Group::world_rank(std::int32_t member) const noexcept {
  if (member < 0 || static_cast<std::uint32_t>(member) >= size_) return -1;
  const auto wanted = static_cast<std::uint32_t>(member);
  auto run = runs_.begin();
  if (runs_.size() > 1) {
    run = std::upper_bound(runs_.begin(), runs_.end(), wanted, [](std::uint32_t m, const Run& r) { return m < r.begin; }) - 1;
  }
  return static_cast<std::int32_t>(run->first + static_cast<std::int64_t>(wanted - run->begin) * run->stride);
}

std::int32_t Group::member(std::int32_t world_rank) const noexcept {
  for (const Run& r : runs_) {
    const std::int64_t distance = static_cast<std::int64_t>(world_rank) - r.first;
    if (r.count == 1 || r.stride == 0) {
      if (distance == 0) return static_cast<std::int32_t>(r.begin);
      continue;
    }
    if (distance % r.stride != 0) continue;
    const std::int64_t step = distance / r.stride;
    if (step >= 0 && step < r.count) return static_cast<std::int32_t>(r.begin + step);
  }
  return -1;
}

CommGroups::CommGroups(std::uint32_t world_size) : comms_(kFirstComm) {
  comms_[kCommWorld].group = Group::contiguous(0, world_size);
}

std::uint32_t CommGroups::add(Comm comm) {
  comms_.push_back(std::move(comm));
  return size() - 1;
}

std::uint32_t CommGroups::size_of(std::uint32_t comm, std::int32_t caller) const noexcept {
  if (!valid(comm)) return 0;
  if (comm == kCommSelf) return 1;
  const Comm& c = comms_[comm];
  return c.is_inter() && c.group.member(caller) < 0 ? c.remote.size() : c.group.size();
}

std::int32_t CommGroups::rank_in(std::uint32_t comm, std::int32_t caller) const noexcept {
  if (!valid(comm)) return -1;
  if (comm == kCommSelf) return 0;
  const std::int32_t own = comms_[comm].group.member(caller);
  return own >= 0 ? own : comms_[comm].remote.member(caller);
}

std::int32_t CommGroups::world_rank(std::uint32_t comm, std::int32_t caller, std::int32_t peer) const noexcept {
  if (!valid(comm)) return -1;
  if (comm == kCommSelf) return peer == 0 ? caller : -1;
  const Comm& c = comms_[comm];
  if (!c.is_inter()) return c.group.world_rank(peer);
  return (c.group.member(caller) >= 0 ? c.remote : c.group).world_rank(peer);
}

}  // namespace fallow::trace
