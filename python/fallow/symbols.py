"""Names for addresses: module and function, from addr2line where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_S = 20.0
_UNKNOWN = "??"


@dataclass(frozen=True)
class Symbol:
    """Where an address lies. `name` falls back to MODULE+0xOFFSET; `source` is "file:line" or empty."""

    name: str
    source: str


def _fallback(module: str, offset: int) -> Symbol:
    return Symbol(f"{Path(module).name or '(unknown module)'}+0x{offset:x}", "")


def _addr2line(tool: str, module: str, offsets: list[int]) -> dict[int, Symbol]:
    """Symbols of one module in one call. Offsets are return addresses: one byte back lies the call itself."""
    asked = "\n".join(f"0x{max(0, offset - 1):x}" for offset in offsets) + "\n"
    try:
        done = subprocess.run(
            [tool, "-f", "-C", "-e", module], input=asked, capture_output=True, text=True, errors="replace",
            timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != 2 * len(offsets):
        return {}
    out = {}
    for offset, name, place in zip(offsets, lines[::2], lines[1::2], strict=True):
        if not name.startswith(_UNKNOWN):
            source = "" if place.startswith(_UNKNOWN) else place.split(" (discriminator")[0]
            out[offset] = Symbol(name, "" if source.endswith((":?", ":0")) else source)
    return out


def resolve(places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Symbol]:
    """Symbols of (module path, return address as an offset in the module)."""
    by_module: dict[str, list[int]] = {}
    for module, offset in set(places):
        by_module.setdefault(module, []).append(offset)
    tool = shutil.which("addr2line")
    out = {(m, o): _fallback(m, o) for m, offsets in by_module.items() for o in offsets}
    known = [m for m in by_module if tool and m.startswith("/") and Path(m).is_file()]
    if tool is None or not known:
        return out
    with ThreadPoolExecutor(max_workers=2) as pool:
        found = pool.map(lambda m: (m, _addr2line(tool, m, by_module[m])), known)
        for module, symbols in found:
            out.update({(module, offset): symbol for offset, symbol in symbols.items()})
    return out
