"""What a user or a site has set in Open MPI's files of parameters, which variables of the environment overrule."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_LINE = re.compile(r"\s*(\w+)\s*=\s*\S")
_LAUNCHERS = ("mpirun", "orterun", "prterun")
_SYSTEM = Path("/etc/openmpi")  # of Debian


def _places(env: Mapping[str, str], command: Sequence[str], system: Path) -> Iterator[Path]:
    """The files, where Open MPI from version 4 on looks for them; of several installations, those of all."""
    for name in ("OMPI_MCA_mca_base_param_files", "PRTE_MCA_mca_base_param_files"):
        yield from (Path(file) for file in re.split("[,:]", env.get(name, "")) if file)
    if home := env.get("HOME"):
        yield Path(home, ".openmpi", "mca-params.conf")
        yield Path(home, ".prte", "mca-params.conf")
    prefixes = [Path(env[name]) for name in ("OPAL_PREFIX", "PRTE_PREFIX") if env.get(name)]
    for launcher in (command[0], *_LAUNCHERS):
        if found := shutil.which(launcher, path=env.get("PATH")):
            prefixes += (Path(found).absolute().parents[1], Path(found).resolve().parents[1])
    for folder in (system, *(prefix / "etc" for prefix in dict.fromkeys(prefixes))):
        yield folder / "openmpi-mca-params.conf"
        yield folder / "prte-mca-params.conf"


def parameters(env: Mapping[str, str], command: Sequence[str], system: Path = _SYSTEM) -> frozenset[str]:
    """Names of all parameters that are set in such files."""
    names: set[str] = set()
    for path in _places(env, command, system):
        with contextlib.suppress(OSError):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            names.update(found.group(1) for line in lines if (found := _LINE.match(line)))
    return frozenset(names)
