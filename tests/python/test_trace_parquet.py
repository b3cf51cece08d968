"""Parquet: a row for each call, with all that the trace says of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import trace_samples as samples
from fallow.traces import convert, model, parquet
from fallow.traces.model import Event, FileSource, Info, MemorySource, write_source


def test_parquet_has_a_row_for_each_call(tmp_path: Path) -> None:
    source = samples.rich()
    convert.convert(source, tmp_path / "a.parquet", None)
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.num_rows == sum(len(x) for x in source.lists)
    assert table["op"][0].as_py() == "MPI_Init"
    assert table["requests"].to_pylist()[1] == [0]


def test_parquet_has_all_that_a_trace_says_of_its_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file, whose columns come from the native reader, and of calls in memory; in groups that end anywhere."""
    memory = samples.rich()
    write_source(memory, tmp_path / "a.ftr")
    for rows in (2, 1 << 17):
        monkeypatch.setattr(parquet, "_ROWS", rows)
        for source in (memory, FileSource([tmp_path / "a.ftr"])):
            convert.convert(source, tmp_path / "a.parquet", None)
            found = pq.read_table(tmp_path / "a.parquet").to_pylist()
            calls = [(rank, e) for rank in range(memory.info.size) for e in source.events(rank)]
            names = {"op": lambda number: model.ops()[number].name}
            told = [{"rank": r, **{k: names.get(k, lambda v: v)(v) for k, v in e._asdict().items()}} for r, e in calls]
            assert found == [{k: list(v) if k in model.LISTS else v for k, v in row.items()} for row in told]


def test_parquet_of_many_ranks_has_few_groups_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each rank would be thousands, which are larger by far and slow to read."""
    monkeypatch.setattr(parquet, "_ROWS", 3)
    source = MemorySource(Info(size=5), [[Event(op=1, enter_ns=10 * r + i, exit_ns=10 * r + i) for i in range(2)] for r in range(5)])
    convert.convert(source, tmp_path / "a.parquet", None)
    file = pq.ParquetFile(tmp_path / "a.parquet")
    assert file.num_row_groups == 4
    table = file.read()
    assert table["rank"].to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert table["enter_ns"].to_pylist() == [10 * r + i for r in range(5) for i in range(2)]
