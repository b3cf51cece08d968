"""Reads the C prototypes of an installed mpi.h through the preprocessor, and of the extensions beside it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    declaration: str  # "const int sendcounts[]"
    name: str         # "sendcounts"


@dataclass(frozen=True)
class Prototype:
    name: str
    result: str
    parameters: tuple[Parameter, ...]

    def declare(self) -> str:
        return ", ".join(p.declaration for p in self.parameters)

    def forward(self, replace: Mapping[str, str] | None = None) -> str:
        return ", ".join((replace or {}).get(p.name, p.name) for p in self.parameters)

    def has(self, *names: str) -> bool:
        own = {p.name for p in self.parameters}
        return all(n in own for n in names)


_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
_FUNCTION = re.compile(r"\b(int|double|void) (MPIX?_\w+) ?\(((?:[^()]|\([^()]*\))*)\) ?;")
# Open MPI's functions whose names begin with MPIX have a header of their own.
_EXTENSIONS = """#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
"""
# Names by which the standard calls what headers call otherwise; by function, with that for large counts, as what one name stands
# for differs.
_STANDARD_NAMES = {
    "MPI_Mrecv": {"type": "datatype"},                               # Open MPI
    "MPI_Imrecv": {"type": "datatype"},                              # Open MPI
    "MPI_Pready": {"partitions": "partition"},                       # Open MPI 5
    "MPI_Comm_create_from_group": {"tag": "stringtag"},              # Open MPI 5
    "MPI_Intercomm_create_from_groups": {"tag": "stringtag"},        # Open MPI 5
    "MPI_Precv_init": {"dest": "source"},                            # MPICH's header of the MPI 5 ABI
}
_LAST_NAME = re.compile(r"(\w+)\s*((?:\[[^\]]*\])*)\s*$")


def _parameter(text: str, index: int) -> Parameter:
    text = text.strip()
    found = _LAST_NAME.search(text)
    if found is None or text.endswith("*") or text in ("int", "MPI_Comm"):
        name = f"arg{index}"
        return Parameter(f"{text} {name}", name)
    return Parameter(text, found[1])


def _standard(function: str, parameter: Parameter) -> Parameter:
    name = _STANDARD_NAMES.get(function.removesuffix("_c"), {}).get(parameter.name)
    if name is None:
        return parameter
    return Parameter(re.sub(rf"\b{parameter.name}\b(?=[^\w]*$)", name, parameter.declaration), name)


def _split(text: str) -> list[str]:
    return [p for p in (p.strip() for p in text.split(",")) if p and p != "void"]


def include(header: str) -> str:
    """C that declares all functions of an MPI."""
    return f"#include <{header}>\n{_EXTENSIONS}"


def parse_prototypes(preprocessed: str) -> dict[str, Prototype]:
    source = re.sub(r"\s+", " ", _ATTRIBUTE.sub("", preprocessed))
    found: dict[str, Prototype] = {}
    for result, name, parameters in _FUNCTION.findall(source):
        if "(*" in parameters or "..." in parameters:
            continue  # callbacks and variadic functions: none of them is wrapped
        split = tuple(_standard(name, _parameter(p, i)) for i, p in enumerate(_split(parameters)))
        found.setdefault(name, Prototype(name, result, split))
    return found


def read_prototypes(compiler: str, header: str, directories: list[str]) -> dict[str, Prototype]:
    command = [compiler, "-E", "-P", "-xc", *[f"-I{d}" for d in directories], "-"]
    done = subprocess.run(command, input=include(header), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: cannot read {header}:\n{done.stderr}")
    found = parse_prototypes(done.stdout)
    if "MPI_Send" not in found:
        raise SystemExit(f"{header}: no prototype of MPI_Send found; is this an MPI header?")
    return found
