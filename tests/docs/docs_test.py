"""The commands of the documentation run, and its generated pages are up to date."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HANGS_S = 900  # no tutorial takes as long, also where many other programs run
ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda p: p.stem)
def test_commands_of_tutorials_run(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.M | re.S)
    assert blocks, f"{page.name} has no commands"
    env = dict(os.environ, FALLOW_CHECKOUT=str(ROOT), OMP_NUM_THREADS="1")
    if os.geteuid() == 0:
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    script = "set -euxo pipefail\n" + "\n".join(blocks)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def _links(page: Path) -> list[Path]:
    """What a page leads to within the project."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    return [page.parent / target for target in targets if "://" not in target]


def test_links_between_pages_lead_somewhere() -> None:
    broken = [f"{page.relative_to(ROOT)} -> {target}" for page in PAGES for target in _links(page) if not target.exists()]
    assert not broken, broken


def test_every_page_is_found_from_the_readme() -> None:
    """By links; decisions by their folder."""
    found: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop().resolve()
        if page.is_dir():
            ahead += page.glob("*.md")
        elif page not in found and page.suffix == ".md":
            found.add(page)
            ahead += _links(page)
    assert not [str(page.relative_to(ROOT)) for page in PAGES if page.resolve() not in found]


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, "tools/make_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _fields(value: object) -> set[str]:
    """Every name in JSON, but for those below `raw`, `options` and `machine`, which say themselves what they are."""
    if isinstance(value, list):
        return {name for each in value for name in _fields(each)}
    if not isinstance(value, dict):
        return set()
    below = (_fields(each) for name, each in value.items() if name not in ("raw", "options", "machine"))
    return {*value, *(name for names in below for name in names)}


def _explained(page: str) -> set[str]:
    """What a page of the reference names as code; `energy.idle_w` explains `idle_w`."""
    text = (ROOT / "docs" / "reference" / page).read_text()
    return {name.rpartition(".")[2] for name in re.findall(r"`([a-z_0-9.]+)`", text)}


def test_every_field_of_json_is_explained(tmp_path: Path) -> None:
    def printed(*command: str) -> object:
        done = subprocess.run([sys.executable, "-m", "fallow", *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr  # 1: the doctor of a machine without MPI
        return json.loads(done.stdout)

    program = ("--ranks", "8", "--iterations", "2")
    assert not _fields(printed("sim", "--synth", "stencil3d", *program, "--policy", "adaptive", "--json")) - _explained("simulation.md")
    subprocess.run([sys.executable, "-m", "fallow", "synth", "cg", *program, "-o", tmp_path / "cg.ftr"], check=True, capture_output=True)
    commands = (
        ("trace", "info", "cg.ftr", "--json"), ("run", "--compare", "1", "--json", "--out", "twice", "--", "true"),
        ("doctor", "--json"), ("doctor", "--coverage", "--json"), ("config", "--json"),
    )  # fmt: skip
    for command in commands:
        assert not _fields(printed(*command)) - _explained("json.md"), command


def test_every_key_of_machine_files_is_explained() -> None:
    read = r"\b(?:s|top|t)\.(?:number|whole|time|watts|flag|text|find|sections)\(\"([a-z_]+)\"|rate\(s, \"([a-z_]+)\""
    keys = {name for found in re.findall(read, (ROOT / "src/sim/machine_file.cpp").read_text()) for name in found if name}
    read = r"\b(?:cpu|core|t|top)\.(?:number|whole|text|tables)\(\"([a-z_]+)\"|(?:watts|gigahertz)\((?:t|point), \"([a-z_]+)\""
    keys |= {name for found in re.findall(read, (ROOT / "src/power/platform_file.cpp").read_text()) for name in found if name}
    assert len(keys) > 60
    assert not keys - _explained("machine-files.md")
