"""Each binding's calls are seen, each exactly once, on every rank."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.building import build
from harness.fallow import MODES, Fallow
from harness.families import FAMILY_NAMES, FORTRAN_NAMES, Family
from harness.lab import PROGRAMS, Lab

BINDINGS = {"c": "calls.c", "mpif.h": "calls_mpif.F", "use mpi": "calls_usempi.F90", "use mpi_f08": "calls_f08.F90"}
PAIRS = [(f, b) for f in FAMILY_NAMES for b in BINDINGS if b == "c" or f in FORTRAN_NAMES]
RANKS = 2
# What calls.c and calls_body.h make on each rank.
CALLS = {
    "MPI_Init": 1, "MPI_Finalize": 1,
    "MPI_Send": 5, "MPI_Ssend": 1, "MPI_Recv": 8, "MPI_Sendrecv": 6, "MPI_Sendrecv_replace": 2,
    "MPI_Isend": 10, "MPI_Irecv": 7, "MPI_Wait": 10, "MPI_Waitall": 5, "MPI_Waitany": 2, "MPI_Waitsome": 1,
    "MPI_Test": 4, "MPI_Testall": 2, "MPI_Testany": 1, "MPI_Testsome": 1,
    "MPI_Probe": 2, "MPI_Iprobe": 3, "MPI_Mprobe": 1, "MPI_Mrecv": 1,
    "MPI_Bcast": 7, "MPI_Barrier": 9, "MPI_Allreduce": 8, "MPI_Reduce": 2, "MPI_Gather": 1, "MPI_Scatter": 1,
    "MPI_Allgather": 2, "MPI_Alltoall": 2, "MPI_Scan": 1, "MPI_Allgatherv": 1, "MPI_Alltoallv": 1,
    "MPI_Reduce_scatter_block": 1, "MPI_Ibcast": 1, "MPI_Iallreduce": 1, "MPI_Ibarrier": 1,
    "MPI_Send_init": 1, "MPI_Recv_init": 1, "MPI_Startall": 1, "MPI_Start": 2, "MPI_Request_free": 2,
    "MPI_Comm_split": 2, "MPI_Comm_dup": 1, "MPI_Comm_create": 1, "MPI_Cart_create": 1, "MPI_Comm_free": 5,
    "MPI_Win_create": 1, "MPI_Win_fence": 4, "MPI_Put": 3, "MPI_Get": 1, "MPI_Accumulate": 1,
    "MPI_Win_lock": 1, "MPI_Win_unlock": 1, "MPI_Win_free": 1,
    "MPI_File_open": 1, "MPI_File_write_at_all": 2, "MPI_File_sync": 1, "MPI_File_read_at": 1, "MPI_File_close": 1,
}  # fmt: skip
_FORTRAN = ["-cpp", "-fallow-argument-mismatch", "-ffixed-line-length-none", "-ffree-line-length-none", f"-I{PROGRAMS}"]


def calls_program(family: Family, source: str) -> Path:
    """The compiled form of one of BINDINGS."""
    path = PROGRAMS / source
    flags = [] if path.suffix == ".c" else _FORTRAN
    return build(family, path.stem, [path], ["-O1", "-w", *flags], PROGRAMS.glob("*.h"))


@pytest.mark.parametrize(
    "modes", [pytest.param(("auto",), id="short"), pytest.param(MODES, id="all", marks=pytest.mark.long)]
)
@pytest.mark.parametrize(("family", "binding"), PAIRS, indirect=["family"])
def test_every_call_once(lab: Lab, binding: str, modes: tuple[str, ...]) -> None:
    """The counts of every function are the program's, and no other function appears."""
    trials = lab.compare(RANKS, calls_program(lab.family, BINDINGS[binding]), modes=modes)
    for trial in trials[1:]:
        ranks = trial.ranks()
        assert [r.world_rank for r in ranks] == list(range(RANKS)), trial.outcome.describe()
        for rank in ranks:
            assert dict(rank.calls) == CALLS, f"rank {rank.world_rank}, {trial.mode}"
            assert rank.finalized == 1


@pytest.mark.parametrize("family", FORTRAN_NAMES, indirect=True)
def test_datatypes_of_the_bindings_are_not_the_programs(lab: Lab) -> None:
    """For array sections, MPICH's bindings make datatypes and free them: only those that the program frees count."""
    trial = lab.compare(RANKS, calls_program(lab.family, "sections.F90"), modes=("auto",))[1]
    exchanges = 10 if lab.family.name == "mpich" else 0  # Open MPI 4.1 takes no sections
    expected = {"MPI_Init": 1, "MPI_Finalize": 1}
    if exchanges:
        expected |= dict.fromkeys(("MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Sendrecv", "MPI_Type_free"), exchanges)
    assert [dict(rank.calls) for rank in trial.ranks()] == [expected] * RANKS, trial.outcome.describe()


@pytest.mark.parametrize("family", ["openmpi"], indirect=True)
def test_calls_after_a_wait_for_nothing(lab: Lab) -> None:
    """The bindings return without a call: the next one, of a C function, is not taken to come from the wait's place."""
    program = lab.program("waits_for_none.F90")
    trial = lab.compare(RANKS, program, modes=("auto",))[1]
    lines = (PROGRAMS / "waits_for_none.F90").read_text().splitlines()
    place = next(n for n, line in enumerate(lines, 1) if "the place of the barriers" in line)
    sites = lab.fallow.report(trial.record)["sites"]
    found = [(s["source"].split(":")[-1], s["calls"]) for s in sites if s["function"] == "MPI_Barrier"]
    assert found == [(str(place), 10 * RANKS)], trial.outcome.describe()


@pytest.mark.parametrize("family", FORTRAN_NAMES, indirect=True)
def test_calls_of_callbacks(lab: Lab) -> None:
    """What callbacks call counts, though the MPI library's bindings stand in between."""
    trial = lab.compare(RANKS, calls_program(lab.family, "callbacks.F90"), modes=("auto",))[1]
    always = {"MPI_Init", "MPI_Finalize", "MPI_Comm_dup", "MPI_Comm_free", "MPI_Reduce", "MPI_Send"}
    for rank in trial.ranks():
        reduced = rank.calls["MPI_Iprobe"] - (3 + 2 * 5 + 2)  # by whichever rank adds, in so many steps
        assert 0 <= reduced <= 1 and dict(rank.calls) == dict.fromkeys(always, 1) | {
            "MPI_Barrier": 2,
            "MPI_Iprobe": 15 + reduced,
        }, trial.outcome.describe()


def test_report_counts_the_same(lab: Lab, fallow: Fallow) -> None:
    """`fallow report --json` tells the program's counts too."""
    trial = lab.run("auto", RANKS, calls_program(lab.family, BINDINGS["c"]))
    functions = fallow.report(trial.record)["functions"]
    assert {f["function"]: f["calls"] for f in functions} == {name: RANKS * n for name, n in CALLS.items()}
