"""Files and standard input -> batches of labels: text through the Rust readers, Parquet and Arrow through pyarrow.

An input that is cut short, corrupt or of no known format raises; what was read of it before is no result. Text never
has its types inferred: a line or cell is a label as it stands, in bytes.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dptop._native import Input, LabelBatch
from dptop.errors import DptopError, InvalidParameter, MissingExtra, SourceError
from dptop.parameters import one_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["FORMATS", "FileLabels", "read_labels", "total_size"]

FORMATS: Final = ("auto", "lines", "csv", "tsv", "jsonl", "parquet", "arrow")
STDIN: Final = "-"
ROWS_PER_BATCH: Final = 65_536
SPOOL_BYTES: Final = 2**20
BINARY_SUFFIXES: Final = (".parquet", ".pq", ".arrow", ".arrows", ".feather", ".ipc")
ARROW_STREAM_END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def read_labels(
    path: str | os.PathLike[str],
    *,
    column: str | None = None,
    format: str = "auto",  # noqa: A002 - the name of the command's option
    nulls: Sequence[str] = (),
) -> FileLabels:
    r"""Return the labels of a file, in order, for `extend`: bytes for lines, CSV and TSV, else as they are typed.

    Nothing is opened before the first batch is asked for.

    Args:
        path: a file, or "-" for standard input. gzip, zstd, bzip2 and xz are unpacked, by content, all members.
        column: of a table, by its exact name; may be left out where there is only one.
        format: "auto" goes by content, then by file name, then takes lines.
        nulls: texts that stand for a missing value, besides the empty cell.

    Raises:
        InvalidParameter: path is no path; a format that does not exist.

    While reading: SourceError (missing, corrupt, cut short, no such column), UnsupportedLabel, MissingExtra.

    >>> import dptop, tempfile, pathlib
    >>> table = pathlib.Path(tempfile.mkdtemp(), "flights.csv")
    >>> _ = table.write_text("plane,miles\nN1,20\nNA,3\nN1,7\n")
    >>> planes = dptop.SpaceSaving(capacity=100)
    >>> planes.extend(dptop.read_labels(table, column="plane", nulls=["NA"]))
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidParameter(f"path must be a str or a path; got {type(path).__name__}. Name one file.")
    return FileLabels(path, column, one_of("format", format, FORMATS), tuple(nulls))


class FileLabels:
    """The labels of one file, read once, in batches of bounded size. See `read_labels`."""

    _stdin_taken: ClassVar[bool] = False

    def __init__(self, path: str | os.PathLike[str], column: str | None, format_: str, nulls: tuple[str, ...]) -> None:
        self._path = path
        self._column = column
        self._format = format_
        self._nulls = nulls
        self._reader: Any = None
        self._position = 0

    @property
    def name(self) -> str:
        """What messages call the file."""
        return "standard input" if str(self._path) == STDIN else str(self._path) or "''"

    @property
    def at_rest(self) -> bool:
        """Whether the file can be read again from its start."""
        if str(self._path) == STDIN:
            return False
        try:
            mode = Path(self._path).stat().st_mode
        except (OSError, ValueError):
            return True  # nothing is there that could be lost
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode)

    @property
    def position(self) -> int:
        """Bytes of the stored file that have been read, for a progress bar."""
        return self._reader.position if self._reader is not None else self._position

    def __iter__(self) -> Iterator[LabelBatch]:
        try:
            yield from self._batches()
        except DptopError as error:
            raise type(error)(f"{self.name}: {error}") from None

    def _opened(self) -> Input:
        if str(self._path) != STDIN:
            return Input(Path(self._path))
        if FileLabels._stdin_taken:  # a part of it would be missing, and nobody would know
            raise SourceError("it can be read once, and was read before. Save it in a file to read it again.")
        FileLabels._stdin_taken = True
        return Input(None)

    def _batches(self) -> Iterator[LabelBatch]:
        file = self._opened()
        format_ = self._format if self._format != "auto" else _format_by_content(file, self._path)
        if format_ == "parquet":
            with self._on_disk(file) as path:
                yield from self._parquet(path)
        elif format_ == "arrow":
            with self._on_disk(file) as path:
                yield from self._arrow(path)
        else:
            if format_ == "lines" and self._column is not None and self._format == "auto":
                raise SourceError(
                    "there is no column: neither name nor content say that this is a table, so it is read as lines."
                    " Name its format: csv, tsv or jsonl."
                )
            column = None if self._column is None else self._column.encode(errors="surrogateescape")
            nulls = [null.encode(errors="surrogateescape") for null in self._nulls]
            self._reader = file.labels(format_, column, nulls)
            yield from self._reader

    @contextlib.contextmanager
    def _on_disk(self, file: Input) -> Iterator[Path]:
        """Give the content a path that can be read at any place: its own, or that of a temporary copy."""
        if str(self._path) != STDIN and not file.compressed and Path(self._path).is_file():
            yield Path(self._path)
            return
        with tempfile.TemporaryFile() as spool:  # without a name, so that nothing of it outlives the process
            try:
                while chunk := file.read(SPOOL_BYTES):
                    spool.write(chunk)
                spool.flush()
            except OSError as error:
                raise SourceError(
                    f"a copy in {tempfile.gettempdir()} is needed and cannot be written ({error.strerror})."
                    " Set TMPDIR to a folder with room."
                ) from None
            yield Path(f"/dev/fd/{spool.fileno()}")

    def _parquet(self, path: Path) -> Iterator[LabelBatch]:
        pyarrow = _pyarrow()
        parquet_file = pyarrow.parquet.ParquetFile
        with _arrow_errors(pyarrow, path), parquet_file(path, page_checksum_verification=True) as file:
            column = _choose(file.schema_arrow.names, self._column)
            rows = 0
            for batch in file.iter_batches(batch_size=ROWS_PER_BATCH, columns=[column]):
                yield self._labels(pyarrow, batch.select([column]), rows)
                rows += batch.num_rows
                self._position = path.stat().st_size * rows // max(1, file.metadata.num_rows)

    def _arrow(self, path: Path) -> Iterator[LabelBatch]:
        pyarrow = _pyarrow()
        with _arrow_errors(pyarrow, path), pyarrow.memory_map(str(path)) as file:
            try:
                reader = pyarrow.ipc.open_file(file)
                batches = _file_batches(reader, file.size())
            except pyarrow.ArrowInvalid:
                _check_stream_end(path)
                file.seek(0)
                reader = pyarrow.ipc.open_stream(file)
                batches = _stream_batches(reader, file)
            chosen = reader.schema.names.index(_choose(reader.schema.names, self._column))
            rows = 0
            for batch, position in batches:
                yield self._labels(pyarrow, batch.select([chosen]), rows)
                rows += batch.num_rows
                self._position = position

    def _labels(self, pyarrow: Any, batch: Any, rows: int) -> LabelBatch:
        """Return the labels of a batch with one column, after `rows` others; checked, as a file may hold anything."""
        if not _is_valid(pyarrow, batch):
            raise SourceError(
                f"rows {rows + 1} to {rows + batch.num_rows}: a value breaks its column's type, or is text that is not"
                " UTF-8. Write the file again, bytes that are no text in a binary column."
            )
        if self._nulls and _is_text(pyarrow, batch.schema.types[0]):
            nulls = [null.encode(errors="surrogateescape") for null in self._nulls]
            column = batch.column(0)
            if pyarrow.types.is_string_view(column.type):  # pyarrow cannot filter views
                column = column.cast(pyarrow.large_string())
            elif pyarrow.types.is_binary_view(column.type):
                column = column.cast(pyarrow.large_binary())
            missing = pyarrow.compute.is_in(
                column.cast(pyarrow.large_binary()), value_set=pyarrow.array(nulls, pyarrow.large_binary())
            )
            return LabelBatch.from_arrow(column.filter(pyarrow.compute.invert(missing)), column=True)
        return LabelBatch.from_arrow(batch, column=False)


def _format_by_content(file: Input, path: str | os.PathLike[str]) -> str:
    detected = file.detected
    if detected == "parquet":
        return "parquet"
    if detected in ("arrow-file", "arrow-stream"):
        return "arrow"
    if detected not in ("text", "utf-16"):
        raise SourceError(
            f"the content must be text, Parquet or Arrow; this is {detected}."
            " Convert it, or name its format if it is one of these after all."
        )
    suffixes = Path(path).suffixes[-2 if file.compressed else -1 :]
    if claimed := next((suffix for suffix in suffixes if suffix.lower() in BINARY_SUFFIXES), None):
        raise SourceError(
            f"byte 0: a file named {claimed} must start as Parquet or Arrow does; this one does not."
            " Write it again, or name its format if it is a text after all."
        )
    return file.format


def _is_valid(pyarrow: Any, batch: Any) -> bool:
    try:
        batch.validate(full=True)
    except pyarrow.ArrowInvalid:
        return False
    return True


def _is_text(pyarrow: Any, data_type: Any) -> bool:
    types = pyarrow.types
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


def _choose(names: list[str], column: str | None) -> str:
    shown = ", ".join(map(repr, names[:30])) + (", ..." if len(names) > 30 else "")
    if column is None:
        if len(names) == 1:
            return names[0]
        raise SourceError(f"a table of {len(names)} columns needs column; it has {shown}. Choose one of them.")
    found = Counter(names)[column]
    if found == 0:
        raise SourceError(f"there is no column {column!r}; there are {shown}. Choose one of them.")
    if found > 1:
        raise SourceError(f"the column {column!r} is there {found} times; there are {shown}. Rename one of them.")
    return column


def _check_stream_end(path: Path) -> None:
    """Refuse a stream without its end mark: the format allows to leave it out, but then a cut would pass unseen."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - len(ARROW_STREAM_END)))
        if file.read() != ARROW_STREAM_END:
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
def _arrow_errors(pyarrow: Any, path: Path) -> Iterator[None]:
    """Turn pyarrow's errors, whose text may quote values, into our own, which do not even carry them as context."""
    problem = ""
    try:
        yield
    except pyarrow.ArrowNotImplementedError:
        problem = (
            f"pyarrow {pyarrow.__version__} cannot read a type or a compression in this file."
            " Convert the file, or update pyarrow."
        )
    except (pyarrow.ArrowException, OSError, EOFError):
        problem = (
            f"byte {path.stat().st_size}: up to its end this is no whole Parquet or Arrow file; it is cut or corrupt."
            " Write it again."
        )
    if problem:
        raise SourceError(problem)


def _pyarrow() -> Any:
    try:
        import pyarrow.compute
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Parquet and Arrow files need pyarrow. Run: pip install 'dptop[parquet]'") from None
    return pyarrow


def total_size(paths: Sequence[str]) -> int | None:
    """Return the bytes of all files together, or None where one has no size, such as a pipe."""
    total = 0
    for path in paths:
        if path == STDIN or not Path(path).is_file():
            return None
        total += Path(path).stat().st_size
    return total
