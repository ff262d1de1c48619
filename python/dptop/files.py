"""Files and standard input -> batches of labels: text through the Rust readers, the rest by `arrow_files`.

An input that is cut short, corrupt or of no known format raises; what was read of it before is no result. Text never
has its types inferred: a line or cell is a label as it stands, in bytes.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dptop._native import TEXT_FORMATS, Input, LabelBatch
from dptop.errors import DptopError, InvalidParameter, MissingExtra, SourceError
from dptop.parameters import encoded, one_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

__all__ = ["FORMATS", "FileLabels", "is_stdin", "read_labels"]

FORMATS: Final = ("auto", *TEXT_FORMATS, "parquet", "arrow")
STDIN: Final = "-"
STDIN_NAMES: Final = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
STDIN_DESCRIPTOR: Final = 0
SPOOL_BYTES: Final = 2**20
BINARY_SUFFIXES: Final = (".parquet", ".pq", ".arrow", ".arrows", ".feather", ".ipc")


def read_labels(
    path: str | os.PathLike[str],
    *,
    column: str | None = None,
    format: str = "auto",  # noqa: A002 - the name of the command's option
    nulls: Iterable[str] = (),
) -> FileLabels:
    r"""Return the labels of a file, in order, for `extend`: bytes for lines, CSV and TSV, else as they are typed.

    Nothing is opened before the first batch is asked for.

    Args:
        path: a file, or "-" for standard input, or what sys.stdin.buffer has left of it; what other objects have read
            of it is missing. gzip, zstd, bzip2 and xz are unpacked, by content, all members.
        column: of a table, by its exact name; may be left out where there is only one.
        format: "auto" goes by content, then by file name, then takes lines.
        nulls: texts that stand for a missing value, besides the empty cell; a list, also of one.

    Raises:
        InvalidParameter: path is no path; a format that does not exist; column or one of nulls is no text.

    While reading: SourceError (missing, corrupt, cut short, no such column), UnsupportedLabel, MissingExtra.

    >>> import dptop, tempfile, pathlib
    >>> table = pathlib.Path(tempfile.mkdtemp(), "flights.csv")
    >>> _ = table.write_text("plane,miles\nN1,20\nNA,3\nN1,7\n")
    >>> planes = dptop.SpaceSaving(capacity=100)
    >>> planes.extend(dptop.read_labels(table, column="plane", nulls=["NA"]))
    """
    try:
        if isinstance(path, bytes):
            raise TypeError
        name = os.fsdecode(path)
        os.fsencode(name)
    except TypeError:
        raise InvalidParameter(f"path must be a str or a path; got {type(path).__name__}. Name one file.") from None
    except UnicodeEncodeError:
        raise InvalidParameter("path must be a name that a file can have; got a lone surrogate. Name one.") from None
    if column is not None:
        encoded("column", column, "Name one column, or leave it out.")
    if isinstance(nulls, (str, bytes)) or not isinstance(nulls, Iterable):
        # an iterable of str is also what a str is: "NA" would stand for N and A
        raise InvalidParameter(
            f"nulls must be several str, as in a list; got {shown(nulls)}. Pass a list, also of one."
        )
    texts = tuple(encoded("each of nulls", null, "Pass the texts that stand for a missing value.") for null in nulls)
    return FileLabels(name, column, one_of("format", format, FORMATS), texts)


class FileLabels:
    """The labels of one file, read once, in batches of bounded size. See `read_labels`."""

    _stdin: ClassVar[threading.Lock] = threading.Lock()
    """Held by the one who reads standard input, for ever: another would miss a part of it, and nobody would know."""

    def __init__(self, path: str, column: str | None, format_: str, nulls: tuple[bytes, ...]) -> None:
        self._path = path
        self._is_stdin = is_stdin(path)
        self._column = column
        self._format = format_
        self._nulls = nulls
        self._reader: Any = None
        self._position = 0

    @property
    def name(self) -> str:
        """What messages call the file."""
        return "standard input" if self._is_stdin else self._path or "''"

    @property
    def rereadable(self) -> bool:
        """Whether the file can be read again from its start."""
        if self._is_stdin:
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
        if not self._is_stdin:
            return Input.from_path(Path(self._path))
        if not FileLabels._stdin.acquire(blocking=False):
            raise SourceError("it can be read once, and was read before. Save it in a file to read it again.")
        try:
            ahead = _read_ahead()
        except BaseException:
            FileLabels._stdin.release()  # nothing was taken
            raise
        return Input.from_stdin(ahead)

    def _batches(self) -> Iterator[LabelBatch]:
        file = self._opened()
        format_ = self._format if self._format != "auto" else _format_by_content(file, self._path)
        if format_ in ("parquet", "arrow"):
            files = _arrow_files()
            read = files.parquet_batches if format_ == "parquet" else files.arrow_batches
            with self._on_disk(file) as path:
                for batch, position in read(path, self._column, self._nulls):
                    yield batch
                    self._position = position
        else:
            if format_ == "lines" and self._column is not None and self._format == "auto":
                raise SourceError(
                    "there is no column: neither name nor content say that this is a table, so it is read as lines."
                    " Name its format: csv, tsv or jsonl."
                )
            column = None if self._column is None else self._column.encode(errors="surrogateescape")
            self._reader = file.labels(format_, column, list(self._nulls))
            yield from self._reader

    @contextlib.contextmanager
    def _on_disk(self, file: Input) -> Iterator[Path]:
        """Give the content a path that can be read at any place: its own, or that of a temporary copy."""
        if not self._is_stdin and not file.compressed and Path(self._path).is_file():
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


def is_stdin(path: str) -> bool:
    """Return whether a path names standard input; one that opens a redirected file from its start does not."""
    if path == STDIN or os.path.normpath(path) in STDIN_NAMES:
        return True
    try:
        there, here = Path(path).stat(), os.fstat(STDIN_DESCRIPTOR)
    except (OSError, ValueError):
        return False
    streams = stat.S_ISFIFO(there.st_mode) or stat.S_ISSOCK(there.st_mode) or os.isatty(STDIN_DESCRIPTOR)
    return streams and os.path.samestat(there, here)  # a file, and /dev/null, can be opened again


def _read_ahead() -> bytes:
    """Return what Python has read of standard input and not handed out yet: it comes before what is left to read."""
    stdin, own = getattr(sys, "stdin", None), sys.__stdin__
    if own is None:
        return b""  # closed before Python began, which the reader tells
    try:
        if stdin is not own and _descriptor(stdin) == STDIN_DESCRIPTOR:
            raise ValueError  # an object in its place that reads it too
        own.reconfigure(errors=own.errors)  # refused while it holds text, or if it is closed
        buffer = own.buffer
        ahead = buffer.peek()  # type: ignore[attr-defined]  # of a BufferedReader, which a process begins with
        return bytes(buffer.read(len(ahead)))
    except (AttributeError, ValueError):
        raise SourceError(
            "what sys.stdin has read of it would be missing, as it was read as text, replaced or closed. Read"
            " with sys.stdin.buffer what comes before the labels, and leave sys.stdin as it was."
        ) from None
    except OSError:
        return b""  # nothing was taken; reading on tells why it cannot be read


def _descriptor(stream: object) -> int | None:
    try:
        return stream.fileno()  # type: ignore[attr-defined, no-any-return]  # the except clause is the check
    except (AttributeError, OSError, ValueError):
        return None


def _format_by_content(file: Input, path: str) -> str:
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


def _arrow_files() -> ModuleType:
    try:
        from dptop import arrow_files
    except ImportError:
        raise MissingExtra("Parquet and Arrow files need pyarrow. Run: pip install 'dptop[parquet]'") from None
    return arrow_files
