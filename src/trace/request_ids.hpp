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
  /// the same handle to several requests that are complete from the start, and give that of a request that has completed
  /// anew before its thread has said so: they wait in a row behind it.
  /// `owner`: the thread, which will rather complete its own of them.
  std::uint32_t add(std::uint64_t handle, bool persistent, std::uint16_t owner = 0) noexcept {
    const std::uint32_t id = take_lowest();
    if (id == kNoRequest) return id;
    later_[id] = kNoRequest;
    owner_[id] = static_cast<std::uint16_t>(owner | (persistent ? kPersistent : 0));
    Slot& s = slots_[slot_of(handle)];
    if (s.handle == handle && ((!persistent && !is_persistent(s.last)) || thread_of(s.last) != owner)) {
      later_[s.last] = id;
      s.last = id;
    } else {  // what had the handle before has gone without a trace: its number is lost
      s = {handle, id, id};
    }
    return id;
  }

  /// Of the request that has the handle now: the last one in the row.
  std::uint32_t find(std::uint64_t handle) const noexcept {
    const std::uint64_t at = slot_of(handle);
    return slots_[at].handle != 0 ? slots_[at].last : kNoRequest;
  }

  /// The request has completed: gives its number back, unless it is persistent. kNoRequest if it is unknown.
  std::uint32_t complete(std::uint64_t handle, std::uint16_t owner = 0) noexcept { return drop(handle, owner, false); }
  /// What complete() will return.
  std::uint32_t completing(std::uint64_t handle, std::uint16_t owner = 0) const noexcept {
    const std::uint64_t at = slot_of(handle);
    return slots_[at].handle != 0 ? own_of(slots_[at], owner).id : kNoRequest;
  }
  /// The request was freed, persistent or not.
  std::uint32_t free(std::uint64_t handle, std::uint16_t owner = 0) noexcept { return drop(handle, owner, true); }

  /// The library has given a persistent request another handle.
  void moved(std::uint64_t from, std::uint64_t to) noexcept {
    const std::uint64_t at = slot_of(from);
    if (slots_[at].handle == 0 || to == 0) return;
    const std::uint32_t id = slots_[at].last;
    if (!is_persistent(id)) return;
    std::uint32_t before = kNoRequest;
    for (std::uint32_t i = slots_[at].first; i != id; i = later_[i]) before = i;
    take_out(at, id, before);
    slots_[slot_of(to)] = {to, id, id};
  }

 private:
  struct Slot {
    std::uint64_t handle = 0;
    std::uint32_t first = 0, last = 0;  ///< numbers: those between are linked by later_
  };
  struct Place {
    std::uint32_t id, before;
  };
  static constexpr std::uint16_t kPersistent = 1u << 15;

  bool is_persistent(std::uint32_t id) const noexcept { return (owner_[id] & kPersistent) != 0; }
  std::uint16_t thread_of(std::uint32_t id) const noexcept { return static_cast<std::uint16_t>(owner_[id] & ~kPersistent); }

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

  /// Where the handle is, or the hole in which its search ends.
  std::uint64_t slot_of(std::uint64_t handle) const noexcept {
    std::uint64_t at = home(handle);
    while (slots_[at].handle != 0 && slots_[at].handle != handle) at = (at + 1) & mask_;
    return at;
  }

  /// The first one of that thread, or else of all.
  Place own_of(const Slot& s, std::uint16_t owner) const noexcept {
    std::uint32_t id = s.first, before = kNoRequest;
    while (thread_of(id) != owner && id != s.last) before = id, id = later_[id];
    return thread_of(id) == owner ? Place{id, before} : Place{s.first, kNoRequest};
  }

  std::uint32_t drop(std::uint64_t handle, std::uint16_t owner, bool freed) noexcept {
    const std::uint64_t at = slot_of(handle);
    if (slots_[at].handle == 0) return kNoRequest;
    const Place found = own_of(slots_[at], owner);
    if (is_persistent(found.id) && !freed) return found.id;
    free_[found.id / 64] |= std::uint64_t{1} << (found.id % 64);
    if (found.id / 64 < lowest_) lowest_ = found.id / 64;
    take_out(at, found.id, found.before);
    return found.id;
  }

  void take_out(std::uint64_t at, std::uint32_t id, std::uint32_t before) noexcept {
    Slot& s = slots_[at];
    if (s.first == s.last) {
      close_hole(at);
    } else if (before == kNoRequest) {
      s.first = later_[id];
    } else {
      later_[before] = later_[id];
      if (id == s.last) s.last = before;
    }
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
  std::vector<std::uint16_t> owner_; ///< by number: the thread that made it, and kPersistent
  std::uint32_t most_;
  std::uint32_t lowest_ = 0;         ///< first word that may have a free number
};

}  // namespace fallow::trace
