"""Locales: what a program that uses Fallow has set changes no figure, what the user has set no file's name."""

import os
import subprocess
import sys

from rank_writer import lively_rank, write_run

_COMMA = 'comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point ","\nthousands_sep "."\ngrouping 3;3\nEND LC_NUMERIC\n'
_PROGRAM = """
import locale, sys
if sys.argv[1] != "C":
    locale.setlocale(locale.LC_NUMERIC, sys.argv[1])
    assert locale.localeconv()["decimal_point"] == ","
from fallow import cli
sys.exit(cli.main(sys.argv[2:]))
"""
_STUDY = ("sim", "--synth", "cg", "--ranks", "4", "--iterations", "2", "--policy", "hardware", "--json")


def test_simulated_figures_have_points_in_any_locale(tmp_path):
    (tmp_path / "source").write_text(_COMMA)
    command = ["localedef", "--no-archive", "-c", "-i", str(tmp_path / "source"), str(tmp_path / "comma")]
    subprocess.run(command, capture_output=True, check=False)  # it warns of what is left out
    env = os.environ | {"LOCPATH": str(tmp_path)}
    shown = [
        subprocess.run([sys.executable, "-c", _PROGRAM, name, *_STUDY], env=env, capture_output=True, text=True, check=False)
        for name in ("C", "comma")
    ]
    assert [done.returncode for done in shown] == [0, 0], shown[1].stderr
    assert shown[0].stdout == shown[1].stdout and '"edge_links": 0.' in shown[1].stdout


def test_a_run_is_found_where_the_locale_has_not_the_letters_of_its_name(tmp_path, fallow):
    """As in one that is not UTF-8: what Python takes a name for there is not what it is called."""
    write_run(tmp_path / "läuft", [lively_rank(0, 1, 5)], command=["found"])
    narrow = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    out = fallow("report", "läuft".encode().decode("ascii", "surrogateescape"), env=narrow)
    assert (out.returncode, out.stderr) == (0, "") and "found" in out.stdout
