"""Emits what a wrapper puts into the trace: before the call what the call may overwrite, after it the record."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from calls import EXTENSIONS, TOPOLOGIES, Call
from prototypes import Prototype

_BY_VALUE = re.compile(r"^(MPI_Comm|MPI_Win|MPI_File) \w+$")
_NEW = re.compile(r"^(MPI_Comm|MPI_Win|MPI_File) ?\* ?\w+$")
# Communicators that processes make without all members of another one.
_MADE_APART = {
    "Comm_create_group": "made_comm(*{}, tag);",
    "Comm_shrink": "made_comm(*{}, 0);",  # of those members that are left
    "Comm_create_from_group": "made_between(*{}, stringtag);",
    "Intercomm_create": "made_between(*{}, tag);",
    "Intercomm_create_from_groups": "made_between(*{}, stringtag);",
    "Comm_accept": 'made_between(*{}, "");',  # only the root has the port's name
    "Comm_connect": 'made_between(*{}, "");',
    "Comm_join": 'made_between(*{}, "");',
}
_READY = {"Pready": "1", "Pready_range": "partition_high - partition_low + 1", "Pready_list": "length"}  # so many partitions
_DONE = {"Wait": "one", "Waitall": "all", "Waitany": "any", "Waitsome": "some", "Test": "one", "Testall": "all", "Testany": "any", "Testsome": "some"}


@dataclass
class Traced:
    """C++ lines of one wrapper."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)       # always
    success: list[str] = field(default_factory=list)     # only after a call that succeeded
    replace: dict[str, str] = field(default_factory=dict)  # arguments that the library is given in place of the program's


def operation(name: str) -> str:
    """The trace's name of a function: MPI_Isend_c is isend."""
    base = EXTENSIONS.get(name, name.removeprefix("MPIX_").removeprefix("MPI_").removesuffix("_c"))
    return base[0].lower() + base[1:]


def _handle(proto: Prototype, pattern: re.Pattern[str], kind: str) -> str:
    for p in proto.parameters:
        found = pattern.match(p.declaration)
        if found and found[1] == kind:
            return p.name
    return ""


def _place(t: Traced, call: Call, proto: Prototype) -> None:
    """Communicator, window or file of the call, and those that it makes or gives back."""
    if call.frees in ("comm", "win", "file"):
        handle = proto.parameters[0].name
        number = {
            "comm": f"fallow::pmpi::known_comm(*{handle})",
            "win": f"fallow::pmpi::take_window(*{handle})",
            "file": f"fallow::pmpi::take_file(*{handle})",
        }[call.frees]
        t.before.append(f"const std::uint32_t gone = scope.traced() && {handle} != nullptr ? {number} : 0;")
        t.after.append("t.comm_number(gone);")
        return
    for kind, what in (("MPI_Comm", "comm"), ("MPI_Win", "window"), ("MPI_File", "file")):
        if handle := _handle(proto, _BY_VALUE, kind):
            t.success.append(f"t.{what}({handle});")
            break
    if call.base.startswith("Comm_idup"):  # a handle that cannot be used yet
        t.success.append("t.made_copy(*newcomm, comm);")
        return
    for kind, what in (("MPI_Comm", "comm"), ("MPI_Win", "window"), ("MPI_File", "file")):
        if handle := _handle(proto, _NEW, kind):
            t.success.append(f"t.{_MADE_APART[call.base].format(handle)}" if call.base in _MADE_APART else f"t.made_{what}(*{handle});")
            if call.base in TOPOLOGIES:
                t.success.append(f"t.topology(*{handle});")
    if call.base in ("Win_start", "Win_post"):
        t.success.append("t.members(group);")


def _ends(t: Traced, proto: Prototype) -> None:
    """Peers and tags, and what was matched."""
    both = proto.has("dest", "source")
    names = {p.name for p in proto.parameters}
    for parameter, setter in (("dest", "peer"), ("source", "recv_peer" if both else "peer"), ("target_rank", "peer"), ("rank", "peer"), ("root", "root")):
        if parameter in names:
            t.success.append(f"t.{setter}({parameter});")
    for parameter, setter in (("tag", "tag"), ("sendtag", "tag"), ("recvtag", "recv_tag")):
        if parameter in names:
            t.success.append(f"t.{setter}({parameter});")
    if "status" in names and "source" in names:
        tag = "recvtag" if both else "tag"
        t.before += [
            "MPI_Status own_status;",
            f"const bool own = scope.traced() && status == MPI_STATUS_IGNORE && (source == MPI_ANY_SOURCE || {tag} == MPI_ANY_TAG);",
            "MPI_Status* const seen = own ? &own_status : status;",
        ]
        t.replace["status"] = "seen"
        found = "if (*flag != 0) " if "flag" in names else ""
        t.success.append(f"{found}t.{'recv_matched' if both else 'matched'}(seen);")
    if "message" in names and "source" in names:
        found = "if (*flag != 0) " if "flag" in names else ""
        t.success.append(f"{found}t.probed(*message);")
    elif "message" in names:
        # Before the call: once it has returned, another thread's probe may have been given the same handle.
        t.before.append("const auto probed = scope.traced() && message != nullptr ? fallow::pmpi::take_message(*message) : fallow::pmpi::ProbedMessage{};")
        t.success.append("t.receives(probed);")


def _requests(t: Traced, base: str, proto: Prototype) -> None:
    names = {p.name: p.declaration for p in proto.parameters}
    one, many = "request" in names, "array_of_requests" in names
    array = "array_of_requests" if many else "request"
    count = ("incount" if "incount" in names else "count") if many else "1"
    if base in _DONE or base == "Request_free":
        t.before.append(f"scope.keep_requests({count}, {array});")
    if base == "Request_free":
        t.success.append("t.freed();")
    elif base in _DONE:
        index = next((p.name for p in proto.parameters if p.name in ("index", "indx")), "")
        done = {
            "one": "t.completed(0);",
            "all": f"t.completed_all({count});",
            "any": f"if (*{index} != MPI_UNDEFINED) t.completed(*{index});",
            "some": "t.completed_some(*outcount, array_of_indices);",
        }[_DONE[base]]
        # Waits and tests of one status may be given ours.
        if "status" in names:
            t.before.append("MPI_Status* const seen = scope.status(status);")
            t.replace["status"] = "seen"
        outcomes = {
            "one": "t.outcomes(1, nullptr, seen);",
            "all": f"t.outcomes({count}, nullptr, array_of_statuses);",
            "any": f"t.outcomes(*{index} == MPI_UNDEFINED ? 0 : 1, {index}, seen);",
            "some": "t.outcomes(*outcount == MPI_UNDEFINED ? 0 : *outcount, array_of_indices, array_of_statuses);",
        }[_DONE[base]]
        both = [outcomes, done]
        if base == "Testsome":
            t.success.append("t.flag_if(*outcount != 0, fallow::trace::kEventComplete);")
        t.success += [f"if (*flag != 0) {{ {line} }}" for line in both] if "flag" in names else both
        t.after.append(f"if (result != MPI_SUCCESS) t.completed_gone({count}, {array});")
    elif base == "Start":
        t.success.append("t.uses(*request);")
    elif base == "Cancel":
        t.success.append("t.cancels(*request);")
    elif base == "Startall":
        t.success.append(f"t.uses_all({count}, {array});")
    elif base == "Request_get_status":
        t.before += ["scope.keep_requests(1, &request);", "MPI_Status* const seen = scope.status(status);"]
        t.replace["status"] = "seen"
        t.success += ["if (*flag != 0) t.outcomes(1, nullptr, seen);", "t.uses(request);"]
    elif one and "*" not in names["request"]:
        t.success.append("t.uses(request);")
    elif one:
        persistent = "true" if base.endswith("_init") else "false"
        t.success.append(f"t.created(request, {persistent});")
    if "*" in names.get("flag", ""):
        t.success.append("t.flag_if(*flag != 0, fallow::trace::kEventComplete);")


def _collective_sizes(name: str) -> list[str]:
    """Statements for a collective, by the name of its blocking form."""
    into, out_of = "t.neighbors()" if "neighbor" in name else "t.peers()", "t.in_neighbors()" if "neighbor" in name else "t.peers()"
    in_place = "t.flag_if(sendbuf == MPI_IN_PLACE, fallow::trace::kEventInPlace);"
    ignored = "sendbuf == MPI_IN_PLACE"
    send, recv = "t.size(sendcount, sendtype)", "t.size(recvcount, recvtype)"
    plain = name.removeprefix("neighbor_")
    if plain == "bcast":
        return ["if (root != MPI_PROC_NULL) t.bytes(t.size(count, datatype));"]
    if plain == "reduce":
        return ["if (root != MPI_PROC_NULL) t.bytes(t.size(count, datatype));", in_place]
    if plain in ("allreduce", "scan", "exscan"):
        return ["t.bytes(t.size(count, datatype));", in_place]
    if plain == "reduce_scatter":
        return ["t.bytes(t.counts(t.own_group(), recvcounts, datatype));", "t.recv_bytes(t.size(recvcounts[t.own()], datatype));", in_place]
    if plain == "reduce_scatter_block":
        return ["t.bytes(t.each(t.own_group(), t.size(recvcount, datatype)));", "t.recv_bytes(t.size(recvcount, datatype));", in_place]
    if plain in ("gather", "gatherv"):
        own = f"{ignored} ? " + (recv if plain == "gather" else "t.size(recvcounts[t.own()], recvtype)") + f" : {send}"
        gathered = f"t.each({out_of}, {recv})" if plain == "gather" else f"t.recv_counts({out_of}, recvcounts, recvtype)"
        return [f"if (root >= 0) t.bytes({own});", f"if (t.is_root(root)) t.recv_bytes({gathered});", in_place]
    if plain in ("scatter", "scatterv"):
        block = "t.size(sendcount, sendtype)" if plain == "scatter" else "t.size(sendcounts[t.own()], sendtype)"
        sent = f"t.each({into}, {send})" if plain == "scatter" else f"t.counts({into}, sendcounts, sendtype)"
        return [
            f"if (t.is_root(root)) t.bytes({sent});",
            f"if (root >= 0) t.recv_bytes(recvbuf == MPI_IN_PLACE ? {block} : {recv});",
            "t.flag_if(recvbuf == MPI_IN_PLACE, fallow::trace::kEventInPlace);",
        ]
    if plain == "allgather":
        return [f"t.bytes({ignored} ? {recv} : {send});", f"t.recv_bytes(t.each({out_of}, {recv}));", in_place]
    if plain == "allgatherv":
        return [f"t.bytes({ignored} ? t.size(recvcounts[t.own()], recvtype) : {send});", f"t.recv_bytes(t.recv_counts({out_of}, recvcounts, recvtype));", in_place]
    if plain == "alltoall":
        return [f"t.bytes(t.each({into}, {ignored} ? {recv} : {send}));", f"t.recv_bytes(t.each({out_of}, {recv}));", in_place]
    if plain in ("alltoallv", "alltoallw"):
        types = ("sendtypes", "recvtypes") if plain == "alltoallw" else ("sendtype", "recvtype")
        return [
            f"t.bytes({ignored} ? t.counts({into}, recvcounts, {types[1]}) : t.counts({into}, sendcounts, {types[0]}));",
            f"t.recv_bytes(t.recv_counts({out_of}, recvcounts, {types[1]}));",
            in_place,
        ]
    return []


def _sizes(call: Call, proto: Prototype) -> list[str]:
    blocking = operation(proto.name).removesuffix("_init")
    for candidate in (blocking, blocking.removeprefix("i")):
        if sizes := _collective_sizes(candidate):
            return sizes
    if proto.has("partitions"):
        parts = ["t.parts(partitions);"] if call.base == "Psend_init" else []
        return ["t.bytes(t.each(partitions, t.size(count, datatype)));", *parts]
    if ready := _READY.get(call.base):
        return [f"t.parts({ready});"]
    if proto.has("sendcount", "recvcount", "dest"):
        return ["t.bytes(t.size(sendcount, sendtype));", "t.recv_bytes(t.size(recvcount, recvtype));"]
    if proto.has("origin_count"):
        if not proto.has("result_count"):
            return ["t.bytes(t.size(origin_count, origin_datatype));"]
        return ["if (op != MPI_NO_OP) t.bytes(t.size(origin_count, origin_datatype));", "t.recv_bytes(t.size(result_count, result_datatype));"]
    if proto.has("origin_addr", "datatype"):
        sends = "if (op != MPI_NO_OP) " if proto.has("op") else ""
        return [f"{sends}t.bytes(t.size(1, datatype));", "t.recv_bytes(t.size(1, datatype));"]
    if proto.has("count", "datatype") and call.kind in ("send", "recv", "start", "io"):
        sizes = ["t.bytes(t.size(count, datatype));"]
        return sizes + (["t.recv_bytes(t.size(count, datatype));"] if proto.has("dest", "source") else [])
    return []


def traced(name: str, call: Call, proto: Prototype) -> Traced:
    """What the wrapper of function `name` does for the trace."""
    t = Traced()
    _place(t, call, proto)
    _ends(t, proto)
    t.success += _sizes(call, proto)
    _requests(t, call.base, proto)
    return t


def trace_block(name: str, t: Traced) -> list[str]:
    """Lines after the call."""
    lines = ["if (scope.traced()) [[unlikely]] {", f"  [[maybe_unused]] fallow::pmpi::TraceCall t = scope.begin_trace(fallow::trace::Op::{operation(name)}, result);"]
    if t.success:
        lines += ["  if (result == MPI_SUCCESS) [[likely]] {", *[f"    {line}" for line in t.success], "  }"]
    return [*lines, *[f"  {line}" for line in t.after], "}"]
