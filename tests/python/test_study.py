"""What a study's file may say, and what is said of mistakes in it."""

from __future__ import annotations

import dataclasses
import os

import pyarrow.parquet
import pytest

from fallow.errors import UserError
from fallow.sim import machine, run
from fallow.sim.model import Case
from fallow.sweep import point, store, study
from fallow.sweep.store import Store


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[policy]\npolicy = 'oracle'\n", "names no program"),
        ("traces = ['none.ftr']\n", "s.toml:1: traces names"),
        ("[[synth]]\nprogram = 'cg'\nrnaks = 4\n", "s.toml:3: synth.rnaks is not known"),
        ("[[synth]]\nprogram = 'cg'\nranks = [4, 'many']\n", "s.toml:3: synth.ranks is wrong"),
        ("[[synth]]\nprogram = 'poetry'\n", "s.toml:2: synth.program must be one of"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'hope'\n", "s.toml:4: policy.policy must be one of"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'pps'\nlead = '200%'\n", "s.toml:5: policy.lead is wrong"),
        ("[[synth]]\nprogram = 'cg'\n[machine]\nplatform = 'atlantis'\n", "s.toml:4: machine.platform is wrong: no platform 'atlantis'"),
        ("[[synth]]\nprogram = 'cg'\n[machine]\nplatform = ['minotauro', 'mine.toml']\n", "s.toml:4: machine.platform is wrong: "),
        ("[[synth]]\nprogram = 'cg'\n[machine]\ntopology = ['crossbar', '']\n", "s.toml:4: machine.topology is wrong: the name is empty"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'oracle'\ncores = 'sleep'\ncore_state = ''\n", "s.toml:6: policy.core_state is wrong: the name"),
        ("traces = ['']\n", "s.toml:1: traces has an empty name"),
        ("[[synth]]\nprogram = 'cg'\n[machine]\nnetwork = 'maybe'\n", "s.toml:4: machine.network must be"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'pps'\nrest_cards = 'yes'\n", "s.toml:5: policy.rest_cards must be true, false"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'pps'\nlead = true\n", "s.toml:5: policy.lead must be a value"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'pps'\ncores = 'dance'\n", "s.toml:5: policy.cores must be one of spin"),
        ("[[synth]]\nprogram = 'cg'\nranks = 4\n[[synth]]\nprogram = 'fft'\nranks = 0\n", "s.toml:6: synth.ranks is wrong"),
        ("[[synth]]\nprogram = 'cg'\n[machine]\ntopology = 'ring'\n", "s.toml:4: machine.topology is wrong"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\nlead = '5%'\n", "s.toml: policy.policy is missing"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'oracle'\nlead = '5%'\n", "s.toml:5: policy.lead would do nothing: it is for pps or spps"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'oracle'\ncore_timer = '5us'\n", "cores countdown or cores sleep"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'oracle'\nfrequency = 2\n", "cores countdown or cores fixed"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'oracle'\ncompress_only = 'gather'\n", "s.toml:5: policy.compress_only must be point-to-point"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'oracle'\ncompress_only = 'collectives'\n", "s.toml:5: policy.compress_only would do nothing"),
        ("[[synth]]\nprogram = 'cg'\njitter = '100%'\n", "s.toml:3: synth.jitter is wrong: '100%' will not do; say less than 100%"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'pps'\nlead = [0.5, 1]\n", "s.toml:5: policy.lead is wrong: '1' will not do; say less"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'pps'\ncompress = 0\n", "s.toml:5: policy.compress is wrong: '0' will not do; say more"),
        ("slurm = 5\n[[synth]]\nprogram = 'cg'\n", "s.toml:1: slurm must be a table"),
        ("name = 5\n[[synth]]\nprogram = 'cg'\n", "s.toml:1: name must be a text"),
        ("[[synth]]\nprogram = ['fft', 'random']\nreduce_bytes = [8, 16]\n", "s.toml:3: synth.reduce_bytes would do nothing: it is for stencil3d or cg"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'oracle'\ncores = 'sleep'\ncore_state = 'C99'\n", "s.toml:6: policy.core_state is wrong: the platform's cores"),
        ("[[synth]]\nprogram = 'cg'\n[policy]\npolicy = 'oracle'\ncores = 'fixed'\nfrequency = [99]\n", "s.toml:6: policy.frequency is wrong: 99 GHz"),
        ("[[synth]]\nprogram = 'cg'\n[machine]\nnetwork = 'loggp'\n[policy]\npolicy = 'oracle'\nrest_switches = [false, true]\n",
         "s.toml:7: policy.rest_switches would do nothing: without contention (network loggp)"),
        ("[[synth\n", "s.toml: "),
        ("colour = 'red'\n", "s.toml:1: colour is not known"),
        ("traces = []\n[[synth]]\nprogram = 'cg'\n[[polcy]]\npolicy = 'oracle'\n", "s.toml:4: polcy is not known"),
        ("[[synth]]\nprogram = 'cg'\n[ machine.node ]\ncores = 3\n", "s.toml:3: machine.node is not known"),
    ],
)
def test_studies_are_checked_with_line_numbers(fallow, tmp_path, text, message):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(UserError) as error:
        study.read(tmp_path / "s.toml")
    assert message in str(error.value)


def test_a_platform_may_be_without_contention(fallow, tmp_path):
    """What is of no use there is refused, unless the study has the network simulated in full."""
    (tmp_path / "m.toml").write_text("name = 'm'\n[network]\ncontention = false\n")
    text = f"[[synth]]\nprogram = 'cg'\n[machine]\nplatform = '{tmp_path}/m.toml'\n%s[policy]\npolicy = 'oracle'\nedge_only = true\n"
    (tmp_path / "s.toml").write_text(text % "")
    with pytest.raises(UserError, match=r"s\.toml:7: policy\.edge_only would do nothing: without contention"):
        study.read(tmp_path / "s.toml")
    (tmp_path / "s.toml").write_text(text % "network = 'full'\n")
    assert len(study.read(tmp_path / "s.toml").points) == 2


def test_a_study_may_say_what_a_simulation_may(fallow, tmp_path):
    """Each option multiplies what it concerns, and is a column of the results."""
    text = """
[[synth]]
program = "cg"
ranks = 8
iterations = 3
[machine]
platform = "kandalla2010"
[policy]
policy = ["always-on", "pps"]
cores = ["spin", "sleep", "fixed"]
core_state = ["C1", "C3"]
frequency = [1.6, 2.0]
memory_share = "50%"
compress = "50%"
compress_only = ["point-to-point", "collectives"]
no_cap_by_first = [true, false]
"""
    (tmp_path / "s.toml").write_text(text)
    points = study.read(tmp_path / "s.toml").points
    ways = 1 + 2 + 2  # spin, two sleeps, two frequencies
    assert len(points) == ways * 2 + ways * 2 * 2 + 1  # always-on; pps with and without the cap; plain always-on, to compare with
    done = [point.evaluate(p) for p in points]
    assert {row["status"] for row in done} == {"done"}, {row.get("error") for row in done}
    assert len({(row["run_time_s"], row["energy_total_j"]) for row in done}) >= ways
    results = Store(tmp_path / "results")
    results.add(done)
    kept = pyarrow.parquet.read_table(results.finish([p.id for p in points])).to_pylist()
    assert {row["option_core_state"] for row in kept} >= {"C1", "C3"}


def test_what_one_of_the_platforms_has_may_be_said(tmp_path):
    """What another has not is a point that fails, with its reason."""
    policy = "[policy]\npolicy = 'oracle'\ncores = 'fixed'\nfrequency = 1.6\n"
    (tmp_path / "s.toml").write_text(f"[[synth]]\nprogram = 'cg'\nranks = 2\n[machine]\nplatform = ['minotauro', 'kandalla2010']\n{policy}")
    rows = [point.evaluate(p) for p in study.read(tmp_path / "s.toml").points if p.policy == "oracle"]
    assert [(row["platform"], row["status"]) for row in rows] == [("minotauro", "failed"), ("kandalla2010", "done")]


def test_sizes_of_reductions_multiply_the_programs_that_have_one(tmp_path):
    (tmp_path / "s.toml").write_text("[[synth]]\nprogram = ['fft', 'cg']\nreduce_bytes = [8, 16]\n")
    found = [(p.synth, p.synth_options.get("reduce_bytes")) for p in study.read(tmp_path / "s.toml").points]
    assert found == [("fft", None), ("cg", 8), ("cg", 16)]


def test_seeds_multiply_the_programs_that_draw_from_them(tmp_path):
    (tmp_path / "s.toml").write_text("[[synth]]\nprogram = ['fft', 'random']\nseed = [3, 4]\njitter = [0, 0.1]\n")
    found = [(p.synth, p.synth_options["jitter"], p.synth_options.get("seed")) for p in study.read(tmp_path / "s.toml").points]
    drawing = [("random", 0, 3), ("random", 0.1, 3), ("random", 0, 4), ("random", 0.1, 4)]
    assert sorted(found, key=str) == sorted([("fft", 0, None), ("fft", 0.1, 3), ("fft", 0.1, 4), *drawing], key=str)


def test_bad_studies_end_with_one_line(fallow, tmp_path):
    (tmp_path / "s.toml").write_text("[[synth]]\nprogram = 'cg'\nrnaks = 4\n")
    for args in (["s.toml"], ["none.toml"], ["s.toml", "--on", "mars"]):
        done = fallow("sweep", *args)
        assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr.count("\n") == 1


def test_a_study_of_one_point_has_one(fallow, tmp_path):
    (tmp_path / "s.toml").write_text("[[synth]]\nprogram = 'cg'\nranks = 4\niterations = 1\n")
    assert fallow("sweep", "s.toml", "--dry-run").stdout == "s: 1 point\n"
    assert fallow("sweep", "s.toml", "--on", "local:1").stdout.startswith("s: 1 point done, 0 failed: ")


def test_options_of_cores_concern_the_ways_that_they_wait(tmp_path):
    (tmp_path / "s.toml").write_text(
        "[[synth]]\nprogram = 'cg'\n[policy]\npolicy = ['always-on', 'oracle']\ncores = ['spin', 'sleep', 'adaptive']\n"
        "core_timer = ['1us', '2us']\nbudget = ['1%', '5%']\ndeep_timer = '1ms'\n"
    )
    points = study.read(tmp_path / "s.toml").points
    found = [(p.policy, p.options.get("core"), p.options.get("core_timer_us"), p.options.get("budget")) for p in points]
    one = [(None, None, None), ("sleep", 1, None), ("sleep", 2, None), ("adaptive", None, 0.01), ("adaptive", None, 0.05)]
    assert found == [(policy, *row) for policy in ("always-on", "oracle") for row in one]
    assert all(("deep_timer_us" in p.options) == (p.policy == "oracle") for p in points)


def test_what_a_study_says_is_put_in_the_native_parts_words(tmp_path):
    (tmp_path / "s.toml").write_text(
        "[machine]\nplatform = 'kandalla2010'\n[[synth]]\nprogram = 'cg'\nranks = 8\niterations = 5\nbytes = '2KB'\nreduce_bytes = 16\ncompute = '1.5us'\njitter = '5%'\nseed = 3\n"
        "[[policy]]\npolicy = 'hardware'\nidle_timer = '30us'\ndeep_timer = '2ms'\nedge_only = true\ncores = 'countdown'\ncore_timer = '7us'\n"
        "memory_share = '20%'\ncompress = '50%'\ncompress_only = 'collectives'\nfrequency = 1.6\nrest_switches = true\n"
        "[[policy]]\npolicy = 'pps'\nlead = '5%'\nthreshold = '30us'\ncall_cost = '1us'\nno_cap_by_first = true\n"
    )
    base, hardware, pps = study.read(tmp_path / "s.toml").points
    program = {"ranks": 8, "iterations": 5, "size_bytes": 2048, "reduce_bytes": 16, "compute_ns": 1500, "jitter": 0.05, "seed": 3}
    assert [p.synth_options for p in (base, hardware, pps)] == [program] * 3
    assert (base.policy, base.options) == ("always-on", {})
    assert hardware.options == {
        "idle_timer_us": 30.0, "deep_timer_us": 2000.0, "upper_links": False, "core": "countdown", "core_timer_us": 7.0, "core_ghz": 1.6,
        "memory_share": 0.2,
        "compress": 0.5, "compress_what": "collectives", "rest_switches": True,
    }  # fmt: skip
    assert pps.options == {"lead": 0.05, "threshold_us": 30.0, "call_cost_us": 1.0, "cap_by_first": False}


def test_a_row_has_what_its_simulation_came_to(tmp_path):
    (tmp_path / "s.toml").write_text("[[synth]]\nprogram = 'stencil3d'\nranks = 8\niterations = 20\n[policy]\npolicy = 'hardware'\n")
    chosen = study.read(tmp_path / "s.toml").points[1]
    row = point.evaluate(chosen)
    spec = run.ProgramSpec((), chosen.synth, chosen.synth_options)
    (outcome,) = run.simulate(spec, machine.load(machine.MachineSpec(chosen.platform)), [Case(chosen.policy, chosen.options)])
    assert row["status"] == "done" and row["ranks"] == 8
    assert (row["run_time_s"], row["energy_total_j"], row["energy_edge_links_j"]) == (outcome.run_time_s, outcome.total_j, outcome.energy_j["edge_links"])
    assert (row["late_messages"], row["wake_delay_s"], row["calls"]) == (outcome.late_messages, outcome.wake_delay_s, outcome.raw["calls"])
    assert row["late_messages"] > 0 and 0 < row["rest_share_edge_links"] == outcome.rest_share("edge_links") < 1
    assert row["mispredictions"] == outcome.raw["mispredictions"]


def test_a_worker_of_another_version_refuses_its_point(tmp_path):
    (tmp_path / "s.toml").write_text("[[synth]]\nprogram = 'cg'\nranks = 2\n")
    chosen = dataclasses.replace(study.read(tmp_path / "s.toml").points[0], model=-1)
    assert point.evaluate(chosen)["error"] == "the worker's Fallow is another version than that which started the sweep"


def test_savings_are_against_the_same_machine_with_everything_on(tmp_path):
    """Not against always-on with options of its own, such as cores that sleep."""
    def row(policy: str, time_s: float, edge_j: float, **more: object) -> dict[str, object]:
        return {"id": f"{policy}{len(more)}", "group": "g", "policy": policy, "status": "done", "run_time_s": time_s, "energy_edge_links_j": edge_j} | more

    rows = [row("always-on", 4.0, 10.0), row("always-on", 8.0, 5.0, option_core="sleep"), row("oracle", 5.0, 4.0)]
    base, asleep, oracle = store._compared(rows)
    assert (base["slowdown"], base["saved_edge_links"]) == (0.0, 0.0)
    assert (asleep["slowdown"], asleep["saved_edge_links"]) == (1.0, 0.5)
    assert (oracle["slowdown"], oracle["saved_edge_links"]) == (pytest.approx(0.25), pytest.approx(0.6))


def test_a_trace_that_was_recorded_anew_makes_new_points(tmp_path):
    made = run.write(run.ProgramSpec(synth="cg", options={"ranks": 2, "iterations": 3}), tmp_path / "x.ftr")
    assert made.ranks == 2
    (tmp_path / "s.toml").write_text("traces = ['x.ftr']\n")
    first, again = (study.read(tmp_path / "s.toml").points[0].id for _ in range(2))
    os.utime(tmp_path / "x.ftr", ns=(0, 0))
    assert first == again != study.read(tmp_path / "s.toml").points[0].id
