"""What each summary releases at equal memory: `python -m benchmarks.thresholds` writes benchmarks/thresholds.md.

All draws come from seeds, so that a run repeats the page.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

import dptop
from benchmarks.markdown import table
from dptop.envelope import Shape, beta_within, count_min_shape, count_sketch_shape, fixed_labels, noise_at_release
from dptop.envelope.rows import EQUAL_FINGERPRINTS
from dptop.mechanism import ENVELOPE, MISRA_GRIES, MISRA_GRIES_PUBLISHED, PAPER, SELECTED, STABLE, SketchNoise
from dptop.privacy import PrivacyParameters
from dptop.release import Request, plan
from dptop.tracked import ESTIMATES, SPACE_SAVING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dptop.envelope import Envelope, LabelEnvelope, SketchError

PAGE: Final = Path(__file__).with_name("thresholds.md")
EPSILON: Final = 1.0
DELTAS: Final = ("1e-6", "1e-9")
MEMORIES: Final = (100_000, 1_000_000)
LENGTH: Final = 10**6
LABELS: Final = 100_001
SEED: Final = 20_240_607
RELEASES: Final = 16
SQUARES: Final = LENGTH**2 // 25
"""What is expected of the sum of squared counts where a CountSketch is shaped: a guess, not looked up."""
PARTS: Final = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
"""Of the memory, tried for labels beside a sketch."""
BYTES: Final = {SPACE_SAVING: 39, ESTIMATES: 48}
"""About what a label takes that is tracked beside a sketch."""
SELECTED_DEPTHS: Final = {dptop.CountMin: 4, dptop.CountSketch: 7}
"""As of `dptop top`: the threshold does not depend on them."""
INTRODUCTION: Final = f"""# Thresholds at equal memory

Written by `python -m benchmarks.thresholds`; not edited. {LENGTH:,} items of Zipf 1.1 over {LABELS:,} labels, epsilon
= {EPSILON:g}, {RELEASES} releases of each summary, all from seeds.

* *Needs*: a label with this count is above the threshold before noise, whatever the summary's counters or candidates
  may be off by. For CountSketch as far as its estimate is right: it errs to either side.
* *Noise*: the standard deviation of a label's count from release to release, in the middle of the 100 most frequent.
* *Bias*: how far the mean count of a label is from its true count, at the most, of the labels in every release.
* *Labels*: how many are released, on average.
* The length is declared, {LENGTH:,}, where a threshold or the bias needs one. Memory is that of all counters and cells.
  A sketch has the part of it, and the shape, that makes the threshold smallest; for `selected`, half of it, and few
  rows.
"""


class Row(NamedTuple):
    """What is said of one summary and mechanism."""

    summary: str
    mechanism: str
    shape: str
    memory: str
    needs: str = "-"
    noise: str = "-"
    bias: str = "-"
    labels: str = "-"


@cache
def stream() -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the items."""
    chances = np.arange(1, LABELS + 1, dtype=np.float64) ** -1.1
    return np.random.default_rng(SEED).choice(LABELS, size=LENGTH, p=chances / chances.sum())


@cache
def true_counts() -> list[int]:
    """Return the count of every label."""
    counts: list[int] = np.bincount(stream(), minlength=LABELS).tolist()
    return counts


def counted(summary: dptop.Summary) -> Any:
    """Count the stream with an empty summary and return it."""
    summary.extend(stream())
    return summary


@cache
def counters(kind: type[dptop.SpaceSaving] | type[dptop.MisraGries], memory: int) -> Any:
    """Return the summary with the largest capacity that takes no more memory; the stream is counted."""
    fits, too_large = memory // 100, memory // 20
    while fits + 1 < too_large:
        capacity = (fits + too_large) // 2
        if counted(kind(capacity))._tables.heap_bytes() <= memory:
            fits = capacity
        else:
            too_large = capacity
    return counted(kind(fits))


def measured(summary: Any, mechanism: str, delta: float, shape: str, memory: int) -> Row:
    """Release a summary that has counted the stream, again and again, past the ledger: it is for this page alone."""
    share = 1e-6 if mechanism == PAPER else None  # so small that the capacity decides
    declared = LENGTH if mechanism in (PAPER, ENVELOPE) else None
    request = Request(epsilon=EPSILON, delta=delta, mechanism=mechanism, share=share, length=declared)
    planned = plan(request, summary)
    snapshot = summary._snapshot()
    results = [planned.publish(snapshot, seed) for seed in range(RELEASES)]
    found: defaultdict[Any, list[int]] = defaultdict(list)
    for result in results:
        for row in result.rows:
            found[row.item].append(row.count)
    always = {label: counts for label, counts in found.items() if len(counts) == RELEASES}
    top = sorted(always, key=lambda label: -true_counts()[label])[:100]
    bias = [statistics.fmean(counts) - true_counts()[label] for label, counts in always.items()]
    needs = _needs(summary, mechanism, snapshot, results[0].parameters)
    return Row(
        type(summary.oracle if isinstance(summary, dptop.Tracked) else summary).__name__,
        mechanism,
        shape,
        f"{memory:,}",
        "-" if needs is None else f"{needs:,}",
        f"{statistics.median(statistics.stdev(always[label]) for label in top):.1f}" if top else "-",
        f"{max(bias, key=abs):+.0f}" if bias else "-",
        f"{statistics.fmean(len(result.rows) for result in results):,.0f}",
    )


def _needs(summary: Any, mechanism: str, snapshot: Any, parameters: dict[str, Any]) -> int | None:
    """Return the smallest true count that is above the threshold whatever the counters are off by."""
    if mechanism in (STABLE, SELECTED):
        [(minimum, _)] = snapshot[1]
        return int(minimum + parameters["offset"] + 1)
    if mechanism in (MISRA_GRIES, MISRA_GRIES_PUBLISHED):
        [(_, counts)] = snapshot[1]
        return int(parameters["threshold"] + (LENGTH - sum(counts)) // (summary.capacity + 1))
    return int(parameters["threshold"] + 1) if "threshold" in parameters else None


def of_counters(memory: int, delta: float) -> Iterator[Row]:
    """Yield the rows of SpaceSaving and Misra-Gries."""
    for kind, mechanisms in (
        (dptop.SpaceSaving, (STABLE, PAPER)),
        (dptop.MisraGries, (MISRA_GRIES, MISRA_GRIES_PUBLISHED)),
    ):
        summary = counters(kind, memory)
        for mechanism in mechanisms:
            shape = f"{summary.capacity:,} counters"
            yield measured(summary, mechanism, delta, shape, summary._tables.heap_bytes())


def of_sketch(
    kind: type[dptop.CountMin] | type[dptop.CountSketch], candidates: str, mechanism: str, memory: int, delta: float
) -> Row:
    """Return the row of a sketch with labels tracked beside it."""
    if mechanism == SELECTED:
        depth, capacity = SELECTED_DEPTHS[kind], memory // 2 // BYTES[candidates]
        width = memory // 2 // (8 * depth)
    else:
        best = min(shapes(kind, candidates, memory, delta), default=None)
        if best is None:
            return Row(kind.__name__, f"{mechanism}, {candidates}", "none: no envelope holds", "-")
        _, capacity, width, depth = best
    summary = counted(dptop.Tracked(kind(width, depth, seed=SEED), capacity, candidates))
    shape = f"{capacity:,} labels, {depth} x {width:,} cells"
    taken = summary._labelled.heap_bytes() + 8 * width * depth
    row = measured(summary, mechanism, delta, shape, taken)
    return row if mechanism == SELECTED else row._replace(mechanism=f"{mechanism}, {candidates}")


def shapes(
    kind: type[dptop.CountMin] | type[dptop.CountSketch], candidates: str, memory: int, delta: float
) -> Iterator[tuple[int, int, int, int]]:
    """Yield (threshold, capacity, width, depth), the best for each part of the memory that labels may take."""
    whole = PrivacyParameters.of(EPSILON, delta)

    @cache
    def noise_of(depth: int) -> tuple[SketchNoise, Any]:
        return SketchNoise.of(None, whole, depth)

    for part in PARTS:
        for_labels = int(part * memory)
        capacity = for_labels // BYTES[candidates]

        def form(
            error: SketchError, *, within: int | None, capacity: int = capacity
        ) -> Envelope | LabelEnvelope | None:
            made, left = noise_of(error.depth)  # type: ignore[attr-defined]  # of either sketch
            if candidates == SPACE_SAVING:
                tie = dptop.Tie.LEAST_RECENT
                return fixed_labels(error, delta=left, capacity=capacity, tie=tie, state=made.state, within=within)
            beta = beta_within(left, made.state.epsilon)
            return noise_at_release(error, beta=beta, capacity=capacity, state=made.state, within=within)

        for shape in _shaped(kind, memory - for_labels, lambda depth: noise_of(depth)[0].cells, form):
            yield LENGTH // capacity + shape.claim.errors, capacity, shape.width, shape.depth


def _shaped(kind: type[Any], cells: int, noise_of: Callable[[int], Any], form: Any) -> Iterator[Shape[Any]]:
    if kind is dptop.CountMin:
        found = [count_min_shape(cells, length=LENGTH, noise_of=noise_of, form=form, sharing=EQUAL_FINGERPRINTS)]
    else:
        found = [
            count_sketch_shape(
                cells,
                length=LENGTH,
                noise_of=noise_of,
                form=form,
                expected_squares=squares,
                fully_random_signs=True,
                sharing=EQUAL_FINGERPRINTS,
            )
            for squares in (SQUARES, None)
        ]
    yield from (shape for shape in found if shape is not None)


def rows(memory: int, delta: float) -> Iterator[Row]:
    """Yield the rows of one table."""
    yield from of_counters(memory, delta)
    for kind in (dptop.CountMin, dptop.CountSketch):
        for candidates, mechanism in ((SPACE_SAVING, SELECTED), (SPACE_SAVING, ENVELOPE), (ESTIMATES, ENVELOPE)):
            yield of_sketch(kind, candidates, mechanism, memory, delta)


def page() -> str:
    """Return the whole page."""
    head = ("summary", "mechanism", "counters, cells", "bytes", "needs", "noise", "bias", "labels")
    tables = (
        f"## {memory // 1000:,} kB, delta = {delta}\n\n" + table(head, rows(memory, float(delta)))
        for memory in MEMORIES
        for delta in DELTAS
    )
    return "\n".join((INTRODUCTION, *tables))


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
