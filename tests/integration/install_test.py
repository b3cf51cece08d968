"""What `cmake --install` puts down serves other projects: from CMake, from pkg-config, moved elsewhere, staged."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from harness.fallow import Fallow, rank_records
from harness.families import REPOSITORY, base_environment, find_family
from harness.running import run

BUILD = REPOSITORY / "build" / "python"  # where `make build` made the wheel; its tree installs all the rest too
HEADERS = {"c": ["-std=c89"], "c++": ["-std=c++11"]}
PROGRAM = """#include <fallow/fallow.h>
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fallow_begin_latency_critical();
  MPI_Barrier(MPI_COMM_WORLD);
  fallow_end_latency_critical();
  if (rank == 0) puts(fallow_is_active() ? "with Fallow" : "without Fallow");
  return MPI_Finalize();
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
find_package(fallow 0.1 REQUIRED)
add_executable(in_c program.c)
add_executable(in_cxx program.cpp)
foreach(target in_c in_cxx)
  target_link_libraries(${target} PRIVATE fallow::fallow)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Werror)
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/preload ${FALLOW_PRELOAD})
"""


def _run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"$ {' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


ASK = """set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
include({repository}/cmake/FindMpiFamilies.cmake)
find_mpi_families()
foreach(family openmpi mpich)
  message(NOTICE "${{family}}=${{FALLOW_${{family}}_INCLUDE}};${{FALLOW_${{family}}_LIBRARY}}")
endforeach()
"""
REFUSES = "echo unrecognized >&2; exit 1"


def _site(place: Path, name: str, answers: dict[str, str], *others: str) -> Path:
    """An MPI as sites install it: a prefix whose bin/mpicc answers a few questions, and other programs that answer none."""
    for folder in ("bin", "include", "lib64"):
        (place / name / folder).mkdir(parents=True)
    (place / name / "include" / "mpi.h").touch()
    cases = "".join(f'[ "$1" = {ask} ] && {{ echo "{answer}"; exit; }}\n' for ask, answer in answers.items())
    for program, script in [("mpicc", cases + REFUSES), *((other, REFUSES) for other in others)]:
        (place / name / "bin" / program).write_text(f"#!/bin/sh\n{script}\n")
        (place / name / "bin" / program).chmod(0o755)
    return place / name


def test_compilers_without_a_distributions_names_are_found(tmp_path: Path) -> None:
    """MPIs built from source call their compilers mpicc; which is whose they say themselves, in whatever order they come."""
    mpich = _site(tmp_path, "mpich", {"-compile_info": f"gcc -I/no/such -I{tmp_path}/mpich/include -L/x -lmpi"})
    answers = {"--showme:incdirs": f"{tmp_path}/ompi/include", "--showme:libdirs": f"{tmp_path}/ompi/lib64"}
    ompi = _site(tmp_path, "ompi", answers, "opal_wrapper")
    (ompi / "lib64" / "libmpi.so.40").touch()
    (tmp_path / "ask.cmake").write_text(ASK.format(repository=REPOSITORY))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "cmake").symlink_to(str(shutil.which("cmake")))
    for first, second in ((mpich, ompi), (ompi, mpich)):
        env = {"PATH": f"{first}/bin:{second}/bin:{tools}:/nowhere"}
        done = subprocess.run(["cmake", "-P", tmp_path / "ask.cmake"], env=env, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert f"openmpi={ompi}/include;{ompi}/lib64/libmpi.so.40\n" in said, said
        assert f"mpich={mpich}/include;\n" in said, said


@pytest.mark.parametrize(
    ("answers", "header"),
    [
        ({"-compile_info": "gcc -I{site}/include -lmpi"}, "mpi_abi.h"),  # MPICH 5
        ({"--showme:incdirs": "{site}/include", "--showme:libdirs": "{site}/lib64"}, "standard_abi/mpi.h"),  # Open MPI 6
    ],
)
def test_the_abi_is_found_with_either_mpi(tmp_path: Path, answers: dict[str, str], header: str) -> None:
    """Where there is no environment of Python's with it."""
    site = _site(tmp_path, "site", {ask: answer.format(site=tmp_path / "site") for ask, answer in answers.items()})
    (site / "lib64" / "libmpi.so.40").touch()
    of_abi = site / "include" / header
    of_abi.parent.mkdir(exist_ok=True)
    of_abi.write_text("#define MPI_ABI_VERSION    1\n")
    told = 'message(NOTICE "mpiabi=${FALLOW_mpiabi_INCLUDE}/${FALLOW_mpiabi_HEADER}")\n'
    (tmp_path / "ask.cmake").write_text(ASK.format(repository=REPOSITORY) + told)
    command = [str(shutil.which("cmake")), "-P", tmp_path / "ask.cmake"]
    done = subprocess.run(command, env={"PATH": f"{site}/bin:/nowhere"}, capture_output=True, text=True, check=False)
    assert f"mpiabi={of_abi}\n" in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize(("version", "found"), [("1", True), ("0", False)])
def test_an_mpi_of_the_pythons_own_environment_is_found(tmp_path: Path, version: str, found: bool) -> None:
    """`/opt/fallow/bin/pip install .` does not set VIRTUAL_ENV. Drafts of the ABI, as older libraries have them, are not it."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "mpi_abi.h").write_text(f"#define MPI_ABI_VERSION    {version}\n")
    (tmp_path / "python").write_text(f"#!/bin/sh\necho {tmp_path}\n")
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "ask.cmake").write_text(ASK.format(repository=REPOSITORY) + 'message(NOTICE "mpiabi=${FALLOW_mpiabi_INCLUDE}")\n')
    env = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
    done = subprocess.run(
        ["cmake", f"-DPython3_EXECUTABLE={tmp_path}/python", "-P", tmp_path / "ask.cmake"],
        env=env, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert (f"mpiabi={tmp_path}/include\n" in said) == found, said


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed tree that was moved after it was installed."""
    assert (BUILD / "cmake_install.cmake").exists(), f"{BUILD} is not built: run `make build`"
    place = tmp_path_factory.mktemp("install")
    _run("cmake", "--install", BUILD, "--prefix", place / "first")
    (place / "first").rename(place / "moved")
    return place / "moved"


def _files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_what_is_installed(prefix: Path) -> None:
    """Libraries, one runtime and one list a family, machine descriptions, header, CMake package, pkg-config file."""
    files = _files(prefix)
    families = ("openmpi", "mpich", "mpiabi")
    wanted = {"lib/fallow/libfallow.so", "include/fallow/fallow.h", "lib/pkgconfig/fallow.pc"}
    wanted |= {f"lib/fallow/libfallow-rt-{f}.so" for f in families} | {f"lib/fallow/coverage-{f}.json" for f in families}
    wanted |= {f"lib/cmake/fallow/fallow-config{x}.cmake" for x in ("", "-version")}
    wanted.add("share/doc/fallow/LICENSE")
    wanted |= {f"share/fallow/platforms/{p.name}" for p in (REPOSITORY / "platforms").glob("*.toml")}
    assert files == wanted


def test_nothing_names_where_it_was_built(prefix: Path) -> None:
    """Neither text files nor libraries lead back to the checkout, its build or the first prefix."""
    strays = (str(BUILD).encode(), str(prefix.with_name("first")).encode())
    found = [f for f in _files(prefix) for s in strays if s in (prefix / f).read_bytes()]
    assert not found, found
    for library in (prefix / "lib/fallow").glob("*.so"):
        dynamic = _run("readelf", "-d", library)
        assert not re.search(r"R(UN)?PATH", dynamic), f"{library.name}: {dynamic}"


def test_runtimes_show_one_name(prefix: Path) -> None:
    """No function of the program or of its libraries takes the place of one of ours, and none of ours that of theirs."""
    for runtime in (prefix / "lib/fallow").glob("libfallow-rt-*.so"):
        names = _run("nm", "-D", "--defined-only", "--format=posix", runtime).splitlines()
        assert [name.split()[0] for name in names] == ["fallow_runtime_attach"], runtime.name


def test_staged(prefix: Path, tmp_path: Path) -> None:
    """DESTDIR goes in front of the prefix, and the files are the same."""
    _run("cmake", "--install", BUILD, "--prefix", "/opt/fallow", env={**os.environ, "DESTDIR": str(tmp_path)})
    staged = tmp_path / "opt" / "fallow"
    assert _files(staged) == _files(prefix)
    assert all((staged / f).read_bytes() == (prefix / f).read_bytes() for f in _files(prefix))


@pytest.mark.parametrize("language", HEADERS)
def test_header_compiles_without_a_warning(prefix: Path, language: str) -> None:
    """Alone, with warnings as errors, in the oldest standard that it is written for."""
    header = prefix / "include/fallow/fallow.h"
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    _run("gcc", *HEADERS[language], *flags, "-x", language, header)


def test_pkg_config(prefix: Path) -> None:
    """Flags and the path of the library to preload, from wherever the tree is."""
    env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    flag = _run("pkg-config", "--cflags", "fallow", env=env).strip()
    assert Path(flag.removeprefix("-I")).resolve() == prefix / "include"
    preload = Path(_run("pkg-config", "--variable=preload", "fallow", env=env).strip())
    assert preload.resolve() == prefix / "lib/fallow/libfallow.so"
    version = _run("pkg-config", "--modversion", "fallow", env=env).strip()
    assert f'version = "{version}"' in (REPOSITORY / "pyproject.toml").read_text()


@pytest.mark.parametrize(("libraries", "headers", "flag", "preload"), [
    ("lib/x86_64-linux-gnu", "include", "{tmp}/lib/x86_64-linux-gnu/pkgconfig/../../../include", "{tmp}/lib/x86_64-linux-gnu/fallow/libfallow.so"),
    ("/opt/x/lib", "include", "/usr/include", "/opt/x/lib/fallow/libfallow.so"),
    ("lib", "/opt/y/include", "/opt/y/include", "/usr/lib/fallow/libfallow.so"),
])  # fmt: skip
def test_pkg_config_where_packagers_name_folders(tmp_path: Path, libraries: str, headers: str, flag: str, preload: str) -> None:
    """Some give them as absolute paths."""
    place = tmp_path / ("lib/pkgconfig" if libraries.startswith("/") else f"{libraries}/pkgconfig")
    place.mkdir(parents=True)
    values = {
        "PROJECT_SOURCE_DIR": REPOSITORY, "PROJECT_BINARY_DIR": place, "PROJECT_VERSION": "1.2", "PROJECT_DESCRIPTION": "it",
        "CMAKE_INSTALL_PREFIX": "/usr", "CMAKE_INSTALL_LIBDIR": libraries, "CMAKE_INSTALL_INCLUDEDIR": headers,
    }  # fmt: skip
    _run("cmake", *(f"-D{name}={value}" for name, value in values.items()), "-P", REPOSITORY / "cmake" / "pkg_config.cmake")
    env = {**os.environ, "PKG_CONFIG_PATH": str(place), "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1"}
    assert _run("pkg-config", "--cflags", "fallow", env=env).strip() == f"-I{flag.format(tmp=tmp_path)}"
    said = _run("pkg-config", "--variable=preload", "fallow", env=env).strip()
    assert os.path.normpath(said) == preload.format(tmp=tmp_path)


def test_cmake_package(prefix: Path, fallow: Fallow, tmp_path: Path) -> None:
    """A project finds it, compiles against it in both languages, and runs under the installed libraries."""
    for name in ("program.c", "program.cpp"):
        (tmp_path / name).write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    family = find_family("mpich", Path())
    work = tmp_path / "build"
    compilers = [f"-DCMAKE_C_COMPILER={family.cc}", f"-DCMAKE_CXX_COMPILER={family.cxx}"]
    _run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", work, f"-DCMAKE_PREFIX_PATH={prefix}", *compilers)
    _run("cmake", "--build", work)
    preload = Path((work / "preload").read_text())
    assert preload.resolve() == prefix / "lib/fallow/libfallow.so"
    env = {**base_environment(), "FALLOW_LIBRARY_DIR": str(preload.parent)}
    for program in ("in_c", "in_cxx"):
        launch = family.launch(2, work / program)
        bare = run(launch, env=base_environment(), cwd=tmp_path)
        assert (bare.rc, bare.out) == (0, "without Fallow\n"), bare.describe()
        out = tmp_path / f"record-{program}"
        with_it = run(fallow.wrap("auto", out, launch), env=env, cwd=tmp_path)
        assert (with_it.rc, with_it.out) == (0, "with Fallow\n"), with_it.describe()
        once = Counter({"MPI_Init": 1, "MPI_Barrier": 1, "MPI_Finalize": 1})
        assert [r.calls for r in rank_records(out)] == [once, once]


@pytest.mark.long
def test_pip_install(tmp_path: Path) -> None:
    """`pip install .` in a virtual environment of its own, built in isolation, works from anywhere."""
    source = tmp_path / "source"
    tracked = _run("git", "-C", REPOSITORY, "ls-files", "-z").split("\0")
    for name in filter(None, tracked):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, source / name)
    _run(sys.executable, "-m", "venv", tmp_path / "venv")
    bin_dir = tmp_path / "venv" / "bin"
    abi = f"-Ccmake.define.FALLOW_MPIABI_PREFIX={REPOSITORY / '.venv'}"
    _run(bin_dir / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", abi, source)
    shutil.rmtree(source)
    package = next((tmp_path / "venv").rglob("fallow/__init__.py")).parent
    assert not [f for f in _files(package) if f.endswith((".cpp", ".hpp", "CMakeLists.txt"))]  # of the binding's sources
    env = {k: v for k, v in base_environment().items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    assert run([bin_dir / "fallow", "--version"], env=env, cwd=tmp_path).out.startswith("fallow 0.1")
    doctor = run([bin_dir / "fallow", "doctor", "--json"], env=env, cwd=tmp_path)
    assert doctor.rc == 0, doctor.describe()
    family = find_family("mpich", Path())
    (tmp_path / "program.c").write_text(PROGRAM)
    header = next((tmp_path / "venv").rglob("fallow.h")).parent.parent
    _run(family.cc, f"-I{header}", "-o", tmp_path / "program", tmp_path / "program.c")
    out = tmp_path / "record"
    launch = family.launch(2, tmp_path / "program")
    outcome = run(Fallow(bin_dir / "fallow").wrap("auto", out, launch), env=env, cwd=tmp_path)
    assert (outcome.rc, outcome.out) == (0, "with Fallow\n"), outcome.describe()
    assert len(rank_records(out)) == 2
