"""The arrows of the architecture hold in the sources: an include never runs up or sideways.

{pmpi, armci, sim} -> coll -> codec -> base
{pmpi, armci, sim} -> {power, predict, trace} -> base
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
_LEAVES = {"base", "power", "predict", "trace", "codec", "coll"}
MAY_INCLUDE = {
    "base": {"base"},
    "power": {"power", "base"},
    "predict": {"predict", "base"},
    "trace": {"trace", "base"},
    "codec": {"codec", "base"},
    "coll": {"coll", "codec", "base"},
    "pmpi": {"pmpi"} | _LEAVES,
    "armci": {"armci"} | _LEAVES,
    "sim": {"sim"} | _LEAVES,
}
LONGEST_FILE_LINES = 800
_PURE = {"predict", "codec"}  # no I/O
_CODE = {".c", ".cpp", ".h", ".hpp", ".in", ".S"}
_ALSO_SHORT = _CODE | {".py", ".js", ".css", ".f90", ".F90", ".F"}
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*")', re.S)
_GETENV = re.compile(r"\b(?:secure_)?getenv\s*\(")
_MACHINE_PATH = re.compile(r'^"/(sys|dev/(cpu|cpu_dma_latency|hwmon|msr)|run/openrc)\b(?=[/"])')
_IO = {"fstream", "iostream", "cstdio", "stdio.h", "fcntl.h", "unistd.h", "sys/mman.h", "sys/socket.h", "filesystem"}


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda m: m.group(1) or " ", text)


def _sources(root: Path) -> Iterator[tuple[str, Path, str]]:
    """Layer, path below `root`, and text without comments of each source."""
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in _CODE and path.is_file():
            yield path.relative_to(root / "src").parts[0], path.relative_to(root), _without_comments(path.read_text())


def _is_test(path: Path) -> bool:
    return "test" in path.stem


def _include_violation(layer: str, path: Path, name: str) -> str:
    target = name.split("/", maxsplit=1)[0] if "/" in name else layer
    if ".." in name:
        return f"{path} includes {name}: includes are named from src/"
    if target in MAY_INCLUDE and target not in MAY_INCLUDE[layer]:
        return f"{path} includes {name}: {layer} must not use {target}"
    if name == "mpi.h" and layer != "pmpi":
        return f"{path} includes mpi.h: only pmpi does"
    if target in {"ucp", "ucs", "uct"} and layer != "armci":
        return f"{path} includes {name}: only armci uses UCX"
    if layer in _PURE and name in _IO and not _is_test(path):
        return f"{path} includes {name}: {layer} does no I/O"
    return ""


def violations(root: Path) -> list[str]:
    """Every breach of the architecture below `root`, in the order of paths."""
    found: list[str] = []
    readers: list[Path] = []
    for layer, path, text in _sources(root):
        if layer not in MAY_INCLUDE:
            found.append(f"{path}: {layer} is no layer of the architecture")
            continue
        problems = [_include_violation(layer, path, name) for _, name in _INCLUDE.findall(text)]
        found += [p for p in problems if p]
        literals = [s for s in _STRING.findall(text) if _MACHINE_PATH.search(s)]
        if layer != "power" and literals:
            found.append(f"{path} names {literals[0]}: only power names paths of the machine")
        readers += [path] * len(_GETENV.findall(text))
    if len(readers) > 1:
        found.append(f"getenv is called more than once: {', '.join(map(str, readers))}")
    for header in sorted((root / "include").rglob("*.h")):
        inner = [
            n for _, n in _INCLUDE.findall(_without_comments(header.read_text())) if n.split("/")[0] in MAY_INCLUDE
        ]
        found += [f"{header.relative_to(root)} includes {n}: public headers stand alone" for n in inner]
    return found


def too_long(root: Path) -> list[str]:
    """Source files with more lines than a reader should meet."""
    found = []
    for folder in ("src", "include", "gen", "python", "tests", "bench", "examples", "tools", "dashboard"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in _ALSO_SHORT and path.is_file() and "node_modules" not in path.parts:
                lines = len(path.read_text(errors="replace").splitlines())
                if lines > LONGEST_FILE_LINES:
                    found.append(f"{path.relative_to(root)} has {lines} lines")
    return found


def test_includes_run_down() -> None:
    """The sources keep to the arrows, and only the layers named use MPI, UCX, machine paths and the environment."""
    found = violations(REPOSITORY)
    assert not found, found[0]


def test_files_are_short() -> None:
    """No file is longer than the style allows."""
    found = too_long(REPOSITORY)
    assert not found, found[0]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/base/a.hpp", '#include "trace/event.hpp"'),
        ("src/predict/a.hpp", '#include "trace/event.hpp"'),
        ("src/power/a.cpp", '#include "pmpi/scope.hpp"'),
        ("src/codec/a.cpp", '#include "coll/schedule.hpp"'),
        ("src/coll/a.cpp", '#include "trace/event.hpp"'),
        ("src/sim/a.cpp", '#  include "pmpi/scope.hpp"'),
        ("src/armci/a.cpp", '#include "sim/graph.hpp"'),
        ("src/trace/a.cpp", '#include "../pmpi/scope.hpp"'),
        ("src/sim/a.cpp", "#include <mpi.h>"),
        ("src/coll/a.cpp", "#include <mpi.h>"),
        ("src/pmpi/a.cpp", "#include <ucp/api/ucp.h>"),
        ("src/predict/a.cpp", "#include <fstream>"),
        ("src/pmpi/a.cpp", 'open("/sys/class/powercap", O_RDONLY);'),
        ("src/sim/a.cpp", 'const char* p = "/dev/cpu/0/msr";'),
        ("src/pmpi/preload/a.c", 'getenv("A"); getenv("B");'),
        ("src/other/a.cpp", ""),
        ("include/fallow/a.h", '#include "base/units.hpp"'),
    ],
)
def test_a_breach_is_found(tmp_path: Path, path: str, text: str) -> None:
    """The check can fail: each kind of breach is named once."""
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(text + "\n")
    assert len(violations(tmp_path)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/pmpi/a.cpp", '#include <mpi.h>\n#include "predict/wait_model.hpp"\n#include "coll/schedule.hpp"'),
        ("src/sim/a.cpp", '#include "trace/event.hpp"  // like "pmpi/scope.hpp"\n// #include "pmpi/scope.hpp"'),
        ("src/power/a.cpp", 'read("/sys/class/hwmon");'),
        ("src/base/a.cpp", 'std::getenv("FALLOW_MODE"); // getenv("twice")'),
        ("src/trace/a.cpp", "#include <sys/mman.h>"),
    ],
)
def test_what_is_allowed_passes(tmp_path: Path, path: str, text: str) -> None:
    """The check does not cry wolf."""
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(text + "\n")
    assert violations(tmp_path) == []


def test_a_long_file_is_found(tmp_path: Path) -> None:
    """The length check can fail too."""
    file = tmp_path / "src/base/long.cpp"
    file.parent.mkdir(parents=True)
    file.write_text("\n" * (LONGEST_FILE_LINES + 1))
    assert too_long(tmp_path) == [f"src/base/long.cpp has {LONGEST_FILE_LINES + 1} lines"]
