// A replay makes a rank's calls one after another. Where several threads of a rank were in MPI at a time, here is a source of events
// that has an order for them.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "trace/event.hpp"

namespace fallow::sim {

/// CallEvent::flags, not in traces: the end of a call that may end before what the simulator has it wait for; a call that does what it
/// does, but only begins to wait for all ranks, with a request; the end of a call that sends and receives.
inline constexpr std::uint16_t kEventEndsEarly = 1u << 15, kEventStarts = 1u << 14, kEventExchanged = 1u << 13;

/// The events of another source. Of ranks that called MPI from several threads, a call in which another thread's call began
/// - is started where it began, as its non-blocking form, and waited for where it ended, if it moves data or waits for all ranks;
/// - comes where it ended, if it only waits for what was started before: waits, tests, probes, MPI_Win_wait, MPI_Win_test and MPI_Win_start.
/// Nothing that another thread's call needs then stands behind it, as it was so in the recorded run. Before each event the rank
/// computes for as long as it had a thread outside of MPI; by the clock cpu, for what its threads computed beyond each other.
/// Requests of such ranks are numbered anew, as one that a thread completes may give its number to another thread's call which
/// had begun before. Recorded numbers are given out and given back as calls end, so they are understood in that order: of several
/// that were made by then, a thread means its own, or else the one whose call ended first.
class ThreadsInTurn final : public trace::EventSource {
 public:
  explicit ThreadsInTurn(std::unique_ptr<trace::EventSource> source);

  const trace::TraceInfo& info() const noexcept override { return source_->info(); }
  bool next(std::uint32_t rank, trace::CallEvent& event) override;
  void again(std::uint32_t rank, trace::CallEvent& event) override;
  void rewind(std::uint32_t rank) override;
  void leave_out_times(bool out) override { source_->leave_out_times(out); }
  bool has_outcomes(std::uint32_t rank) const noexcept override { return source_->has_outcomes(rank); }
  void prefetch(std::uint32_t rank, unsigned step) const noexcept override { source_->prefetch(rank, step); }

 private:
  /// An event with its lists, which do not stay with the source.
  struct Kept {
    trace::CallEvent event;
    std::vector<std::uint64_t> counts, recv_counts;
    std::vector<std::uint32_t> requests, completed;
    std::vector<std::uint32_t> ended;  ///< requests that are no more after it
    bool named = false;                ///< its requests have the numbers that they have here
    void keep(const trace::CallEvent& e);
    void give(trace::CallEvent& e) const;
  };
  /// Of one thread, by its number.
  struct Thread {
    Kept late;                  ///< to be given out at its end, if pending
    std::uint64_t exit_ns = 0;  ///< of its last call
    std::uint64_t charged_ns = 0;  ///< what the rank had computed then
    bool seen = false, pending = false;
  };
  /// A request as it is numbered here.
  struct Open {
    std::uint32_t number = 0;
    std::uint16_t thread = 0;  ///< that made it
    bool persistent = false;
    std::uint64_t begun_ns = 0, made_ns = 0;  ///< when its call began and ended
  };
  struct Rank {
    std::vector<Thread> threads;
    std::unordered_map<std::uint32_t, std::vector<Open>> requests;  ///< by recorded number, in the order in which their calls ended
    std::unordered_map<std::uint32_t, std::uint32_t> ahead;  ///< by recorded number, how many were ended that are not made yet
    std::vector<std::uint32_t> spare;  ///< numbers that are free again
    std::uint32_t numbers = 0;         ///< given out so far
    Kept coming, given;
    std::uint64_t mark_ns = 0;    ///< up to here all is told
    std::uint64_t owed_ns = 0;    ///< computed and not yet told
    std::uint64_t charged_ns = 0; ///< computed in all
    bool loaded = false, ended = false;
  };
  enum class How { whole, cut, late };
  static constexpr std::uint64_t kInside = ~std::uint64_t{0};

  static How how(const trace::CallEvent& event) noexcept;
  void load(std::uint32_t number, Rank& rank);
  static std::uint32_t take_number(Rank& rank);
  static void number_made(Rank& rank, Kept& kept);
  static void number_used(Rank& rank, Kept& kept);
  static void number_until(Rank& rank, std::uint64_t ns);
  void compute_until(Rank& rank, std::uint64_t ns, const Thread& thread, std::uint64_t own_ns) const;
  static void give(Rank& rank, trace::CallEvent& event);
  bool give_late(Rank& rank, trace::CallEvent& event) const;

  std::unique_ptr<trace::EventSource> source_;
  std::vector<std::unique_ptr<Rank>> ranks_;  ///< null: of one thread
};

/// The source itself, or in turn where ranks have several threads.
std::unique_ptr<trace::EventSource> with_threads_in_turn(std::unique_ptr<trace::EventSource> source);

}  // namespace fallow::sim
