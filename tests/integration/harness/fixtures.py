"""Fixtures of the integration and fault tests; a conftest.py takes them with `from harness.fixtures import *`.

TEST_FALLOW and TEST_ABI_BIN name another `fallow` command and another folder with `mpicc_abi` than the
checkout's .venv has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.fallow import MODES, Fallow
from harness.families import FAMILY_NAMES, REPOSITORY, Family, find_family
from harness.hosts import Hosts, two_hosts
from harness.lab import Lab

__all__ = ["fallow", "families", "family", "hosts", "lab", "mode", "pytest_collection_modifyitems"]

_VENV_BIN = REPOSITORY / ".venv/bin"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one family are long on the others."""
    for item in items:
        if item.get_closest_marker("one_family") and item.callspec.params["family"] != FAMILY_NAMES[0]:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session", params=FAMILY_NAMES)
def family(request: pytest.FixtureRequest) -> Family:
    """Each MPI family in turn."""
    return find_family(request.param, Path(os.environ.get("TEST_ABI_BIN", _VENV_BIN)))


@pytest.fixture(scope="session")
def families() -> list[Family]:
    """All MPI families at once."""
    return [find_family(name, Path(os.environ.get("TEST_ABI_BIN", _VENV_BIN))) for name in FAMILY_NAMES]


@pytest.fixture(scope="session")
def fallow() -> Fallow:
    """The `fallow` command of the checkout."""
    return Fallow(Path(os.environ.get("TEST_FALLOW", _VENV_BIN / "fallow")))


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Each wait mode in turn."""
    return request.param


@pytest.fixture
def lab(family: Family, fallow: Fallow, tmp_path: Path) -> Lab:
    """Runs programs of one family, bare and under Fallow."""
    return Lab(family, fallow, tmp_path)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    """Two hosts; only without root there are none. What UCX sends goes over memory, what Open MPI sends over TCP."""
    if os.geteuid() != 0:
        pytest.skip("network name spaces need root")
    with two_hosts(tmp_path, memory_shared=True) as found:
        yield found
