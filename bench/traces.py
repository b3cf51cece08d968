"""Records the traces that predictors and the simulator are measured on: the programs in examples/ and three real ones.

usage: traces.py [--out DIR] [--ranks N,...] [--only NAME,...] [--again]

Computation is taken as CPU time, so more ranks than cores give the times of a core each. What is there already is kept.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from families import BUILD, FALLOW, ROOT, Family, found_families

TRACES = ROOT / "build" / "traces"
RANKS = (16, 64)
_TIMEOUT_S = 900

SILICON = """\
&control
  calculation = 'scf', pseudo_dir = '/usr/share/espresso/pseudo', outdir = './out', prefix = 'si'
/
&system
  ibrav = 1, celldm(1) = 10.26, nat = 8, ntyp = 1, ecutwfc = 16.0
/
&electrons
  electron_maxstep = 4, conv_thr = 1.0d-14, scf_must_converge = .false.
/
ATOMIC_SPECIES
 Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS crystal
 Si 0.00 0.00 0.00
 Si 0.50 0.50 0.00
 Si 0.50 0.00 0.50
 Si 0.00 0.50 0.50
 Si 0.25 0.25 0.25
 Si 0.75 0.75 0.25
 Si 0.75 0.25 0.75
 Si 0.25 0.75 0.75
K_POINTS automatic
 2 2 2 0 0 0
"""
WATER = """\
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
water
[ molecules ]
"""
MINIMIZE = "integrator = steep\nnsteps = 50\nemtol = 500\ncoulombtype = PME\nrcoulomb = 0.9\nrvdw = 0.9\n"
MOVE = (
    "integrator = md\ndt = 0.001\nnsteps = {steps}\nnstlist = 10\ncoulombtype = PME\nrcoulomb = 0.9\nrvdw = 0.9\n"
    "tcoupl = v-rescale\ntc-grps = System\ntau-t = 0.5\nref-t = 300\ngen-vel = yes\nconstraints = none\n"
)


class NotHere(Exception):
    """The program or its data are not installed."""


@dataclass(frozen=True)
class Program:
    """A program and how it is made ready in an empty directory; `prepare` returns its command line."""

    name: str
    prepare: Callable[[Family, Path, int], list[str]]


def example(name: str, arguments: dict[int, str]) -> Program:
    """A program of examples/, with arguments by number of ranks."""

    def prepare(family: Family, _work: Path, ranks: int) -> list[str]:
        target = BUILD / "examples" / f"{name}.{family.name}"
        source = ROOT / "examples" / f"{name}.c"
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            target.parent.mkdir(parents=True, exist_ok=True)
            include = [f"-I{ROOT / 'include'}"]
            command = [family.compiler, "-O2", *include, "-o", str(target), str(source), "-lm"]
            subprocess.run(command, check=True, env=family.environment())
        return [str(target), *arguments.get(ranks, arguments[RANKS[0]]).split()]

    return Program(name, prepare)


def _found(command: str) -> str:
    path = shutil.which(command)
    if path is None:
        raise NotHere(f"{command} is not installed: tools/install-packages bench")
    return path


def lammps(_family: Family, work: Path, _ranks: int) -> list[str]:
    """The solvated peptide of the Debian package, 100 steps."""
    source = Path("/usr/share/lammps/examples/peptide")
    if not source.is_dir():
        raise NotHere("the examples of LAMMPS are not installed: tools/install-packages bench")
    text = (source / "in.peptide").read_text()
    (work / "in.peptide").write_text("".join("run\t\t100\n" if line.split()[:1] == ["run"] else line + "\n" for line in text.splitlines()))
    shutil.copy(source / "data.peptide", work)
    return [_found("lmp"), "-in", "in.peptide", "-log", "none", "-screen", "none"]


def gromacs(_family: Family, work: Path, ranks: int) -> list[str]:
    """A box of water, 200 steps with PME."""
    program, tool = _found("gmx_mpi"), _found("gmx")

    def gmx(*arguments: str) -> None:
        done = subprocess.run([tool, "-quiet", *arguments], cwd=work, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"gmx {' '.join(arguments)}: {done.stderr[-800:]}")

    (work / "topol.top").write_text(WATER)
    (work / "min.mdp").write_text(MINIMIZE)
    (work / "md.mdp").write_text(MOVE.format(steps=200))
    box = "5.0" if ranks > RANKS[0] else "3.7"
    gmx("solvate", "-cs", "spc216.gro", "-box", box, box, box, "-o", "conf.gro", "-p", "topol.top")
    gmx("grompp", "-f", "min.mdp", "-c", "conf.gro", "-p", "topol.top", "-o", "min.tpr", "-maxwarn", "2")
    gmx("mdrun", "-s", "min.tpr", "-c", "min.gro", "-ntmpi", "1", "-ntomp", "1", "-pin", "off")
    gmx("grompp", "-f", "md.mdp", "-c", "min.gro", "-p", "topol.top", "-o", "md.tpr", "-maxwarn", "2")
    return [program, "mdrun", "-s", "md.tpr", "-ntomp", "1", "-pin", "off", "-nsteps", "200", "-dlb", "no", "-notunepme"]


def espresso(_family: Family, work: Path, _ranks: int) -> list[str]:
    """Eight silicon atoms, four steps to self-consistency."""
    program = _found("pw.x")
    (work / "si8.in").write_text(SILICON)
    return [program, "-in", "si8.in"]


PROGRAMS = (
    example("mg", {16: "-n 256 -i 20", 64: "-n 64 -i 6"}),
    example("bt", {16: "-n 64 -i 60", 64: "-n 32 -i 20"}),
    example("sp", {16: "-n 64 -i 60", 64: "-n 32 -i 20"}),
    example("cg", {16: "-n 7000 -i 10", 64: "-n 7000 -i 4"}),
    example("ft", {16: "-n 64 -i 20", 64: "-n 64 -i 20"}),
    example("lu", {16: "-n 33 -i 40", 64: "-n 33 -i 16"}),
    Program("lammps", lammps),
    Program("gromacs", gromacs),
    Program("espresso", espresso),
)


def record(program: Program, ranks: int, out: Path, family: Family) -> Path:
    """Records one trace; returns its file. NotHere, or RuntimeError with what the program said."""
    file = out / f"{program.name}-{ranks}.ftr"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fallow-traces-") as scratch:
        work = Path(scratch) / "work"
        work.mkdir()
        new = Path(scratch) / file.name
        command = [*family.launcher, "-n", str(ranks), *program.prepare(family, work, ranks)]
        options = ["--quiet", "--mode", "yield", "--clock", "cpu", "--out", f"{scratch}/run", "--trace", str(new)]
        env = family.environment() | {"OPENBLAS_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                [str(FALLOW), "run", *options, "--", *command],
                cwd=work, env=env, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"no end within {_TIMEOUT_S} s") from None
        if done.returncode != 0 or not new.exists():
            raise RuntimeError(f"exit status {done.returncode}: {(done.stderr + done.stdout)[-800:]}")
        part = file.with_suffix(".part")
        shutil.move(new, part)
        part.replace(file)
    return file


def traces(out: Path = TRACES, ranks: Iterable[int] = RANKS, only: Iterable[str] = (), again: bool = False) -> list[Path]:
    """Every trace that can be had here, recorded where it is not there yet. Says on stderr what cannot."""
    family = next((f for f in found_families() if f.name == "openmpi"), None)  # the real programs are built for it
    if family is None:
        raise NotHere("Open MPI is not installed: tools/install-packages build")
    wanted = set(only)
    files = []
    for n in ranks:
        for program in PROGRAMS:
            file = out / f"{program.name}-{n}.ftr"
            if wanted and program.name not in wanted:
                continue
            try:
                if again or not file.exists():
                    print(f"  recording {file.stem}", file=sys.stderr, flush=True)
                    record(program, n, out, family)
                files.append(file)
            except (NotHere, RuntimeError) as error:
                print(f"  left out: {program.name} on {n} ranks: {error}", file=sys.stderr, flush=True)
    return files


def main() -> int:
    """Records what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TRACES, help="where traces go (default build/traces)")
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)), help="numbers of ranks (default 16,64)")
    parser.add_argument("--only", default="", help="these programs, comma between them")
    parser.add_argument("--again", action="store_true", help="record what is there already anew")
    args = parser.parse_args()
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    ranks = [int(n) for n in args.ranks.split(",")]
    only = [n for n in args.only.split(",") if n]
    try:
        files = traces(args.out, ranks, only, args.again)
    except NotHere as error:
        print(f"traces: {error}", file=sys.stderr)
        return 2
    for file in files:
        print(f"{file.stat().st_size / 1e6:9.3f} MB  {file}")
    return 0 if files else 2


if __name__ == "__main__":
    sys.exit(main())
