"""Large programs of others, as Debian builds them: the numbers that they print are those without Fallow, in every mode.

Bindings of C, of both Fortran interfaces and of Python, MPI behind libraries that are loaded when the program runs
(OpenFOAM), one-sided communication behind a library of its own (NWChem) or the compiler's (coarrays), hundreds of
communicators (CP2K).
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from harness.applications import Application, applications
from harness.fallow import BARE, MODES
from harness.lab import Lab

APPLICATIONS = {app.name: app for app in applications()}
SIZE = "short"
TIMEOUT_S = 600.0
pytestmark = pytest.mark.long


def _run(lab: Lab, app: Application, inputs: Path, mode: str, *options: str) -> tuple[list[str], str, Path]:
    """The values, all that the program said, and its folder."""
    folder = Path(tempfile.mkdtemp(dir=lab.scratch))
    shutil.copytree(inputs, folder, dirs_exist_ok=True)
    launch = lab.family.launch(app.ranks, *app.words(SIZE))
    running, run = lab.start(mode, launch, env=app.environment(), options=options, cwd=folder)
    outcome = running.finish(TIMEOUT_S)
    said = outcome.describe()
    assert outcome.rc == 0 and not outcome.timed_out and not outcome.left_over, said
    if mode != BARE:
        assert len(lab.records(run)) == app.ranks, said
    return app.found((folder / app.output).read_text() if app.output else outcome.out), said, folder


@pytest.mark.parametrize(("family", "name"), [(app.family, app.name) for app in APPLICATIONS.values()], indirect=["family"])
def test_application(lab: Lab, name: str) -> None:
    """The same values in every mode, with waits as twins, and recorded; what was recorded can be replayed."""
    app = APPLICATIONS[name]
    inputs = lab.scratch / "inputs"  # made once: some of it is drawn at random
    app.make_input(inputs, SIZE)
    bare, said, _ = _run(lab, app, inputs, BARE)
    assert len(bare) >= app.least, said
    ways = [(mode, ()) for mode in MODES] + [("sleep", ("--hook", "twin")), ("auto", ("--trace", "run.ftr"))]
    for mode, options in ways:
        found, said, folder = _run(lab, app, inputs, mode, *options)
        differ = [pair for pair in zip(bare, found, strict=False) if not app.close(*pair)]
        assert len(found) == len(bare) and not differ, f"{mode} {options}: {differ}\n{said}"
    command: list[str | Path] = [lab.fallow.exe, "sim", folder / "run.ftr", "--policy", "always-on,adaptive", "--json"]
    replayed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert replayed.returncode == 0, replayed.stderr
