"""The examples: what each prints with four ranks, to the letter, and the same verified result on other numbers of ranks.

The expected outputs are in tests/golden/examples, one file each; what differs between runs goes to standard error.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

COMPILER = "mpicc.openmpi"
LAUNCHER = "mpirun.openmpi"
REPOSITORY = Path(__file__).resolve().parents[2]
EXPECTED = Path(__file__).resolve().parent / "examples"
GOLDEN_RANKS = 4
NAMES = ["bt", "cg", "ft", "hello_fallow", "lu", "mg", "sp"]
OTHER_RANKS = {"mg": (1, 2), "bt": (1,), "sp": (1,), "cg": (1, 2), "ft": (1, 2), "lu": (1, 2)}
# Whole runs of many more ranks than cores take long; a few steps of them are among ODD_SIZES.
MANY_RANKS = {"mg": (16,), "bt": (9, 16), "sp": (9, 16), "cg": (16,), "ft": (16,), "lu": (16,)}
# Where the points do not come out even among the cells, or a level of MG has fewer points than ranks.
ODD_SIZES = [("bt", 9, "11"), ("sp", 16, "13"), ("lu", 8, "11"), ("mg", 16, "4"), ("cg", 8, "400"), ("ft", 8, "8")]
TIMEOUT_S = 400  # ends what hangs


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the examples, built by their own Makefile."""
    place = tmp_path_factory.mktemp("examples")
    command = ["make", "-s", "-j2", "-C", str(REPOSITORY / "examples"), f"MPICC={COMPILER}", f"BIN={place}"]
    made = subprocess.run([*command, "CFLAGS=-O2 -Wall -Wextra -Werror"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return place


def _run(programs: Path, name: str, ranks: int, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    launcher = (
        [LAUNCHER, "--oversubscribe", "-n", str(ranks)] if ranks > 1 else []
    )  # one rank needs none, and starts faster
    command = [*launcher, str(programs / name), *args]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, check=False)


@pytest.mark.parametrize("name", NAMES)
def test_output_with_four_ranks(programs: Path, name: str) -> None:
    """Exactly the expected output; for the benchmarks that includes that the result is verified."""
    done = _run(programs, name, GOLDEN_RANKS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (EXPECTED / f"{name}.txt").read_text()


def _pairs(table: dict[str, tuple[int, ...]], *marks: pytest.MarkDecorator) -> list[object]:
    return [pytest.param(name, ranks, marks=marks) for name, counts in table.items() for ranks in counts]


@pytest.mark.parametrize(("name", "ranks"), _pairs(OTHER_RANKS) + _pairs(MANY_RANKS, pytest.mark.long))
def test_result_does_not_depend_on_ranks(programs: Path, name: str, ranks: int) -> None:
    """The last line, with the value and the verdict, is that of four ranks."""
    done = _run(programs, name, ranks)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == (EXPECTED / f"{name}.txt").read_text().splitlines()[-1]


@pytest.mark.parametrize(("name", "ranks", "points"), ODD_SIZES)
def test_sizes_without_a_reference(programs: Path, name: str, ranks: int, points: str) -> None:
    """The value with many ranks is the value with one."""
    alone, together = (_run(programs, name, count, "-n", points, "-i", "3") for count in (1, ranks))
    assert alone.returncode == together.returncode == 0, together.stderr
    assert "no reference" in alone.stdout
    assert alone.stdout.splitlines()[-1] == together.stdout.splitlines()[-1]


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in ("bt", "ft") else pytest.mark.long) for name in sorted(OTHER_RANKS)])
def test_help_and_wrong_arguments(programs: Path, name: str) -> None:
    """--help explains and succeeds; what does not fit is named, on standard error."""
    told = _run(programs, name, 1, "--help")
    assert told.returncode == 0 and told.stdout.startswith(f"usage: mpirun -n RANKS {name} ")
    for args in (["--class", "Z"], ["-n", "many"], ["-i"], ["--unknown"]):
        refused = _run(programs, name, 1, *args)
        assert refused.returncode == 2 and f"{name}: " in refused.stderr and refused.stdout == "", args
    assert _run(programs, name, 3).returncode == 2  # neither a square, nor a power of two
