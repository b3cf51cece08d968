"""Relatives of MPICH that wait in other ways: over libfabric, of MPI 3, and Intel's, which has to be told to yield."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from harness import packaged
from harness.building import build
from harness.fallow import BARE, MODES, Fallow
from harness.families import Family
from harness.lab import PROGRAMS, Lab
from programs_test import ENDS
from subjects_test import SUBJECTS

RANKS = 4
LIBFABRIC, SCHED_YIELD = 4, 3  # RankHeader::hook
LATEST_OVER_LIBFABRIC = "4.1.3"
LEFT_OUT = {"3.4.3": {"attributes"}}  # fails in this version also bare
RELATIVES = [
    pytest.param("mpich", LATEST_OVER_LIBFABRIC, LIBFABRIC, id="libfabric"),
    pytest.param("mpich", "3.4.3", LIBFABRIC, id="mpi3"),
    pytest.param("intel", "2021.18.1", SCHED_YIELD, id="intel"),
]


def _lab(kind: str, version: str, fallow: Fallow, scratch: Path) -> Lab:
    family: Family = getattr(packaged, kind)(version)
    return Lab(family, fallow, scratch)


def test_waits_sleep_over_libfabric(fallow: Fallow, tmp_path: Path) -> None:
    """Its completion queues are the idle hook."""
    lab = _lab("mpich", LATEST_OVER_LIBFABRIC, fallow, tmp_path)
    for trial in lab.compare(2, lab.driver(), "sendrecv", "icoll", modes=("spin", "auto"))[1:]:
        ranks = trial.ranks()
        assert all(r.hook == LIBFABRIC and r.finalized == 1 for r in ranks), trial.outcome.describe()
        assert (sum(r.sleeps for r in ranks) > 0) == (trial.mode == "auto")


def _without_soname(library: Path, copy: Path) -> None:
    """Copies a library so that programs linked to the copy ask for it by its file's name."""
    data = bytearray(library.read_bytes())
    headers, size, count = (*struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54))[:3]
    for at in range(headers, headers + size * count, size):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", data, at)
        if kind == 2:  # PT_DYNAMIC
            for entry in range(offset, offset + length, 16):
                if struct.unpack_from("<q", data, entry) == (14,):  # DT_SONAME
                    struct.pack_into("<q", data, entry, 0x6000000D)  # of the operating system's range: ignored
    copy.write_bytes(data)


def test_library_named_after_a_compiler(fallow: Fallow, tmp_path: Path) -> None:
    """HPE's MPI goes by such names."""
    lab = _lab("mpich", LATEST_OVER_LIBFABRIC, fallow, tmp_path)
    folder = Path(lab.family.env["LD_LIBRARY_PATH"])
    named = folder / "libmpi_gnu_123.so.12"
    _without_soname(folder / "libmpi.so.12", named)
    program = build(
        None,
        "named",
        [PROGRAMS / "steady.c"],
        ["-O1", f"-I{folder.parent}/include"],
        compiler="cc",
        libs=[str(named), "-lm"],
    )
    for trial in lab.compare(2, program, modes=("auto",))[1:]:
        assert all(r.hook == LIBFABRIC and r.finalized == 1 for r in trial.ranks()), trial.outcome.describe()
        assert len(trial.ranks()) == 2, trial.outcome.describe()


@pytest.mark.long
@pytest.mark.parametrize(("kind", "version", "hook"), RELATIVES)
def test_all_subjects(kind: str, version: str, hook: int, fallow: Fallow, tmp_path: Path) -> None:
    """Every subject passes bare and in every mode with equal checksums, and waits sleep."""
    lab = _lab(kind, version, fallow, tmp_path)
    for trial in lab.compare(RANKS, lab.driver(), *sorted({*SUBJECTS} - LEFT_OUT.get(version, set())))[1:]:
        ranks = trial.ranks()
        assert [r.world_rank for r in ranks] == list(range(RANKS)), trial.outcome.describe()
        assert all(r.mode == MODES.index(trial.mode) and r.finalized == 1 for r in ranks), trial.outcome.describe()
        assert all(r.hook == hook for r in ranks) or trial.mode == "spin"
        assert (sum(r.sleeps for r in ranks) > 0) == (trial.mode in {"sleep", "auto"})


@pytest.mark.long
@pytest.mark.parametrize(("kind", "version", "hook"), RELATIVES)
def test_environment_of_children(kind: str, version: str, hook: int, fallow: Fallow, tmp_path: Path) -> None:
    """Whatever a library had to be told, the program's children see what they would have seen."""
    lab = _lab(kind, version, fallow, tmp_path)
    lab.compare(2, lab.program("children.c"), modes=("auto",))


@pytest.mark.long
@pytest.mark.parametrize(("kind", "version", "hook"), RELATIVES)
def test_ends(kind: str, version: str, hook: int, fallow: Fallow, tmp_path: Path) -> None:
    """A job that aborts and a program that ends early give the codes that they give without Fallow."""
    lab = _lab(kind, version, fallow, tmp_path)
    for mode in (BARE, "auto"):
        outcome = lab.run(mode, 2, lab.program("ends.c"), "abort").outcome
        assert outcome.rc == ENDS["abort"] and not outcome.timed_out and not outcome.left_over, outcome.describe()
        alone, _ = lab.start(mode, [lab.program("ends.c"), "exit7"])  # Intel's launcher reports 255 now and then
        outcome = alone.finish(60)
        assert outcome.rc == ENDS["exit7"] and not outcome.timed_out and not outcome.left_over, outcome.describe()


@pytest.mark.long
@pytest.mark.parametrize("version", ["4.1.3", "3.4.3"])
def test_messages_through_the_network(version: str, fallow: Fallow, tmp_path: Path) -> None:
    """Ranks of one node that send each other everything through libfabric's TCP sleep too."""
    lab = _lab("mpich", version, fallow, tmp_path)
    network = {"MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp;ofi_rxm"}
    for trial in lab.compare(RANKS, lab.driver(), "sendrecv", "icoll", "sends", "wildcards", env=network)[1:]:
        ranks = trial.ranks()
        assert all(r.hook == LIBFABRIC and r.finalized == 1 for r in ranks), trial.outcome.describe()
        assert (sum(r.sleeps for r in ranks) > 0) == (trial.mode in {"sleep", "auto"})
