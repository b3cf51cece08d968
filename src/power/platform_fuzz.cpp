// libFuzzer target over the reader of platform files; tools/fuzz builds and runs it.
#include <cmath>

#include "power/platform.hpp"

using namespace fallow::power;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Platform p = parse_platform({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
    const fallow::Seconds second(1);
    const Residency r{second, second, second, second, second, fallow::Hertz(1.3e9), fallow::Hertz(9e9)};
    const PlatformEnergy e = platform_energy(p, Usage{std::span(&r, 1), 1, fallow::Seconds(5)});
    if (p.cores() == 0 || p.sources.empty() || !std::isfinite(e.actual.total().value)) __builtin_trap();
  } catch (const PlatformError& e) {
    if (std::string_view(e.what()).rfind("fuzz.toml", 0) != 0) __builtin_trap();
  }
  return 0;
}
