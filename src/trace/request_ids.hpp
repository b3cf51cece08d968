// Small numbers for requests: the lowest free one, so that a loop gives its requests the same numbers each time
// around. Bounded memory, no allocation after set-up, one thread at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "trace/event.hpp"

namespace fallow::trace {

class RequestIds {
 public:
  static constexpr std::uint32_t kMost = 16384;
  /// Room for `most` requests at a time.
  explicit RequestIds(std::uint32_t most = kMost)
      : mask_(std::bit_ceil(2 * std::uint64_t{most}) - 1), slots_(mask_ + 1), free_((most + 63) / 64, ~std::uint64_t{0}), later_(most), owner_(most), most_(most) {}

  /// A number for the request behind this handle (never 0 as handle); kNoRequest if there is no room. Libraries give
  /// the same handle to several requests that are complete from the start: they wait in a row behind it.
  /// `owner`: the thread, which will rather complete its own of them.
  std::uint32_t add(std::uint64_t handle, bool persistent, std::uint16_t owner = 0) noexcept {
    const std::uint32_t id = take_lowest();
    if (id == kNoRequest) return id;
    later_[id] = kNoRequest;
    owner_[id] = owner;
    std::uint64_t at = home(handle);
    while (slots_[at].handle != 0 && slots_[at].handle != handle) at = (at + 1) & mask_;
    Slot& s = slots_[at];
    if (s.handle == handle && !s.persistent && !persistent) {
      later_[s.last] = id;
      s.last = id;
    } else {  // what had the handle before has gone without a trace: its number is lost
      s = {handle, id, id, persistent};
    }
    return id;
  }

  std::uint32_t find(std::uint64_t handle) const noexcept {
    for (std::uint64_t at = home(handle); slots_[at].handle != 0; at = (at + 1) & mask_) {
      if (slots_[at].handle == handle) return slots_[at].first;
    }
    return kNoRequest;
  }

  /// The request has completed: gives its number back, unless it is persistent. kNoRequest if it is unknown.
  std::uint32_t complete(std::uint64_t handle, std::uint16_t owner = 0) noexcept { return drop(handle, owner, false); }
  /// The request was freed, persistent or not.
  std::uint32_t free(std::uint64_t handle, std::uint16_t owner = 0) noexcept { return drop(handle, owner, true); }

  /// The library has given a persistent request another handle.
  void moved(std::uint64_t from, std::uint64_t to) noexcept {
    std::uint64_t at = home(from);
    for (; slots_[at].handle != from; at = (at + 1) & mask_) {
      if (slots_[at].handle == 0) return;
    }
    Slot moving = slots_[at];
    if (from == 0 || to == 0 || !moving.persistent) return;
    close_hole(at);
    for (at = home(to); slots_[at].handle != 0 && slots_[at].handle != to; at = (at + 1) & mask_) {
    }
    moving.handle = to;
    slots_[at] = moving;
  }

 private:
  struct Slot {
    std::uint64_t handle = 0;
    std::uint32_t first = 0, last = 0;  ///< numbers: those between are linked by later_
    bool persistent = false;
  };

  std::uint64_t home(std::uint64_t handle) const noexcept { return ((handle * 0x9e3779b97f4a7c15u) >> 20) & mask_; }

  std::uint32_t take_lowest() noexcept {
    for (std::uint32_t w = lowest_; w < free_.size(); ++w) {
      if (free_[w] == 0) continue;
      const std::uint32_t id = 64 * w + static_cast<std::uint32_t>(std::countr_zero(free_[w]));
      if (id >= most_) break;
      free_[w] &= free_[w] - 1;
      lowest_ = w;
      return id;
    }
    return kNoRequest;
  }

  std::uint32_t drop(std::uint64_t handle, std::uint16_t owner, bool freed) noexcept {
    std::uint64_t at = home(handle);
    for (; slots_[at].handle != handle; at = (at + 1) & mask_) {
      if (slots_[at].handle == 0) return kNoRequest;
    }
    const Slot found = slots_[at];
    if (handle == 0 || (found.persistent && !freed)) return handle == 0 ? kNoRequest : found.first;
    std::uint32_t id = found.first, before = kNoRequest;
    while (owner_[id] != owner && id != found.last) before = id, id = later_[id];
    if (owner_[id] != owner) before = kNoRequest, id = found.first;  // none of its own
    free_[id / 64] |= std::uint64_t{1} << (id % 64);
    if (id / 64 < lowest_) lowest_ = id / 64;
    if (found.first == found.last) {
      close_hole(at);
    } else if (before == kNoRequest) {
      slots_[at].first = later_[id];
    } else {
      later_[before] = later_[id];
      if (id == found.last) slots_[at].last = before;
    }
    return id;
  }

  /// Moves later entries of the chain up, so that lookups need no marks for what was removed.
  void close_hole(std::uint64_t hole) noexcept {
    for (std::uint64_t at = (hole + 1) & mask_; slots_[at].handle != 0; at = (at + 1) & mask_) {
      const std::uint64_t wanted = home(slots_[at].handle);
      if (((at - wanted) & mask_) >= ((at - hole) & mask_)) {
        slots_[hole] = slots_[at];
        hole = at;
      }
    }
    slots_[hole] = {};
  }

  std::uint64_t mask_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> free_;  ///< bit per number
  std::vector<std::uint32_t> later_; ///< by number: the next of the same handle
  std::vector<std::uint16_t> owner_; ///< by number: the thread that made it
  std::uint32_t most_;
  std::uint32_t lowest_ = 0;         ///< first word that may have a free number
};

}  // namespace fallow::trace
