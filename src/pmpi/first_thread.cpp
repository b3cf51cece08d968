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

namespace {

fallow_known_thread* g_known = nullptr;

void set_owner(void* pointer) noexcept {
  std::atomic_ref(g_first.owner).store(pointer, std::memory_order_relaxed);
  if (g_known != nullptr) std::atomic_ref(g_known->owner).store(pointer, std::memory_order_relaxed);
}

}  // namespace

void own_first_block(fallow_known_thread& known) noexcept {
  g_first.block = std::exchange(fallow_tls, {});
  known.block = &g_first.block;
  g_known = &known;
  set_owner(thread_pointer());
}

void disown_first_block() noexcept {
  if (&this_thread() == &g_first.block) set_owner(nullptr);
}

void forget_first_of_parent() noexcept {
  if (&this_thread() != &g_first.block) set_owner(nullptr);
}

}  // namespace fallow::pmpi
