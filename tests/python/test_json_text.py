"""JSON for people and programs: any other writer's data, a row on a line."""

from __future__ import annotations

import json
import random

import pytest

from fallow import json_text


def _drawn(draw: random.Random, depth: int) -> object:
    if depth == 0 or draw.random() < 0.3:
        return draw.choice([None, True, -3, 10**20, 0.1, 1e-300, "", 'a "quoted"\n line', "Größe", [], {}])
    items = [_drawn(draw, depth - 1) for _ in range(draw.randrange(5))]
    return draw.choice([items, tuple(items), {f"{draw.random():.3f}": item for item in items}])


@pytest.mark.parametrize("seed", range(200))
def test_says_what_any_other_json_says(seed: int) -> None:
    data = _drawn(random.Random(seed), 6)
    assert json.loads(json_text.dumps(data)) == json.loads(json.dumps(data))


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        ({"rows": [{"rank": 0, "s": 1.5}, {"rank": 1, "s": 2.0}]}, ["{", ' "rows": [', '  {"rank": 0, "s": 1.5},', '  {"rank": 1, "s": 2.0}', " ]", "}"]),
        ({"a": {"b": 1}}, ["{", ' "a": {', '  "b": 1', " }", "}"]),
        ([[1, 2], [{"deep": [3]}]], ["[", " [1, 2],", " [", "  {", '   "deep": [3]', "  }", " ]", "]"]),
        ({"times": [1, 2.5, None], "notes": ["a", "b"]}, ["{", ' "times": [1, 2.5, null],', ' "notes": [', '  "a",', '  "b"', " ]", "}"]),
        ({"none": [], "nothing": {}}, ["{", ' "none": [],', ' "nothing": {}', "}"]),
    ],
)
def test_a_row_of_numbers_and_names_stands_on_a_line(data: object, lines: list[str]) -> None:
    assert json_text.dumps(data).splitlines() == lines
