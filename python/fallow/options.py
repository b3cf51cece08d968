"""The option table and where values come from: flag, then environment, then file, then default."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fallow import files, native
from fallow.errors import UserError


@dataclass(frozen=True)
class Option:
    """One row of the table that the runtime and the command line share."""

    name: str
    type: str
    default: str
    values: str
    help: str
    internal: bool

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return f"FALLOW_{self.name.upper()}"

    @property
    def flag(self) -> str:
        """Its command-line flag."""
        return "--" + self.name.replace("_", "-")

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of a choice; empty for other types."""
        return tuple(self.values.split("|")) if self.type == "choice" else ()


@dataclass(frozen=True)
class Setting:
    """A value and where it came from: "flag", "environment", "file" or "default"."""

    option: Option
    value: str
    source: str


def table() -> tuple[Option, ...]:
    """All rows; empty where the native part is missing."""
    module = native.load()
    if module is None or not hasattr(module, "options"):
        return ()
    return tuple(Option(**row) for row in module.options())


def user_table() -> tuple[Option, ...]:
    """The rows that users set."""
    return tuple(option for option in table() if not option.internal)


def problem(option: Option, text: str) -> str:
    """An empty string if the option can take this text, or what is wrong."""
    if "\0" in text:  # from a file: no variable can hold it
        return "a text with a null character"
    readable = text.encode("utf-8", "replace").decode()  # variables may hold any bytes
    message: str = native.require().check_option(option.name, readable)
    wrong = message.removeprefix(f"{option.name} = ").split("; the default", maxsplit=1)[0]
    return f"{wrong} from 0% to 100%" if wrong and option.type == "fraction" else wrong


def _place(path: Path, source: str, key: str) -> str:
    """The file, with the line of a key, or of the table that is called so, where that is found."""
    pattern = re.compile(rf"""\s*\[{{0,2}}\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
    for number, line in enumerate(source.splitlines(), 1):
        if pattern.match(line):
            return f"{path}:{number}"
    return str(path)


_IN_FILES: dict[str, tuple[tuple[type, ...], str]] = {
    "flag": ((bool,), "true or false"),
    "count": ((int,), "a whole number"),
    "fraction": ((int, float, str), 'a share, 0.01 or "1%"'),
    "time": ((int, str), 'a time in quotation marks, such as "20us"'),
    "choice": ((str,), "a word in quotation marks"),
    "path": ((str,), "a name in quotation marks"),
}
"""What a file has for each type of option. A name or a word that is none would be taken for one."""
_LONGEST_SHOWN = 40


def _shown(value: object) -> str:
    """A value as it may stand in a file."""
    text = str(value).lower() if isinstance(value, bool) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def _from_file(option: Option, value: object) -> tuple[str, str]:
    """The value as a variable would hold it, and what is wrong with it."""
    types, wanted = _IN_FILES[option.type]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):  # true is a 1 to Python
        return "", f"{option.name} = {_shown(value)}: not {wanted}"
    text = str(int(value)) if isinstance(value, bool) else str(value)
    return text, problem(option, text)


def read_file(path: Path) -> dict[str, str]:
    """Options from a TOML file; UserError names file and line of what cannot be used."""
    source = files.text(path)
    try:
        data = tomllib.loads(source)
    except RecursionError:
        raise UserError(f"{path}: too deeply nested") from None
    except ValueError as error:  # of numbers with too many digits too
        raise UserError(f"{path}: {error}") from None
    rows = {option.name: option for option in user_table()}
    out = {}
    for key, value in data.items():
        where = _place(path, source, key)
        option = rows.get(key.replace("-", "_"))
        if option is None:
            raise UserError(f"{where}: unknown option '{key}'; known are {', '.join(sorted(rows))}")
        text, wrong = _from_file(option, value)
        if wrong:
            raise UserError(f"{where}: {wrong}")
        if option.name in out:
            raise UserError(f"{where}: '{key}' is said twice, with - and with _")
        out[option.name] = text
    return out


_ALIKE = 0.85


def _misspelt(environment: Mapping[str, str]) -> Iterator[str]:
    """Variables that look like one of the options', and are none."""
    known = [option.variable for option in table()]
    meant = [option.variable for option in user_table()]
    for name in sorted(environment):
        if name.startswith("FALLOW_") and name not in known:
            for close in difflib.get_close_matches(name, meant, 1, _ALIKE):
                yield f"{name}: no option has this variable; {close} is one; ignored"


def resolve(
    flags: Mapping[str, str], environment: Mapping[str, str], file: Mapping[str, str]
) -> tuple[list[Setting], list[str]]:
    """Every user option with its value and source, and the environment's problems (their defaults are used).

    A flag that cannot be used raises UserError: the user typed it now and can mend it.
    """
    settings: list[Setting] = []
    problems = list(_misspelt(environment))
    for option in user_table():
        if option.name in flags:
            wrong = problem(option, flags[option.name])
            if wrong:
                raise UserError(f"{option.flag}: {wrong}")
            settings.append(Setting(option, flags[option.name], "flag"))
            continue
        value = environment.get(option.variable) or None  # set to nothing: as if it were not set
        wrong = problem(option, value) if value is not None else ""
        if wrong:
            problems.append(f"{option.variable}: {wrong}; ignored")
        if value is not None and not wrong:
            settings.append(Setting(option, value, "environment"))
        elif option.name in file:
            settings.append(Setting(option, file[option.name], "file"))
        else:
            settings.append(Setting(option, option.default, "default"))
    return settings, problems
