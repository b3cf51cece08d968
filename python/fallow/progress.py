"""How far work is, and the time left: a bar, on terminals only, and words; silent for short work."""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

from fallow.text import Style, seconds

_QUIET_S = 1.0  # nothing is shown before
_EVERY_S = 0.2
_WORDS_EVERY_S = 10.0  # where they are no terminal's
_WIDTH = 30
_LEAST_SHARE = 0.01  # that says how long the rest takes
_USUAL_COLUMNS = 80


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS


def _left(began: float, now: float, share: float, before: float = 0.0) -> str:
    """`before`: the share that was done when it `began`."""
    done = share - before
    return f", {seconds((now - began) * (1 - share) / done)} left" if done > _LEAST_SHARE else ""


class Bar:
    """Call show() now and then with the share that is done; close() clears the line."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self.what = what
        self.stream: TextIO | None = stream or sys.stderr  # none in a process that began with it closed
        self.on = self.stream is not None and self.stream.isatty()
        self.began = time.monotonic()
        self.last = 0.0
        self.width = 0

    def show(self, share: float, note: str = "") -> None:
        """Draws, if it is time to."""
        now = time.monotonic()
        if self.stream is None or not self.on or now - self.began < _QUIET_S or now - self.last < _EVERY_S:
            return
        self.last = now
        bar = Style.of(self.stream).bar(share, _WIDTH)
        line = f"{self.what} [{bar}] {share * 100:3.0f} %{_left(self.began, now, share)}{note}"
        line = line[: _columns(self.stream) - 1]  # a line that wraps is not drawn over
        self.stream.write("\r" + line.ljust(self.width))
        self.stream.flush()
        self.width = len(line)

    def close(self) -> None:
        """Clears the line."""
        if self.stream is not None and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()
            self.width = 0


class Words:
    """A line on a terminal, drawn again and again; another stream gets one only every ten seconds."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.tty = stream.isatty()
        self.said = self.began = time.monotonic()
        self.what = ""
        self.before = 0.0
        self.drawn = False

    def show(self, what: str, share: float) -> None:
        """What is under way and its share done."""
        now = time.monotonic()
        if what != self.what:
            self.what, self.began, self.before = what, now, share
        if now - self.said < (_EVERY_S if self.tty else _WORDS_EVERY_S):
            return
        self.said = now
        line = f"fallow: {what}: {100 * share:.0f} %{_left(self.began, now, share, self.before)}"
        self.stream.write(f"\r\x1b[K{line[: _columns(self.stream) - 1]}" if self.tty else line + "\n")
        self.stream.flush()
        self.drawn = self.tty

    def clear(self) -> None:
        """Takes the line away."""
        if self.drawn:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self.drawn = False
