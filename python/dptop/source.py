"""Inputs -> batches of labels: lists, iterables, NumPy, everything that speaks Arrow, and files."""

from __future__ import annotations

import array
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, Final

from dptop._native import ArrowStream, BatchWeights, LabelBatch, SignedBatchWeights
from dptop.errors import InvalidParameter, MissingExtra, UnsupportedLabel
from dptop.files import FileLabels

__all__ = ["open_labels", "read_both_weights", "read_signed_weights", "read_weights", "rereadable"]

ITEMS_PER_BATCH: Final = 65_536
"""Items taken from an iterable at a time."""

UNSIGNED: Final = "from 0 to 2**63 - 1"

REREADABLE_TYPES: Final[tuple[type[Any], ...]] = (
    LabelBatch,
    *(str, bytes, bytearray, memoryview, array.array, range, Set, Mapping),
)
REREADABLE_LIBRARIES: Final = ("pandas", "polars", "pyarrow")
"""Their columns and tables hold their data. A DuckDB relation may stand for a reader that gives it once."""


def rereadable(items: object) -> bool:
    """Return whether an input can be read again from its start, also after an error; False if that is not known.

    What was handed over to us, or taken from an iterator, may be gone.
    """
    kind = type(items)
    if isinstance(items, FileLabels):
        return items.rereadable
    if hasattr(kind, "__arrow_c_array__") or hasattr(kind, "__arrow_c_stream__"):
        return kind.__module__.partition(".")[0] in REREADABLE_LIBRARIES and hasattr(kind, "__len__")
    numpy = sys.modules.get("numpy")
    known = REREADABLE_TYPES if numpy is None else (*REREADABLE_TYPES, numpy.ndarray)
    return kind in (list, tuple) or isinstance(items, known) or not isinstance(items, Iterable)


def _pieces(items: Iterable[Any]) -> Iterator[LabelBatch]:
    """Yield the labels of an iterable of Python objects, taken piece by piece."""
    rest = iter(items)
    while taken := list(itertools.islice(rest, ITEMS_PER_BATCH)):
        yield LabelBatch.from_sequence(taken)


def open_labels(items: Any) -> Iterable[LabelBatch]:
    """Return the labels of an input in order, in batches of bounded size or, where it is one array, as one batch.

    Args:
        items: as in `dptop.SpaceSaving.extend`.

    Raises:
        UnsupportedLabel: booleans, floats, dates, nested values.
        InvalidParameter: not a sequence of items at all.

    An Arrow producer has handed over by then; nothing has been taken from an iterable. Reading the batches may raise
    these, and SourceError.
    """
    items = _only_column(items)
    if isinstance(items, (str, bytes, bytearray)):
        raise InvalidParameter(
            f"items must be a sequence of labels; got a single {type(items).__name__}. Use update() for one item."
        )
    if isinstance(items, (Set, Mapping)):
        # the order of a set depends on what else is in it, and that of counts on where each label came first: one item
        # more moves a label past others, and Theorem A fails
        raise InvalidParameter(
            f"items must come in the order of the stream; got {type(items).__name__}, which has lost it."
            " Pass the stream itself, before anything is added up."
        )
    if isinstance(items, FileLabels):
        return items
    whole = _whole(items)
    if whole is not None:
        return [whole]
    if hasattr(type(items), "__arrow_c_stream__"):
        return _arrow_stream(items)
    if isinstance(items, Iterable):
        return _pieces(items)
    raise InvalidParameter(
        f"items must be a sequence of labels; got {type(items).__name__}. Pass a list, an array or a column."
    )


def read_weights(weights: Any) -> BatchWeights:
    """Return weights from any input that labels may come from.

    Raises:
        InvalidParameter: a weight that is not a whole number from 0 to 2^63 - 1.
    """
    return BatchWeights(_numbers(weights, UNSIGNED))


def read_both_weights(weights: Any) -> tuple[BatchWeights, SignedBatchWeights]:
    """Return weights that are not negative, also as a sketch takes them.

    Raises:
        InvalidParameter: a weight that is not a whole number from 0 to 2^63 - 1.
    """
    numbers = _numbers(weights, UNSIGNED)
    return BatchWeights(numbers), SignedBatchWeights(numbers)


def read_signed_weights(weights: Any) -> SignedBatchWeights:
    """Return weights that may be negative.

    Raises:
        InvalidParameter: a weight that is not a whole number from -(2^63 - 1) to 2^63 - 1.
    """
    return SignedBatchWeights(_numbers(weights, "from -(2**63 - 1) to 2**63 - 1"))


def _numbers(weights: Any, rule: str) -> list[LabelBatch]:
    try:
        return list(open_labels(weights))
    except UnsupportedLabel:
        raise InvalidParameter(f"weights must be whole numbers {rule}; got another type. Cast or round them.") from None


def _whole(items: Any) -> LabelBatch | None:
    """Return the labels of an input that is held in memory as one piece; None if it is another input."""
    if isinstance(items, LabelBatch):
        return items
    if type(items) in (list, tuple):  # a subclass may yield other items than it stores
        return LabelBatch.from_sequence(items)
    if (numpy := sys.modules.get("numpy")) is not None and isinstance(items, numpy.ndarray):
        return _numpy_batch(numpy, items)
    if (objects := _python_objects(items)) is not None:
        return LabelBatch.from_sequence(objects)
    if hasattr(type(items), "__arrow_c_array__"):
        return LabelBatch.from_arrow(items, _is_column(items))
    if isinstance(items, (memoryview, array.array)):
        view = memoryview(items)
        if view.ndim == 1 and not view.c_contiguous:
            return LabelBatch.from_sequence(view.tolist())
        return LabelBatch.from_buffer(items)
    return None


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


def _is_column(items: Any) -> bool:
    """Return whether an object with Arrow data is a column and no table: both look the same where it is nested."""
    kind = type(items)
    return hasattr(kind, "dtype") or (hasattr(kind, "type") and not hasattr(kind, "columns"))


def _arrow_stream(items: Any) -> ArrowStream:
    try:
        return ArrowStream(items, _is_column(items))
    except ImportError:
        raise MissingExtra(
            f"{type(items).__module__.partition('.')[0]} hands over Arrow data only where pyarrow is installed."
            " Run: pip install 'dptop[parquet]', or pass a list."
        ) from None


def _numpy_batch(numpy: Any, items: Any) -> LabelBatch:
    if isinstance(items, numpy.ma.MaskedArray):
        raise UnsupportedLabel("labels must not be masked; got a masked array. Pass array.compressed().")
    if items.ndim != 1:
        raise InvalidParameter(
            f"an array of labels must have one dimension; got {items.ndim}. Select a column, or ravel() it."
        )
    kind = items.dtype.kind
    if kind in "iu" or (kind in "US" and items.dtype.itemsize):
        native = items.astype(items.dtype.newbyteorder("="), copy=False)
        return LabelBatch.from_buffer(numpy.ascontiguousarray(native))
    if kind in "USOT":  # objects, variable-width text and cells of no width have no plain buffer
        return LabelBatch.from_sequence(items.tolist())
    raise UnsupportedLabel(
        f"labels are integers, strings or bytes; got the NumPy type {items.dtype.name}."
        " Cast them, for example with .astype(str)."
    )
