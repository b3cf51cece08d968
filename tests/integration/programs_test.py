"""Programs that need a run of their own: threads, signals, child processes, exceptions, odd ends, many ranks."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.building import build
from harness.fallow import BARE, MODES
from harness.lab import PROGRAMS, Lab, Trial, assert_same, assert_same_output
from harness.running import HANGS_S

SHORT_MODES = ("sleep", "auto")  # `make test`; the long form runs all four
# Spawned ranks: Debian's MPICH 4.0.2 has no working MPI_Comm_spawn, loaded with anything or not.
SPAWNS = ("openmpi", "mpiabi")
ENDS = {
    "abort": 42,
    "exit7": 7,
    "_exit8": 8,
    "return3": 3,
    "never": 9,
    "delete": 0,
    "atexit": 0,
    "busy": 0,
    "exit0": 0,
    "crash": -signal.SIGSEGV,
    "fatal": 6,  # MPI_ERR_RANK in every family
}
KILLED = ("abort", "crash", "fatal")  # all that the launcher had not read of the output is lost
# A launcher kills the ranks when one ends without MPI_Finalize; MPICH's reports that or the end of the one as it comes.
ALONE = ("exit0", "exit7", "_exit8")  # without a launcher
ALL_MODES = [pytest.param(SHORT_MODES, id="short"), pytest.param(MODES, id="all", marks=pytest.mark.long)]


@pytest.mark.parametrize("modes", ALL_MODES)
@pytest.mark.parametrize("source", ["threads.c", "timers.c", "throws.cpp", "fibers.c", "sessions.c", "kept_errno.c"])
def test_program(lab: Lab, source: str, modes: tuple[str, ...]) -> None:
    """The program's own checks hold and its output is the same."""
    expected = [0, 1] if lab.family.mpi4 or source != "sessions.c" else []  # without sessions it starts no MPI
    for trial in lab.compare(2, lab.program(source), modes=modes)[1:]:
        ranks = trial.ranks()
        assert [r.world_rank for r in ranks] == expected, trial.outcome.describe()
        assert all(r.finalized == 1 for r in ranks), trial.outcome.describe()


@pytest.mark.parametrize("modes", ALL_MODES)
@pytest.mark.parametrize(
    ("source", "calls"),
    [
        ("session_after.c", {"MPI_Allreduce": 2, "MPI_Session_finalize": 1}),
        ("first_ends.c", {"MPI_Sendrecv": 600, "MPI_Allreduce": 2, "MPI_Comm_free": 1, "MPI_Session_finalize": 1}),
    ],
)
def test_sessions_may_outlive(lab: Lab, source: str, calls: dict[str, int], modes: tuple[str, ...]) -> None:
    """MPI_Finalize, as recording ends with the last of both; and the thread that called MPI first."""
    for trial in lab.compare(2, lab.program(source), modes=modes)[1:]:
        ranks = trial.ranks()
        assert [r.world_rank for r in ranks] == ([0, 1] if lab.family.mpi4 else []), trial.outcome.describe()
        for rank in ranks:
            assert rank.finalized == 1, trial.outcome.describe()
            assert {name: rank.calls[name] for name in calls} == calls, trial.outcome.describe()


def test_communicators_made_from_one_with_a_topology(lab: Lab) -> None:
    """They are used without harm where the library is wrong about what they have, and copies have the neighbours that it has."""
    for trial in lab.compare(3, lab.program("derived.c"), modes=("sleep", "auto"))[1:]:
        functions = {f["function"]: f for f in lab.fallow.report(trial.record)["functions"]}
        exchanges = functions["MPI_Neighbor_alltoall"]  # on two copies each of two kinds with two neighbours and one with one
        assert (exchanges["calls"], exchanges["size_bytes"]) == (3 * 2 * 3, 3 * 2 * (16 + 16 + 8)), trial.outcome.describe()


@pytest.mark.parametrize("modes", ALL_MODES)
def test_calls_after_an_exception_count(lab: Lab, modes: tuple[str, ...]) -> None:
    """A call left by an exception or a long jump counts once, and so does each one after it."""
    for mode in modes:
        trial = lab.run(mode, 2, lab.program("throws.cpp"))
        ranks = trial.ranks()
        assert trial.outcome.rc == 0 and len(ranks) == 2, trial.outcome.describe()
        for rank in ranks:
            expected = {
                "MPI_Send": 3,
                "MPI_Recv": 3,
                "MPI_Ssend": 3,
                "MPI_Sendrecv": 12,
                "MPI_Allreduce": 12,
                "MPI_Finalize": 1,
            }
            assert {name: rank.calls[name] for name in expected} == expected, trial.outcome.describe()


def test_ignored_arguments_are_left_alone(lab: Lab, tmp_path: Path) -> None:
    """What MPI ignores, and the type of no data, is not handed to the MPI library, which would end the program."""
    bare = lab.compare(2, lab.program("ignored.c"), modes=SHORT_MODES)[0]
    for options in (["--trace", str(tmp_path / "trace.ftr")], ["--hook", "twin"]):
        trial = lab.run("sleep", 2, lab.program("ignored.c"), options=options)
        assert trial.outcome.rc == 0, trial.outcome.describe()
        assert_same_output(bare.outcome, trial.outcome)


@pytest.mark.measures  # MPICH's threads, which spin for each other's locks, take minutes where others use the cores, bare too
def test_threads_of_a_process_wake_each_other(lab: Lab) -> None:
    """What another thread of the same process sends or completes ends a sleep as what another rank sends does."""
    trial = lab.run("sleep", 1, lab.program("own_threads.c"))
    assert trial.outcome.rc == 0 and trial.outcome.out == "took turns\n", trial.outcome.describe()
    assert lab.fallow.report(trial.record)["totals"]["wakes_by_peer"] > 50, trial.outcome.describe()  # of 200 waits; 0 when none did


def test_spawned_ranks(lab: Lab) -> None:
    """MPI_Comm_spawn starts ranks that work like any other."""
    if lab.family.name not in SPAWNS:
        trial = lab.run(BARE, 2, lab.program("spawn.c"))
        assert trial.outcome.rc != 0, "MPI_Comm_spawn works here now: add this family to SPAWNS"
        return
    lab.compare(2, lab.program("spawn.c"), modes=SHORT_MODES)
    trial = lab.run("auto", 2, lab.program("spawn.c"))
    assert [row["label"] for row in lab.fallow.report(trial.record)["ranks"]] == ["1:0", "1:1", "2:0", "2:1"]


def test_sessions_without_a_launcher(lab: Lab) -> None:
    """Rank and size are those of the process set that every session has; a file without them cannot be read."""
    bare = lab.start(BARE, [lab.program("sessions.c")])[0].finish(HANGS_S)
    running, record = lab.start("auto", [lab.program("sessions.c")])
    outcome = running.finish(HANGS_S)
    assert outcome.rc == bare.rc, outcome.describe()
    if bare.rc != 0:  # Open MPI 5.0 as Debian builds it does not go without
        assert lab.family.name == "openmpi", bare.describe()
        return
    assert [(r.world_rank, r.world_size) for r in lab.records(record)] == ([(0, 1)] if lab.family.mpi4 else [])
    if lab.family.mpi4:
        assert lab.fallow.report(record)["totals"]["ranks"] == 1


def _end(lab: Lab, mode: str, program: Path, way: str) -> Trial:
    if way not in ALONE:
        return lab.run(mode, 2, program, way)
    running, record = lab.start(mode, [program, way])
    return Trial(mode, running.finish(HANGS_S), record)


def _reported(lab: Lab, way: str) -> set[int]:
    """The exit codes of a launcher, or of the program by itself, that can follow."""
    code = ENDS[way]
    if lab.family.name == "openmpi":
        return {128 - code if code < 0 else code}
    return {abs(code), signal.SIGKILL} if way in KILLED else {code}


@pytest.mark.parametrize("way", ENDS)
def test_end(lab: Lab, way: str) -> None:
    """Exit codes pass through, whichever way the program ends; nothing of it or of Fallow is left."""
    program = lab.program("ends.c")
    bare = _end(lab, BARE, program, way)
    trial = _end(lab, "auto", program, way)
    for outcome in (bare.outcome, trial.outcome):
        assert outcome.rc in _reported(lab, way), outcome.describe()
    assert not trial.outcome.timed_out and not trial.outcome.left_over, trial.outcome.describe()
    if bare.outcome.rc == 0 or way in ALONE:
        assert_same_output(bare.outcome, trial.outcome)
    elif way not in KILLED:
        # The launcher ends the other rank as soon as one fails: how many of the same lines it has read then differs.
        assert set(trial.outcome.out.splitlines()) == set(bare.outcome.out.splitlines()), trial.outcome.describe()
    if way == "abort":
        assert trial.ranks()[0].finalized == 2


def test_no_descriptor_is_kept(lab: Lab) -> None:
    """A program that closes every descriptor it did not open, and opens files of its own, meets none of Fallow's."""
    lab.compare(2, lab.program("descriptors.c"), modes=("auto",))


@pytest.mark.parametrize("way", ["0", "1", "2", "3", "4"])
def test_children(lab: Lab, way: str) -> None:
    """Children of a rank have the environment that they would have without Fallow."""
    trials = lab.compare(2, lab.program("children.c"), way, modes=("auto",))
    ranks = trials[1].ranks()
    assert [r.world_rank for r in ranks] == [0, 1], trials[1].outcome.describe()
    for rank in ranks:  # a forked copy that exits leaves its parent's record alone
        assert rank.finalized == 1 and rank.calls["MPI_Allreduce"] == 20 and rank.calls["MPI_Barrier"] == 2


def test_children_of_a_rank_whose_threads_come_and_go(lab: Lab) -> None:
    """A copy of a rank ends when its thread does, whatever other threads of the rank were doing when it was made."""
    for mode in (BARE, "auto"):
        running, _ = lab.start(mode, [lab.program("forks_beside.c"), "500"])
        outcome = running.finish(HANGS_S)
        assert outcome.rc == 0 and not outcome.timed_out, outcome.describe()  # one of 100 waited for ever


def test_children_with_a_preload_of_the_users(lab: Lab) -> None:
    """What the user preloads stays loaded, also in children, and is all that they see."""
    library = build(None, "nothing.so", [PROGRAMS / "nothing.c"], ["-shared", "-fPIC"], compiler="cc")
    trials = lab.compare(2, lab.program("children.c"), modes=("auto",), env={"LD_PRELOAD": str(library)})
    assert f"LD_PRELOAD here: {library}" in trials[1].outcome.out


def test_children_with_a_preload_of_a_scripts(lab: Lab) -> None:
    """What a script between `fallow run` and the program adds to LD_PRELOAD is seen by children, too."""
    library = build(None, "nothing.so", [PROGRAMS / "nothing.c"], ["-shared", "-fPIC"], compiler="cc")
    start = f'LD_PRELOAD="{library}${{LD_PRELOAD:+:$LD_PRELOAD}}" exec "$0"'
    launch = lab.family.launch(1, "sh", "-c", start, lab.program("children.c"))
    bare, other = (lab.start(mode, launch)[0].finish(HANGS_S) for mode in (BARE, "auto"))
    assert f"LD_PRELOAD here: {library}" in bare.out and bare.rc == 0, bare.describe()
    assert_same(bare, other)


_SECOND = '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]'
WITHOUT = {
    "none": "",
    "mute": f"if {_SECOND}; then export FALLOW_WAKE=0; fi; ",
    "one": f"if {_SECOND}; then unset LD_PRELOAD; fi; ",
}


@pytest.mark.parametrize("who", WITHOUT)
def test_who_is_not_under_fallow_is_not_relied_upon(lab: Lab, who: str) -> None:
    """A rank that was started without Fallow, or with `wake` off, wakes nobody: no wait is planned as if it did."""
    start = WITHOUT[who] + 'exec "$0"'
    launch = lab.family.launch(2, "sh", "-c", start, lab.program("descriptors.c"))
    running, _ = lab.start("auto", launch, options=["--verbose"])
    outcome = running.finish(HANGS_S)
    assert outcome.rc == 0, outcome.describe()
    assert outcome.err.count("ranks wake each other") == (2 if who == "none" else 0), outcome.describe()


def test_what_the_library_refuses(lab: Lab) -> None:
    """Who looks whom to wake asks the library nothing that it would call error handlers for, or end the program."""
    freed = ("freed",) if lab.family.name == "mpich" else ()  # others may crash, or say success once the handler was called
    for way in ("returns", "counts"):
        lab.compare(2, lab.program("refused.c"), way, *(freed if way == "counts" else ()), modes=("sleep",))


def test_a_type_that_is_refused(lab: Lab) -> None:
    """By the program's own call, not by a question of ours that its error handlers know nothing of."""
    if lab.family.name != "mpich":
        pytest.skip("types of other libraries are addresses, and wrong ones may crash")
    lab.compare(1, lab.program("bad_types.c"), modes=("sleep",))
    trial = lab.run("sleep", 1, lab.program("bad_types.c"), options=["--hook", "twin"])
    assert (trial.outcome.rc, trial.outcome.out) == (0, "refused\n"), trial.outcome.describe()


def test_a_communicator_that_is_freed_twice(lab: Lab, tmp_path: Path) -> None:
    """The trace asks nothing of it that an error handler is called for."""
    if lab.family.name != "mpich":
        pytest.skip("other libraries do not notice, or crash")
    bare = lab.run(BARE, 1, lab.program("free_twice.c")).outcome
    trial = lab.run("sleep", 1, lab.program("free_twice.c"), options=["--trace", str(tmp_path / "trace.ftr")])
    assert bare.rc == 0 and "called 1 times" in bare.out, bare.describe()
    assert_same(bare, trial.outcome)


def test_a_wait_that_a_signal_ends(lab: Lab) -> None:
    """What a look at a wait changes of its thread is put back where a handler jumps out of it."""
    if lab.family.name == "mpich":
        pytest.skip("UCX aborts when it is called again")
    bare, sleeping = (lab.start(mode, [lab.program("left_by_signal.c")])[0].finish(HANGS_S) for mode in (BARE, "sleep"))
    assert bare.rc == 0 and ", after 0 of them" in bare.out, bare.describe()
    assert_same(bare, sleeping)


def test_a_wait_in_which_a_handler_forks(lab: Lab) -> None:
    """What a sleep changes of its thread is put back in the child."""
    for trial in lab.compare(2, lab.program("forks_in_handler.c"), modes=("sleep", "auto")):
        assert "often forked, 0 children" in trial.outcome.out, trial.outcome.describe()


def test_reductions_between_groups(lab: Lab, tmp_path: Path) -> None:
    """No more counts are read than the caller's own group has members."""
    bare = lab.compare(3, lab.program("bridge.c"), modes=("auto",))[0]
    trial = lab.run("auto", 3, lab.program("bridge.c"), options=["--trace", str(tmp_path / "trace.ftr")])
    assert_same(bare.outcome, trial.outcome)


def test_a_stopped_clock(lab: Lab) -> None:
    """A tool that stops the program's clock does not stop the program, unless it stops the MPI library (MPICH 4.2)."""
    library = build(None, "stopped_clock.so", [PROGRAMS / "stopped_clock.c"], ["-shared", "-fPIC"], compiler="cc")
    start = f'LD_PRELOAD="$LD_PRELOAD {library}" exec "$0"'  # of the ranks alone, not of the launcher
    launch = lab.family.launch(2, "sh", "-c", start, lab.program("descriptors.c"))
    outcome = lab.start("auto", launch)[0].finish(60.0)
    if outcome.timed_out:
        bare = lab.start(BARE, launch)[0].finish(60.0)
        assert bare.timed_out, outcome.describe()
        return
    assert outcome.rc == 0 and outcome.out == "looked\n", outcome.describe()


@pytest.mark.parametrize("size", [0, 10, 60_000])  # MPICH's own mpiexec fails on more than a pipe holds
def test_standard_input(lab: Lab, size: int) -> None:
    """Standard input reaches the program as it is."""
    text = bytes(33 + i * 7 % 90 for i in range(size))
    trials = lab.compare(2, lab.program("stdin_sum.c"), modes=("auto",), stdin=text)
    assert trials[0].outcome.out.startswith(f"{size} bytes"), trials[0].outcome.describe()


def _many(lab: Lab, ranks: int, mode: str) -> None:
    trial = lab.run(mode, ranks, lab.program("many.c"), "1", timeout=300)
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    assert trial.outcome.out == f"{ranks} ranks done\n"
    assert mode == BARE or len(trial.ranks()) == ranks


def test_64_ranks(lab: Lab) -> None:
    """Many more ranks than cores make progress."""
    _many(lab, 64, "auto")


@pytest.mark.long
@pytest.mark.parametrize("mode", [BARE, *MODES])
@pytest.mark.parametrize("ranks", [16, 64])
def test_many_ranks(lab: Lab, ranks: int, mode: str) -> None:
    """Likewise in every mode."""
    _many(lab, ranks, mode)


@pytest.mark.long
@pytest.mark.parametrize("mode", [BARE, *MODES])
def test_more_than_2_gib(lab: Lab, mode: str) -> None:
    """A message of more than 2^31 bytes arrives whole and is counted whole."""
    trial = lab.run(mode, 2, lab.program("large.c"), timeout=300)
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
    assert "datatype 2200 MiB" in trial.outcome.out
    if mode == BARE:
        return
    messages = 2 if lab.family.mpi4 else 1
    sender, receiver = trial.ranks()
    assert sender.bytes_sent >= messages * (2200 << 20)
    assert receiver.bytes_received >= messages * (2200 << 20)


@pytest.fixture(autouse=True)
def _room(tmp_path: Path) -> Iterator[None]:
    """Records of many ranks are large: they go as soon as the test has read them."""
    yield
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.stat().st_size > 1 << 20:
            path.unlink()
