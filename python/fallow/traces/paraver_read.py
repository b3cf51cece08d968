"""Reads Paraver traces: Fallow's own exactly, those of other tools by the names in their .pcf."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fallow.errors import UserError
from fallow.traces import model, others
from fallow.traces.model import COMM_WORLD, FIRST_COMM, Event, Info, MemorySource, Run, Site
from fallow.traces.packed import PackedEvents
from fallow.traces.paraver import (
    COMM,
    COMM_SIDES,
    MPI_LIBRARY,
    MPI_TYPES,
    OWN,
    PROGRAM,
    RECV_SIZE,
    ROOT,
    RUN,
    SCALARS,
    SEND_SIZE,
    SHIFT,
    SHIFTED,
    SITE,
    type_of,
    value_of,
)
from fallow.traces.text import FormatError, read_lines, sides_of, site_of, text_of, whole

_MAX_RANKS = 1 << 21
_HEADER = re.compile(r"#Paraver \([^)]*\):(\d+)(?:_([nu]s))?:(\d+(?:\([\d,]*\))?):(\d+):(\d+)\(([\d:,]*)\)(?:,(\d+))?$")


Sides = tuple[list[Run], list[Run]]


@dataclass
class _Labels:
    """What the .pcf says."""

    names: dict[tuple[int, int], str]  # of calls by (type, value): where it has none, Extrae's
    sites: list[Site] = field(default_factory=list)
    sides: dict[int, Sides] = field(default_factory=dict)  # groups of intercommunicators by number
    run: dict[int, str] = field(default_factory=dict)  # names of what ran


@dataclass
class _Open:
    """A call whose end was not read yet."""

    name: str
    fields: dict[str, Any]
    enter_ns: int


class _Reader:
    def __init__(self, line: str, labels: _Labels, nodes: list[str]) -> None:
        found = _HEADER.match(line)
        if found is None:
            raise ValueError("not the header of a Paraver trace of one application")
        if found[4] != "1":
            raise ValueError("traces of several applications cannot be read")
        self.unit_ns = 1 if found[2] == "ns" else 1000  # without a unit all times are in us
        self.end_ns = self.time(found[1])
        self.ranks = whole(found[5], 1, _MAX_RANKS)
        if len(found[6].split(",")) != self.ranks:
            raise ValueError(f"{self.ranks} tasks, but threads of {len(found[6].split(','))}")
        self.names, self.sides = labels.names, labels.sides
        self.calls = [PackedEvents() for _ in range(self.ranks)]
        info = Info(self.ranks, labels.run.get(PROGRAM, ""), labels.run.get(MPI_LIBRARY, ""), sites=labels.sites)
        info.hosts = _hosts(found[6], nodes)
        self.source = MemorySource(info, self.calls)
        self.open: dict[tuple[int, int], _Open] = {}
        self.comms: dict[int, int] = {}
        self.last_exit: dict[tuple[int, int], int] = {}
        self.messages: list[others.Message] = []
        self.roots: list[set[others.Place]] = [set() for _ in range(self.ranks)]
        self.own = False

    def time(self, text: str) -> int:
        return whole(text) * self.unit_ns

    def comm_line(self, f: list[str]) -> None:
        number, count = whole(f[2]), whole(f[3], 1, self.ranks)
        members = [whole(x, 1, self.ranks) - 1 for x in f[4:]]
        if len(members) != count or len(set(members)) != count:
            raise ValueError(f"communicator {number} does not have {count} tasks")
        if members == list(range(self.ranks)) and COMM_WORLD not in self.comms.values() and number not in self.sides:
            self.comms[number] = COMM_WORLD
            return
        sides = self.sides.get(number) or (model.runs_of(members), [])
        if sides[1] and not _are_sides(sides, members):
            raise ValueError(f"communicator {number} has other tasks than the two groups that the .pcf gives it")
        self.source.info.comms.append(sides)
        self.comms[number] = FIRST_COMM + len(self.source.info.comms) - 1

    def place(self, f: list[str], at: int) -> tuple[int, int]:
        if whole(f[at]) != 1:
            raise ValueError("traces of several applications cannot be read")
        return whole(f[at + 1], 1, self.ranks) - 1, whole(f[at + 2], 1, 65535) - 1

    def record(self, line: str) -> None:
        f = line.split(":")
        if f[0] == "2":
            self.events(f)
        elif f[0] == "3":
            self.message(f)
        elif f[0] == "c":
            self.comm_line(f)
        elif f[0] not in ("1", "4") and not f[0].startswith("#"):
            raise ValueError(f"unknown record {f[0]!r}")

    def events(self, f: list[str]) -> None:
        who, time = self.place(f, 2), self.time(f[5])
        if len(f) < 8 or len(f) % 2 != 0:
            raise ValueError("an event lacks its value")
        pairs = [(whole(t), whole(v)) for t, v in zip(f[6::2], f[7::2], strict=True)]
        calls = [(t, v) for t, v in pairs if t in MPI_TYPES]
        for kind, value in calls:
            if value == 0:
                self.close(who, time)
            else:
                self.close(who, time)  # a call inside another: the outer one ends here
                self.open[who] = _Open(self.names.get((kind, value), ""), {}, time)
        if calls and who in self.open:
            self.fields(self.open[who], pairs)
            if (ROOT, 1) in pairs:
                self.roots[who[0]].add((who[1], time))

    def fields(self, call: _Open, pairs: list[tuple[int, int]]) -> None:
        for kind, value in pairs:
            if OWN <= kind < OWN + len(Event._fields):
                self.own = True
                name = Event._fields[kind - OWN]
                if name in model.LISTS:
                    call.fields[name] = (*call.fields.get(name, ()), value)
                elif name == "comm":
                    call.fields[name] = self.comms.get(value, value if value <= model.COMM_SELF else 0)
                elif name in SCALARS or name == "compute_ns":
                    call.fields[name] = value - SHIFT if name in SHIFTED else value
            elif kind == SEND_SIZE:
                call.fields.setdefault("size_bytes", value)
            elif kind == RECV_SIZE:
                call.fields.setdefault("recv_bytes", value)
            elif kind == COMM:
                call.fields.setdefault("comm", self.comms.get(value, COMM_WORLD if value == 1 else 0))

    def close(self, who: tuple[int, int], time: int) -> None:
        call = self.open.pop(who, None)
        if call is None:
            return
        if time < call.enter_ns:
            raise ValueError("a call ends before it begins")
        rank, thread = who
        last = self.last_exit.get(who, call.enter_ns)
        fields = {"compute_ns": max(call.enter_ns - last, 0)} | call.fields
        event = Event(op=model.op_number(call.name), thread=thread, enter_ns=call.enter_ns, exit_ns=time)
        if fields.get("site", 0) > len(self.source.info.sites):
            fields["site"] = 0  # nobody says what it is
        self.calls[rank].append(event._replace(**fields))
        self.last_exit[who] = time

    def message(self, f: list[str]) -> None:
        (source, s_thread), (to, t_thread) = self.place(f, 2), self.place(f, 8)
        sent, received, arrived = self.time(f[5]), self.time(f[11]), self.time(f[12])
        size, tag = whole(f[13]), whole(f[14], 0, 2**31 - 1)
        begun = (t_thread, min(received, arrived))
        if not self.own:  # whose calls say it themselves
            self.messages.append(others.Message(source, (s_thread, sent), to, begun, arrived, size, tag))

    def finish(self) -> MemorySource:
        for who in list(self.open):
            self.close(who, max(self.end_ns, self.open[who].enter_ns))
        for events in self.calls:
            events.put_in_order()
        self.source.info.clock = model.clock_of(self.source.lists)
        if not self.own:
            others.complete(self.source, self.messages, self.roots)
        return self.source


def _are_sides(sides: Sides, members: list[int]) -> bool:
    """Whether the two groups are, one after the other, these ranks."""
    if sum(count for side in sides for _, count, _ in side) != len(members):
        return False
    return [first + i * stride for side in sides for first, count, stride in side for i in range(count)] == members


def _labels(path: Path) -> _Labels:
    """Names of calls, call sites and groups of intercommunicators, of a .pcf that need not be there."""
    labels = _Labels({(type_of(op), value_of(op)): op.name for op in model.ops()})
    if not path.is_file():
        return labels
    kinds: list[int] = []
    section = ""
    for _, line in read_lines(path):
        words = line.split(maxsplit=2)
        if words[0] in ("EVENT_TYPE", "VALUES", "STATES", "STATES_COLOR", "GRADIENT_COLOR"):
            kinds = [] if words[0] == "EVENT_TYPE" else kinds
            section = words[0]
        elif section == "EVENT_TYPE" and len(words) == 3 and words[1].isdecimal():
            kinds.append(int(words[1]))
        elif section == "VALUES" and len(words) >= 2 and words[0].isdecimal():
            text = line.split(maxsplit=1)[1]
            labels.names.update({(kind, int(words[0])): words[1] for kind in kinds if kind in MPI_TYPES})
            if kinds == [SITE] and words[0] == str(len(labels.sites) + 1):
                labels.sites.append(site_of(text) or (0, "", ""))
            elif kinds == [COMM_SIDES] and (sides := sides_of(text)) is not None:
                labels.sides[int(words[0])] = sides
            elif kinds == [RUN]:
                labels.run[int(words[0])] = text_of(text)
    return labels


def _hosts(tasks: str, names: list[str]) -> list[str]:
    """Each task's node, by name where the .row has one."""
    hosts = []
    for task in tasks.split(","):
        number = task.partition(":")[2]
        node = whole(number, 0, _MAX_RANKS) if number else 1
        hosts.append(names[node - 1] if 1 <= node <= len(names) else f"node{node}")
    return hosts


def _node_names(path: Path) -> list[str]:
    """Names of the nodes that the .row lists; none where there is no such file."""
    if not path.is_file():
        return []
    lines = [line for _, line in read_lines(path)]
    for at, line in enumerate(lines):
        words = line.split()
        if words[:3] == ["LEVEL", "NODE", "SIZE"] and len(words) == 4 and words[3].isdecimal() and len(words[3]) < 9:
            return lines[at + 1 : at + 1 + min(int(words[3]), len(lines))]
    return []


def read(path: Path) -> MemorySource:
    """Reads one .prv with the .pcf beside it."""
    labels, nodes = _labels(path.with_suffix(".pcf")), _node_names(path.with_suffix(".row"))
    reader: _Reader | None = None
    number = 0
    for number, line in read_lines(path):
        try:
            if reader is None:
                reader = _Reader(line, labels, nodes)
            else:
                reader.record(line)
        except IndexError:
            raise FormatError(path, number, "the record lacks a field") from None
        except (ValueError, OverflowError) as error:
            raise FormatError(path, number, str(error)) from None
    if reader is None:
        raise UserError(f"{path}: line 1: the file is empty")
    try:
        return reader.finish()
    except ValueError as error:
        raise FormatError(path, number, str(error)) from None
