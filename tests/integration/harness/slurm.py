"""A Slurm of one node, of this machine's own, without accounting or authentication. Needs root and Debian's slurmctld
and slurmd."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_START_S = 240.0
_END_S = 60.0
_CONF = """\
ClusterName=test
SlurmctldHost={host}
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
TmpFS={place}/tmp
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def missing() -> str:
    """What keeps Slurm from being started here, or nothing."""
    if os.geteuid() != 0:
        return "needs root"
    names = ("slurmctld", "slurmd", "srun", "sinfo")
    absent = [n for n in names if shutil.which(n) is None and not Path("/usr/sbin", n).exists()]
    return f"{', '.join(absent)} not found" if absent else ""


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _command(name: str) -> str:
    return shutil.which(name) or f"/usr/sbin/{name}"


def _parents() -> dict[int, int]:
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                found[int(entry.parent.name)] = int(parent)
    return found


def _processes(conf: str) -> list[int]:
    """All of one Slurm: daemons, steps, and what these started, whose environment may be another one."""
    needle = f"SLURM_CONF={conf}\0".encode()
    parents = _parents()
    found = set()
    for pid in parents:
        with contextlib.suppress(OSError):
            if needle in Path(f"/proc/{pid}/environ").read_bytes():
                found.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {os.getpid()})


def end_all(conf: str) -> None:
    """Ends all processes of one Slurm, by force and however many there are."""
    end = time.monotonic() + _END_S
    while (alive := _processes(conf)) and time.monotonic() < end:
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


@contextlib.contextmanager
def _nothing_stays(conf: Path) -> Iterator[None]:
    """Ends what is left of a Slurm afterwards, also where this process is killed: steps outlive the daemons."""
    waits = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import slurm; sys.stdin.read(); slurm.end_all({str(conf)!r})"
    end = subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        end.communicate()


@contextlib.contextmanager
def slurm(place: Path) -> Iterator[dict[str, str]]:
    """The environment in which `srun` reaches it. RuntimeError with the logs if it does not come up."""
    host = socket.gethostname().split(".")[0]
    controller, daemon = _free_ports(2)
    for folder in ("state", "spool", "tmp"):  # a step of PMIx fails where one of that number, killed, left its folder
        (place / folder).mkdir(parents=True)
    conf = place / "slurm.conf"
    cpus = os.cpu_count() or 1
    conf.write_text(_CONF.format(host=host, controller=controller, daemon=daemon, place=place, cpus=cpus))
    env = {**os.environ, "SLURM_CONF": str(conf)}
    quiet = {"env": env, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with _nothing_stays(conf), contextlib.ExitStack() as daemons:
        started = []
        for command in ([_command("slurmctld"), "-D", "-f", conf], [_command("slurmd"), "-D", "-f", conf, "-N", host]):
            started.append(subprocess.Popen(command, **quiet))
            daemons.callback(_end, started[-1])
        _await_node(env, started, place)
        yield {"SLURM_CONF": str(conf)}


def _await_node(env: dict[str, str], daemons: list[subprocess.Popen[bytes]], place: Path) -> None:
    end = time.monotonic() + _START_S
    while True:
        said = subprocess.run(["sinfo", "-h", "-o", "%T"], env=env, capture_output=True, text=True, check=False)
        if said.stdout.strip() == "idle":
            return
        if time.monotonic() > end or any(p.poll() is not None for p in daemons):
            logs = "\n".join(f.read_text()[-2000:] for f in sorted(place.glob("*.log")))
            raise RuntimeError(f"Slurm does not start: {said.stdout}{said.stderr}\n{logs}")
        time.sleep(0.2)


def _end(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(_END_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
