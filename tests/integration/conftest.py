"""Fixtures of the integration tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.fixtures import *  # noqa: F403
