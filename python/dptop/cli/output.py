"""Where results go: stdout as a table, CSV or JSON lines, or a file. Checked before anything is read or spent."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO

import typer

from dptop.atomic import check_place
from dptop.errors import InvalidParameter, MissingExtra, SourceError
from dptop.files import STDIN_DESCRIPTOR, is_stdin
from dptop.report import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

OUTPUTS: Final = (".csv", ".jsonl", ".parquet")


class Interrupted(KeyboardInterrupt):
    """An interruption after something may be spent or out; its text says what."""


@contextlib.contextmanager
def interruption(*said: str) -> Iterator[Callable[[], None]]:
    """Say of an interruption in here what may have been done already: the first words, and after a call the next."""
    left = list(said)
    try:
        yield lambda: left.__delitem__(0)
    except Interrupted:  # says it more exactly
        raise
    except KeyboardInterrupt:
        raise Interrupted(left[0]) from None


def say(words: str) -> None:
    """Write words to stderr, which may be closed or full."""
    with contextlib.suppress(OSError):
        typer.echo(words, err=True)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether somebody may read along. None is what Python has for a stream that was closed before it began."""
    return stream is not None and stream.isatty()


def destination(
    output: Path | None, *, json: bool, table: bool, apart_from: Iterable[str]
) -> Callable[[Release], None]:
    """Return what writes the result. A place that cannot be written is found before anything is read.

    Args:
        output: a file, or None for stdout.
        json: whether JSON lines are asked for.
        table: whether a table is.
        apart_from: files that are read, in the place of which nothing is written.
    """
    if json + table + (output is not None) > 1:
        raise InvalidParameter("--json, --table and --output exclude each other; got more than one. Leave one.")
    if output is not None:
        return _to_file(output, apart_from)
    if sys.stdout is None:
        raise SourceError("standard output is closed. Open it, or write a file with --output.")
    if json:
        return _to_stdout(Release.to_jsonl)
    if table or is_terminal(sys.stdout):
        return _to_stdout(_write_table)
    return _to_stdout(Release.to_csv)


def _to_file(path: Path, apart_from: Iterable[str]) -> Callable[[Release], None]:
    write = {".csv": Release.to_csv, ".jsonl": Release.to_jsonl, ".parquet": Release.to_parquet}.get(
        path.suffix.lower()
    )
    if write is None:
        raise InvalidParameter(f"output must end in {', '.join(OUTPUTS)}; got {path.suffix!r}. Rename it.")
    if path.suffix.lower() == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra("a Parquet file needs pyarrow. Run: pip install 'dptop[parquet]', or write .csv.")
    check_place(path, private=False)
    check_apart(path, apart_from)
    return lambda result: write(result, path)


def check_apart(path: Path, apart_from: Iterable[str]) -> None:
    """Refuse to write where a file is that is read.

    Raises:
        InvalidParameter: one of the files that are read.
    """
    if path.is_file() and any(_is_input(path, file) for file in apart_from):
        raise InvalidParameter(f"output must be another file than those that are read; got {path}. Rename it.")


def _is_input(path: Path, name: str) -> bool:
    with contextlib.suppress(OSError):  # stdin may be closed; a file that is not found says so when it is opened
        file = os.fstat(STDIN_DESCRIPTOR) if is_stdin(name) else Path(name).stat()
        return os.path.samestat(path.stat(), file)
    return False


def _to_stdout(write: Callable[[Release, BinaryIO], None]) -> Callable[[Release], None]:
    """Return what writes a result to stdout. A reader who has left is no error; then nothing more is said."""

    def to_stdout(result: Release) -> None:
        try:
            write(result, sys.stdout.buffer)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            discard_stdout()
            raise SourceError(
                f"standard output cannot be written ({error.strerror}). Write to another place, with --output."
            ) from None

    return to_stdout


def _write_table(result: Release, file: BinaryIO) -> None:
    from dptop.table import terminal_table  # with rich, only where a table is wanted

    file.write(terminal_table(result).encode(sys.stdout.encoding, "backslashreplace"))


def discard_stdout() -> None:
    """Let what Python flushes at exit go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
