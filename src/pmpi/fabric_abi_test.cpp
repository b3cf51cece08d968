// The layouts that the hook goes by are those of libfabric's own headers.
#include "pmpi/fabric_abi.hpp"

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

namespace fallow::pmpi::fabric_abi {
namespace {

#define SAME_PLACE(ours, theirs, member) EXPECT_EQ(offsetof(ours, member), offsetof(theirs, member))

TEST(FabricAbi, ObjectsBeginAlike) {
  EXPECT_EQ(sizeof(Identity), sizeof(::fid));
  SAME_PLACE(Fabric, ::fid_fabric, ops);
  SAME_PLACE(Domain, ::fid_domain, ops);
  SAME_PLACE(Cq, ::fid_cq, ops);
}

TEST(FabricAbi, TablesHaveTheirEntriesInTheSamePlaces) {
  SAME_PLACE(FabricTable, ::fi_ops_fabric, size);
  SAME_PLACE(FabricTable, ::fi_ops_fabric, domain);
  SAME_PLACE(FabricTable, ::fi_ops_fabric, trywait);
  SAME_PLACE(DomainTable, ::fi_ops_domain, size);
  SAME_PLACE(DomainTable, ::fi_ops_domain, cq_open);
  SAME_PLACE(CqTable, ::fi_ops_cq, size);
  SAME_PLACE(CqTable, ::fi_ops_cq, read);
  SAME_PLACE(CqTable, ::fi_ops_cq, readfrom);
#if FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 15
  SAME_PLACE(FabricTable, ::fi_ops_fabric, domain2);
#endif
}

TEST(FabricAbi, AnEmptyQueueSaysTryAgain) { EXPECT_EQ(kNothingCompleted, -FI_EAGAIN); }

}  // namespace
}  // namespace fallow::pmpi::fabric_abi
