"""OTF2, the format of Score-P, TAU, Vampir and Scalasca, through its own library (pip install otf2).

A call is an Enter and a Leave of a region with the call's name, with OTF2's MPI records between them. What those
cannot say stands in attributes of the Enter, so that a trace read back is the same; other tools ignore them.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from fallow.errors import UserError
from fallow.traces import model, otf2_errors, others, persistent
from fallow.traces.model import COMM_SELF, COMM_WORLD, FIRST_COMM, Event, Info, MemorySource, Site, Source
from fallow.traces.otf2_errors import BadDefinitionError
from fallow.traces.text import Losses, site_of, site_text

_TIMER_HZ = 1_000_000_000
_UNDEFINED_ROOT = 0xFFFFFFFF
_NO_REQUEST = 0xFFFFFFFFFFFFFFFF
_LARGEST_ANCHOR = 1 << 24  # bytes; of all files of an archive it alone is not larger for longer runs
_FIELDS = "fallow.call"
_COMPUTE = "fallow.compute_ns"
_WAIT = "fallow.wait_ns"
_SITE = "fallow.site"
_KEPT = ("flags", "comm", "site", "peer", "tag", "recv_peer", "recv_tag", "root", "size_bytes", "recv_bytes")
_LISTS = ("counts", "recv_counts", "requests", "completed")
_DEFAULTS = Event()


Handle = Any
"""An object of the library, which has no types."""


def _library() -> Handle:
    try:
        otf2 = importlib.import_module("otf2")
        importlib.import_module("otf2.writer")
        importlib.import_module("otf2.reader")
    except ImportError:
        raise UserError("OTF2 needs its Python library; install it with: pip install otf2") from None
    return otf2


def _pack(e: Event) -> str:
    """What of a call is neither its name nor a time: "peer=3 size_bytes=8 requests=1,2"."""
    words = [f"{name}={getattr(e, name)}" for name in _KEPT if getattr(e, name) != getattr(_DEFAULTS, name)]
    words += [f"{name}={','.join(map(str, getattr(e, name)))}" for name in _LISTS if getattr(e, name)]
    return " ".join(words)


def _unpack(text: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        try:
            if name in _KEPT:
                out[name] = int(value)
            elif name in _LISTS:
                out[name] = tuple(int(v) for v in value.split(","))
        except ValueError:
            raise BadDefinitionError(f"'{ascii(word)[1:-1]}' is no field of a call") from None
    return out


# --- writing


class _Writer:
    def __init__(self, otf2: Handle, trace: Handle, source: Source, losses: Losses) -> None:
        self.otf2, self.trace, self.source, self.losses = otf2, trace, source, losses
        d = trace.definitions
        self.fields = d.attribute(_FIELDS, "fields of the call", otf2.Type.STRING)
        self.compute = d.attribute(_COMPUTE, "computation before the call", otf2.Type.UINT64)
        self.wait = d.attribute(_WAIT, "waiting inside the call", otf2.Type.UINT64)
        self.site = d.attribute(_SITE, "where the call is made", otf2.Type.STRING)
        self.sites = [site_text(site) for site in source.info.sites]
        self.root = d.system_tree_node("machine")
        self.regions: dict[int, Any] = {}
        self.request = 0  # OTF2 wants a number of its own for each message
        self.masters = [self._location(rank, 0) for rank in range(source.info.size)]
        self.comms = self._define_comms()

    def _location(self, rank: int, thread: int) -> Handle:
        d, info = self.trace.definitions, self.source.info
        host = (info.hosts[rank] if rank < len(info.hosts) else "") or "node"
        node = d.system_tree_node(host, parent=self.root)
        group = d.location_group(f"MPI Rank {rank}", system_tree_parent=node)
        return d.location(f"Rank {rank} thread {thread}", group=group)

    def _define_comms(self) -> dict[int, Any]:
        d, otf2, info = self.trace.definitions, self.otf2, self.source.info
        mpi = otf2.Paradigm.MPI
        d.group("MPI", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=mpi, members=tuple(self.masters))

        def group(name: str, ranks: Sequence[int]) -> Handle:
            members = tuple(self.masters[r] for r in ranks)
            return d.group(name, group_type=otf2.GroupType.COMM_GROUP, paradigm=mpi, members=members)

        comms = {COMM_WORLD: d.comm("MPI_COMM_WORLD", group=group("world", range(info.size)))}
        for number in range(FIRST_COMM, FIRST_COMM + len(info.comms)):
            if info.comms[number - FIRST_COMM][1]:
                self.losses.add("intercommunicators (one of their two groups is written)")
            comms[number] = d.comm(f"communicator {number}", group=group(f"group {number}", info.members(number, -1)))
        return comms

    def comm(self, e: Event, rank: int) -> Handle:
        if e.comm == COMM_SELF:
            return self.comms[COMM_WORLD]
        return self.comms.get(e.comm, self.comms[COMM_WORLD])

    def rank(self, rank: int) -> None:
        writers: dict[int, Any] = {}
        open_requests: dict[int, tuple[int, str, Event]] = {}
        starts = persistent.Starts()
        for e in self.source.events(rank):
            if e.thread not in writers:
                location = self.masters[rank] if e.thread == 0 else self._location(rank, e.thread)
                writers[e.thread] = self.trace.event_writer_from_location(location)
            w, op = writers[e.thread], model.ops()[e.op]
            region = self.regions.get(e.op)
            if region is None:
                region = self.regions[e.op] = self.trace.definitions.region(
                    op.name, region_role=self.otf2.RegionRole.FUNCTION, paradigm=self.otf2.Paradigm.MPI
                )
            attributes: dict[Any, Any] = {self.fields: _pack(e)}
            if e.flags & model.CPU_TIME:
                attributes[self.compute] = e.compute_ns
            if e.wait_ns:
                attributes[self.wait] = e.wait_ns
            if 0 < e.site <= len(self.sites):
                attributes[self.site] = self.sites[e.site - 1]
            w.enter(e.enter_ns, region, attributes=attributes)
            for begun in starts.unfold(e):
                self.records(w, rank, begun, open_requests)
            w.leave(e.exit_ns, region)

    def records(self, w: Handle, rank: int, e: Event, open_requests: dict[int, tuple[int, str, Event]]) -> None:
        comm, op = self.comm(e, rank), model.ops()[e.op]
        if op.has(model.COLLECTIVE) and op.kind in (3, 7) and op.has(model.STARTS):
            kind = getattr(self.otf2.CollectiveOp, model.ops()[op.blocking].name.removeprefix("MPI_").upper(), None)
            if kind is not None and not op.has(model.CREATES):
                w.mpi_collective_begin(e.enter_ns)
                root = e.root if e.root >= 0 else _UNDEFINED_ROOT
                w.mpi_collective_end(e.exit_ns, kind, comm, root, e.size_bytes, e.recv_bytes)
        elif op.kind in (1, 2, 3) and op.has(model.STARTS):
            self.message(w, op, e, comm, open_requests)
        for r, outcome in persistent.outcomes(e):
            number, kind, begun = open_requests.pop(r, (0, "", e))
            if kind == "send":
                w.mpi_isend_complete(e.exit_ns, number)
            elif kind == "recv" and (begun := persistent.with_outcome(begun, *outcome)).peer >= 0:
                w.mpi_irecv(e.exit_ns, begun.peer, self.comm(begun, rank), max(begun.tag, 0), begun.size_bytes, number)

    def message(
        self, w: Handle, op: model.Op, e: Event, comm: Handle, open_requests: dict[int, tuple[int, str, Event]]
    ) -> None:
        sends, receives = op.has(model.SENDS), op.has(model.RECEIVES)
        if op.has(model.CREATES) and e.requests and not (sends and receives):
            if e.peer == model.NULL_PEER:
                return
            self.request += 1
            open_requests[e.requests[0]] = (self.request, "send" if sends else "recv", e)
            if sends and e.peer >= 0:
                w.mpi_isend(e.enter_ns, e.peer, comm, max(e.tag, 0), e.size_bytes, self.request)
            elif receives:
                w.mpi_irecv_request(e.enter_ns, self.request)
            return
        if sends and e.peer >= 0:
            w.mpi_send(e.enter_ns, e.peer, comm, max(e.tag, 0), e.size_bytes)
        peer, tag, size = (e.recv_peer, e.recv_tag, e.recv_bytes) if sends else (e.peer, e.tag, e.size_bytes)
        if receives and peer >= 0:
            w.mpi_recv(e.exit_ns, peer, comm, max(tag, 0), size)


def folder_of(path: Path) -> Path:
    """The directory of the archive that is meant by `path`."""
    if path.name == "traces.otf2":
        return path.parent
    return path.with_suffix("") if path.suffix == ".otf2" else path


def write(source: Source, path: Path, losses: Losses) -> None:
    """Writes an archive: the directory `path` (its ending .otf2 is left out), or the one that holds `path`."""
    otf2 = _library()
    folder = folder_of(path)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: OTF2 is written into a new directory; this one holds something")
    trace, given = None, folder.exists()
    with otf2_errors.collected() as complaints:
        try:
            with otf2.writer.open(str(folder), timer_resolution=_TIMER_HZ) as trace:
                writer = _Writer(otf2, trace, source, losses)
                for rank in range(source.info.size):
                    writer.rank(rank)
            if complaints.told:  # closing an archive does not fail
                raise UserError(complaints.cause(folder))
        except BaseException as error:
            otf2_errors.abandon(error, trace, folder, given=given)
            if isinstance(error, UserError | OSError) or not isinstance(error, Exception):
                raise
            cause = complaints.cause(folder) if complaints.told else f"{folder}: {error}"
            raise UserError(cause) from None  # the library's own


# --- reading


@dataclass
class _Call:
    name: str
    enter_ns: int
    fields: dict[str, Any]
    own: bool
    place: int = -1  # in the list of the rank's events, once it has ended
    begun: list[dict[str, Any]] = field(default_factory=list)  # of a start: the sends and receives that it begins


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
                self.threads[location] = _Thread(rank, count[rank])
                count[rank] += 1
        self.source = MemorySource(
            Info(size=len(masters), hosts=[m.group.system_tree_parent.name or "" for m in masters])
        )
        self.comms = self._read_comms(masters)
        clock = trace.definitions.clock_properties
        self.ns_per_tick = 1e9 / clock.timer_resolution
        self.exact = clock.timer_resolution == _TIMER_HZ
        own = any(a.name == _FIELDS for a in trace.definitions.attributes)  # ours begin at 0, not at the first call
        self.offset = 0 if own else clock.global_offset
        self.numbers: list[dict[int, int]] = [{} for _ in masters]  # of open requests, by rank
        self.pending: list[dict[int, tuple[_Call, int]]] = [
            {} for _ in masters
        ]  # receives: what began them, which of it

    def _read_comms(self, masters: list[Any]) -> dict[Any, int]:
        place = {location: rank for rank, location in enumerate(masters)}
        comms: dict[Any, int] = {}
        for comm in self.trace.definitions.comms:
            group = getattr(comm, "group", None)
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
                self.source.info.comms.append((model.runs_of(ranks), []))
                comms[comm] = FIRST_COMM + len(self.source.info.comms) - 1
        return comms

    def time(self, ticks: int) -> int:
        since = max(ticks - self.offset, 0)
        return since if self.exact else round(since * self.ns_per_tick)

    def run(self) -> MemorySource:
        e = self.otf2.events
        handlers = {
            e.Enter: self.enter, e.Leave: self.leave, e.MpiSend: self.send, e.MpiIsend: self.send, e.MpiRecv: self.recv,
            e.MpiIrecv: self.irecv, e.MpiIrecvRequest: self.irecv_request, e.MpiIsendComplete: self.isend_complete,
            e.MpiCollectiveEnd: self.collective,
        }  # fmt: skip
        for location, event in self.trace.events:
            handler = handlers.get(type(event))
            if handler is not None and (thread := self.threads.get(location)) is not None:
                handler(thread, event)
        for rank, events in enumerate(self.source.lists):
            events.sort(key=lambda x: x.enter_ns)
            if any(a.exit_ns > b.enter_ns and a.thread == b.thread for a, b in pairwise(events)):
                raise ValueError(f"calls of one thread of rank {rank} overlap")
        self.source.info.clock = model.clock_of(self.source.lists)
        self.number_sites()
        others.scatter_counts(self.source)
        return self.source

    def number_sites(self) -> None:
        """Those that no call names have left no trace: the numbers close up."""
        numbers = {old: new for new, old in enumerate(sorted(self.sites), 1)}
        self.source.info.sites = [self.sites[old] for old in numbers]
        if any(old != new for old, new in numbers.items()):
            for events in self.source.lists:
                events[:] = [e._replace(site=numbers.get(e.site, 0)) for e in events]

    def enter(self, thread: _Thread, event: Handle) -> None:
        if event.region is None or not (event.region.name or "").startswith("MPI_"):
            return
        own = {a.name: v for a, v in (event.attributes or {}).items()}
        fields = _unpack(own[_FIELDS]) if _FIELDS in own else {}
        if _SITE in own and fields.get("site", 0) > 0:
            self.sites.setdefault(fields["site"], site_of(str(own[_SITE])) or (0, "", ""))
        else:
            fields["site"] = 0
        for name, key in (("compute_ns", _COMPUTE), ("wait_ns", _WAIT)):
            if key in own:
                fields[name] = own[key]
        thread.calls.append(_Call(event.region.name, self.time(event.time), fields, _FIELDS in own))

    def leave(self, thread: _Thread, event: Handle) -> None:
        if event.region is None or not thread.calls or thread.calls[-1].name != event.region.name:
            return
        call, exit_ns = thread.calls.pop(), self.time(event.time)
        if thread.calls:
            return  # a call inside another is part of it
        last = call.enter_ns if thread.last_exit is None else thread.last_exit
        fields = {"compute_ns": call.enter_ns - last} | call.fields
        e = Event(op=model.op_number(call.name), thread=thread.number, enter_ns=call.enter_ns, exit_ns=exit_ns)
        call.place = len(self.source.lists[thread.rank])
        parts = call.begun or [{}]
        for i, begun in enumerate(parts, 1):  # of several, the first one computes before, the last one takes the time
            own = fields | ({"compute_ns": 0} if i > 1 else {}) | ({"exit_ns": call.enter_ns} if i < len(parts) else {})
            self.source.lists[thread.rank].append(e._replace(**(own | begun)))
        thread.last_exit = exit_ns

    def foreign(self, thread: _Thread, begins: str = "") -> dict[str, Any] | None:
        """Fields of the call under way, or of what it begins, if they are to be taken from OTF2's own records."""
        if not thread.calls or thread.calls[0].own:
            return None
        if not begins or thread.calls[0].name not in persistent.STARTS:
            return thread.calls[0].fields
        thread.calls[0].begun.append({"op": model.op_number(begins)})
        return thread.calls[0].begun[-1]

    def send(self, thread: _Thread, event: Handle) -> None:
        if (f := self.foreign(thread, "MPI_Isend")) is None:
            return
        f.update(
            comm=self.comms.get(event.communicator, 0),
            peer=event.receiver,
            tag=event.msg_tag,
            size_bytes=event.msg_length,
        )
        if (request := getattr(event, "request_id", None)) is not None:
            f["requests"] = (self.number(thread.rank, request),)

    def recv(self, thread: _Thread, event: Handle) -> None:
        if (f := self.foreign(thread)) is None:
            return
        f["comm"] = self.comms.get(event.communicator, 0)
        if "Sendrecv" in thread.calls[0].name:
            f.update(recv_peer=event.sender, recv_tag=event.msg_tag, recv_bytes=event.msg_length)
        else:
            f.update(peer=event.sender, tag=event.msg_tag, size_bytes=event.msg_length)

    def number(self, rank: int, request: int) -> int:
        numbers = self.numbers[rank]
        if request not in numbers:
            taken = set(numbers.values())
            numbers[request] = next(i for i in range(len(taken) + 1) if i not in taken)
        return numbers[request]

    def irecv_request(self, thread: _Thread, event: Handle) -> None:
        if (f := self.foreign(thread, "MPI_Irecv")) is not None:
            f["requests"] = (self.number(thread.rank, event.request_id),)
            self.pending[thread.rank][event.request_id] = (thread.calls[0], max(len(thread.calls[0].begun) - 1, 0))

    def complete(self, thread: _Thread, f: dict[str, Any], request: int) -> None:
        number = self.numbers[thread.rank].pop(request, None)
        if number is not None:
            f["completed"] = (*f.get("completed", ()), number)

    def isend_complete(self, thread: _Thread, event: Handle) -> None:
        if (f := self.foreign(thread)) is not None:
            self.complete(thread, f, event.request_id)

    def irecv(self, thread: _Thread, event: Handle) -> None:
        if (f := self.foreign(thread)) is None:
            return
        self.complete(thread, f, event.request_id)
        begun, which = self.pending[thread.rank].pop(event.request_id, (None, 0))
        events = self.source.lists[thread.rank]
        if begun is not None and begun.place >= 0:
            events[begun.place + which] = events[begun.place + which]._replace(
                comm=self.comms.get(event.communicator, 0),
                peer=event.sender,
                tag=event.msg_tag,
                size_bytes=event.msg_length,
            )

    def collective(self, thread: _Thread, event: Handle) -> None:
        if (f := self.foreign(thread)) is not None:
            comm = self.comms.get(event.communicator, 0)
            members = len(self.source.info.members(comm, thread.rank))
            name = _blocking(thread.calls[0].name)
            size, back = others.collective_sizes(name, event.size_sent, event.size_received, members)
            f.update(comm=comm, size_bytes=size, recv_bytes=back)
            if event.root < self.source.info.size:
                f["root"] = event.root


def _blocking(name: str) -> str:
    return model.ops()[model.ops()[model.op_number(name)].blocking].name


def read(path: Path) -> MemorySource:
    """Reads an archive by its anchor file, or the directory that holds traces.otf2."""
    otf2 = _library()
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
