"""Machines to simulate: platforms by name, files, and changes to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fallow import energy, native
from fallow.errors import UserError
from fallow.text import plural


def require(name: str) -> Any:  # noqa: ANN401  # functions and classes of the extension module
    """A part of the simulator's binding."""
    found = getattr(native.require(), name, None)
    if found is None:
        raise UserError("this build of Fallow has no simulator; install the package anew: pip install .")
    return found


def path_of(platform: str) -> Path:
    """The file of a platform: one of the names that are installed, or a path."""
    if "/" in platform or platform.endswith(".toml"):
        return Path(platform)
    for directory in energy.platform_directories():
        if (file := directory / f"{platform}.toml").is_file():
            return file
    raise UserError(f"no platform '{platform}'; there are: {', '.join(energy.platform_names())}; or name a .toml file")


def facts(machine: Any) -> dict[str, Any]:  # noqa: ANN401  # _native.SimMachine
    """What the machine is like; UserError where its network cannot be built."""
    try:
        found: dict[str, Any] = machine.facts()
    except ValueError as error:
        raise UserError(str(error)) from None
    return found


@dataclass(frozen=True)
class MachineSpec:
    """A platform and changes to it, as the native part takes them."""

    platform: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def load(where: MachineSpec) -> Any:  # noqa: ANN401  # _native.SimMachine
    """Reads the platform and changes it; UserError names file and line."""
    try:
        machine = require("read_sim_machine")(native.file_name(path_of(where.platform)))
        for key, value in where.settings.items():
            machine.set(key, value)
    except (ValueError, TypeError, OverflowError) as error:
        raise UserError(str(error)) from None
    except MemoryError:
        raise UserError(f"{where.platform}: its network does not fit into memory") from None
    return machine


def machine_settings(said: Mapping[str, Any], ranks: int) -> dict[str, Any]:
    """Changes to a platform, from a study's or the command line's words to the native part's."""
    out: dict[str, Any] = {}
    per_node = said.get("ranks_per_node")
    if per_node:
        out["ranks_per_node"] = per_node
    topology = said.get("topology")
    if topology in ("fat-tree", "crossbar"):
        out[topology.replace("-", "_")] = ranks  # the native part knows how many the platform puts on a node
    elif topology:
        if not topology.startswith("XGFT("):
            raise UserError(f"'{topology}' is no topology; say XGFT(2;18,14;1,18), fat-tree or crossbar")
        out["xgft"] = topology
    if said.get("network"):
        out["contention"] = said["network"] == "full"
    if said.get("cpu_speed"):
        out["cpu_speed"] = said["cpu_speed"]
    return out


def _crowded(cores: int, ranks: int) -> str:
    """Ranks never share a core in the model: where there are too few, a node is taken to have more."""
    if not 0 < cores < ranks:
        return ""
    return f" The platform's nodes have {plural(cores, 'core')}, but one is taken for each rank."


def assumptions(facts: Mapping[str, Any]) -> list[str]:
    """What to know before believing the figures, one sentence each."""
    f = facts
    contention = (
        f"packets of {f['segment_bytes']} bytes share links with other messages"
        if f["contention"]
        else "LogGP: messages wait for their own network card only, links never hold them up, and any two nodes are "
        "one switch apart; switches, and links between them, carry nothing here and are taken to stay on"
    )
    return [
        f"Network: {f['topology']}, {f['nodes']} nodes, {f['routing']} routing, "
        f"{plural(f['ranks_per_node'], 'rank')} a node; {contention}.",
        f"Links: {f['link_gbit_s']:g} Gbit/s, {f['link_lanes']} lanes; each link of a message's way adds "
        f"{f['switch_latency_us']:g} us, MPI {f['mpi_latency_us']:g} us a message; rendezvous above {f['eager_bytes']} "
        f"bytes; collectives as {f['collectives']} has them.",
        f"A link at rest draws {f['link_rest_fraction'] * 100:g} % of its port's {f['link_port_w']:g} W; it takes "
        f"{f['link_rest_down_us']:g} us to get there and {f['link_rest_up_us']:g} us back, at full power. Ports are "
        f"{f['link_share_of_switch'] * 100:g} % of a switch. Where the rest of switches and cards may rest, they take "
        f"{f['switch_rest_up_us']:g} and {f['card_rest_up_us']:g} us to come back.",
        f"Cores: {f['core_compute_w']:g} W computing, {f['core_spin_w']:g} W polling, {f['core_sleep_w']:g} W blocked, "
        f"{f['core_wake_us']:g} us to wake; network cards: {f['card_idle_w']:g} to {f['card_active_w']:g} W. "
        f"Another frequency takes {f['core_frequency_us']:g} us, throttling {f['core_throttle_us']:g} us. The rest of "
        f"a node draws {f['node_w']:g} W and what its memory takes when active; cores without a rank sleep."
        + ("" if f["node_w"] else " The platform says nothing of the rest of its nodes: it is left out.")
        + _crowded(f["cores_per_node"], f["ranks_per_node"]),
        f"Computation takes as long as recorded, divided by {f['cpu_speed']:g}; copies inside a node run at "
        f"{f['memory_gb_s']:.3g} GB/s.",
        "All energy here is modelled; nothing was measured.",
    ]
