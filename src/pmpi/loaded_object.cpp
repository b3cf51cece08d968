#include "pmpi/loaded_object.hpp"

#include <link.h>

namespace fallow::pmpi {
namespace {

struct Search {
  std::uint64_t address;
  LoadedObject& found;
};

int match(dl_phdr_info* info, std::size_t, void* data) noexcept {
  auto& s = *static_cast<Search*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& p = info->dlpi_phdr[i];
    const std::uint64_t begin = info->dlpi_addr + p.p_vaddr;
    if (p.p_type != PT_LOAD || s.address < begin || s.address >= begin + p.p_memsz) continue;
    s.found = {info->dlpi_addr, begin, begin + p.p_memsz, info->dlpi_name != nullptr ? info->dlpi_name : ""};
    return 1;
  }
  return 0;
}

}  // namespace

bool find_loaded_object(const void* address, LoadedObject& found) noexcept {
  Search search{reinterpret_cast<std::uint64_t>(address), found};
  return dl_iterate_phdr(match, &search) != 0;
}

}  // namespace fallow::pmpi
