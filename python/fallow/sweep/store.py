"""Results on disk: parts that appear whole or not at all, merged into one Parquet file when the study is through.

Every row has its point's id. Whatever a kill leaves behind - a temporary file, parts that were merged already - is
told apart by these ids when the directory is opened again, so that no point is lost or counted twice.
"""

from __future__ import annotations

import fcntl
import importlib
import itertools
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from fallow.errors import UserError
from fallow.sim.machine import require

Row = dict[str, Any]
RESULTS = "results.parquet"
_PART = re.compile(r"part-[0-9]{6,}\.parquet")
_UNFINISHED = re.compile(r"(part-[0-9]{6,}|results)\.tmp")
_TEXTS = {"id", "group", "program", "trace", "platform", "platform_file", "policy", "status", "notes", "error"}
_CHECKSUM = b"fallow_checksum"  # in the file's metadata: of the rows, names of columns included
_PATHS = {"program": "trace", "platform": "platform_file"}  # columns of names, and of the paths that some are of
_ALWAYS = ("id", "group", "policy", "status")
_REAL = ("_s", "_j", "_us", "share", "lead", "budget", "jitter", "speed")


def _arrow() -> Any:  # noqa: ANN401  # modules without types
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError:
        raise UserError("sweeps need pyarrow: pip install 'fallow[sweep]'") from None


class Store:
    """One study's results; one process at a time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.pa = _arrow()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock: IO[str] = (directory / ".lock").open("a")
        except OSError as error:
            raise UserError(f"{directory}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in [p for p in directory.iterdir() if _UNFINISHED.fullmatch(p.name)]:
                left.unlink(missing_ok=True)
        except BlockingIOError:
            raise UserError(f"{directory}: another sweep is writing here") from None
        except OSError as error:
            why = (
                f"{error.filename}: {error.strerror}"
                if error.filename
                else f"files cannot be locked here: {error.strerror}"
            )
            raise UserError(f"{directory}: {why}; choose another directory with --results") from None
        self.rows: dict[str, Row] = {}
        for file in [directory / RESULTS, *self._parts()]:
            if file.is_file():
                self._take(self._read(file))
        self.next_part = 1 + max((int(p.stem.split("-")[1]) for p in self._parts()), default=0)

    def close(self) -> None:
        """Lets another process have the directory."""
        self._lock.close()

    def _parts(self) -> list[Path]:
        return sorted(p for p in self.directory.iterdir() if _PART.fullmatch(p.name))

    def _read(self, file: Path) -> list[Row]:
        try:
            table = self.pa.parquet.read_table(file)
            rows: list[Row] = table.to_pylist()
        except (self.pa.ArrowException, OSError, ValueError) as error:  # the last: of names and texts not in UTF-8
            why = " ".join(str(error).split())
            raise UserError(f"{file}: {why}; move it away, its points will be simulated again") from None
        stated = (table.schema.metadata or {}).get(_CHECKSUM)
        if stated is not None and stated != _checksum(rows):
            raise UserError(f"{file}: damaged; move it away, its points will be simulated again")
        if not all(map(_is_result, rows)):
            raise UserError(f"{file}: these are no results of a sweep; move it away, or choose others with --results")
        return rows

    def _take(self, rows: Iterable[Row]) -> None:
        """A point that failed and was done later is done."""
        for row in rows:
            old = self.rows.get(row["id"])
            if old is None or old["status"] != "done":
                self.rows[row["id"]] = {k: v for k, v in row.items() if v is not None}

    def _write(self, rows: list[Row], target: Path) -> None:
        names = dict.fromkeys([*(key for row in rows for key in row), "notes", "error"])  # these also where all is well
        columns = {name: [row.get(name) for row in rows] for name in names}
        arrays = {name: self._column(name, values) for name, values in columns.items()}
        temporary = target.with_suffix(".tmp")
        try:
            table = self.pa.table(arrays)
            table = table.replace_schema_metadata({_CHECKSUM: _checksum(table.to_pylist())})
            self.pa.parquet.write_table(table, temporary)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.replace(target)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise UserError(f"{target}: {why}; the same command goes on from what was kept") from None

    def _column(self, name: str, values: list[Any]) -> Any:  # noqa: ANN401
        if name in _TEXTS or any(isinstance(v, str) for v in values):
            return self.pa.array([None if v is None else str(v) for v in values], self.pa.string())
        if any(isinstance(v, bool) for v in values):
            return self.pa.array(values, self.pa.bool_())
        if not name.endswith(_REAL) and all(v is None or isinstance(v, int) for v in values):
            return self.pa.array(values, self.pa.int64())
        return self.pa.array([None if v is None else float(v) for v in values], self.pa.float64())

    def add(self, rows: list[Row]) -> None:
        """Rows that are new, as one part."""
        if not rows:
            return
        self._write(rows, self.directory / f"part-{self.next_part:06d}.parquet")
        self.next_part += 1
        self._take(rows)

    def compared(self, order: list[str]) -> list[Row]:
        """The rows of these points, with what is saved against always-on."""
        return _compared([self.rows[i] for i in order])

    def finish(self, order: list[str]) -> Path:
        """Merges all parts, in the study's order, with what is saved against always-on; returns the file."""
        rows = [self.rows[i] for i in order if i in self.rows]
        groups = {_replayed(row): row["group"] for row in rows}
        now = set(order)
        # Of an earlier form of the study, but not of an earlier trace or platform file of the same name, under whatever
        # policy: nothing in its row would tell that it is not of the one that holds. Nor of another model, with which
        # nothing here is to be compared.
        model = require("sim_model")()
        held = (row for i, row in self.rows.items() if i not in now and row.get("model") == model)
        rows += [row for row in held if groups.get(_replayed(row), row["group"]) == row["group"]]
        self.rows = {row["id"]: row for row in _named(rows)}
        rows = list(self.rows.values())
        target = self.directory / RESULTS
        self._write(_compared(rows), target)
        for part in self._parts():
            part.unlink()
        return target


def _checksum(rows: list[Row]) -> bytes:
    return b"%08x" % zlib.crc32(repr(rows).encode())


def _is_result(row: Row) -> bool:
    """Whether a row has what is needed of all, in the types that it was written in."""
    named = all(isinstance(row.get(key), str) and row[key] for key in _ALWAYS)
    plain = all(value is None or isinstance(value, str | int | float) for value in row.values())
    if row.get("status") != "done":
        return named and plain and row["status"] == "failed" and isinstance(row.get("error"), str)
    needed = ["run_time_s", *(key for key in row if key.startswith("energy_"))]
    return named and plain and all(isinstance(row.get(key), float) for key in needed)


def _compared(rows: list[Row]) -> list[Row]:
    bases = {r["group"]: r for r in rows if r["policy"] == "always-on" and r["status"] == "done" and not _options(r)}
    out = []
    for row in rows:
        base = bases.get(row["group"])
        if base is None or row["status"] != "done":
            out.append(row)
            continue
        more = {"slowdown": row["run_time_s"] / base["run_time_s"] - 1 if base["run_time_s"] else 0.0}
        for key in [k for k in base if k.startswith("energy_")]:
            if base[key] and key in row:
                more["saved_" + key.removeprefix("energy_").removesuffix("_j")] = 1 - row[key] / base[key]
        out.append(row | more)
    return out


def _replayed(row: Row) -> str:
    """Which program was replayed on which machine, in the study's words. What has a path goes by that: names change."""
    words, parts = {path if row.get(path) else name for name, path in _PATHS.items()}, ("synth_", "machine_")
    return json.dumps({k: v for k, v in row.items() if k in words or k.startswith(parts)}, sort_keys=True)


def _named(rows: list[Row]) -> list[Row]:
    """With names of traces and platform files that tell them apart: `fallow run` calls all of its traces the same."""
    for name, path in _PATHS.items():
        others = {row[name] for row in rows if name in row and not row.get(path)}
        told = told_apart({row[path] for row in rows if row.get(path)}, others, stem=name == "platform")
        rows = [row | {name: told[row[path]]} if row.get(path) else row for row in rows]
    return rows


def told_apart(paths: Iterable[str], others: Iterable[str] = (), *, stem: bool = False) -> dict[str, str]:
    """As much of each path's end as no other path ends with, and as none of `others` is called."""
    ends = {}
    for path in paths:
        parts = (Path(path).with_suffix("") if stem else Path(path)).parts
        ends[path] = [str(Path(*parts[-n:])) for n in range(1, len(parts) + 1)]
    count = Counter(itertools.chain(others, *ends.values()))
    return {path: next((end for end in of if count[end] == 1), path) for path, of in ends.items()}


def _options(row: Row) -> bool:
    return any(k.startswith("option_") for k in row)
