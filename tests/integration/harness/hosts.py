"""Two "hosts" on one machine: network name spaces with a link between them, each with its own host name, /dev/shm and
/tmp. Needs root and `ip` (Debian: iproute2)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.families import Family

DEVICE = "eth0"  # the link, on both hosts

_AGENT = """#!/bin/sh
# Stands for ssh: runs the rest of the command line on a "host", given by its address.
host=$1; shift
exec ip netns exec {tag}-${{host##*.}} unshare {own} sh -c '
  hostname {tag}-host$1; mount -t tmpfs none /dev/shm; mkdir -p "$2"; export TMPDIR="$2"
  for v in $(env | sed -n "s/^\\\\(LD_PRELOAD\\\\|FALLOW_[A-Z_]*\\\\|OMPI_MCA_[a-z_]*\\\\|PRTE_MCA_[a-z_]*\\\\)=.*/\\\\1/p"); do unset $v; done
  shift 2; eval "$*"' agent "${{host##*.}}" "{tmp}/${{host##*.}}" "$@"
"""


@dataclass(frozen=True)
class Hosts:
    """Addresses of the hosts, and the program that starts a command on one: AGENT ADDRESS COMMAND..."""

    addresses: tuple[str, str]
    agent: Path
    own: tuple[str, ...]  # options of `unshare`: what each host has of its own beside its network

    def on_first(self, argv: list[str]) -> list[str]:
        """The command line that runs `argv` on the first host, with the environment it is given."""
        tag = self.agent.stem
        setup = 'hostname "$0"; mount -t tmpfs none /dev/shm; exec "$@"'
        return ["ip", "netns", "exec", f"{tag}-1", "unshare", *self.own, "sh", "-c", setup, f"{tag}-host1", *argv]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def _wait_until_up(space: str) -> None:
    """A link says that it is up as much as a second later; before, MPI libraries do not see it."""
    show = ["ip", "-n", space, "-brief", "link", "show", "dev", DEVICE, "up"]
    for _ in range(50):
        if " UP " in subprocess.run(show, check=True, capture_output=True, text=True).stdout:
            return
        time.sleep(0.1)
    raise TimeoutError(f"{DEVICE} in {space} does not come up")


@contextlib.contextmanager
def two_hosts(scratch: Path, memory_shared: bool = False) -> Iterator[Hosts]:
    """Sets up the hosts and takes them down; PermissionError without the rights. With `memory_shared` they have System V
    memory in common: MPICH's UCX then talks over that, past the link, as over a network that goes past the kernel."""
    if os.geteuid() != 0:
        raise PermissionError("network name spaces need root")
    tag = f"fh{os.getpid()}"
    spaces = [f"{tag}-1", f"{tag}-2"]
    addresses = ("10.213.77.1", "10.213.77.2")
    agent = scratch / f"{tag}.sh"
    own = ("-u", "-m") if memory_shared else ("-u", "-i", "-m")
    agent.write_text(_AGENT.format(tag=tag, own=" ".join(own), tmp=scratch / "tmp"))
    agent.chmod(0o755)
    try:
        for space in spaces:
            _ip("netns", "add", space)
        _ip("link", "add", DEVICE, "netns", spaces[0], "type", "veth", "peer", "name", DEVICE, "netns", spaces[1])
        for space, address in zip(spaces, addresses, strict=True):
            _ip("-n", space, "address", "add", f"{address}/24", "dev", DEVICE)
            _ip("-n", space, "link", "set", DEVICE, "up")
            _ip("-n", space, "link", "set", "lo", "up")
        for space in spaces:
            _wait_until_up(space)
        yield Hosts(addresses, agent, own)
    finally:
        for space in spaces:
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", space)


def launcher(family: Family, hosts: Hosts, each: int) -> list[str]:
    """The family's launcher of `each` ranks on both hosts, up to where options and the program follow."""
    first, second = hosts.addresses
    if family.name != "openmpi":
        options = ["-hosts", f"{first}:{each},{second}:{each}", "-launcher", "rsh", "-launcher-exec", str(hosts.agent)]
        return [*family.mpiexec, *options]
    options = ["--host", f"{first}:{each},{second}:{each}", "--mca", "plm_rsh_agent", str(hosts.agent)]
    options += ["--mca", "btl", "tcp,self,vader", "--mca", "btl_tcp_if_include", "10.213.77.0/24"]
    options += ["--mca", "oob_tcp_if_include", "10.213.77.0/24"]
    options += ["--mca", "osc", "pt2pt,sm"]  # its default makes no windows over TCP
    # The hosts are one machine: bound, the first ranks of both would have the same core.
    options += ["--bind-to", "none"] if each == 1 else ["--mca", "mpi_yield_when_idle", "1"]
    return [*family.mpiexec, *options]
