"""Runs a program bare and under Fallow and compares what a user can see of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.building import build
from harness.fallow import BARE, MODES, Fallow, RankRecord, rank_records
from harness.families import REPOSITORY, Family, base_environment
from harness.running import HANGS_S, Outcome, Running

PROGRAMS = REPOSITORY / "tests/integration/programs"
SUBJECTS = REPOSITORY / "tests/integration/subjects"
DRAWN = REPOSITORY / "tests/integration/drawn"


@dataclass(frozen=True)
class Trial:
    """One run and where its record is."""

    mode: str
    outcome: Outcome
    record: Path

    def ranks(self) -> list[RankRecord]:
        """What each rank recorded."""
        return rank_records(self.record)


class Lab:
    """A family, the command under test and a scratch folder."""

    def __init__(self, family: Family, fallow: Fallow, scratch: Path) -> None:
        self.family = family
        self.fallow = fallow
        self.scratch = scratch
        self._runs = 0

    def program(self, source: str, *flags: str) -> Path:
        """The compiled form of tests/integration/programs/`source`."""
        path = PROGRAMS / source
        return build(
            self.family, path.stem, [path], ["-O1", "-g", "-pthread", *flags], PROGRAMS.glob("*.h"), libs=["-lm"]
        )

    def driver(self) -> Path:
        """All subjects in one executable."""
        sources = sorted(SUBJECTS.glob("*.c"))
        return build(self.family, "driver", sources, ["-O1", "-g", "-pthread"], SUBJECTS.glob("*.h"), libs=["-lm"])

    def drawn(self, sanitizers: str = "") -> Path:
        """The program that draws what it does from a seed."""
        flags = ["-O1", "-g", "-pthread", "-w", *([f"-fsanitize={sanitizers}"] if sanitizers else [])]
        headers = *DRAWN.glob("*.h"), PROGRAMS / "check.h"
        return build(self.family, "-".join(["drawn", *filter(None, [sanitizers])]), sorted(DRAWN.glob("*.c")), flags, headers)

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a run of this family starts with."""
        return {**base_environment(), **self.family.env, **(extra or {})}

    def start(
        self,
        mode: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        options: Sequence[str] = (),
        record: Path | None = None,
        cwd: Path | None = None,
    ) -> tuple[Running, Path]:
        """Starts a command line, for example from `family.launch`, in one mode; in a folder of its own if no other is named."""
        self._runs += 1
        work = self.scratch / f"{self._runs:02d}-{mode}"
        work.mkdir()
        out = record or work / "record"
        command = self.fallow.wrap(mode, out, [str(a) for a in argv], *options)
        return Running(command, self.environment(env), cwd or work, stdin), out

    def run(
        self,
        mode: str,
        ranks: int,
        program: Path,
        *args: str,
        timeout: float = HANGS_S,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        options: Sequence[str] = (),
        record: Path | None = None,
        cwd: Path | None = None,
    ) -> Trial:
        """Runs `program` on `ranks` ranks to its end."""
        launch = self.family.launch(ranks, program, *args)
        running, out = self.start(mode, launch, env=env, stdin=stdin, options=options, record=record, cwd=cwd)
        return Trial(mode, running.finish(timeout), out)

    @staticmethod
    def records(record: Path) -> list[RankRecord]:
        """What each rank of a run recorded."""
        return rank_records(record)

    def compare(
        self,
        ranks: int,
        program: Path,
        *args: str,
        modes: Sequence[str] = MODES,
        rc: int = 0,
        timeout: float = HANGS_S,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> list[Trial]:
        """Runs bare and in `modes`; exit code and standard output must be the same in all, `rc` in the first."""
        bare = self.run(BARE, ranks, program, *args, timeout=timeout, env=env, stdin=stdin)
        assert not bare.outcome.timed_out and bare.outcome.rc == rc, "bare program: " + bare.outcome.describe()
        trials = [bare]
        for mode in modes:
            trial = self.run(mode, ranks, program, *args, timeout=timeout, env=env, stdin=stdin)
            assert_same(bare.outcome, trial.outcome)
            trials.append(trial)
        return trials


_BANNER = re.compile(r"^(=|YOUR APPLICATION TERMINATED|This typically refers|Please see the FAQ|$)")


def _lines(text: str) -> list[str]:
    """The program's lines in any order, as ranks write at once; MPICH's launcher tells of crashes between them or not."""
    return sorted(line for line in text.splitlines() if not _BANNER.match(line))


def assert_same(bare: Outcome, other: Outcome) -> None:
    """What a user sees of `other` is what `bare` showed."""
    assert not other.timed_out, other.describe()
    assert other.rc == bare.rc, f"bare gave {bare.rc}\n" + other.describe()
    assert_same_output(bare, other)
    assert not other.left_over, f"still running: {other.left_over}\n" + other.describe()


def assert_same_output(bare: Outcome, other: Outcome) -> None:
    """The programs' lines are the same."""
    assert _lines(other.out) == _lines(bare.out), other.describe() + f"\n--- bare stdout\n{bare.out}"
