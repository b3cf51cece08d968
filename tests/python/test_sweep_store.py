"""Where sweeps keep results: among files of others, on file systems that cannot lock; and studies that are none."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import subprocess
import sys
import time

import pyarrow
import pyarrow.parquet
import pytest

from fallow import cli
from fallow.errors import UserError
from fallow.sweep import execute, study
from fallow.sweep.store import Store, told_apart
from fallow.traces.model import Info, MemorySource, write_source

POINT = {"group": "g", "policy": "always-on", "status": "done", "run_time_s": 1.0, "energy_total_j": 2.0}


def test_files_of_others_stay_what_they_are(tmp_path):
    others = {name: name.encode() for name in ("thesis.tmp", "part-2.tmp", "part-of-thesis.tmp", "part-final.parquet", "part-1.parquet", ".lock")}
    for name, content in others.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "part-000009.tmp").write_bytes(b"half")
    (tmp_path / "results.tmp").write_bytes(b"half")
    store = Store(tmp_path)
    store.add([{"id": "a", **POINT}])
    assert (tmp_path / "part-000001.parquet").is_file()
    store.finish(["a"])
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.name != "results.parquet"} == others


def test_a_directory_that_cannot_be_locked_is_told_from_one_in_use(tmp_path, monkeypatch):
    def without_locks(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", without_locks)
    with pytest.raises(UserError, match="files cannot be locked here: Function not implemented; choose another directory"):
        Store(tmp_path)


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (struct.pack("<d", 1.25), struct.pack("<d", 1.5)),  # a figure that is one as before
        (b"policy", b"polizy"),
        (b"policy", b"polic\xff"),
        (b"run_time_s", b"ran_time_s"),
        (b"energy_total_j", b"energy_totel_j"),
    ],
)
def test_damaged_results_are_refused(tmp_path, was, becomes):
    store = Store(tmp_path)
    store.add([{"id": "a", **POINT, "run_time_s": 1.25}])
    store.close()
    part = tmp_path / "part-000001.parquet"
    content = part.read_bytes()
    assert was in content
    part.write_bytes(content.replace(was, becomes))
    with pytest.raises(UserError, match=r"part-000001.parquet: .*; move it away.*$"):
        Store(tmp_path)


@pytest.mark.parametrize("change", [{"error": None}, {"error": 1}, {"status": "odd"}])
def test_rows_that_no_sweep_wrote_are_refused(tmp_path, change):
    """As another program may leave them, which knows nothing of the checksum."""
    row = {"id": "a", **POINT, "status": "failed", "error": "x"}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "results.parquet")
    store = Store(tmp_path)
    store.close()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row | change]), tmp_path / "results.parquet")
    with pytest.raises(UserError, match="no results of a sweep"):
        Store(tmp_path)


def test_points_are_named_whatever_their_rows_lack(tmp_path, monkeypatch, capsys):
    """The study says what they are."""
    (tmp_path / "s.toml").write_text('[[synth]]\nprogram = "cg"\nranks = 4\niterations = 2\n')
    point = study.read(tmp_path / "s.toml").points[0]
    row = {"id": point.id, "group": point.group, "policy": "always-on", "status": "failed", "error": "lost"}
    (tmp_path / "s.results").mkdir()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "s.results" / "results.parquet")
    assert cli.main(["sweep", str(tmp_path / "s.toml")]) == 2
    said = capsys.readouterr()
    assert said.out.startswith("s: 0 points done, 1 failed")
    assert "minotauro, always-on: lost" in said.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 100_000, "s.toml: too deeply nested"),
        ("x = " + "9" * 5000, "s.toml: Exceeds the limit"),
        (b"x = '\xff'", "s.toml: not UTF-8 text"),
        (b"FALLOWTR\x01\0\0\0\xff", "s.toml: a trace, where a text file is wanted"),
    ],
)
def test_what_no_parser_takes_ends_with_one_line(fallow, tmp_path, text, message):
    (tmp_path / "s.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    done = fallow("sweep", "s.toml")
    assert done.returncode == 2 and done.stderr.startswith(f"fallow: {message}") and done.stderr.count("\n") == 1


def test_files_without_an_end_are_not_read_to_it(fallow, tmp_path):
    for command in (["sweep", "/dev/zero"], ["run", "--config", "/dev/zero", "true"], ["sim", "--synth", "cg", "--platform", "/dev/zero"]):
        done = fallow(*command)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def test_a_scheduler_that_is_lost_ends_the_sweep_with_a_line(tmp_path):
    distributed = pytest.importorskip("distributed")
    iterations = ", ".join(str(n) for n in range(20_000, 20_040))
    (tmp_path / "s.toml").write_text(f'[[synth]]\nprogram = "stencil3d"\nranks = 27\niterations = [{iterations}]\n[policy]\npolicy = "oracle"\n')
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        command = [sys.executable, "-m", "fallow", "sweep", "s.toml", "--on", address]
        running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        while not list(tmp_path.glob("s.results/part-*.parquet")) and running.poll() is None:
            time.sleep(0.2)
    _, said = running.communicate(timeout=120)
    assert (running.returncode, said) == (2, "fallow: the Dask scheduler was lost; the same command goes on from what was kept\n")
    kept = list(tmp_path.glob("s.results/part-*.parquet"))
    assert kept and all(row["status"] == "done" for p in kept for row in pyarrow.parquet.read_table(p).to_pylist())


def test_numbers_of_workers_are_numbers():
    with pytest.raises(UserError, match="is no place to run"):
        execute.Place.parse("local:²")


def test_that_there_are_no_workers_is_said_again_and_again(tmp_path):
    distributed = pytest.importorskip("distributed")
    (tmp_path / "s.toml").write_text('[[synth]]\nprogram = "cg"\nranks = 4\niterations = 1\n[policy]\npolicy = "oracle"\n')
    script = "import sys\nfrom fallow import cli\nfrom fallow.sweep import execute\nexecute._LOOK_S, execute._TELL_S, execute._TELL_AGAIN_S = 0.1, 0.5, 1\nsys.exit(cli.main(sys.argv[1:]))\n"
    with distributed.LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster:
        address = cluster.scheduler_address
        command = [sys.executable, "-c", script, "sweep", "s.toml", "--on", address]
        running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            said = [running.stderr.readline() for _ in range(3)]
            cluster.scale(1)
            out, rest = running.communicate(timeout=120)
        finally:
            running.kill()
    assert all(line.startswith("fallow: no worker for ") and line.endswith(f", at {address}; start some there\n") for line in said), said
    assert "2 points done, 0 failed" in out and running.returncode == 0, rest


def nobody_simulates(monkeypatch, failing):
    """Points are done at once, or fail; the list has all that were asked for."""
    ran = []

    def drive(_, waiting, progress):
        ran.append(waiting)
        for p in waiting:
            progress.add(execute.describe(p) | ({"status": "failed", "error": "no"} if failing(p) else {"status": "done", "run_time_s": 1.0, "energy_total_j": 2.0}))

    monkeypatch.setattr(execute, "client", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(execute, "_told_of_none", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(execute, "_drive", drive)
    return ran


def test_points_that_failed_are_simulated_again_if_asked_for(tmp_path, monkeypatch, capsys):
    """The exit status says whether all, some or none are done; where nobody simulates, rows alone tell."""
    (tmp_path / "s.toml").write_text("[[synth]]\nprogram = 'cg'\nranks = [2, 4, 8]\n[policy]\npolicy = 'always-on'\n")
    fails = {2, 4, 8}
    runs = nobody_simulates(monkeypatch, lambda p: p.synth_options["ranks"] in fails)
    command = ["sweep", str(tmp_path / "s.toml"), "--results", str(tmp_path / "r")]

    def ran():
        return [[p.synth_options["ranks"] for p in points] for points in runs]

    def swept(*more):
        status = cli.main([*command, *more])
        return status, capsys.readouterr()

    status, said = swept()
    assert status == 2 and "0 points done, 3 failed" in said.out
    assert "cg (ranks 2" in said.err and "fallow: and 2 more; see the column error\n" in said.err
    assert said.err.endswith("fallow: no point could be simulated\n")
    fails.clear()
    assert swept()[0] == 2 and ran() == [[2, 4, 8]]  # nothing again unless it is asked for
    fails.add(8)
    status, said = swept("--retry-failed")
    assert status == 1 and "2 points done, 1 failed" in said.out and "more; see" not in said.err
    fails.clear()
    status, said = swept("--retry-failed")
    assert (status, said.err) == (0, "") and ran()[1:] == [[2, 4, 8], [8]]
    assert (tmp_path / "r" / "results.parquet").exists() and not (tmp_path / "s.results").exists()


@pytest.mark.parametrize(
    ("paths", "others", "names"),
    [
        (["/t/lu/trace.ftr", "/t/cg/trace.ftr"], [], ["lu/trace.ftr", "cg/trace.ftr"]),
        (["/t/lu/1/trace.ftr", "/t/cg/1/trace.ftr", "/t/cg/bt.ftr"], [], ["lu/1/trace.ftr", "cg/1/trace.ftr", "bt.ftr"]),
        (["/t/trace.ftr", "/a/t/trace.ftr"], [], ["/t/trace.ftr", "a/t/trace.ftr"]),
        (["/t/cg", "/t/lu"], ["cg"], ["t/cg", "lu"]),
    ],
)
def test_names_have_as_much_of_their_paths_as_tells_them_apart(paths, others, names):
    assert list(told_apart(paths, others).values()) == names


def test_traces_and_platforms_of_the_same_name_are_told_apart(tmp_path, monkeypatch, capsys):
    """In all that a study shows, also where it has grown since it was begun; and nothing is simulated again for that."""
    for name in ("lu", "cg"):
        (tmp_path / name).mkdir()
        write_source(MemorySource(Info(size=2), [[], []]), tmp_path / name / "trace.ftr")
        (tmp_path / name / "m.toml").write_text('[network]\ntopology = "crossbar"\nnodes = 4\n')
    points = nobody_simulates(monkeypatch, lambda p: "cg" in p.trace)
    machine = '[machine]\nplatform = ["./lu/m.toml", "./cg/m.toml"]\n'
    study_file, results = tmp_path / "s.toml", tmp_path / "s.results" / "results.parquet"
    command = ["sweep", str(study_file), "--html", str(tmp_path / "p.html")]

    def rows():
        return [(r["program"], r["platform"]) for r in pyarrow.parquet.read_table(results).to_pylist()]

    study_file.write_text(f'traces = ["lu/trace.ftr"]\n{machine}')
    assert cli.main(command) == 0
    assert rows() == [("trace.ftr", "lu/m"), ("trace.ftr", "cg/m")]
    study_file.write_text(f'traces = ["lu/trace.ftr", "cg/trace.ftr"]\n{machine}')
    assert cli.main(command) == 1
    assert [len(p) for p in points] == [2, 2]
    assert rows() == [(f"{p}/trace.ftr", f"{m}/m") for p in ("lu", "cg") for m in ("lu", "cg")]
    assert "fallow: cg/trace.ftr, lu/m, always-on: no\n" in capsys.readouterr().err
    page = (tmp_path / "p.html").read_text()
    assert '"varying":["program","platform","policy"]' in page.replace(" ", "") and "cg/trace.ftr" in page
    write_source(MemorySource(Info(size=3), [[], [], []]), tmp_path / "lu" / "trace.ftr")
    study_file.write_text(f'traces = ["lu/trace.ftr"]\n{machine}')
    assert cli.main(command) == 0  # what was simulated of the old one is dropped, whatever it was called
    assert sorted(rows()) == [(f"{p}/trace.ftr", f"{m}/m") for p in ("cg", "lu") for m in ("cg", "lu")]
