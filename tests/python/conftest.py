"""Shared by the tests of the Python package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rank_writer import lively_rank, write_run


@pytest.fixture
def fallow(tmp_path):
    """Runs the command line in a directory of its own."""

    def run(*args, cwd=tmp_path, **kwargs):
        env = {k: v for k, v in os.environ.items() if not k.startswith("FALLOW_") or k == "FALLOW_LIBRARY_DIR"}
        env |= kwargs.pop("env", {})
        return subprocess.run(
            [sys.executable, "-m", "fallow", *map(str, args)],
            cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False, **kwargs,
        )  # fmt: skip

    return run


@pytest.fixture
def run_dir(tmp_path) -> Path:
    """Four ranks, all well."""
    return write_run(tmp_path / "run", [lively_rank(r, 4, 300, ring_events=1024) for r in range(4)])


@pytest.fixture
def fake_library(tmp_path):
    """A directory with a harmless library in place of the preload library."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    libc = next(x.split()[-1] for x in lines if re.search(r"/libm[.-]|/libz\.so|/libc[.-]", x))
    harmless = Path(libc).with_name("libm.so.6")
    folder = tmp_path / "lib"
    folder.mkdir()
    shutil.copy(harmless if harmless.exists() else libc, folder / "libfallow.so")
    return folder


@pytest.fixture
def run(fallow, fake_library):
    def call(*args, env=None, **kwargs):
        return fallow("run", *args, env={"FALLOW_LIBRARY_DIR": str(fake_library), **(env or {})}, **kwargs)

    return call
