"""Large programs of others, as Debian builds them: the numbers that they print are those without Fallow, in every mode.

Bindings of C, of both Fortran interfaces and of Python, MPI behind libraries that are loaded when the program runs
(OpenFOAM), one-sided communication behind a library of its own (NWChem), hundreds of communicators (CP2K).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.fallow import BARE, MODES
from harness.lab import Lab

from fallow.reproduce import record

INPUTS = Path(__file__).parent / "applications"
TIMEOUT_S = 600.0
PETSC = Path("/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real/lib/python3/dist-packages")
OPENFOAM = Path("/usr/share/openfoam")
pytestmark = [
    pytest.mark.long,
    pytest.mark.parametrize("family", ["openmpi"], indirect=True),
]  # what Debian builds them for


@dataclass(frozen=True)
class Application:
    """How a program is run, and which of its numbers and words must be the same: the groups of `values`."""

    command: tuple[str, ...]
    values: str
    least: int  # how many there are, at least
    tolerance: float = 0.0  # relative, of programs whose sums have no order
    ranks: int = 2
    env: tuple[tuple[str, str], ...] = ()
    output: str = ""  # the file that has them; else it is standard output
    prepare: Callable[[Path], None] | None = None


def _mesh(folder: Path) -> None:
    env = {"WM_PROJECT_DIR": str(OPENFOAM), "PATH": "/usr/bin:/bin"}
    for command in ("blockMesh", "decomposePar"):
        subprocess.run([command], cwd=folder, env=env, capture_output=True, check=True)


def _as_recorded(name: str) -> Callable[[Path], None]:
    """Prepares the input that the benchmarks record the program with."""

    def prepare(folder: Path) -> None:
        program = next(p for p in record.programs("bench") if p.name == name)
        values = {n: str(v) for n, v in program.values[program.ranks[0]].items()}
        env = {**os.environ, **values, "OMP_NUM_THREADS": "1"}
        subprocess.run(["bash", "-ec", program.prepare], cwd=folder, env=env, capture_output=True, check=True)

    return prepare


def _hpcc_input(folder: Path) -> None:
    shutil.copy("/usr/share/doc/hpcc/examples/_hpccinf.txt", folder / "hpccinf.txt")


APPLICATIONS = {
    "lammps": Application(
        ("lmp", "-in", "in.peptide", "-log", "none"), r"^TotEng +=\s+(\S+)", 2, prepare=_as_recorded("peptide")
    ),
    "gromacs": Application(
        ("gmx_mpi", "-quiet", "mdrun", "-s", "md.tpr", "-ntomp", "1", "-pin", "off", "-reprod", "-nsteps", "100"),
        r"^ +Total Energy +Conserved En\..*\n +(\S+) +(\S+)",
        4,
        output="md.log",
        prepare=_as_recorded("gromacs"),
    ),
    "quantum-espresso": Application(
        ("pw.x", "-in", "si.in"), r"total energy +=\s+(\S+)", 4, 1e-8, prepare=_as_recorded("qe")
    ),
    "nwchem": Application(("nwchem", "water.nw"), r"Total (?:SCF|MP2) energy\s+=?\s*(\S+)", 3, 1e-9),
    "cp2k": Application(("cp2k.psmp", "-i", "water.inp"), r"Total energy:\s+(\S+)", 4, 1e-10),
    "abinit": Application(("abinit", "silicon.abi"), r"^ ETOT +\d+ +(\S+)", 4, 1e-10),
    "openfoam": Application(
        ("icoFoam", "-parallel"),
        r"Initial residual = (\S+),.* Iterations (\d+)",
        300,
        env=(("WM_PROJECT_DIR", str(OPENFOAM)),),
        prepare=_mesh,
    ),
    "petsc": Application(
        ("/usr/bin/python3", "poisson.py"),
        r": (\d+) iterations, norm (\S+)",
        8,
        1e-5,
        env=(("PYTHONPATH", str(PETSC)),),
    ),
    "hpcc": Application(
        ("hpcc",), r"(?:\.{6} |\()(PASSED|passed)", 5, ranks=4, output="hpccoutf.txt", prepare=_hpcc_input
    ),
}


def _values(app: Application, text: str) -> list[str]:
    return [group for match in re.finditer(app.values, text, re.MULTILINE) for group in match.groups()]


def _close(left: str, right: str, tolerance: float) -> bool:
    if left == right or tolerance == 0:
        return left == right
    return float(left) == pytest.approx(float(right), rel=tolerance)


def _inputs(name: str, scratch: Path) -> Path:
    """What the program reads, made once: some of it is drawn at random."""
    folder = scratch / "inputs"
    if (INPUTS / name).exists():
        shutil.copytree(INPUTS / name, folder)
    else:
        folder.mkdir()
    prepare = APPLICATIONS[name].prepare
    if prepare is not None:
        prepare(folder)
    return folder


def _run(lab: Lab, app: Application, inputs: Path, mode: str, *options: str) -> tuple[list[str], str, Path]:
    """The values, all that the program said, and its folder."""
    folder = Path(tempfile.mkdtemp(dir=lab.scratch))
    shutil.copytree(inputs, folder, dirs_exist_ok=True)
    launch = lab.family.launch(app.ranks, *app.command)
    env = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **dict(app.env)}
    running, run = lab.start(mode, launch, env=env, options=options, cwd=folder)
    outcome = running.finish(TIMEOUT_S)
    said = outcome.describe()
    assert outcome.rc == 0 and not outcome.timed_out and not outcome.left_over, said
    if mode != BARE:
        assert len(lab.records(run)) == app.ranks, said
    return _values(app, (folder / app.output).read_text() if app.output else outcome.out), said, folder


@pytest.mark.parametrize("name", APPLICATIONS)
def test_application(lab: Lab, name: str) -> None:
    """The same values in every mode, with waits as twins, and recorded; what was recorded can be replayed."""
    app = APPLICATIONS[name]
    inputs = _inputs(name, lab.scratch)
    bare, said, _ = _run(lab, app, inputs, BARE)
    assert len(bare) >= app.least, said
    ways = [(mode, ()) for mode in MODES] + [("sleep", ("--hook", "twin")), ("auto", ("--trace", "run.ftr"))]
    for mode, options in ways:
        found, said, folder = _run(lab, app, inputs, mode, *options)
        differ = [pair for pair in zip(bare, found, strict=False) if not _close(*pair, app.tolerance)]
        assert len(found) == len(bare) and not differ, f"{mode} {options}: {differ}\n{said}"
    command: list[str | Path] = [lab.fallow.exe, "sim", folder / "run.ftr", "--policy", "always-on,adaptive", "--json"]
    replayed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert replayed.returncode == 0, replayed.stderr
