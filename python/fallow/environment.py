"""The environment in which a command runs under Fallow."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from fallow import native, openmpi_files
from fallow.options import Setting

PRELOAD_LIBRARY = "libfallow.so"
_OPEN_MPI_FORWARD = "OMPI_MCA_mca_base_env_list"
_OPEN_MPI_LAUNCHERS = ("mpirun", "mpiexec", "orterun")
_OPEN_MPI_AGENTS = {"OMPI_MCA_orte_launch_agent": "orted", "PRTE_MCA_prte_launch_agent": "prted"}
"""The variable that names the daemon which Open MPI starts on other nodes, and the daemon; since version 5 PRRTE's."""
_PLAIN = re.compile(r"[A-Za-z0-9_./:+,=@%-]*\Z")  # what needs no quotes in any remote shell
_PREFIX = re.compile(r"\A[A-Z]+_MCA_")
_AGENT_CHOSEN = frozenset(("launch-agent", "orte_launch_agent", "prte_launch_agent"))
_MIXES = frozenset(("x", "app", "tune", "am"))
"""Options of Open MPI that name variables to forward, or a file that may."""
_OUR_AGENT = re.compile(rf"\Z|env LD_PRELOAD=\S*/{re.escape(PRELOAD_LIBRARY)}")
"""None chosen, or that of a `fallow run` around this one."""


def preload_problem(library: Path | None) -> str:
    """An empty string if the library can be preloaded, or why not."""
    if library is None:
        named = os.environ.get("FALLOW_LIBRARY_DIR")
        return f"{PRELOAD_LIBRARY} is not " + (f"in {named}, which FALLOW_LIBRARY_DIR names" if named else "installed")
    if any(c in str(library) for c in " :\t\n"):
        return f"{library.parent} has a space or colon in its name, which LD_PRELOAD cannot take"
    return native.loading_problem(library)


def _preloaded(original: str, library: str) -> str:
    """The library in front of what was to be preloaded, without another Fallow's, of a run around this one."""
    named = [name for name in re.split("[ :]", original) if name]
    kept = [name for name in named if name == library or Path(name).name != PRELOAD_LIBRARY]
    before = original if kept == named else ":".join(kept)
    if library in kept:
        return before
    return f"{library}:{before}" if before else library


def _forward(env: dict[str, str], command: Sequence[str], names: Sequence[str], in_files: Set[str]) -> None:
    """Makes Open MPI hand the variables to ranks on other nodes, where its daemons are not started with them.

    Only when the command itself is the launcher and names no variables of its own: Open MPI refuses to mix both.
    """
    launcher = Path(command[0]).name.removesuffix(".openmpi") in _OPEN_MPI_LAUNCHERS  # as Debian calls them, too
    given = {word.lstrip("-") for word in command if word.startswith("-")}
    named = _OPEN_MPI_FORWARD in env or _PREFIX.sub("", _OPEN_MPI_FORWARD) in in_files
    if launcher and not given & _MIXES and not named:
        env[_OPEN_MPI_FORWARD] = ";".join(n for n in names if n in env)


def _launch_agent(env: dict[str, str], command: Sequence[str], names: Sequence[str], in_files: Set[str]) -> bool:
    """Makes Open MPI start its daemons on other nodes, and so the ranks there, with the variables.

    This also reaches ranks whose mpirun a script starts, or which is given -x. Values that would need quotes in the
    remote shell, and an agent that the user has chosen, leave it at `_forward`: False.
    """
    values = [f"{n}={env[n]}" for n in names if n in env]
    plain = all(_PLAIN.match(v) for v in values)
    ours = plain and not {word.lstrip("-") for word in command} & _AGENT_CHOSEN
    for agent, daemon in _OPEN_MPI_AGENTS.items():
        if not _OUR_AGENT.match(env.get(agent, "")) or _PREFIX.sub("", agent) in in_files:
            ours = False
        elif plain:
            env[agent] = " ".join(["env", *values, daemon])
        else:
            env.pop(agent, None)
    return ours


def without_record(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of `build` for ranks that need not try to write a record."""
    out = {**env, "FALLOW_DIR": ""}
    for agent in _OPEN_MPI_AGENTS:
        if agent in out:
            out[agent] = re.sub(r" FALLOW_DIR=\S*", " FALLOW_DIR=", out[agent])
    return out


def bare(base: Mapping[str, str]) -> Mapping[str, str]:
    """The base environment without the Fallow of a run around this one, or of a module that all jobs load."""
    named = [name for name in re.split("[ :]", base.get("LD_PRELOAD", "")) if name]
    others = [name for name in named if Path(name).name != PRELOAD_LIBRARY]
    if others == named:
        return base
    env = {**base, "LD_PRELOAD": ":".join(others), "FALLOW_OFF": "1"}  # what a launch agent loads anew stays away, too
    if not others:
        del env["LD_PRELOAD"]
    for agent in _OPEN_MPI_AGENTS:
        if agent in env and _OUR_AGENT.match(env[agent]):
            del env[agent]
    if env.get(_OPEN_MPI_FORWARD, "").startswith("LD_PRELOAD;FALLOW_"):
        del env[_OPEN_MPI_FORWARD]
    return env


def given(start: Path = Path("/proc/self/environ")) -> Mapping[str, str]:
    """The environment as Fallow was started with it: what its command would have without it.

    Python sets LC_CTYPE by itself where the locale is C, for all that it starts, too. A name that is empty, which it
    could not hand on, no shell takes either.
    """
    env = {name: value for name, value in os.environ.items() if name}
    with contextlib.suppress(OSError):
        values = [entry[9:] for entry in start.read_bytes().split(b"\0") if entry.startswith(b"LC_CTYPE=")]
        env.pop("LC_CTYPE", None)
        env.update(("LC_CTYPE", os.fsdecode(value)) for value in values)
    return env


def build(  # noqa: PLR0913 - one value each
    base: Mapping[str, str],
    *,
    command: Sequence[str],
    library: Path,
    run_dir: Path,
    run_id: str,
    settings: Sequence[Setting],
) -> dict[str, str]:
    """The base environment with Fallow in it."""
    env = dict(base)
    env["LD_PRELOAD"] = _preloaded(env.get("LD_PRELOAD", ""), str(library))
    env["FALLOW_DIR"] = str(run_dir)
    env["FALLOW_RUN_ID"] = run_id
    for setting in settings:
        env[setting.option.variable] = setting.value
    ours = ["LD_PRELOAD", "FALLOW_DIR", "FALLOW_RUN_ID"]
    names = ours + [s.option.variable for s in settings]
    in_files = openmpi_files.parameters(base, command)
    if not _launch_agent(env, command, names, in_files):
        _forward(env, command, names, in_files)
    return env
