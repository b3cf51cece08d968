#include "pmpi/twins.hpp"

#include <string>
#include <type_traits>

#include "pmpi/wrapper_table.hpp"

namespace fallow::pmpi {

void* g_own[trace::kMaxOps] = {};

namespace twin {
Calls g_calls;
}

namespace {

bool load_calls(const fallow_preload_api& preload) noexcept {
  twin::Calls& c = twin::g_calls;
  bool complete = true;
  const auto take = [&](auto& pointer, const char* name) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(preload.find(name));
    return pointer != nullptr;
  };
  const auto need = [&](auto& pointer, const char* name) { complete = take(pointer, name) && complete; };
  need(c.isend, "PMPI_Isend");
  need(c.issend, "PMPI_Issend");
  need(c.irsend, "PMPI_Irsend");
  need(c.irecv, "PMPI_Irecv");
  need(c.imrecv, "PMPI_Imrecv");
  need(c.iprobe, "PMPI_Iprobe");
  need(c.improbe, "PMPI_Improbe");
  need(c.get_status, "PMPI_Request_get_status");
  need(c.win_test, "PMPI_Win_test");
  need(c.cancel, "PMPI_Cancel");
  need(c.wait, "PMPI_Wait");
#if MPI_VERSION >= 4
  // A library of MPI 3 has none of these, nor their blocking forms.
  take(c.isend_c, "PMPI_Isend_c");
  take(c.issend_c, "PMPI_Issend_c");
  take(c.irsend_c, "PMPI_Irsend_c");
  take(c.irecv_c, "PMPI_Irecv_c");
  take(c.imrecv_c, "PMPI_Imrecv_c");
#endif
  return complete;
}

}  // namespace

bool load_twins(Runtime& rt) noexcept try {
  if (!load_calls(*rt.preload)) return false;
  for (const WrapperEntry& entry : wrapper_entries()) {
    if (entry.has_twin) g_own[entry.op] = rt.preload->find((std::string("P") + entry.name).c_str());
  }
  return true;
} catch (...) {
  return false;
}

}  // namespace fallow::pmpi
