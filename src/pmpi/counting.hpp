// Programs that make tests again and again: most of their tests are counted only, see CountedTests.
#pragma once

#include <cstdint>
#include <utility>

#include "pmpi/caches.hpp"
#include "pmpi/thread_state.hpp"

namespace fallow::pmpi {

/// Sets how close tests are that are counted, once it is known which loops of tests rest.
void allow_counting() noexcept;

/// The thread's last calls are in the ring: whether they were tests for the most part, of which most of those to come are counted only.
void consider_counting(Thread& thread) noexcept;

/// The same as admit_nested(), of a thread that counts tests: null too for those, which count_test() is to be told of when they are over.
Thread* admit_counting(const void* frame, const void* caller, std::uint16_t op) noexcept;

/// Adds what the ring holds to the totals, and then the tests that were counted since, at this tick.
void add_counted(Thread& thread, std::uint64_t now) noexcept;

void found_in_counted(Thread& thread) noexcept;
void moved_to_comm(Thread& thread, std::uint16_t comm) noexcept;

inline constexpr std::uint32_t kCountedDepth = 2;  ///< fallow_tls.depth

/// Whether a test that is not recorded is counted: not if it is made by the library, in a callback, or once MPI has ended.
FALLOW_HOT bool is_counted() noexcept { return std::exchange(fallow_tls.counted, 0u) != 0; }

/// Such a test is over. `comm`: MPI_COMM_NULL of those that name none.
FALLOW_HOT void count_test(bool found, MPI_Comm comm) noexcept {
  fallow_tls.depth = 0;
  Thread& t = *static_cast<Thread*>(fallow_tls.thread);
  if (comm != MPI_COMM_NULL) {
    const CommInfo* const info = comm_info(t, comm);
    const auto id = static_cast<std::uint16_t>(info == nullptr ? 0 : info->id < 0xffff ? info->id : 0xffff);
    if (id != t.counted.now().comm) [[unlikely]] moved_to_comm(t, id);
  }
  if (found) [[unlikely]] found_in_counted(t);
}

}  // namespace fallow::pmpi
