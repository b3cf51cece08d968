// Which library or program a code address lies in.
#pragma once

#include <cstdint>

namespace fallow::pmpi {

struct LoadedObject {
  std::uint64_t base = 0;             ///< where the object is loaded: address minus address in its file
  std::uint64_t begin = 0, end = 0;   ///< the segment that the address lies in
  const char* path = "";              ///< as the dynamic linker knows it; empty for the program itself. Its memory.
};

/// False if no loaded object has the address. Takes the dynamic linker's lock.
bool find_loaded_object(const void* address, LoadedObject& found) noexcept;

}  // namespace fallow::pmpi
