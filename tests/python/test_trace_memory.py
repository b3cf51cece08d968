"""What readers keep of calls: all of it, in little memory."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import pytest

from fallow.traces import convert, model
from fallow.traces.model import COMM_WORLD, Event, Info, MemorySource
from fallow.traces.packed import PackedEvents
from trace_samples import Rank


def event(number: int) -> Event:
    return Event(op=number % 50, enter_ns=number << 20, exit_ns=(number << 20) + 7, tag=-1, counts=(number, 1 << 61), requests=[number])


@pytest.mark.parametrize("count", [0, 1, 127, 128, 255, 256, 257, 1000])
def test_packed_events_are_like_a_list(count: int) -> None:
    chance = random.Random(count)
    plain, packed = [], PackedEvents()
    for number in range(count):
        plain.append(event(number))
        packed.append(event(number))
        if chance.random() < 0.2:  # also some that are packed, one after the other in any order
            place = chance.randrange(len(plain))
            assert packed[place] == plain[place]
            plain[place] = packed[place] = plain[place]._replace(size_bytes=number)
    assert len(packed) == count and list(packed) == plain
    for place, e in enumerate(packed):
        packed[place] = e._replace(site=place)
    assert list(packed) == [e._replace(site=place) for place, e in enumerate(plain)]


def test_packed_events_are_put_in_order() -> None:
    """Those of one instant stay as they came."""
    numbers = [n // 3 for n in range(900)]
    random.Random(1).shuffle(numbers)
    plain, packed = [], PackedEvents()
    for place, number in enumerate(numbers):
        plain.append(event(number)._replace(site=place))
        packed.append(plain[-1])
    packed[3] = plain[3] = plain[3]._replace(size_bytes=8)
    packed.put_in_order()
    assert list(packed) == sorted(plain, key=lambda e: e.enter_ns)
    packed.append(plain[0])
    assert list(packed)[-1] == plain[0] and len(packed) == 901


@pytest.mark.parametrize("ending", ["dim", "tit", "prv", "otf2"])
def test_long_traces_of_other_formats_need_little_memory(tmp_path: Path, ending: str) -> None:
    """Some tens of bytes for each call, where an event as such takes hundreds."""
    calls = 12_000
    source = MemorySource(Info(size=2))
    for r in range(2):
        rank = Rank(source, r)
        for number in range(calls // 3):
            rank.call("MPI_Irecv", comm=COMM_WORLD, peer=1 - r, tag=number % 7, size_bytes=number % 5, requests=(0,))
            rank.call("MPI_Send", comm=COMM_WORLD, peer=1 - r, tag=number % 7, size_bytes=number % 5)
            rank.call("MPI_Wait", completed=(0,))
    convert.convert(source, tmp_path / f"a.{ending}", None)
    path = tmp_path / "a" if ending == "otf2" else tmp_path / f"a.{ending}"
    tracemalloc.start()
    try:
        back = convert.open_source([path], None)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [model.ops()[e.op].name for e in back.events(1)][:3] == ["MPI_Irecv", "MPI_Send", "MPI_Wait"]
    assert sum(1 for _ in back.events(0)) == calls
    assert kept < 2 * calls * 100
