"""Results -> a page of tables in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import psutil

from benchmarks import goals
from benchmarks.machine import machine
from benchmarks.markdown import table
from benchmarks.peers import DISTRIBUTIONS
from benchmarks.plan import (
    CAPACITIES,
    COMMANDS,
    EXACT,
    HARD_CAPACITIES,
    INTEGERS,
    LINEAR,
    LINEAR_WIDTH,
    SKETCH_CAPACITIES,
    SKETCHES,
    SKEWED,
    STRINGS,
    THREADED,
)
from benchmarks.results import NotMeasuredError, Results

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Run", "page"]

TITLES: Final = {
    "int64-zipf-1.1": "int64, Zipf 1.1",
    "int64-zipf-1.5": "int64, Zipf 1.5",
    "int64-distinct": "int64, distinct",
    "string-zipf-1.1": "strings, Zipf 1.1",
    "string-zipf-1.5": "strings, Zipf 1.5",
    "string-distinct": "strings, distinct",
}
INTRODUCTION: Final = """# Speed and memory

Written by `make bench`; not edited. Public synthetic data: benchmarks/streams.py says how they are made.

* Every measurement is a process of its own, and a figure is the median of {rounds} of them, or of fewer where the table
  of fewer runs says so. The rounds take turns through all rows, so that a slow minute of the machine falls on all.
  Largest and smallest CPU time of a row are {spread:.0%} apart (median of all rows).
* Times are CPU time, user and system, per item, of the counting alone: packages are imported, the stream is in memory,
  and each peer has counted a thousand items, to load what it loads late. One thread, where a row does not say more.
* Peers get the Arrow or NumPy array that we get, or a list where they take nothing else. Exact counts by SQL include
  picking the 100 largest groups, which takes no time beside them; no other row includes reading its result.
* Memory is the growth of the process while it counts, and for ours at least what the summary says it takes. Growth is
  blind to pages that were free before: differences below {resolution} MiB say nothing.
"""
RESOLUTION: Final = 0.25
"""Mebibytes below which memory of a process says nothing."""
LOSSES: Final = """## Where we lose

Peers with less CPU time, less memory while counting or a better recall, same stream, same capacity; whole commands with
less CPU time or less time on the clock.

"""
NO_LOSSES: Final = """## Where we lose

Nowhere in this run: no peer took less CPU time or memory on a stream, or recalled more.
"""
SKETCHED: Final = """## Against sketches

Nanoseconds an item (times ours), recall of the top 100, peak memory while counting. As many counters as ours, or the
next number that a sketch allows; besides, approx_top_k and topK keep several counts of hashed labels for each counter,
and give a label a counter only once these let it pass. DataSketches takes one Python object a call.

"""
LINEARLY: Final = """## Linear sketches

int64, Zipf 1.1, rows of 10,000 cells: nanoseconds an item, peak memory while counting. Ours add up equal labels before
they reach the cells and count row by row; DataSketches takes one Python object a call.

"""
WHOLE: Final = """## Whole commands

From start to exit on the same file in the page cache; memory is that of the largest process. DuckDB has one thread
where a row does not say more; its command is the package duckdb-cli, in Python it is the package duckdb.

"""


DISTURBED: Final = 0.5
"""The load average from which on other work takes its part of the processor."""


class Run(NamedTuple):
    """What there is to say about a run as a whole."""

    rounds: int
    seconds: float
    load_before: float
    load_after: float


def page(results: Results, run: Run) -> str:
    """Return the whole page."""
    spreads = sorted(results.spread(*m) for m in results.measurements() if len(results.lines(*m)) > 1) or [0.0]
    sections = (
        INTRODUCTION.format(rounds=run.rounds, spread=spreads[len(spreads) // 2], resolution=RESOLUTION),
        _warning(run),
        _machine(run),
        _fewer_runs(results, run),
        _goals(results),
        _losses(results),
        _capacities(results),
        _exact(results),
        _sketches(results),
        _linear(results),
        _commands(results),
        _threads(results),
        _hard(results),
        _endless(results),
    )
    return "\n".join(section.rstrip() + "\n" for section in sections if section)


def _figure(results: Results, field: str, measurement: tuple[str, str, int], form: str, unit: float = 1) -> str:
    try:
        if field == "cpu_ns":
            value = results.cpu_ns(*measurement)
        elif field == "wall_ns":
            value = results.wall_ns(*measurement)
        else:
            value = results.median(field, *measurement)
    except NotMeasuredError:
        return "-"
    return form.format(value / unit)


def _against_ours(results: Results, name: str, stream: str, capacity: int) -> str:
    """Return nanoseconds, and how many times ours."""
    try:
        theirs, ours = results.cpu_ns(name, stream, capacity), results.cpu_ns("dptop", stream, capacity)
    except NotMeasuredError:
        return "-"
    return f"{theirs:.1f} ({theirs / ours:.2f}x)"


def _warning(run: Run) -> str:
    if run.load_before <= DISTURBED:
        return ""
    return (
        f"**Warning: the load average was {run.load_before:.1f} when the run started: other work disturbs the figures."
        " An idle machine gives lower ones.**\n"
    )


def _fewer_runs(results: Results, run: Run) -> str:
    """Say what has fewer runs than the others: the streams of each name."""
    fewer: dict[tuple[str, int], list[str]] = {}
    for measurement in results.measurements():
        runs = len(results.lines(*measurement))
        if runs < run.rounds:
            fewer.setdefault((measurement.name, runs), []).append(TITLES.get(measurement.stream, measurement.stream))
    if not fewer:
        return ""
    rows = ((name, "; ".join(dict.fromkeys(streams)), str(runs)) for (name, runs), streams in fewer.items())
    return f"## Fewer runs than {run.rounds}\n\n" + table(("row", "streams", "runs"), rows)


def _machine(run: Run) -> str:
    load = f"{run.load_before:.1f} at the start, {run.load_after:.1f} at the end, these processes included"
    rows = (
        *machine(DISTRIBUTIONS).items(),
        ("memory", f"{psutil.virtual_memory().total / 2**30:.0f} GiB"),
        ("duration", f"{run.seconds / 60:.1f} minutes, the making of the streams included"),
        ("load average", load),
    )
    return "## Machine and versions\n\n" + table(("what", "which"), rows)


def _goals(results: Results) -> str:
    words = {True: "met", False: "**missed**", None: ""}
    rows = ((row.input, row.goal, row.measured, row.ratio, words[row.met]) for row in goals.rows(results))
    return "## Goals\n\nCPU time per item at 10,000 counters, where a row does not say more.\n\n" + table(
        ("input", "goal", "measured", "beside", ""), rows
    )


def _losses(results: Results) -> str:
    rows = list(_faster_peers(results))
    if not rows:
        return NO_LOSSES
    return LOSSES + table(("stream", "capacity", "peer", "what"), rows)


def _faster_peers(results: Results) -> Iterator[tuple[str, str, str, str]]:
    beside = dict.fromkeys((*EXACT, *SKETCHES), "dptop") | {theirs: name for name, theirs in LINEAR.items() if theirs}
    for name, stream, capacity in results.measurements():
        if name not in beside:
            continue
        own = beside[name]
        try:
            ratio = results.cpu_ns(name, stream, capacity) / results.cpu_ns(own, stream, capacity)
        except NotMeasuredError:
            continue
        if ratio < 1:
            yield TITLES[stream], f"{capacity:,}", name, f"{ratio:.2f} of our CPU time"
        theirs, ours = (results.median("peak_bytes", who, stream, capacity) / 2**20 for who in (name, own))
        if theirs < ours - RESOLUTION:
            yield TITLES[stream], f"{capacity:,}", name, f"{theirs:.1f} MiB, ours {ours:.1f}"
        try:
            theirs, ours = (results.median("recall", who, stream, capacity) for who in (name, own))
        except NotMeasuredError:
            continue
        if theirs > ours:
            yield TITLES[stream], f"{capacity:,}", name, f"recall {theirs:.2f}, ours {ours:.2f}"
    for file in ("lines", "csv"):
        first, *others = (name for name, its_file in COMMANDS if its_file == file)
        for name in others:
            yield from _faster_command(results, file, name, first)


def _faster_command(results: Results, file: str, name: str, ours: str) -> Iterator[tuple[str, str, str, str]]:
    for field, what in (("cpu", "CPU time"), ("wall", "time on the clock")):
        try:
            ratio = results.median(field, name, file) / results.median(field, ours, file)
        except NotMeasuredError:
            continue
        if ratio < 1:
            yield f"{file}, whole command", "10,000", name, f"{ratio:.2f} of our {what}"


def _capacities(results: Results) -> str:
    def rows() -> Iterator[list[str]]:
        for stream in (*INTEGERS, *STRINGS):
            measurements = [("dptop", stream, capacity) for capacity in CAPACITIES]
            yield [f"{TITLES[stream]}: ns an item", *(_figure(results, "cpu_ns", m, "{:.1f}") for m in measurements)]
            yield ["bytes a counter in use", *(_bytes(results, *m) for m in measurements)]
            yield ["recall of the top 100", *(_figure(results, "recall", m, "{:.2f}") for m in measurements)]

    return "## Ours, from 1,000 to 1,000,000 counters\n\nBytes include the labels.\n\n" + table(
        ("", *(f"{capacity:,}" for capacity in CAPACITIES)), rows()
    )


def _bytes(results: Results, name: str, stream: str, capacity: int) -> str:
    try:
        tracked = results.median("tracked", name, stream, capacity)
    except NotMeasuredError:
        return "-"
    return _figure(results, "summary_bytes", (name, stream, capacity), "{:.0f}", tracked)


def _exact(results: Results) -> str:
    streams = (*INTEGERS, *STRINGS)
    times = (
        [name, *(_against_ours(results, name, stream, 10_000) for stream in streams)]
        for name in ("dptop", "dptop, Arrow", *EXACT)
    )
    memory = (
        [name, *(_figure(results, "peak_bytes", (name, stream, 10_000), "{:.1f}", 2**20) for stream in streams)]
        for name in ("dptop", *EXACT)
    )
    head = [TITLES[stream] for stream in streams]
    return (
        "## Against exact counts\n\nNanoseconds an item, and times ours at 10,000 counters. dptop takes integers"
        " from NumPy where its row does not say Arrow.\n\n"
        + table(("", *head), times)
        + "\nPeak memory while counting, MiB.\n\n"
        + table(("", *head), memory)
    )


def _sketches(results: Results) -> str:
    def rows() -> Iterator[list[str]]:
        for capacity in SKETCH_CAPACITIES:
            for name in ("dptop", *SKETCHES):
                cells = []
                for stream in SKEWED:
                    time = _against_ours(results, name, stream, capacity)
                    recall = _figure(results, "recall", (name, stream, capacity), "{:.2f}")
                    memory = _figure(results, "peak_bytes", (name, stream, capacity), "{:.1f} MiB", 2**20)
                    cells.append("-" if time == "-" else f"{time}, {recall}, {memory}")
                yield [name, f"{capacity:,}", *cells]

    return SKETCHED + table(("", "counters", *(TITLES[stream] for stream in SKEWED)), rows())


def _linear(results: Results) -> str:
    def rows() -> Iterator[list[str]]:
        for ours, theirs in LINEAR.items():
            for name in filter(None, (ours, theirs)):
                measurement = (name, "int64-zipf-1.1", LINEAR_WIDTH)
                memory = _figure(results, "peak_bytes", measurement, "{:.1f} MiB", 2**20)
                yield [name, _figure(results, "cpu_ns", measurement, "{:.1f}"), memory]

    return LINEARLY + table(("", "ns an item", "memory"), rows())


def _commands(results: Results) -> str:
    def rows() -> Iterator[list[str]]:
        for name, file in COMMANDS:
            measurement = (name, file, 10_000)
            yield [
                name,
                file,
                _figure(results, "cpu", measurement, "{:.2f}"),
                _figure(results, "wall", measurement, "{:.2f}"),
                _figure(results, "peak_bytes", measurement, "{:.0f}", 2**20),
            ]

    return WHOLE + table(("command", "file", "CPU, s", "clock, s", "peak memory, MiB"), rows())


def _threads(results: Results) -> str:
    names = ("dptop", "dptop, partitions=2", "dptop, partitions=2 threads=2")
    rows = (
        [f"{TITLES[stream]}, {capacity:,} counters"]
        + [
            f"{_figure(results, 'wall_ns', (name, stream, capacity), '{:.1f}')} / "
            f"{_figure(results, 'cpu_ns', (name, stream, capacity), '{:.1f}')}"
            for name in names
        ]
        for stream, capacity in THREADED
    )
    return "## Threads\n\nNanoseconds an item, on the clock / of CPU.\n\n" + table(("", *names), rows)


def _hard(results: Results) -> str:
    rows = (
        [
            stream,
            *(_figure(results, "cpu_ns", ("dptop", stream, capacity), "{:.1f}") for capacity in HARD_CAPACITIES),
        ]
        for stream in ("int64-distinct", "free-slot", "far-apart", "large-weights", "sawtooth")
    )
    return "## Hard streams\n\nNanoseconds an item; an ordinary stream first, for comparison.\n\n" + table(
        ("", *(f"{capacity:,} counters" for capacity in HARD_CAPACITIES)), rows
    )


def _endless(results: Results) -> str:
    try:
        samples = results.lines("dptop top, endless", "endless")[0]["samples"]
    except NotMeasuredError:
        return ""

    def rows() -> Iterator[list[str]]:
        before = (0, 0.0, 0)
        for sample in samples:
            items, seconds, resident = sample
            passed = seconds - before[1]  # 0 where a quick run is done within a tick of the clock
            rate = f"{(items - before[0]) / passed / 1e6:.1f}" if passed else "-"
            yield [f"{items / 1e6:.1f}", f"{seconds:.2f}", rate, f"{resident / 2**20:.1f}"]
            before = sample

    return "## Distinct lines on standard input, 10,000 counters\n\nOne run; CPU time of the process.\n\n" + table(
        ("million lines", "seconds", "million lines a second", "resident, MiB"), rows()
    )
