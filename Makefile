# Every target sets up what it needs and may be repeated. See CONTRIBUTING.md.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src gen python include platforms cmake CMakeLists.txt pyproject.toml -type f -not -name '*_test.cpp' -not -path '*/__pycache__/*' 2>/dev/null)
PYTEST := $(BIN)/python -m pytest
MEASURES := $(PYTEST) -rs -m "measures and not long"  # these have the cores to themselves; -rs: what was not measured, and why

# Environments and CMake's caches name the directory that they were made in: where the checkout was moved or copied to, they are made
# anew. Traces that took long to record stay.
$(shell is_here() { [ ! -s $$1 ] || [ "$$(cat $$1)" -ef . ]; }; \
  is_here $(VENV)/.ready || rm -rf $(VENV); \
  is_here build/.packages || find build -mindepth 1 -maxdepth 1 ! -name traces -exec rm -rf {} +)

# When the Python that the environment was made with is gone, as after an upgrade of the distribution, it is made anew.
$(if $(wildcard $(VENV)/.ready),$(shell $(BIN)/python -c 'import pip' 2>/dev/null || rm -f $(VENV)/.ready))

.PHONY: help build demo test test-long fuzz bench lint docs clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

build: build/.installed  ## build everything; the command is .venv/bin/fallow

build/.packages: tools/packages.txt tools/install-packages
	@tools/install-packages build test
	@mkdir -p build && pwd -P >$@

$(VENV)/.ready: tools/requirements.txt build/.packages
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)  # also where one was cut off
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r tools/requirements.txt
	@pwd -P >$@

build/.installed: $(VENV)/.ready $(SOURCES)
	@echo "Building Fallow for every MPI found here (two to five minutes the first time)"
	@touch $@.begun
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps --config-settings=build-dir=build/python .
	@mv $@.begun $@

demo: build  ## a real program with and without Fallow, and a report to look at
	@tools/install-packages demo
	@tools/demo

test: build  ## unit, conformance, integration and fault tests (some 20 minutes)
	@cmake --preset test >/dev/null && cmake --build --preset test
	@ctest --preset test -j 2
	@$(PYTEST) -m "not long and not measures" -n 3 --dist worksteal tests  # on two cores: most wait now and then
	@$(MEASURES) tests || { echo "once more, in a minute, what was not shown: a machine may be slow for a while"; sleep 60; $(MEASURES) --last-failed tests; }

test-long: build  ## the suites that take long: sanitizers, another compiler, large programs, all of mpi4py, programs of MPICH's suite, Slurm
	@tools/install-packages fuzz long
	@set -e; for preset in asan-ubsan tsan clang; do \
	  cmake --preset $$preset >/dev/null; cmake --build --preset $$preset; ctest --preset $$preset; done
	@$(PYTEST) tests

fuzz: build  ## damaged files against every reader, a minute each (SECONDS_EACH=60)
	@tools/install-packages fuzz
	@tools/fuzz $(or $(SECONDS_EACH),60)

bench: build  ## costs and savings, measured side by side and held against their goals (hours; parts: bench/run.py --list)
	@tools/install-packages bench
	@$(BIN)/python bench/run.py

lint: build  ## style of the Python, warnings of the C++
	@$(BIN)/ruff check python gen tests bench tools
	@$(BIN)/mypy
	@cmake --preset dev >/dev/null && cmake --build --preset dev -- --quiet -k 0  # warnings are errors there

docs: build  ## generated reference pages
	@$(BIN)/python tools/make_docs.py

clean:  ## remove what was built; the virtual environment stays
	@rm -rf build
