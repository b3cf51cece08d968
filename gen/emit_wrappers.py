"""Emits the wrappers of one family in C++, and the list of how each function of that MPI is treated."""

from __future__ import annotations

import re

from calls import EXTENSIONS, KINDS, Call, functions
from emit_trace import trace_block, traced
from prototypes import Prototype, include

SPECIAL = {"MPI_Init": "init", "MPI_Init_thread": "init", "MPI_Session_init": "session", "MPI_Finalize": "finalize", "MPI_Abort": "abort"}


_STARTS = {"Start": "1, request", "Startall": "count, array_of_requests"}
_ENDS = {"abort": "about_to_abort", "finalize": "about_to_finalize"}
_MATCHED = ("Mrecv", "Imrecv")
_SOON_OVER = ("Win_flush", "Win_flush_local", "Win_flush_all", "Win_flush_local_all", "Win_lock", "Win_unlock", "Win_sync")
# Before the call, which takes the message.
_NOTES_NOWHERE = ["  const bool nowhere = message != nullptr && *message == MPI_MESSAGE_NO_PROC;"]
_LOOKS_MAY_HARM = "fallow::pmpi::runtime().looks_may_harm.store(true, std::memory_order_relaxed);"
_RANKS = ("dest", "source", "target_rank")  # parameters that may be MPI_PROC_NULL


def _has_comm(proto: Prototype) -> bool:
    """Whether the call is given a communicator by value."""
    return any(p.name == "comm" and "*" not in p.declaration for p in proto.parameters)


def _part(call: Call, proto: Prototype) -> str:
    """Further arguments: how many elements of which type one rank's part is, as far as one number says that."""
    if call.kind != "collective":
        return ""
    parts = [("count", "datatype"), ("recvcount", "recvtype"), ("recvcount", "datatype"), ("sendcount", "sendtype")]
    if "ather" in call.base and proto.has("root"):  # only the root receives
        parts.reverse()
    return next((f", {count}, {datatype}" for count, datatype in parts if proto.has(count, datatype)), "")


def _wake(call: Call, proto: Prototype) -> list[str]:
    if call.wakes == "peer" and proto.has(call.peer, "comm"):
        peers = [call.peer] + (["source"] if proto.has("dest", "source") else [])
        return [f"scope.wake_peer(comm, {peer});" for peer in peers]
    if call.wakes == "peer":  # one-sided: the window's group is looked up only when somebody sleeps
        return [f"scope.wake_target(win, {call.peer});"]
    if call.wakes == "all":
        return [f"scope.wake_partners({f'comm{_part(call, proto)}' if _has_comm(proto) else ''});"]
    if call.wakes == "recent" and call.kind == "test":
        return []  # it has sent nothing yet
    if call.wakes == "recent":
        first = ""
        if call.base in _STARTS:
            first = f"const fallow::pmpi::Prepared started = scope.starts({_STARTS[call.base]});"
        if call.base.startswith("Pready"):  # the thread may never have made a call with this peer
            first = "scope.wake_for(request);"
        return [*([first] if first else []), "scope.wake_recent();"]
    return []


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


def _size(call: Call, proto: Prototype) -> str:
    """C++ expression of the event's bytes: none to or from MPI_PROC_NULL."""
    size = _size_of_all(call, proto)
    peer = next((p for p in _RANKS if p == call.peer and proto.has(p)), "")
    return f"{peer} == MPI_PROC_NULL ? 0 : {size}" if peer and size != "0" else size


def _received_too(call: Call, proto: Prototype) -> str:
    """C++ expression of what is received beside the event's bytes, which are sent; empty where that is none."""
    if call.base in _STARTS:
        return "started.received"
    if proto.has("dest", "source"):  # an exchange
        size = "scope.bytes(recvcount, recvtype)" if proto.has("recvcount") else "scope.bytes(count, datatype)"
        return f"source == MPI_PROC_NULL ? 0 : {size}"
    if proto.has("result_count", "target_rank"):
        return "target_rank == MPI_PROC_NULL ? 0 : scope.bytes(result_count, result_datatype)"
    if call.size == "one":
        return "target_rank == MPI_PROC_NULL ? 0 : scope.bytes(1, datatype)"
    return ""


def _size_of_all(call: Call, proto: Prototype) -> str:
    """C++ expression of the event's bytes; only arguments that are significant at the calling rank."""
    rooted = "fallow::pmpi::is_rank(root) ? " if proto.has("root") else ""
    end = " : 0" if rooted else ""
    if call.base in _STARTS:
        return "started.sent"
    if call.size == "count":
        datatype = "datatype" if proto.has("datatype") else "type"  # Open MPI's name in MPI_Mrecv
        nowhere = "root == MPI_PROC_NULL ? 0 : " if rooted else "nowhere ? 0 : " if call.base in _MATCHED else ""  # between groups MPI_ROOT has them, too
        return f"{nowhere}scope.bytes(count, {datatype})"
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


def _record(call: Call, proto: Prototype) -> str:
    peer = call.peer if call.peer and proto.has(call.peer) else "-1"
    tag = call.tag if call.tag and proto.has(call.tag) else "-1"
    size = "0" if call.wakes == "later" else _size(call, proto)
    if _has_comm(proto):
        return f"scope.record(comm, {peer}, {tag}, {size});"
    return f"scope.record({peer}, {tag}, {size});"


def _free(call: Call, proto: Prototype) -> list[str]:
    """Forgets a handle before it is given back, for its value may be handed out again."""
    if call.frees not in {"comm", "type", "session", "win", "request"}:
        return []
    parameter = proto.parameters[0].name
    return [f"if ({parameter} != nullptr) fallow::pmpi::forget_{call.frees}(*{parameter});"]


def _makes_window(proto: Prototype) -> bool:
    """Whether the call makes a window over its communicator."""
    return _has_comm(proto) and any(re.match(r"^MPI_Win ?\* ?win$", p.declaration) for p in proto.parameters)


def _made(call: Call, proto: Prototype) -> list[str]:
    """Forgets what another communicator with the new one's handle was: the library may have ended that by itself."""
    if call.wakes == "later":
        peer = next((p for p in (call.peer, *_RANKS) if p in _RANKS and proto.has(p)), "fallow::pmpi::kSeveralPeers")
        size = f"{peer} == MPI_PROC_NULL ? 0 : {_size_of_all(call, proto)}" if peer in _RANKS else _size(call, proto)
        bytes_ = f"0, {size}" if "ecv_init" in call.base else f"{size}, 0"
        return [f"if (result == MPI_SUCCESS && request != nullptr) scope.prepared(*request, comm, {peer}, {bytes_});"]
    if _makes_window(proto):
        return ["if (result == MPI_SUCCESS && win != nullptr) fallow::pmpi::made_window(*thread, *win, comm);"]
    made = [p.name for p in proto.parameters if not call.frees and re.match(r"^MPI_Comm ?\* ?\w+$", p.declaration)]
    return [f"if (result == MPI_SUCCESS && {name} != nullptr) fallow::pmpi::forget_comm(*{name});" for name in made]


def _unrecorded(call: Call, proto: Prototype) -> list[str]:
    """What a call does that is not recorded, as one from a callback: handles come and go all the same."""
    if _counted(call, proto):
        before, after = _counting(call, proto)
        where, peer = _where(call, proto)
        kind = f"fallow::pmpi::CountedKind::{_counted_kind(call, proto)}"
        remember = ", ".join([kind, "result == MPI_SUCCESS", where, peer, *_given(call, proto)])
        return [
            "fallow::pmpi::CountedCall scope;",
            *([f"if (scope.counts()) {{ {' '.join(before)} }}"] if before else []),
            f"const int result = next({proto.forward()});",
            f"if (scope.counts()) {{ {after} scope.remember({remember}); }}",
            "return result;",
        ]
    freed, made = _free(call, proto), [] if _makes_window(proto) or call.wakes == "later" else _made(call, proto)
    if call.wakes == "later":
        freed = [_LOOKS_MAY_HARM]
    if not made:
        return [*freed, f"return next({proto.forward()});"]
    return [*freed, f"const int result = next({proto.forward()});", *made, "return result;"]


def _is_message(call: Call, proto: Prototype) -> bool:
    """Whether the call sends or receives one message, and returns when that is done."""
    one = proto.has("comm", call.peer) and not proto.has("dest", "source")
    return call.kind in {"send", "recv"} and call.blocks and call.size == "count" and one


def _is_start(call: Call, proto: Prototype) -> bool:
    """Whether the call begins to send or receive one message."""
    one = proto.has("comm", call.peer) and not proto.has("dest", "source")
    return call.kind == "start" and call.wakes == "peer" and call.size == "count" and one


def _is_wait(call: Call) -> bool:
    """Whether the call waits for messages that were started."""
    return call.kind == "wait" and call.base.startswith("Wait")


def _counted(call: Call, proto: Prototype) -> bool:
    """Whether the call can be counted only: tests, messages, and one-sided calls that return at once or, as a rule, soon."""
    if call.kind == "test":
        return bool(_found(call, proto))
    if _is_message(call, proto) or _is_start(call, proto) or _is_wait(call):
        return True
    one_sided = call.kind == "rma" and not proto.has("request")
    return one_sided or (call.kind == "rma_sync" and call.base in _SOON_OVER)


def _counted_kind(call: Call, proto: Prototype) -> str:
    """CountedKind, see src/pmpi/counting.hpp."""
    if _found(call, proto):
        return "probe" if _has_comm(proto) else "test"
    if _is_message(call, proto):
        return "message"
    if _is_start(call, proto):
        return "start"
    if _is_wait(call):
        return "wait"
    return "flush" if call.blocks else "one_sided"


def _where(call: Call, proto: Prototype) -> tuple[str, str]:
    """Of a call that can be counted only: the communicator or window, and its rank with which it has to do."""
    if _found(call, proto) or _is_wait(call):
        return "0", "-1"
    peer = call.peer if call.peer and proto.has(call.peer) else "-1"
    return ("comm" if proto.has("comm") else "win"), peer


def _counting(call: Call, proto: Prototype) -> tuple[list[str], str]:
    """What is to be done before and after the call where it is counted only."""
    if found := _found(call, proto):
        comm = "result == MPI_SUCCESS ? comm : MPI_COMM_NULL" if _has_comm(proto) else "MPI_COMM_NULL"
        return [], f"scope.tested(result != MPI_SUCCESS || {found}, {comm});"
    if _is_wait(call):
        return ["scope.may_wait();"], "scope.waited_for_messages();"
    if _is_message(call, proto) or _is_start(call, proto):
        before = f"scope.message(comm, {call.peer}, count, datatype);" if call.blocks else "scope.start(count, datatype);"
        return [before], f"scope.passed(result == MPI_SUCCESS, comm, {call.peer}, {call.tag}, count, datatype);"
    target = [f"scope.target(win, {call.peer});"] if call.peer and proto.has(call.peer) else []
    if call.blocks:
        return [*target, "scope.may_wait();"], "scope.waited();"
    size, received = _size(call, proto), _received_too(call, proto)
    bytes_ = ", ".join(f"result == MPI_SUCCESS ? ({s}) : 0" for s in (size, received) if s and s != "0")
    return target, f"scope.transferred({bytes_ or 0});"


def _given(call: Call, proto: Prototype) -> list[str]:
    """The arguments of a counted call by which it is known as the same as another: those from which its record is made."""
    before, after = _counting(call, proto)
    of_record = set(re.findall(r"\w+", " ".join([*before, after, *_where(call, proto)])))
    outputs = {"flag", "outcount", call.tag} if _found(call, proto) or proto.has("tag") else set()
    return [p.name for p in proto.parameters if p.name in of_record - outputs]


def _repeated(name: str, call: Call, proto: Prototype) -> str:
    """Functions that are tried before the wrapper of a call that can be counted only, for those that are as the last one at their place."""
    kind = f"fallow::pmpi::CountedKind::{_counted_kind(call, proto)}"
    given = "".join(f", {argument}" for argument in _given(call, proto))
    found = _found(call, proto)
    as_usual = "result == MPI_SUCCESS" + (f" && !({found})" if found else "")
    tag = f", {call.tag}" if proto.has("tag") and not found else ""
    forward, name_ = f"({proto.forward()})", f"_{name}<kProfiling>"
    lines = [
        "template <bool kProfiling>",
        f"[[gnu::noinline]] int repeat_{name}({proto.declare()}) {{",
        "  FALLOW_NOTICE_UNWINDING;",
        f"  fallow::pmpi::CallPlace* const place = fallow::pmpi::repeated<{kind}>(kOp_{name}{given});",
        f"  if (place == nullptr) [[unlikely]] return wrap{name_}{forward};",
        f"  fallow::pmpi::RepeatedCall<{kind}> call(*place, __builtin_dwarf_cfa());",
        f"  const int result = reinterpret_cast<decltype(&{name})>(fallow::pmpi::next_of<kProfiling>(kOp_{name})){forward};",
        f"  call.end({as_usual}{tag});",
        "  return result;",
        "}",
        "",
        "template <bool kProfiling>",
        f"int enter_{name}({proto.declare()}) {{",
        f"  if (fallow::pmpi::is_expected(__builtin_return_address(0))) return repeat{name_}{forward};",
        f"  return wrap{name_}{forward};",
        "}",
    ]
    return "\n".join(lines)


def _is_generalized(name: str) -> bool:
    """Whether the call may make a generalized request; ROMIO's requests are such, too."""
    return name == "MPI_Grequest_start" or name in EXTENSIONS or name.startswith("MPI_File_i")


def _found(call: Call, proto: Prototype) -> str:
    """Whether a test found something; empty for other calls."""
    if call.blocks or call.kind not in {"test", "rma_sync"}:
        return ""
    return next((f"*{name} != 0" for name in ("flag", "outcount") if proto.has(name)), "")


def _librarys_own(call: Call) -> str:
    """Array sections in Fortran: MPICH's bindings make a datatype for them before the call, and free it afterwards."""
    return " || fallow::pmpi::is_librarys_own(__builtin_return_address(0))" if call.frees == "type" else ""


def _takes_long(name: str, call: Call) -> bool:
    """Calls that are made seldom, or for much data: what counts is that their wrappers are small, and take half the time to compile."""
    return call.kind in {"io", "setup", "other"} or call.base.endswith("_init") or name.endswith("_c")


def _wrapper(name: str, call: Call, proto: Prototype) -> str:
    declare = proto.declare() or "void"
    attribute = "[[gnu::cold]] " if _takes_long(name, call) else ""
    attribute += "[[gnu::noinline]] " if _counted(call, proto) else ""
    body = [
        "template <bool kProfiling>",
        f"{attribute}int wrap_{name}({declare}) {{",
        f"  const auto next = reinterpret_cast<decltype(&{name})>(fallow::pmpi::next_of<kProfiling>(kOp_{name}));",
    ]
    special = SPECIAL.get(name, "")
    if special in ("init", "session"):
        more = ", session" if special == "session" else ""
        body += [
            "  fallow::pmpi::StartScope start(__builtin_frame_address(0), __builtin_return_address(0));",
            f"  const int result = next({proto.forward()});",
            f"  start.{special}(result, kOp_{name}, __builtin_return_address(0){more});",
            "  return result;",
            "}",
        ]
        return "\n".join(body)
    if _is_generalized(name):
        body += [f"  {_LOOKS_MAY_HARM}"]
    if special in _ENDS:  # error handlers call MPI_Abort, inside another call
        body += [f"  fallow::pmpi::{_ENDS[special]}();"]
    body += [
        "  FALLOW_NOTICE_UNWINDING;",
        "  fallow::pmpi::Thread* const thread = fallow::pmpi::admit(__builtin_frame_address(0), "
        f"__builtin_return_address(0), kOp_{name}, kProfiling);",
        f"  if (thread == nullptr{_librarys_own(call)}) [[unlikely]] {{",
        *[f"    {line}" for line in _unrecorded(call, proto)],
        "  }",
        f"  fallow::pmpi::Scope<{'true' if call.blocks else 'false'}> scope(*thread, kOp_{name}, __builtin_return_address(0), __builtin_frame_address(0));",
    ]
    if name.removesuffix("_c") in ("MPI_Win_create", "MPI_Win_allocate", "MPI_Win_create_dynamic"):
        body += ["  fallow::pmpi::runtime().windows.store(true, std::memory_order_relaxed);"]
    body += _NOTES_NOWHERE if call.base in _MATCHED else []
    trace = traced(name, call, proto)
    body += [f"  {line}" for line in trace.before + _free(call, proto) + _wake(call, proto)]
    arguments = proto.forward(trace.replace)
    found = f"result != MPI_SUCCESS || {test}" if (test := _found(call, proto)) else ""
    if call.twin:
        body += [f"  const int result = scope.twinned(next) ? fallow::pmpi::twin::{name}(*thread, next, {arguments}) : next({arguments});"]
    elif found:
        body += [f"  int result = next({arguments});",
                 f"  while (!({found}) && scope.rests(next)) [[unlikely]] result = next({arguments});"]
    else:
        body += [f"  const int result = next({arguments});"]
    body += ["  scope.leave();"]
    if found:
        body += [f"  scope.tested({found});"]
    body += [f"  if (result == MPI_SUCCESS) [[likely]] {_record(call, proto)}"]
    if received := _received_too(call, proto):
        body += [f"  if (result == MPI_SUCCESS) [[likely]] scope.received_too({received});"]
    if call.base in _STARTS:
        body += [f"  if (result == MPI_SUCCESS) [[likely]] scope.started({_STARTS[call.base]});"]
    body += [f"  {line}" for line in [*_made(call, proto), *trace_block(name, trace)]]
    if call.wakes in {"recent", "peer"}:
        body += [f"  scope.wake_after_test({found});" if found else "  scope.wake_after();"]
    if special == "finalize":
        body += ["  scope.finish_run();"]
    body += ["  return result;", "}"]
    return "\n".join(body)


def emit_wrappers(table: dict[str, Call], prototypes: dict[str, Prototype], header: str) -> dict[str, str]:
    numbered = list(enumerate(functions(table)))
    present = [(i, name, call) for i, (name, call) in numbered if name in prototypes]
    if silent := [name for _, name, call in present if call.kind == "test" and not _found(call, prototypes[name])]:
        raise ValueError(f"tests that do not tell whether they found something: {', '.join(silent)}")
    ops = [
        f'    {{{i}, "{name}", {KINDS.index(call.kind)}, {str(call.blocks).lower()}, {str(_counted(call, prototypes[name])).lower()}, '
        f'{str(call.twin or bool(_found(call, prototypes[name]))).lower()}, '
        f"reinterpret_cast<void*>(&{entry}<false>), reinterpret_cast<void*>(&{entry}<true>)}},"
        for i, name, call in present
        for entry in [f"FALLOW_ENTER({name})" if _counted(call, prototypes[name]) else f"wrap_{name}"]
    ]
    parts = [
        include(header),
        '#include "pmpi/repeated_call.hpp"',
        '#include "pmpi/scope.hpp"',
        '#include "pmpi/twins.hpp"',
        '#include "pmpi/wrapper_table.hpp"',
        "",
        "namespace {",
        *[f"constexpr std::uint16_t kOp_{name} = {i};" for i, name, _ in present],
        "",
        *["\n" + _wrapper(name, call, prototypes[name]) for _, name, call in present],
        *["\n" + _repeated(name, call, prototypes[name]) for _, name, call in present if _counted(call, prototypes[name])],
        "",
        "const fallow::pmpi::WrapperEntry kEntries[] = {",
        *ops,
        "};",
        "}  // namespace",
        "",
        "std::span<const fallow::pmpi::WrapperEntry> fallow::pmpi::wrapper_entries() noexcept { return kEntries; }",
        "",
    ]
    return {"wrappers.cpp": "\n".join(parts)}


def _treatment(call: Call, proto: Prototype) -> str:
    if call.blocks:
        return "recorded, waits sleep"
    return "recorded, rests in loops" if _found(call, proto) else "recorded, passes through"


def emit_coverage(table: dict[str, Call], prototypes: dict[str, Prototype]) -> list[dict[str, object]]:
    wrapped = dict(functions(table))
    rows: list[dict[str, object]] = []
    for name in sorted(prototypes):
        call = wrapped.get(name)
        if call is None:
            why = "an extension of this MPI" if name.startswith("MPIX_") else "local: neither communicates nor waits"
            rows.append({"name": name, "kind": "local", "blocks": False, "treatment": "not wrapped", "why": why})
        else:
            rows.append(
                {
                    "name": name,
                    "kind": call.kind,
                    "blocks": call.blocks,
                    "treatment": _treatment(call, prototypes[name]),
                    "why": call.why,
                }
            )
    return rows
