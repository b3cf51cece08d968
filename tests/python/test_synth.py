"""`fallow synth`: made-up programs as traces."""

from __future__ import annotations

import pytest

from fallow.traces.model import FileSource
from test_sim import study


def test_a_made_up_program_written_as_a_trace_simulates_alike(fallow, tmp_path):
    for program in ("stencil3d", "cg", "fft", "alltoall", "random"):
        size = ["--ranks", "8", "--iterations", "5", "--jitter", "5%", "--bytes", "2KB"]
        assert fallow("synth", program, *size, "-o", "x.ftr").returncode == 0
        direct = study(fallow, "--synth", program, *size, "--policy", "hardware")
        recorded = study(fallow, "x.ftr", "--policy", "hardware")
        # in the trace every call takes a nanosecond
        assert recorded["simulations"][0]["raw"]["calls"] == direct["simulations"][0]["raw"]["calls"]
        assert recorded["simulations"][0]["run_time_s"] == pytest.approx(direct["simulations"][0]["run_time_s"], rel=1e-6)


def test_a_made_up_program_written_as_a_trace_keeps_its_call_sites(fallow, tmp_path):
    """Predictors tell calls apart by them."""
    size = ["--ranks", "16", "--iterations", "60", "--jitter", "5%"]
    assert fallow("synth", "cg", *size, "-o", "x.ftr").returncode == 0
    direct, recorded = (study(fallow, *what, "--policy", "adaptive") for what in (["--synth", "cg", *size], ["x.ftr"]))
    assert recorded["simulations"] == direct["simulations"]


def test_a_trace_of_synth_reads_back(fallow, tmp_path):
    done = fallow("synth", "stencil3d", "--ranks", "8", "--iterations", "3", "-o", "x.ftr")
    assert "8 ranks, 336 calls" in done.stdout
    events = list(FileSource([tmp_path / "x.ftr"]).events(0))
    assert [e.compute_ns for e in events if e.compute_ns] == [1_000_000] * 3
