"""`fallow sim` and `fallow synth`: what they print, and how they refuse."""

from __future__ import annotations

import argparse
import json
import re
import resource

import pytest

from fallow import report_html
from fallow.quantities import share, size_bytes, time_us
from fallow.sim.model import COMPONENTS
from fallow.traces.model import COMM_WORLD, Event, Info, MemorySource, op_number, write_source
from test_html import parse

SMALL = ["--synth", "stencil3d", "--ranks", "8", "--iterations", "20"]


def study(fallow, *args):
    done = fallow("sim", *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def base_of(found):
    return found["simulations"][0]


def by_policy(found):
    return {s["label"]: s for s in found["simulations"]}


def test_a_study_compares_policies_with_always_on(fallow):
    found = study(fallow, *SMALL, "--policy", "hardware,pps,adaptive,oracle", "--lead", "1%,10%")
    sims = by_policy(found)
    assert list(sims) == ["always-on", "hardware", "pps (lead 1 %)", "pps (lead 10 %)", "adaptive", "oracle"]
    assert sims["always-on"]["slowdown"] == 0 and sims["always-on"]["saved_share"]["total"] == 0
    # 20 iterations of 1 ms computation and a few microseconds of exchange
    assert 0.02 < sims["always-on"]["run_time_s"] < 0.022
    assert sims["oracle"]["slowdown"] == 0 and sims["oracle"]["late_messages"] == 0
    # 20 ms are short for adaptive: what it may delay by while it learns is a share of them
    assert sims["oracle"]["saved_share"]["edge_links"] > sims["adaptive"]["saved_share"]["edge_links"] > 0.1
    assert sims["pps (lead 1 %)"]["rest_share"]["edge_links"] > sims["pps (lead 10 %)"]["rest_share"]["edge_links"] > 0
    late = sims["hardware"]
    assert late["slowdown"] > 0 and late["late_messages"] > 0 and late["wake_delay_s"] > 0


def test_sums_over_ranks_and_links_are_the_totals(fallow):
    found = study(fallow, *SMALL, "--policy", "hardware", "--jitter", "10%")
    for sim in found["simulations"]:
        raw = sim["raw"]
        assert len(sim["ranks"]) == 8
        assert sum(r["calls"] for r in sim["ranks"]) == raw["calls"] == 8 * 20 * 14
        assert sum(r["computing_s"] for r in sim["ranks"]) == pytest.approx(raw["cores"]["computing_ps"] * 1e-12)
        edge = [x for x in sim["links"] if x["kind"] != "upper"]
        assert len(edge) == raw["edge"]["links"] == 16
        assert sum(x["low_s"] for x in edge) == pytest.approx(raw["edge"]["low_ps"] * 1e-12)
        assert sum(x["late"] for x in edge) == raw["edge"]["late"]
        for r in sim["ranks"]:
            assert r["computing_s"] + r["in_calls_s"] + r["waiting_s"] + r["resting_s"] == pytest.approx(r["end_s"])
        parts = [v for k, v in sim["energy_model_j"].items() if k != "total"]
        assert sum(parts) == pytest.approx(sim["energy_model_j"]["total"])


def test_energy_follows_from_what_is_assumed(fallow):
    """Always on: two directions of eight links, each port at full power for the whole run."""
    found = study(fallow, *SMALL, "--policy", "oracle")
    base, oracle = found["simulations"]
    watts, rest = found["machine"]["link_port_w"], found["machine"]["link_rest_fraction"]
    assert base["energy_model_j"]["edge_links"] == pytest.approx(16 * watts * base["run_time_s"])
    saved = 1 - oracle["energy_model_j"]["edge_links"] / base["energy_model_j"]["edge_links"]
    assert saved == pytest.approx((1 - rest) * oracle["rest_share"]["edge_links"])
    assert any("43 %" in a for a in found["assumptions"])


def test_the_same_study_is_the_same_bytes_on_any_number_of_threads(fallow):
    args = ["sim", *SMALL, "--jitter", "5%", "--policy", "hardware,spps,adaptive,oracle", "--json"]
    one, again, two = fallow(*args), fallow(*args), fallow(*args, "--threads", "2")
    assert one.returncode == 0 and one.stdout == again.stdout == two.stdout
    large = ["sim", "--synth", "stencil3d", "--ranks", "4200", "--iterations", "2", "--jitter", "5%", "--topology", "fat-tree", "--policy", "always-on", "--json"]
    one, two = fallow(*large), fallow(*large, "--threads", "2")  # sums only: threads share one simulation
    assert one.returncode == 0 and one.stdout == two.stdout and not json.loads(one.stdout)["simulations"][0]["ranks"]


def test_whose_energy_it_is_is_said(fallow):
    small, own = (study(fallow, *SMALL, "--policy", "oracle", *more) for more in ((), ("--topology", "crossbar")))
    upper = base_of(small)["raw"]["upper"]["links"]
    assert any(f"of the 8 nodes that the program uses, with their links, and of all {upper} links between switches" in a for a in small["assumptions"])
    assert base_of(own)["raw"]["upper"]["links"] == 0 and any(a.endswith("what of the switches is behind them.") for a in own["assumptions"])


def test_machines_change_by_options(fallow):
    base = study(fallow, *SMALL, "--policy", "oracle")["machine"]
    assert base["name"] == "minotauro" and base["topology"] == "XGFT(2;18,14;1,18)"
    packed = study(fallow, *SMALL, "--policy", "oracle", "--ranks-per-node", "4", "--topology", "crossbar", "--cpu-speed", "2")
    assert (packed["machine"]["nodes"], packed["machine"]["ranks_per_node"], packed["machine"]["topology"]) == (2, 4, "crossbar")
    assert packed["simulations"][0]["run_time_s"] < 0.012
    first_look = study(fallow, *SMALL, "--policy", "oracle", "--network", "loggp")
    assert not first_look["machine"]["contention"] and any("LogGP" in a and "one switch apart" in a for a in first_look["assumptions"])
    sim = by_policy(first_look)["oracle"]  # of what carries nothing here, no rest is a saving
    assert sim["saved_share"]["upper_links"] == 0 and sim["saved_share"]["edge_links"] > 0.4
    full = base_of(study(fallow, *SMALL, "--policy", "oracle", "--network", "full"))
    error = base_of(first_look)["run_time_s"] / full["run_time_s"] - 1
    assert first_look["contention_error"] == pytest.approx(error) and -0.05 < error <= 0


def test_terminal_and_page(fallow, tmp_path):
    done = fallow("sim", *SMALL, "--policy", "hardware,adaptive")
    assert done.returncode == 0
    for word in ("always-on", "hardware", "adaptive", "slowdown", "edge links", "network cards", "cores", "modelled; nothing was measured"):
        assert word in done.stdout
    assert "\x1b" not in done.stdout
    assert fallow("sim", *SMALL, "--policy", "hardware", "--html", "x.html").returncode == 0
    page = parse((tmp_path / "x.html").read_text())
    assert page.references == ["data:,"]
    assert len(json.loads(page.data)["simulations"]) == 2


def test_the_critical_path_adds_up_to_the_run_time(fallow):
    found = study(fallow, "--synth", "cg", "--ranks", "16", "--iterations", "30", "--jitter", "20%", "--policy", "hardware,oracle", "--cores", "spin,sleep")
    for sim in found["simulations"]:
        path = sim["critical_path"]
        assert sum(path["total"].values()) == pytest.approx(sim["run_time_s"])
        assert sum(r["total_s"] for r in path["ranks"]) == pytest.approx(sim["run_time_s"])
    sims = by_policy(found)
    assert sims["always-on"]["critical_path"]["total"]["link_wake_s"] == 0
    assert sims["hardware"]["critical_path"]["total"]["link_wake_s"] > 0
    assert sims["oracle (cores sleep)"]["critical_path"]["total"]["core_wake_s"] > 0


def test_idle_intervals_of_links(fallow):
    base = study(fallow, *SMALL, "--policy", "oracle")["simulations"][0]
    (short, short_s), _, (long, long_s) = base["edge_idle"]["classes"]
    # each of 16 links: a millisecond in each of 20 iterations, the rest between messages
    assert long == 16 * 20 and long_s == pytest.approx(16 * 20e-3, rel=0.05)
    assert short > long and short_s < 0.05 * long_s


def test_timelines_for_the_page_perfetto_and_paraver(fallow, tmp_path):
    args = [*SMALL, "--jitter", "20%", "--policy", "hardware", "--cores", "sleep", "--timeline-ranks", "4"]
    assert fallow("sim", *args, "--html", "x.html", "--timeline", "x.json").returncode == 0
    page = json.loads(parse((tmp_path / "x.html").read_text()).data)
    drawn = page["simulations"][1]["timeline"]
    assert [r["rank"] for r in drawn["ranks"]] == [0, 1, 2, 3]
    assert len(drawn["ranks"][0]["spans"]) == 5 * 20 * 14
    assert {(x["node"], x["direction"]) for x in drawn["links"]} == {(n, d) for n in range(4) for d in (0, 1)}
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    names = {e["name"] for e in events if e["ph"] == "X"}
    assert {"MPI_Waitall", "at rest", "sending", "low", "changing"} <= names
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} >= {"always-on: rank 0", "hardware (cores sleep): rank 3", "node 2 link to switch"}
    assert fallow("sim", *args, "--timeline", "x.prv", "--json").returncode == 0
    rows = (tmp_path / "x.row").read_text()
    assert "CORE 1.1" in rows and "LINK 1.4" in rows
    states = [line.split(":") for line in (tmp_path / "x.prv").read_text().splitlines() if line.startswith("1:")]
    for number, thread in ((22, "2"), (24, "3"), (25, "3")):  # core at rest, link at rest, link waking
        assert any(s[7] == str(number) and s[4] == thread for s in states), number
    assert all(int(s[5]) <= int(s[6]) for s in states)


def test_a_window_limits_what_is_drawn(fallow, tmp_path):
    done = fallow("sim", *SMALL, "--policy", "oracle", "--html", "x.html", "--window", "5ms..8ms")
    assert done.returncode == 0
    drawn = json.loads(parse((tmp_path / "x.html").read_text()).data)["simulations"][1]["timeline"]
    begins = [t for r in drawn["ranks"] for t in r["spans"][::5]]
    assert min(begins) > 4.9e6 and max(begins) < 8e6
    assert fallow("sim", *SMALL, "--window", "8ms..5ms").returncode == 2
    assert fallow("sim", *SMALL, "--timeline", "x.png").returncode == 2


def trace(path, calls):
    """A trace of the given lists of events, one list a rank."""
    write_source(MemorySource(Info(size=len(calls)), calls), path)
    return path


def call(name, at, **more):
    return Event(op=op_number(name), enter_ns=at, exit_ns=at + 1, **({"comm": COMM_WORLD} | more))


def test_a_timeline_that_cannot_be_written_leaves_the_old_one(fallow, tmp_path):
    args = ("sim", *SMALL, "--policy", "oracle", "--timeline", "x.prv")
    assert fallow(*args).returncode == 0
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    little = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))}
    done = fallow(*args, **little)
    assert (done.returncode, done.stderr) == (2, "fallow: x.prv: File too large\n")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_deadlock_names_ranks_calls_and_positions(fallow, tmp_path):
    t = trace(tmp_path / "d.ftr", [
        [call("MPI_Barrier", 1), call("MPI_Recv", 10, peer=1, tag=5, size_bytes=8)],
        [call("MPI_Barrier", 1), call("MPI_Recv", 10, peer=0, tag=6, size_bytes=8)],
    ])  # fmt: skip
    done = fallow("sim", t, "--policy", "oracle")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "rank 0 in MPI_Recv (call 2) for a message from rank 1, tag 5" in done.stderr
    assert "rank 1 in MPI_Recv (call 2) for a message from rank 0, tag 6" in done.stderr


def test_calls_of_threads_that_wait_for_each_other(fallow, tmp_path):
    """One in which another begins is begun there and waited for at its end; where nothing comes for it, it is told that there are threads."""
    receive = Event(op=op_number("MPI_Recv"), comm=COMM_WORLD, enter_ns=10, exit_ns=100, peer=1, tag=5, size_bytes=8)
    fence = Event(op=op_number("MPI_Win_fence"), comm=COMM_WORLD, enter_ns=10, exit_ns=100)
    for name, late, answer, ends in (
        ("receive", receive, call("MPI_Send", 40, peer=0, tag=5, size_bytes=8), True),
        ("fence", fence, call("MPI_Win_fence", 40), True),
        ("none", receive, call("MPI_Send", 40, peer=0, tag=7, size_bytes=8), False),
    ):
        t = trace(tmp_path / f"{name}.ftr", [
            [late, call("MPI_Send", 20, peer=1, tag=6, size_bytes=8, thread=1)],
            [call("MPI_Recv", 10, peer=0, tag=6, size_bytes=8), answer],
        ])  # fmt: skip
        done = fallow("sim", t, "--policy", "oracle")
        assert done.returncode == (0 if ends else 2), done.stderr
        assert ends or "Ranks called MPI from up to 2 threads." in done.stderr


def test_a_page_shows_ranks_that_compute_through_its_window(fallow, tmp_path):
    done = fallow("sim", *SMALL, "--policy", "oracle", "--html", "x.html", "--window", "5.2ms..5.7ms")
    assert done.returncode == 0, done.stderr
    drawn = json.loads(parse((tmp_path / "x.html").read_text()).data)["simulations"][1]["timeline"]
    assert drawn["ranks"] == [{"rank": r, "spans": [], "until_ns": 5_700_000} for r in range(8)]
    assert (drawn["from_ns"], drawn["to_ns"]) == (5_200_000, 5_700_000)


def test_where_no_trace_can_be_written_is_told_as_it_is(fallow, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("")
    for target, why in (("there", "is a directory"), ("none/x.ftr", "No such file or directory"), ("file/x.ftr", "Not a directory")):
        done = fallow("synth", "cg", "--ranks", "2", "-o", target)
        assert (done.returncode, done.stderr) == (2, f"fallow: {target}: {why}\n")


def test_calls_that_make_no_sense_are_refused(fallow, tmp_path):
    t = trace(tmp_path / "w.ftr", [[call("MPI_Barrier", 1), call("MPI_Send", 5, peer=7, tag=1, size_bytes=8)], [call("MPI_Barrier", 1)]])
    done = fallow("sim", t)
    assert done.returncode == 2 and "rank 0, call 2, MPI_Send: names rank 7" in done.stderr


def test_messages_that_nobody_receives_are_told(fallow, tmp_path):
    t = trace(tmp_path / "u.ftr", [
        [call("MPI_Send", 5, peer=1, tag=7, size_bytes=8), call("MPI_Barrier", 9)], [call("MPI_Barrier", 1)]
    ])  # fmt: skip
    done = fallow("sim", t)
    assert done.returncode == 0
    assert "never received: 1 message, the first one from rank 0 to rank 1, tag 7, communicator 1" in done.stdout
    assert json.loads(fallow("sim", t, "--json").stdout)["program"]["notes"]


def test_receives_that_are_too_short_are_told(fallow, tmp_path):
    t = trace(tmp_path / "s.ftr", [
        [call("MPI_Send", 5, peer=1, tag=7, size_bytes=200_000), call("MPI_Sendrecv", 6, peer=1, tag=8, size_bytes=8, recv_peer=1, recv_tag=8, recv_bytes=64)],
        [call("MPI_Recv", 1, peer=0, tag=7, size_bytes=100), call("MPI_Sendrecv", 6, peer=0, tag=8, size_bytes=64, recv_peer=0, recv_tag=8, recv_bytes=7)],
    ])  # fmt: skip
    said = "too short for their message: 2 receives, the first one on rank 1 for 100 of 200000 bytes from rank 0, tag 7, communicator 1"
    assert said in fallow("sim", t).stdout
    assert said in json.loads(fallow("sim", t, "--json").stdout)["program"]["notes"]


def test_collective_calls_of_different_sizes_are_told(fallow, tmp_path):
    t = trace(tmp_path / "s.ftr", [[call("MPI_Bcast", 5, root=0, size_bytes=8)], [call("MPI_Bcast", 5, root=0, size_bytes=16)]])
    said = "of different sizes: 1 collective call, the first one MPI_Bcast on communicator 1 with 8 bytes on rank 0 (call 1) and 16 bytes on rank 1 (call 1)"
    assert json.loads(fallow("sim", t, "--json").stdout)["program"]["notes"] == [said]
    t = trace(tmp_path / "d.ftr", [[call("MPI_Allreduce", 5, size_bytes=8 if r else 1_000_000)] for r in range(4)])
    done = fallow("sim", t)
    assert done.returncode == 2 and "MPI_Allreduce on communicator 1 with 1000000 bytes on rank 0 (call 1) and 8 bytes on rank 1" in done.stderr


def test_calls_on_communicators_that_are_not_known_are_told(fallow, tmp_path):
    spawned = [
        call("MPI_Send", 5, comm=0, tag=7, size_bytes=8), call("MPI_Sendrecv", 6, comm=0, tag=7, recv_tag=7), call("MPI_Bcast", 7, comm=0, root=0, size_bytes=8),
        call("MPI_Irecv", 8, comm=0, tag=7, requests=(0,)), call("MPI_Wait", 9, comm=0, completed=(0,)),
    ]  # fmt: skip
    t = trace(tmp_path / "c.ftr", [spawned, [call("MPI_Finalize", 1, comm=0)]])
    assert "replayed without messages: 4 calls on communicators of which the trace does not say" in " ".join(fallow("sim", t).stdout.split())
    t = trace(tmp_path / "d.ftr", [[call("MPI_Barrier", 1), call("MPI_Send", 5, peer=-3, size_bytes=8), call("MPI_Finalize", 9, comm=0)]])
    assert "NOTE" not in fallow("sim", t).stdout


def test_traces_cut_short_say_so(fallow, tmp_path):
    assert fallow("synth", "stencil3d", "--ranks", "8", "--iterations", "200", "-o", "whole.ftr").returncode == 0
    bytes_ = (tmp_path / "whole.ftr").read_bytes()
    for cut in (len(bytes_) // 3, 60, 10):
        (tmp_path / "cut.ftr").write_bytes(bytes_[:cut])
        done = fallow("sim", "cut.ftr", "--policy", "oracle")
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert "cut.ftr" in done.stderr or "rank" in done.stderr


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[network]\ntopology = 'XGFT(2;4;1)'\n", 2),
        ("[network]\ntopology = 'crossbar'\nnodes = 4\n[link]\ngbit = 3\n", 5),
        ("[network]\ntopology = 'crossbar'\nnodes = 4\n\ngr\u00f6\u00dfer = 1\n", 5),
        ("[network\n", 1),
        ("name = 'x'\n[cpu]\nmodel = ''\n", 0),
    ],
)
def test_platform_files_are_checked_with_line_numbers(fallow, tmp_path, text, line):
    (tmp_path / "m.toml").write_text(text)
    done = fallow("sim", *SMALL, "--platform", "./m.toml")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert (f"m.toml:{line}:" if line else "m.toml:") in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        [], ["nothing.ftr"], ["--synth", "stencil3d", "nothing.ftr"], [*SMALL, "--platform", "atlantis"], [*SMALL, "--policy", "hope"],
        [*SMALL, "--lead", "120%"], [*SMALL, "--topology", "ring"], [*SMALL, "--cores", "dance"], ["--synth", "stencil3d", "--ranks", "0"],
        ["--synth", "stencil3d", "--ranks", "9000"], [*SMALL, "--jitter", "100%"], [*SMALL, "--html", "no such place/x.html"],
    ],
)  # fmt: skip
def test_bad_requests_end_with_one_line(fallow, args):
    done = fallow("sim", *args)
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr.strip()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["x.ftr", "--ranks", "8"], "a trace is replayed as it is"),
        (["x.ftr", "--synth", "cg"], "x.ftr and --synth cg: one program is replayed; leave one out"),
        ([*SMALL, "--seed", "2"], "--seed would do nothing: without --jitter only random draws anything"),
        ([*SMALL, "--seed", "2", "--jitter", "0"], "--seed would do nothing"),
        (["--synth", "fft", "--reduce-bytes", "64"], "--reduce-bytes would do nothing: it is for stencil3d or cg"),
        ([*SMALL, "--window", "1ms..2ms"], "add --html FILE or --timeline FILE"),
        ([*SMALL, "--timeline-ranks", "4", "--json"], "add --html FILE or --timeline FILE"),
        ([*SMALL, "--cores", ""], "'' names nothing"),
        ([*SMALL, "--topology", "XGFT(2;99999,99;1,18)"], "an XGFT of more than 4,194,304 nodes"),
        ([*SMALL, "--cpu-speed", "1e9"], "not a number above 0, up to 1000000"),
        ([*SMALL, "--cpu-speed", "1e-9"], "cores compute from 0.000001 to 1000000 times as fast"),
        ([*SMALL, "--call-cost", "1us", "--policy", "oracle"], "--call-cost would do nothing: it is for --policy pps or spps"),
        ([*SMALL, "--lead", "1%"], "--lead would do nothing: it is for --policy pps or spps"),
        ([*SMALL, "--policy", "spps", "--threshold", "20us"], "--threshold would do nothing: it is for --policy pps"),
        ([*SMALL, "--policy", "oracle", "--budget", "1%"], "--budget would do nothing"),
        ([*SMALL, "--network", "loggp", "--rest-switches"], "--rest-switches would do nothing: without contention"),
        ([*SMALL, "--network", "loggp", "--edge-only"], "--edge-only would do nothing: without contention"),
        ([*SMALL, "--core-state", "C6"], "--core-state would do nothing: it is for --cores sleep or adaptive or oracle"),
        ([*SMALL, "--memory-share", "50%"], "--memory-share would do nothing: it is for --cores fixed or countdown"),
        ([*SMALL, "--cores", "throttle", "--frequency", "2"], "--frequency would do nothing"),
        ([*SMALL, "--policy", "always-on", "--rest-cards"], "--rest-cards would do nothing: with --policy always-on no link rests"),
        ([*SMALL, "--compress-only", "collectives"], "--compress-only would do nothing: say with --compress"),
        ([*SMALL, "--timeline", "x.json", "--window", "10s..20s"], "--window begins at 10.0 s; the runs have ended by"),
    ],
)
def test_options_that_would_be_passed_over_are_refused(fallow, args, message):
    done = fallow("sim", *args)
    assert done.returncode == 2 and message in done.stderr, done.stderr


def test_the_page_shows_every_component_of_the_total():
    script = report_html.asset("sim.js")
    parts = script[script.index("const PARTS") : script.index("];")]
    assert tuple(re.findall(r'key: "(\w+)"', parts)) == COMPONENTS


def test_every_platform_can_be_simulated(fallow):
    for name in ("generic", "minotauro", "zamani2007", "kandalla2010", "pascol2011", "hoefler2009"):
        found = study(fallow, *SMALL, "--platform", name, "--policy", "oracle")
        assert found["machine"]["name"] == name
        assert found["simulations"][0]["energy_model_j"]["total"] > 0


def test_any_speed_of_cores_is_as_asked_for(fallow):
    times = {}
    for speed in ("300", "700"):
        found = study(fallow, "--synth", "cg", "--ranks", "1", "--iterations", "10", "--compute", "7ms", "--policy", "oracle", "--cpu-speed", speed)
        assert found["machine"]["cpu_speed"] == pytest.approx(float(speed))
        times[speed] = found["simulations"][0]["critical_path"]["total"]["computing_s"]
    assert times == {"300": pytest.approx(0.07 / 300, rel=1e-6), "700": pytest.approx(1e-4, rel=1e-6)}


def test_more_ranks_than_cores_on_a_node_are_told(fallow):
    for per_node, told in (("12", False), ("16", True)):
        found = study(fallow, *SMALL, "--policy", "oracle", "--ranks-per-node", per_node)
        said = " ".join(found["assumptions"])
        assert ("The platform's nodes have 12 cores, but one is taken for each rank." in said) is told


def test_a_platform_may_leave_everything_out(fallow, tmp_path):
    (tmp_path / "x.toml").write_text('name = "x"\n')
    found = study(fallow, *SMALL, "--platform", "x.toml", "--policy", "oracle")["machine"]
    assert (found["name"], found["topology"], found["nodes"], found["routing"]) == ("x", "crossbar", 1024, "minimal")
    (tmp_path / "x.toml").write_text('name = "x"\n[network]\ntopology = "crossbar"\n')
    done = fallow("sim", *SMALL, "--platform", "x.toml")
    assert (done.returncode, done.stderr) == (2, "fallow: x.toml:3: a crossbar needs a number of nodes\n")


@pytest.mark.parametrize("shape", ["fat-tree", "crossbar"])
def test_networks_of_the_programs_size_count_the_platforms_ranks_a_node(fallow, tmp_path, shape):
    (tmp_path / "m.toml").write_text('name = "m"\nranks_per_node = 4\n')
    many = ["--synth", "stencil3d", "--ranks", "64", "--iterations", "2", "--topology", shape, "--policy", "oracle", "--platform", "m.toml"]
    found = study(fallow, *many)
    assert found["machine"]["ranks_per_node"] == 4 and found["machine"]["nodes"] <= 27  # 3 levels of 3, for 16
    assert found["simulations"] == study(fallow, *many, "--ranks-per-node", "4")["simulations"]
    assert study(fallow, *many, "--ranks-per-node", "64")["machine"]["nodes"] >= 2
    # a crossbar has no links between switches that could rest
    assert (base_of(found)["rest_share"]["upper_links"] is None) == (shape == "crossbar")


def test_a_platform_file_that_is_not_there(fallow):
    assert fallow("sim", *SMALL, "--platform", "./none.toml").stderr == "fallow: none.toml: No such file or directory\n"


def test_labels_tell_shares_apart(fallow):
    found = study(fallow, *SMALL, "--policy", "oracle", "--compress", "12.5%")
    assert list(by_policy(found)) == ["always-on", "oracle (messages at 12.5 %)"]


def test_rows_of_a_study_can_be_told_apart_in_a_narrow_terminal(fallow):
    many = [*SMALL, "--policy", "pps", "--lead", "10%", "--threshold", "100us", "--compress", "50%", "--cores", "sleep,adaptive,oracle"]
    said = fallow("sim", *many).stdout.splitlines()
    rows = [line.split("  ")[1] for line in said if line.startswith("  pps (")]
    assert len(rows) == 5 * 3 and len(set(rows)) == 3


def test_quantities():
    assert (time_us("20us"), time_us("1.5ms"), time_us("2s"), time_us("300ns"), time_us("0")) == (20, 1500, 2e6, pytest.approx(0.3), 0)
    for wrong in ("7", "7m", "us", "-1us", "1e30s", "nans", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="say 20us"):
            time_us(wrong)
    assert (share("5%"), share("0.05"), share("100%")) == (0.05, 0.05, 1)
    assert (size_bytes("8192"), size_bytes("8KB"), size_bytes("2MiB")) == (8192, 8192, 2 << 20)


def test_the_cap_on_patterns_can_be_taken_off(fallow):
    capped, free = (study(fallow, *SMALL, "--policy", "pps,oracle", *more)["simulations"] for more in ((), ("--no-cap-by-first",)))
    label = next(s for s in free if s["policy"] == "pps")
    assert label["label"] == "pps (patterns of any length)" and label["options"]["cap_by_first"] is False
    assert [s for s in capped if s["policy"] == "oracle"] == [s for s in free if s["policy"] == "oracle"]
