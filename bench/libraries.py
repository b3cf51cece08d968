"""Benchmarks of the libraries below the runtime: plain programs of the release preset."""

from __future__ import annotations

import subprocess
import sys

from families import ROOT


def run_library_benchmarks() -> None:
    """Builds and runs them; each prints its own ratios."""
    subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", "--preset", "release"], cwd=ROOT, check=True, capture_output=True)
    for name in ("predict_cost", "sim_speed"):
        program = ROOT / "build" / "release" / "bench" / name
        if program.exists():
            print(f"\n{name}\n{'-' * len(name)}", flush=True)
            subprocess.run([str(program)], check=True)
    print("\nsim_speed beside SimGrid\n------------------------", flush=True)
    subprocess.run([sys.executable, str(ROOT / "bench" / "sim_peers.py")], check=True)
