"""Files -> an empty summary of the kind that is asked for -> a counted one, with the bytes read on a terminal."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dptop
from dptop.cli.output import is_terminal
from dptop.errors import DptopError, InvalidParameter
from dptop.files import is_stdin, read_labels
from dptop.parameters import one_of, shown
from dptop.summary import thread_count
from dptop.tracked import CANDIDATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SPACE_SAVING, MISRA_GRIES, COUNT_MIN, COUNT_SKETCH = "space-saving", "misra-gries", "count-min", "count-sketch"
SUMMARIES: Final = (SPACE_SAVING, MISRA_GRIES, COUNT_MIN, COUNT_SKETCH)
WIDTH: Final = 65_536
DEPTHS: Final = {COUNT_MIN: (4, 21), COUNT_SKETCH: (7, 61)}
"""Rows of a sketch where none are asked for: with `selected`, where more rows only add noise to the counts that are
read from them, and with `envelope`, whose threshold many rows lower: about the best at width 65,536, epsilon 1 and
delta 1e-9 for a million to ten million items. CountSketch can bound the squares there from 47 rows on."""


def empty_summary(
    name: str,
    capacity: int,
    partitions: int,
    sketch: dict[str, Any],
    *,
    envelope: bool,
    budget: dptop.Budget | None = None,
) -> dptop.Summary:
    """Return an empty summary of the kind that is asked for. What is said of others is refused, not passed over."""
    one_of("summary", name, SUMMARIES)
    if name != SPACE_SAVING:
        _only(SPACE_SAVING, name, {"partitions": None if partitions == 1 else partitions})
    if name not in DEPTHS:
        _only(f"{COUNT_MIN} and {COUNT_SKETCH}", name, sketch)
    if name == SPACE_SAVING:
        return dptop.SpaceSaving(capacity, partitions=partitions, budget=budget)
    if name == MISRA_GRIES:
        return dptop.MisraGries(capacity, budget=budget)
    chosen: dict[str, Any] = {"width": WIDTH, "depth": DEPTHS[name][envelope], "candidates": CANDIDATES[0]}
    chosen |= {option: value for option, value in sketch.items() if value is not None}
    one_of("candidates", chosen["candidates"], CANDIDATES)  # before the cells, which may be many
    oracle = dptop.CountMin if name == COUNT_MIN else dptop.CountSketch
    return dptop.Tracked(oracle(chosen["width"], chosen["depth"]), capacity, chosen["candidates"], budget=budget)


def _only(summaries: str, name: str, given: dict[str, object]) -> None:
    """Refuse the first option that is given though it is for other summaries."""
    for option, value in given.items():
        if value is not None:
            raise InvalidParameter(f"{option} is for {summaries}; got {shown(value)} for {name}. Leave it out.")


class Inputs:
    """The files of one call, checked before any is opened, to be counted in order."""

    def __init__(
        self, files: list[str], column: str | None, format_: str, nulls: Sequence[str] | None, threads: int
    ) -> None:
        self._threads = thread_count(threads)
        self._files = files
        self._labels = [read_labels(file, column=column, format=format_, nulls=nulls or ()) for file in files]
        if (times := sum(map(is_stdin, files))) > 1:
            raise InvalidParameter(f"standard input can be read once; got it {times} times. Leave one.")

    def count(self, summary: dptop.Summary) -> None:
        """Count all of them to their ends; an error or an interruption leaves a summary that is not released."""
        before = 0
        with self._progress() as advance:
            for labels in self._labels:
                for batch in labels:
                    try:
                        summary.extend(batch, threads=self._threads)
                    except DptopError as error:  # a second kind of label; what is wrong with a file names it already
                        raise type(error)(f"{labels.name}: {error}") from None
                    advance(before + labels.position)
                before += labels.position

    @contextlib.contextmanager
    def _progress(self) -> Iterator[Callable[[int], None]]:
        """Show the bytes read, on a terminal only."""
        if not is_terminal(sys.stderr):
            yield lambda _: None
            return
        # here, as in a pipe neither bar nor table is wanted, and importing rich takes as long as a million lines
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("reading", total=self._size())
            yield lambda position: progress.update(task, completed=position)

    def _size(self) -> int | None:
        """Return the bytes of all files together, or None where one has no size, such as a pipe."""
        paths = [Path(file) for file in self._files]
        try:
            if any(is_stdin(name) or not path.is_file() for name, path in zip(self._files, paths, strict=True)):
                return None
            return sum(path.stat().st_size for path in paths)
        except OSError:  # a file that cannot be found says so when it is opened
            return None
