"""The words around the options in what `--help` prints, laid out for the terminal's width."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

_ITEM = re.compile(r"( *)(\S.*?)(?:( {2,})(\S.*))?")
_COMMAND = re.compile("`[^`]{1,30}`")
_HELD = "\0"  # a space at which no line ends
_DEEP = 8  # columns of indentation: what an example does, not an example
_LEAST = 24  # columns for that beside the example; else it stands below


@dataclass
class _Block:
    """A paragraph, or an example with what it does."""

    text: str
    does: str = ""
    column: int = 0
    """Where `does` begins; in the example's line, or below it."""
    below: bool = False

    def lines(self, width: int) -> list[str]:
        """As it fits; an example is not broken, so that it can be copied."""
        if not self.text.startswith(" "):
            return _wrapped(self.text, width, "")
        if not self.does:
            return [self.text]
        column = self.column if self.column + _LEAST <= width else _DEEP
        does = _wrapped(self.does, width, " " * column)
        if self.below or column <= len(self.text):
            return [self.text, *does]
        return [self.text.ljust(column) + does[0][column:], *does[1:]]


def _wrapped(words: str, width: int, indent: str) -> list[str]:
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", _HELD), words)
    lines = textwrap.wrap(
        whole, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [line.replace(_HELD, " ") for line in lines]


def _blocks(text: str) -> Iterator[_Block | None]:
    """What the text consists of; None is an empty line."""
    last: _Block | None = None
    for line in text.splitlines():
        found = _ITEM.fullmatch(line)
        indent = len(found[1]) if found else 0
        if found and last is not None and indent == 0 and not last.text.startswith(" "):
            last.text += f" {line}"
            continue
        if found and last is not None and indent >= _DEEP and (not last.does or last.column == indent):
            last.does, last.column, last.below = f"{last.does} {found[2]}".strip(), indent, last.below or not last.does
            continue
        if last is not None:
            yield last
        last = None
        if not found:
            yield None
        elif indent == 0:
            last = _Block(line)
        else:
            last = _Block(found[1] + found[2], found[4] or "", found.start(4) if found[4] else 0)
    if last is not None:
        yield last


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of examples, and wraps paragraphs and what examples do."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        for block in _blocks(text):
            lines += [""] if block is None else block.lines(width - len(indent))
        return "\n".join(indent + line if line else "" for line in lines)

    if sys.version_info < (3, 13):  # laid out as by later versions, for the page made from it

        def _format_action_invocation(self, action: argparse.Action) -> str:
            if not action.option_strings or action.nargs == 0:
                return super()._format_action_invocation(action)
            default = self._get_default_metavar_for_optional(action)
            return f"{', '.join(action.option_strings)} {self._format_args(action, default)}"

        def add_argument(self, action: argparse.Action) -> None:
            """As in later versions, with room for the names of commands."""
            super().add_argument(action)
            if action.help is not argparse.SUPPRESS:  # commands are indented by more
                lengths = [
                    len(self._format_action_invocation(command)) + self._current_indent
                    for command in self._iter_indented_subactions(action)
                ]
                self._action_max_length = max([self._action_max_length, *lengths])
