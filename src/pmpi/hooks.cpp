#include "pmpi/hooks.hpp"

#include <cerrno>

#include "pmpi/scope.hpp"

namespace fallow::pmpi {
namespace {

using OpalProgress = void (*)();
using UcpWorkerProgress = unsigned (*)(void*);
using SchedYield = int (*)();

// Read on every poll, so beside each other and outside the runtime's larger state.
struct Originals {
  OpalProgress opal_progress = nullptr;
  UcpWorkerProgress ucp_worker_progress = nullptr;
  SchedYield sched_yield = nullptr;
};
constinit Originals g_original;
constinit std::uint32_t g_polls_after_events = kFirstPolls;

inline void idle_poll() noexcept {
  auto* const thread = static_cast<Thread*>(fallow_tls.waiting);
  if (thread != nullptr && --fallow_tls.polls_left == 0) [[unlikely]] {
    const int error = errno;
    slow_poll(*thread);
    errno = error;
  }
}

void hook_opal_progress() {
  g_original.opal_progress();
  idle_poll();
}

unsigned hook_ucp_worker_progress(void* worker) {
  const unsigned events = g_original.ucp_worker_progress(worker);
  if (events == 0) [[likely]] {
    idle_poll();
  } else if (fallow_tls.polls_left < g_polls_after_events) {
    fallow_tls.polls_left = g_polls_after_events;  // something moved: poll on before resting
  }
  return events;
}

int hook_sched_yield() {
  const int result = g_original.sched_yield();
  idle_poll();
  return result;
}

template <class Function>
bool take(Runtime& rt, int hook, Function& original, Function replacement) noexcept {
  original = reinterpret_cast<Function>(rt.preload->original_hook(hook));
  if (original == nullptr) return false;
  rt.preload->set_hook(hook, reinterpret_cast<void*>(replacement));
  return true;
}

}  // namespace

void install_hooks(Runtime& rt) noexcept {
  trace::RankHeader& h = rt.writer.header();
  rt.hooked = false;
  g_polls_after_events = rt.first_polls;
  if (rt.options.hook == HookChoice::off) return;
  if (FALLOW_FAMILY_NUMBER == static_cast<int>(trace::Family::openmpi)) {
    rt.hooked = take(rt, FALLOW_HOOK_OPAL_PROGRESS, g_original.opal_progress, &hook_opal_progress);
    h.hook = rt.hooked ? 1 : 0;
  } else {
    // The MPI library calls the first on every poll where it runs over UCX; its newer versions call the second
    // whatever they run over.
    if (take(rt, FALLOW_HOOK_UCP_WORKER_PROGRESS, g_original.ucp_worker_progress, &hook_ucp_worker_progress)) {
      rt.hooked = true;
      h.hook = 2;
    } else if (take(rt, FALLOW_HOOK_SCHED_YIELD, g_original.sched_yield, &hook_sched_yield)) {
      rt.hooked = true;
      h.hook = 3;
    }
  }
  rt.sleep_allowed = rt.hooked && (rt.options.mode == WaitMode::sleep || rt.options.mode == WaitMode::automatic);
}

void remove_hooks(Runtime& rt) noexcept {
  for (int hook = 0; hook < FALLOW_HOOKS; ++hook) rt.preload->set_hook(hook, nullptr);
  rt.hooked = false;
}

}  // namespace fallow::pmpi
