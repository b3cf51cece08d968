"""The MPI families that the benchmarks run on, and how their programs are compiled and started."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "integration"))

from harness.groups import limited
from harness.hosts import two_hosts

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bench" / "programs"
TOOLS = ROOT / "bench" / "tools"
BUILD = ROOT / "build" / "bench"
FALLOW = ROOT / ".venv" / "bin" / "fallow"


@dataclass(frozen=True)
class Family:
    """One MPI: its compiler, its launcher, and the library's own way of yielding while it waits."""

    name: str
    compiler: str
    launcher: tuple[str, ...]
    own_yield: dict[str, str] = field(default_factory=dict)
    between_hosts: tuple[str, ...] = ("TCP",)  # what messages between name spaces go over
    on_host: Callable[[list[str]], list[str]] = list  # what starts a command where, or as what, the launcher runs

    def program(self, name: str) -> str:
        return str(BUILD / f"{name}.{self.name}")

    def tool(self, name: str) -> str:
        """A library to be loaded under a program."""
        return str(BUILD / f"{name}.{self.name}.so")

    def compile_all(self) -> None:
        BUILD.mkdir(parents=True, exist_ok=True)
        for source in sorted(PROGRAMS.glob("*.c")):
            # MPICH's MPI_STATUSES_IGNORE is the address 1
            self._compile(source, Path(self.program(source.stem)), "-Wno-stringop-overflow")
        for source in sorted(TOOLS.glob("*.c")):
            self._compile(source, Path(self.tool(source.stem)), "-shared", "-fPIC")

    def _compile(self, source: Path, target: Path, *options: str) -> None:
        if not target.exists() or target.stat().st_mtime <= source.stat().st_mtime:
            subprocess.run([self.compiler, "-O2", *options, "-o", str(target), str(source)], check=True, env=self.environment())

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
        # Over TCP, its MPI_Finalize hangs in one of ten runs, without Fallow, too.
        Family("mpich", "mpicc.mpich", ("mpirun.mpich",), between_hosts=("memory",)),
        Family("mpiabi", str(venv / "mpicc_abi"), (str(venv / "mpiexec"),), between_hosts=("TCP", "memory")),
    ]
    return [f for f in known if shutil.which(f.compiler)]


@contextlib.contextmanager
def on_two_hosts(family: Family, over: str) -> Iterator[Family]:
    """The family with its ranks on two hosts, one on each: the network name spaces that the tests use. Over TCP or memory, which
    stands for a network that goes past the kernel."""
    with tempfile.TemporaryDirectory() as scratch, two_hosts(Path(scratch), over == "memory") as hosts:
        names = ",".join(f"{address}:1" for address in hosts.addresses)
        if family.name == "openmpi":
            network = ("--mca", "btl_tcp_if_include", "10.213.77.0/24", "--mca", "oob_tcp_if_include", "10.213.77.0/24")
            options = ("--host", names, "--bind-to", "none", "--mca", "plm_rsh_agent", str(hosts.agent), *network)
        else:
            options = ("-hosts", names, "-launcher", "rsh", "-launcher-exec", str(hosts.agent))
        yield replace(family, launcher=(family.launcher[0], *options), on_host=hosts.on_first)


@contextlib.contextmanager
def in_limited_group(family: Family, processors: float) -> Iterator[Family]:
    """The family with launcher and ranks in a control group that may have the time of so many processors. OSError where none can be made."""
    with limited(processors) as group:
        yield replace(family, on_host=group.inside)
