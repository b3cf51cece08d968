"""A small PMPI tool of another make: counts calls of some functions, generated from the installed mpi.h."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from harness.building import CACHE, build
from harness.families import Family

_HEAD = """// Counts the program's MPI calls and writes them to TOOL_OUT.<rank> at MPI_Finalize.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum {{ {enum}, kFunctions }};
static const char *const names[] = {{ {strings} }};
static long counts[kFunctions];
static void write_counts(void) {{
  int rank;
  char path[4096];
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s.%d", getenv("TOOL_OUT"), rank);
  FILE *file = fopen(path, "w");
  for (int i = 0; i < kFunctions; ++i) {{
    if (counts[i]) fprintf(file, "%s %ld\\n", names[i], counts[i]);
  }}
  fclose(file);
}}
"""
_BODY = """int {name}({parameters}) {{
  __atomic_add_fetch(&counts[k_{name}], 1, __ATOMIC_RELAXED);{extra}
  return P{name}({arguments});
}}
"""


def prototypes(family: Family) -> dict[str, str]:
    """Parameter lists of the MPI's C functions by name, those with variable arguments or callbacks left out, and
    conversions of Fortran 2008's statuses, some of which MPICH declares on Debian 13 and does not have."""
    CACHE.mkdir(parents=True, exist_ok=True)
    source = CACHE / "mpi_header.c"
    source.write_text("#include <mpi.h>\n")
    text = subprocess.run([family.cc, "-E", source], capture_output=True, text=True, check=True).stdout
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    found = re.findall(r"\bint\s+(MPI_[A-Z][A-Za-z0-9_]*)\s*\(([^()]*)\)", text)
    usual = [(name, " ".join(parameters.split())) for name, parameters in found if "..." not in parameters]
    return {name: parameters for name, parameters in usual if "f08" not in name}


def _argument(parameter: str) -> str:
    match = re.search(r"(\w+)\s*(\[[^]]*\]\s*)*$", parameter)
    assert match, parameter
    return match.group(1)


def build_tool(family: Family, functions: Iterable[str], name: str = "libpmpitool.so") -> Path:
    """The tool as a shared library that counts `functions`."""
    known = prototypes(family)
    wanted = sorted(functions)
    bodies = []
    for function in wanted:
        parameters = known[function]
        arguments = "" if parameters == "void" else ", ".join(_argument(p) for p in parameters.split(","))
        extra = "\n  write_counts();" if function == "MPI_Finalize" else ""
        bodies.append(_BODY.format(name=function, parameters=parameters, arguments=arguments, extra=extra))
    head = _HEAD.format(enum=", ".join(f"k_{n}" for n in wanted), strings=", ".join(f'"{n}"' for n in wanted))
    source = CACHE / f"{name}_{family.name}.c"
    source.write_text(head + "".join(bodies))
    return build(family, name, [source], ["-shared", "-fPIC", "-O1", "-w"])


def read_counts(prefix: Path, rank: int) -> Counter[str]:
    """What the tool counted on one rank."""
    lines = Path(f"{prefix}.{rank}").read_text().splitlines()
    return Counter({name: int(count) for name, count in (line.split() for line in lines)})
