// What became of non-blocking receives and of cancelled requests is known, if at all, only where they complete. Whoever
// replays a program wants to know it where they begin: here is a source of events that says it there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trace/event.hpp"

namespace fallow::trace {

/// The events of another source, but that
/// - a receive from any source or of any tag has the peer and the tag that it was to match;
/// - a send or receive that was cancelled in time goes to or comes from MPI_PROC_NULL;
/// - start and startall say in `counts` and `recv_counts` the outcome and the tag of each of `requests`;
/// - a cancel that came too late names no request;
/// as far as the source tells. Ranks of which it tells nothing are passed on; of the others, all events are read once
/// before the first is given out, and 24 bytes are kept for each that is changed.
class Outcomes final : public EventSource {
 public:
  /// Reads what is to be read. Throws what the source throws on damage.
  explicit Outcomes(std::unique_ptr<EventSource> source);
  /// Of a source that outlives this one.
  explicit Outcomes(EventSource& source);

  const TraceInfo& info() const noexcept override { return source_.info(); }
  bool next(std::uint32_t rank, CallEvent& event) override;
  void again(std::uint32_t rank, CallEvent& event) override;
  void rewind(std::uint32_t rank) override;
  void leave_out_times(bool out) override { source_.leave_out_times(out); }
  void prefetch(std::uint32_t rank, unsigned step) const noexcept override { source_.prefetch(rank, step); }

 private:
  /// Of one request that an event names.
  struct Change {
    std::uint64_t event = 0;     ///< number within the rank
    std::uint32_t slot = 0;      ///< which of its requests
    std::uint32_t outcome = 0;   ///< see Outcome
    std::int32_t tag = kNoTag;
  };
  struct Rank {
    std::vector<Change> changes;  ///< in order
    std::size_t next = 0, first = 0;  ///< those to come; those of the last event begin at `first`
    std::uint64_t event = 0;      ///< the number of the next event
    std::vector<std::uint64_t> outcomes, tags;  ///< of a startall
  };
  class Finder;
  void change(Rank& rank, CallEvent& event) const;

  std::unique_ptr<EventSource> owned_;
  EventSource& source_;
  std::vector<Rank> ranks_;
};

/// The source itself, or with outcomes where it tells any.
std::unique_ptr<EventSource> with_outcomes(std::unique_ptr<EventSource> source);

}  // namespace fallow::trace
