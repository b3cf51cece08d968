"""Programs that nothing can be loaded in front of are named where nothing was recorded."""

from __future__ import annotations

import struct
import subprocess

import pytest

from fallow import analyse, linkage
from fallow.errors import UserError
from rank_writer import write_run


def test_programs_of_32_bits_are_named(tmp_path):
    (tmp_path / "app").write_bytes(b"\x7fELF\x01\x01\x01".ljust(100, b"\0"))
    directory = write_run(tmp_path / "r", [], command=["mpirun", "-n", "2", "./app"], cwd=str(tmp_path))
    with pytest.raises(UserError, match=r"\./app is a program of 32 bits, so Fallow cannot be loaded"):
        analyse.load(directory)


@pytest.mark.parametrize(("segments", "inside", "said"), [
    ([1], b"", "is linked statically"),
    ([1, 3], b"\0PMPI_Init\0", "has its MPI library linked statically"),
    ([1, 3], b"\0MPIR_CVAR_DEBUG\0MPI_Allreduce\0", "has its MPI library linked statically"),
    ([1, 3], b"\0OMPI_MCA_\0mpirun\0", r"did the command start an MPI program\? Had its ranks the right and the room"),
    ([1, 3], b"\0PMPI_Init\0libmpich.so.12\0", "did the command start an MPI program"),
    ([1, 3], b"\0MPI_Init\0libm.so.6\0", "did the command start an MPI program"),
])  # fmt: skip
def test_programs_that_cannot_be_reached_are_named(tmp_path, segments, inside, said):
    """Where nothing was recorded since nothing can be loaded in front of a library that is part of the program."""
    head = struct.pack("<16sHHIQQQIHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, 0, 64, 0, 0, 64, 56, len(segments))
    program = tmp_path / "app"
    program.write_bytes(head.ljust(64, b"\0") + b"".join(struct.pack("<IIQQQQQQ", s, 0, 0, 0, 0, 0, 0, 0) for s in segments) + inside)
    directory = write_run(tmp_path / "r", [], command=["mpirun", "-n", "2", "./app"], cwd=str(tmp_path))
    with pytest.raises(UserError, match=said):
        analyse.load(directory)


@pytest.mark.parametrize(("how", "static"), [("-shared -fPIC", False), ("-static-pie", True), ("-static", True), ("", False)])
def test_a_library_in_the_command_is_no_static_program(tmp_path, how, static):
    """As of a program that opens libraries which it is given, such as plug-ins."""
    source = tmp_path / "nothing.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-fPIE", *how.split(), "-o", "thing", source.name], cwd=tmp_path, check=True)
    said = list(linkage.unreachable(["./thing"], str(tmp_path)))
    assert said == (["./thing is linked statically, so Fallow cannot be loaded in front of it"] if static else [])


@pytest.mark.parametrize("words", [
    ["mpirun", "-x", "LD_PRELOAD=/lib/tool.so", "app"],
    ["mpiexec", "-genv", "LD_PRELOAD", "/lib/tool.so", "app"],
    ["srun", "--export=ALL,LD_PRELOAD=tool.so", "app"],
    ["env", "LD_PRELOAD=tool.so", "app"],
])  # fmt: skip
def test_a_command_that_preloads_by_itself_is_told_how_both_go(tmp_path, words):
    directory = write_run(tmp_path / "r", [], command=words, cwd=str(tmp_path))
    with pytest.raises(UserError, match=r"recorded anything; the command sets LD_PRELOAD in place of Fallow's: set it for `fallow run`"):
        analyse.load(directory)
    assert not list(linkage.unreachable(["mpirun", "-x", "LD_PRELOAD", "app"], str(tmp_path)))  # hands Fallow's on


def test_programs_that_gain_privileges_are_named(tmp_path, monkeypatch):
    """The dynamic linker preloads nothing into them."""
    program = tmp_path / "app"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o4755)
    assert not list(linkage.unreachable(["./app"], str(tmp_path)))  # the user's own
    monkeypatch.setattr(linkage.os, "geteuid", lambda: program.stat().st_uid + 1)
    said = "./app gains privileges when it starts (set-user-ID or the like), so Fallow cannot be loaded in front of it"
    assert list(linkage.unreachable(["./app"], str(tmp_path))) == [said]
