"""Sampling meters, and what the report makes of metered and modelled energy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import pytest

from fallow import analyse, sampling
from fallow.errors import UserError
from rank_writer import Call, RankFile, lively_rank, write_run


@dataclass
class FakeDomain:
    name: str
    kind: str
    inside: str | None = None


class FakeMeter:
    """Two packages and a core domain in one of them; gains 5 J a reading, and loses package-1 when told."""

    name, measures, min_period_s, max_period_s = "fake", "made up", 0.01, 30.0

    def __init__(self, lasts=100):
        self.domains = [FakeDomain("package-0", "package"), FakeDomain("core", "core", "package-0"),
                        FakeDomain("package-1", "package")]  # fmt: skip
        self.lasts, self.reads, self.off, self.lost_intervals = lasts, 0, {}, {}

    def read(self):
        self.reads += 1
        values = {"package-0": 5.0 * self.reads, "core": 2.0 * self.reads, "package-1": 3.0 * self.reads}
        if self.reads > self.lasts:
            self.off = {"package-1": "gone"}
            del values["package-1"]
        return values


class Ticks(threading.Event):
    """So many periods pass, at once."""

    def __init__(self, periods):
        super().__init__()
        self.left = periods

    def wait(self, timeout=None):
        self.left -= 1
        return self.left < 0


def sampled(meter, times=3):
    clock = iter(range(10**9, 10**14, 10**9))
    found = sampling.Found([meter], [("fake", "package-0"), ("fake", "package-1")])
    sampler = sampling.Sampler(found, clock=lambda: next(clock))
    for _ in range(times + 1):
        sampler.sample()
    return sampler.told()


def report_with(tmp_path, meters, **info):
    directory = write_run(tmp_path / "r", [lively_rank(0, 1, 5)], **info)
    (directory / "meters.json").write_text(json.dumps(meters))
    return analyse.load(directory)


def test_the_report_counts_what_does_not_overlap(tmp_path):
    metered = report_with(tmp_path, sampled(FakeMeter()), run_time_s=2.0).energy.metered
    assert metered is not None
    assert metered.energy_j == pytest.approx(15 + 9)
    assert metered.energy_delay_js == pytest.approx(48)
    assert [(d.domain, d.counted) for d in metered.domains] == [
        ("package-0", True), ("core", False), ("package-1", True),
    ]  # fmt: skip
    assert metered.domains[0].mean_w == pytest.approx(5.0)


def test_a_lost_domain_takes_the_sum_with_it(tmp_path, fallow):
    metered = report_with(tmp_path, sampled(FakeMeter(lasts=2))).energy.metered
    assert metered is not None
    assert metered.energy_j is None
    assert metered.domains[2].lost == "gone"
    out = fallow("report", tmp_path / "r").stdout
    assert "lost: gone" in out
    assert "package-1 could not be read all the time, so there is no sum" in out


@pytest.mark.parametrize("lasts", [0, 1])
def test_a_domain_that_was_lost_at_once_takes_the_sum_with_it(tmp_path, fallow, lasts):
    """Short runs have two readings, and the second may fail: the other package alone is not what the node used."""
    metered = report_with(tmp_path, sampled(FakeMeter(lasts=lasts), times=1)).energy.metered
    assert metered is not None
    assert metered.energy_j is None
    assert [(d.domain, d.lost, d.energy_j) for d in metered.domains if d.counted] == [
        ("package-0", None, 5.0), ("package-1", "gone", 0.0),
    ]  # fmt: skip
    assert "package-1 could not be read all the time, so there is no sum" in fallow("report", tmp_path / "r").stdout


def test_the_command_has_its_part_of_what_was_read_before_and_after_it(tmp_path):
    """Readings at 1, 2, 3 and 4 s, of 5 J each; the command from 1.5 to 3.8."""
    meters = sampled(FakeMeter()) | {"command_ns": [1_500_000_000, 3_800_000_000]}
    report = report_with(tmp_path, meters, run_time_s=2.3)
    of = report.energy.metered.domains[0]
    assert (of.energy_j, of.time_s, of.mean_w) == (pytest.approx(11.5), pytest.approx(2.3), pytest.approx(5.0))
    note = "fake: read from 500 ms before the command to 200 ms after it; what it counted between two readings"
    assert any(said.startswith(note) for said in report.health.notes)


def test_a_command_that_was_read_closely_has_all(tmp_path):
    report = report_with(tmp_path, sampled(FakeMeter()) | {"command_ns": [1_000_000_000, 4_000_000_000]})
    assert report.energy.metered.domains[0].energy_j == pytest.approx(15.0)
    assert not any("fake" in said for said in report.health.notes)


@pytest.mark.parametrize("command_s", [(1.5, 4.0), (1.0, 3.5)])
def test_a_command_that_was_read_late_or_early_alone_is_told_of(tmp_path, command_s):
    report = report_with(tmp_path, sampled(FakeMeter()) | {"command_ns": [round(at * 1e9) for at in command_s]})
    assert any(said.startswith("fake: read from ") for said in report.health.notes)


def test_what_is_lost_before_the_command_begins_has_nothing(tmp_path):
    report = report_with(tmp_path, sampled(FakeMeter(lasts=1)) | {"command_ns": [2_500_000_000, 3_800_000_000]})
    assert [(d.energy_j, d.time_s) for d in report.energy.metered.domains if d.lost] == [(0.0, 0.0)]


def test_intervals_that_are_missing_are_told(tmp_path):
    meter = FakeMeter()
    for missing, told in ((1, "an interval is missing"), (2, "2 intervals are missing")):
        meter.lost_intervals = {"package-0": missing}
        report = report_with(tmp_path, sampled(meter))
        assert f"fake package-0: {told}, so its energy too" in report.health.notes
        assert report.energy.metered.energy_j is None
        assert [d.lost for d in report.energy.metered.domains] == [told, None, None]


def test_a_counter_that_stood_still_is_told(tmp_path):
    """Which looks like energy saved; of a short command it is what counters that are seldom updated do."""
    meters = sampled(FakeMeter())
    for _, energy in meters["meters"][0]["samples"]:
        energy["package-0"] = energy["core"] = 5.0
    report = report_with(tmp_path, meters)
    assert [n for n in report.health.notes if "stand" in n] == ["fake package-0: counted nothing in 3 s; it may stand still"]
    meters["command_ns"] = [1_200_000_000, 1_900_000_000]
    (tmp_path / "r" / "meters.json").write_text(json.dumps(meters))
    assert not any("stand" in note for note in analyse.load(tmp_path / "r").health.notes)


def test_nodes_that_were_not_metered_are_told(tmp_path):
    """The model is of all nodes, the meters of one."""
    for hosts, told in ((1, []), (3, ["what 2 other nodes used"])):
        made = [RankFile(rank=n, size=3, calls=[Call(0, 10**9)], host=b"node%d" % (1 + n % hosts)) for n in range(3)]
        directory = write_run(tmp_path / str(hosts), made)
        (directory / "meters.json").write_text(json.dumps(sampled(FakeMeter())))
        notes = [note for note in analyse.load(directory).health.notes if note.startswith("meters were read on node1 alone")]
        assert [note.partition(": ")[2].partition(" is")[0] for note in notes] == told


def test_metered_energy_delay_has_one_time(tmp_path):
    """What was read while the command ran times how long that was, though its rank ran on."""
    directory = write_run(tmp_path / "r", [RankFile(calls=[Call(0, 1000), Call(1000, 5 * 10**9)])], run_time_s=2.0)
    (directory / "meters.json").write_text(json.dumps(sampled(FakeMeter())))
    report = analyse.load(directory)
    assert report.run.run_time_s == pytest.approx(5.0)
    assert report.energy.metered.energy_delay_js == pytest.approx(24 * 2.0)


def test_domains_are_told_apart_in_a_table_that_is_too_wide(tmp_path, fallow):
    meter = FakeMeter(lasts=2)
    meter.name = "a-meter-with-a-long-name"
    sampler = sampling.Sampler(sampling.Found([meter], [(meter.name, "package-0")]))
    for _ in range(3):
        sampler.sample()
    meters = sampler.told()
    meters["meters"][0]["off"] = {"package-1": "cannot read " + "x" * 60}
    report_with(tmp_path, meters)
    out = fallow("report", tmp_path / "r").stdout
    assert f"{meter.name} package-0 " in out and f"{meter.name} package-1 " in out


def test_long_runs_keep_their_ends():
    data = sampled(FakeMeter(lasts=10**6), times=10_000)["meters"][0]["samples"]
    assert len(data) <= 4_100
    assert data[0][1]["package-0"] == 5.0
    assert data[-1][1]["package-0"] == 5.0 * 10_001


def test_long_runs_are_kept_evenly():
    """What a sampler keeps once its samples have been thinned is as far apart as what was left of them."""
    meter = FakeMeter(lasts=10**6)
    meter.min_period_s = meter.max_period_s = 1e-6
    sampler = sampling.Sampler(sampling.Found([meter], []))
    sampler._samples = [[(0, {})] * 4096]
    sampler.sample_until(Ticks(5))
    kept = [values["package-0"] / 5.0 for _, values in sampler.told()["meters"][0]["samples"][2049:]]
    assert kept == [2, 4, 6]  # readings: the first one thins, then every other one is kept, and the last one always


def test_samples_have_the_time_of_a_clock_that_nobody_sets():
    before = time.monotonic_ns()
    sampler = sampling.Sampler(sampling.Found([FakeMeter()], []))
    sampler.sample()
    ((at, _),) = sampler.told()["meters"][0]["samples"]
    assert before <= at <= time.monotonic_ns()


def start(meter, said, **options):
    return sampling.SamplingThread(lambda: sampling.Found([meter], []), **options).start(said.append)


def test_meters_are_read_when_the_command_begins_and_when_it_has_ended():
    meter, said = FakeMeter(), []
    sampler = start(meter, said)
    begun = meter.reads
    told = sampler.stop((1, 2), said.append)
    assert (begun, meter.reads, said) == (1, 2, [])
    assert told["command_ns"] == (1, 2)
    assert [values["package-0"] for _, values in told["meters"][0]["samples"]] == [5.0, 10.0]


def test_where_nothing_is_measured_nothing_is_said():
    said = []
    assert sampling.SamplingThread(lambda: None).start(said.append) is None
    assert sampling.SamplingThread(lambda: sampling.Found([], [])).start(said.append) is None
    assert said == []


@pytest.mark.parametrize("answered", [0, 1])
def test_a_meter_that_hangs_is_left(answered):
    """At once, so that the command begins without it; or later, so that its record is written without it."""
    meter, said, never = FakeMeter(), [], threading.Event()
    read = meter.read
    meter.read = lambda: read() if meter.reads < answered else never.wait()
    sampler = start(meter, said, patience_s=0.05)
    assert (sampler is not None) == bool(answered)
    if sampler is not None:
        assert sampler.stop((1, 2), said.append) is None
    never.set()
    what = "what meters counted is not known" if answered else "meters are not read"
    assert said == [f"{what}: no answer in 50 ms: a driver hangs"]


@pytest.mark.parametrize("reads", [0, 1])
def test_a_meter_that_fails_is_left(reads):
    meter, said = FakeMeter(), []
    read = meter.read
    meter.read = lambda: read() if meter.reads < reads else meter.domains[len(meter.domains)]
    sampler = start(meter, said)
    if sampler is not None:
        assert sampler.stop((1, 2), said.append) is None
    what = "what meters counted is not known" if reads else "meters are not read"
    assert said == [f"{what}: list index out of range"]


def test_the_period_suits_every_meter():
    slow, quick = FakeMeter(), FakeMeter()
    slow.min_period_s, quick.max_period_s = 0.1, 0.5
    assert sampling.period_s([slow, quick]) == 0.5
    assert sampling.period_s([slow]) == 1.0
    slow.min_period_s = 10.0
    assert sampling.period_s([slow]) == 10.0
    slow.max_period_s = 2.0  # it cannot be had both ways: not to miss anything comes first
    assert sampling.period_s([slow, quick]) == 0.5


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"schema": "fallow-meters", "version": 1, "additive": [], "meters": [1]}']
)
def test_broken_meter_files_are_noted(tmp_path, text):
    directory = write_run(tmp_path / "r", [lively_rank(0, 1, 5)])
    (directory / "meters.json").write_text(text)
    report = analyse.load(directory)
    assert report.energy.metered is None
    assert any("meters.json" in note for note in report.health.notes)


@pytest.mark.parametrize(
    ("old", "new"),
    [("15.0", "1e400"), ("15.0", "1" + "0" * 400), ("15.0", "1e308"), ("15.0", '"x"'), ("3000000000", "1" + "0" * 400),
     ("3000000000", "1e400"), ('"name": "fake"', '"name": 5'), ('"kind": "core"', '"kind": 7'), ('"off": {}', '"off": {"core": 3}'),
     ('"lost_intervals": {}', '"lost_intervals": {"core": "x"}'), ('"measures": "made up"', '"measures": {}')],
)  # fmt: skip
def test_a_meter_file_with_a_value_that_cannot_be_is_noted(tmp_path, fallow, old, new):
    directory = write_run(tmp_path / "r", [lively_rank(0, 1, 5)], run_time_s=1e3)
    text = json.dumps(sampled(FakeMeter(), times=2))
    assert text.count(old) == 1
    (directory / "meters.json").write_text(text.replace(old, new))
    out = fallow("report", directory, "--json")
    assert out.returncode == 0, out.stderr
    report = json.loads(out.stdout)
    assert report["energy"]["metered"] is None
    assert [note.split(":")[0] for note in report["health"]["notes"]] == ["meters.json"]


PLATFORM = """
name = "tiny"
description = "for tests"
[cpu]
model = "one"
sockets = 1
cores_per_socket = 1
source = "made up"
[core]
nominal_ghz = 1.0
compute_w = 10.0
spin_w = 8.0
yield_w = 6.0
sleep_w = 1.0
source = "made up"
[memory]
idle_w = 0
active_w = 0
source = "made up"
[nic]
idle_w = 0
active_w = 0
source = "made up"
[base]
node_w = 0
source = "made up"
[switch]
share_w = 0
source = "made up"
[link]
gbit_s = 10
lanes = 1
low_power_fraction = 1.0
react_us = 10
port_w = 0
source = "made up"
"""


def test_the_model_follows_the_residencies(tmp_path, fallow):
    """One second of computing and one of sleep: 10 W s + 1 W s; awake it would have been 10 + 8."""
    second = 10**9
    rank = RankFile(calls=[Call(0, 0), Call(second, 2 * second, asleep=second)])
    directory = write_run(tmp_path / "r", [rank], run_time_s=2.0)
    (tmp_path / "tiny.toml").write_text(PLATFORM)
    try:
        modelled = analyse.load(directory, str(tmp_path / "tiny.toml")).energy.modelled
    except UserError as error:
        pytest.fail(str(error))
    assert modelled is not None
    assert modelled.energy_j == pytest.approx(11.0, rel=1e-3)
    assert modelled.energy_spinning_j == pytest.approx(18.0, rel=1e-3)
    assert modelled.energy_delay_js == pytest.approx(22.0, rel=1e-3)
    assert modelled.cores_j == pytest.approx(sum(modelled.parts.values()))
    out = fallow("report", directory, "--platform", "tiny.toml").stdout
    assert "Energy, modelled on tiny" in out
    assert "energy is power of each state times time in it" in out


@pytest.mark.parametrize(("delay", "made_good", "spinning_j"), [(0, 0, 18.0), (200, 0, 16.2), (200, 200, 18.0), (1000, 0, 9.0)])
def test_a_delay_that_lasts_is_energy_that_sleeping_cost(tmp_path, fallow, delay, made_good, spinning_j):
    """As above; without sleep the run would have been shorter by so many ms of 2 s."""
    ms = 10**6
    rank = RankFile(calls=[Call(0, 0), Call(1000 * ms, 2000 * ms, asleep=1000 * ms)], wake_delay=delay * ms, wake_absorbed=made_good * ms)
    directory = write_run(tmp_path / "r", [rank], run_time_s=2.0)
    (tmp_path / "tiny.toml").write_text(PLATFORM)
    modelled = analyse.load(directory, str(tmp_path / "tiny.toml")).energy.modelled
    assert modelled is not None
    assert modelled.energy_j == pytest.approx(11.0, rel=1e-3)
    assert modelled.energy_spinning_j == modelled.cores_spinning_j == pytest.approx(spinning_j, rel=1e-3)
    assert modelled.power_spinning_w == pytest.approx(9.0, rel=1e-3)
    share = f"{abs(1 - 11.0 / spinning_j) * 100:.1f} % {'less' if spinning_j > 11 else 'more'} than spinning"
    assert share in fallow("report", directory, "--platform", "tiny.toml").stdout


def test_the_machine_of_the_run_is_modelled(tmp_path):
    directory = write_run(tmp_path / "r", [lively_rank(0, 1, 5)])
    kept = directory / "machine/proc"
    kept.mkdir(parents=True)
    cpu = "processor\t: {}\nmodel name\t: Far Away CPU\nphysical id\t: 0\ncore id\t: {}\ncpu cores\t: 6\n\n"
    (kept / "cpuinfo").write_text("".join(cpu.format(i, i) for i in range(6)))
    modelled = analyse.load(directory).energy.modelled
    assert modelled is not None
    assert modelled.platform == "the machine found (Far Away CPU, 6 cores a node)"
    named = analyse.load(directory, "generic").energy.modelled  # another machine, and another name
    assert named is not None and named.platform.startswith("generic (") and "64 cores a node" in named.platform


@pytest.mark.parametrize("name", ["no-such-platform", "broken.toml"])
def test_a_platform_that_cannot_be_used_is_exit_2(run_dir, fallow, name):
    (run_dir.parent / "broken.toml").write_text("name = ")
    for out in (fallow("report", run_dir, "--platform", name), fallow("run", "--platform", name, "--", "true")):
        assert out.returncode == 2
        assert "Traceback" not in out.stderr


def test_a_powercap_tree_is_sampled(tmp_path):
    zone = tmp_path / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    for name, value in (("name", "package-0"), ("max_energy_range_uj", 262143328850), ("energy_uj", 5_000_000)):
        (zone / name).write_text(f"{value}\n")
    found = sampling.find(str(tmp_path))
    assert found is not None, "built without meters: run `make build`"
    assert found.additive == [("powercap", "package-0")]
    sampler = sampling.Sampler(found)
    sampler.sample()
    (zone / "energy_uj").write_text("17000000\n")
    sampler.sample()
    metered = report_with(tmp_path, sampler.told(), run_time_s=2.0).energy.metered
    assert metered is not None
    assert metered.energy_j == pytest.approx(12.0)


_SLOW_READ = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
ssize_t read(int fd, void* to, size_t size) {
  ssize_t (*next)(int, void*, size_t) = dlsym(RTLD_NEXT, "read");
  char link[64], path[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, "slow/power1_input") && access("asked", F_OK) == 0) {
    close(creat("reading", 0644));
    for (int i = 0; i < 1000 && access("others", F_OK) != 0; ++i) usleep(10000);
    close(creat("read", 0644));
  }
  return next(fd, to, size);
}
"""
_SLOW_METER = """
import pathlib, threading, time
from fallow import sampling
(meter,) = sampling.find(".").meters
pathlib.Path("asked").touch()
reader = threading.Thread(target=meter.read)
reader.start()
while not pathlib.Path("reading").exists():
    time.sleep(0.001)
print(pathlib.Path("read").exists())
pathlib.Path("others").touch()
reader.join()
"""


def test_a_slow_sensor_holds_nobody_up(tmp_path):
    """The end of the command is to be seen while it is read. The library makes the sensor wait for that."""
    chip = tmp_path / "sys/class/hwmon/slow"
    chip.mkdir(parents=True)
    (chip / "power1_input").write_text("5000000\n")
    (tmp_path / "slow.c").write_text(_SLOW_READ)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "slow.so", "slow.c", "-ldl"], cwd=tmp_path, check=True)
    out = subprocess.run(
        [sys.executable, "-c", _SLOW_METER], cwd=tmp_path, env=os.environ | {"LD_PRELOAD": str(tmp_path / "slow.so")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert out.stdout == "False\n"
