"""A Slurm of one node, of this machine's own, without accounting or authentication. Needs root and Debian's slurmctld
and slurmd."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

_START_S = 60.0
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


@contextlib.contextmanager
def slurm(place: Path) -> Iterator[dict[str, str]]:
    """The environment in which `srun` reaches it. RuntimeError with the logs if it does not come up."""
    host = socket.gethostname().split(".")[0]
    controller, daemon = _free_ports(2)
    for folder in ("state", "spool"):
        (place / folder).mkdir(parents=True)
    conf = place / "slurm.conf"
    cpus = os.cpu_count() or 1
    conf.write_text(_CONF.format(host=host, controller=controller, daemon=daemon, place=place, cpus=cpus))
    env = {**os.environ, "SLURM_CONF": str(conf)}
    started = [
        subprocess.Popen([_command("slurmctld"), "-D", "-f", conf], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
        subprocess.Popen([_command("slurmd"), "-D", "-f", conf, "-N", host], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
    ]
    try:
        end = time.monotonic() + _START_S
        while True:
            said = subprocess.run(["sinfo", "-h", "-o", "%T"], env=env, capture_output=True, text=True, check=False)
            if said.stdout.strip() == "idle":
                break
            if time.monotonic() > end or any(p.poll() is not None for p in started):
                logs = "\n".join(f.read_text()[-2000:] for f in sorted(place.glob("*.log")))
                raise RuntimeError(f"Slurm does not start: {said.stdout}{said.stderr}\n{logs}")
            time.sleep(0.2)
        yield {"SLURM_CONF": str(conf)}
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
