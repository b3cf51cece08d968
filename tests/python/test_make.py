"""Targets of the Makefile may be repeated, also after one was cut off."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def has_pip(interpreter: Path) -> bool:
    return subprocess.run([interpreter, "-m", "pip", "--version"], capture_output=True, timeout=300, check=False).returncode == 0


def checkout(place: Path) -> Path:
    """A checkout that needs no packages, and the interpreter of its environment, which has no pip."""
    shutil.copy(ROOT / "Makefile", place)
    (place / "tools").mkdir()
    (place / "tools/requirements.txt").touch()
    (place / "tools/packages.txt").touch()
    (place / "tools/install-packages").symlink_to("/bin/true")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / ".venv"], check=True, timeout=300)
    interpreter = place / ".venv/bin/python"
    assert not has_pip(interpreter)
    return interpreter


def make_environment(place: Path) -> None:
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable}", ".venv/.ready"],
        cwd=place, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_an_environment_that_was_cut_off_is_made_anew(tmp_path):
    """As an interrupt leaves it: with an interpreter, but without pip."""
    interpreter = checkout(tmp_path)
    for _ in range(2):
        make_environment(tmp_path)
        assert has_pip(interpreter)


@pytest.mark.long
def test_an_environment_whose_python_is_gone_is_made_anew(tmp_path):
    """As an upgrade of the distribution leaves it: it was ready, and the Python that stands in its place now does not know it."""
    interpreter = checkout(tmp_path)
    (tmp_path / "build").mkdir()
    for mark in ("build/.packages", ".venv/.ready"):
        (tmp_path / mark).touch()
    make_environment(tmp_path)
    assert has_pip(interpreter)


@pytest.mark.long
def test_what_names_another_directory_is_made_anew(tmp_path):
    """As where a checkout was moved: commands of its environment start an interpreter by its path, CMake's caches name its sources."""
    old, new, alias = tmp_path / "old", tmp_path / "new place", tmp_path / "alias"
    old.mkdir()
    checkout(old)
    make_environment(old)
    built, recorded = old / "build/dev/CMakeCache.txt", old / "build/traces/bt-16.ftr"
    for file in (built, recorded):
        file.parent.mkdir()
        file.touch()
    alias.symlink_to(old)
    for same in (old, alias):
        make_environment(same)
        assert built.exists()
    old.rename(new)
    make_environment(new)
    assert not (new / "build/dev").exists()
    assert (new / "build/traces/bt-16.ftr").exists()
    assert subprocess.run([new / ".venv/bin/pip", "--version"], timeout=300, check=False).returncode == 0
