#include "pmpi/pmpi_calls.hpp"

#include <cstring>
#include <type_traits>

#include "trace/rank_file.hpp"

namespace fallow::pmpi {

bool PmpiCalls::is_called(const char* word) const noexcept {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  return get_library_version(version, &length) == MPI_SUCCESS && std::strstr(version, word) != nullptr;
}

bool PmpiCalls::load(const fallow_preload_api& preload) noexcept {
  bool complete = true;
  const auto take = [&](auto& pointer, const char* name) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(preload.find(name));
    complete = complete && pointer != nullptr;
  };
  take(initialized, "PMPI_Initialized");
  take(finalized, "PMPI_Finalized");
  take(query_thread, "PMPI_Query_thread");
  take(comm_rank, "PMPI_Comm_rank");
  take(comm_size, "PMPI_Comm_size");
  take(comm_remote_size, "PMPI_Comm_remote_size");
  take(comm_test_inter, "PMPI_Comm_test_inter");
  take(comm_group, "PMPI_Comm_group");
  take(comm_remote_group, "PMPI_Comm_remote_group");
  take(group_translate_ranks, "PMPI_Group_translate_ranks");
  take(group_size, "PMPI_Group_size");
  take(group_rank, "PMPI_Group_rank");
  take(group_free, "PMPI_Group_free");
  take(test_cancelled, "PMPI_Test_cancelled");
  take(type_size, "PMPI_Type_size_x");
  take(dist_graph_neighbors_count, "PMPI_Dist_graph_neighbors_count");
  take(dist_graph_neighbors, "PMPI_Dist_graph_neighbors");
  take(graph_neighbors, "PMPI_Graph_neighbors");
  take(cart_shift, "PMPI_Cart_shift");
  take(graph_neighbors_count, "PMPI_Graph_neighbors_count");
  take(cartdim_get, "PMPI_Cartdim_get");
  take(get_library_version, "PMPI_Get_library_version");
#ifdef MPI_SESSION_NULL
  // Needed in sessions only, which a library of MPI 3 does not have.
  group_from_session_pset = reinterpret_cast<decltype(group_from_session_pset)>(preload.find("PMPI_Group_from_session_pset"));
#endif
  constexpr auto family = static_cast<trace::Family>(FALLOW_FAMILY_NUMBER);
  is_open_mpi = family == trace::Family::openmpi || (family == trace::Family::mpiabi && complete && is_called("Open MPI"));
  return complete;
}

}  // namespace fallow::pmpi
