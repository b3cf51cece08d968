"""Apache Parquet: one row per call, for pandas, Polars, DuckDB and the like. Needs pyarrow."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fallow.errors import UserError
from fallow.traces import model
from fallow.traces.model import Columns, Event, Source
from fallow.traces.text import Losses

_ROWS = 1 << 17  # rows of a group, of as many ranks as they are: thousands of small groups would be slow to read

Arrow = Any
"""Of the library, which has no types."""


class _Layout:
    """The columns of the file."""

    def __init__(self, pa: Arrow, source: Source) -> None:
        self.pa = pa
        op = pa.field("op", pa.dictionary(pa.int16(), pa.string()))
        self.numbers = [
            pa.field(name, pa.uint64() if name in ("size_bytes", "recv_bytes") else pa.int64())
            for name in Event._fields
            if name not in ("op", *model.LISTS)
        ]
        self.lists = [pa.field(name, pa.list_(pa.uint64())) for name in model.LISTS]
        fields = [pa.field("rank", pa.int32()), op, *self.numbers, *self.lists]
        self.schema = pa.schema(fields, metadata={"fallow": json.dumps(source.info.as_dict())})
        self.plain = self.schema.set(1, pa.field("op", pa.int64()))
        self._names = pa.array([o.name for o in model.ops()])

    def table(self, rank: int, columns: Columns) -> Arrow:
        """Calls of one rank; operations by number."""
        pa, calls = self.pa, columns.calls

        def numbers(kind: Arrow, data: bytes, count: int = calls) -> Arrow:
            return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(data)])

        arrays = [pa.repeat(pa.scalar(rank, pa.int32()), calls), numbers(pa.int64(), columns.numbers[0])]
        arrays += [numbers(f.type, data) for f, data in zip(self.numbers, columns.numbers[1:], strict=True)]
        for begins, values in columns.lists:
            items = numbers(pa.uint64(), values, len(values) // 8)
            arrays.append(pa.ListArray.from_arrays(numbers(pa.int32(), begins, calls + 1), items))
        return pa.Table.from_arrays(arrays, schema=self.plain)

    def named(self, table: Arrow) -> Arrow:
        """With the names of operations: a group has those that it needs alone."""
        number = table["op"].combine_chunks().dictionary_encode()
        op = self.pa.DictionaryArray.from_arrays(number.indices.cast("int16"), self._names.take(number.dictionary))
        return table.set_column(1, self.schema.field(1), op).cast(self.schema)


def write(source: Source, path: Path, losses: Losses) -> None:  # one signature for all formats
    """Writes one Parquet file, rank after rank. Communicators and sites stand in the file's metadata."""
    try:
        pa = importlib.import_module("pyarrow")
        pq = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UserError("Parquet needs pyarrow; install it with: pip install pyarrow") from None
    layout = _Layout(pa, source)
    with pq.ParquetWriter(path, layout.schema, compression="zstd") as file:
        for table in _groups(layout, source):
            file.write_table(layout.named(table))


def _groups(layout: _Layout, source: Source) -> Iterator[Arrow]:
    """All calls, so many at a time as a group of rows has."""
    waiting, rows = [layout.plain.empty_table()], 0
    for rank in range(source.info.size):
        for columns in model.columns_of(source, rank, _ROWS):
            waiting.append(layout.table(rank, columns))
            rows += columns.calls
            if rows >= _ROWS:
                table = layout.pa.concat_tables(waiting)
                while rows >= _ROWS:
                    yield table.slice(0, _ROWS)
                    table, rows = table.slice(_ROWS), rows - _ROWS
                waiting = [table]
    if rows:
        yield layout.pa.concat_tables(waiting)
