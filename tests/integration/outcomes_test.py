"""What became of receives that do not say what they take, and of cancelled requests, is recorded and replayed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.building import build
from harness.fallow import BARE, Fallow
from harness.lab import PROGRAMS, Lab
from harness.traces import Call, check_requests, read_trace, replay

MATCHED, FROM = 2, 3  # trace::Outcome
FAILED = 4  # trace::EventFlags


def _told(call: Call) -> list[str]:
    lines = []
    for outcome, tag in zip(call.counts, call.recv_counts, strict=True):
        if outcome != 0:
            lines.append("cancelled" if outcome == 1 else f"{outcome - FROM} {tag}" if outcome >= FROM else "matched")
    return lines


def test_outcomes(lab: Lab, fallow: Fallow) -> None:
    """The trace says of each such request what its status said to the program, and that is what a replay matches."""
    program, said = lab.program("outcomes.c"), lab.scratch / "said"
    file = lab.scratch / "trace.ftr"
    assert lab.run(BARE, 3, program, str(lab.scratch / "bare")).outcome.rc == 0
    trial = lab.run("auto", 3, program, str(said), options=("--trace", str(file), "--clock", "cpu"))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    calls = read_trace(fallow, file).ranks[0]
    told = [line for call in calls for line in _told(call)]
    wanted = said.read_text().splitlines()
    assert wanted[:2] == ["2 1", "1 1"] and wanted[-2:] == ["cancelled", "1 41"]  # as the program is made
    assert told == [*wanted[:-1], "matched"]  # the last one's call had named what it takes
    replay(fallow, file)
    for name in ("a.dim", "a.tit", "a.prv"):  # the first two name partners where messages begin, the third keeps all
        said_of = _converted(fallow, file, lab.scratch / name)
        assert "partner" not in said_of
        _converted(fallow, lab.scratch / name, lab.scratch / (name + ".ftr"))
        replay(fallow, lab.scratch / (name + ".ftr"))
    back = read_trace(fallow, lab.scratch / "a.prv.ftr").ranks[0]
    assert [line for call in back for line in _told(call)] == told


def test_handles_that_another_thread_has_got(lab: Lab, fallow: Fallow) -> None:
    """What a thread gives back is what it had, also when the library has given its handle to another thread meanwhile."""
    file = lab.scratch / "trace.ftr"
    tool = build(lab.family, "tool_lingers.so", [PROGRAMS / "tool_lingers.c"], ["-shared", "-fPIC", "-O1"])
    launch = lab.family.launch(2, lab.program("handles_beside.c"))
    outcome = lab.start("auto", launch, options=("--trace", str(file)), env={"LD_PRELOAD": str(tool)})[0].finish()
    assert outcome.rc == 0, outcome.describe()
    calls = read_trace(fallow, file).ranks[0]
    for thread in {call.thread for call in calls if call.op == "MPI_Mrecv"}:
        own = [call for call in calls if call.thread == thread]
        probed, received = ([(c.peer, c.tag) for c in own if c.op == op] for op in ("MPI_Mprobe", "MPI_Mrecv"))
        assert len(probed) == 30 and received == probed
        check_requests(own)
    replay(fallow, file)


def test_calls_that_return_errors(lab: Lab, fallow: Fallow) -> None:
    """A replay leaves them out, and says so rather than that their communicators are not known."""
    file = lab.scratch / "trace.ftr"
    trial = lab.run("auto", 2, lab.program("throws.cpp"), options=("--trace", str(file)))
    assert trial.outcome.rc == 0, trial.outcome.describe()
    failed = [call for calls in read_trace(fallow, file).ranks for call in calls if call.flags & FAILED]
    raw = replay(fallow, file)["simulations"][0]["raw"]
    assert raw["refused"] == sum(call.op != "MPI_Reduce_local" for call in failed) > 0 and "unplaced" not in raw


def _converted(fallow: Fallow, source: Path, target: Path) -> str:
    done = subprocess.run(
        [fallow.exe, "trace", "convert", source, "-o", target], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


