"""What users write, taken or refused at its bounds."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

import pytest

from fallow import cli, quantities


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (quantities.whole(2, 5), "2", 2), (quantities.whole(2, 5), "5", 5), (quantities.positive, "1e6", 1e6),
        (quantities.size_bytes, "1024GB", 1 << 40), (quantities.size_bytes, "3MB", 3 << 20), (quantities.size_bytes, "1GiB", 1 << 30),
        (quantities.share, "100%", 1.0), (quantities.time_ns, "0", 0), (quantities.rank_list, "3", [3]),
        (quantities.listed(int), "1,,2", [1, 2]), (quantities.threads, "256", 256), (quantities.threads, "0", len(os.sched_getaffinity(0))),
    ],
)  # fmt: skip
def test_what_is_just_within_bounds_is_taken(parse: Callable[[str], object], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (quantities.whole(2, 5), "1"), (quantities.whole(2, 5), "6"), (quantities.whole(2, 5), "x"), (quantities.positive, "0"),
        (quantities.positive, "x"), (quantities.size_bytes, "1025GB"), (quantities.share, "101%"), (quantities.share, "nan"),
        (quantities.time_ns, "20"), (quantities.named, "  "), (quantities.listed(int), " , "), (quantities.threads, "257"), (quantities.threads, "-1"),
    ],
)  # fmt: skip
def test_what_is_beyond_is_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"^('{text}' |the name is empty$)"):
        parse(text)


@pytest.mark.parametrize("command", [["sim", "--synth", "cg"], ["predict", "x.ftr"], ["reproduce", "dickov2015"]])
def test_all_commands_take_the_same_threads(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.parser(command).parse_args([*command, "--threads", "0"]).threads == len(os.sched_getaffinity(0))
    with pytest.raises(SystemExit):
        cli.parser(command).parse_args([*command, "--threads", "257"])
    assert "'257' is not a whole number from 0 to 256" in capsys.readouterr().err
