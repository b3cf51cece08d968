"""`fallow synth`: programs that were never recorded, as traces."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fallow import native
from fallow.errors import UserError
from fallow.help_text import HelpFormatter
from fallow.quantities import named_path, share, size_bytes, time_us, whole
from fallow.sim import run
from fallow.text import plural
from fallow.traces import convert

_EPILOG = """\
examples:
  fallow synth stencil3d --ranks 64 --iterations 100 -o stencil.ftr
  fallow synth alltoall --ranks 256 --bytes 4KB --jitter 5% -o alltoall.ftr
  fallow sim --synth stencil3d --ranks 524288 --iterations 5 --topology fat-tree
                                      very large programs need no file
"""


def _programs() -> list[tuple[str, str]]:
    found = native.part("sim_programs")
    return list(found()) if callable(found) else []


def add_synth_options(p: Any, *, flag: bool) -> None:  # noqa: ANN401  # a parser or one of its groups
    """The options of a made-up program; with `flag` its name is an option too."""
    if flag:
        p.add_argument(
            "--synth",
            metavar="PROGRAM",
            choices=[n for n, _ in _programs()] or None,
            help="one of " + ", ".join(n for n, _ in _programs()),
        )
    p.add_argument("--ranks", type=whole(1, 1 << 20), metavar="N", help="ranks (default: 64)")
    p.add_argument("--iterations", type=whole(1, 1 << 30), metavar="N", help="iterations (default: 100)")
    p.add_argument(
        "--bytes",
        type=size_bytes,
        metavar="SIZE",
        help="of a message to a neighbour; of fft and alltoall to each rank (default: 8KB)",
    )
    p.add_argument(
        "--reduce-bytes", type=size_bytes, metavar="SIZE", help="of an all-reduce of stencil3d and cg (default: 8)"
    )
    p.add_argument("--compute", type=time_us, metavar="TIME", help="computation per iteration (default: 1ms)")
    p.add_argument(
        "--jitter", type=share, metavar="SHARE", help="computation varies by so much up and down (default: 0)"
    )
    p.add_argument(
        "--seed", type=whole(0, 1 << 62), metavar="N", help="of the jitter, and of random's shifts (default: 1)"
    )


def synth_options(arguments: argparse.Namespace, program: str) -> dict[str, Any]:
    """As the native part takes them; UserError for what does nothing in `program` ("": none is meant)."""
    if arguments.reduce_bytes is not None and program and program not in run.REDUCING:
        raise UserError(f"--reduce-bytes would do nothing: it is for {' or '.join(run.REDUCING)}")
    if arguments.seed is not None and program and program not in run.DRAWING and not arguments.jitter:
        raise UserError(f"--seed would do nothing: without --jitter only {' and '.join(run.DRAWING)} draws anything")
    options = {
        "ranks": arguments.ranks, "iterations": arguments.iterations, "size_bytes": arguments.bytes,
        "reduce_bytes": arguments.reduce_bytes, "jitter": arguments.jitter, "seed": arguments.seed,
        "compute_ns": None if arguments.compute is None else round(arguments.compute * 1000),
    }  # fmt: skip
    return {name: value for name, value in options.items() if value is not None}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    listing = "\n".join(f"  {name:<12} {text}" for name, text in _programs())
    p = commands.add_parser(
        "synth", help="make up a program and write it as a trace",
        description="Makes up a program and writes it as a trace.",
        epilog=f"programs:\n{listing}\n\n{_EPILOG}", formatter_class=HelpFormatter,
    )  # fmt: skip
    p.add_argument("program", choices=[n for n, _ in _programs()] or None, metavar="PROGRAM", help="see below")
    add_synth_options(p, flag=False)
    p.add_argument("-o", "--output", type=named_path, metavar="FILE", help="trace to write (default: PROGRAM.ftr)")
    p.set_defaults(action=_run)


def _run(arguments: argparse.Namespace) -> int:
    output: Path = arguments.output or Path(f"{arguments.program}.ftr")
    convert.expect_own(output)
    options = synth_options(arguments, arguments.program)
    program = run.write(run.ProgramSpec(synth=arguments.program, options=options), output)
    per_call = output.stat().st_size / max(program.events, 1)
    print(f"{output}: {plural(program.ranks, 'rank')}, {plural(program.events, 'call')}, {per_call:.2f} bytes a call")
    return 0
