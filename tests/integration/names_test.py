"""A program sees by name exactly those MPI functions that its MPI has, in whichever way it looks for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.building import build
from harness.fallow import BARE
from harness.families import Family
from harness.lab import PROGRAMS, Lab
from harness.pmpi_tool import prototypes

WAYS = ("executable", "linked library", "opened globally", "opened locally")
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
        return [build(family, "probe", [source], ["-O1", "-DWITH_MAIN"], libs=["-ldl"])]
    library = build(family, "libprobe.so", [source], _SHARED)
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
        assert [r.calls["MPI_Allreduce"] for r in trial.ranks()] == [1, 1]
    return lines


@pytest.mark.parametrize("way", WAYS)
def test_names_are_the_mpis_own(lab: Lab, families: list[Family], way: str) -> None:
    """Weak references and dlsym give the same answers with and without Fallow, and calls are recorded."""
    names = _names(families, lab.scratch / "names")
    bare = _said(lab, BARE, names, way)
    under = _said(lab, "auto", names, way)
    assert len(bare) > 4000
    if way == "opened locally":
        # Only weak references look in that scope. What Fallow shows to others as well is the MPI's, and works.
        real = _said(lab, BARE, names, "opened globally")
        assert {line for line in under if line.endswith(" there")} <= set(real)
        bare, under = ([line for line in said if line.startswith("weak")] for said in (bare, under))
    changed = [(a, b) for a, b in zip(bare, under, strict=True) if a != b]
    assert not changed, f"{len(changed)} differ: {changed[:10]}"
