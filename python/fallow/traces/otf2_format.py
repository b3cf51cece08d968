"""OTF2, the format of Score-P, TAU, Vampir and Scalasca, through its own library (pip install otf2).

A call is an Enter and a Leave of a region with the call's name, with OTF2's MPI records between them. What those
cannot say stands in attributes of the Enter, so that a trace read back is the same; other tools ignore them.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fallow.errors import UserError
from fallow.traces import model, otf2_errors, others, persistent
from fallow.traces.model import COMM_SELF, COMM_WORLD, FIRST_COMM, Event, Source
from fallow.traces.text import Losses, line_of, site_text

TIMER_HZ = 1_000_000_000
_CHUNK = 1 << 18  # bytes, the least; readers have one of each rank's in memory, of thousands together
_UNDEFINED_ROOT = 0xFFFFFFFF
ROOTS = {model.ROOT_HERE: 0xFFFFFFFE, model.NULL_PEER: 0xFFFFFFFD}
"""Of intercommunicators: the root itself, and the other ranks of its group."""
FIELDS = "fallow.call"
COMPUTE = "fallow.compute_ns"
WAIT = "fallow.wait_ns"
SITE = "fallow.site"
PROGRAM, MPI_LIBRARY = "fallow.program", "fallow.mpi_library"
"""Attributes that no call has: their descriptions are the names."""
KEPT = ("flags", "comm", "site", "peer", "tag", "recv_peer", "recv_tag", "root", "size_bytes", "recv_bytes")
_DEFAULTS = Event()


Handle = Any
"""An object of the library, which has no types."""
Requests = dict[int, tuple[int, str, Event]]
"""Open requests of a rank, by number: OTF2's number, what it is, and the call that began it."""


def library() -> Handle:
    """OTF2's own; UserError where it is not installed."""
    try:
        otf2 = importlib.import_module("otf2")
        importlib.import_module("otf2.writer")
        importlib.import_module("otf2.reader")
    except ImportError:
        raise UserError("OTF2 needs its Python library; install it with: pip install otf2") from None
    _mend_intercommunicators(otf2)
    return otf2


def _mend_intercommunicators(otf2: Handle) -> None:
    """The library has them as communicators with further fields, so that they can neither be written nor read."""
    inter: Handle = getattr(otf2.definitions, "InterComm", None)
    fields = {f.name: f for f in reversed(inter._fields)} if inter is not None else {}
    if "group" in fields:
        inter._fields = tuple(fields[name] for name in ("name", "groupA", "groupB", "parent", "flags"))


def _pack(e: Event) -> str:
    """What of a call is neither its name nor a time: "peer=3 size_bytes=8 requests=1,2"."""
    words = [f"{name}={getattr(e, name)}" for name in KEPT if getattr(e, name) != getattr(_DEFAULTS, name)]
    words += [f"{name}={','.join(map(str, getattr(e, name)))}" for name in model.LISTS if getattr(e, name)]
    return " ".join(words)


# --- writing


class _Writer:
    def __init__(self, otf2: Handle, trace: Handle, source: Source, losses: Losses) -> None:
        self.otf2, self.trace, self.source, self.losses = otf2, trace, source, losses
        d = trace.definitions
        self.fields = d.attribute(FIELDS, "fields of the call", otf2.Type.STRING)
        self.compute = d.attribute(COMPUTE, "computation before the call", otf2.Type.UINT64)
        self.wait = d.attribute(WAIT, "waiting inside the call", otf2.Type.UINT64)
        self.site = d.attribute(SITE, "where the call is made", otf2.Type.STRING)
        for name, text in ((PROGRAM, source.info.program), (MPI_LIBRARY, source.info.mpi_version)):
            d.attribute(name, line_of(text), otf2.Type.STRING)
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
        alone = d.group("self", group_type=otf2.GroupType.COMM_SELF, paradigm=mpi, members=())
        comms[COMM_SELF] = d.comm("MPI_COMM_SELF", group=alone, parent=comms[COMM_WORLD])
        for number in range(FIRST_COMM, FIRST_COMM + len(info.comms)):
            name, other = f"communicator {number}", group(f"group {number}", info.members(number, -1))
            if info.is_inter(number):  # who is in neither group addresses the first
                first = group(f"first group {number}", info.members(number, -1, remote=True))
                comms[number] = d.inter_comm(name, first, other, comms[COMM_WORLD])
            else:
                comms[number] = d.comm(name, group=other)
        return comms

    def rank(self, rank: int) -> None:
        writers: dict[int, Any] = {}
        open_requests: Requests = {}
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

    def records(self, w: Handle, rank: int, e: Event, open_requests: Requests) -> None:
        op = model.ops()[e.op]
        if op.has(model.STARTS) and op.kind in (1, 2, 3, 7):
            if (comm := self.comms.get(e.comm)) is None:
                if e.peer >= 0 or op.has(model.COLLECTIVE):
                    self.losses.add("messages and collectives of unknown communicators as such")
            elif op.has(model.COLLECTIVE):
                self.collective(w, rank, e, open_requests)
            else:
                self.message(w, op, e, comm, open_requests)
        for r, outcome in persistent.outcomes(e):
            number, kind, begun = open_requests.pop(r, (0, "", e))
            if kind == "send":
                w.mpi_isend_complete(e.exit_ns, number)
            elif kind == "collective":
                w.non_blocking_collective_complete(e.exit_ns, *self.sides(rank, begun), number)
            elif kind == "recv" and (begun := persistent.with_outcome(begun, *outcome)).peer >= 0:
                w.mpi_irecv(e.exit_ns, begun.peer, self.comms[begun.comm], max(begun.tag, 0), begun.size_bytes, number)

    def sides(self, rank: int, e: Event) -> tuple[Handle, Handle, int, int, int]:
        """Of a collective: what it is, communicator, root, bytes given and got."""
        blocking = model.ops()[model.ops()[e.op].blocking].name
        kind = getattr(self.otf2.CollectiveOp, blocking.removeprefix("MPI_").upper(), None)
        root = e.root if e.root >= 0 else ROOTS.get(e.root, _UNDEFINED_ROOT)
        given, got, _ = others.told(self.source.info, rank, e)
        return kind, self.comms[e.comm], root, given, got

    def collective(self, w: Handle, rank: int, e: Event, open_requests: Requests) -> None:
        sides = self.sides(rank, e)
        if sides[0] is None:  # OTF2 knows none between neighbours
            return
        if model.ops()[e.op].has(model.CREATES):
            for request in e.requests:
                self.request += 1
                open_requests[request] = (self.request, "collective", e)
                w.non_blocking_collective_request(e.enter_ns, self.request)
            return
        w.mpi_collective_begin(e.enter_ns)
        w.mpi_collective_end(e.exit_ns, *sides)

    def message(self, w: Handle, op: model.Op, e: Event, comm: Handle, open_requests: Requests) -> None:
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
    otf2 = library()
    folder = folder_of(path)
    folder.parent.stat()  # the library would make what is not there of that, too
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: OTF2 is written into a new directory; this one holds something")
    trace, given = None, folder.exists()
    with otf2_errors.collected() as complaints:
        try:
            trace = otf2.writer.Writer(str(folder), timer_resolution=TIMER_HZ, chunk_size_events=_CHUNK)
            writer = _Writer(otf2, trace, source, losses)
            for rank in range(source.info.size):
                writer.rank(rank)
            trace.close()  # where all went well: of thousands of ranks it takes half a minute, and no interrupt
            if complaints.told:  # closing an archive does not fail
                raise UserError(complaints.cause(folder))
        except BaseException as error:
            otf2_errors.abandon(error, trace, folder, given=given)
            if isinstance(error, UserError | OSError) or not isinstance(error, Exception):
                raise
            cause = complaints.cause(folder) if complaints.told else f"{folder}: {error}"
            raise UserError(cause) from None  # the library's own
