"""Makers of what tests read: compressed content, Parquet and Arrow files, and summaries that have counted something."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

import dptop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SECRET = "Wilhelmina"
"""A label that no message may quote."""


def summary_of(items: Iterable[Any], capacity: int = 100, **parameters: Any) -> dptop.SpaceSaving:
    summary = dptop.SpaceSaving(capacity, **parameters)
    summary.extend(items)
    return summary


def zstd(content: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": zstd,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def parquet(table: pyarrow.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink, **options)
    return sink.getvalue()


def arrow_file(table: pyarrow.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    with pyarrow.ipc.new_file(sink, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


def arrow_stream(table: pyarrow.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


CONTAINERS = {"parquet": parquet, "arrow-file": arrow_file, "arrow-stream": arrow_stream}
