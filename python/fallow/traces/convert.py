"""From and to other tools' formats: one table, one row a format."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fallow import files, native
from fallow.errors import UserError
from fallow.text import plural
from fallow.traces import (
    dimemas,
    goal,
    model,
    otf2_format,
    otf2_read,
    paraver,
    paraver_read,
    parquet,
    perfetto,
    simgrid,
    simgrid_read,
)
from fallow.traces.found import find_files
from fallow.traces.model import FileSource, Info, Source
from fallow.traces.text import Losses

Writer = Callable[[Source, Path, Losses], None]


@dataclass(frozen=True)
class Format:
    """One format: how it is called, told by its name, written and read."""

    name: str
    title: str
    endings: tuple[str, ...]
    write: Writer | None = None
    read: Callable[[Path], Source] | None = None
    passes: int = 1  # over all events, to write them


def _write_fallow(source: Source, path: Path, losses: Losses) -> None:
    model.write_source(source, path)


def _read_fallow(path: Path) -> Source:
    return FileSource(find_files([path]))


FORMATS = (
    Format("fallow", "Fallow's own", (".ftr",), _write_fallow, _read_fallow),
    Format("otf2", "OTF2", (".otf2",), otf2_format.write, otf2_read.read),
    Format("paraver", "Paraver", (".prv",), paraver.write, paraver_read.read, 3),
    Format("dimemas", "Dimemas", (".dim",), dimemas.write, dimemas.read, 2),
    Format("simgrid", "SimGrid's time-independent format", (".tit", ".ti"), simgrid.write, simgrid_read.read),
    Format("perfetto", "Perfetto", (".json",), perfetto.write),
    Format("parquet", "Parquet", (".parquet",), parquet.write),
    Format("goal", "GOAL", (".goal",), goal.write),
)

_WITH_ALL = ("fallow", "parquet")  # that a trace says of its run
_WITH_NAMES = ("otf2", "paraver")  # of the program and its MPI library
_NAME_PARTNERS = ("dimemas", "simgrid", "goal")  # where a message begins
_WHOLE_BY_THEMSELVES = ("fallow", "otf2", "simgrid")  # a temporary name, a new directory, and files of ranks


def by_name(name: str) -> Format:
    """The format of this name; UserError if there is none."""
    for f in FORMATS:
        if f.name == name:
            return f
    raise UserError(f"'{name}' is none of the formats {', '.join(f.name for f in FORMATS)}")


def by_path(path: Path, option: str = "") -> Format:
    """The format that a file's name or a directory's content says; UserError if it says none, and what option would."""
    if path.is_dir() and (path / "traces.otf2").is_file():
        return by_name("otf2")
    if path.is_dir():
        return by_name("fallow")
    for f in FORMATS:
        if path.suffix in f.endings:
            return f
    if option != "--to" and not path.exists():
        raise UserError(f"{path}: {os.strerror(errno.ENOENT)}")
    usable = FORMATS if option == "--to" else [f for f in FORMATS if f.read is not None]
    known = ", ".join(f"{f.name} ({' '.join(f.endings)})" for f in usable)
    say = f"; say {option} one of {known}" if option else f", as these do: {known}"
    raise UserError(f"{path}: its name does not tell the format{say}")


def expect_own(out: Path) -> None:
    """UserError for a name that says another format than the one of ours, which is to be written there."""
    files.expect_name(out)
    for f in FORMATS:
        if f.name != "fallow" and out.suffix in f.endings:
            raise UserError(
                f"{out}: this would be a trace of Fallow's own, not {f.title}: name it {out.with_suffix('.ftr').name}; "
                "fallow trace convert makes the other of it"
            )


def open_source(paths: Sequence[Path], name: str | None) -> Source:
    """Opens a trace of any format that can be read."""
    f = by_name(name) if name else by_path(paths[0], "--from")
    if f.read is None:
        raise UserError(f"{f.title} can be written, not read")
    if f.name == "fallow":
        return FileSource(find_files(paths))
    if len(paths) != 1:
        raise UserError(f"{f.title} is read from one file")
    return f.read(paths[0])


def _count(source: FileSource, passes: int, show: Callable[[float], None]) -> None:
    """Has `show` told the share of all reading that is done."""
    read, all_of_it = 0, max(source.calls * passes, 1)

    def add(events: int) -> None:
        nonlocal read
        read += events
        show(min(read / all_of_it, 1.0))

    source.watch = add


def convert(source: Source, out: Path, name: str | None, show: Callable[[float], None] | None = None) -> list[str]:
    """Writes `source` in the format meant; returns what that format cannot carry, one line each. `show` is told now
    and then which share of a trace of ours has been read."""
    f = by_name(name) if name else by_path(out, "--to")
    if f.write is None:
        raise UserError(f"{f.title} can be read, not written")
    native.file_name(out)  # some formats name files inside
    if f.name == "paraver" and out.suffix in (".pcf", ".row"):
        raise UserError(f"{out}: names and labels are put there, beside a .prv; say -o {out.with_suffix('.prv')}")
    losses = Losses()
    if f.name not in _WITH_ALL:
        _lose(source.info, losses, names=f.name not in _WITH_NAMES)
    if f.name in _NAME_PARTNERS and isinstance(source, FileSource):
        source.settle()
    if show is not None and isinstance(source, FileSource):
        _count(source, f.passes, show)
    write = f.write
    try:
        if f.name in _WHOLE_BY_THEMSELVES:
            write(source, out, losses)
        else:
            files.whole_set(out, lambda path: write(source, path, losses))
    except OSError as error:
        raise UserError(f"{out}: {error.strerror or error}") from None
    return losses.lines(f.title) + _elsewhere(f, out)


def _lose(info: Info, losses: Losses, *, names: bool) -> None:
    """What is said of the run, in formats that have no place for it; `names`: nor for what ran."""
    named = ["the names of the program and its MPI library"] if names and (info.program or info.mpi_version) else []
    if said := named + ["when the run began"] * bool(info.start_wall_ns):
        losses.add(", and ".join(said))
    if info.incomplete:
        losses.add(f"that the trace ends early for {plural(len(info.incomplete), 'rank')}")
    if info.dropped:
        losses.add(f"that it lacks {plural(sum(info.dropped.values()), 'event')}, which came too fast")
    if info.left_out:
        losses.add(f"that {plural(sum(info.left_out.values()), 'event')} of it were cut away")


def _elsewhere(f: Format, out: Path) -> list[str]:
    """Where to look if it is not what was named."""
    folder = otf2_format.folder_of(out) if f.name == "otf2" else out
    return [f"the archive is {folder / 'traces.otf2'}"] if folder not in (out, out.parent) else []
