"""Programs drawn at random from legal MPI operations end, with the right data, in every wait mode.

`drawn/main.c` draws what it does from a seed, which a failure names. DRAWN_SEEDS=100:400 runs others than those of the long test.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from harness.fallow import BARE, Fallow
from harness.hosts import Hosts, launcher
from harness.lab import Lab, assert_same
from harness.running import Outcome
from harness.traces import replay

_PHASES = 8
_WAYS = {
    "auto": ("auto", []),
    "sleep": ("sleep", []),
    "twin": ("sleep", ["--hook", "twin"]),
    "trace": ("auto", ["--trace", "trace.ftr"]),
    "cpu": ("sleep", ["--trace", "trace.ftr", "--clock", "cpu"]),
    "careless": ("auto", ["--slowdown", "20%"]),
    "yield": ("yield", []),
    "spin": ("spin", []),
}


def _seeds() -> Sequence[int]:
    first, _, end = os.environ.get("DRAWN_SEEDS", "100:140").partition(":")
    return range(int(first), int(end or int(first) + 1))


Runs = Callable[[str, Sequence[str]], Outcome]
"""Runs a program in a mode with options of `fallow run`."""


def _command(lab: Lab, seed: int, threads: bool = False) -> tuple[Path, str, str, str]:
    return lab.drawn(), str(seed), str(_PHASES), str(int(threads))


def _check(runs: Runs, ways: Sequence[str]) -> None:
    bare = runs(BARE, [])
    assert not bare.timed_out and bare.rc == 0, "bare program: " + bare.describe()
    for way in ways:
        assert_same(bare, runs(*_WAYS[way]))


def _on_one_host(lab: Lab, seed: int) -> Runs:
    chance = random.Random(seed)
    ranks, threads = chance.choice((2, 2, 3, 4, 5)), chance.randrange(4) == 0
    command = _command(lab, seed, threads)
    return lambda mode, options: lab.run(mode, ranks, *command, options=options).outcome


def _on_two_hosts(lab: Lab, hosts: Hosts, seed: int, each: int) -> Runs:
    # The UCX of MPICH 5 loses messages between hosts, without Fallow, too.
    env = {"MPIR_CVAR_CH4_NETMOD": "ofi"} if lab.family.name == "mpiabi" else {}
    command = [*launcher(lab.family, hosts, each), "-n", str(2 * each), *map(str, _command(lab, seed))]

    def run(mode: str, options: Sequence[str]) -> Outcome:
        argv = command if mode == BARE else lab.fallow.wrap(mode, Path("record"), command, *options)
        return lab.start(BARE, hosts.on_first(argv), env=env)[0].finish()

    return run


@pytest.mark.parametrize("seed", range(4))
def test_drawn_program(lab: Lab, seed: int) -> None:
    """Each of the ways comes with one of the seeds."""
    _check(_on_one_host(lab, seed), list(_WAYS)[seed::4])


@pytest.mark.parametrize("seed", range(3))
def test_drawn_program_on_two_hosts(lab: Lab, hosts: Hosts, seed: int) -> None:
    """Ranks see the states of those of their own host only."""
    _check(_on_two_hosts(lab, hosts, seed, (1, 1, 2)[seed]), list(_WAYS)[seed:6:3])


def _check_replay(lab: Lab, fallow: Fallow, seed: int, threads: bool) -> None:
    trace = lab.scratch / f"run-{threads}.ftr"
    run = lab.run("auto", 2 + seed % 2, *_command(lab, seed, threads), options=["--trace", str(trace)]).outcome
    assert run.rc == 0, run.describe()
    assert "unreceived" not in replay(fallow, trace)["simulations"][0]["raw"]


@pytest.mark.parametrize("seed", range(2))
def test_trace_of_a_drawn_program_is_replayed(lab: Lab, fallow: Fallow, seed: int) -> None:
    _check_replay(lab, fallow, seed, seed == 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", _seeds())
def test_traces_of_drawn_programs_are_replayed(lab: Lab, fallow: Fallow, seed: int) -> None:
    for threads in (False, True):
        _check_replay(lab, fallow, seed, threads)


@pytest.mark.long
@pytest.mark.parametrize("seed", _seeds())
def test_drawn_programs(lab: Lab, seed: int) -> None:
    _check(_on_one_host(lab, seed), list(_WAYS))


@pytest.mark.long
@pytest.mark.parametrize("seed", _seeds())
def test_drawn_programs_on_two_hosts(lab: Lab, hosts: Hosts, seed: int) -> None:
    # With six ranks on two cores, MPICH 5 may take a minute, without Fallow, too.
    each = random.Random(seed).choice((1, 2) if lab.family.name == "mpiabi" else (1, 2, 3))
    _check(_on_two_hosts(lab, hosts, seed, each), list(_WAYS))
