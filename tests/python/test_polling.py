"""What the report says of programs that test with something in between."""

from __future__ import annotations

import dataclasses

import pytest

from fallow import analyse
from fallow import polling as loops
from rank_writer import Call, RankFile, write_run

OPS = [("", "other"), ("MPI_Recv", "recv"), ("MPI_Test", "test"), ("MPI_Send", "send")]
SITES = {1: (0x401234, 0), 2: (0x401300, 0)}


def polling(gap_ns: int, tests: int = 2000, other_every: int = 1000) -> RankFile:
    """Tests of 100 ns each, `gap_ns` apart, and a receive after every so many."""
    calls, at = [], 0
    for number in range(1, tests + 1):
        calls.append(Call(at + gap_ns, at + gap_ns + 100, 2, site=2))
        at = calls[-1].exit
        if number % other_every == 0:
            calls.append(Call(at, at + 50, 1))
            at = calls[-1].exit
    return RankFile(calls=calls, ops=OPS, sites=SITES, ring_events=16384)


def told(tmp_path, *files: RankFile, **options: str) -> list[str]:
    report = analyse.load(write_run(tmp_path / "r", list(files), **({"options": options} if options else {})))
    return [note for note in report.health.notes if "--test-gap" in note]


def test_what_to_try_is_told(tmp_path):
    (note,) = told(tmp_path, polling(300))
    assert "100.0 % of the core time" in note
    assert "2 000 tests (MPI_Test), 300 ns apart" in note
    assert "--test-gap 1us" in note


@pytest.mark.parametrize(
    "file",
    [
        polling(10),  # left awake for another reason
        polling(20_000, 200, 100),  # who does that much between tests is at work
        polling(300, other_every=50),  # loops of 20 us
        dataclasses.replace(polling(300), oversubscribed=1),  # nobody rests there
        dataclasses.replace(polling(300), program=b"/usr/bin/python3.11"),  # rests as it is
        RankFile(calls=[Call(0, 1_000_000)], ops=OPS, sites=SITES),
    ],
    ids=["close", "far", "short", "crowded", "python", "none"],
)
def test_where_it_would_not_help_nothing_is_told(tmp_path, file):
    assert told(tmp_path, file) == []


def test_python_is_told_of_longer_gaps(tmp_path):
    (note,) = told(tmp_path, dataclasses.replace(polling(600), program=b"/usr/bin/python3.11"))
    assert "--test-gap 2us" in note


def test_what_was_chosen_is_not_advised(tmp_path):
    assert told(tmp_path, polling(300), test_gap="1us") == []


def test_a_tenth_of_the_time_is_worth_a_note(tmp_path):
    works = RankFile(calls=[Call(0, 1000), Call(20_000_000, 20_001_000)], ops=OPS, sites=SITES, rank=1, size=2)
    assert told(tmp_path, polling(300), works) == []


def test_damaged_totals_are_survived(tmp_path):
    run = write_run(tmp_path / "r", [polling(300)])
    (file,) = run.glob("rank-*")
    whole = bytearray(file.read_bytes())
    site = whole.index((0x401300).to_bytes(8, "little"))  # SiteStats: address, four numbers of 32 bits, calls
    assert int.from_bytes(whole[site + 24 : site + 32], "little") == 2000
    whole[site + 24 : site + 32] = bytes(8)
    file.write_bytes(whole)
    assert not [note for note in analyse.load(run).health.notes if "--test-gap" in note]


def test_rests_in_tests_are_not_time_spent_in_them():
    tests = loops.Tests()
    tests.gaps_s, tests.time_s, tests.asleep_s = 3.0, 5.0, 4.0
    assert tests.spent_s == 4.0


def test_it_is_told_that_tests_were_counted_only():
    assert loops.counted_notes(0, 100) == loops.counted_notes(1, 100) == []
    (note,) = loops.counted_notes(500, 1500)
    assert note.startswith("33.3 % of the calls are tests, short messages, waits for these, short collective and one-sided calls that were counted only")
