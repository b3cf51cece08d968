"""`fallow config`: the option table."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys

from fallow import native, options
from fallow.help_text import HelpFormatter
from fallow.options import Option
from fallow.text import Style, note

_EPILOG = """\
Each option can be given as a flag of `fallow run`, as a variable, or in a file that `fallow run --config FILE`
reads; a flag wins over a variable, a variable over a file, a file over the default.

examples:
  fallow config                       the table with the values in force here
  fallow config --toml > fallow.toml  a file to start from
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser(
        "config",
        help="print the options, their variables and defaults",
        description="Prints the options that `fallow run` takes.",
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
    )
    form = p.add_mutually_exclusive_group()
    form.add_argument("--toml", action="store_true", help="as a configuration file")
    form.add_argument("--json", action="store_true", help="as JSON")
    p.set_defaults(action=_run)


def accepts(option: Option) -> str:
    """What values an option takes, in a few words."""
    if option.type == "flag":
        return "0|1"
    if option.type == "fraction":
        return "1% or 0.01"
    return option.values.replace("..", " to ") or option.type


def _toml(rows: tuple[Option, ...]) -> str:
    out = ["# Options of `fallow run --config THIS_FILE`; the values shown are the defaults."]
    for option in rows:
        plain = option.type in ("flag", "count")
        value = {"0": "false", "1": "true"}[option.default] if option.type == "flag" else option.default
        out.append(f"\n# {option.help}\n# {accepts(option)}\n# {option.name} = {value if plain else json.dumps(value)}")
    return "\n".join(out)


def _print_table(rows: tuple[Option, ...], style: Style) -> None:
    settings, problems = options.resolve({}, os.environ, {})
    in_force = {s.option.name: s for s in settings}
    for option in rows:
        setting = in_force[option.name]
        print(f"{style.paint(option.flag, 'bold')}  {accepts(option)}")
        now = "" if setting.source == "default" else f", now {setting.value} from the {setting.source}"
        print(style.paint(f"    {option.variable}, default {option.default or 'empty'}{now}", "dim"))
        print(*note(option.help, style, "    "), sep="\n")
    for line in problems:
        print(style.paint("\n".join(note(line, style, "! ")), "yellow"))


def _run(arguments: argparse.Namespace) -> int:
    native.require()
    rows = options.user_table()
    if arguments.json:
        print(json.dumps([dataclasses.asdict(o) | {"variable": o.variable} for o in rows], indent=1))
    elif arguments.toml:
        print(_toml(rows))
    else:
        _print_table(rows, Style.of(sys.stdout))
    return 0
