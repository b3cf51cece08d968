"""Emits what calls that can be counted only have in their wrappers, see src/pmpi/counting.hpp."""

from __future__ import annotations

import re

from calls import Call
from expressions import found_by, has_comm, part_of, received_too, size_of
from prototypes import Prototype

_SOON_OVER = ("Win_flush", "Win_flush_local", "Win_flush_all", "Win_flush_local_all", "Win_lock", "Win_unlock", "Win_sync")


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


def _is_exchange(call: Call, proto: Prototype) -> bool:
    """Whether the call sends one message and receives another, and returns when both is done."""
    return call.kind == "recv" and call.blocks and proto.has("comm", "dest", "source")


def _is_probe(call: Call, proto: Prototype) -> bool:
    """Whether the call waits until there is a message, and leaves that to another one to receive."""
    return call.kind == "probe" and call.blocks and not proto.has("message")


def _is_collective(call: Call, proto: Prototype) -> bool:
    """Whether it is a blocking collective call of all ranks whose data are told by one count and type on each side."""
    several = any(p.name.endswith("counts") for p in proto.parameters)
    sizes = call.size in {"none", "count", "send", "recv", "send_each"}
    return call.kind == "collective" and call.blocks and sizes and not several and "eighbor" not in call.base


def is_counted(call: Call, proto: Prototype) -> bool:
    """Whether the call can be counted only: tests, messages, short collective calls, and one-sided calls that return at once or, as a
    rule, soon."""
    if call.kind == "test":
        return bool(found_by(call, proto))
    if any(is_such(call, proto) for is_such in (_is_message, _is_exchange, _is_probe, _is_collective, _is_start)) or _is_wait(call):
        return True
    one_sided = call.kind == "rma" and not proto.has("request")
    return one_sided or (call.kind == "rma_sync" and call.base in _SOON_OVER)


def _kind(call: Call, proto: Prototype) -> str:
    """CountedKind, see src/pmpi/counting.hpp."""
    if found_by(call, proto):
        return "probe" if has_comm(proto) else "test"
    if _is_message(call, proto) or _is_exchange(call, proto) or _is_probe(call, proto):
        return "message"
    if _is_collective(call, proto):
        return "collective"
    if _is_start(call, proto):
        return "start"
    if _is_wait(call):
        return "wait"
    return "flush" if call.blocks else "one_sided"


def _where(call: Call, proto: Prototype) -> tuple[str, str]:
    """Of a call that can be counted only: the communicator or window, and its rank with which it has to do."""
    if found_by(call, proto) or _is_wait(call):
        return "0", "-1"
    peer = call.peer if call.peer and proto.has(call.peer) else "-1"
    return ("comm" if proto.has("comm") else "win"), peer


def _tag(call: Call, proto: Prototype) -> str:
    """The tag of a message; empty where there is none."""
    return call.tag if call.tag and proto.has(call.tag) and not found_by(call, proto) else ""


def _before_message(call: Call, proto: Prototype) -> str:
    """What is to be done before a call that passes messages on; empty for others."""
    if _is_message(call, proto):
        return f"scope.message(comm, {call.peer}, count, datatype);"
    if _is_exchange(call, proto):
        sides = "sendcount, sendtype, recvcount, recvtype" if proto.has("sendcount") else "count, datatype, count, datatype"
        return f"scope.exchange(comm, {call.peer}, {sides});"
    if _is_probe(call, proto):
        return "scope.may_wait();"
    if _is_collective(call, proto):
        return f"scope.collective(comm{part_of(call, proto)});"
    return "scope.start(count, datatype);" if _is_start(call, proto) else ""


def _counting(call: Call, proto: Prototype) -> tuple[list[str], str]:
    """What is to be done before and after the call where it is counted only."""
    if found := found_by(call, proto):
        comm = "result == MPI_SUCCESS ? comm : MPI_COMM_NULL" if has_comm(proto) else "MPI_COMM_NULL"
        return [], f"scope.tested(result != MPI_SUCCESS || {found}, {comm});"
    if _is_wait(call):
        return ["scope.may_wait();"], "scope.waited_for_messages();"
    size, received = size_of(call, proto), received_too(call, proto)
    bytes_ = ", ".join(f"result == MPI_SUCCESS ? ({s}) : 0" for s in (size, received) if s and s != "0") or "0"
    if before := _before_message(call, proto):
        where, peer = _where(call, proto)
        return [before], f"scope.passed(result == MPI_SUCCESS, {where}, {peer}, {_tag(call, proto) or -1}, {bytes_});"
    target = [f"scope.target(win, {call.peer});"] if call.peer and proto.has(call.peer) else []
    if call.blocks:
        return [*target, "scope.may_wait();"], "scope.waited();"
    return target, f"scope.transferred({bytes_});"


def _given(call: Call, proto: Prototype) -> list[str]:
    """The arguments of a counted call by which it is known as the same as another: those from which its record is made."""
    before, after = _counting(call, proto)
    of_record = set(re.findall(r"\w+", " ".join([*before, after, *_where(call, proto)])))
    outputs = {"flag", "outcount", call.tag}
    return [p.name for p in proto.parameters if p.name in of_record - outputs]


def counted(call: Call, proto: Prototype) -> list[str]:
    """What its wrapper does where the call is counted only."""
    before, after = _counting(call, proto)
    where, peer = _where(call, proto)
    kind = f"fallow::pmpi::CountedKind::{_kind(call, proto)}"
    remember = ", ".join([kind, "result == MPI_SUCCESS", where, peer, *_given(call, proto)])
    return [
        "fallow::pmpi::CountedCall scope;",
        *([f"if (scope.counts()) {{ {' '.join(before)} }}"] if before else []),
        f"const int result = next({proto.forward()});",
        f"if (scope.counts()) {{ {after} scope.remember({remember}); }}",
        "return result;",
    ]


def place(name: str, part: str) -> str:
    """Where a function of those that a counted call goes through lies, as an attribute: side by side, as linkers sort such sections by name."""
    return f'[[gnu::section(".text.sorted.fallow.{name}.{part}")]] '


def repeated(name: str, call: Call, proto: Prototype, prefix: str) -> str:
    """Functions that are tried before the wrapper of a call that can be counted only, for those that are as the last one at their place.
    `prefix`: see _wrapper()."""
    kind = f"fallow::pmpi::CountedKind::{_kind(call, proto)}"
    given = "".join(f", {argument}" for argument in _given(call, proto))
    found = found_by(call, proto)
    as_usual = "result == MPI_SUCCESS" + (f" && !({found})" if found else "")
    tag = f", {tag}" if (tag := _tag(call, proto)) else ""
    forward, name_ = f"({proto.forward()})", f"_{prefix}{name}"
    lines = [
        f"[[gnu::noinline]] {place(prefix + name, 'c')}int repeat{name_}({proto.declare()}) {{",
        "  FALLOW_NOTICE_UNWINDING;",
        "  fallow_tls_block& here = fallow::pmpi::this_thread();",
        f"  fallow::pmpi::CallPlace* const place = fallow::pmpi::repeated<{kind}>(here, kOp_{name}{given});",
        f"  if (place == nullptr) [[unlikely]] return wrap{name_}{forward};",
        f"  fallow::pmpi::RepeatedCall<{kind}> call(here, *place, __builtin_dwarf_cfa());",
        f"  const int result = reinterpret_cast<decltype(&{name})>(fallow::pmpi::next_of<{'true' if prefix else 'false'}>(kOp_{name})){forward};",
        f"  call.end({as_usual}{tag});",
        "  return result;",
        "}",
        "",
        f"[[gnu::naked]] {place(prefix + name, 'a')}int enter{name_}() {{ FALLOW_ENTER_BY(repeat{name_}, wrap{name_}); }}",
    ]
    return "\n".join(lines)
