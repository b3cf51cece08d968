"""A progress bar with the time left, on terminals only; silent for short work."""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

from fallow.text import Style, seconds

_QUIET_S = 1.0  # nothing is shown before
_EVERY_S = 0.2
_WIDTH = 30
_USUAL_COLUMNS = 80


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS


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
        left = f", {seconds((now - self.began) * (1 - share) / share)} left" if share > 0.01 else ""
        line = f"{self.what} [{Style.of(self.stream).bar(share, _WIDTH)}] {share * 100:3.0f} %{left}{note}"
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
