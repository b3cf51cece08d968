"""Fixtures of the fault tests: the integration tests' own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from harness.fixtures import *  # noqa: F403
