"""Inputs -> batches of labels: lists, iterables, NumPy, everything that speaks Arrow, and files.

An input is looked at once. What is held in memory as a whole becomes one batch, or batches that cannot fail once the
type of the first is known; what is read piece by piece (an iterable, a stream) becomes batches of bounded size.
"""

from __future__ import annotations

import array
import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from dptop._native import ArrowStream, BatchWeights, LabelBatch
from dptop.errors import InvalidParameter, MissingExtra, UnsupportedLabel
from dptop.files import FileLabels

__all__ = ["label_batches", "weight_batches"]

ITEMS_PER_BATCH: Final = 65_536
"""Items taken from an iterable at a time."""


def label_batches(items: Any) -> Iterator[LabelBatch]:
    """Yield the labels of an input in order, in batches.

    Args:
        items: a list, tuple or any iterable of int, str or bytes (None is a null and skipped); a one-dimensional NumPy
            array of integers, text or bytes; an object with `__arrow_c_array__` or `__arrow_c_stream__`: a pyarrow
            array or chunked array, a pandas or Polars Series, a table with one column, a DuckDB relation; a file, by
            `dptop.read_labels`.

    Raises:
        UnsupportedLabel: booleans, floats, dates, nested values.
        InvalidParameter: not a sequence of items at all.
        SourceError: the producer of an Arrow stream failed.

    """
    if isinstance(items, (list, tuple)):
        yield LabelBatch.from_sequence(items)
    elif isinstance(items, (str, bytes, bytearray)):
        raise InvalidParameter(
            f"items must be a sequence of labels; got a single {type(items).__name__}. Use update() for one item."
        )
    elif isinstance(items, LabelBatch):
        yield items
    elif isinstance(items, FileLabels):
        yield from items
    elif (numpy := sys.modules.get("numpy")) is not None and isinstance(items, numpy.ndarray):
        yield from _numpy_batches(numpy, items)
    elif hasattr(items, "__arrow_c_array__"):
        yield LabelBatch.from_arrow(items)
    elif hasattr(items, "__arrow_c_stream__"):
        yield from _arrow_stream(items)
    elif isinstance(items, (memoryview, array.array)):
        view = memoryview(items)
        if view.ndim == 1 and not view.c_contiguous:
            yield LabelBatch.from_sequence(view.tolist())
        else:
            yield LabelBatch.from_buffer(items)
    elif isinstance(items, Iterable):
        rest = iter(items)
        while taken := list(itertools.islice(rest, ITEMS_PER_BATCH)):
            yield LabelBatch.from_sequence(taken)
    else:
        raise InvalidParameter(
            f"items must be a sequence of labels; got {type(items).__name__}. Pass a list, an array or a column."
        )


def weight_batches(weights: Any) -> BatchWeights:
    """Return weights from any input that labels may come from.

    Raises:
        InvalidParameter: a weight that is not a whole number from 0 to 2^63 - 1.

    """
    try:
        return BatchWeights(list(label_batches(weights)))
    except UnsupportedLabel:
        raise InvalidParameter(
            "weights must be whole numbers from 0 to 2**63 - 1; got another type. Cast or round them."
        ) from None


def _arrow_stream(items: Any) -> ArrowStream:
    try:
        return ArrowStream(items)
    except ImportError:
        raise MissingExtra(
            f"{type(items).__module__.partition('.')[0]} hands over Arrow data only where pyarrow is installed."
            " Run: pip install 'dptop[parquet]', or pass a list."
        ) from None


def _numpy_batches(numpy: Any, items: Any) -> Iterator[LabelBatch]:
    if isinstance(items, numpy.ma.MaskedArray):
        raise UnsupportedLabel("labels must not be masked; got a masked array. Pass array.compressed().")
    if items.ndim != 1:
        raise InvalidParameter(
            f"an array of labels must have one dimension; got {items.ndim}. Select a column, or ravel() it."
        )
    kind = items.dtype.kind
    if kind in "iu" or (kind in "US" and items.dtype.itemsize):
        native = items.astype(items.dtype.newbyteorder("="), copy=False)
        yield LabelBatch.from_buffer(numpy.ascontiguousarray(native))
    elif kind in "USOT":  # objects, variable-width text and cells of no width have no plain buffer
        yield LabelBatch.from_sequence(items.tolist())
    else:
        raise UnsupportedLabel(
            f"labels are integers, strings or bytes; got the NumPy type {items.dtype.name}."
            " Cast them, for example with .astype(str)."
        )
