"""Apache Parquet: one row per call, for pandas, Polars, DuckDB and the like. Needs pyarrow."""

from __future__ import annotations

import importlib
from itertools import islice
from pathlib import Path
from typing import Any

from fallow.errors import UserError
from fallow.traces import model
from fallow.traces.model import Event, Source
from fallow.traces.text import Losses

_ROWS = 1 << 17  # rows of a group, of as many ranks as they are: thousands of small groups would be slow to read
_LISTS = ("counts", "recv_counts", "requests", "completed")


def write(source: Source, path: Path, losses: Losses) -> None:  # one signature for all formats
    """Writes one Parquet file, rank after rank. Communicators and sites stand in the file's metadata."""
    try:
        pa = importlib.import_module("pyarrow")
        pq = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UserError("Parquet needs pyarrow; install it with: pip install pyarrow") from None
    types = {"op": pa.dictionary(pa.int16(), pa.string()), "size_bytes": pa.uint64(), "recv_bytes": pa.uint64()}
    fields = [pa.field("rank", pa.int32())]
    for name in Event._fields:
        kind = pa.list_(pa.uint64()) if name in _LISTS else types.get(name, pa.int64())
        fields.append(pa.field(name, kind))
    schema = pa.schema(fields, metadata={"fallow": _metadata(source)})
    names = [op.name for op in model.ops()]
    with pq.ParquetWriter(path, schema, compression="zstd") as file:
        calls = ((rank, event) for rank in range(source.info.size) for event in source.events(rank))
        while rows := list(islice(calls, _ROWS)):
            columns = [pa.array([rank for rank, _ in rows], pa.int32())]
            for index, name in enumerate(Event._fields):
                values: list[Any] = [event[index] for _, event in rows]
                if name == "op":
                    array = pa.array([names[v] for v in values]).dictionary_encode().cast(types["op"])
                else:
                    array = pa.array([list(v) for v in values] if name in _LISTS else values, schema.field(name).type)
                columns.append(array)
            file.write_table(pa.table(columns, schema=schema))


def _metadata(source: Source) -> str:
    json = importlib.import_module("json")
    return str(json.dumps(source.info.as_dict()))
