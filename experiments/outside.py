"""An outside reference: `python -m experiments.outside` checks exact counts with DuckDB, and recall with DataSketches.

It needs the packages of the group `test`, which the experiments themselves do without.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import datasketches
import duckdb
import numpy as np
import pyarrow as pa
import typer

import dptop
from benchmarks.machine import machine
from benchmarks.markdown import table
from benchmarks.peers.datasketches import holds, lg
from experiments.__main__ import SEED
from experiments.methods.exact import ExactCounts
from experiments.methods.metrics import Quality, Truth, quality
from experiments.plan import FACTOR, FULL, QUICK, SKEW
from experiments.run import Run, load, say
from experiments.streams import REAL
from experiments.streams.stream import MissingStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from experiments.streams.stream import Stream

__all__ = ["SUMMARIES", "Bounds", "Check", "check", "duckdb_counts", "page"]

KS: Final = (128, 1024)
PIECE: Final = 2**20
"""Items that are Python objects at a time."""
PACKAGES: Final = ("dptop", "datasketches", "duckdb", "pyarrow")
COMMITTED: Final = Path(__file__).parent / "results" / "outside.md"
INTRODUCTION: Final = """# An outside reference

Written by `python -m experiments.outside`; not edited.
{machine}

Exact counts are compared with DuckDB's `GROUP BY`, label by label. Beside the summaries of this library, *not private*,
stands the Frequent Items sketch of Apache DataSketches, with the fewest counters that it can have and that are at least
{factor} k; ours have as many. Each reports the labels whose estimate is at least n/k, and errors are means over these.
Bounds hold if the true count of every label that a summary has is within what the summary says it is.

Estimates of SpaceSaving and of Frequent Items are never too low, so that they miss no heavy label that they have. Those
of Misra-Gries are never too high, so that it reports no label that is not heavy, and misses some that hardly are.
"""


class Bounds(NamedTuple):
    """What a summary says of a label: its estimate, and what the true count cannot be below or above."""

    estimate: int
    low: int
    high: int


Said = dict[Any, Bounds]
"""By label."""


class Reported(NamedTuple):
    """One summary on one stream: how good it is, and how many of its labels are not within its bounds."""

    k: int
    summary: str
    counters: int
    quality: Quality
    outside_bounds: int


class Check(NamedTuple):
    """All that is checked on one stream.

    Attributes:
        stream: its name.
        length: its items.
        distinct: labels that occur.
        differing: labels whose count is another one in DuckDB.
        reported: what summaries say.
    """

    stream: str
    length: int
    distinct: int
    differing: int
    reported: list[Reported]

    @property
    def holds(self) -> bool:
        """Whether all exact counts are equal and all bounds hold."""
        return not self.differing and not any(row.outside_bounds for row in self.reported)


def duckdb_counts(items: pa.Array) -> ExactCounts:
    """Count every label with SQL, on one thread, so that the other core is left to others."""
    connection = duckdb.connect(config={"threads": 1})
    connection.register("items", pa.table({"label": items}))
    counted = connection.sql(
        "SELECT label, count(*) AS count FROM items GROUP BY label ORDER BY label"
    ).to_arrow_table()
    labels, counts = (column.combine_chunks() for column in counted.columns)
    return ExactCounts(labels.cast(items.type), counts.to_numpy())


def differing(ours: ExactCounts, theirs: ExactCounts) -> int:
    """Return how many labels have another count, or are missing, on one side."""
    if ours.labels.equals(theirs.labels):
        return int(np.count_nonzero(ours.counts != theirs.counts))
    pairs = [set(zip(x.labels.to_pylist(), x.counts.tolist(), strict=True)) for x in (ours, theirs)]
    return len({label for label, _ in pairs[0] ^ pairs[1]})


def frequent_items(items: pa.Array, counters: int) -> Said:
    """Count with Frequent Items of Apache DataSketches."""
    kind = (
        datasketches.frequent_items_sketch if pa.types.is_integer(items.type) else datasketches.frequent_strings_sketch
    )
    sketch = kind(lg(counters))
    update = sketch.update
    for item in _objects(items):
        update(item)
    found = sketch.get_frequent_items(datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES, 0)
    return {label: Bounds(estimate, low, high) for label, estimate, low, high in found}


def space_saving(items: pa.Array, counters: int) -> Said:
    """Count with SpaceSaving: a counter is too high by at most the smallest one, which is 0 while a slot is free."""
    summary = dptop.SpaceSaving(counters)
    summary.extend(items)
    counted = summary.private_counters()
    minimum = counted[-1][1] if len(counted) == counters else 0
    return {label: Bounds(v, v - minimum, v) for label, v in counted}


def misra_gries(items: pa.Array, counters: int) -> Said:
    """Count with Misra-Gries: a counter is too low by at most the items that none holds over the counters and one."""
    summary = dptop.MisraGries(counters)
    summary.extend(items)
    counted = summary.private_counters()
    lost = (len(items) - sum(v for _, v in counted)) // (counters + 1)
    return {label: Bounds(v, v, v + lost) for label, v in counted}


SUMMARIES: Final[dict[str, Callable[[pa.Array, int], Said]]] = {
    "dptop.SpaceSaving": space_saving,
    "dptop.MisraGries": misra_gries,
    "DataSketches Frequent Items": frequent_items,
}


def check(stream: Stream, ks: Iterable[int] = KS) -> Check:
    """Count a stream in every way and compare."""
    truth = Truth.of(stream.items)
    reported = []
    for k in ks:
        counters = holds(lg(FACTOR * k))
        for name, summary in SUMMARIES.items():
            said = summary(stream.items, counters)
            reported.append(Reported(k, name, counters, _quality(said, truth, k), _outside(said, truth)))
    differ = differing(truth.counts, duckdb_counts(stream.items))
    return Check(stream.name, truth.length, truth.distinct, differ, reported)


def _quality(said: Said, truth: Truth, k: int) -> Quality:
    least = truth.least_count(k)
    return quality({label: bounds.estimate for label, bounds in said.items() if bounds.estimate >= least}, truth, k)


def _outside(said: Said, truth: Truth) -> int:
    true = truth.counts_of(said.keys()).tolist()
    return sum(not b.low <= f <= b.high for b, f in zip(said.values(), true, strict=True))


def _objects(items: pa.Array) -> Iterator[Any]:
    for start in range(0, len(items), PIECE):
        yield from items.slice(start, PIECE).to_pylist()


def page(checks: Iterable[Check], facts: dict[str, str]) -> str:
    """Return the page."""
    checks = list(checks)
    exact = [
        (c.stream, f"{c.length:,}", f"{c.distinct:,}", f"{c.differing:,} differ" if c.differing else "all equal")
        for c in checks
    ]
    made = f"{facts['date']}, {facts['commit']}: {facts['packages']}; Python {facts['Python']}."
    return "\n".join(
        (
            INTRODUCTION.format(machine=made, factor=FACTOR),
            "## Exact counts\n",
            table(("stream", "items", "labels", "counts of DuckDB"), exact),
            "## Heavy labels\n",
            table(
                (
                    "stream", "k", "heavy", "summary", "counters", "reported",
                    "recall", "precision", "relative error", "error, items", "bounds",
                ),
                (_line(c, row) for c in checks for row in c.reported),
            ),
        )
    )  # fmt: skip


def _line(check: Check, row: Reported) -> tuple[str, ...]:
    found = row.quality
    return (
        check.stream,
        f"{row.k:,}",
        f"{found.heavy:,}",
        row.summary,
        f"{row.counters:,}",
        f"{found.released:,}",
        _or_dash(found.recall, "{:.3f}"),
        _or_dash(found.precision, "{:.3f}"),
        _or_dash(found.relative_error, "{:.2%}"),
        _or_dash(found.absolute_error, "{:,.1f}"),
        f"{row.outside_bounds:,} outside" if row.outside_bounds else "hold",
    )


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _checks(run: Run) -> Iterator[Check]:
    """Check every stream that can be had, and say which cannot."""
    for name in ("zipf", *REAL, "trace-stand-in"):
        try:
            stream = load(run, name, SKEW if name == "zipf" else None, 0)
        except MissingStream as reason:
            say(f"{name} is left out: {reason}")
            continue
        say(f"{name}: {len(stream):,} items")
        yield check(stream)


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Short streams: to see that it runs.")] = False,  # noqa: FBT002 - an option
    seed: Annotated[int, typer.Option(help="Of the streams that are drawn.")] = SEED,
) -> None:
    """Compare exact counts and summaries with those of other libraries; write a page. Fails where counts differ.

    The committed page is that of the seed of the committed results.
    """
    folder = Path("build/experiments/quick" if quick else "build/experiments")
    committed = not quick and seed == SEED
    checks = list(_checks(Run(seed, QUICK if quick else FULL, folder)))
    target = COMMITTED if committed else folder / f"seed-{seed}" / "outside.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(checks, machine(PACKAGES)))
    say(f"wrote {target}")
    if not all(found.holds for found in checks):
        say("some counts differ, or some bounds do not hold: see the page")
        sys.exit(1)


if __name__ == "__main__":
    typer.run(main)
