// The MPI library's idle hook: the function that it calls again and again while it waits. A call of the program
// that blocks stays inside the library, with its matching, algorithms and error handling untouched; Fallow only
// decides how long the library rests between two polls.
#pragma once

namespace fallow::pmpi {

struct Runtime;
struct Thread;

/// To be called before the MPI library starts: some hooks must be in place by then.
void prepare_hooks(Runtime& rt) noexcept;

/// Takes over the hook that the library in this process has; notes in the header which one.
void install_hooks(Runtime& rt) noexcept;

/// Gives every hook back.
void remove_hooks(Runtime& rt) noexcept;

/// Between two of the first polls of a wait: what was called lately is added to the totals, and packed for the trace, a little at a
/// time. See wait.cpp.
void catch_up_in_wait(Thread& thread) noexcept;

/// An idle poll at which the time is due to be looked at: spins on, yields, or sleeps. See wait.cpp.
void slow_poll(Thread& thread) noexcept;

/// The library polls inside a call that is not one that waits, and somebody sleeps. One-sided calls may need their target's
/// progress again and again: it is woken. See waking.cpp.
void wake_polled_for(Thread& thread) noexcept;

}  // namespace fallow::pmpi
