"""Figures 10, 11 and 12 of the paper, panel by panel, and two more, from raw rows only.

| file | what |
|---|---|
| figure-10.svg | Zipf: memory, update time, recall, precision, error against k; update time against skew |
| figure-11.svg | Zipf: precision, error, recall against skew, then against epsilon |
| figure-12-STREAM.svg | real: precision, error, recall against k, then epsilon; time, error, recall against c |
| figure-13-STREAM.svg | the frontier: labels released and errors against memory, a column for each (epsilon, delta) |
| figure-14-STREAM.svg | what privacy costs: each summary apart, all that is released from it and what is not private |
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import matplotlib.style
from matplotlib.figure import Figure

from experiments.methods import CEILING, METHODS, PLAIN
from experiments.methods.summaries import EXACT
from experiments.plan import FRONTIER, GRID
from experiments.report.claims.words import NAMES, extent
from experiments.report.fingerprints import can_release, longest
from experiments.report.keys import FOUR
from experiments.report.looks import BY_SUMMARY, legend, summary_of
from experiments.report.panels import curve, panel, short
from experiments.report.series import COMMON, budgets, frontier, select, streams

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from experiments.report.panels import Curve
    from experiments.report.series import Along, Metric
    from experiments.results import Row

__all__ = ["draw", "figures"]

STYLE: Final = Path(__file__).with_name("style.mplstyle")
WIDTH: Final = 7.0
"""Inches: both columns of a printed page."""
ACROSS: Final = 3
"""Panels of a row of the paper's figures."""
AROUND: Final = 1.1
"""Inches of height for a title, a legend and its note."""
LINE: Final = 0.2
"""For one more line of them."""
OF_GRID: Final = 1.7
"""Inches of height for a row of three panels, each with its own axes in words."""
OF_FRONTIER: Final = 1.4
"""For a row whose panels share the words of their axes."""
OF_SUMMARIES: Final = 1.15
"""The same, where six rows have to fit a page."""

RELEASES: Final = tuple(
    key for key, method in METHODS.items() if method.family != PLAIN and not key.endswith("-candidates")
)
"""What is compared in the paper's figures; figure 14 has every method."""
COSTS: Final = tuple(
    key
    for number, key in enumerate(RELEASES)
    if METHODS[key].summary not in [METHODS[before].summary for before in RELEASES[:number]]
)
"""The first method of each summary: what is released from a summary changes neither its memory nor its speed."""


class Panel(NamedTuple):
    """One panel of the grid: a metric against what is swept, and whose."""

    metric: Metric
    along: Along
    methods: Sequence[str] = RELEASES


FIGURE_10: Final = (
    Panel("memory_bytes", "k", COSTS),
    Panel("update_ns", "k", COSTS),
    Panel("recall", "k"),
    Panel("precision", "k"),
    Panel("relative_error", "k"),
    Panel("update_ns", "skew", COSTS),
)
FIGURE_11: Final = (
    Panel("precision", "skew"),
    Panel("relative_error", "skew"),
    Panel("recall", "skew"),
    Panel("precision", "epsilon"),
    Panel("relative_error", "epsilon"),
    Panel("recall", "epsilon"),
)
FIGURE_12: Final = (
    Panel("precision", "k"),
    Panel("relative_error", "k"),
    Panel("recall", "k"),
    Panel("precision", "epsilon"),
    Panel("relative_error", "epsilon"),
    Panel("recall", "epsilon"),
    Panel("update_ns", "factor", COSTS),
    Panel("relative_error", "factor"),
    Panel("recall", "factor"),
)
FIGURE_13: Final[tuple[Metric, ...]] = ("released", "absolute_error", "relative_error")
"""The rows of the frontier."""
FIGURE_14: Final[tuple[tuple[Along, Metric], ...]] = (
    ("k", "recall"),
    ("k", "precision"),
    ("k", "relative_error"),
    ("epsilon", "recall"),
    ("epsilon", "precision"),
    ("epsilon", "relative_error"),
)
"""The rows of what privacy costs; its columns are the summaries."""


WORDS: Final[dict[str, str]] = {
    "memory_bytes": "memory",
    "update_ns": "update time",
    "relative_error": "relative error",
    "absolute_error": "absolute error",
    "released": "labels released",
    "epsilon": "ε",
    "factor": "the factor c",
}
"""What a title says for a metric or a sweep, where that is not its name."""
STREAMS: Final = {
    "zipf": "Zipf",
    "word-pairs": "word pairs",
    "dependencies": "package dependencies",
    "trace": "trace (the user's own)",
    "trace-stand-in": "trace stand-in (synthetic)",
}
"""What a title says for a stream, where that is not its name."""
SUMMARIES: Final = {summary_of(key): NAMES[key] for key in FOUR}
"""What a title says for a summary."""


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw every figure that the rows have anything for, and return the files; the same rows give the same bytes.

    Args:
        rows: raw results; sweeps, points and streams that they lack are left out.
        folder: where the files go; made if it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    with matplotlib.style.context(["default", STYLE]):
        for name, figure in figures(rows):
            path = folder / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None, "Creator": None, "Title": figure.get_suptitle()})
            drawn.append(path)
    return drawn


def figures(rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    """Make every figure, one at a time, with the stem of its file; `draw` sets the style sheet."""
    grid = [row for row in rows if row.sweep == GRID]
    of = {stream: [row for row in grid if row.stream == stream] for stream in streams(rows)}
    if "zipf" in of:
        yield "figure-10", _grid("Figure 10", of["zipf"], FIGURE_10)
        yield "figure-11", _grid("Figure 11", of["zipf"], FIGURE_11)
    for stream, own in of.items():
        if stream != "zipf":
            yield f"figure-12-{stream}", _grid("Figure 12", own, FIGURE_12)
    for stream in streams(rows, sweep=FRONTIER):
        own = [row for row in rows if row.sweep == FRONTIER and row.stream == stream]
        yield f"figure-13-{stream}", _frontier(own)
    for stream, own in of.items():
        yield f"figure-14-{stream}", _summaries(own)


def _grid(title: str, rows: Sequence[Row], panels: Sequence[Panel]) -> Figure:
    """Return a figure of three columns: one stream, one panel for each metric and sweep."""
    figure = Figure(figsize=(WIDTH, AROUND + OF_GRID * len(panels) / ACROSS))
    axes = figure.subplots(len(panels) // ACROSS, ACROSS)
    for place, letter, (metric, along, methods) in zip(axes.flat, ascii_lowercase, panels, strict=False):
        panel(place, list(_curves(rows, methods, along, metric).values()), along, metric)
        place.set_title(f"({letter}) {_words(metric)} against {_words(along)}")
    note = _note(rows)
    if any(one.methods is COSTS for one in panels):
        note += "\nTime and memory are the summary's, whatever is released from it: one line for each summary"
    if any(one.along == "epsilon" for one in panels):
        note += _silent(rows)
    figure.suptitle(f"{title}. {_stream(rows)}")
    columns = (("space-saving", EXACT), ("misra-gries",), ("count-min",), ("count-sketch",))
    legend(figure, _present(RELEASES, rows), columns, note)
    return figure


def _summaries(rows: Sequence[Row]) -> Figure:
    """Return figure 14: one column for each summary, so that what is released from it stands beside what it says."""
    columns = {
        summary: [key for key in METHODS if summary_of(key) in (summary, EXACT)]
        for summary in BY_SUMMARY
        if summary != EXACT
    }
    figure = Figure(figsize=(WIDTH, AROUND + LINE + OF_SUMMARIES * len(FIGURE_14)))
    axes = figure.subplots(len(FIGURE_14), len(columns))
    letters = iter(ascii_lowercase)
    for (along, metric), across in zip(FIGURE_14, axes, strict=True):
        curves = _curves(rows, METHODS, along, metric)
        for (summary, methods), place in zip(columns.items(), across, strict=True):
            panel(place, [curves[key] for key in methods], along, metric, beside=list(curves.values()))
            place.set_title(f"({next(letters)}) {SUMMARIES[summary]}")
    _share_labels(axes)
    figure.suptitle(f"Figure 14. {_stream(rows)}: what privacy costs")
    legend(
        figure,
        _present(METHODS, rows),
        (("space-saving", "misra-gries"), ("count-min", EXACT), ("count-sketch",)),
        _note(rows) + _silent(rows),
    )
    return figure


def _frontier(rows: Sequence[Row]) -> Figure:
    """Return figure 13: one column for each (epsilon, delta), one row for each metric."""
    stream = rows[0].stream
    columns = budgets(rows, stream=stream)
    methods = _present(METHODS, rows)
    points = {
        (budget, key): frontier(rows, stream=stream, method=key, epsilon=budget[0], delta=budget[1])
        for budget in columns
        for key in methods
    }
    figure = Figure(figsize=(WIDTH, AROUND + OF_FRONTIER * len(FIGURE_13)))
    axes = figure.subplots(len(FIGURE_13), len(columns), squeeze=False)
    letters = iter(ascii_lowercase)
    for metric, across in zip(FIGURE_13, axes, strict=True):
        curves = {(budget, key): curve(key, own, metric, at="memory_bytes") for (budget, key), own in points.items()}
        for budget, place in zip(columns, across, strict=True):
            own = [curves[budget, key] for key in methods]
            panel(place, own, "memory", metric, beside=list(curves.values()))
            place.set_title(f"({next(letters)}) ε = {short(budget[0])}, δ = {short(budget[1])}")
    _share_labels(axes)
    figure.suptitle(f"Figure 13. {_stream(rows)}: the frontier")
    note = f"{_bars(rows)}. Dashed across: without a bound on memory"
    legend(figure, methods, (("space-saving",), ("misra-gries",), (EXACT,)), note)
    return figure


def _curves(rows: Sequence[Row], methods: Iterable[str], along: Along, metric: Metric) -> dict[str, Curve]:
    """Return the curves of methods in one sweep of one stream."""
    stream = rows[0].stream
    return {key: curve(key, select(rows, stream=stream, method=key, along=along), metric) for key in methods}


def _present(methods: Iterable[str], rows: Sequence[Row]) -> list[str]:
    """Return the methods that the rows have."""
    found = {row.method for row in rows}
    return [key for key in methods if key in found]


def _share_labels(axes: NDArray[Any]) -> None:
    """Leave to the first panel of a row what is the same in all, and to the last row of a sweep its values."""
    for row, below in zip(axes, (*axes[1:], None), strict=True):
        for place in row[1:]:
            place.set_ylabel("")
            place.tick_params(labelleft=False, left=False)
        if below is not None and row[0].get_xlabel() == below[0].get_xlabel():
            for place in row:
                place.set_xlabel("")
                place.tick_params(labelbottom=False, bottom=False)


def _words(name: str) -> str:
    return WORDS.get(name, name)


def _stream(rows: Sequence[Row]) -> str:
    """Return which stream it is, and how long."""
    length, distinct = extent(row.length for row in rows), extent(row.distinct for row in rows)
    return f"Stream: {STREAMS.get(rows[0].stream, rows[0].stream)}; {length} items, {distinct} labels"


def _note(rows: Sequence[Row]) -> str:
    """Return what holds for every panel of the grid."""
    skew = "" if rows[0].skew is None else f", skew {short(COMMON.skew)}"
    delta = " and ".join(short(delta) for delta in sorted({row.delta for row in rows if row.delta is not None}))
    where = f"k = {COMMON.k}, ε = {short(COMMON.epsilon)}, capacity {COMMON.factor}k{skew}, δ = {delta}"
    return f"{_bars(rows)}; markers beside a tick are at its value\nUnless swept: {where}"


def _silent(rows: Sequence[Row]) -> str:
    """Return where nothing can be released, whatever the stream says: a recall of 0 that is no finding."""
    places = sorted({(row.epsilon, row.delta) for row in rows if row.epsilon and row.delta and not can_release(row)})
    return "".join(
        f"\nAt ε = {short(epsilon)} fingerprints of 64 bits let an envelope over labels by estimates release nothing of"
        f" more than {longest(epsilon, delta):,} items"
        for epsilon, delta in places
    )


def _bars(rows: Sequence[Row]) -> str:
    """Return what a marker and its bar are."""
    releases = Counter(
        (row.method, row.skew, row.k, row.factor, row.epsilon, row.delta, _capacity(row))
        for row in rows
        if row.epsilon is not None
    )
    return f"Mean of {extent(releases.values())} releases, bar from the 5th to the 95th percentile"


def _capacity(row: Row) -> int | None:
    """Return what tells points of the frontier apart; the ceiling has as many labels as there happen to be."""
    return None if METHODS[row.method].family == CEILING else row.capacity
