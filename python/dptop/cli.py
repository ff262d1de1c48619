"""The command line: data to stdout, words to stderr.

Exit codes: 0 released (also where nothing passed), 1 the input or the budget forbids it, 2 wrong usage, 130
interrupted.
Nothing is released unless every input was read to its end.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

import dptop
from dptop.errors import DptopError, InvalidParameter, SourceError
from dptop.files import FORMATS, FileLabels, read_labels, total_size
from dptop.label import Label, ShortenedLabel
from dptop.parameters import one_of
from dptop.release import Request, fulfil
from dptop.summary import SpaceSaving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dptop.report import Release

__all__ = ["main"]

SUMMARIES: Final = ("space-saving",)
OUTPUTS: Final = (".csv", ".jsonl", ".parquet")
INTERRUPTED: Final = 130

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)


@app.callback()
def _commands(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,  # noqa: FBT002 - a flag
) -> None:
    """Find the most frequent items of a stream in bounded memory and release them under differential privacy."""
    if version:
        typer.echo(f"dptop {dptop.__version__}")
        raise typer.Exit


@app.command()
def top(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files to read, in order; - is stdin.")],
    column: Annotated[
        str | None, typer.Option(help="Column, or member of JSON objects, that holds the labels.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = "auto",
    null: Annotated[list[str] | None, typer.Option(help="A text that stands for a missing value; repeatable.")] = None,
    top_: Annotated[int | None, typer.Option("--top", help="Rows to release at the most.")] = 20,
    share: Annotated[float | None, typer.Option(help="Only labels with this share of the stream, 0 to 1.")] = None,
    epsilon: Annotated[float, typer.Option(help="Total epsilon, 2**-20 to 64.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Total delta, between 0 and 1.")] = 1e-9,
    capacity: Annotated[int, typer.Option(help="Counters: labels tracked at the most.")] = 65_536,
    partitions: Annotated[int, typer.Option(help="Tables that share the capacity.")] = 1,
    threads: Annotated[int, typer.Option(help="Workers that share the partitions.")] = 1,
    summary: Annotated[str, typer.Option(help=f"One of {', '.join(SUMMARIES)}.")] = SUMMARIES[0],
    mechanism: Annotated[str | None, typer.Option(help="stable-threshold, the default.")] = None,
    length: Annotated[int | None, typer.Option(help="Public upper bound on the number of items.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON lines to stdout.")] = False,  # noqa: FBT002
    table: Annotated[bool, typer.Option("--table", help="Write a table to stdout, also into a pipe.")] = False,  # noqa: FBT002
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=f"Write a file instead: {', '.join(OUTPUTS)}.")
    ] = None,
) -> None:
    """Release the most frequent labels of FILE..., with total (epsilon, delta), each file read once.

    The result is a table on a terminal and CSV in a pipe. The guarantee in words goes to stderr.
    """
    one_of("summary", summary, SUMMARIES)
    request = Request(epsilon, delta, top_, share, length, mechanism=mechanism)
    counted = SpaceSaving(capacity, partitions=partitions)
    inputs = [read_labels(file, column=column, format=format_, nulls=null or ()) for file in files]
    if json and table:
        raise InvalidParameter("--json and --table exclude each other; got both. Leave one out.")
    with _output(output) as write_file:
        with _progress(files) as advance:
            _count(counted, inputs, threads, advance)
        result = fulfil(counted, request)
        if write_file is not None:
            write_file(result)
        elif json:
            result.write_jsonl(sys.stdout.buffer)
        elif table or sys.stdout.isatty():
            Console().print(_table(result))
        else:
            result.write_csv(sys.stdout.buffer)
        sys.stdout.flush()
    typer.echo(result.explain(), err=True)


def _count(summary: SpaceSaving, inputs: list[FileLabels], threads: int, advance: Callable[[int], None]) -> None:
    before = 0
    for labels in inputs:
        for batch in labels:
            summary.extend(batch, threads=threads)
            advance(before + labels.position)
        before += labels.position


@contextlib.contextmanager
def _progress(files: list[str]) -> Iterator[Callable[[int], None]]:
    """Show the bytes read, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=total_size(files))
        yield lambda position: progress.update(task, completed=position)


@contextlib.contextmanager
def _output(path: Path | None) -> Iterator[Callable[[Release], None] | None]:
    """Yield what writes the output file. A place that cannot be written is found before anything is read."""
    if path is None:
        yield None
        return
    writers: dict[str, Callable[[Release, Path], None]] = {
        ".csv": dptop.Release.to_csv,
        ".jsonl": dptop.Release.to_jsonl,
        ".parquet": dptop.Release.to_parquet,
    }
    write = writers.get(path.suffix.lower())
    if write is None:
        raise InvalidParameter(f"output must end in {', '.join(OUTPUTS)}; got {path.suffix!r}. Rename it.")
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SourceError(f"{path}: its folder must exist and be writable. Create it, or choose another.")
    yield lambda result: write(result, path)


def _table(result: Release) -> Table:
    table = Table(box=None)
    table.add_column("item", overflow="fold")
    for name in ("count", "low", "high"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in result:
        table.add_row(Text(_shown(row.item)), *(f"{number:,}" for number in row[1:]))
    return table


def _shown(item: Label) -> str:
    """Return a label for a terminal: as text, with everything that is no printable character escaped."""
    plain = item.plain() if isinstance(item, ShortenedLabel) else item
    text = plain.decode(errors="backslashreplace") if isinstance(plain, bytes) else str(plain)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def main() -> None:
    """Run the command line; the console script `dptop`."""
    sys.exit(_run())


def _run() -> int:
    try:
        outcome: Any = app(standalone_mode=False)  # False: the parser's errors come to us, and no exit of its own
    except InvalidParameter as error:
        return _fail(error, 2)
    except DptopError as error:
        return _fail(error, 1)
    except typer.Exit as exit_:
        return exit_.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted; nothing was released.", INTERRUPTED)
    except BrokenPipeError:
        # the reader of our output has left: nobody is told, and nothing is flushed into the closed pipe at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if hasattr(error, "exit_code") and hasattr(error, "show"):  # a usage error of the option parser
            error.show()
            return int(error.exit_code)
        raise
    return outcome if isinstance(outcome, int) else 0


def _fail(error: object, code: int) -> int:
    typer.echo(f"dptop: {error}", err=True)
    return code


if __name__ == "__main__":
    main()
