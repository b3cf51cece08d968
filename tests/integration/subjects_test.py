"""What MPI promises a program holds under Fallow in every wait mode, on every family, exactly as without it."""

from __future__ import annotations

from collections import Counter

import pytest
from harness.fallow import BARE, MODES
from harness.lab import Lab

RANKS = 4
SUBJECTS = [
    "attributes",
    "cancel",
    "comms",
    "completion",
    "empty",
    "errors",
    "files",
    "fpstate",
    "grequest",
    "handles",
    "icoll",
    "inplace",
    "intercomm",
    "mprobe",
    "neighbor",
    "ops",
    "persistent",
    "rma",
    "sendrecv",
    "sends",
    "types",
    "wildcards",
]


def _checksums(text: str) -> dict[str, str]:
    return {words[1]: words[2] for words in map(str.split, text.splitlines()) if words and words[0] == "end"}


def test_all_subjects(lab: Lab) -> None:
    """Every subject passes bare and in every mode with equal checksums; every rank recorded its calls."""
    trials = lab.compare(RANKS, lab.driver())
    assert sorted(_checksums(trials[0].outcome.out)) == SUBJECTS
    for trial in trials[1:]:
        ranks = trial.ranks()
        assert [r.world_rank for r in ranks] == list(range(RANKS)), trial.outcome.describe()
        assert all(r.mode == MODES.index(trial.mode) and r.finalized == 1 for r in ranks)
        assert all(r.calls["MPI_Init"] == 1 and r.calls["MPI_Finalize"] == 1 for r in ranks)


@pytest.mark.long
@pytest.mark.parametrize("mode", [BARE, *MODES])
def test_subjects_with_two_and_seven_ranks(lab: Lab, mode: str) -> None:
    """An even split of the machine's cores, and an odd number beyond them."""
    for ranks in (2, 7):
        trial = lab.run(mode, ranks, lab.driver())
        assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
        assert Counter(_checksums(trial.outcome.out).keys()) == Counter(SUBJECTS)


@pytest.mark.long
@pytest.mark.parametrize("mode", [BARE, "auto", "sleep"])
def test_ten_thousand_communicators(lab: Lab, mode: str) -> None:
    """Context identifiers, memory and Fallow's own numbers of communicators last."""
    trial = lab.run(mode, 2, lab.driver(), "--scale=100", "comms", timeout=400)
    assert trial.outcome.rc == 0 and not trial.outcome.timed_out, trial.outcome.describe()
