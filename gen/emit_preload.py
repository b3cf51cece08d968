"""Emits the preloaded library's symbols: every wrapped MPI and PMPI name, the hooks and the Fortran names, each
a jump through one slot of a table (x86-64)."""

from __future__ import annotations

from calls import Call, functions, takes_long

HOOKS = ("opal_progress", "ucp_worker_progress", "sched_yield", "fi_fabric")


def fortran_names(function: str) -> list[str]:
    """The linker names of a function's Fortran bindings: mpif.h in the four manglings in use, and the procedures
    behind `use mpi_f08` of Open MPI and MPICH."""
    lower = function.lower()
    return [lower, lower + "_", lower + "__", function.upper(), lower + "_f08_", lower + "_f08ts_"]


def _hidden(label: str, align: int) -> list[str]:
    return [f"    .balign {align}", f"    .globl {label}", f"    .hidden {label}", f"{label}:"]


def emit_preload(table: dict[str, Call], present: set[str]) -> dict[str, str]:
    calls = {name: call for name, call in functions(table) if name in present}
    names = list(calls)
    symbols = [prefix + name for name in names for prefix in ("", "P")]
    first_hook = len(symbols)
    symbols += HOOKS
    first_fortran = len(symbols)
    symbols += [f for name in names if not name.endswith("_c") for f in fortran_names(name)]

    assembly = ["    .text", *_hidden("fallow_entries", 64)]
    for index, symbol in enumerate(symbols):
        if index == first_fortran:
            assembly += _hidden("fallow_fortran_entries", 64)
        # Equal distances, see names.c.
        assembly += [f"    .balign {64 if index >= first_fortran else 8}"]
        assembly += [f"    .globl {symbol}", f"    .type {symbol}, @function", f"{symbol}:"]
        if index >= first_fortran:
            # A Fortran wrapper of the MPI library calls the C function: leave the program's own call site for it, in the block
            # that the thread is known by or the one of its own.
            assembly += [
                "    movq %fs:0, %rax",
                "    cmpq fallow_known(%rip), %rax",
                "    jne 2f",
                "    movq fallow_known+8(%rip), %r11",
                "1:  movq (%rsp), %rax",
                "    movq %rax, FALLOW_TLS_CALLER(%r11)",
                "    movq %rsp, FALLOW_TLS_CALLER_AT(%r11)",
                f"    jmp *fallow_slots+{8 * index}(%rip)",
                "2:  movq fallow_tls@gottpoff(%rip), %r11",
                "    addq %rax, %r11",
                "    jmp 1b",
            ]
        else:
            assembly += [f"    jmp *fallow_slots+{8 * index}(%rip)"]
        assembly += [f"    .size {symbol}, .-{symbol}"]
    for index in range(len(symbols)):
        assembly += [f"fallow_stub_{index}:", f"    pushq ${index}", "    jmp fallow_resolve_and_jump"]
    assembly += _hidden("fallow_shows", 64)
    for index in range(len(symbols)):
        assembly += ["    .balign 16", f"    movl ${index}, %edi", "    jmp fallow_show"]
    assembly += ["    .data", "    .balign 64", "    .hidden fallow_slots", "    .globl fallow_slots", "fallow_slots:"]
    assembly += [f"    .quad fallow_stub_{index}" for index in range(len(symbols))]
    assembly += ["    .section .data.rel.ro,\"aw\"", "    .balign 64", "    .hidden fallow_stubs", "    .globl fallow_stubs", "fallow_stubs:"]
    assembly += [f"    .quad fallow_stub_{index}" for index in range(len(symbols))]
    assembly += ['    .section .note.GNU-stack,"",@progbits', ""]

    header = [
        f"#define FALLOW_SYMBOLS {len(symbols)}u",
        f"#define FALLOW_FIRST_HOOK {first_hook}u",
        f"#define FALLOW_FIRST_FORTRAN {first_fortran}u",
        'extern const char* const fallow_names[FALLOW_SYMBOLS] __attribute__((visibility("hidden")));',
        'extern const char fallow_often[FALLOW_FIRST_HOOK] __attribute__((visibility("hidden"))); /* C functions that are called often */',
        "",
    ]
    names = [
        '#include "symbols.h"',
        "const char* const fallow_names[FALLOW_SYMBOLS] = {",
        *[f'    "{symbol}",' for symbol in symbols],
        "};",
        "const char fallow_often[FALLOW_FIRST_HOOK] = {",
        *[f"    {int(not takes_long(name, calls[name]))}, {int(not takes_long(name, calls[name]))}, // {name}" for name in calls],
        "};",
        "",
    ]
    return {"symbols.h": "\n".join(header), "symbols.c": "\n".join(names), "symbols.inc": "\n".join(assembly)}
