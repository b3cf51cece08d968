// libFuzzer target over the reader of machine files; tools/fuzz builds and runs it. Networks are described here, not
// built: a machine may be as large as its description says.
#include "sim/machine_file.hpp"

using namespace fallow::sim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Machine m = parse_machine({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
    if (m.node.ranks < 1 || m.link.ps_per_kib < 0) __builtin_trap();
  } catch (const MachineFileError& e) {
    if (std::string_view(e.what()).rfind("fuzz.toml", 0) != 0) __builtin_trap();
  }
  return 0;
}
