"""Parquet and Arrow files -> batches of labels, through pyarrow; imported where such a file is read, and only there.

A file may hold anything: every batch is checked before its labels are taken, and what follows a cut is never read.
"""

from __future__ import annotations

import contextlib
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pyarrow
import pyarrow.compute
import pyarrow.ipc
import pyarrow.parquet
from pyarrow import types

from dptop._native import LabelBatch
from dptop.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["arrow_batches", "parquet_batches"]

ROWS_PER_BATCH: Final = 65_536
STREAM_END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
NAMES_LISTED: Final = 30
NAME_CHARACTERS: Final = 40
"""As many as `crates/readers/src/columns.rs` lists and shows of CSV and TSV."""


def parquet_batches(path: Path, column: str | None, nulls: Sequence[bytes]) -> Iterator[tuple[LabelBatch, int]]:
    """Yield the labels of a Parquet file in order, and about how many of its bytes have been read after each batch.

    Args:
        path: where it lies; it is read at any place.
        column: its exact name; None where there is only one.
        nulls: texts that stand for a missing value.

    Raises:
        SourceError: the file is cut or corrupt, or the column is not there, or more than once.
        UnsupportedLabel: a column of floats, booleans, dates or nested values.
    """
    with _own_errors(path), pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        chosen = _choose(file.schema_arrow.names, column)
        rows = 0
        for batch in file.iter_batches(batch_size=ROWS_PER_BATCH, columns=[chosen]):
            labels = _labels(batch.select([chosen]), nulls, rows)
            rows += batch.num_rows
            yield labels, path.stat().st_size * rows // max(1, file.metadata.num_rows)
        if rows != file.metadata.num_rows:
            # where the offset of a row group is wrong, pyarrow may leave the group out without an error
            raise SourceError(f"{rows} of {file.metadata.num_rows} rows could be read; it is corrupt. Write it again.")


def arrow_batches(path: Path, column: str | None, nulls: Sequence[bytes]) -> Iterator[tuple[LabelBatch, int]]:
    """Yield the labels of an Arrow file or stream; all else as in `parquet_batches`."""
    with _own_errors(path), pyarrow.memory_map(str(path)) as file:
        try:
            reader = pyarrow.ipc.open_file(file)
            batches = _file_batches(reader, file.size())
        except pyarrow.ArrowInvalid:
            _check_stream_end(path)
            file.seek(0)
            reader = pyarrow.ipc.open_stream(file)
            batches = _stream_batches(reader, file)
        chosen = reader.schema.names.index(_choose(reader.schema.names, column))
        rows = 0
        for batch, position in batches:
            labels = _labels(batch.select([chosen]), nulls, rows)
            rows += batch.num_rows
            yield labels, position


def _labels(batch: Any, nulls: Sequence[bytes], rows: int) -> LabelBatch:
    """Return the labels of a batch with one column, after `rows` others; checked, as a file may hold anything."""
    if not _is_valid(batch):
        raise SourceError(
            f"rows {rows + 1} to {rows + batch.num_rows}: a value breaks its column's type, or is text that is not"
            " UTF-8. Write the file again, bytes that are no text in a binary column."
        )
    column = batch.column(0)
    if isinstance(column.type, pyarrow.BaseExtensionType):
        column = column.storage
    if not (nulls and _can_match_nulls(column.type)):
        return LabelBatch.from_arrow(column, column=True)
    if types.is_dictionary(column.type):
        missing = _is_in(column.dictionary, nulls).take(column.indices)
    else:
        column = _without_views(column)
        missing = _is_in(column, nulls)
    return LabelBatch.from_arrow(column.filter(pyarrow.compute.invert(missing)), column=True)


def _is_in(column: Any, nulls: Sequence[bytes]) -> Any:
    """Return for each value whether it is one of the texts that stand for a missing one."""
    values = _without_views(column).cast(pyarrow.large_binary())
    return pyarrow.compute.is_in(values, value_set=pyarrow.array(nulls, pyarrow.large_binary()))


def _without_views(column: Any) -> Any:
    """Return text and bytes as types that pyarrow can cast and filter."""
    if types.is_string_view(column.type):
        return column.cast(pyarrow.large_string())
    return column.cast(pyarrow.large_binary()) if types.is_binary_view(column.type) else column


def _is_valid(batch: Any) -> bool:
    try:
        batch.validate(full=True)
    except pyarrow.ArrowInvalid:
        return False
    return True


def _can_match_nulls(data_type: Any) -> bool:
    """Return whether a value of this type may be equal to a text: text, bytes, and dictionaries of them."""
    if types.is_dictionary(data_type):
        data_type = data_type.value_type
    return bool(
        types.is_string(data_type)
        or types.is_large_string(data_type)
        or types.is_string_view(data_type)
        or types.is_binary(data_type)
        or types.is_large_binary(data_type)
        or types.is_binary_view(data_type)
        or types.is_fixed_size_binary(data_type)
    )


def _choose(names: Sequence[str], column: str | None) -> str:
    """Return the column named `column`, or the only one: rule and words are those of crates/readers/src/columns.rs."""
    if column is None:
        if len(names) == 1:
            return names[0]
        raise SourceError(f"the header has {len(names)} columns and none was chosen; choose one of {_listing(names)}")
    found = Counter(names)[column]
    if found == 0:
        raise SourceError(f"the header has no column {_shown(column)}; choose one of {_listing(names)}")
    if found > 1:
        raise SourceError(f"the header has the column {_shown(column)} {found} times; rename all but one")
    return column


def _listing(names: Sequence[str]) -> str:
    more = len(names) - NAMES_LISTED
    return ", ".join(map(_shown, names[:NAMES_LISTED])) + (f" and {more} more" if more > 0 else "")


def _shown(name: str) -> str:
    """Return a name quoted and shortened, safe to print on a terminal."""
    text = name.encode(errors="surrogateescape").decode(errors="replace")
    short = text[:NAME_CHARACTERS] + ("…" if len(text) > NAME_CHARACTERS else "")
    return '"' + "".join("\ufffd" if unicodedata.category(c) == "Cc" else c for c in short) + '"'


def _check_stream_end(path: Path) -> None:
    """Refuse a stream without its end mark: the format allows to leave it out, but then a cut would pass unseen."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - len(STREAM_END)))
        if file.read() != STREAM_END:
            raise SourceError(f"byte {size}: the Arrow data ends without its end mark; it may be cut. Write it again.")


def _file_batches(reader: Any, size: int) -> Iterator[tuple[Any, int]]:
    """Yield the batches of an Arrow file, and about how many of its bytes have been read after each."""
    for i in range(reader.num_record_batches):
        yield reader.get_batch(i), size * (i + 1) // reader.num_record_batches


def _stream_batches(stream: Any, file: Any) -> Iterator[tuple[Any, int]]:
    """Yield the batches of an Arrow stream with the bytes read, and refuse what follows its end mark."""
    for batch in stream:
        yield batch, file.tell()
    if file.tell() != file.size():
        raise SourceError(
            f"byte {file.tell()}: bytes follow the end mark of the Arrow stream. Cut them off, or split the file there."
        )


@contextlib.contextmanager
def _own_errors(path: Path) -> Iterator[None]:
    """Turn pyarrow's errors, whose text may quote values, into our own, which do not even carry them as context."""
    problem = ""
    try:
        yield
    except pyarrow.ArrowNotImplementedError:
        problem = (
            f"pyarrow {pyarrow.__version__} cannot read a type or a compression in this file."
            " Convert the file, or update pyarrow."
        )
    except (pyarrow.ArrowException, OSError, EOFError, UnicodeDecodeError):  # the last from names of columns
        problem = (
            f"byte {path.stat().st_size}: up to its end this is no whole Parquet or Arrow file; it is cut or corrupt."
            " Write it again."
        )
    if problem:
        raise SourceError(problem)
