"""Sampling meters, and what the report makes of it."""

from __future__ import annotations

import json

from fallow import analyse, sampling
from rank_writer import lively_rank, write_run


class FakeMeter:
    """Gains 5 J a reading; fails after `lasts` readings."""

    def __init__(self, name, lasts=100):
        self.name, self.min_period_s, self.lasts, self.reads = name, 0.01, lasts, 0

    def energy_j(self):
        self.reads += 1
        if self.reads > self.lasts:
            raise OSError("gone")
        return 5.0 * self.reads


def sampled(*meters, times=3):
    clock = iter(range(10**9, 10**12, 10**9))
    sampler = sampling.Sampler(meters, clock=lambda: next(clock))
    for _ in range(times):
        sampler.sample()
    return sampler.stop()


def test_meters_are_read_to_the_end():
    data = sampled(FakeMeter("powercap:package-0"), FakeMeter("hwmon:fan", lasts=2))
    first, second = data["meters"]
    assert len(first["samples"]) == 4
    assert second["lost"] == "gone"
    assert len(second["samples"]) == 2


def test_the_report_counts_what_does_not_overlap(tmp_path):
    directory = write_run(tmp_path / "r", [lively_rank(0, 1, 5)], run_time_s=2.0)
    data = sampled(FakeMeter("powercap:package-0"), FakeMeter("powercap:package-0/core"))
    (directory / "meters.json").write_text(json.dumps(data))
    metered = analyse.load(directory).energy.metered
    assert metered is not None
    assert metered.energy_j is not None
    assert metered.energy_delay_js == metered.energy_j * 2.0


def test_broken_meter_files_are_noted(tmp_path):
    for content in ("", "{}", '{"schema": "fallow-meters", "version": 1, "meters": [1]}', "[]"):
        directory = write_run(tmp_path / "r", [lively_rank(0, 1, 5)])
        (directory / "meters.json").write_text(content)
        report = analyse.load(directory)
        assert report.energy.metered is None
        assert report.health.notes
