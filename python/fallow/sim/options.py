"""What may be said of a policy and of the cores: whom each option concerns, and how the native part takes it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from fallow import native

_NAMES = {
    "lead": "lead", "threshold": "threshold_us", "budget": "budget", "idle_timer": "idle_timer_us",
    "deep_timer": "deep_timer_us", "call_cost": "call_cost_us", "cores": "core",
    "compress": "compress", "core_timer": "core_timer_us", "core_state": "core_state", "frequency": "core_ghz",
    "memory_share": "memory_share", "compress_only": "compress_what",
}  # fmt: skip
POLICIES = {"lead": ("pps", "spps"), "threshold": ("pps",), "budget": ("adaptive",), "idle_timer": ("hardware",),
            "call_cost": ("pps", "spps", "adaptive"), "published_cost": ("pps", "spps"),
            "no_cap_by_first": ("pps", "spps")}  # fmt: skip
CORES = {"core_timer": ("sleep", "countdown", "throttle"), "budget": ("adaptive",),
         "core_state": ("sleep", "adaptive", "oracle"), "frequency": ("fixed", "countdown"),
         "memory_share": ("fixed", "countdown")}  # fmt: skip
_RESTS = ("deep_timer", "rest_switches", "rest_cards", "edge_only")  # all policies but always-on


def concerns(option: str, policy: str, cores: str) -> bool:
    """Whether an option changes anything under this policy, with cores that wait in this way."""
    if option in _RESTS:
        return policy != "always-on"
    if option not in POLICIES and option not in CORES:
        return True
    return policy in POLICIES.get(option, ()) or cores in CORES.get(option, ())


def product(values: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Each value of every option with each of all others."""
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def native_options(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """As the native part takes them; what is as it is anyhow is left out."""
    options = {_NAMES[k]: v for k, v in chosen.items() if k in _NAMES and (k, v) != ("cores", "spin")}
    options |= {k: True for k in ("rest_switches", "rest_cards") if chosen.get(k)}
    if chosen.get("edge_only"):
        options["upper_links"] = False
    if chosen.get("no_cap_by_first"):
        options["cap_by_first"] = False
    if chosen.get("published_cost"):
        names = ("call_cost_us", "search_cost_us", "tuning_cost_us")
        options |= dict(zip(names, native.require().published_predictor_cost(), strict=True))
    return options
