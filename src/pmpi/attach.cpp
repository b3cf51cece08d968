// Where the preloaded library hands over: options, the library's own functions, and the wrappers by name.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/float_guard.hpp"
#include "pmpi/hooks.hpp"
#include "pmpi/launcher.hpp"
#include "pmpi/scope.hpp"
#include "pmpi/wrapper_table.hpp"

namespace fallow::pmpi {
namespace {

constexpr unsigned kBadOption = 0, kMissingCalls = 3;  // messages that a node prints once

void* wrap(const char* name, void* next) noexcept {
  const bool profiling = *name == 'P';
  const auto entries = wrapper_entries();
  const char* const plain = name + (profiling ? 1 : 0);
  const auto found = std::lower_bound(entries.begin(), entries.end(), plain,
                                      [](const WrapperEntry& e, const char* n) { return std::strcmp(e.name, n) < 0; });
  if (found == entries.end() || std::strcmp(found->name, plain) != 0) return nullptr;
  g_next[2 * found->op + (profiling ? 1 : 0)].store(next, std::memory_order_relaxed);
  return profiling ? found->profiling_wrapper : found->wrapper;
}

}  // namespace
}  // namespace fallow::pmpi

extern "C" __attribute__((visibility("default"))) int fallow_runtime_attach(const fallow_preload_api* preload, fallow_runtime_api* api) {
  using namespace fallow;
  using namespace fallow::pmpi;
  const FloatGuard guard;
  try {
    if (preload->abi != FALLOW_RUNTIME_ABI) return 1;
    Runtime& rt = runtime();
    rt.preload = preload;
    std::vector<std::string> problems;
    rt.options = options_from_environment(problems);
    if (rt.options.off) return 1;
    const LaunchInfo launch = launch_info();
    if (launch.world_rank <= 0) {
      std::string all;
      for (const std::string& p : problems) all += (all.empty() ? "" : "; ") + p;
      if (!all.empty()) say(kBadOption, all);
    }
    if (!rt.mpi.load(*preload)) {
      say(kMissingCalls, "the program runs without Fallow: its MPI library lacks functions of MPI 3.0");
      return 1;
    }
    prepare_hooks(rt);
    rt.clock = TickClock(rt.options.clock);
    api->abi = FALLOW_RUNTIME_ABI;
    api->wrap = wrap;
    return 0;
  } catch (...) {
    return 1;
  }
}
