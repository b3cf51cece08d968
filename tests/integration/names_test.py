"""A program sees by name exactly those MPI functions that its MPI has, in whichever way it looks for them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness.building import build
from harness.fallow import BARE, Fallow
from harness.families import Family
from harness.lab import PROGRAMS, Lab
from harness.pmpi_tool import prototypes

WAYS = ("executable", "linked library", "opened globally", "opened locally")
OPENS = PROGRAMS / "open_mpi.h"
_SHARED = ["-shared", "-fPIC", "-O1"]


def _names(families: list[Family], path: Path) -> Path:
    """A file with the C functions of all families and what else Fallow defines."""
    names = {name for family in families for name in prototypes(family)}
    names |= (
        {f"{n}_c" for n in names} | {f"P{n}" for n in names} | {"opal_progress", "ucp_worker_progress", "sched_yield", "fi_fabric"}
    )
    names |= {n.lower() + ending for n in list(names) if n.startswith("MPI_") for ending in ("", "_", "__", "_f08_")}
    path.write_text("\n".join(sorted(names)) + "\n")
    return path


def _command(family: Family, way: str) -> list[str | Path]:
    """The program and what follows the file of names on its command line."""
    source, main = PROGRAMS / "probe.c", PROGRAMS / "probe_main.c"
    if way == "executable":
        return [build(family, "probe", [source], ["-O1", "-DWITH_MAIN"], [OPENS], libs=["-ldl"])]
    library = build(family, "libprobe.so", [source], _SHARED, [OPENS])
    if way == "linked library":
        return [
            build(
                None,
                f"probe_linked_{family.name}",
                [main],
                ["-O1", "-DLINKED"],
                [library],
                compiler="cc",
                libs=[str(library), "-ldl"],
            )
        ]
    program = build(None, "probe_main", [main], ["-O1"], compiler="cc", libs=["-ldl"])
    return [program, library, way.removeprefix("opened ").removesuffix("ly")]


def _said(lab: Lab, mode: str, names: Path, way: str) -> list[str]:
    """What the program found, a line a name."""
    program, *rest = _command(lab.family, way)
    trial = lab.run(mode, 2, Path(program), str(names), *map(str, rest))
    assert trial.outcome.rc == 0 and trial.outcome.err == "", trial.outcome.describe()
    *lines, last = trial.outcome.out.splitlines()
    assert last == "sum 2"
    if mode != BARE:
        assert [r.calls["MPI_Allreduce"] for r in trial.ranks()] == [2, 2]  # one by its name, one by a handle
    return lines


@pytest.mark.parametrize("way", WAYS)
def test_names_are_the_mpis_own(lab: Lab, families: list[Family], way: str) -> None:
    """Weak references and dlsym give the same answers with and without Fallow, and calls are recorded."""
    names = _names(families, lab.scratch / "names")
    bare = _said(lab, BARE, names, way)
    under = _said(lab, "auto", names, way)
    assert len(bare) > 4000
    if way == "opened locally":
        # Only weak references and handles look in that scope. What Fallow shows to others as well is the MPI's, and works.
        real = _said(lab, BARE, names, "opened globally")
        assert {line for line in under if line.endswith(" there")} <= set(real)
        bare, under = ([line for line in said if line.startswith(("weak", "library"))] for said in (bare, under))
    changed = [(a, b) for a, b in zip(bare, under, strict=True) if a != b]
    assert not changed, f"{len(changed)} differ: {changed[:10]}"


def _library(family: Family) -> str:
    """The path of the MPI library that the family's programs are linked with."""
    program, *_ = _command(family, "executable")
    linked = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^\s*libmpi(?:ch|_abi)?\.so\.\d+ => (\S+)", linked, re.MULTILINE)
    assert found, linked
    return found[1]


def test_calls_through_a_handle_are_recorded(lab: Lab) -> None:
    """A program may know nothing of MPI but a library that it opens."""
    program = [sys.executable, PROGRAMS / "by_ctypes.py", lab.family.name, _library(lab.family)]
    for mode in (BARE, "auto"):
        running, record = lab.start(mode, lab.family.launch(2, *program))
        outcome = running.finish()
        assert outcome.rc == 0 and outcome.out == "far away 3\n", outcome.describe()
        if mode != BARE:
            sent, received = (r.calls for r in lab.records(record))
            assert (sent["MPI_Send"], received["MPI_Recv"], sent["MPI_Allreduce"], received["MPI_Allreduce"]) == (1, 1, 5, 5)


def test_the_next_definition_is_that_of_who_asks(lab: Lab) -> None:
    """`dlsym(RTLD_NEXT, ...)` goes on behind the library that calls it."""
    source, flags = PROGRAMS / "next_one.c", ["-shared", "-fPIC", "-O1"]
    second = build(None, "libnext2.so", [source], [*flags, "-DNUMBER=2"], compiler="cc", libs=["-ldl"])
    first = build(None, "libnext1.so", [source], [*flags, "-DNUMBER=1"], compiler="cc", libs=["-ldl"])
    libs = ["-Wl,--no-as-needed", str(first), str(second), f"-Wl,-rpath,{first.parent}"]
    program = build(None, "next_one", [source], ["-O1", "-DNUMBER=0"], [first, second], compiler="cc", libs=libs)
    running, _ = lab.start("auto", [str(program)])
    outcome = running.finish()
    assert outcome.rc == 0 and outcome.out == "21\n", outcome.describe()


def test_names_lead_past_the_jump_once_mpi_has_started(lab: Lab) -> None:
    """Of functions that are called often; calls are recorded once, whichever way they come in."""
    trial = lab.run("auto", 1, lab.program("led.c"))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    runtime = f"libfallow-rt-{lab.family.name}.so"
    assert trial.outcome.out.split("\n")[:3] == ["MPI_Init libfallow.so", f"MPI_Iprobe {runtime}", f"PMPI_Iprobe {runtime}"]
    (rank,) = trial.ranks()
    assert rank.calls["MPI_Iprobe"] == 70


def test_a_library_of_the_program_may_call_a_function_log2(lab: Lab) -> None:
    """Or as another function of the C library's, and mean something else by it: Fallow calls none of these."""
    own = build(None, "libown_names.so", [PROGRAMS / "own_names.c"], [*_SHARED, "-fno-builtin"], compiler="cc")
    libs = ["-Wl,--no-as-needed", str(own), f"-Wl,-rpath,{own.parent}", "-lm"]
    program = build(lab.family, "late_own_names", [PROGRAMS / "late.c"], ["-O1"], [PROGRAMS / "check.h", own], libs=libs)
    trial = lab.run("auto", 2, program, "300", "1000", "irregular")
    assert trial.outcome.rc == 0, trial.outcome.describe()
    assert max(rank.wait_asleep_s for rank in trial.ranks()) > 0  # so a wait was thought about


def test_the_preloaded_library_asks_for_nothing_new(fallow: Fallow) -> None:
    """It is loaded into every program of a container, too, whose glibc may be older: a version that is missing there would end each."""
    listing = subprocess.run(["objdump", "-T", str(fallow.library())], capture_output=True, text=True, check=True).stdout
    asked = {tuple(map(int, v.split("."))) for v in re.findall(r"\*UND\*.*GLIBC_([\d.]+)", listing)}
    assert asked and max(asked) < (2, 4), listing


def test_debuggers_and_profilers_name_the_runtimes_functions(lab: Lab, fallow: Fallow) -> None:
    """Who finds a rank in a wait sees which call it is, and that it sleeps."""
    runtime = fallow.library().with_name(f"libfallow-rt-{lab.family.name}.so")
    names = subprocess.run(["nm", "-C", str(runtime)], capture_output=True, text=True, check=True).stdout
    for name in ("wrap_MPI_Barrier(", "wrap_MPI_Wait(", "do_sleep("):
        assert name in names, f"{name} in {runtime}"
