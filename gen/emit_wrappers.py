"""Emits the wrappers of one family in C++, and the list of how each function of that MPI is treated."""

from __future__ import annotations

import re

from calls import EXTENSIONS, KINDS, TOPOLOGIES, Call, functions, takes_long
from emit_counted import counted, is_counted, place, repeated
from emit_trace import trace_block, traced
from expressions import MATCHED, RANKS, STARTS, found_by, has_comm, part_of, received_too, size_of, size_of_all
from prototypes import Prototype, include

_COPIES = ("Comm_dup", "Comm_dup_with_info", "Comm_idup", "Comm_idup_with_info")  # their topologies, too
SPECIAL = {"MPI_Init": "init", "MPI_Init_thread": "init", "MPI_Session_init": "session", "MPI_Finalize": "finalize", "MPI_Abort": "abort"}

_ENDS = {"abort": "about_to_abort", "finalize": "about_to_finalize"}
# Before the call, which takes the message.
_NOTES_NOWHERE = ["  const bool nowhere = message != nullptr && *message == MPI_MESSAGE_NO_PROC;"]
_LOOKS_MAY_HARM = "fallow::pmpi::runtime().looks_may_harm.store(true, std::memory_order_relaxed);"


def _wake(call: Call, proto: Prototype) -> list[str]:
    if call.wakes == "peer" and proto.has(call.peer, "comm"):
        peers = [call.peer] + (["source"] if proto.has("dest", "source") else [])
        return [f"scope.wake_peer(comm, {peer});" for peer in peers]
    if call.wakes == "peer":  # one-sided: the window's group is looked up only when somebody sleeps
        return [f"scope.wake_target(win, {call.peer});"]
    if call.wakes == "all":
        return [f"scope.wake_partners({f'comm{part_of(call, proto)}' if has_comm(proto) else ''});"]
    if call.wakes == "recent" and call.kind == "test":
        return []  # it has sent nothing yet
    if call.wakes == "recent":
        first = ""
        if call.base in STARTS:
            first = f"const fallow::pmpi::Prepared started = scope.starts({STARTS[call.base]});"
        if call.base.startswith("Pready"):  # the thread may never have made a call with this peer
            first = "scope.wake_for(request);"
        return [*([first] if first else []), "scope.wake_recent();"]
    return []


def _record(call: Call, proto: Prototype) -> str:
    peer = call.peer if call.peer and proto.has(call.peer) else "-1"
    tag = call.tag if call.tag and proto.has(call.tag) else "-1"
    size = "0" if call.wakes == "later" else size_of(call, proto)
    if has_comm(proto):
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
    return has_comm(proto) and any(re.match(r"^MPI_Win ?\* ?win$", p.declaration) for p in proto.parameters)


def _made(call: Call, proto: Prototype) -> list[str]:
    """Forgets what another communicator with the new one's handle was: the library may have ended that by itself."""
    if call.wakes == "later":
        peer = next((p for p in (call.peer, *RANKS) if p in RANKS and proto.has(p)), "fallow::pmpi::kSeveralPeers")
        size = f"{peer} == MPI_PROC_NULL ? 0 : {size_of_all(call, proto)}" if peer in RANKS else size_of(call, proto)
        bytes_ = f"0, {size}" if "ecv_init" in call.base else f"{size}, 0"
        return [f"if (result == MPI_SUCCESS && request != nullptr) scope.prepared(*request, comm, {peer}, {bytes_});"]
    if _makes_window(proto):
        return ["if (result == MPI_SUCCESS && win != nullptr) fallow::pmpi::made_window(*thread, *win, comm);"]
    made = [p.name for p in proto.parameters if not call.frees and re.match(r"^MPI_Comm ?\* ?\w+$", p.declaration)]
    copies = call.base in _COPIES
    does = f"copied_comm(*{{}}, {proto.parameters[0].name});" if copies else f"made_comm(*{{}}, {TOPOLOGIES.get(call.base, 'MPI_UNDEFINED')});"
    return [f"if (result == MPI_SUCCESS && {name} != nullptr) fallow::pmpi::{does.format(name)}" for name in made]


def _unrecorded(call: Call, proto: Prototype) -> list[str]:
    """What a call does that is not recorded, as one from a callback: handles come and go all the same."""
    if is_counted(call, proto):
        return counted(call, proto)
    freed, made = _free(call, proto), [] if _makes_window(proto) or call.wakes == "later" else _made(call, proto)
    if call.wakes == "later":
        freed = [_LOOKS_MAY_HARM]
    if not made:
        return [*freed, f"return next({proto.forward()});"]
    return [*freed, f"const int result = next({proto.forward()});", *made, "return result;"]


def _is_generalized(name: str) -> bool:
    """Whether the call may make a generalized request; ROMIO's requests are such, too."""
    return name == "MPI_Grequest_start" or name in EXTENSIONS or name.startswith("MPI_File_i")


def _librarys_own(call: Call) -> str:
    """Array sections in Fortran: MPICH's bindings make a datatype for them before the call, and free it afterwards."""
    return " || fallow::pmpi::is_librarys_own(__builtin_return_address(0))" if call.frees == "type" else ""


def _wrapper(name: str, call: Call, proto: Prototype, prefix: str) -> str:
    """`prefix`: "P" of the function's name in the profiling interface, or empty."""
    profiling = "true" if prefix else "false"
    declare = proto.declare() or "void"
    attribute = "[[gnu::cold]] " if takes_long(name, call) else ""
    attribute += f"[[gnu::noinline]] {place(prefix + name, 'b')}" if is_counted(call, proto) else ""
    body = [
        f"{attribute}int wrap_{prefix}{name}({declare}) {{",
        f"  const auto next = reinterpret_cast<decltype(&{name})>(fallow::pmpi::next_of<{profiling}>(kOp_{name}));",
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
        "  fallow_tls_block* here = &fallow::pmpi::this_thread();",
        "  fallow::pmpi::Thread* const thread = fallow::pmpi::admit(here, __builtin_frame_address(0), "
        f"__builtin_return_address(0), kOp_{name}, {profiling});",
        f"  if (thread == nullptr{_librarys_own(call)}) [[unlikely]] {{",
        *[f"    {line}" for line in _unrecorded(call, proto)],
        "  }",
        f"  fallow::pmpi::Scope<{'true' if call.blocks else 'false'}> scope(*here, *thread, kOp_{name}, __builtin_return_address(0), __builtin_frame_address(0));",
    ]
    if name.removesuffix("_c") in ("MPI_Win_create", "MPI_Win_allocate", "MPI_Win_create_dynamic"):
        body += ["  fallow::pmpi::runtime().windows.store(true, std::memory_order_relaxed);"]
    body += _NOTES_NOWHERE if call.base in MATCHED else []
    trace = traced(name, call, proto)
    body += [f"  {line}" for line in trace.before + _free(call, proto) + _wake(call, proto)]
    arguments = proto.forward(trace.replace)
    found = f"result != MPI_SUCCESS || {test}" if (test := found_by(call, proto)) else ""
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
    if received := received_too(call, proto):
        body += [f"  if (result == MPI_SUCCESS) [[likely]] scope.received_too({received});"]
    if call.base in STARTS:
        body += [f"  if (result == MPI_SUCCESS) [[likely]] scope.started({STARTS[call.base]});"]
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
    if silent := [name for _, name, call in present if call.kind == "test" and not found_by(call, prototypes[name])]:
        raise ValueError(f"tests that do not tell whether they found something: {', '.join(silent)}")
    ops = [
        f'    {{{i}, "{name}", {KINDS.index(call.kind)}, {str(call.blocks).lower()}, {str(is_counted(call, prototypes[name])).lower()}, '
        f'{str(call.twin or bool(found_by(call, prototypes[name]))).lower()}, '
        f"reinterpret_cast<void*>(&{enter}{name}{end}), reinterpret_cast<void*>(&{enter}P{name}{end})}},"
        for i, name, call in present
        for enter, end in [("FALLOW_ENTER(", ")") if is_counted(call, prototypes[name]) else ("wrap_", "")]
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
        *["\n" + _wrapper(name, call, prototypes[name], prefix) for _, name, call in present for prefix in ("", "P")],
        *[
            "\n" + repeated(name, call, prototypes[name], prefix)
            for _, name, call in present
            for prefix in ("", "P")
            if is_counted(call, prototypes[name])
        ],
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
    return "recorded, rests in loops" if found_by(call, proto) else "recorded, passes through"


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
