"""The command line: data to stdout, words to stderr.

Exit codes: 0 released (also where nothing passed), 1 the input or the budget forbids it, 2 wrong usage, 130
interrupted.
Nothing is released unless every input was read to its end.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, TextIO

import typer

import dptop
from dptop.errors import DptopError, InvalidParameter, MissingExtra, SourceError
from dptop.files import FORMATS, FileLabels, is_stdin, read_labels
from dptop.mechanism import ENVELOPE, NOISES, PUBLIC_LABELS
from dptop.parameters import one_of, shown
from dptop.release import PLANS, Request, plan, release_as
from dptop.summary import thread_count
from dptop.tracked import CANDIDATES, ESTIMATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dptop.report import Release

__all__ = ["main"]

SPACE_SAVING, MISRA_GRIES, COUNT_MIN, COUNT_SKETCH = "space-saving", "misra-gries", "count-min", "count-sketch"
SUMMARIES: Final = (SPACE_SAVING, MISRA_GRIES, COUNT_MIN, COUNT_SKETCH)
MECHANISMS: Final = tuple(dict.fromkeys(name for plans in PLANS.values() for name in plans if name != PUBLIC_LABELS))
"""Those for summaries that find labels, the best for each summary first."""
WIDTH: Final = 65_536
DEPTHS: Final = {COUNT_MIN: (4, 21), COUNT_SKETCH: (7, 61)}
"""Rows of a sketch where none are asked for: with `selected`, where more rows only add noise to the counts that are
read from them, and with `envelope`, whose threshold many rows lower: about the best at width 65,536, epsilon 1 and
delta 1e-9 for a million to ten million items. CountSketch can bound the squares there from 47 rows on."""
OUTPUTS: Final = (".csv", ".jsonl", ".parquet")
INTERRUPTED: Final = 130
UsageError: Final[Any] = typer.BadParameter.__base__
"""What the option parser raises; it has no public name of its own."""


class _InterruptedOutput(KeyboardInterrupt):
    """An interruption after the noise was drawn, while the result was written."""


def _depths(envelope: int) -> str:
    return " and ".join(f"{depths[envelope]} of {name}" for name, depths in DEPTHS.items())


app = typer.Typer(add_completion=False, no_args_is_help=True)


def _whole(text: str) -> Any:
    """Return the number that an option says, or else its text, which the check of the parameter then refuses."""
    try:
        return int(text)
    except ValueError:
        return text


def _real(text: str) -> Any:
    """Return the number that an option says, or else its text, as `_whole` does."""
    try:
        return float(text)
    except ValueError:
        return text


def _version(wanted: bool) -> None:  # noqa: FBT001 - the parser hands over a flag
    if wanted:
        typer.echo(f"dptop {dptop.__version__}")
        raise typer.Exit


@app.callback()
def _commands(
    version: Annotated[  # noqa: FBT002 - a flag; its callback does the work
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Find the most frequent items of a stream in bounded memory and release them under differential privacy."""


@app.command()
def top(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files to read, in order; - is stdin.")],
    column: Annotated[
        str | None, typer.Option(help="Column, or member of JSON objects, that holds the labels.", metavar="NAME")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.", metavar="FORMAT")] = "auto",
    null: Annotated[
        list[str] | None, typer.Option(help="A text that stands for a missing value; repeatable.", metavar="TEXT")
    ] = None,
    top_: Annotated[
        int | None, typer.Option("--top", help="Rows to release at the most.", parser=_whole, metavar="N")
    ] = 20,
    share: Annotated[
        float | None,
        typer.Option(help="Only labels with this share of the stream, 0 to 1.", parser=_real, metavar="F"),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Total epsilon, 2**-20 to 64.", parser=_real, metavar="F")] = 1.0,
    delta: Annotated[float, typer.Option(help="Total delta, between 0 and 1.", parser=_real, metavar="F")] = 1e-9,
    capacity: Annotated[
        int, typer.Option(help="Counters: labels tracked at the most.", parser=_whole, metavar="N")
    ] = 65_536,
    partitions: Annotated[int, typer.Option(help="Tables that share the capacity.", parser=_whole, metavar="N")] = 1,
    threads: Annotated[int, typer.Option(help="Workers that share the partitions.", parser=_whole, metavar="N")] = 1,
    summary: Annotated[str, typer.Option(help=f"One of {', '.join(SUMMARIES)}.", metavar="NAME")] = SUMMARIES[0],
    width: Annotated[
        int | None,
        typer.Option(help=f"Cells in a row of a sketch, {WIDTH:,} by default.", parser=_whole, metavar="N"),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            help=f"Rows of a sketch. By default {_depths(0)}; with envelope {_depths(1)}.",
            parser=_whole,
            metavar="N",
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(help=f"What tracks labels beside a sketch: {' or '.join(CANDIDATES)}.", metavar="NAME"),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            help=f"By default the best for the summary. All: {', '.join(MECHANISMS)}; paper needs --share.",
            metavar="NAME",
        ),
    ] = None,
    noise: Annotated[
        str | None, typer.Option(help=f"In the cells of a sketch: {' or '.join(NOISES)}.", metavar="NAME")
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            help="Public upper bound on the number of items; misra-gries needs it for high.", parser=_whole, metavar="N"
        ),
    ] = None,
    json: Annotated[  # noqa: FBT002 - a flag of the command
        bool, typer.Option("--json", help="Write JSON lines to stdout.")
    ] = False,
    table: Annotated[  # noqa: FBT002 - a flag of the command
        bool, typer.Option("--table", help="Write a table to stdout, also into a pipe.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"Write a file instead: {', '.join(OUTPUTS)}.", metavar="PATH"),
    ] = None,
) -> None:
    """Release the most frequent labels of FILE..., with total (epsilon, delta), each file read once.

    The result is a table on a terminal and CSV in a pipe. The guarantee in words goes to stderr. The intervals, low to
    high, hold the true counts of all rows at once with probability 0.95.
    """
    request = Request(
        epsilon=epsilon, delta=delta, top=top_, share=share, length=length, mechanism=mechanism, noise=noise
    )
    envelope = mechanism == ENVELOPE or (mechanism is None and candidates == ESTIMATES)
    sketch = {"width": width, "depth": depth, "candidates": candidates}
    counted = _summary(summary, capacity, partitions, sketch, envelope=envelope)
    plan(request, counted)  # refuses what cannot be released before anything is read
    thread_count(threads)
    inputs = [read_labels(file, column=column, format=format_, nulls=null or ()) for file in files]
    if (times := sum(map(is_stdin, files))) > 1:
        raise InvalidParameter(f"standard input can be read once; got it {times} times. Leave one.")
    write = _destination(output, json=json, table=table)
    with _progress(files) as advance:
        _count(counted, inputs, threads, advance)
    result = release_as(request, counted)
    try:
        write(result)
        with contextlib.suppress(OSError):  # stderr may be closed or full; the result is out
            typer.echo(result.explain(), err=True)
    except KeyboardInterrupt:
        raise _InterruptedOutput from None


def _summary(name: str, capacity: int, partitions: int, sketch: dict[str, Any], *, envelope: bool) -> dptop.Summary:
    """Return an empty summary of the kind that is asked for. What is said of others is refused, not passed over."""
    one_of("summary", name, SUMMARIES)
    if name != SPACE_SAVING:
        _only(SPACE_SAVING, name, {"partitions": None if partitions == 1 else partitions})
    if name not in DEPTHS:
        _only(f"{COUNT_MIN} and {COUNT_SKETCH}", name, sketch)
    if name == SPACE_SAVING:
        return dptop.SpaceSaving(capacity, partitions=partitions)
    if name == MISRA_GRIES:
        return dptop.MisraGries(capacity)
    chosen: dict[str, Any] = {"width": WIDTH, "depth": DEPTHS[name][envelope], "candidates": CANDIDATES[0]}
    chosen |= {option: value for option, value in sketch.items() if value is not None}
    one_of("candidates", chosen["candidates"], CANDIDATES)  # before the cells, which may be many
    oracle = dptop.CountMin if name == COUNT_MIN else dptop.CountSketch
    return dptop.Tracked(oracle(chosen["width"], chosen["depth"]), capacity, chosen["candidates"])


def _only(summaries: str, name: str, given: dict[str, object]) -> None:
    """Refuse the first option that is given though it is for other summaries."""
    for option, value in given.items():
        if value is not None:
            raise InvalidParameter(f"{option} is for {summaries}; got {shown(value)} for {name}. Leave it out.")


def _count(summary: dptop.Summary, inputs: list[FileLabels], threads: int, advance: Callable[[int], None]) -> None:
    before = 0
    for labels in inputs:
        for batch in labels:
            try:
                summary.extend(batch, threads=threads)
            except DptopError as error:  # a second kind of label; what the file itself does wrong names it already
                raise type(error)(f"{labels.name}: {error}") from None
            advance(before + labels.position)
        before += labels.position


@contextlib.contextmanager
def _progress(files: list[str]) -> Iterator[Callable[[int], None]]:
    """Show the bytes read, on a terminal only."""
    if not _is_terminal(sys.stderr):
        yield lambda _: None
        return
    # here, as in a pipe neither bar nor table is wanted, and importing rich takes as long as a million lines
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=_total_size(files))
        yield lambda position: progress.update(task, completed=position)


def _total_size(files: list[str]) -> int | None:
    """Return the bytes of all files together, or None where one has no size, such as a pipe."""
    paths = [Path(file) for file in files]
    if not all(not is_stdin(name) and path.is_file() for name, path in zip(files, paths, strict=True)):
        return None
    return sum(path.stat().st_size for path in paths)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()  # None: closed by whoever started us


def _destination(output: Path | None, *, json: bool, table: bool) -> Callable[[Release], None]:
    """Return what writes the result. A place that cannot be written is found before anything is read."""
    if json + table + (output is not None) > 1:
        raise InvalidParameter("--json, --table and --output exclude each other; got more than one. Leave one.")
    if output is not None:
        return _to_file(output)
    if sys.stdout is None:
        raise SourceError("standard output is closed. Open it, or write a file with --output.")
    if json:
        return _to_stdout(dptop.Release.to_jsonl)
    if table or _is_terminal(sys.stdout):
        return _to_stdout(_write_table)
    return _to_stdout(dptop.Release.to_csv)


def _to_file(path: Path) -> Callable[[Release], None]:
    write = {
        ".csv": dptop.Release.to_csv,
        ".jsonl": dptop.Release.to_jsonl,
        ".parquet": dptop.Release.to_parquet,
    }.get(path.suffix.lower())
    if write is None:
        raise InvalidParameter(f"output must end in {', '.join(OUTPUTS)}; got {path.suffix!r}. Rename it.")
    if path.suffix.lower() == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra("a Parquet file needs pyarrow. Run: pip install 'dptop[parquet]', or write .csv.")
    folder = path.parent
    if not folder.is_dir() or path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise SourceError(f"{path}: a file must be writable there, in a folder that exists. Choose another place.")
    return lambda result: write(result, path)


def _to_stdout(write: Callable[[Release, BinaryIO], None]) -> Callable[[Release], None]:
    """Return what writes a result to stdout. A reader who has left is no error; then nothing more is said."""

    def to_stdout(result: Release) -> None:
        try:
            write(result, sys.stdout.buffer)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            _discard_stdout()
            raise SourceError(
                f"standard output cannot be written ({error.strerror}). Write to another place, with --output."
            ) from None

    return to_stdout


def _write_table(result: Release, file: BinaryIO) -> None:
    from dptop.table import terminal_table

    file.write(terminal_table(result).encode(sys.stdout.encoding, "backslashreplace"))


def _discard_stdout() -> None:
    """Let what Python flushes at exit go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run the command line; the console script `dptop`."""
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    command = typer.main.get_command(app)
    try:
        # not app(): that turns an interruption and a closed pipe into exit codes of its own
        with command.make_context("dptop", arguments) as context:
            command.invoke(context)
    except InvalidParameter as error:
        return _fail(error, 2)
    except DptopError as error:
        return _fail(error, 1)
    except BrokenPipeError:  # the reader has left, as `| head` does
        _discard_stdout()
        return 0
    except SystemExit:  # by rich, which prints the help, in the same case
        return 0
    except _InterruptedOutput:
        return _fail("interrupted; a part of the result may be out.", INTERRUPTED)
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was released.", INTERRUPTED)
    except typer.Exit as done:
        return done.exit_code
    except UsageError as error:
        with contextlib.suppress(OSError):  # stderr may be closed
            error.show()
        return int(error.exit_code)
    return 0


def _fail(error: object, code: int) -> int:
    with contextlib.suppress(OSError):
        typer.echo(f"dptop: {error}", err=True)
    return code


if __name__ == "__main__":
    main()
