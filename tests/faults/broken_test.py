"""Whatever of Fallow's fails, the program's output and exit code stay, and Fallow says so in one line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from harness.fallow import BARE, Fallow
from harness.families import base_environment
from harness.lab import Lab
from harness.running import Outcome, run

RANKS = 2
MODE = "auto"


def _said(outcome: Outcome) -> list[str]:
    return [line for line in outcome.err.splitlines() if line.startswith("fallow")]


def _check(bare: Outcome, broken: Outcome, lines: int | Sequence[int]) -> None:
    """`broken` shows what `bare` shows, and `lines` lines of Fallow's on standard error."""
    assert bare.rc == 0 and bare.out.endswith("sum 1\n"), bare.describe()
    assert not broken.timed_out and broken.rc == bare.rc, broken.describe()
    assert broken.out == bare.out, broken.describe()
    assert "Traceback" not in broken.err, broken.describe()
    allowed = [lines] if isinstance(lines, int) else list(lines)
    assert len(_said(broken)) in allowed, broken.describe()
    others = set(broken.err.splitlines()) - set(_said(broken)) - set(bare.err.splitlines())
    assert not others, broken.describe()


def _bare(lab: Lab, env: dict[str, str] | None = None) -> Outcome:
    return lab.run(BARE, RANKS, lab.program("steady.c"), env=env).outcome


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of the size that the test asks for."""
    place = tmp_path / "small"
    place.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={request.param}", "tmpfs", place], check=False
        ).returncode
    ):
        pytest.skip("mounting a small file system needs the privilege to mount")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("where", ["below a file", "in a pseudo file system", "not a folder"])
def test_unwritable_directory(lab: Lab, where: str, tmp_path: Path) -> None:
    """No record can be made."""
    file = tmp_path / "file"
    file.write_text("")
    record = {"below a file": file / "record", "in a pseudo file system": Path("/proc/record"), "not a folder": file}[
        where
    ]
    _check(_bare(lab), lab.run(MODE, RANKS, lab.program("steady.c"), record=record).outcome, 1)


@pytest.mark.parametrize("small_disk", ["4k", "64k", "200k", "1500k"], indirect=True)
def test_full_disk(lab: Lab, small_disk: Path) -> None:
    """There is room for nothing, for the run's own file, for headers but no counters, for one rank of two."""
    trial = lab.run(MODE, RANKS, lab.program("steady.c"), record=small_disk / "record")
    _check(_bare(lab), trial.outcome, 1)


@pytest.mark.parametrize("small_disk", ["1m"], indirect=True)
def test_read_only_disk(lab: Lab, small_disk: Path) -> None:
    """The file system takes no writes."""
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    trial = lab.run(MODE, RANKS, lab.program("steady.c"), record=small_disk / "record")
    _check(_bare(lab), trial.outcome, 1)


@pytest.mark.parametrize("small_disk", ["4m"], indirect=True)
def test_disk_full_for_later_threads(lab: Lab, small_disk: Path) -> None:
    """Threads that find no room for their counters are not counted, and work as ever."""
    program = lab.program("threads.c")
    bare = lab.run(BARE, RANKS, program).outcome
    broken = lab.run(MODE, RANKS, program, record=small_disk / "record").outcome
    assert bare.rc == 0, bare.describe()
    assert (broken.rc, broken.out) == (bare.rc, bare.out) and "Traceback" not in broken.err, broken.describe()
    assert len(_said(broken)) <= 1, broken.describe()


_CORRUPT = {
    "mode": {"FALLOW_MODE": "banana"},
    "slowdown": {"FALLOW_SLOWDOWN": "-3%"},
    "too large": {"FALLOW_RING_EVENTS": "99999999999999999999"},
    "not a number": {"FALLOW_SITE_SLOTS": "many"},
    "clock": {"FALLOW_CLOCK": "sundial"},
    "off": {"FALLOW_OFF": "perhaps"},
    "bytes": {"FALLOW_HOOK": "\udcff\udcfe\n"},
    "several": {"FALLOW_MODE": "z", "FALLOW_SLOWDOWN": "x", "FALLOW_CLOCK": "y", "FALLOW_WAKE": "2"},
    "long": {"FALLOW_CLOCK": "x" * 50_000},
}


@pytest.mark.parametrize("what", _CORRUPT)
def test_corrupt_variables(lab: Lab, what: str) -> None:
    """Variables that cannot be read are named in one line, and their defaults hold."""
    running, _ = lab.start(BARE, lab.fallow.wrap(MODE, lab.scratch / "record", lab.family.launch(RANKS, lab.program("steady.c")))
                           if what not in {"mode", "several"} else _without_mode(lab), env=_CORRUPT[what])  # fmt: skip
    _check(_bare(lab), running.finish(), (1, len(_CORRUPT[what])))  # at most one for each


def _without_mode(lab: Lab) -> list[str]:
    """`fallow run` without --mode, which would stand in front of the variable."""
    launch = lab.family.launch(RANKS, lab.program("steady.c"))
    return [str(lab.fallow.exe), "run", "--quiet", "--out", str(lab.scratch / "record"), "--", *launch]


def test_unknown_variable_is_nobodys(lab: Lab) -> None:
    """A variable that no option has is left alone."""
    _check(
        _bare(lab), lab.run(MODE, RANKS, lab.program("steady.c"), env={"FALLOW_NO_SUCH_OPTION": "1"}).outcome, (0, 1)
    )


def test_off(lab: Lab) -> None:
    """FALLOW_OFF=1 loads and leaves everything alone: no calls are recorded, nothing is said."""
    trial = lab.run(MODE, RANKS, lab.program("steady.c"), env={"FALLOW_OFF": "1"})
    _check(_bare(lab), trial.outcome, 0)
    assert all(not r.calls for r in trial.ranks())


def test_missing_meters(lab: Lab, fallow: Fallow) -> None:
    """A machine without meters is nothing to speak of while the program runs; the report says what was not metered."""
    trial = lab.run(MODE, RANKS, lab.program("steady.c"))
    _check(_bare(lab), trial.outcome, 0)
    energy = fallow.report(trial.record)["energy"]
    assert set(energy) >= {"metered", "modelled"}


def _library(fallow: Fallow) -> Path:
    found = sorted(fallow.exe.parent.parent.rglob("libfallow.so"))
    assert found, "libfallow.so is not installed: run `make build`"
    return found[0]


def test_runtime_missing(lab: Lab, fallow: Fallow, tmp_path: Path) -> None:
    """The preloaded library without the runtimes beside it."""
    lonely = shutil.copy(_library(fallow), tmp_path / "libfallow.so")
    broken = lab.run(BARE, RANKS, lab.program("steady.c"), env={"LD_PRELOAD": str(lonely)}).outcome
    _check(_bare(lab), broken, (1, RANKS))  # nothing is loaded that could tell a rank it is not the first to say so


def test_runtime_of_no_use(lab: Lab, fallow: Fallow, tmp_path: Path) -> None:
    """Runtimes that are no libraries."""
    for path in _library(fallow).parent.glob("libfallow*.so"):
        shutil.copy(path, tmp_path / path.name)
    for path in tmp_path.glob("libfallow-rt-*.so"):
        path.write_bytes(b"\x7fELF but no more")
    broken = lab.run(BARE, RANKS, lab.program("steady.c"), env={"LD_PRELOAD": str(tmp_path / "libfallow.so")}).outcome
    _check(_bare(lab), broken, (1, RANKS))


def test_small_file_limit(lab: Lab) -> None:
    """The user's limit on the size of files, here of 51 MB, ends neither the program nor its waits."""
    script = 'ulimit -f 100000; exec "$0"'
    launch = lab.family.launch(RANKS, "/bin/sh", "-c", script, lab.program("steady.c"))
    bare, _ = lab.start(BARE, launch)
    without = bare.finish()
    broken, _ = lab.start(MODE, launch, options=["--ring-events", "4194304"])  # 200 MB
    _check(without, broken.finish(), 1)


# A /dev/shm in which the MPI, told to do with little, runs and nothing is left for Fallow.
_LITTLE = {
    "openmpi": ("size=4k", {"OMPI_MCA_btl_vader_backing_directory": "/tmp", "OMPI_MCA_btl": "self,vader"}),
    "mpich": ("nr_inodes=1", {"UCX_TLS": "self,sysv"}),
    "mpiabi": ("nr_inodes=2", {"UCX_TLS": "self,sysv"}),
}


def test_no_shared_memory(lab: Lab) -> None:
    """/dev/shm has no room for Fallow."""
    limit, env = _LITTLE[lab.family.name]
    results = []
    for mode in (BARE, MODE):
        inner = lab.fallow.wrap(mode, lab.scratch / "record", lab.family.launch(RANKS, lab.program("steady.c")))
        script = f"mount -t tmpfs -o {limit} tmpfs /dev/shm && exec {shlex.join(inner)}"
        running, _ = lab.start(BARE, ["unshare", "-m", "/bin/sh", "-c", script], env=env)
        outcome = running.finish()
        if "unshare:" in outcome.err or "mount:" in outcome.err:
            pytest.skip("hiding /dev/shm needs the privilege to mount")
        results.append(outcome)
    _check(results[0], results[1], 1)


@pytest.fixture(scope="module")
def plain_environment() -> dict[str, str]:
    """For commands that are no MPI programs."""
    return base_environment()


@pytest.mark.parametrize(
    ("command", "rc"),
    [
        (["/bin/sh", "-c", "echo out; echo err >&2; exit 5"], 5),
        (["/bin/cat"], 0),
        (["/bin/sh", "-c", "kill -TERM $$"], -15),
        (["/no/such/command"], 127),
        (["/etc/passwd"], 126),
        (["env", "-i", "/bin/sh", "-c", "echo clean"], 0),
    ],
)
def test_commands_without_mpi(
    fallow: Fallow, command: list[str], rc: int, tmp_path: Path, plain_environment: dict[str, str]
) -> None:
    """`fallow run` of anything else is that and no more."""
    outcome = run(
        fallow.wrap(MODE, tmp_path / "record", command),
        env=plain_environment,
        cwd=tmp_path,
        stdin=b"text\n",
    )
    assert outcome.rc == rc, outcome.describe()
    if rc not in {126, 127}:
        bare = run(command, env=plain_environment, cwd=tmp_path, stdin=b"text\n")
        assert (outcome.out, outcome.err) == (bare.out, bare.err)
    else:
        assert len(_said(outcome)) == 1 and "Traceback" not in outcome.err, outcome.describe()


@pytest.mark.parametrize("content", ["nothing", "empty folder", "garbage", "half a header"])
def test_report_of_a_broken_record(
    fallow: Fallow, content: str, tmp_path: Path, plain_environment: dict[str, str]
) -> None:
    """A record that is none is told, file by file."""
    record = tmp_path / "record"
    if content != "nothing":
        record.mkdir()
    if content == "garbage":
        (record / "run.json").write_text('{"run_id": [')
        (record / "rank-000000-host-1.fallow").write_bytes(os.urandom(100_000))
    if content == "half a header":
        (record / "rank-000000-host-1.fallow").write_bytes(b"FALLOWRK" + bytes(1000))
    outcome = run([fallow.exe, "report", record], env=plain_environment, cwd=tmp_path)
    assert outcome.rc != 0 and "Traceback" not in outcome.err, outcome.describe()
    assert len(_said(outcome)) == 1 and outcome.out == "", outcome.describe()
