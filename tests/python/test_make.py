"""Targets of the Makefile may be repeated, also after one was cut off."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def has_pip(interpreter: Path) -> bool:
    return subprocess.run([interpreter, "-m", "pip", "--version"], capture_output=True, timeout=300, check=False).returncode == 0


def test_an_environment_that_was_cut_off_is_made_anew(tmp_path):
    """As an interrupt leaves it: with an interpreter, but without pip."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/requirements.txt").touch()
    (tmp_path / "tools/packages.txt").touch()
    (tmp_path / "tools/install-packages").symlink_to("/bin/true")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True, timeout=300)
    interpreter = tmp_path / ".venv/bin/python"
    assert not has_pip(interpreter)
    for _ in range(2):
        done = subprocess.run(
            ["make", f"PYTHON={sys.executable}", ".venv/.ready"],
            cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert has_pip(interpreter)
