"""What shards cost: `python -m benchmarks.scale` checks the formulas of docs/scale.md and writes benchmarks/scale.md.

Formulas are worked out for 10^12 items on 1,000 executors, and compared with what happens at a size that runs here. All
draws come from seeds, so that a run repeats the page.
"""

from __future__ import annotations

import multiprocessing
import statistics
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

import dptop
from benchmarks.markdown import table
from benchmarks.memory import peak_bytes, reset_peak
from dptop.mechanism import StableThreshold
from dptop.privacy import PrivacyParameters
from dptop.release import Request, plan
from dptop.release.sharded import MOST_SUMMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from dptop.label import Label

PAGE: Final = Path(__file__).with_name("scale.md")
EPSILON: Final = 1.0
DELTA: Final = 1e-9
SEED: Final = 20_261_130
LENGTH: Final = 2**22
LABELS: Final = 100_001
SKEW: Final = 1.1
SHARDS: Final = (1, 4, 16, 64, 256)
CAPACITIES: Final = (512, 4096)
RELEASES: Final = 32
CAPACITY_AT_THE_CENTRE: Final = 65_536
CENTRES: Final = ((16, 1, "none"), (64, 1, "none"), (256, 1, "none"), (16, 500, "all"), (64, 500, "all"))
"""Shards, the count of every label, and which labels are selected then."""
SURELY: Final = 2
"""Times what is always found, from which the noise of a count is measured: no shard leaves such a label out."""
BYTES_A_COUNTER: Final = 38
"""Of a SpaceSaving of integers in memory; labels of text come on top."""
OTHER_BYTES: Final = 600
"""Of a SpaceSaving, whatever its capacity."""
INTRODUCTION: Final = f"""# Shards: formulas and what happens

Written by `python -m benchmarks.scale`; not edited. epsilon = {EPSILON:g}, delta = {DELTA:g}. What the formulas
are, and why, is in docs/scale.md. All draws come from seeds.

"""
CHECKED: Final = f"""* *Saved*: all shards in the saved form. *Noise*: of labels with more than {SURELY} times what is
  always found.
* *Above*, *below*: the most that the mean count of a label is off, of the labels in every release; the formulas are
  bounds.
* *Missed*: labels that are always found, by the formula, and that some release left out. There should be none.
* *Beyond*: releases with any true count outside its interval. All hold at once with probability 0.95.
"""
CENTRE: Final = """Peak memory of a process that reads the saved parts and releases them, above what it had before the
first one. All shards have the same labels, of which none is selected, or all are, by every shard.
"""


class Cost(NamedTuple):
    """What the formulas say of s shards of capacity K on a stream of n items.

    Attributes:
        memory: bytes of one shard; as many come to the centre from each, about half of it in the saved form.
        offset: 1 + G of the selection in a shard.
        noise: standard deviation of a count.
        above: the most that a count exceeds the true one, besides noise: n/K.
        finds: the count from which a label that is spread evenly is selected, whatever the counters are: by every shard
            if they hold equally many items, by one of them otherwise.
    """

    memory: int
    offset: int
    noise: float
    above: int
    finds: int


def cost(length: int, shards: int, capacity: int) -> Cost:
    """Work the formulas out."""
    central = shards > MOST_SUMMED
    epsilon = Fraction(EPSILON) / (2 if central else 1)
    offset = StableThreshold.of(PrivacyParameters.of(float(epsilon), DELTA)).offset
    a = float(np.exp(-float(epsilon)))
    one = float(np.sqrt(2 * a)) / (1 - a)
    noise = one if central else one * shards**0.5
    memory, above = BYTES_A_COUNTER * capacity + OTHER_BYTES, length // capacity
    return Cost(memory, offset, noise, above, above + shards * (offset + 1))


def stream() -> npt.NDArray[np.int64]:
    """Return the items: Zipf's law, labels in the order of their ranks."""
    chances = np.arange(1, LABELS + 1, dtype=np.float64) ** -SKEW
    return np.random.default_rng(SEED).choice(LABELS, size=LENGTH, p=chances / chances.sum())


class Seen(NamedTuple):
    """What a sharded release does on the stream, over `RELEASES` draws of noise.

    Attributes:
        mechanism: the form that was taken.
        memory: bytes of the largest shard.
        saved: bytes of all shards in the saved form.
        noise: standard deviation of a count, of labels that no shard leaves out; None if there are none.
        above: the most that a mean count exceeds the true one.
        below: the most that one is below it.
        missed: labels above `Cost.finds` that some release leaves out.
        labels: mean of the labels released.
        beyond: part of the releases in which a true count is outside its interval.
    """

    mechanism: str
    memory: int
    saved: int
    noise: float | None
    above: int
    below: int
    missed: int
    labels: float
    beyond: float


def seen(items: npt.NDArray[np.int64], true: Mapping[Label, int], shards: int, capacity: int) -> Seen:
    """Count the stream in shards, each item in one drawn for it alone, and release it again and again."""
    place = np.random.default_rng([SEED, shards]).integers(shards, size=len(items))
    parts = []
    for number in range(shards):
        part = dptop.SpaceSaving(capacity)
        part.extend(items[place == number])
        parts.append(part)
    sharded = dptop.Sharded(parts)
    planned = plan(Request(epsilon=EPSILON, delta=DELTA), sharded)
    releases = [planned.publish(sharded._snapshot(), seed).rows for seed in range(RELEASES)]
    counts: dict[Label, list[int]] = {}
    for rows in releases:
        for row in rows:
            counts.setdefault(row.item, []).append(row.count)
    off = {label: statistics.fmean(of) - true[label] for label, of in counts.items() if len(of) == RELEASES}
    finds = cost(LENGTH, shards, capacity).finds
    spread = [statistics.stdev(of) for label, of in counts.items() if true[label] > SURELY * finds]
    return Seen(
        mechanism=planned.mechanism,
        memory=max(part._tables.heap_bytes() for part in parts),
        saved=sum(len(part.to_bytes()) for part in parts),
        noise=statistics.fmean(spread) if spread else None,
        above=round(max(off.values())),
        below=round(-min(off.values())),
        missed=sum(f > finds and label not in off for label, f in true.items()),
        labels=statistics.fmean(len(rows) for rows in releases),
        beyond=statistics.fmean(any(not r.low <= true[r.item] <= r.high for r in rows) for rows in releases),
    )


class AtTheCentre(NamedTuple):
    """Peak memory of a process that releases shards, above what it had before the first of them came, in bytes.

    Attributes:
        summaries: once all are there.
        release: after the release.
    """

    summaries: int
    release: int


def at_the_centre(shards: int, each: int) -> AtTheCentre:
    """Read shards with the same labels, each so many times, from their saved form, and release them.

    Run in a process of its own.
    """
    reset_peak()
    before, parts = peak_bytes(), []
    labels = CAPACITY_AT_THE_CENTRE - 1  # a free counter, so that the minimum is 0
    for _ in range(shards):
        part = dptop.SpaceSaving(CAPACITY_AT_THE_CENTRE)
        part.extend(np.arange(labels), weights=np.full(labels, each))
        parts.append(dptop.SpaceSaving.from_bytes(part.to_bytes()))
    summaries = peak_bytes()
    dptop.release(dptop.Sharded(parts), epsilon=EPSILON, delta=DELTA)
    return AtTheCentre(summaries - before, peak_bytes() - before)


def centres() -> Iterator[tuple[str, ...]]:
    """Yield the memory of the centre, each measured in a process of its own."""
    for shards, each, selected in CENTRES:
        with multiprocessing.get_context("spawn").Pool(1) as process:
            found = process.apply(at_the_centre, (shards, each))
        counters = shards * CAPACITY_AT_THE_CENTRE
        yield (
            f"{shards}",
            selected,
            f"{counters:,}",
            _megabytes(found.summaries),
            _megabytes(found.release),
            f"{found.summaries / counters:.0f}",
            f"{found.release / counters:.0f}",
        )


def worked_out() -> Iterator[tuple[str, ...]]:
    """Yield rows of formulas: a day of 10^12 items."""
    for shards, capacity in ((1_000, 4_096), (1_000, 65_536), (10_000, 65_536)):
        c = cost(10**12, shards, capacity)
        yield (
            f"{shards:,}",
            f"{capacity:,}",
            _megabytes(c.memory),
            _megabytes(c.memory * shards),
            f"{c.offset}",
            f"{c.noise:.1f}",
            f"{c.above:,}",
            f"{c.finds:,}",
            f"{c.finds / 10**12:.2e}",
        )


def checked(items: npt.NDArray[np.int64]) -> Iterator[tuple[str, ...]]:
    """Yield formulas beside what was seen, for each number of shards and capacity."""
    true: dict[Label, int] = dict(enumerate(np.bincount(items, minlength=LABELS).tolist()))
    for capacity in CAPACITIES:
        for shards in SHARDS:
            c, s = cost(LENGTH, shards, capacity), seen(items, true, shards, capacity)
            yield (
                f"{capacity:,}",
                f"{shards}",
                s.mechanism,
                f"{_megabytes(s.memory, 3)} / {_megabytes(c.memory, 3)}",
                _megabytes(s.saved, 2),
                f"{'-' if s.noise is None else f'{s.noise:.1f}'} / {c.noise:.1f}",
                f"{s.above:,} / {c.above:,}",
                f"{s.below:,} / {c.finds:,}",
                f"{s.missed}",
                f"{s.labels:,.0f}",
                f"{s.beyond:.2f}",
            )


def _megabytes(number: int, digits: int = 1) -> str:
    return f"{number / 1e6:,.{digits}f} MB"


def page() -> str:
    """Return the whole page."""
    of_a_day = ("shards", "capacity", "memory of one", "of all", "offset", "noise", "above", "always found", "of n")
    here = (
        *("capacity", "shards", "form", "memory", "saved", "noise", "above", "below", "missed", "labels", "beyond"),
    )
    centre = ("shards", "selected", "counters", "summaries", "with the release", "bytes a counter", "with the release")
    return INTRODUCTION + "\n".join(
        (
            "## 10^12 items, by the formulas\n\n" + table(of_a_day, worked_out()),
            f"## {LENGTH:,} items of Zipf {SKEW:g} over {LABELS:,} labels: seen / by the formula\n\n" + CHECKED,
            table(here, checked(stream())),
            f"## Memory at the centre, seen, of shards with {CAPACITY_AT_THE_CENTRE:,} integers each\n\n" + CENTRE,
            table(centre, centres()),
        )
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
