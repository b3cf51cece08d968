"""Fallow as the tests run it, and what it recorded."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.building import build
from harness.families import REPOSITORY

MODES = ("spin", "yield", "sleep", "auto")
BARE = "bare"


@dataclass(frozen=True)
class Fallow:
    """The command under test."""

    exe: Path

    def wrap(self, mode: str, out: Path, argv: list[str], *options: str) -> list[str]:
        """`argv` under Fallow in a wait mode, or as it is for BARE."""
        if mode == BARE:
            return argv
        if not self.exe.exists():
            raise FileNotFoundError(f"{self.exe} is not there: run `make build` first")
        return [str(self.exe), "run", "--quiet", "--mode", mode, "--out", str(out), *options, "--", *argv]

    def library(self) -> Path:
        """What is preloaded."""
        return next((self.exe.parent.parent / "lib").glob("python*/site-packages/fallow/lib/libfallow.so"))

    def report(self, record: Path) -> dict[str, Any]:
        """What `fallow report --json` says of a run."""
        result = subprocess.run([self.exe, "report", record, "--json"], capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"fallow report: {result.returncode}\n{result.stderr}"
        return json.loads(result.stdout)


@dataclass(frozen=True)
class RankRecord:
    """Totals of one rank file."""

    path: Path
    world_rank: int
    world_size: int
    local_size: int
    pid: int
    mode: int
    finalized: int
    hook: int
    sleeps: int
    wakes_sent: int
    bytes_sent: int
    bytes_received: int
    wait_awake_s: float
    wait_asleep_s: float
    wake_delay_s: float
    wake_absorbed_s: float
    calls: Counter[str]


def rank_records(out: Path) -> list[RankRecord]:
    """Every rank file under `out`, by world rank; read through the header that defines them."""
    header = REPOSITORY / "src/trace/rank_file.hpp"
    source = REPOSITORY / "tests/integration/harness/rankdump.cpp"
    dump = build(None, "rankdump", [source], ["-std=c++20", "-O1", f"-I{REPOSITORY / 'src'}"], [header])
    files = [p for p in sorted(out.rglob("*")) if p.is_file() and p.open("rb").read(8) == b"FALLOWRK"]
    records = []
    for path in files:
        text = subprocess.run([dump, path], capture_output=True, text=True, check=True).stdout
        fields = json.loads(text)
        records.append(RankRecord(path=path, **{**fields, "calls": Counter(fields["calls"])}))
    return sorted(records, key=lambda r: (r.world_size, r.world_rank, r.pid))
