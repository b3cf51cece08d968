"""Feeds damaged traces of other tools to the converters: each is read or refused with a message, and nothing else.

usage: converters.py [--seconds N] [--findings DIR] [--seed N] [FORMAT...]     formats: dimemas simgrid paraver otf2

Every trial runs in a process of its own, so that a crash or a hang of a library that a converter uses is a finding like
any other. The exit status is the number of kinds of findings, at most 100.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import trace_samples as samples
from fallow.errors import UserError
from fallow.traces import convert

FORMATS = {"dimemas": "a.dim", "simgrid": "a.tit", "paraver": "a.prv", "otf2": "a/traces.otf2"}
TRIAL_CPU_S = 10  # of its own: the machine may have other work
TRIAL_S = 600
MEMORY_BYTES = 4 << 30
READ, REFUSED, FOUND = range(3)


def _originals(place: Path, name: str) -> list[Path]:
    """Good traces of a format, each in a folder of its own."""
    folders = []
    for kind, source in {"plain": samples.plain(2, 2), "rich": samples.rich(4, 2)}.items():
        folder = place / name / kind
        folder.mkdir(parents=True)
        path = folder / FORMATS[name]
        convert.convert(source, folder / "a" if name == "otf2" else path, name)
        folders.append(folder)
    return folders


def _damage(folder: Path, chance: random.Random) -> Path:
    """Damages one of the folder's files; returns which."""
    path = chance.choice(sorted(p for p in folder.rglob("*") if p.is_file()))
    path.write_bytes(samples.mutate(path.read_bytes(), chance))
    return path


def _try(trace: Path, name: str) -> tuple[int, str]:
    """Reads a trace to its end, in this process."""
    try:
        source = convert.open_source([trace], name)
        for rank in range(source.info.size):
            for _ in source.events(rank):
                pass
    except UserError as error:
        return (REFUSED, "") if str(error) else (FOUND, "refused without a word")
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return FOUND, f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {error}"
    return READ, ""


def _trial(trace: Path, name: str) -> tuple[int, str]:
    """The same in a process that may crash, hang or take all memory."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what libraries say
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(TRIAL_S)
        resource.setrlimit(resource.RLIMIT_CPU, (TRIAL_CPU_S, TRIAL_CPU_S))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        verdict, what = _try(trace, name)
        os.write(writer, f"{verdict} {what}".encode(errors="replace")[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return FOUND, "takes too long" if number in {signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL} else f"ends by {signal.Signals(number).name}"
    verdict, _, what = said.partition(" ")
    return (int(verdict), what) if verdict else (FOUND, "ends without a word")


def attack(name: str, seconds: float, chance: random.Random, findings: Path, place: Path) -> Counter[str]:
    """Findings in one format by kind; the first of each kind is kept."""
    originals = _originals(place, name)
    verdicts: Counter[int] = Counter()
    found: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        work = place / "trial"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(chance.choice(originals), work)
        for _ in range(chance.randint(1, 2)):
            _damage(work, chance)
        verdict, what = _trial(work / FORMATS[name], name)
        verdicts[verdict] += 1
        if verdict == FOUND:
            kind = what.split(": ")[0]
            if not found[kind]:
                kept = findings / f"{name}-{len(found)}"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(work, kept)
                print(f"  {name}: {what}\n    kept as {kept}", flush=True)
            found[kind] += 1
    print(f"{name}: {verdicts[READ]} read, {verdicts[REFUSED]} refused, {verdicts[FOUND]} findings", flush=True)
    return found


def main() -> int:
    """Attacks each format for its share of the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help="which (default: all)")
    parser.add_argument("--seconds", type=float, default=60, help="in all (default: 60)")
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz/findings"), help="where findings are kept")
    parser.add_argument("--seed", type=int, default=None, help="of the damage (default: another one each time)")
    args = parser.parse_args()
    names = args.formats or list(FORMATS)
    if unknown := set(names) - set(FORMATS):
        parser.error(f"unknown format {', '.join(sorted(unknown))}; there are {', '.join(FORMATS)}")
    seed = args.seed if args.seed is not None else time.time_ns() % 2**32
    print(f"converters: {args.seconds:g} s, --seed {seed}")
    args.findings.mkdir(parents=True, exist_ok=True)
    kinds = 0
    with tempfile.TemporaryDirectory(prefix="fallow-fuzz-") as place:
        for i, name in enumerate(names):
            kinds += len(attack(name, args.seconds / len(names), random.Random(seed + i), args.findings, Path(place)))
    return min(kinds, 100)


if __name__ == "__main__":
    sys.exit(main())
