"""OTF2 archives read: our own, which say in attributes of each Enter what the call was, and those of other tools, such
as Score-P and TAU, where OTF2's own records inside the call tell."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from fallow.errors import UserError
from fallow.text import seconds
from fallow.traces import model, otf2_errors, others, persistent
from fallow.traces.model import COMM_SELF, COMM_WORLD, FIRST_COMM, Event, Info, MemorySource, Site
from fallow.traces.otf2_errors import BadDefinitionError
from fallow.traces.otf2_format import (
    COMPUTE,
    FIELDS,
    KEPT,
    MPI_LIBRARY,
    PROGRAM,
    ROOTS,
    SITE,
    TIMER_HZ,
    WAIT,
    Handle,
    library,
)
from fallow.traces.packed import PackedEvents
from fallow.traces.text import site_of, text_of

_LARGEST_ANCHOR = 1 << 24  # bytes; of all files of an archive it alone is not larger for longer runs
_ROOTS = {theirs: ours for ours, theirs in ROOTS.items()}
_OURS = re.compile(r"Rank [0-9]+ thread ([0-9]{1,5})")  # a location's name
_EPOCHS = ("MPI_Win_start", "MPI_Win_post")  # with the ranks of a group
_LAST_CALLS = ("MPI_Finalize", "MPI_Abort")  # some tools have no end of these


def _unpack(text: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        try:
            if name in KEPT:
                out[name] = int(value)
            elif name in model.LISTS:
                out[name] = tuple(int(v) for v in value.split(","))
        except ValueError:
            raise BadDefinitionError(f"'{ascii(word)[1:-1]}' is no field of a call") from None
    return out


@dataclass
class _Call:
    name: str
    enter_ns: int
    fields: dict[str, Any]
    own: bool
    place: int = -1  # in the list of the rank's events, once it has ended
    begun: list[dict[str, Any]] = field(default_factory=list)  # of a start: the sends and receives that it begins
    inside: int = 0  # calls that came before its end: they are part of it


@dataclass
class _Thread:
    rank: int
    number: int
    calls: list[_Call] = field(default_factory=list)
    last_exit: int | None = None


class _Reader:
    def __init__(self, otf2: Handle, trace: Handle) -> None:
        self.otf2, self.trace = otf2, trace
        groups = [
            g
            for g in trace.definitions.groups
            if g.group_type == otf2.GroupType.COMM_LOCATIONS and g.paradigm == otf2.Paradigm.MPI
        ]
        if not groups:
            raise ValueError("no MPI ranks in this archive")
        masters = list(groups[0].members)
        ranks = {location.group: rank for rank, location in enumerate(masters)}
        self.threads: dict[Any, _Thread] = {}
        self.sites: dict[int, Site] = {}
        count = [0] * len(masters)
        for location in sorted(trace.definitions.locations, key=lambda x: x not in masters):
            if location.group in ranks:
                rank = ranks[location.group]
                ours = _OURS.fullmatch(location.name or "")  # defined in the order in which threads first called
                self.threads[location] = _Thread(rank, int(ours[1]) if ours else count[rank])
                count[rank] += 1
        self.events = [PackedEvents() for _ in masters]
        hosts = [m.group.system_tree_parent.name or "" for m in masters]
        said = {a.name: text_of(a.description or "") for a in trace.definitions.attributes}
        names = said.get(PROGRAM, ""), said.get(MPI_LIBRARY, "")
        self.source = MemorySource(Info(len(masters), *names, hosts=hosts), self.events)
        self.comms = self._read_comms(masters)
        clock = trace.definitions.clock_properties
        self.ns_per_tick = 1e9 / clock.timer_resolution
        self.exact = clock.timer_resolution == TIMER_HZ
        own = FIELDS in said  # ours begin at 0, not at the first call
        self.offset = 0 if own else clock.global_offset
        self.numbers: list[dict[int, int]] = [{} for _ in masters]  # of open requests, by rank
        self.pending: list[dict[int, tuple[_Call, int]]] = [{} for _ in masters]  # what began them, which of it
        self.messages: list[dict[int, dict[str, Any]]] = [{} for _ in masters]  # that a probe has matched

    def _read_comms(self, masters: list[Any]) -> dict[Any, int]:
        place = self.ranks = {location: rank for rank, location in enumerate(masters)}
        comms: dict[Any, int] = {}
        for comm in self.trace.definitions.comms:
            group = getattr(comm, "group", None)
            both: list[Handle] = [getattr(comm, side, None) for side in ("groupA", "groupB")]  # of an intercommunicator
            if all(both):
                comms[comm] = self.add_comm(*([place[m] for m in side.members if m in place] for side in both))
                continue
            if (
                group is None
                or group.paradigm != self.otf2.Paradigm.MPI
                or group.group_type == self.otf2.GroupType.COMM_SELF
            ):
                comms[comm] = COMM_SELF if group is not None else 0
                continue
            ranks = [place[m] for m in group.members if m in place]
            if ranks == list(range(len(masters))) and COMM_WORLD not in comms.values():
                comms[comm] = COMM_WORLD
            else:
                comms[comm] = self.add_comm(ranks, [])
        return comms

    def add_comm(self, group: list[int], remote: list[int]) -> int:
        self.source.info.comms.append((model.runs_of(group), model.runs_of(remote)))
        return FIRST_COMM + len(self.source.info.comms) - 1

    def time(self, ticks: int) -> int:
        since = max(ticks - self.offset, 0)
        return since if self.exact else round(since * self.ns_per_tick)

    def handlers(self) -> dict[Any, Callable[[_Thread, Handle], None]]:
        """By kind of record."""
        named = {
            "Enter": self.enter, "Leave": self.leave, "CallingContextEnter": self.enter_context,
            "CallingContextLeave": self.leave_context, "MpiSend": self.send, "MpiIsend": self.send,
            "MpiIsendComplete": self.completed, "MpiRecv": self.recv, "MpiIrecvRequest": self.requested,
            "MpiIrecv": self.irecv, "MpiRequestCancelled": self.cancelled, "MpiCollectiveEnd": self.collective,
            "NonBlockingCollectiveRequest": self.requested, "NonBlockingCollectiveComplete": self.icollective,
            "MpiProbe": self.probe, "MpiMrecv": self.mrecv, "MpiImrecvRequest": self.imrecv_request,
            "MpiImrecv": self.imrecv, "RmaPut": self.one_sided, "RmaGet": self.one_sided, "RmaAtomic": self.one_sided,
            "RmaCollectiveEnd": self.one_sided, "RmaGroupSync": self.one_sided, "RmaRequestLock": self.one_sided,
            "RmaReleaseLock": self.one_sided, "RmaSync": self.one_sided, "RmaOpCompleteBlocking": self.one_sided,
        }  # fmt: skip
        return {getattr(self.otf2.events, name): handler for name, handler in named.items()}

    def run(self) -> MemorySource:
        handlers = self.handlers()
        for location, event in self.trace.events:
            handler = handlers.get(type(event))
            if handler is not None and (thread := self.threads.get(location)) is not None:
                handler(thread, event)
        for thread in self.threads.values():
            self.end_of(thread)
        for rank, events in enumerate(self.events):
            events.put_in_order()
            if any(a.exit_ns > b.enter_ns and a.thread == b.thread for a, b in pairwise(events)):
                raise ValueError(f"calls of one thread of rank {rank} overlap")
        self.source.info.clock = model.clock_of(self.events)
        self.number_sites()
        others.scatter_counts(self.source)
        return self.source

    def end_of(self, thread: _Thread) -> None:
        """A call that was under way when the rank was killed has no end; what seems to lie in it came after it."""
        for call in thread.calls[:1]:
            if call.inside:
                since = seconds(call.enter_ns * 1e-9)
                raise ValueError(f"{call.name} of rank {thread.rank}, {since} after the beginning, has no end")
            if call.name not in _LAST_CALLS:
                self.source.info.incomplete |= {thread.rank}

    def number_sites(self) -> None:
        """Those that no call names have left no trace: the numbers close up."""
        numbers = {old: new for new, old in enumerate(sorted(self.sites), 1)}
        self.source.info.sites = [self.sites[old] for old in numbers]
        if any(old != new for old, new in numbers.items()):
            for events in self.events:
                for place, e in enumerate(events):
                    events[place] = e._replace(site=numbers.get(e.site, 0))

    def enter(self, thread: _Thread, event: Handle) -> None:
        self.begin(thread, event, event.region)

    def leave(self, thread: _Thread, event: Handle) -> None:
        self.end(thread, event, event.region)

    def enter_context(self, thread: _Thread, event: Handle) -> None:
        self.begin(thread, event, getattr(event.calling_context, "region", None))

    def leave_context(self, thread: _Thread, event: Handle) -> None:
        self.end(thread, event, getattr(event.calling_context, "region", None))

    def begin(self, thread: _Thread, event: Handle, region: Handle) -> None:
        name = _function(region)
        if not name:
            return
        own = {a.name: v for a, v in (event.attributes or {}).items()}
        fields = _unpack(own[FIELDS]) if FIELDS in own else {}
        if SITE in own and fields.get("site", 0) > 0:
            self.sites.setdefault(fields["site"], site_of(str(own[SITE])) or (0, "", ""))
        else:
            fields["site"] = 0
        for key, attribute in (("compute_ns", COMPUTE), ("wait_ns", WAIT)):
            if attribute in own:
                fields[key] = own[attribute]
        thread.calls.append(_Call(name, self.time(event.time), fields, FIELDS in own))

    def end(self, thread: _Thread, event: Handle, region: Handle) -> None:
        name = _function(region)
        if not name or not thread.calls:  # it began before the record did
            return
        if thread.calls[-1].name != name:
            raise ValueError(f"{name} of rank {thread.rank} ends inside {thread.calls[-1].name}")
        call, exit_ns = thread.calls.pop(), self.time(event.time)
        if thread.calls:
            thread.calls[0].inside += 1
            return
        last = call.enter_ns if thread.last_exit is None else thread.last_exit
        fields = {"compute_ns": call.enter_ns - last} | call.fields
        e = Event(op=model.op_number(call.name), thread=thread.number, enter_ns=call.enter_ns, exit_ns=exit_ns)
        call.place = len(self.events[thread.rank])
        parts = call.begun or [{}]
        for i, begun in enumerate(parts, 1):  # of several, the first one computes before, the last one takes the time
            own = fields | ({"compute_ns": 0} if i > 1 else {}) | ({"exit_ns": call.enter_ns} if i < len(parts) else {})
            self.events[thread.rank].append(e._replace(**(own | begun)))
        thread.last_exit = exit_ns

    def foreign(self, thread: _Thread, begins: str = "") -> dict[str, Any] | None:
        """Fields of the call under way, or of what it begins, if they are to be taken from OTF2's own records."""
        if not thread.calls or thread.calls[0].own:
            return None
        if not begins or thread.calls[0].name not in persistent.STARTS:
            return thread.calls[0].fields
        thread.calls[0].begun.append({"op": model.op_number(begins)})
        return thread.calls[0].begun[-1]

    def comm(self, event: Handle) -> int:
        return self.comms.get(event.communicator, 0)

    # --- requests

    def number(self, rank: int, request: int) -> int:
        numbers = self.numbers[rank]
        if request not in numbers:
            taken = set(numbers.values())
            numbers[request] = next(i for i in range(len(taken) + 1) if i not in taken)
        return numbers[request]

    def request(self, thread: _Thread, f: dict[str, Any], request: int) -> None:
        """What `f` begins goes on until the request ends."""
        f["requests"] = (self.number(thread.rank, request),)
        self.pending[thread.rank][request] = (thread.calls[0], max(len(thread.calls[0].begun) - 1, 0))

    def settle(self, thread: _Thread, request: int, **fields: Any) -> None:  # noqa: ANN401
        """A request ends in the call under way; what began it is known only now to have been this."""
        if (f := self.foreign(thread)) is None:
            return
        if (number := self.numbers[thread.rank].pop(request, None)) is not None:
            f["completed"] = (*f.get("completed", ()), number)
        begun, which = self.pending[thread.rank].pop(request, (None, 0))
        if begun is not None and begun.place >= 0 and fields:
            events = self.events[thread.rank]
            events[begun.place + which] = events[begun.place + which]._replace(**fields)

    def requested(self, thread: _Thread, event: Handle) -> None:
        if (f := self.foreign(thread, "MPI_Irecv")) is not None:
            self.request(thread, f, event.request_id)

    def completed(self, thread: _Thread, event: Handle) -> None:
        self.settle(thread, event.request_id)

    def cancelled(self, thread: _Thread, event: Handle) -> None:
        self.settle(thread, event.request_id, peer=model.NULL_PEER)

    # --- messages

    def send(self, thread: _Thread, event: Handle) -> None:
        if (f := self.foreign(thread, "MPI_Isend")) is None:
            return
        f.update(comm=self.comm(event), peer=event.receiver, tag=event.msg_tag, size_bytes=event.msg_length)
        if (request := getattr(event, "request_id", None)) is not None:
            self.request(thread, f, request)

    def recv(self, thread: _Thread, event: Handle) -> None:
        if (f := self.foreign(thread)) is None:
            return
        f["comm"] = self.comm(event)
        if "Sendrecv" in thread.calls[0].name:
            f.update(recv_peer=event.sender, recv_tag=event.msg_tag, recv_bytes=event.msg_length)
        else:
            f.update(peer=event.sender, tag=event.msg_tag, size_bytes=event.msg_length)

    def irecv(self, thread: _Thread, event: Handle) -> None:
        self.settle(
            thread,
            event.request_id,
            comm=self.comm(event),
            peer=event.sender,
            tag=event.msg_tag,
            size_bytes=event.msg_length,
        )

    def probe(self, thread: _Thread, event: Handle) -> None:
        if (f := self.foreign(thread)) is not None:
            found = {"comm": self.comm(event), "peer": event.sender, "tag": event.tag}
            f.update(found)
            self.messages[thread.rank][event.message_id] = found

    def matched(self, thread: _Thread, event: Handle) -> dict[str, Any] | None:
        """Fields of the call under way, with whom the message is from that it takes."""
        if (f := self.foreign(thread)) is not None:
            f.update(self.messages[thread.rank].pop(event.message_id, {}))
        return f

    def mrecv(self, thread: _Thread, event: Handle) -> None:
        if (f := self.matched(thread, event)) is not None:
            f["size_bytes"] = event.msg_length

    def imrecv_request(self, thread: _Thread, event: Handle) -> None:
        if (f := self.matched(thread, event)) is not None:
            self.request(thread, f, event.request_id)

    def imrecv(self, thread: _Thread, event: Handle) -> None:
        self.settle(thread, event.request_id, size_bytes=event.msg_length)

    # --- one-sided communication

    def one_sided(self, thread: _Thread, event: Handle) -> None:
        """A call on a window: its communicator, and what of the other rank, the group and bytes the record has."""
        if (f := self.foreign(thread)) is None or event.win is None:
            return
        f["comm"] = self.comms.get(event.win.comm, 0)
        if (remote := getattr(event, "remote", None)) is not None and remote < self.source.info.size:
            f["peer"] = remote
        if (group := getattr(event, "group", None)) is not None and thread.calls[0].name in (
            "MPI_Win_start",
            "MPI_Win_post",
        ):
            f["counts"] = tuple(self.ranks[m] for m in group.members if m in self.ranks)
        if hasattr(event, "bytes"):
            f["size_bytes"] = event.bytes
        elif hasattr(event, "matching_id") and hasattr(event, "bytes_sent"):
            f.update(size_bytes=event.bytes_sent, recv_bytes=event.bytes_received)

    # --- collectives

    def collective(self, thread: _Thread, event: Handle) -> None:
        if (f := self.foreign(thread)) is not None:
            f.update(self.sizes(thread.rank, thread.calls[0].name, event))

    def icollective(self, thread: _Thread, event: Handle) -> None:
        """It began as itself, or as a persistent one in a start, which does not say what it starts."""
        begun, _ = self.pending[thread.rank].get(event.request_id, (None, 0))
        name = begun.name if begun is not None else ""
        fields = {}
        if name in persistent.STARTS:
            name = f"MPI_I{str(event.collective_op).rpartition('.')[2].lower()}"
            fields["op"] = model.op_number(name)
        self.settle(thread, event.request_id, **fields, **self.sizes(thread.rank, name, event))

    def sizes(self, rank: int, name: str, event: Handle) -> dict[str, Any]:
        """Communicator, bytes and root of a collective."""
        comm = self.comm(event)
        members = len(self.source.info.members(comm, rank))
        size, back = others.collective_sizes(_blocking(name), event.size_sent, event.size_received, members)
        found = {"comm": comm, "size_bytes": size, "recv_bytes": back}
        root = _ROOTS.get(event.root, event.root)
        return found | ({"root": root} if root < self.source.info.size else {})


def _function(region: Handle) -> str:
    """The MPI function that a region stands for, or an empty string. TAU puts parentheses behind it."""
    name: str = (region.name or "") if region is not None else ""
    return name.strip().removesuffix("()") if name.startswith("MPI_") else ""


def _blocking(name: str) -> str:
    return model.ops()[model.ops()[model.op_number(name)].blocking].name


def read(path: Path) -> MemorySource:
    """Reads an archive by its anchor file, or the directory that holds traces.otf2."""
    otf2 = library()
    anchor = path / "traces.otf2" if path.is_dir() else path
    if not anchor.is_file():
        raise UserError(f"{anchor}: no such file")
    if anchor.stat().st_size > _LARGEST_ANCHOR:  # the library takes all of it into memory
        raise UserError(f"{anchor}: larger than any archive's anchor file")
    with otf2_errors.collected() as complaints:
        try:
            with otf2.reader.open(str(anchor)) as trace:
                found = _Reader(otf2, trace).run()
            if complaints.told and (part := otf2_errors.damaged(anchor)):
                raise UserError(f"{part}: is damaged: {complaints.told[0][0]}")
        except UserError:
            raise
        except Exception as error:  # the library has many of its own, and passes on what its data make Python raise
            place = otf2_errors.damaged(anchor) or complaints.place(error, anchor)
            raise UserError(f"{place}: not a trace that can be read: {complaints.reason(error)}") from None
    return found
