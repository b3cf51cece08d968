// Makes the communicators and call sites that each rank numbered for itself into one table for all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "trace/event.hpp"
#include "trace/file_layout.hpp"

namespace fallow::trace {

/// A definition that makes no sense; the reader adds file and offset.
class DefinitionError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Definitions {
 public:
  explicit Definitions(TraceInfo& info);

  /// What a rank chunk says.
  struct RankText {
    std::uint32_t rank = 0;
    std::uint64_t shift_ns = 0;
    std::string host, program, mpi_version;
  };
  RankText rank(std::span<const std::byte> payload) const;
  void comm(std::span<const std::byte> payload);
  void site(std::span<const std::byte> payload);
  struct End {
    std::uint32_t rank = 0;
    std::uint64_t dropped = 0, left_out = 0;
  };
  End end(std::span<const std::byte> payload) const;

  /// Number in TraceInfo of what `rank` calls `local`. kCommNone and 0 if it was never defined.
  std::uint32_t comm_of(std::uint32_t rank, std::uint32_t local) const noexcept;
  std::uint32_t site_of(std::uint32_t rank, std::uint32_t local) const noexcept;
  /// Numbers in TraceInfo of the sites that `rank` defined for itself, from its number 1 on.
  std::span<const std::uint32_t> sites_of(std::uint32_t rank) const noexcept { return ranks_[rank].sites; }

 private:
  using Map = std::map<std::uint32_t, std::uint32_t>;
  struct Local {
    std::vector<std::uint32_t> comms, sites;         ///< from kFirstComm and 1 on
    std::map<std::string, std::uint32_t> ordinals;   ///< communicators seen of each group
  };
  Local& of(std::uint32_t rank) { return rank == kEveryRank ? all_ : ranks_[rank]; }
  void check_rank(std::uint64_t rank, bool may_be_all) const;

  TraceInfo& info_;
  std::vector<Local> ranks_;
  Local all_;
  std::map<std::string, std::uint32_t> comms_, sites_, modules_;
};

inline std::uint32_t Definitions::comm_of(std::uint32_t rank, std::uint32_t local) const noexcept {
  if (local < kFirstComm) return local;
  const std::uint32_t i = local - kFirstComm;
  if (i < ranks_[rank].comms.size()) return ranks_[rank].comms[i];
  return i < all_.comms.size() ? all_.comms[i] : kCommNone;
}

inline std::uint32_t Definitions::site_of(std::uint32_t rank, std::uint32_t local) const noexcept {
  if (local == 0) return 0;
  if (local - 1 < ranks_[rank].sites.size()) return ranks_[rank].sites[local - 1];
  return local - 1 < all_.sites.size() ? all_.sites[local - 1] : 0;
}

}  // namespace fallow::trace
