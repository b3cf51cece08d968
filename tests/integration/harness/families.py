"""The three MPI families as compilers and launchers."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
FAMILY_NAMES = ("openmpi", "mpich", "mpiabi")
FORTRAN_NAMES = ("openmpi", "mpich")  # the standard ABI's package brings no Fortran modules


@dataclass(frozen=True)
class Family:
    """One MPI: how programs are compiled for it and started under it."""

    name: str
    cc: str
    cxx: str
    mpiexec: tuple[str, ...]
    fc: str = ""
    env: dict[str, str] = field(default_factory=dict)
    mpi4: bool = True  # sessions, partitioned and persistent collective calls

    def launch(self, ranks: int, *argv: str | Path) -> list[str]:
        """The command line that starts `argv` on `ranks` ranks."""
        return [*self.mpiexec, "-n", str(ranks), *map(str, argv)]

    def compiler(self, source: Path) -> str:
        """The wrapper compiler for a source file, by its ending."""
        if source.suffix in {".cpp", ".cc"}:
            return self.cxx
        return self.cc if source.suffix == ".c" else self.fc


def _needed(command: str, where: str | None = None) -> str:
    found = shutil.which(command, path=where)
    if not found:
        place = f" in {where}" if where else ""
        raise FileNotFoundError(f"{command} not found{place}: run `make build`, which sets up the three MPI families")
    return found


def _openmpi_major(cc: str) -> int:
    """Of "mpicc: Open MPI 4.1.4 (Language: C)"."""
    said = subprocess.run([cc, "--showme:version"], capture_output=True, text=True, check=True).stdout
    return int(said.split("Open MPI ")[1].split(".")[0])


def find_family(name: str, abi_bin: Path) -> Family:
    """The family called `name`; raises FileNotFoundError when it is not installed."""
    if name == "openmpi":
        return Family(
            name=name,
            cc=_needed("mpicc.openmpi"),
            cxx=_needed("mpicxx.openmpi"),
            fc=_needed("mpif90.openmpi"),
            mpiexec=(_needed("mpirun.openmpi"), "--oversubscribe", "--bind-to", "none"),
            env={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
            mpi4=_openmpi_major(_needed("mpicc.openmpi")) >= 5,
        )
    if name == "mpich":
        return Family(
            name=name,
            cc=_needed("mpicc.mpich"),
            cxx=_needed("mpicxx.mpich"),
            fc=_needed("mpif90.mpich"),
            mpiexec=(_needed("mpirun.mpich"),),
        )
    where = str(abi_bin)
    return Family(
        name=name,
        cc=_needed("mpicc_abi", where),
        cxx=_needed("mpicxx_abi", where),
        mpiexec=(_needed("mpiexec", where),),
    )


def base_environment() -> dict[str, str]:
    """The tests' environment without anything of Fallow's and with one thread per library."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("FALLOW_") and k != "LD_PRELOAD"}
    env.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    return env
