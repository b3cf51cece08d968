#include "pmpi/pause.hpp"

#include <cpuid.h>
#include <x86intrin.h>

#include <cstdint>

namespace fallow::pmpi {
namespace {

constexpr std::uint32_t kRestTicks = 1000;  // below half a microsecond at 2 GHz and more

// Intel SDM vol. 1, WAITPKG: CPUID.(EAX=7,ECX=0):ECX[5]. State 1 is C0.1, the faster one to leave.
constexpr unsigned kLightState = 1;

__attribute__((target("waitpkg"))) void rest_tpause() noexcept { _tpause(kLightState, __rdtsc() + kRestTicks); }

// AMD APM vol. 3, MONITORX and MWAITX: CPUID.80000001H:ECX[29]. ECX[1] of mwaitx: EBX holds the longest wait in ticks;
// EAX[7:4] = 15 asks for C0, which is left at once.
constexpr unsigned kTimerEnabled = 1u << 1, kStayInC0 = 0xf0;

alignas(64) constinit char g_watched[64] = {};  // nobody writes here: the timer ends the wait

__attribute__((target("mwaitx"))) void rest_mwaitx() noexcept {
  _mm_monitorx(g_watched, 0, 0);
  _mm_mwaitx(kTimerEnabled, kStayInC0, kRestTicks);
}

void rest_pause() noexcept { _mm_pause(); }

using Function = void (*)() noexcept;

Function function_of(Rest rest) noexcept {
  switch (rest) {
    case Rest::tpause:
      return &rest_tpause;
    case Rest::mwaitx:
      return &rest_mwaitx;
    case Rest::pause:
      break;
  }
  return &rest_pause;
}

const Function g_rest = function_of(choose_rest());

}  // namespace

Rest choose_rest() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & (1u << 5)) != 0) return Rest::tpause;
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0) return Rest::mwaitx;
  return Rest::pause;
}

void rest_briefly() noexcept { g_rest(); }

}  // namespace fallow::pmpi
