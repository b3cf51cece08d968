"""What the environment of a run depends on: Fallow's own libraries, and what the user and a site have told Open MPI."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fallow import environment, native


def test_open_mpi_is_told_what_to_forward(run, tmp_path):
    """Where its daemons on other nodes do not start with it: a value needs quotes there, or the agent is the user's."""
    launcher = tmp_path / "mpirun"
    launcher.write_text("#!/bin/sh\nenv\n")
    launcher.chmod(0o755)
    name = "OMPI_MCA_mca_base_env_list="
    ours = f"{name}LD_PRELOAD;FALLOW_DIR;FALLOW_RUN_ID;FALLOW_MODE"
    quoted = ("-q", "--out", tmp_path / "a folder", "--", launcher)
    assert ours in run(*quoted).stdout
    shutil.rmtree(tmp_path / "a folder")
    assert f"{name}mine\n" in run(*quoted, env={name[:-1]: "mine"}).stdout
    assert ours in run("-q", "--", launcher, env={"OMPI_MCA_orte_launch_agent": "mine"}).stdout
    assert ours in run("-q", "--", launcher, "--launch-agent", "mine").stdout
    assert name not in run("-q", "--", launcher).stdout, "the user's own, in a file of parameters, would not be heard"


@pytest.mark.parametrize("place", ["home/.openmpi/mca-params.conf", "etc/openmpi-mca-params.conf", "mine.conf"])
def test_what_open_mpis_files_say_is_not_overruled(run, tmp_path, place):
    """The daemon of a site, and variables that a user forwards: those of the environment would come before the files'."""
    launcher = tmp_path / "bin" / "mpirun.openmpi"
    launcher.parent.mkdir()
    launcher.write_text("#!/bin/sh\nenv\n")
    launcher.chmod(0o755)
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    env = {"HOME": str(tmp_path / "home"), "OMPI_MCA_mca_base_param_files": str(tmp_path / "mine.conf")}
    names = ("OMPI_MCA_orte_launch_agent=", "OMPI_MCA_mca_base_env_list=LD_PRELOAD;")
    for text, told in (("# orte_launch_agent = x\n", [True, False]), (" orte_launch_agent = x\n", [False, True]),
                       ("orte_launch_agent=x\nmca_base_env_list = HOME\n", [False, False])):  # fmt: skip
        file.write_text(text)
        said = run("-q", "--", launcher, env=env).stdout
        assert [f"\n{name}" in said for name in names] == told, text


@pytest.mark.parametrize("option", ["-x", "--x", "--app", "-app", "--tune"])
def test_open_mpis_ways_to_forward_are_not_mixed(run, tmp_path, option):
    """It refuses to start a program where both are used; files of an application or a tuning may name variables, too."""
    launcher = tmp_path / "mpirun"
    launcher.write_text("#!/bin/sh\nenv\n")
    launcher.chmod(0o755)
    said = run("-q", "--out", tmp_path / "a folder", "--", launcher, option, "HOME").stdout
    assert "OMPI_MCA_mca_base_env_list=" not in said
    shutil.rmtree(tmp_path / "a folder")
    said = run("-q", "--out", tmp_path / "a folder", "--", launcher, option.lstrip("-")).stdout
    assert "OMPI_MCA_mca_base_env_list=" in said, "a program may have that name"


@pytest.mark.parametrize(
    ("name", "daemon"), [("OMPI_MCA_orte_launch_agent=", "orted"), ("PRTE_MCA_prte_launch_agent=", "prted")]
)
def test_open_mpis_daemons_on_other_nodes_get_the_environment(run, tmp_path, fake_library, name, daemon):
    line = next(x for x in run("-q", "--mode", "sleep", "--", "env").stdout.splitlines() if x.startswith(name))
    words = line.removeprefix(name).split(" ")
    assert words[:2] == ["env", f"LD_PRELOAD={fake_library}/libfallow.so"]
    assert "FALLOW_MODE=sleep" in words
    assert any(w.startswith(f"FALLOW_DIR={tmp_path}/") for w in words)
    assert words[-1] == daemon
    assert f"{name}mine\n" in run("-q", "--", "env", env={name[:-1]: "mine"}).stdout
    quoted = run("-q", "--out", tmp_path / "a folder", "--", "env").stdout
    assert not any(x.startswith(name) for x in quoted.splitlines()), "what needs quotes may not survive the remote shell"


def test_without_the_library_the_command_runs(fallow, tmp_path):
    (tmp_path / "none").mkdir()
    out = fallow("run", "-q", "--", "sh", "-c", "echo out; exit 4", env={"FALLOW_LIBRARY_DIR": str(tmp_path / "none")})
    assert "running without Fallow: libfallow.so is not in" in out.stderr
    assert (out.returncode, out.stdout) == (4, "out\n")
    assert out.stderr.count("\n") == 1


@pytest.mark.parametrize(("where", "said"), [
    ("nowhere", "libfallow.so is not in {}, which FALLOW_LIBRARY_DIR names"),
    ("n" * 300, "{}/libfallow.so cannot be loaded: File name too long"),  # as where a user may not look into it, also for root
])  # fmt: skip
def test_where_the_library_cannot_be_loaded_the_command_runs(fallow, tmp_path, where, said):
    place = tmp_path / where
    out = fallow("run", "--", "echo", "ran", env={"FALLOW_LIBRARY_DIR": str(place)})
    assert (out.returncode, out.stdout) == (0, "ran\n")
    assert f"fallow: running without Fallow: {said.format(place)}\n" in out.stderr
    findings = json.loads(fallow("doctor", "--json", env={"FALLOW_LIBRARY_DIR": str(place)}).stdout)["findings"]
    found = next(f for f in findings if f["name"] == "preload library")
    assert (found["state"], found["found"]) == ("missing", said.format(place))
    assert "pip install" not in found["remedy"]


def test_a_library_where_nothing_may_be_executed_is_not_preloaded(fake_library, monkeypatch):
    """Else the dynamic linker would say so for each process that starts."""
    library = fake_library / "libfallow.so"
    assert native.loading_problem(library) == ""

    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(native.mmap, "mmap", refuse)
    assert environment.preload_problem(library) == f"{library} cannot be loaded: its file system is mounted noexec"


@pytest.mark.parametrize("mine", [None, "", "POSIX"])
def test_python_adds_nothing_to_the_environment(fake_library, tmp_path, mine):
    """In the locale C it sets LC_CTYPE, which changes how programs sort and what they take for a letter."""
    env = {name: value for name, value in os.environ.items() if name not in {"LANG", "LC_ALL", "LC_CTYPE"}}
    env |= {"FALLOW_LIBRARY_DIR": str(fake_library)} | ({} if mine is None else {"LC_CTYPE": mine})
    command = [sys.executable, "-m", "fallow", "run", "-q", "--", "env"]
    said = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line for line in said if line.startswith("LC_")] == ([] if mine is None else [f"LC_CTYPE={mine}"])


@pytest.mark.parametrize("entry", [b"=weird=x", b"nothing", b"BAD=\xff"])
def test_an_odd_environment_is_no_reason_not_to_run(fake_library, tmp_path, entry):
    """Entries without a name or without a value that no shell would make, and some launchers do."""
    libc = ctypes.CDLL(None)
    words = [sys.executable, "-m", "fallow", "run", "-q", "--", "sh", "-c", "echo ran; exit 5"]
    plain = {**os.environ, "FALLOW_LIBRARY_DIR": str(fake_library)}
    variables = [entry, *(f"{name}={value}".encode() for name, value in plain.items())]
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.dup2(write, 1)
        vectors = [(ctypes.c_char_p * (len(v) + 1))(*v, None) for v in ([w.encode() for w in words], variables)]
        libc.execve(words[0].encode(), *vectors)
        os._exit(99)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.read() == "ran\n"
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5


def _without_the_native_part(folder, why):
    """A package whose extension module fails to load."""
    package = Path(native.__file__).parent
    (folder / "fallow").mkdir()
    for item in package.iterdir():
        if not item.name.startswith("_native"):
            (folder / "fallow" / item.name).symlink_to(item)
    (folder / "fallow" / "_native.py").write_text(f"raise ImportError({why!r})\n")
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize(("why", "advice"), [
    ("libstdc++.so.6: version `GLIBCXX_3.4.30' not found", "LD_LIBRARY_PATH names libraries too old for it"),
    ("wrong ELF class", "install the package anew: pip install ."),
])  # fmt: skip
def test_without_the_native_part_the_command_runs_and_it_is_said_why(fallow, tmp_path, why, advice):
    """Its options are in there: they were called unknown, and the command did not run."""
    env = _without_the_native_part(tmp_path, why)
    out = fallow("run", "--mode", "sleep", "--", "sh", "-c", "echo ran; exit 3", env=env)
    assert (out.returncode, out.stdout) == (3, "ran\n")
    assert why in out.stderr and advice in out.stderr and out.stderr.count("\n") == 1
    assert not list(tmp_path.glob("fallow-run-*"))
    for args in (["run", "--mode", "sleep", "--compare", "2", "--", "true"], ["config"], ["run", "--mode", "sleep"]):
        refused = fallow(*args, env=env)
        assert refused.returncode == 2 and why in refused.stderr and refused.stderr.count("\n") == 1
    found = json.loads(fallow("doctor", "--json", env=env).stdout)["findings"]
    assert why in next(f for f in found if f["name"] == "native module")["found"]


def test_the_sources_of_the_native_part_are_not_taken_for_it(fallow, tmp_path):
    """Python takes a directory for a package."""
    env = _without_the_native_part(tmp_path, "")
    (tmp_path / "fallow" / "_native.py").unlink()
    (tmp_path / "fallow" / "_native").mkdir()
    out = fallow("run", "-q", "--", "sh", "-c", "exit 3", env=env)
    assert (out.returncode, out.stderr) == (3, "")
    assert "does not load (not built)" in fallow("config", env=env).stderr


@pytest.mark.parametrize("library", ["libstdc++.so.6", "libgcc_s.so.1"])
def test_libraries_of_another_compiler_do_not_matter(fallow, tmp_path, library):
    """Modules of compilers put theirs in front of the system's, whatever their age."""
    (tmp_path / library).touch()
    out = fallow("config", "--json", env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert (out.returncode, out.stderr) == (0, "")
