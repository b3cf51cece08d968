"""Fallow and another PMPI tool in one program: both see every call, whichever was loaded first."""

from __future__ import annotations

import re
import shlex
import shutil
from collections import Counter
from pathlib import Path

import pytest
from coverage_test import BINDINGS, CALLS, RANKS, calls_program
from harness.building import build
from harness.fallow import BARE
from harness.lab import PROGRAMS, Lab
from harness.pmpi_tool import build_tool, prototypes, read_counts


def _linked_program(lab: Lab, tool: Path) -> Path:
    """The program with the tool on its link line, in front of the MPI library."""
    source = PROGRAMS / BINDINGS["c"]
    rpath = f"-Wl,-rpath,{tool.parent}"
    return build(
        lab.family, "calls_with_tool", [source], ["-O1"], [tool, *PROGRAMS.glob("*.h")], libs=[str(tool), rpath]
    )


@pytest.mark.parametrize("mode", [BARE, "auto", "spin"])
@pytest.mark.parametrize("order", ["tool first", "tool second", "tool linked"])
def test_both_count_every_call(lab: Lab, order: str, mode: str) -> None:
    """The tool's counts and Fallow's are the program's."""
    tool = build_tool(lab.family, CALLS)
    out = lab.scratch / "tool"
    program: list[str | Path] = [calls_program(lab.family, BINDINGS["c"])]
    env = {"TOOL_OUT": str(out)}
    if order == "tool first":
        script = f'LD_PRELOAD={shlex.quote(str(tool))}${{LD_PRELOAD:+:$LD_PRELOAD}} exec "$0"'
        program = ["/bin/sh", "-c", script, *program]
    elif order == "tool second":
        env["LD_PRELOAD"] = str(tool)
    else:
        program = [_linked_program(lab, tool)]
    running, record = lab.start(mode, lab.family.launch(RANKS, *program), env=env)
    outcome = running.finish()
    assert outcome.rc == 0 and outcome.out == "calls done\n", outcome.describe()
    for rank in range(RANKS):
        assert read_counts(out, rank) == Counter(CALLS), f"the tool on rank {rank}"
    if mode != BARE:
        assert [r.calls for r in lab.records(record)] == [Counter(CALLS)] * RANKS


def test_calls_of_a_tool_while_mpi_starts(lab: Lab) -> None:
    """They are part of MPI_Init, in which nothing is recorded, and not the program's."""
    tool = build(lab.family, "tool_waits.so", [PROGRAMS / "tool_waits.c"], ["-shared", "-fPIC", "-O1"])
    launch = lab.family.launch(RANKS, calls_program(lab.family, BINDINGS["c"]))
    running, record = lab.start("auto", launch, env={"LD_PRELOAD": str(tool)})
    outcome = running.finish()
    assert outcome.rc == 0 and outcome.out == "calls done\n", outcome.describe()
    assert [r.calls for r in lab.records(record)] == [Counter(CALLS)] * RANKS


def _expect_calls_beside(lab: Lab, library: Path, order: str) -> None:
    """Fallow counts the program's calls with another library preloaded before it or behind."""
    both = f"{library}:$LD_PRELOAD" if order == "before" else f"$LD_PRELOAD:{library}"
    program = ["/bin/sh", "-c", f'LD_PRELOAD={both} exec "$0"', calls_program(lab.family, BINDINGS["c"])]
    running, record = lab.start("auto", lab.family.launch(RANKS, *program))
    outcome = running.finish()
    assert outcome.rc == 0 and outcome.out == "calls done\n", outcome.describe()
    assert [r.calls for r in lab.records(record)] == [Counter(CALLS)] * RANKS


@pytest.mark.parametrize("order", ["before", "behind"])
@pytest.mark.parametrize("parts", ["one library", "two libraries"])
def test_a_tool_that_finds_the_library_by_a_handle(lab: Lab, parts: str, order: str) -> None:
    """What it calls is the library's function, or leads there, and never the tool's again."""
    source, flags, depends = PROGRAMS / "tool_by_handle.c", ["-shared", "-fPIC", "-O1"], [PROGRAMS / "open_mpi.h"]
    if parts == "one library":
        tool = build(lab.family, "tool_by_handle.so", [source], [*flags, "-DWHOLE"], depends)
    else:
        finds = build(lab.family, "tool_finds.so", [source], [*flags, "-DFINDS"], depends)
        rpath = f"-Wl,-rpath,{finds.parent}"
        tool = build(lab.family, "tool_of_two.so", [source], flags, [finds], libs=[str(finds), rpath])
    _expect_calls_beside(lab, tool, order)


@pytest.mark.parametrize("order", ["before", "behind"])
def test_two_fallows_in_one_process_are_one(lab: Lab, order: str) -> None:
    """A second installation's library may be preloaded, too: the first one in line records, once."""
    other = shutil.copytree(lab.fallow.library().parent, lab.scratch / "other" / "lib") / "libfallow.so"
    _expect_calls_beside(lab, other, order)


# Functions that ask, describe or prepare on one rank: they neither communicate nor wait nor own anything that does.
_LOCAL = re.compile(
    r"MPI_(Type|Group|Info|Op|Errhandler|Keyval|Attr|Error|Add|T|Status|Address|Aint|Pack|Unpack|Get|Query|Is|Cart|Graph|Topo|Dims"
    r"|Register|Alloc|Free|Initialized|Finalized|Pcontrol|Wtime|Wtick|Reduce_local|Buffer_attach|Test_cancelled)(_.*)?$"
    r"|MPI_(Comm|Win|File|Session)_((create|free)_(keyval|errhandler)|(set|get|delete|call)_.*|rank|size|group|compare|test_inter|remote_.*)$"
    r"|MPI_Dist_graph_neighbors.*|MPI_Win_(attach|detach|shared_query)|MPI_Request_get_status.*"
)


def test_every_function_that_subjects_call(lab: Lab) -> None:
    """Over all subjects, what a tool sees of functions that communicate, wait or own, Fallow sees as often."""
    tool = build_tool(lab.family, prototypes(lab.family), "libpmpitool_all.so")
    out = lab.scratch / "tool"
    running, record = lab.start(
        "auto", lab.family.launch(RANKS, lab.driver()), env={"LD_PRELOAD": str(tool), "TOOL_OUT": str(out)}
    )
    outcome = running.finish()
    assert outcome.rc == 0, outcome.describe()
    for rank in lab.records(record):
        seen = {name: n for name, n in read_counts(out, rank.world_rank).items() if not _LOCAL.match(name)}
        assert len(seen) > 100
        assert {name: rank.calls[name] for name in seen} == seen
