// What few programs need: persistent requests, neighbours, epochs of one-sided communication, file accesses. Nothing of it is allocated for
// a program that has none of them.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coll/schedule.hpp"
#include "sim/time.hpp"
#include "trace/op.hpp"

namespace fallow::sim {

/// Steps of a collective whose partners are world ranks.
using Plan = std::vector<coll::Step>;

/// Of one rank in one communicator: world ranks in the topology's order, coll::kNobody where there is none.
struct Neighbors {
  std::vector<std::uint32_t> to, from;
};

/// Of one rank on one communicator's windows: world ranks that were given to each win_start and win_post that has not ended, in order.
struct Epochs {
  std::deque<std::vector<std::uint32_t>> targets, origins;
};

/// What a persistent request was made for, beside what a request has anyway.
struct Persistent {
  std::uint32_t peer = kNone;  ///< of a send: destination, world rank; kNone: no data moves
  std::uint64_t bytes = 0;
  std::uint32_t comm = 0;      ///< of a receive, as given: what was matched may differ each time
  std::int32_t source = 0, tag = 0;
  std::uint64_t parts = 0;     ///< of a send whose data goes when all its partitions are ready: their number ...
  std::uint64_t missing = 0;   ///< ... and how many are not, since it was started
};

struct SideTables {
  std::uint32_t keep(Persistent made) {
    if (spare_persistent.empty()) {
      persistent.push_back(made);
      return static_cast<std::uint32_t>(persistent.size() - 1);
    }
    const std::uint32_t index = spare_persistent.back();
    spare_persistent.pop_back();
    persistent[index] = made;
    return index;
  }
  void drop_persistent(std::uint32_t index) { spare_persistent.push_back(index); }
  std::uint32_t keep(Plan made) {
    std::uint32_t index = static_cast<std::uint32_t>(plans.size());
    if (spare.empty()) {
      plans.push_back(std::move(made));
    } else {
      index = spare.back();
      spare.pop_back();
      plans[index] = std::move(made);
    }
    return index;
  }
  const Plan& plan(std::uint32_t index) const noexcept { return plans[index]; }
  void drop(std::uint32_t index) { spare.push_back(index); }
  static constexpr std::uint64_t key(std::uint32_t r, std::uint32_t comm) noexcept { return std::uint64_t{comm} << 32 | r; }
  /// `begin`: the operation that begins the access.
  static constexpr std::uint64_t split_key(std::uint32_t r, std::uint32_t comm, trace::Op begin) noexcept {
    static_assert(kMaxRanks <= 1u << 20 && trace::kOps <= 1u << 12);
    return key(r << 12 | static_cast<std::uint32_t>(begin), comm);
  }

  std::vector<Plan> plans;
  std::vector<std::uint32_t> spare;
  std::vector<Persistent> persistent;
  std::vector<std::uint32_t> spare_persistent;
  std::unordered_map<std::uint64_t, Neighbors> neighbors;  ///< by key()
  std::unordered_map<std::uint64_t, Epochs> epochs;        ///< by key()
  /// By split_key(): requests of file accesses that have begun, the oldest first.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> split;
  std::unordered_map<std::uint32_t, Time> files_free;      ///< by node: when its last access has been carried
};

}  // namespace fallow::sim
