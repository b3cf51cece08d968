"""Names for addresses: module and function, from addr2line where it is installed.

Of a program that was stripped, addr2line names the symbol before the address, however far away that is. Sizes of
symbols, from nm, tell whether the address lies in it.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
from bisect import bisect_right
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_S = 20.0
_UNKNOWN = "??"
_CODE = frozenset("TtWwi")  # kinds of symbols, as nm has them
_END = 1 << 64


@dataclass(frozen=True)
class Symbol:
    """Where an address lies. `name` falls back to MODULE+0xOFFSET; `source` is "file:line" or empty."""

    name: str
    source: str


def _fallback(module: str, offset: int) -> Symbol:
    return Symbol(f"{Path(module).name or '(unknown module)'}+0x{offset:x}", "")


def _output(command: list[str], asked: str = "") -> list[str]:
    """Lines that a tool prints; none if it fails."""
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def _beyond(nm: str, module: str, addresses: list[int]) -> set[int]:
    """Those of the addresses that lie behind the end of every symbol before them."""
    sizes: dict[int, int] = {}  # by start
    for options in ([], ["-D"]):
        for line in _output([nm, "-S", "--defined-only", *options, module]):
            fields = line.split()
            if len(fields) in {3, 4} and fields[-2] in _CODE:  # those of assembler code may have no size
                start, size = int(fields[0], 16), int(fields[1], 16) if len(fields) == 4 else 0
                sizes[start] = max(sizes.get(start, 0), size)
    starts = sorted(sizes)
    followers = [*starts[1:], _END]
    ends = [start + (sizes[start] or after - start) for start, after in zip(starts, followers, strict=True)]
    furthest = list(itertools.accumulate(ends, max))
    return {a for a in addresses if starts and ((i := bisect_right(starts, a)) == 0 or furthest[i - 1] <= a)}


def _addr2line(tool: str, module: str, offsets: list[int]) -> dict[int, Symbol]:
    """Symbols of one module in one call. Offsets are return addresses: one byte back lies the call itself."""
    asked = "\n".join(f"0x{max(0, offset - 1):x}" for offset in offsets) + "\n"
    lines = _output([tool, "-f", "-C", "-e", module], asked)
    if len(lines) != 2 * len(offsets):
        return {}
    out = {}
    for offset, name, place in zip(offsets, lines[::2], lines[1::2], strict=True):
        if not name.startswith(_UNKNOWN):
            source = "" if place.startswith(_UNKNOWN) else place.split(" (discriminator")[0]
            out[offset] = Symbol(name, "" if source.endswith((":?", ":0")) else source)
    guessed = [offset - 1 for offset, symbol in out.items() if not symbol.source]
    nm = shutil.which("nm")
    for address in _beyond(nm, module, guessed) if nm and guessed else ():
        del out[address + 1]
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
