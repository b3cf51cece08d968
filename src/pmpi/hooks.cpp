#include "pmpi/hooks.hpp"

#include "pmpi/fabric_hook.hpp"
#include "pmpi/idle_poll.hpp"
#include "pmpi/launcher.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/twins.hpp"

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

/// Intel's library yields between polls only if it is told to: how (2: sched_yield), and after how many polls.
struct Setting {
  const char* name;
  const char* value;
  bool ours;
};
constinit Setting g_intel_yield[] = {{"I_MPI_THREAD_YIELD", "2", false}, {"I_MPI_SPIN_COUNT", "1", false}};

void hook_opal_progress() {
  if (is_mere_poll()) return g_original.opal_progress();
  before_poll();
  g_original.opal_progress();
  idle_poll();
}

unsigned hook_ucp_worker_progress(void* worker) {
  if (is_mere_poll()) return g_original.ucp_worker_progress(worker);
  before_poll();
  const unsigned events = g_original.ucp_worker_progress(worker);
  if (events == 0) [[likely]] {
    idle_poll();
  } else {
    if (auto* const thread = static_cast<Thread*>(this_thread().waiting); thread != nullptr) ++thread->found;
    busy_poll();
  }
  return events;
}

/// The library gives way outside a wait, mostly in a test, where it is not always for the best.
int give_way_in_test() {
  auto* const thread = static_cast<Thread*>(this_thread().thread);
  if (thread == nullptr) return g_original.sched_yield();
  poll_in_other_call();
  ++thread->gave_way;
  if (keeps_core(*thread)) return 0;
  const int result = g_original.sched_yield();
  thread->kept_since = 0;
  return result;
}

int hook_sched_yield() {
  if (this_thread().waiting == nullptr) return give_way_in_test();
  before_poll();
  const int result = g_original.sched_yield();
  idle_poll();
  return result;
}

/// Where the library is told to by its launcher it gives way after each poll that finds nothing: doing so again would only delay.
int hook_sched_yield_of_opal() {
  auto* const thread = static_cast<Thread*>(this_thread().waiting);
  if (thread == nullptr) return give_way_in_test();
  ++thread->gave_way;
  return g_original.sched_yield();
}

/// Where the library yields only because we told it to: it would have polled on, and so it does.
int hook_sched_yield_asked_for() {
  if (this_thread().waiting == nullptr) return give_way_in_test();
  before_poll();
  __builtin_ia32_pause();
  idle_poll();
  return 0;
}

template <class Function>
bool take(Runtime& rt, int hook, Function& original, Function replacement) noexcept {
  original = reinterpret_cast<Function>(rt.preload->original_hook(hook));
  if (original == nullptr) return false;
  rt.preload->set_hook(hook, reinterpret_cast<void*>(replacement));
  return true;
}

/// Idle hooks of MPICH and what is built on it. Over UCX or libfabric it calls that on every poll; newer versions, and
/// Intel's when told to, call sched_yield whatever they run over.
bool take_mpich_hooks(Runtime& rt) noexcept {
  trace::RankHeader& h = rt.writer.header();
  const bool ucx = take(rt, FALLOW_HOOK_UCP_WORKER_PROGRESS, g_original.ucp_worker_progress, &hook_ucp_worker_progress);
  if (fabric_hooked()) {
    h.hook = 4;
  } else if (ucx) {
    h.hook = 2;
  } else {
    const bool asked_for = g_intel_yield[0].ours && !rt.oversubscribed;
    if (!take(rt, FALLOW_HOOK_SCHED_YIELD, g_original.sched_yield, asked_for ? &hook_sched_yield_asked_for : &hook_sched_yield)) return false;
    h.hook = 3;
  }
  return true;
}

}  // namespace

void prepare_hooks(Runtime& rt) noexcept {
  if (rt.options.hook != HookChoice::automatic || rt.mpi.is_open_mpi) return;
  hook_fabric(rt);
  if (rt.options.mode == WaitMode::spin || !rt.mpi.is_called("Intel")) return;
  for (Setting& s : g_intel_yield) s.ours = lend(s.name, s.value);
}

void install_hooks(Runtime& rt) noexcept {
  trace::RankHeader& h = rt.writer.header();
  rt.hooked = false;
  for (const Setting& s : g_intel_yield) {
    if (s.ours) take_back(s.name);  // read by now; the program's children are to see what they would have seen
  }
  if (rt.options.hook == HookChoice::automatic) {
    if (rt.mpi.is_open_mpi) {
      rt.hooked = take(rt, FALLOW_HOOK_OPAL_PROGRESS, g_original.opal_progress, &hook_opal_progress);
      h.hook = rt.hooked ? 1 : 0;
      if (rt.hooked) take(rt, FALLOW_HOOK_SCHED_YIELD, g_original.sched_yield, &hook_sched_yield_of_opal);
    } else {
      rt.hooked = take_mpich_hooks(rt);
    }
  }
  rt.polls_tell = h.hook == 1 || h.hook == 2;
  rt.twins_ready = rt.options.hook != HookChoice::off && rt.options.mode != WaitMode::spin && load_twins(rt);
  if (rt.twins_ready && !rt.hooked) {
    rt.twinned.store(true);
    h.hook = 5;
  }
  rt.sleep_allowed = (rt.hooked || rt.twinned) && (rt.options.mode == WaitMode::sleep || rt.options.mode == WaitMode::automatic);
}

void remove_hooks(Runtime& rt) noexcept {
  for (int hook = 0; hook < FALLOW_HOOKS; ++hook) rt.preload->set_hook(hook, nullptr);
  rt.hooked = false;
  rt.twinned.store(false);
}

}  // namespace fallow::pmpi
