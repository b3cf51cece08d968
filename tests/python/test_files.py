"""Files that are whole or not there, and records that are what they should be."""

from __future__ import annotations

import dataclasses
import os
import tracemalloc
from pathlib import Path

import pytest

from fallow import files, json_files
from fallow.errors import UserError


def test_what_was_there_stays_until_the_new_is_whole(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(KeyError), files.whole(path) as file:
        file.write("half")
        file.flush()
        assert path.read_text() == "old"
        raise KeyError
    assert path.read_text() == "old"
    files.save(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_links_and_devices_stay_what_they_are(tmp_path):
    (tmp_path / "kept").write_text("old")
    (tmp_path / "link").symlink_to("kept")
    files.save(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "kept").read_text() == "new"
    before = Path("/dev/null").stat().st_rdev
    files.save(Path("/dev/null"), "gone")
    assert Path("/dev/null").stat().st_rdev == before


def test_a_file_beside_which_none_can_be_made_is_written_to(tmp_path, monkeypatch):
    """It is ours, its directory is not."""
    path = tmp_path / "page.html"
    path.write_text("old, and longer")
    before = path.stat().st_ino
    access = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: place != tmp_path and access(place, mode))
    files.expect_room(path)
    files.save(path, "new")
    assert (path.read_text(), path.stat().st_ino) == ("new", before)
    files.whole_set(path, lambda target: target.write_text("newer"))
    assert (path.read_text(), path.stat().st_ino) == ("newer", before)


@pytest.mark.parametrize("place", ["none/page.html", ".", "/dev/full"])
def test_what_cannot_be_written_is_the_users_error(tmp_path, place):
    with pytest.raises(UserError, match=str(tmp_path / place)):
        files.save(tmp_path / place, "text")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_told_before_the_work(tmp_path, fallow):
    (tmp_path / "d").mkdir()
    for command in (["sim", "no.ftr"], ["predict", "no.ftr"]):
        for place, why in (("d", "Is a directory"), ("nowhere/x.html", "No such file or directory")):
            out = fallow(*command, "--html", place)
            assert (out.returncode, out.stderr) == (2, f"fallow: {place}: {why}\n")
    out = fallow("reproduce", "dickov2015", "-o", "nowhere/x")
    assert (out.returncode, out.stderr) == (2, "fallow: nowhere/x.html: No such file or directory\n")


@pytest.mark.parametrize(
    "command",
    [["sim", "--synth", "cg", "--topology", ""], ["sim", "--synth", "cg", "--cores", "sleep", "--core-state", ""], ["sim", "--synth", "cg", "--html", ""],
     ["sim", "--synth", "cg", "--timeline", ""], ["sim", ""], ["sweep", "s.toml", "--results", ""], ["predict", "no.ftr", "--html", ""], ["predict", ""],
     ["trace", "merge", ".", "-o", ""], ["trace", "info", ""], ["synth", "cg", "-o", ""], ["report", "--html", ""], ["report", ""],
     ["run", "--out", "", "--", "true"], ["reproduce", "dickov2015", "-o", ""]],
)  # fmt: skip
def test_an_empty_name_is_said_to_be_empty(tmp_path, fallow, command):
    """A variable that is not set: the path would be the current directory."""
    (tmp_path / "s.toml").write_text("[[synth]]\nprogram = 'cg'\nranks = 2\niterations = 2\n")
    out = fallow(*command)
    assert out.returncode == 2 and out.stderr.endswith(": the name is empty\n"), out.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "s.toml"]


def test_the_mark_before_a_text_is_left_out(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert files.text(tmp_path / "a.toml") == "a = 1\n"


@dataclasses.dataclass(frozen=True)
class Counted:
    file: str
    offset: int


@dataclasses.dataclass(frozen=True)
class Share:
    of: float


@pytest.mark.parametrize(("value", "fits"), [(3, True), (True, False), (2.5, False), ("3", False), (None, False)])
def test_whole_numbers_of_a_record_are_no_others(value, fits):
    if fits:
        assert json_files.build(Counted, {"file": "x", "offset": value}) == Counted("x", value)
    else:
        with pytest.raises(ValueError, match=r"^offset is .*, not an integer$"):
            json_files.build(Counted, {"file": "x", "offset": value})


def test_numbers_of_a_record_are_finite():
    assert json_files.build(Share, {"of": 1}) == Share(1.0)
    for value in (float("inf"), float("nan"), 10**400):
        with pytest.raises(ValueError, match="not a number"):
            json_files.build(Share, {"of": value})


def test_a_text_is_read_with_little_memory(tmp_path):
    """Where memory is limited (`ulimit -v`), the most that may be in a file is not to be had."""
    (tmp_path / "x").write_text("a" * 1_000_000)
    tracemalloc.start()
    try:
        assert len(files.text(tmp_path / "x", 1 << 30)) == 1_000_000
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    with pytest.raises(UserError, match="larger than the 0 MiB"):
        files.text(tmp_path / "x", 999_999)
