"""C++ expressions for what a call is about, by the names of its parameters: `scope` stands for what the wrapper has around it."""

from __future__ import annotations

from calls import Call
from prototypes import Prototype

STARTS = {"Start": "1, request", "Startall": "count, array_of_requests"}
MATCHED = ("Mrecv", "Imrecv")
RANKS = ("dest", "source", "target_rank")  # parameters that may be MPI_PROC_NULL


def has_comm(proto: Prototype) -> bool:
    """Whether the call is given a communicator by value."""
    return any(p.name == "comm" and "*" not in p.declaration for p in proto.parameters)


def part_of(call: Call, proto: Prototype) -> str:
    """Further arguments: how many elements of which type one rank's part is, as far as one number says that."""
    if call.kind != "collective":
        return ""
    parts = [("count", "datatype"), ("recvcount", "recvtype"), ("recvcount", "datatype"), ("sendcount", "sendtype")]
    if "ather" in call.base and proto.has("root"):  # only the root receives
        parts.reverse()
    return next((f", {count}, {datatype}" for count, datatype in parts if proto.has(count, datatype)), "")


def _peers(proto: Prototype) -> str:
    return "scope.neighbors(comm)" if "eighbor" in proto.name else "scope.peers(comm)"


def _sum(side: str, proto: Prototype, types: str) -> str:
    if "eighbor" in proto.name:
        return f"scope.sum_to_neighbors(comm, {side}counts, {types})"
    kind = "sum_typed" if types.endswith("s") else "sum"
    return f"scope.{kind}({_peers(proto)}, {side}counts, {types})"


def _in_place(proto: Prototype, side: str) -> str:
    """Bytes of a rank's own block where it has that in the buffer of the other side already."""
    if proto.has(f"{side}counts"):
        return f"scope.own(comm, {side}counts, {side}type)"
    return f"scope.bytes({side}count, {side}type)" if proto.has(f"{side}count") else "0"


def size_of(call: Call, proto: Prototype) -> str:
    """C++ expression of the event's bytes: none to or from MPI_PROC_NULL."""
    size = size_of_all(call, proto)
    peer = next((p for p in RANKS if p == call.peer and proto.has(p)), "")
    return f"{peer} == MPI_PROC_NULL ? 0 : {size}" if peer and size != "0" else size


def received_too(call: Call, proto: Prototype) -> str:
    """C++ expression of what is received beside the event's bytes, which are sent; empty where that is none."""
    if call.base in STARTS:
        return "started.received"
    if proto.has("dest", "source"):  # an exchange
        size = "scope.bytes(recvcount, recvtype)" if proto.has("recvcount") else "scope.bytes(count, datatype)"
        return f"source == MPI_PROC_NULL ? 0 : {size}"
    if proto.has("result_count", "target_rank"):
        return "target_rank == MPI_PROC_NULL ? 0 : scope.bytes(result_count, result_datatype)"
    if call.size == "one":
        return "target_rank == MPI_PROC_NULL ? 0 : scope.bytes(1, datatype)"
    return ""


def size_of_all(call: Call, proto: Prototype) -> str:
    """C++ expression of the event's bytes; only arguments that are significant at the calling rank."""
    rooted = "fallow::pmpi::is_rank(root) ? " if proto.has("root") else ""
    end = " : 0" if rooted else ""
    if call.base in STARTS:
        return "started.sent"
    if call.size == "count":
        nowhere = "root == MPI_PROC_NULL ? 0 : " if rooted else "nowhere ? 0 : " if call.base in MATCHED else ""  # between groups MPI_ROOT has them, too
        return f"{nowhere}scope.bytes(count, datatype)"
    if call.size == "send" and proto.has("sendbuf", "recvbuf", "sendtag"):
        return "scope.bytes(sendcount, sendtype)"
    if call.size == "send":
        return f"{rooted}(sendbuf == MPI_IN_PLACE ? {_in_place(proto, 'recv')} : scope.bytes(sendcount, sendtype)){end}"
    if call.size == "recv":
        return f"{rooted}(recvbuf == MPI_IN_PLACE ? {_in_place(proto, 'send')} : scope.bytes(recvcount, recvtype)){end}"
    if call.size == "send_each":
        own, other = ("scope.bytes(sendcount, sendtype)", "scope.bytes(recvcount, recvtype)")
        return f"fallow::pmpi::size_as_u64({_peers(proto)}) * (sendbuf == MPI_IN_PLACE ? {other} : {own})"
    if call.size == "sendv":
        return f"sendbuf == MPI_IN_PLACE ? {_sum('recv', proto, 'recvtype')} : {_sum('send', proto, 'sendtype')}"
    if call.size == "sendw":
        return f"sendbuf == MPI_IN_PLACE ? {_sum('recv', proto, 'recvtypes')} : {_sum('send', proto, 'sendtypes')}"
    if call.size == "recv_each":
        return "fallow::pmpi::size_as_u64(scope.own_group(comm)) * scope.bytes(recvcount, datatype)"
    if call.size == "recvcounts":
        return "scope.sum(scope.own_group(comm), recvcounts, datatype)"  # also of an intercommunicator, its own group's
    if call.size in {"origin", "one"}:
        fetched = "op == MPI_NO_OP ? 0 : " if proto.has("op", "result_addr") else ""  # nothing is sent, and its type ignored
        return fetched + ("scope.bytes(1, datatype)" if call.size == "one" else "scope.bytes(origin_count, origin_datatype)")
    if call.size == "parts":
        return "fallow::pmpi::size_as_u64(partitions) * scope.bytes(count, datatype)"
    return "0"


def found_by(call: Call, proto: Prototype) -> str:
    """Whether a test found something; empty for other calls."""
    if call.blocks or call.kind not in {"test", "rma_sync"}:
        return ""
    return next((f"*{name} != 0" for name in ("flag", "outcount") if proto.has(name)), "")
