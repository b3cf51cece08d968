"""How the programs of a command are linked: what has its MPI library inside itself cannot be reached by preloading."""

from __future__ import annotations

import itertools
import mmap
import os
import re
import shutil
import stat
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

_HEAD = struct.Struct("<16sHHIQQQIHHH")  # Elf64_Ehdr up to e_phnum
_SEGMENT = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr
_ENTRY = struct.Struct("<QQ")  # Elf64_Dyn
_PT_DYNAMIC, _PT_INTERP = 2, 3
_DT_FLAGS_1, _DF_1_PIE = 0x6FFFFFFB, 0x08000000
_PROGRAM, _POSITION_INDEPENDENT = 2, 3


def _is_program_without_linker(image: bytes | mmap.mmap) -> bool:
    """An ELF program of 64 bits that asks for no dynamic linker; nor does a library, which is none."""
    head = _HEAD.unpack_from(image)
    kind, segments, each, number = head[1], head[5], head[9], head[10]
    found = [_SEGMENT.unpack_from(image, segments + i * each) for i in range(number)]
    if any(segment[0] == _PT_INTERP for segment in found):
        return False
    if kind != _POSITION_INDEPENDENT:
        return bool(kind == _PROGRAM)
    dynamic = next((image[at : at + size] for type_, _, at, _, _, size, *_ in found if type_ == _PT_DYNAMIC), b"")
    entries = _ENTRY.iter_unpack(dynamic[: len(dynamic) // _ENTRY.size * _ENTRY.size])
    return any(tag == _DT_FLAGS_1 and value & _DF_1_PIE for tag, value in entries)


def _has_mpi_inside(image: mmap.mmap) -> bool:
    """It names no library of MPI's, but has such a library's own names, not only those that programs call.

    Of a program without symbols these are variables of the environment, which launchers have, too, and what messages
    call the functions, which they have not.
    """
    if image.find(b"\0libmpi") >= 0:
        return False
    variables = any(image.find(name) >= 0 for name in (b"MPIR_CVAR_", b"OMPI_MCA_"))
    return image.find(b"\0PMPI_Init\0") >= 0 or (variables and image.find(b"MPI_Allreduce") >= 0)


def _what_is_wrong(path: Path) -> str:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
            if image[:5] == b"\x7fELF\x01":
                return "is a program of 32 bits"
            if image[:5] != b"\x7fELF\x02":
                return ""
            if _is_program_without_linker(image):
                return "is linked statically"
            return "has its MPI library linked statically" if _has_mpi_inside(image) else ""
    except (OSError, ValueError, struct.error):  # not to be read, empty, or cut short
        return ""


def _gains_privileges(path: Path) -> bool:
    """By set-user-ID, set-group-ID or a file's capabilities: such a program starts without what is preloaded."""
    try:
        of = path.stat()
        with_file = (of.st_mode & stat.S_ISUID and of.st_uid != os.geteuid()) or (
            of.st_mode & stat.S_ISGID and of.st_gid != os.getegid()
        )
        return bool(with_file) or (os.geteuid() != 0 and "security.capability" in os.listxattr(path))
    except OSError:
        return False


def _sets_preload(words: list[str]) -> bool:
    """Whether the command gives its programs an LD_PRELOAD of its own: by env, or by a launcher's option."""
    named = any(re.search(r"(?:\A|,)LD_PRELOAD=", word) for word in words)
    return named or any(a.lstrip("-") in {"genv", "env"} and b == "LD_PRELOAD" for a, b in itertools.pairwise(words))


def unreachable(command: Iterable[str], cwd: str) -> Iterator[str]:
    """A line about each program in the command that nothing can be preloaded into, and where it preloads by itself."""
    words = list(command)
    for word in dict.fromkeys(words):
        found = Path(cwd, word) if "/" in word else Path(shutil.which(word) or word)
        problem = _what_is_wrong(found)
        if not problem and found.is_absolute() and _gains_privileges(found):
            problem = "gains privileges when it starts (set-user-ID or the like)"
        if problem:
            yield f"{word} {problem}, so Fallow cannot be loaded in front of it"
    if _sets_preload(words):
        yield (
            "the command sets LD_PRELOAD in place of Fallow's: set it for `fallow run` instead, which puts Fallow in "
            "front (LD_PRELOAD=... fallow run -- ...)"
        )
