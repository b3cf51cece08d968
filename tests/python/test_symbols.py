"""Names of call sites."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fallow import analyse, symbols
from rank_writer import Call, RankFile, write_run


def test_without_the_module_there_is_an_offset():
    found = symbols.resolve([("/no/such/module", 0x1234), ("", 0x99)])
    assert found["/no/such/module", 0x1234].name == "module+0x1234"
    assert found["", 0x99].name == "(unknown module)+0x99"


def _program(folder: Path, text: str, *flags: str) -> tuple[Path, dict[str, int]]:
    """A program, and where its functions begin."""
    source, program = folder / "p.c", folder / "p"
    source.write_text(text)
    subprocess.run(["cc", *flags, "-O0", "-o", program, source], check=True)
    listing = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    return program, {x.split()[2]: int(x.split()[0], 16) for x in listing.splitlines() if len(x.split()) == 3}


def test_functions_and_lines(tmp_path):
    text = "int callee(void);\nint caller(void) {\n  return callee() + 1;\n}\nint callee(void) { return 1; }\nint main(void) { return caller(); }\n"
    program, starts = _program(tmp_path, text, "-g")
    place = str(program), starts["caller"] + 9
    found = symbols.resolve([place, (str(program), 0xFFFFFFF)])
    assert found[place].name == "caller"
    assert found[place].source.endswith(("p.c:2", "p.c:3"))
    assert found[str(program), 0xFFFFFFF].name == "p+0xfffffff"


def test_a_function_that_was_stripped_is_not_called_by_the_name_before_it(tmp_path):
    text = "int exported(void) { return 1; }\nstatic int hidden(int i) { return i ? hidden(i - 1) + 2 : 1; }\nint main(int argc, char **argv) { (void)argv; return hidden(argc); }\n"
    program, starts = _program(tmp_path, text, "-rdynamic")
    places = [(str(program), starts[name] + 9) for name in ("exported", "hidden")]
    assert [symbols.resolve(places)[place].name for place in places] == ["exported", "hidden"]
    subprocess.run(["strip", program], check=True)
    assert [symbols.resolve(places)[place].name for place in places] == ["exported", f"p+0x{places[1][1]:x}"]


def test_sums_of_call_sites_are_over_all_ranks(tmp_path):
    """A smaller communicator's rank may come last."""
    ranks = []
    for rank, size in ((0, 3), (1, 2)):
        calls = [Call(0, 1_000), Call(11_000, 111_000, awake=30_000 + rank * 10_000), Call(411_000, 421_000, size=1000, site=2)]
        ranks.append(RankFile(rank=rank, size=5, comm_size=size, calls=calls, sites={1: (0x401234, 0), 2: (0x401300, 0)}))
    first, second = analyse.load(write_run(tmp_path / "r", ranks)).sites
    assert (first.calls, second.calls, first.ranks, first.comm_size) == (4, 2, 2, 3)
    assert (first.gap_s, second.gap_s) == (pytest.approx(20e-6), pytest.approx(600e-6))
    assert (first.time_s, second.time_s) == (pytest.approx(202e-6), pytest.approx(20e-6))
    assert (first.wait_awake_s, first.wait_max_s, second.size_bytes) == (pytest.approx(70e-6), pytest.approx(40e-6), 2000)
