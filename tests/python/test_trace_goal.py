"""GOAL: what waits for what, and how long ranks compute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from fallow.traces import convert
from fallow.traces.model import COMM_WORLD, FIRST_COMM, Info, MemorySource
from trace_samples import Rank


class Task(NamedTuple):
    """A line of GOAL, and the numbers of all lines that must be through before it begins."""

    text: str
    after: frozenset[int]


def tasks(path: Path) -> Iterator[list[Task]]:
    """Of each rank."""
    for text in path.read_text().split("rank ")[1:]:
        found: list[Task] = []
        needs = {int(a): set() for a in re.findall(r"^l(\d+): ", text, re.M)}
        for a, b in re.findall(r"^l(\d+) requires l(\d+)$", text, re.M):
            needs[int(a)] |= {int(b)}
        for number, what in re.findall(r"^l(\d+): (.*)$", text, re.M):
            direct = needs[int(number)]
            found.append(Task(what, frozenset(direct.union(*(found[n - 1].after for n in direct)))))
        yield found


def written(source: MemorySource, tmp_path: Path) -> list[list[Task]]:
    lost = convert.convert(source, tmp_path / "a.goal", None)
    assert any("times inside MPI, call sites" in line for line in lost)
    return list(tasks(tmp_path / "a.goal"))


def collective(name: str, ranks: int, tmp_path: Path, **fields: object) -> list[list[Task]]:
    """Each rank's tasks, of one call and computation behind it."""
    source = MemorySource(Info(size=ranks))
    for r in range(ranks):
        rank = Rank(source, r)
        rank.call(name, comm=COMM_WORLD, **fields)
        rank.call("MPI_Finalize", gap=77)
    return written(source, tmp_path)


def moves(rank: list[Task]) -> str:
    """Whom it sends to and receives from, one after the other."""
    return " ".join(re.sub(r"(send|recv) .* (\d+) tag .*", r"\1 \2", t.text) for t in rank if not t.text.startswith("calc"))


def test_computation_is_in_nanoseconds_and_waits_for_what_was_before(tmp_path: Path) -> None:
    source = MemorySource(Info(size=2))
    for r in range(2):
        rank, other = Rank(source, r), 1 - r
        rank.call("MPI_Isend", comm=COMM_WORLD, peer=other, tag=1, size_bytes=8, requests=(0,))
        rank.call("MPI_Recv", gap=1234, comm=COMM_WORLD, peer=other, tag=1, size_bytes=8)
        rank.call("MPI_Wait", gap=5, completed=(0,))
        rank.call("MPI_Sendrecv", gap=6, comm=COMM_WORLD, peer=other, tag=2, size_bytes=3, recv_peer=other, recv_tag=2, recv_bytes=4)
        rank.call("MPI_Finalize", gap=7)
    for r, found in enumerate(written(source, tmp_path)):
        to, back = f"to {1 - r} tag", f"from {1 - r} tag"
        assert [(t.text, sorted(t.after)) for t in found] == [
            (f"send 8b {to} 1", []), ("calc 1234", []), (f"recv 8b {back} 1", [2]), ("calc 5", [2, 3]),
            ("calc 0", [1, 2, 3, 4]),  # what was begun is over
            ("calc 6", [1, 2, 3, 4, 5]), (f"send 3b {to} 2", [*range(1, 7)]), (f"recv 4b {back} 2", [*range(1, 7)]),
            ("calc 0", [*range(1, 9)]), ("calc 7", [*range(1, 10)]),
        ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["MPI_Barrier", "MPI_Allreduce", "MPI_Bcast", "MPI_Reduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Gather", "MPI_Scatter"]
)
def test_what_follows_a_collective_waits_for_all_of_its_messages(tmp_path: Path, name: str) -> None:
    for rank in collective(name, 5, tmp_path, root=2, size_bytes=40, recv_bytes=40):
        assert rank[-1] == Task("calc 77", frozenset(range(1, len(rank))))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("MPI_Bcast", ["recv 4", "recv 2", "send 1 send 4 send 3", "recv 2", "recv 2 send 0"]),
        ("MPI_Reduce", ["send 4", "send 2", "recv 3 recv 4 recv 1", "send 2", "recv 0 send 2"]),
        ("MPI_Gather", ["send 2", "send 2", "recv 0 recv 1 recv 3 recv 4", "send 2", "send 2"]),
        ("MPI_Scatter", ["recv 2", "recv 2", "send 0 send 1 send 3 send 4", "recv 2", "recv 2"]),
        ("MPI_Scan", ["send 1 recv 4 send 2 recv 3 send 4 recv 1"]),
    ],
)
def test_what_hands_on_has_got_it_before(tmp_path: Path, name: str, wanted: list[str]) -> None:
    """Trees have the root, 2, at their top; rank 4 hands on what is for rank 0, or comes from it."""
    found = collective(name, 5, tmp_path, root=2, size_bytes=40, recv_bytes=60)
    assert [moves(r) for r in found][: len(wanted)] == wanted
    if name in ("MPI_Bcast", "MPI_Reduce"):
        assert all(task.after == set(range(1, number)) for r in found for number, task in enumerate(r, 1))


def test_blocks_of_collectives_have_the_bytes_of_one_rank(tmp_path: Path) -> None:
    sizes = {"MPI_Alltoall": "8", "MPI_Allreduce": "40", "MPI_Bcast": "40", "MPI_Allgather": "40", "MPI_Scan": "40", "MPI_Barrier": "1"}
    for name, size in sizes.items():
        found = collective(name, 5, tmp_path, root=2, size_bytes=40, recv_bytes=40 if name != "MPI_Allgather" else 200)
        texts = [t.text for r in found for t in r if not t.text.startswith("calc")]
        assert {re.findall(r"(\d+)b", text)[0] for text in texts} == {size}, name
    gathered = collective("MPI_Gather", 4, tmp_path, root=2, size_bytes=40, recv_bytes=160)
    assert {re.findall(r"(\d+)b", t.text)[0] for r in gathered for t in r if "calc" not in t.text} == {"40"}


def test_calls_one_after_the_other_take_no_messages_of_each_other(tmp_path: Path) -> None:
    """Nor those of another communicator; partners are ranks of the program."""
    source = MemorySource(Info(size=4, comms=[([(2, 2, 1)], [])]))
    for r in (2, 3):
        for comm in (COMM_WORLD, FIRST_COMM, FIRST_COMM):
            Rank(source, r).call("MPI_Bcast", comm=comm, size_bytes=8, root=0)
    tags = re.findall(r"from (\d) tag (\d+)", "\n".join(t.text for t in written(source, tmp_path)[3]))
    assert [partner for partner, _ in tags] == ["2", "2", "2"] and len({tag for _, tag in tags}) == 3


def test_what_is_received_of_each_rank_may_differ_from_what_it_is_sent(tmp_path: Path) -> None:
    source = MemorySource(Info(size=3))
    for r in range(3):
        sent, back = (tuple(10 * r + other + 1 for other in range(3)), tuple(10 * other + r + 1 for other in range(3)))
        Rank(source, r).call("MPI_Alltoallv", comm=COMM_WORLD, counts=sent, recv_counts=back)
    sizes = [re.findall(r"(send|recv) (\d+)b", "\n".join(t.text for t in r)) for r in written(source, tmp_path)]
    assert sizes[0] == [("send", "2"), ("recv", "21"), ("send", "3"), ("recv", "11")]
    assert sizes[2] == [("send", "21"), ("recv", "13"), ("send", "22"), ("recv", "3")]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("MPI_Alltoallv", {"counts": (1, 2), "recv_counts": (1, 2, 3)}), ("MPI_Gatherv", {"root": 1, "recv_counts": (8,)}),
        ("MPI_Scatterv", {"root": 1, "counts": (8,)}), ("MPI_Gather", {"root": 9}), ("MPI_Bcast", {"root": 3}),
    ],
)  # fmt: skip
def test_collectives_that_do_not_fit_their_communicator_are_left_out(tmp_path: Path, name: str, fields: dict[str, object]) -> None:
    source = MemorySource(Info(size=3))
    for r in range(3):
        Rank(source, r).call(name, comm=COMM_WORLD, size_bytes=8, **fields)
    lost = convert.convert(source, tmp_path / "a.goal", None)
    assert any(f"{name} with a root or counts that do not fit its communicator" in line for line in lost)
    assert not any(tasks(tmp_path / "a.goal"))


def test_a_non_blocking_collective_runs_beside_what_follows_until_its_wait(tmp_path: Path) -> None:
    source = MemorySource(Info(size=3))
    for r in range(3):
        rank = Rank(source, r)
        rank.call("MPI_Ibarrier", gap=3, comm=COMM_WORLD, requests=(0,))
        rank.call("MPI_Iallreduce", gap=5, comm=COMM_WORLD, size_bytes=8, requests=(1,))
        rank.call("MPI_Wait", gap=6, completed=(1,))
        rank.call("MPI_Wait", gap=7, completed=(0,))
        rank.call("MPI_Finalize", gap=8)
    found = written(source, tmp_path)[0]
    texts = [re.sub(r" tag .*", "", t.text) for t in found]
    rounds = ["to 1", "from 2"], ["to 2", "from 1"]
    barrier = [f"{verb} 1b {whom}" for both in rounds for verb, whom in zip(("send", "recv"), both, strict=True)]
    reduction = [text.replace("1b", "8b") for text in barrier]
    assert texts == [
        *barrier[:2], "calc 0", *barrier[2:], "calc 0", "calc 5", *reduction[:2], "calc 0", *reduction[2:], "calc 0",
        "calc 6", "calc 0", "calc 7", "calc 0", "calc 8",
    ]  # fmt: skip
    begun = set(range(1, 7))
    assert [found[n - 1].after for n in (3, 6, 7)] == [{1, 2}, {1, 2, 3, 4, 5}, set()]
    assert found[13 - 1].after == set(range(7, 13)) and found[14 - 1].after == {7}
    assert found[15 - 1].after == set(range(7, 15)), "the wait is for the reduction alone"
    assert found[17 - 1].after == begun | set(range(7, 17)) and found[18 - 1].after == begun | set(range(7, 18))


def test_that_messages_lose_their_communicators_is_said(tmp_path: Path) -> None:
    for comm, times in ((COMM_WORLD, 0), (FIRST_COMM, 2)):
        source = MemorySource(Info(size=2, comms=[([(0, 2, 1)], [])]))
        Rank(source, 0).call("MPI_Send", comm=comm, peer=1, tag=0, size_bytes=8)
        Rank(source, 1).call("MPI_Recv", comm=comm, peer=0, tag=0, size_bytes=8)
        lost = convert.convert(source, tmp_path / "a.goal", None)
        assert sum("the communicators of messages" in line and "(2 times)" in line for line in lost) == times // 2


def test_threads_wait_for_themselves_alone(tmp_path: Path) -> None:
    """On a processor each; a request may be waited for in another thread than began it. A thread begins after what has ended then."""
    source = MemorySource(Info(size=2))
    first = Rank(source, 0)
    first.call("MPI_Barrier", gap=5, comm=COMM_WORLD)
    first.call("MPI_Isend", gap=7, comm=COMM_WORLD, peer=1, tag=9, size_bytes=8, requests=(0,))
    first.call("MPI_Recv", gap=7, lasts=1000, comm=COMM_WORLD, peer=1, tag=1, size_bytes=8)
    for thread, event in enumerate(("MPI_Recv", "MPI_Send"), 1):
        first.now = 700 + thread
        first.call(event, gap=0, comm=COMM_WORLD, peer=1, tag=2, size_bytes=8, thread=thread)
    first.now = 1100
    first.call("MPI_Wait", gap=0, completed=(0,), thread=2, compute_ns=3)
    first.now = 1700
    first.call("MPI_Finalize", gap=11, compute_ns=11)
    found = written(source, tmp_path)[0]
    assert [(t.text, sorted(t.after)) for t in found] == [
        (found[0].text, []), (found[1].text, []), ("calc 0", [1, 2]), ("calc 7", [1, 2, 3]), ("send 8b to 1 tag 9", [1, 2, 3, 4]),
        ("calc 7", [1, 2, 3, 4]), ("recv 8b from 1 tag 1", [1, 2, 3, 4, 6]),
        ("recv 8b from 1 tag 2 cpu 1", [1, 2, 3, 4, 6]), ("send 8b to 1 tag 2 cpu 2", [1, 2, 3, 4, 6]),
        ("calc 3 cpu 2", [1, 2, 3, 4, 6, 9]), ("calc 0 cpu 2", [1, 2, 3, 4, 5, 6, 9, 10]), ("calc 11", [1, 2, 3, 4, 6, 7]),
    ]  # fmt: skip
