"""The user's own trace: the source addresses of a packet capture, or a column of a table; which of them, by content."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

import dptop
from experiments.streams.capture import capture, is_capture
from experiments.streams.stream import MissingStream, Stream

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["trace"]


def trace(path: Path, column: str | None) -> Stream:
    """Return the user's own trace, in the order of the file.

    Args:
        path: a packet capture, plain or in gzip, or whatever `dptop.read_labels` reads: CSV, TSV, JSON lines, lines,
            Parquet or Arrow, also compressed.
        column: of a table, by its exact name; may be left out where there is only one.

    Raises:
        MissingStream: the file is not there, is corrupt or empty, has no such column, or no labels for a stream.
    """
    try:
        if is_capture(path):
            if column is not None:
                raise MissingStream(f"{path.name}: a packet capture has no columns. Leave --column out.")
            return capture(path)
    except OSError as error:
        raise MissingStream(f"{path}: the trace cannot be read: {error.strerror or error}") from None
    return _column(path, column)


def _column(path: Path, column: str | None) -> Stream:
    """Return the labels of a table, as int64 or as strings."""
    try:
        batches = [pa.array(batch.to_list()).drop_null() for batch in dptop.read_labels(path, column=column)]
        labels = pa.concat_arrays([batch for batch in batches if len(batch)] or [pa.array([], pa.string())])
        items = labels.cast(pa.int64() if pa.types.is_integer(labels.type) else pa.string())
    except dptop.DptopError as error:
        raise MissingStream(f"the trace cannot be read: {error}") from None
    except (pa.ArrowException, OverflowError):
        raise MissingStream(f"{path.name}: labels of a trace must be UTF-8, or integers below 2^63") from None
    if not len(items):
        raise MissingStream(f"{path.name}: the trace has no labels")
    name = path.name if column is None else f"{path.name}, column {column}"
    return Stream("trace", items, f"a trace of the user's own: {name}")
