# ruff: noqa: N802 - names of unittest
"""Runs mpi4py's own test programs on one rank and writes each verdict to a file as soon as it is known.

    python mpi4py_worker.py TEST_FOLDER VERDICTS [options of mpi4py's test/main.py]

VERDICTS.<rank> gets a line "begin ID" and a line "VERDICT ID" for every test: what was running when a run hung
or crashed is its last line.
"""

from __future__ import annotations

import os
import sys
import unittest
from typing import Any, TextIO


def _rank() -> str:
    for variable in ("OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        if variable in os.environ:
            return os.environ[variable]
    return "0"


class Recorder(unittest.TextTestResult):
    """A result that keeps verdicts in a file."""

    file: TextIO

    def _say(self, verdict: str, test: unittest.TestCase) -> None:
        print(verdict, test.id(), file=self.file, flush=True)

    def startTest(self, test: unittest.TestCase) -> None:
        self._say("begin", test)
        super().startTest(test)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._say("pass", test)
        super().addSuccess(test)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._say("fail", test)
        super().addFailure(test, err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self._say("error", test)
        super().addError(test, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._say("skip", test)
        super().addSkip(test, reason)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self._say("fail", test)
        super().addSubTest(test, subtest, err)


def main(argv: list[str]) -> None:
    """Runs the tests that the options select."""
    folder, verdicts, *options = argv
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    program = __import__("main").TestProgram
    with open(f"{verdicts}.{_rank()}", "w", encoding="utf-8") as file:  # noqa: PTH123 - before anything is imported
        Recorder.file = file
        unittest.TextTestRunner.resultclass = Recorder
        program(module=None, argv=["main", "--no-builddir", "-q", *options])


if __name__ == "__main__":
    main(sys.argv[1:])
