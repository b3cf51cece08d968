#include "pmpi/twins.hpp"

#include <string>
#include <type_traits>

#include "pmpi/wrapper_table.hpp"

namespace fallow::pmpi {

std::atomic<void*> g_own[trace::kMaxOps] = {};

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
  need(c.test, "PMPI_Test");
  need(c.get_errhandler, "PMPI_Comm_get_errhandler");
  need(c.free_errhandler, "PMPI_Errhandler_free");
#if MPI_VERSION >= 4
  // A library of MPI 3 has none of these, nor their blocking forms.
  take(c.isend_c, "PMPI_Isend_c");
  take(c.issend_c, "PMPI_Issend_c");
  take(c.irsend_c, "PMPI_Irsend_c");
  take(c.irecv_c, "PMPI_Irecv_c");
  take(c.imrecv_c, "PMPI_Imrecv_c");
#endif
  // Since MPICH 4.2, which has this function.
  c.looks_end_persistent = !twin::kLooksAreSilent && preload.find("PMPI_Request_get_status_all") != nullptr;
  return complete;
}

/// What an error handler does: one of the program's own is none of the two.
enum class Handling { returns, ends, other };

Handling handling(MPI_Comm comm) noexcept {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (twin::g_calls.get_errhandler(comm, &handler) != MPI_SUCCESS) return Handling::other;
  if (handler == MPI_ERRORS_RETURN) return Handling::returns;
  if (handler == MPI_ERRORS_ARE_FATAL) return Handling::ends;
#ifdef MPI_ERRORS_ABORT
  if (handler == MPI_ERRORS_ABORT) return Handling::other;
#endif
  twin::g_calls.free_errhandler(&handler);
  return Handling::other;
}

/// With sessions there may be no MPI_COMM_WORLD to ask.
bool is_alike(MPI_Comm comm) noexcept {
  if (runtime().world.group() == MPI_GROUP_NULL) return false;
  const Handling own = handling(comm);
  return own != Handling::other && own == handling(MPI_COMM_WORLD) && own == handling(MPI_COMM_SELF);
}

}  // namespace

bool twin::looks_end_alike() noexcept { return kLooksAreSilent || is_alike(MPI_COMM_SELF); }

bool twin::receives_end_alike(MPI_Comm comm, int source) noexcept {
  if (kLooksAreSilent) return true;
  const CommInfo* const info = runtime().comms.known(handle_key(comm));
  const bool from_itself = info == nullptr || (!info->inter && (source == MPI_ANY_SOURCE || source == info->rank));
  if (kTestsTellTheRightOne && !from_itself) return true;
  // A handle that was not used before, the library may yet refuse: it is not asked about it.
  return info != nullptr && is_alike(comm);
}

bool load_twins(Runtime& rt) noexcept try {
  if (!load_calls(*rt.preload)) return false;
  for (const WrapperEntry& entry : wrapper_entries()) {
    if (entry.asks_own) g_own[entry.op].store(rt.preload->find((std::string("P") + entry.name).c_str()), std::memory_order_relaxed);
  }
  return true;
} catch (...) {
  return false;
}

}  // namespace fallow::pmpi
