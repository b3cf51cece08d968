// The part of libfabric's binary interface that the hook needs: objects that begin with an identity and a table of
// operations, tables that begin with their size. It has not changed since version 1.0 (2015); later versions only add
// to the end of a table. Names as in libfabric's fabric.h, fi_domain.h and fi_eq.h; a test compares the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/types.h>

namespace fallow::pmpi::fabric_abi {

inline constexpr ssize_t kNothingCompleted = -11;  ///< -FI_EAGAIN

struct Identity {  ///< struct fid
  std::size_t fclass;
  void* context;
  void* ops;
};

/// fid_fabric, fid_domain and fid_cq alike: what follows is the library's own.
template <class Table>
struct Object {
  Identity fid;
  Table* ops;
};

struct CqTable;
struct DomainTable;
struct FabricTable;
using Cq = Object<CqTable>;
using Domain = Object<DomainTable>;
using Fabric = Object<FabricTable>;

struct CqTable {  ///< struct fi_ops_cq
  std::size_t size;
  ssize_t (*read)(Cq* cq, void* entries, std::size_t count);
  ssize_t (*readfrom)(Cq* cq, void* entries, std::size_t count, std::uint64_t* sources);
};

struct DomainTable {  ///< struct fi_ops_domain
  std::size_t size;
  int (*av_open)(Domain* domain, void* attributes, void** av, void* context);
  int (*cq_open)(Domain* domain, void* attributes, Cq** cq, void* context);
};

struct FabricTable {  ///< struct fi_ops_fabric
  std::size_t size;
  int (*domain)(Fabric* fabric, void* info, Domain** domain, void* context);
  void* passive_ep;
  void* eq_open;
  void* wait_open;
  void* trywait;
  int (*domain2)(Fabric* fabric, void* info, Domain** domain, std::uint64_t flags, void* context);  ///< since 1.15
};

}  // namespace fallow::pmpi::fabric_abi
