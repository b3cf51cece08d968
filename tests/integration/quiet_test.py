"""What is shown by repetition is missed where the machine was quiet, and skipped where it was not."""

from __future__ import annotations

import pytest
from harness import quiet


def _never() -> int:
    return 1


def test_a_figure_that_is_never_right_on_a_quiet_machine_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many tries, which the message names."""
    monkeypatch.setattr(quiet, "_cores_in_use", lambda: 0.0)
    monkeypatch.setattr(quiet, "_seconds", lambda *_: 0.0)
    with pytest.raises(AssertionError, match=r"\[1, 1, 1\]"):
        quiet.shown(_never, lambda value: value > 1, 3)


def test_a_figure_that_others_disturbed_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is right it is right; else tries on a busy machine do not count."""
    monkeypatch.setattr(quiet, "_cores_in_use", lambda: 0.5)
    quiet.shown(_never, lambda value: value == 1, 3)
    with pytest.raises(pytest.skip.Exception, match="others use the machine's cores"):
        quiet.shown(_never, lambda value: value > 1, 3)


def test_what_the_host_takes_disturbs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processors of a virtual machine."""
    monkeypatch.setattr(quiet, "_cores_in_use", lambda: 0.0)
    stolen = iter(range(100))
    monkeypatch.setattr(quiet, "_seconds", lambda *_: float(next(stolen)))
    with pytest.raises(pytest.skip.Exception):
        quiet.shown(_never, lambda value: value > 1, 3)
