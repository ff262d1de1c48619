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

    An iterable yields an empty batch once its first item was taken. Items taken cannot be put back, so that an error
    after a batch, be it empty, means that a part of the stream may be lost.

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
    items = _only_column(items)
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
    elif (objects := _python_objects(items)) is not None:
        yield LabelBatch.from_sequence(objects)
    elif hasattr(type(items), "__arrow_c_array__"):
        yield LabelBatch.from_arrow(items)
    elif hasattr(type(items), "__arrow_c_stream__"):
        yield from _arrow_stream(items)
    elif isinstance(items, (memoryview, array.array)):
        view = memoryview(items)
        if view.ndim == 1 and not view.c_contiguous:
            yield LabelBatch.from_sequence(view.tolist())
        else:
            yield LabelBatch.from_buffer(items)
    elif isinstance(items, Iterable):
        yield from _pieces(items)
    else:
        raise InvalidParameter(
            f"items must be a sequence of labels; got {type(items).__name__}. Pass a list, an array or a column."
        )


def _pieces(items: Iterable[Any]) -> Iterator[LabelBatch]:
    rest = iter(items)
    for first in rest:
        yield LabelBatch.from_sequence(())
        yield from map(LabelBatch.from_sequence, _chunks(itertools.chain((first,), rest)))


def _chunks(items: Iterator[Any]) -> Iterator[list[Any]]:
    while taken := list(itertools.islice(items, ITEMS_PER_BATCH)):
        yield taken


def _python_objects(items: Any) -> list[Any] | None:
    """Return the objects of a pandas or Polars column of objects, missing values as None; None if it is another input.

    Arrow has no type for objects: pandas would guess one, which may turn text into bytes, and Polars would hand over
    their addresses.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(items, pandas.Series):
        values = items.dtype.categories if isinstance(items.dtype, pandas.CategoricalDtype) else items
        if values.dtype == object:
            return list(items.astype(object).where(items.notna(), None))
    if polars is not None and isinstance(items, polars.Series) and items.dtype == polars.Object:
        return list(items)
    return None


def _only_column(items: Any) -> Any:
    """Return the one column of a pandas or Polars frame, without the index that pandas would count as another."""
    for library in ("pandas", "polars"):
        module = sys.modules.get(library)
        if module is not None and isinstance(items, module.DataFrame):
            if items.shape[1] != 1:
                raise InvalidParameter(
                    f"a table of labels must have one column; got {items.shape[1]}."
                    " Select the column that holds the labels."
                )
            return items[items.columns[0]]
    return items


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
