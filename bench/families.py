"""The MPI families that the benchmarks run on, and how their programs are compiled and started."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bench" / "programs"
BUILD = ROOT / "build" / "bench"
FALLOW = ROOT / ".venv" / "bin" / "fallow"


@dataclass(frozen=True)
class Family:
    """One MPI: its compiler, its launcher, and the library's own way of yielding while it waits."""

    name: str
    compiler: str
    launcher: tuple[str, ...]
    own_yield: dict[str, str] = field(default_factory=dict)

    def program(self, name: str) -> str:
        return str(BUILD / f"{name}.{self.name}")

    def compile_all(self) -> None:
        BUILD.mkdir(parents=True, exist_ok=True)
        for source in sorted(PROGRAMS.glob("*.c")):
            target = Path(self.program(source.stem))
            if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
                continue
            quiet = "-Wno-stringop-overflow"  # MPICH's MPI_STATUSES_IGNORE is the address 1
            subprocess.run([self.compiler, "-O2", quiet, "-o", str(target), str(source)], check=True, env=self.environment())

    def environment(self) -> dict[str, str]:
        env = dict(os.environ, OMP_NUM_THREADS="1")
        env["PATH"] = f"{ROOT / '.venv' / 'bin'}:{env['PATH']}"
        if os.geteuid() == 0:
            env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return env


def found_families() -> list[Family]:
    """The families installed here."""
    venv = ROOT / ".venv" / "bin"
    known = [
        Family("openmpi", "mpicc.openmpi", ("mpirun.openmpi", "--oversubscribe"), {"OMPI_MCA_mpi_yield_when_idle": "1"}),
        Family("mpich", "mpicc.mpich", ("mpirun.mpich",)),
        Family("mpiabi", str(venv / "mpicc_abi"), (str(venv / "mpiexec"),)),
    ]
    return [f for f in known if shutil.which(f.compiler)]
