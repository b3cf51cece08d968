"""Options from flags, environment and files."""

from __future__ import annotations

import json
import tomllib

import pytest

from fallow import cli, options
from fallow.errors import UserError


def value(name, flags=None, environment=None, file=None):
    settings, problems = options.resolve(flags or {}, environment or {}, file or {})
    (setting,) = [s for s in settings if s.option.name == name]
    return setting.value, setting.source, problems


def test_a_flag_wins_over_a_variable_over_a_file_over_the_default():
    flag, env, file = {"mode": "spin"}, {"FALLOW_MODE": "yield"}, {"mode": "sleep"}
    assert value("mode", flag, env, file)[:2] == ("spin", "flag")
    assert value("mode", None, env, file)[:2] == ("yield", "environment")
    assert value("mode", None, None, file)[:2] == ("sleep", "file")
    assert value("mode")[:2] == ("auto", "default")


def test_a_broken_variable_is_told_and_ignored():
    got, source, problems = value("mode", None, {"FALLOW_MODE": "what"}, {"mode": "sleep"})
    assert (got, source) == ("sleep", "file")
    assert len(problems) == 1
    assert "FALLOW_MODE" in problems[0]


def test_a_misspelt_variable_is_told():
    named = {"FALLOW_SLOWDON": "2%", "FALLOW_CHECKOUT": "/x", "FALLOW_LIBRARY_DIR": "/y", "FALLOW_RUN_ID": "z", "FALLOW_MODE": "spin"}
    _, problems = options.resolve({}, named, {})
    assert problems == ["FALLOW_SLOWDON: no option has this variable; FALLOW_SLOWDOWN is one; ignored"]


def test_a_variable_that_is_set_to_nothing_is_not_set():
    assert value("mode", None, {"FALLOW_MODE": ""}, {"mode": "sleep"}) == ("sleep", "file", [])


def test_a_broken_flag_is_the_users_error():
    with pytest.raises(UserError, match="--slowdown"):
        options.resolve({"slowdown": "quick"}, {}, {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('mode = "auto"\nspeed = 3\n', r"f\.toml:2: unknown option 'speed'"),
        ('# x\n\nmode = "what"\n', r"f\.toml:3: 'what'"),
        ("mode = [1]\n", r"f\.toml:1: mode = \[1\]: not a word in quotation marks"),
        ("\ntrace = 5\n", r"f\.toml:2: trace = 5: not a name in quotation marks"),
        ('wake = "yes"\n', r'f\.toml:1: wake = "yes": not true or false'),
        ("wake = 1\n", r"f\.toml:1: wake = 1: not true or false"),
        ('ring-events = "1024"\n', r'f\.toml:1: ring_events = "1024": not a whole number'),
        ("ring_events = 1024.5\n", r"f\.toml:1: ring_events = 1024\.5: not a whole number"),
        ("clock = 1979-05-27\n", r'f\.toml:1: clock = "1979-05-27": not a word'),
        ("trace = {a = 1}\n", r'f\.toml:1: trace = \{"a": 1\}: not a name'),
        ('# x\n\n[ speed ]\nmode = "auto"\n', r"f\.toml:3: unknown option 'speed'"),
        ("\nspeed.limit = 3\n", r"f\.toml:2: unknown option 'speed'"),
        ('\n"m\\u006fde" = "what"\n', r"f\.toml: 'what'"),
        ('test-gap = "1us"\ntest_gap = "2us"\n', r"f\.toml:2: 'test_gap' is said twice"),
        ("slowdown = true\n", r"f\.toml:1: slowdown = true: not a share, 0\.01 or \"1%\""),
        ("trace = false\n", r"f\.toml:1: trace = false: not a name"),
        ('trace = "a\\u0000b"\n', r"f\.toml:1: a text with a null character"),
        ("mode = \n", r"f\.toml: .*line 1"),
        ('run_id = "x"\n', r"f\.toml:1: unknown option 'run_id'"),
    ],
)
def test_a_broken_file_is_exit_2_with_its_line(tmp_path, fallow, text, says):
    (tmp_path / "f.toml").write_text(text)
    with pytest.raises(UserError, match=says):
        options.read_file(tmp_path / "f.toml")
    out = fallow("run", "--config", "f.toml", "--", "true")
    assert out.returncode == 2


def test_a_missing_file_is_exit_2(fallow):
    out = fallow("run", "--config", "none.toml", "--", "true")
    assert out.returncode == 2
    assert "none.toml" in out.stderr


def test_the_printed_file_can_be_read_back(tmp_path, fallow):
    text = fallow("config", "--toml").stdout
    active = "\n".join(x.removeprefix("# ") for x in text.splitlines() if " = " in x and x.startswith("# "))
    tomllib.loads(active)
    (tmp_path / "f.toml").write_text(active)
    assert options.read_file(tmp_path / "f.toml").keys() == {o.name for o in options.user_table()}


def test_the_table_in_all_forms(fallow):
    rows = json.loads(fallow("config", "--json").stdout)
    names = {row["name"] for row in rows}
    assert {"mode", "slowdown"} <= names
    assert not names & {"dir", "run_id"}
    plain = fallow("config", env={"FALLOW_MODE": "spin"}).stdout
    assert "FALLOW_MODE, default auto, now spin from the environment" in plain
    usage = fallow("run", "--help").stdout
    assert all(row["name"].replace("_", "-") in usage for row in rows)


def test_flags_in_a_file_are_true_or_false(tmp_path):
    (flag, *_) = (option for option in options.user_table() if option.type == "flag")
    (count, *_) = (option for option in options.user_table() if option.type == "count")
    file = tmp_path / "x.toml"
    for said, value in (("true", "1"), ("false", "0")):
        file.write_text(f"\n{flag.name.replace('_', '-')} = {said}\n")
        assert options.read_file(file) == {flag.name: value}
    file.write_text(f"# one\n\n{count.name} = true\n")
    with pytest.raises(UserError, match=f"^{file}:3: {count.name} = true: not a whole number$"):
        options.read_file(file)


def test_every_type_of_option_has_values_of_its_own_in_a_file(tmp_path):
    (tmp_path / "x.toml").write_text('trace = "5"\nslowdown = 0.02\nring_events = 1024\nwake = false\nmode = "sleep"\ntest_gap = "1us"\n')
    wanted = {"trace": "5", "slowdown": "0.02", "ring_events": "1024", "wake": "0", "mode": "sleep", "test_gap": "1us"}
    assert options.read_file(tmp_path / "x.toml") == wanted
    assert {o.type for o in options.user_table()} == {o.type for o in options.user_table() if o.name in wanted}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--slowdwn", "1%", "--", "true"], "run does not know --slowdwn; did you mean --slowdown?"),
        (["trace", "convert", "a.ftr", "-o", "b", "--tu=otf2"], "trace does not know --tu=otf2; did you mean --to?"),
        (["predict", "a.ftr", "--zzz"], "predict does not know --zzz; 'fallow predict --help' lists what it takes"),
    ],
)
def test_an_unknown_flag_is_taken_for_the_nearest(words, said, capsys):
    assert cli.main(words) == 2
    assert tuple(capsys.readouterr()) == ("", f"fallow: {said}\n")
