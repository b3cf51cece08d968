#include "pmpi/pause.hpp"

#include <cpuid.h>
#include <immintrin.h>

#include <cstdint>

namespace fallow::pmpi {
namespace {

// Intel SDM vol. 1, WAITPKG: CPUID.(EAX=7,ECX=0):ECX[5]. State 1 is C0.1, the faster one to leave.
constexpr unsigned kLightState = 1;
constexpr std::uint64_t kTpauseTicks = 1000;  // below half a microsecond at 2 GHz and more

__attribute__((target("waitpkg"))) void rest_tpause() noexcept { _tpause(kLightState, __rdtsc() + kTpauseTicks); }

void rest_pause() noexcept { _mm_pause(); }

using Rest = void (*)() noexcept;

Rest choose() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool waitpkg = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & (1u << 5)) != 0;
  return waitpkg ? &rest_tpause : &rest_pause;
}

const Rest g_rest = choose();

}  // namespace

void rest_briefly() noexcept { g_rest(); }

}  // namespace fallow::pmpi
