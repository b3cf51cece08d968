"""How the programs of a command are linked: what has its MPI library inside itself cannot be reached by preloading."""

from __future__ import annotations

import mmap
import shutil
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


def unreachable(command: Iterable[str], cwd: str) -> Iterator[str]:
    """A line about each file in the command that is a program which nothing can be preloaded into."""
    for word in dict.fromkeys(command):
        found = Path(cwd, word) if "/" in word else Path(shutil.which(word) or word)
        if problem := _what_is_wrong(found):
            yield f"{word} {problem}, so Fallow cannot be loaded in front of it"
