"""The large programs of examples/applications: their input, their command, and what of their output must not change."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fallow.reproduce import record
from harness.families import REPOSITORY

FOLDER = REPOSITORY / "examples" / "applications"


@dataclass(frozen=True)
class Application:
    """One of them. `sizes` say how large its work is: of "short" about a second, of "long" some."""

    name: str
    title: str
    command: str
    values: str
    least: int
    sizes: dict[str, dict[str, Any]]
    family: str = "openmpi"
    needs: str = ""
    ranks: int = 2
    tolerance: float = 0.0
    prepare: str = ""
    input_of: str = ""
    output: str = ""
    env: dict[str, str] | None = None

    def installed(self) -> bool:
        """Whether its package is here. Python is anyway, or it is built from what its folder has."""
        paths = [Path(p) for p in (*(self.env or {}).values(), self.needs) if p]
        program = self.command.split()[0]
        return (program.startswith("./") or shutil.which(program) is not None) and all(p.exists() for p in paths)

    def environment(self) -> dict[str, str]:
        """What it needs beside the launcher's."""
        return {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **(self.env or {})}

    def words(self, size: str) -> list[str]:
        """The program and its arguments."""
        return self.command.format(**self.sizes[size]).split()

    def _script(self) -> str:
        if not self.input_of:
            return self.prepare
        return next(p.prepare for p in record.programs("bench") if p.name == self.input_of)

    def make_input(self, folder: Path, size: str) -> None:
        """Makes what it reads in a new folder."""
        if (FOLDER / self.name).exists():
            shutil.copytree(FOLDER / self.name, folder)
        else:
            folder.mkdir(parents=True)
        sizes = {name: str(value) for name, value in self.sizes[size].items()}
        done = subprocess.run(
            ["bash", "-euc", self._script()],
            cwd=folder,
            env={**os.environ, **self.environment(), **sizes},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"input of {self.title}: {done.stdout}{done.stderr}")

    def found(self, text: str) -> list[str]:
        """The values in its output."""
        return [group for match in re.finditer(self.values, text, re.MULTILINE) for group in match.groups()]

    def close(self, left: str, right: str) -> bool:
        """Whether two values are the same, as far as it gives the same from run to run."""
        if left == right or self.tolerance == 0:
            return left == right
        return math.isclose(float(left), float(right), rel_tol=self.tolerance)


def applications() -> list[Application]:
    """All of them."""
    with (FOLDER / "applications.toml").open("rb") as file:
        return [Application(**entry) for entry in tomllib.load(file)["application"]]
