"""What prediction gives: the predictors on traces recorded here, and the auto wait mode with and without them."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from families import FALLOW, Family
from goals import GOALS
from measure import Busy, Sample, heading

PUBLISHED_CALL_NS = 1300.0  # Dickov 2015, table 5.4: mean overhead per call of pps
PUBLISHED_CALLS = {"bt-16": 0.98, "bt-64": 0.98, "mg-16": 0.79, "mg-64": 0.74}  # predicted by pps, table 5.3
REGULAR = ("bt", "sp", "mg", "cg", "lu", "ft")
STUDY_S = 300


def _run(command: Sequence[str], family: Family, timeout_s: float) -> str:
    try:
        done = subprocess.run(
            command, env=family.environment(), capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as e:
        raise Busy(f"{' '.join(command)}: no end within {timeout_s:.0f} s") from e
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def study(trace: Path, family: Family) -> dict[str, dict[str, float]]:
    """Every predictor on a trace, by name. `calls_best_share` of pps: with the threshold that predicts most calls."""
    options = ["--lead", "5%", "--sample-gaps", "100", "--json"]
    report = json.loads(_run([str(FALLOW), "predict", str(trace), *options], family, STUDY_S))
    ways = {way["predictor"]: way for way in report["ways"]}
    ways["pps"]["calls_best_share"] = max(point["calls_predicted_share"] for point in report["sweep"])
    return ways


def predictors(family: Family, files: Iterable[Path]) -> dict[str, dict[str, dict[str, float]]]:
    """The table of the predictors, and what is behind it by trace and predictor."""
    heading("predictors on recorded programs (lead 5 %, T_react 10 us, budget 1 %)")
    print(
        "         pps: calls predicted with the threshold for   time at rest, of the oracle's       delay, of the run            ns per call"
    )
    print(f"  {'program':11}{'calls':>8}{'published':>11}{'rest':>8}{'threshold':>11}{'pps':>8}{'spps':>8}{'adaptive':>10}"
          f"{'pps':>10}{'adaptive':>10}{'most':>8}{'pps':>8}{'adaptive':>10}{'/ publ.':>9}", flush=True)  # fmt: skip
    found: dict[str, dict[str, dict[str, float]]] = {}
    for file in files:
        try:
            ways = study(file, family)
        except (Busy, RuntimeError) as error:
            print(f"  {file.stem:11} left out: {str(error).splitlines()[0]}", flush=True)
            continue
        found[file.stem] = ways
        pps, spps, ours = ways["pps"], ways["spps"], ways["adaptive"]
        published = f"{100 * PUBLISHED_CALLS[file.stem]:.0f} %" if file.stem in PUBLISHED_CALLS else "-"
        shares = "".join(f"{100 * w['rest_of_oracle_share']:{n}.1f}" for w, n in ((pps, 8), (spps, 8), (ours, 10)))
        delays = (
            f"{100 * pps['delay_share']:10.3f}{100 * ours['delay_share']:10.3f}{100 * ours['delay_worst_share']:8.3f}"
        )
        costs = f"{pps['cost_ns']:8.0f}{ours['cost_ns']:10.0f}{ours['cost_ns'] / PUBLISHED_CALL_NS:9.3f}"
        print(f"  {file.stem:11}{100 * pps['calls_best_share']:6.1f} %{published:>11}{100 * pps['calls_predicted_share']:6.1f} %{1e6 * pps['threshold_s']:8.0f} us"
              f"{shares}{delays}{costs}", flush=True)  # fmt: skip
    if found:
        _tell_means(found)
    return found


def _tell_means(found: dict[str, dict[str, dict[str, float]]]) -> None:
    means = [
        sum(w[p]["rest_of_oracle_share"] for w in found.values()) / len(found) for p in ("pps", "spps", "adaptive")
    ]
    late = [100 * sum(w[p]["delay_share"] for w in found.values()) / len(found) for p in ("pps", "adaptive")]
    worst = 100 * max(w["adaptive"]["delay_worst_share"] for w in found.values())
    print(f"  delay in the mean: pps {late[0]:.3f} %, adaptive {late[1]:.3f} % (goal: less than pps), "
          f"{worst:.3f} % at most at any time (budget 1 %)", flush=True)  # fmt: skip
    print(f"  delay for each whole rest of the oracle's: pps {late[0] / max(means[0], 1e-9):.2f} %, "
          f"adaptive {late[1] / max(means[2], 1e-9):.2f} %", flush=True)  # fmt: skip
    at_rest = [100 * sum(w[p]["rest_share"] for w in found.values()) / len(found) for p in ("pps", "spps")]
    print(f"  of the run: pps {at_rest[0]:.1f} %, spps {at_rest[1]:.1f} % (section 5.3.3: within 3 points)", flush=True)
    regular = [
        ways["adaptive"]["rest_of_oracle_share"] for name, ways in found.items() if name.split("-")[0] in REGULAR
    ]
    print(f"  at rest in the mean: pps {100 * means[0]:.1f} %, spps {100 * means[1]:.1f} % (goal: within 3 points of pps), "
          f"adaptive {100 * means[2]:.1f} % (goal: 80 %)", flush=True)  # fmt: skip
    for name, least in (("bt", 90), ("mg", 70)):
        known = [100 * ways["pps"]["calls_best_share"] for file, ways in found.items() if file.split("-")[0] == name]
        if known:
            GOALS.at_least("traces", f"calls of {name.upper()} predicted by pps, best threshold", min(known), least, " %")
    GOALS.at_most("traces", "time at rest, pps less spps, points of the run", at_rest[0] - at_rest[1], 3)
    GOALS.at_least("traces", "time at rest, adaptive of the oracle's, mean of all", 100 * means[2], 80, " %")
    GOALS.at_most("traces", "delay of adaptive, of pps's", late[1] / max(late[0], 1e-9), 1)
    GOALS.at_most("traces", "delay of adaptive at its worst moment, of the run", worst, 1, " %")
    GOALS.at_most("traces", "cost of adaptive per call, dearest program", max(ways["adaptive"]["cost_ns"] for ways in found.values()), 100, " ns")
    if regular:
        GOALS.at_least("traces", "time at rest, adaptive of the oracle's, mean of the regular programs", 100 * sum(regular) / len(regular), 95, " %")
        good = sum(share >= 0.95 for share in regular)
        print(f"  adaptive on regular programs: {100 * min(regular):.1f} % at least, {100 * sum(regular) / len(regular):.1f} % in the mean "
              f"(goal: 95 %, reached by {good} of {len(regular)})", flush=True)  # fmt: skip


def _waits_once(family: Family, predict: bool, program: Sequence[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as scratch:
        flags = ["--predict" if predict else "--no-predict"]
        run = [
            str(FALLOW),
            "run",
            "--quiet",
            *flags,
            "--out",
            f"{scratch}/run",
            "--",
            *family.launcher,
            "-n",
            "2",
            *program,
        ]
        fields = _run(run, family, 120).split()
        totals = json.loads(_run([str(FALLOW), "report", f"{scratch}/run", "--json"], family, 60))["totals"]
    return {fields[i]: float(fields[i + 1]) for i in range(0, len(fields) - 1, 2)} | {"delay_s": totals["wake_delay_s"]}


def waits(family: Family, repeats: int) -> dict[str, dict[str, dict[str, Sample]]]:
    """The auto mode with and without prediction, in turns."""
    heading(f"{family.name}: waits with and without prediction, 2 ranks (goal: no more CPU time, less wake-up delay)")
    print(f"  {'wait':>8} {'pattern':10}{'CPU s without':>15}{'with':>9}{'ratio':>8}{'delay ms without':>19}{'with':>9}{'ratio':>8}"
          f"{'time ratio':>12}", flush=True)  # fmt: skip
    results: dict[str, dict[str, dict[str, Sample]]] = {}
    for pattern, wait_us, steps in (("recv", 1000, 600), ("allreduce", 1000, 600), ("waitall", 1000, 600), ("allreduce", 10000, 60),
                                    ("phases", 1500, 600), ("phases", 15000, 60)):  # fmt: skip
        program = [family.program("imbalance"), pattern, str(wait_us), str(steps)]
        samples: dict[bool, list[dict[str, float]]] = {False: [], True: []}
        for repeat in range(repeats):
            for predict in (False, True) if repeat % 2 == 0 else (True, False):
                samples[predict].append(_waits_once(family, predict, program))
        by_way = {k: {n: Sample(tuple(s[n] for s in v)) for n in v[0]} for k, v in samples.items()}
        results[f"{pattern}-{wait_us}"] = {"with" if k else "without": v for k, v in by_way.items()}
        cpu, delay, time = ([by_way[k][n].median for k in (False, True)] for n in ("cpu_s", "delay_s", "seconds"))
        GOALS.at_most(family.name, f"CPU time with prediction, {pattern} {wait_us} us", cpu[1] / cpu[0], 1)
        GOALS.at_most(family.name, f"wake-up delay with prediction, {pattern} {wait_us} us", delay[1] / delay[0] if delay[0] > 0 else 1, 1)
        print(f"  {wait_us:>5} us {pattern:10}{cpu[0]:15.3f}{cpu[1]:9.3f}{cpu[1] / cpu[0]:8.3f}{1e3 * delay[0]:19.2f}{1e3 * delay[1]:9.2f}"
              f"{delay[1] / delay[0] if delay[0] > 0 else 1:8.3f}{time[1] / time[0]:12.4f}", flush=True)  # fmt: skip
    return results
