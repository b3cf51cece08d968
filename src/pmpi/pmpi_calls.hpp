// The MPI library's own functions that the runtime itself calls, looked up by name in the library that the
// process uses. All of them are local: the runtime never communicates.
#pragma once

#include "pmpi/mpi_header.hpp"
#include "pmpi/preload/preload.h"

namespace fallow::pmpi {

struct PmpiCalls {
  decltype(&MPI_Initialized) initialized = nullptr;
  decltype(&MPI_Finalized) finalized = nullptr;
  decltype(&MPI_Query_thread) query_thread = nullptr;
  decltype(&MPI_Comm_rank) comm_rank = nullptr;
  decltype(&MPI_Comm_size) comm_size = nullptr;
  decltype(&MPI_Comm_remote_size) comm_remote_size = nullptr;
  decltype(&MPI_Comm_test_inter) comm_test_inter = nullptr;
  decltype(&MPI_Comm_group) comm_group = nullptr;
  decltype(&MPI_Comm_remote_group) comm_remote_group = nullptr;
  decltype(&MPI_Group_translate_ranks) group_translate_ranks = nullptr;
  decltype(&MPI_Group_size) group_size = nullptr;
  decltype(&MPI_Group_rank) group_rank = nullptr;
  decltype(&MPI_Group_free) group_free = nullptr;
  decltype(&MPI_Test_cancelled) test_cancelled = nullptr;
  int (*type_size)(MPI_Datatype, MPI_Count*) = nullptr;  ///< MPI_Type_size_x, which newer headers warn of
  decltype(&MPI_Dist_graph_neighbors_count) dist_graph_neighbors_count = nullptr;
  decltype(&MPI_Dist_graph_neighbors) dist_graph_neighbors = nullptr;
  decltype(&MPI_Graph_neighbors_count) graph_neighbors_count = nullptr;
  decltype(&MPI_Graph_neighbors) graph_neighbors = nullptr;
  decltype(&MPI_Cart_shift) cart_shift = nullptr;
  decltype(&MPI_Cartdim_get) cartdim_get = nullptr;
  decltype(&MPI_Get_library_version) get_library_version = nullptr;
#ifdef MPI_SESSION_NULL
  decltype(&MPI_Group_from_session_pset) group_from_session_pset = nullptr;  ///< may stay null
#endif
  /// The library is Open MPI, be it called through the ABI of MPI 5.
  bool is_open_mpi = false;

  /// Whether the library's name, as it says it, has this word.
  [[nodiscard]] bool is_called(const char* word) const noexcept;

  /// Fills every pointer. False if the library lacks a function of MPI 3.
  bool load(const fallow_preload_api& preload) noexcept;
};

}  // namespace fallow::pmpi
