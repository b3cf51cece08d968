"""`fallow sweep`: every point once, whatever happens in between."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow.parquet
import pytest

from fallow import cli_sweep
from fallow.errors import UserError
from fallow.sim import machine
from fallow.sweep import execute, study
from fallow.sweep.store import Store
from fallow.traces.model import COMM_WORLD, Event, Info, MemorySource, op_number, write_source

SMALL = """
[[synth]]
program = ["stencil3d", "cg"]
ranks = [4, 8]
iterations = 5
[machine]
ranks_per_node = [1, 2]
[policy]
policy = ["hardware", "pps", "oracle"]
lead = ["1%", "10%"]
threshold = "20us"
"""
SMALL_POINTS = 2 * 2 * 2 * 5  # always-on, hardware, pps twice, oracle


def start(directory, *args, **kwargs):
    return subprocess.Popen([sys.executable, "-m", "fallow", "sweep", *map(str, args)], cwd=directory, text=True, **kwargs)


@pytest.fixture
def sweep(tmp_path):
    """Runs a sweep that ends as expected; machines that are busy need time to start processes."""

    def run(*args, env=None, status=0):
        running = start(tmp_path, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ) | (env or {}))
        try:
            out, errors = running.communicate(timeout=280)
        finally:
            running.kill()
        assert running.returncode == status, errors
        return subprocess.CompletedProcess(args, status, out, errors)

    return run


def test_a_point_that_failed_is_named_with_all_that_was_chosen():
    row = {"program": "cg", "synth_ranks": 8, "platform": "minotauro", "machine_topology": "XGFT(1;4;1)", "machine_network": None,
           "policy": "pps", "option_lead": 0.05, "status": "failed", "error": "no"}  # fmt: skip
    assert cli_sweep._point(row) == "cg (ranks 8), minotauro (topology XGFT(1;4;1)), pps (lead 0.05)"


def refused(directory, *args, env):
    """What a sweep says that ends at once."""
    running = start(directory, *args, stderr=subprocess.PIPE, env=dict(os.environ) | env)
    try:
        return running.communicate(timeout=60)[1], running.returncode
    finally:
        running.kill()


def rows(path: Path):
    return pyarrow.parquet.read_table(path / "results.parquet").to_pylist()


def test_every_combination_is_simulated_once(sweep, tmp_path):
    (tmp_path / "s.toml").write_text(SMALL)
    assert f"{SMALL_POINTS} points" in sweep("s.toml", "--dry-run").stdout
    done = sweep("s.toml", "--on", "local:2", "--html")
    first, *table, page = done.stdout.splitlines()
    assert f"{SMALL_POINTS} points done, 0 failed" in first and page == "s.results/results.html"
    assert [line.split()[:2] for line in table[2:]] == [["hardware", "8"], ["pps", "16"], ["oracle", "8"]]
    assert (tmp_path / page).read_text().startswith("<!doctype html>")
    only = sweep("s.toml", "--html", "-")  # all points are done already
    assert only.stdout == (tmp_path / page).read_text() and "0 failed" in only.stderr
    assert [p.name for p in (tmp_path / "s.results").iterdir() if p.suffix == ".parquet"] == ["results.parquet"]
    found = rows(tmp_path / "s.results")
    assert len({r["id"] for r in found}) == len(found) == SMALL_POINTS
    key = {(r["program"], r["synth_ranks"], r["machine_ranks_per_node"], r["policy"], r["option_lead"]) for r in found}
    assert len(key) == SMALL_POINTS
    for r in found:
        assert r["status"] == "done" and r["run_time_s"] > 0 and r["energy_total_j"] > 0 and r["ranks"] == r["synth_ranks"]
        if r["policy"] in ("always-on", "oracle"):
            assert r["slowdown"] == 0
        assert r["saved_total"] == 0 if r["policy"] == "always-on" else r["saved_total"] > -1
    assert all(r["error"] is None for r in found)
    # nothing is done twice: the file does not change
    before = (tmp_path / "s.results" / "results.parquet").read_bytes()
    sweep("s.toml")
    assert (tmp_path / "s.results" / "results.parquet").read_bytes() == before


@pytest.mark.parametrize(("asked", "points", "started"), [(99999, 3, 3), (2, 3, 2)])
def test_no_more_processes_are_started_than_there_are_points(tmp_path, monkeypatch, asked, points, started):
    class Ended(Exception):
        pass

    def cluster(*, n_workers, **_):
        raise Ended(n_workers)

    monkeypatch.setattr("distributed.LocalCluster", cluster)
    here = execute.client(execute.Place("local", asked), {}, tmp_path / ".dask", points)
    with pytest.raises(Ended) as found, here:
        pass
    assert found.value.args == (started,)


@pytest.mark.long
def test_a_study_that_grows_keeps_what_is_done(sweep, tmp_path):
    (tmp_path / "s.toml").write_text(SMALL.replace("[4, 8]", "[4]"))
    sweep("s.toml", "--on", "local:1")
    first = {r["id"]: r for r in rows(tmp_path / "s.results")}
    (tmp_path / "s.toml").write_text(SMALL)
    sweep("s.toml", "--on", "local:1")
    both = {r["id"]: r for r in rows(tmp_path / "s.results")}
    assert len(first) == SMALL_POINTS // 2 and len(both) == SMALL_POINTS
    assert all(both[i]["simulation_s"] == r["simulation_s"] for i, r in first.items())


def test_rows_of_what_is_no_longer_in_the_study_are_told(sweep, tmp_path):
    text = '[[synth]]\nprogram = "cg"\nranks = [4, 8]\niterations = 2\n[policy]\npolicy = "oracle"\n'
    (tmp_path / "s.toml").write_text(text)
    assert sweep("s.toml", "--on", "local:1").stderr == ""
    (tmp_path / "s.toml").write_text(text.replace("[4, 8]", "8"))
    assert sweep("s.toml").stderr == "fallow: NOTE: 2 rows there of earlier forms of the study, too\n"
    assert len(rows(tmp_path / "s.results")) == 4


def test_a_point_that_fails_does_not_end_the_study(sweep, tmp_path):
    recv = Event(op=op_number("MPI_Recv"), comm=COMM_WORLD, peer=1, tag=1, size_bytes=8, enter_ns=1, exit_ns=2)
    write_source(MemorySource(Info(size=2), [[recv], []]), tmp_path / "stuck.ftr")
    (tmp_path / "s.toml").write_text('traces = ["stuck.ftr"]\n[[synth]]\nprogram = "cg"\nranks = [4, 2000]\niterations = 3\n[policy]\npolicy = "oracle"\n')
    done = sweep("s.toml", "--on", "local:1", status=1)
    assert "2 points done, 4 failed" in done.stdout and "fallow: stuck.ftr" in done.stderr
    found = rows(tmp_path / "s.results")
    errors = {r["program"]: r["error"] for r in found if r["status"] == "failed"}
    assert "rank 0 in MPI_Recv (call 1)" in errors["stuck.ftr"] and "252" in errors["cg"]
    # a trace that has been mended is another point
    write_source(MemorySource(Info(size=2), [[], []]), tmp_path / "stuck.ftr")
    assert "4 points done, 2 failed" in sweep("s.toml", "--on", "local:1", status=1).stdout


def test_what_is_doubtful_of_a_point_that_is_done_is_in_its_row(sweep, tmp_path):
    barrier = Event(op=op_number("MPI_Barrier"), comm=COMM_WORLD, enter_ns=1, exit_ns=2)
    for name, cut in (("whole", frozenset()), ("cut", frozenset({1}))):
        write_source(MemorySource(Info(size=2, incomplete=cut), [[barrier], [barrier]]), tmp_path / f"{name}.ftr")
    (tmp_path / "s.toml").write_text('traces = ["whole.ftr", "cut.ftr"]\n[policy]\npolicy = "oracle"\n')
    done = sweep("s.toml", "--on", "local:1")
    early = "the trace ends early for 1 rank"
    assert "4 points done, 0 failed" in done.stdout
    assert f"NOTE: of 2 points; see the column notes; the first: cut.ftr, minotauro, always-on: {early}\n" in done.stderr
    found = [(r["program"], r["status"], r["notes"]) for r in rows(tmp_path / "s.results")]
    assert found == [("whole.ftr", "done", None)] * 2 + [("cut.ftr", "done", early)] * 2


def test_nothing_of_dask_is_left(sweep, tmp_path):
    """Neither where temporary files are nor among the results, also after a kill."""
    (tmp_path / "s.toml").write_text(SMALL)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "s.results" / ".dask" / "worker-of-one-that-was-killed").mkdir(parents=True)
    sweep("s.toml", "--on", "local:1", env={"TMPDIR": str(tmp_path / "tmp")})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.results", "s.toml", "tmp"]
    assert list((tmp_path / "tmp").iterdir()) == []
    assert sorted(p.name for p in (tmp_path / "s.results").iterdir()) == [".lock", "results.parquet"]


def killed_at_random(tmp_path, name: str, kills: int) -> int:
    """Starts the sweep again and again and kills it; returns how often it was hit."""
    hits = 0
    for _ in range(kills):
        running = start(tmp_path, name, "--on", "local:2", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0.4, 1.8))  # a sweep from the start takes several times as long
        children = psutil.Process(running.pid).children(recursive=True) if running.poll() is None else []
        hits += running.poll() is None
        running.kill()
        running.wait()
        _, alive = psutil.wait_procs(children, timeout=240)
        assert not alive, "workers outlive the sweep"
    return hits


def test_a_sweep_killed_at_any_time_loses_and_doubles_nothing(sweep, tmp_path):
    text = SMALL.replace("iterations = 5", "iterations = 1800").replace("ranks = [4, 8]", "ranks = [8, 16]").replace("[1, 2]", "[1, 2, 4]")
    (tmp_path / "s.toml").write_text(text)
    assert killed_at_random(tmp_path, "s.toml", 4) > 0
    sweep("s.toml", "--on", "local:2", "--results", "s.results")
    sweep("s.toml", "--on", "local:2", "--results", "whole")
    cut, whole = rows(tmp_path / "s.results"), rows(tmp_path / "whole")
    for r in cut + whole:
        del r["simulation_s"]
    assert len({r["id"] for r in cut}) == len(cut)
    assert cut == whole


def test_what_a_kill_leaves_behind_is_told_apart(tmp_path):
    """Between merging and removing parts, between writing and renaming."""
    store = Store(tmp_path)
    point = {"group": "g", "policy": "always-on", "status": "done", "run_time_s": 1.0, "energy_total_j": 2.0}
    store.add([{"id": "a", **point}])
    store.add([{"id": "b", **point, "status": "failed", "error": "x"}])
    parts = {p.name: p.read_bytes() for p in tmp_path.glob("part-*.parquet")}
    store.finish(["a", "b"])
    for name, content in parts.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "part-000009.tmp").write_bytes(b"half")
    store._lock.close()
    again = Store(tmp_path)
    assert set(again.rows) == {"a", "b"} and not list(tmp_path.glob("*.tmp"))
    again.add([{"id": "b", **point}])
    again.finish(["a", "b"])
    assert [(r["id"], r["status"]) for r in rows(tmp_path)] == [("a", "done"), ("b", "done")]
    with pytest.raises(UserError, match="another sweep"):
        Store(tmp_path)


def test_results_that_cannot_be_written_are_told(tmp_path, monkeypatch):
    store = Store(tmp_path / "r")

    def full(*_, **_options):
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    monkeypatch.setattr(store.pa.parquet, "write_table", full)
    with pytest.raises(UserError, match=r"part-000001.parquet: No space left on device; the same command goes on"):
        store.add([{"id": "a", "status": "done"}])


@pytest.mark.long
def test_a_worker_that_dies_fails_its_point_only(tmp_path):
    script = tmp_path / "bomb.py"
    script.write_text(
        "import os, pathlib\n"
        "from fallow.sweep import execute, study\n"
        "from fallow.sweep.point import evaluate\n"
        "from fallow.sweep.store import Store\n"
        "if __name__ == '__main__':\n"
        "    s = study.read(pathlib.Path('s.toml'))\n"
        "    bad = s.points[3].id\n"
        "    execute.evaluate = lambda point: os.kill(os.getpid(), 9) if point.id == bad else evaluate(point)\n"
        "    store = Store(pathlib.Path('out'))\n"
        "    print(execute.sweep(s, store, execute.Place('local', 2)))\n"
        "    print(store.rows[bad]['error'])\n"
    )
    (tmp_path / "s.toml").write_text(SMALL)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert f"({SMALL_POINTS - 1}, 1)\ntook its worker with it" in done.stdout, done.stdout + done.stderr


def test_on_a_scheduler_that_runs_already(sweep, tmp_path):
    distributed = pytest.importorskip("distributed")
    (tmp_path / "s.toml").write_text(SMALL)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        assert f"{SMALL_POINTS} points done" in sweep("s.toml", "--on", address).stdout
        assert cluster.scheduler.workers, "a scheduler that was there before stays"
    assert len(rows(tmp_path / "s.results")) == SMALL_POINTS


@pytest.mark.long
def test_on_slurm(sweep, tmp_path):
    """A sbatch that runs its script here at once stands for a cluster; what Slurm is told is checked."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sbatch").write_text(f'#!/bin/bash\ncp "$1" {tmp_path}/job.sh\nbash {tmp_path}/job.sh >{tmp_path}/job.log 2>&1 &\necho "Submitted batch job $!"\n')
    (tools / "scancel").write_text('#!/bin/bash\npkill -P "$1"; kill "$1" 2>/dev/null; true\n')
    for tool in tools.iterdir():
        tool.chmod(tool.stat().st_mode | stat.S_IEXEC)
    (tmp_path / "s.toml").write_text(SMALL + '\n[slurm]\nqueue = "short"\nwalltime = "00:10:00"\nmemory = "1GB"\ninterface = "lo"\n')
    path = {"PATH": f"{tools}:{os.environ['PATH']}"}
    assert f"{SMALL_POINTS} points done" in sweep("s.toml", "--on", "slurm:1", env=path).stdout
    job = (tmp_path / "job.sh").read_text()
    assert "#SBATCH -p short" in job and "#SBATCH -t 00:10:00" in job


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("dask://", "'dask://' is no place to run; say local, local:4, slurm, slurm:20 or dask://HOST:PORT"),
        ("dask://head", "'dask://head' is no place to run"),
        ("dask://head:door", "'dask://head:door' is no place to run"),
        ("tcp://head:99999", "'tcp://head:99999' is no place to run"),
        ("slurm", "--on slurm: there is no command sbatch here; start the sweep where Slurm's commands are"),
    ],
)
def test_places_where_nothing_can_run_are_refused_at_once(tmp_path, place, message):
    (tmp_path / "s.toml").write_text(SMALL)
    said, status = refused(tmp_path, "s.toml", "--on", place, env={"PATH": str(tmp_path)})
    assert status == 2 and said.startswith(f"fallow: {message}") and said.count("\n") == 1


def test_results_of_something_else_are_refused(tmp_path):
    (tmp_path / "s.toml").write_text(SMALL)
    (tmp_path / "s.results").mkdir()
    pyarrow.parquet.write_table(pyarrow.table({"x": [1]}), tmp_path / "s.results" / "results.parquet")
    said, status = refused(tmp_path, "s.toml", env={})
    assert status == 2 and "these are no results of a sweep; move it away" in said and said.count("\n") == 1


def test_what_slurm_refuses_is_said_in_a_line(tmp_path):
    (tmp_path / "s.toml").write_text(SMALL + '\n[slurm]\ninterface = "lo"\n')
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    with socket.socket() as other:
        with contextlib.suppress(OSError):  # in use: of the port that Dask likes best that is as good
            other.bind(("", 8787))
            other.listen()
        found = refused(tmp_path, "s.toml", "--on", "slurm:2", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert found == ("fallow: Slurm: sbatch: error: invalid partition\n", 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_what_is_done(tmp_path, number):
    (tmp_path / "s.toml").write_text(SMALL.replace("iterations = 5", "iterations = 3000").replace("[4, 8]", "[16, 32]"))

    def hear() -> None:
        for usual in (signal.SIGINT, signal.SIGHUP):
            signal.signal(usual, signal.SIG_DFL)

    # tests may run in the background; a terminal interrupts the workers, too
    heard = {"preexec_fn": hear, "start_new_session": True}
    running = start(tmp_path, "s.toml", "--on", "local:1", stderr=subprocess.PIPE, **heard)
    end = time.monotonic() + 240
    while time.monotonic() < end and not list(tmp_path.glob("s.results/part-*.parquet")):
        time.sleep(0.2)
    os.killpg(running.pid, number)
    try:
        _, errors = running.communicate(timeout=240)
    finally:
        running.kill()
    assert running.returncode == 128 + number and "goes on where this was" in errors and "Traceback" not in errors
    assert list(tmp_path.glob("s.results/part-*.parquet"))


def test_what_ends_a_sweep_while_workers_start_leaves_none(tmp_path):
    (tmp_path / "s.toml").write_text(SMALL)
    running = start(tmp_path, "s.toml", "--on", "local:1", stderr=subprocess.PIPE)
    workers = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    end = time.monotonic() + 240
    while time.monotonic() < end and not workers.read_text():
        time.sleep(0.02)
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=240)
    assert (running.returncode, errors.count("\n")) == (128 + signal.SIGTERM, 1) and "goes on where this was" in errors, errors


def test_a_second_signal_leaves_nothing_of_dask(tmp_path):
    """It ends the command at once, amid what the first one began."""
    (tmp_path / "s.toml").write_text(SMALL)
    script = (
        "import os, signal, sys\n"
        "from distributed import LocalCluster\n"
        "from fallow import cli\n"
        "from fallow.sweep import execute\n"
        "def again(self, *args, **options):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    os._exit(3)\n"
        "LocalCluster.close = again\n"
        "execute._drive = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    args = [sys.executable, "-c", script, "sweep", "s.toml", "--on", "local:1"]
    done = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == -signal.SIGTERM and "Traceback" not in done.stderr, done.stderr
    assert [p.name for p in (tmp_path / "s.results").iterdir()] == [".lock"]


def test_options_that_are_on_or_off(sweep, tmp_path):
    (tmp_path / "s.toml").write_text(
        "[[synth]]\nprogram = 'stencil3d'\nranks = 8\niterations = 20\ncompute = '2ms'\n"
        "[policy]\npolicy = ['oracle', 'pps']\nrest_cards = [true, false]\nedge_only = true\npublished_cost = true\n"
    )
    points = study.read(tmp_path / "s.toml").points
    assert [(p.policy, p.options.get("rest_cards", False)) for p in points] == [
        ("always-on", False), ("oracle", True), ("oracle", False), ("pps", True), ("pps", False)
    ]  # fmt: skip
    assert all(p.options["upper_links"] is False for p in points[1:])
    assert "search_cost_us" in points[3].options and "search_cost_us" not in points[1].options
    sweep("s.toml")
    found = {(r["policy"], bool(r["option_rest_cards"])): r for r in rows(tmp_path / "s.results")}
    assert len(found) == 5 and all(r["status"] == "done" for r in found.values())
    assert found["oracle", True]["energy_cards_j"] < found["oracle", False]["energy_cards_j"]
    assert found["pps", True]["run_time_s"] > found["oracle", True]["run_time_s"]  # its cost


def test_a_platform_that_was_edited_is_simulated_anew(tmp_path):
    platform = tmp_path / "mine.toml"
    (tmp_path / "s.toml").write_text("[[synth]]\nprogram = 'cg'\n[machine]\nplatform = './mine.toml'\n[policy]\npolicy = 'oracle'\n")
    ids = []
    store = Store(tmp_path / "r")
    for nodes in (64, 128):
        platform.write_text(f"[network]\nnodes = {nodes}\n")
        points = study.read(tmp_path / "s.toml").points
        ids.append([p.id for p in points])
        store.add([execute.describe(p) | {"status": "done", "run_time_s": float(nodes)} for p in points])
        store.finish(ids[-1])
    assert not set(ids[0]) & set(ids[1])
    assert {(r["id"], r["run_time_s"]) for r in rows(tmp_path / "r")} == {(i, 128.0) for i in ids[1]}
    store.finish(ids[1][:1])  # a study that got smaller
    assert len(rows(tmp_path / "r")) == 2


def test_nothing_is_left_of_a_trace_that_was_recorded_anew(tmp_path):
    """Nor of policies that have been taken out of the study meanwhile."""
    text = "traces = ['a.ftr']\n[policy]\npolicy = ['hardware', 'oracle']\n"
    store = Store(tmp_path / "r")
    for size, chosen in ((1, text), (2, text.replace(", 'oracle'", ""))):
        (tmp_path / "a.ftr").write_bytes(b"x" * size)
        (tmp_path / "s.toml").write_text(chosen)
        points = study.read(tmp_path / "s.toml").points
        store.add([execute.describe(p) | {"status": "done", "run_time_s": float(size)} for p in points])
        store.finish([p.id for p in points])
    assert [(r["policy"], r["run_time_s"]) for r in rows(tmp_path / "r")] == [("always-on", 2.0), ("hardware", 2.0)]


def test_what_another_model_came_to_is_simulated_anew(tmp_path, monkeypatch):
    (tmp_path / "s.toml").write_text("[[synth]]\nprogram = 'cg'\nranks = 2\niterations = 2\n")
    (tmp_path / "less.toml").write_text("[[synth]]\nprogram = 'fft'\nranks = 2\niterations = 2\n")
    old = study.read(tmp_path / "s.toml").points
    store = Store(tmp_path / "r")
    store.add([execute.describe(p) | {"status": "done", "run_time_s": 1.0} for p in old])
    store.finish([p.id for p in study.read(tmp_path / "less.toml").points])
    assert [r["id"] for r in rows(tmp_path / "r")] == [p.id for p in old]  # of a study that was another
    monkeypatch.setattr(machine.native.require(), "sim_model", lambda: old[0].model + 1)
    new = study.read(tmp_path / "s.toml").points
    assert not {p.id for p in new} & {p.id for p in old} and new[0].model == old[0].model + 1
    assert "another version" in execute.evaluate(old[0])["error"]  # a worker that was not upgraded with the rest
    store.finish([p.id for p in study.read(tmp_path / "less.toml").points])
    assert rows(tmp_path / "r") == []


def test_platform_files_of_one_name_are_told_apart(sweep, tmp_path):
    for folder, rate in (("a", 10), ("b", 40)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.toml").write_text(f"[link]\ngbit_s = {rate}\n")
    names = "'a/mine.toml', 'b/mine.toml', 'minotauro'"
    (tmp_path / "s.toml").write_text(f"[[synth]]\nprogram = 'fft'\nranks = 4\niterations = 2\n[machine]\nplatform = [{names}]\n")
    sweep("s.toml", "--on", "local:1")
    found = [(r["platform"], r["platform_file"]) for r in rows(tmp_path / "s.results")]
    assert found == [("a/mine", str(tmp_path / "a/mine.toml")), ("b/mine", str(tmp_path / "b/mine.toml")), ("minotauro", "")]


def test_places_and_ids(tmp_path):
    assert execute.Place.parse("local:3") == execute.Place("local", 3)
    assert execute.Place.parse("dask://h:1") == execute.Place("tcp://h:1")
    for wrong in ("here", "local:x", "slurm:0", "http://h"):
        with pytest.raises(UserError):
            execute.Place.parse(wrong)
    (tmp_path / "s.toml").write_text(SMALL)
    first, again = study.read(tmp_path / "s.toml"), study.read(tmp_path / "s.toml")
    assert [p.id for p in first.points] == [p.id for p in again.points]
    assert sum(p.policy == "hardware" for p in first.points) == 8  # leads do not concern it
