#include "pmpi/first_thread.hpp"

#include <new>
#include <utility>

namespace fallow::pmpi {

constinit FirstThread g_first;

Thread* make_thread() noexcept {
  static std::atomic<bool> first_is_taken{false};
  return first_is_taken.exchange(true) ? new (std::nothrow) Thread : new (g_first.thread) Thread;
}

void dispose_of(Thread* thread) noexcept {
  if (thread != first_thread()) delete thread;
}

void own_first_block(fallow_tls_block** known) noexcept {
  g_first.block = std::exchange(fallow_tls, {});
  std::atomic_ref(g_first.block.owner).store(thread_pointer(), std::memory_order_relaxed);
  *known = &g_first.block;
}

namespace {

void leave_without_owner() noexcept { std::atomic_ref(g_first.block.owner).store(nullptr, std::memory_order_relaxed); }

}  // namespace

void disown_first_block() noexcept {
  if (&this_thread() == &g_first.block) leave_without_owner();
}

void forget_first_of_parent() noexcept {
  if (&this_thread() != &g_first.block) leave_without_owner();
}

}  // namespace fallow::pmpi
