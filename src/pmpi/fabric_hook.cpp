#include "pmpi/fabric_hook.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "pmpi/fabric_abi.hpp"
#include "pmpi/idle_poll.hpp"

namespace fallow::pmpi {
namespace {

using namespace fabric_abi;
using OpenFabric = int (*)(void* attributes, Fabric** fabric, void* context);

constinit OpenFabric g_open_fabric = nullptr;
constinit std::atomic<bool> g_hooked{false};
constinit thread_local bool t_inside = false;  // providers are layered: only what the MPI library itself uses counts

/// Precedes the copy of a table.
template <class Table>
struct alignas(16) CopyHeader {
  Table* original;
};

template <class Table>
Table* original_of(const Object<Table>* object) noexcept {
  return (reinterpret_cast<const CopyHeader<Table>*>(object->ops) - 1)->original;
}

/// Gives the object a table of its own. It lives as long as the process: there is one per object that MPI opens.
template <class Table>
Table* copy_table(Object<Table>& object, std::size_t needed) noexcept {
  using Header = CopyHeader<Table>;
  Table* const table = object.ops;
  if (table == nullptr || table->size < needed) return nullptr;
  auto* const header = static_cast<Header*>(std::malloc(sizeof(Header) + table->size));
  if (header == nullptr) return nullptr;
  header->original = table;
  auto* const copy = reinterpret_cast<Table*>(header + 1);
  std::memcpy(static_cast<void*>(copy), table, table->size);
  object.ops = copy;
  return copy;
}

void polled(ssize_t result) noexcept {
  if (result == kNothingCompleted) [[likely]] {
    idle_poll();
  } else {
    busy_poll();
  }
}

ssize_t hook_read(Cq* cq, void* entries, std::size_t count) {
  if (is_mere_poll()) return original_of(cq)->read(cq, entries, count);
  before_poll();
  const ssize_t result = original_of(cq)->read(cq, entries, count);
  polled(result);
  return result;
}

ssize_t hook_readfrom(Cq* cq, void* entries, std::size_t count, std::uint64_t* sources) {
  if (is_mere_poll()) return original_of(cq)->readfrom(cq, entries, count, sources);
  before_poll();
  const ssize_t result = original_of(cq)->readfrom(cq, entries, count, sources);
  polled(result);
  return result;
}

int hook_cq_open(Domain* domain, void* attributes, Cq** cq, void* context) {
  const bool inner = t_inside;
  t_inside = true;
  const int result = original_of(domain)->cq_open(domain, attributes, cq, context);
  t_inside = inner;
  if (result != 0 || inner || cq == nullptr || *cq == nullptr || (*cq)->ops->read == &hook_read) return result;
  if (CqTable* const table = copy_table(**cq, sizeof(CqTable)); table != nullptr) {
    table->read = &hook_read;
    table->readfrom = &hook_readfrom;
    g_hooked.store(true, std::memory_order_relaxed);
  }
  return result;
}

void take_domain(Domain& domain) noexcept {
  if (domain.ops->cq_open == &hook_cq_open) return;
  if (DomainTable* const table = copy_table(domain, sizeof(DomainTable)); table != nullptr) table->cq_open = &hook_cq_open;
}

int hook_domain(Fabric* fabric, void* info, Domain** domain, void* context) {
  const bool inner = t_inside;
  t_inside = true;
  const int result = original_of(fabric)->domain(fabric, info, domain, context);
  t_inside = inner;
  if (result == 0 && !inner && domain != nullptr && *domain != nullptr) take_domain(**domain);
  return result;
}

int hook_domain2(Fabric* fabric, void* info, Domain** domain, std::uint64_t flags, void* context) {
  const bool inner = t_inside;
  t_inside = true;
  const int result = original_of(fabric)->domain2(fabric, info, domain, flags, context);
  t_inside = inner;
  if (result == 0 && !inner && domain != nullptr && *domain != nullptr) take_domain(**domain);
  return result;
}

int hook_fi_fabric(void* attributes, Fabric** fabric, void* context) {
  const bool inner = t_inside;
  t_inside = true;
  const int result = g_open_fabric(attributes, fabric, context);
  t_inside = inner;
  if (result != 0 || inner || fabric == nullptr || *fabric == nullptr || (*fabric)->ops->domain == &hook_domain) return result;
  FabricTable* const table = copy_table(**fabric, offsetof(FabricTable, domain2));
  if (table == nullptr) return result;
  table->domain = &hook_domain;
  if (table->size >= sizeof(FabricTable) && table->domain2 != nullptr) table->domain2 = &hook_domain2;
  return result;
}

}  // namespace

bool hook_fabric(Runtime& rt) noexcept {
  g_open_fabric = reinterpret_cast<OpenFabric>(rt.preload->original_hook(FALLOW_HOOK_FI_FABRIC));
  if (g_open_fabric == nullptr) return false;
  rt.preload->set_hook(FALLOW_HOOK_FI_FABRIC, reinterpret_cast<void*>(&hook_fi_fabric));
  return true;
}

bool fabric_hooked() noexcept { return g_hooked.load(std::memory_order_relaxed); }

}  // namespace fallow::pmpi
