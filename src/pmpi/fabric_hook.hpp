// The idle hook of MPI libraries over libfabric: MPICH with its OFI module (3.4 and 4.1 were tried) and what is built on it.
// They poll a completion queue, by a pointer in the queue's table of operations; the queue comes from a domain, and that
// from a fabric, which fi_fabric() gives out. Each is handed on with a copy of its table in which one entry is ours.
#pragma once

namespace fallow::pmpi {

struct Runtime;

/// From now on the completion queues of fabrics that are opened tell of polls that find nothing. To be called before the
/// MPI library starts. False if there is no libfabric in the process.
bool hook_fabric(Runtime& rt) noexcept;

/// Whether a completion queue has been opened.
bool fabric_hooked() noexcept;

}  // namespace fallow::pmpi
