"""SpaceSaving made public: by the noisy minimum, or as in the paper's Algorithm 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dptop import noise
from dptop.errors import InvalidParameter
from dptop.mechanism import PAPER, STABLE, PaperThreshold, StableThreshold
from dptop.release.publication import (
    DISCRETE_LAPLACE,
    Facts,
    Plan,
    Published,
    length_in_words,
    noise_in_words,
    rows_of,
    share_fact,
)
from dptop.release.selection import select

if TYPE_CHECKING:
    from dptop.counters import SpaceSaving
    from dptop.release.publication import CountersSnapshot
    from dptop.release.request import Request
    from dptop.report import Row

__all__ = ["by_noisy_minimum", "by_paper"]

EXCEEDS = ("Counts", "a count exceeds the true count by up to the minimum counter, besides the noise.")


def by_noisy_minimum(request: Request, summary: SpaceSaving) -> Plan:
    """Plan a release by `StableThreshold`."""
    split = request.split()
    stable = StableThreshold.of(split.labels, summary.tie)

    def publish(snapshot: CountersSnapshot, seed: int | None) -> Published:
        length, tables = snapshot
        least_count, noisy_length = None, None
        if request.share is not None:
            public_length, noisy_length = split.public_length(length, seed)
            least_count = request.least_count(public_length)
        selected = select(stable, tables, seed)
        rows: list[Row] = []
        for partition, (noisy_minimum, counts) in enumerate(selected):
            kept = [x for x, v in counts.items() if least_count is None or v >= least_count]
            published = [counts[x] for x in kept]
            intervals = stable.intervals(
                published,
                noisy_minimum,
                1 - request.confidence,
                simultaneous_over=summary._table_capacity if request.simultaneous else None,
                tables=summary.partitions,
            )
            rows += rows_of(summary, partition, kept, published, intervals)
        minima = [noisy_minimum for noisy_minimum, _ in selected]

        shown = ", ".join(map(str, minima[:8])) + (", ..." if len(minima) > 8 else "")
        of_partition = " of its partition" if summary.partitions > 1 else ""
        rule = f"exceeds the noisy minimum{of_partition}, {shown}, by more than {stable.offset}"
        facts = [
            _counted_by(summary),
            noise_in_words(
                DISCRETE_LAPLACE, stable.scale, "on every counter and on the minimum counter", seeded=seed is not None
            ),
            ("Threshold", f"a label is released only if its noisy count {rule}."),
            EXCEEDS,
        ]
        if request.share is not None:
            facts.insert(3, share_fact(request.share, length_in_words(split, noisy_length)))
        parameters = _declared(summary) | {"scale": stable.scale, "offset": stable.offset}
        return Published(rows, facts, parameters, tuple(minima), noisy_length)

    return Plan(STABLE, split, publish)


def by_paper(request: Request, summary: SpaceSaving) -> Plan:
    """Plan a release by `PaperThreshold`."""
    if summary.partitions > 1:
        raise InvalidParameter(
            "mechanism 'paper' must have one table, whose minimum the length bounds;"
            f" got partitions={summary.partitions}. Count with one partition, or use 'stable-threshold'."
        )
    split = request.split(bounds_length=True)
    paper = PaperThreshold.of(split.labels, summary.capacity, request.exact_share, summary.tie)

    def publish(snapshot: CountersSnapshot, seed: int | None) -> Published:
        length, [(_, counts)] = snapshot
        public_length, noisy_length = split.public_length(length, seed)
        draws = noise.draw(paper.epsilon, len(counts), seed)
        noisy = [count + draw for count, draw in zip(counts, draws, strict=True)]
        kept = [x for x, v in enumerate(noisy) if paper.keeps(v, public_length)]
        published = [noisy[x] for x in kept]
        intervals = paper.intervals(
            published, public_length, 1 - request.confidence, simultaneous=bool(request.simultaneous)
        )
        threshold = paper.threshold(public_length)
        rule = f"exceeds {threshold}: the larger of share * N - {paper.gap} and N / capacity + 1 + {paper.gap}"
        bound = f"N is {length_in_words(split, noisy_length)}"
        if noisy_length is not None:
            bound += ", lifted so that it is no shorter than the stream but with a chance of half of delta"
        facts: Facts = [
            _counted_by(summary),
            noise_in_words(DISCRETE_LAPLACE, paper.scale, "on every counter", seeded=seed is not None),
            ("Threshold", f"a label is released only if its noisy count {rule}, rounded down."),
            ("Share", f"{request.share:.12g}. {bound}."),
            EXCEEDS,
        ]
        parameters = _declared(summary) | {"scale": paper.scale, "gap": paper.gap, "threshold": threshold}
        rows = rows_of(summary, 0, kept, published, intervals)
        return Published(rows, facts, parameters, noisy_length=noisy_length)

    return Plan(PAPER, split, publish)


def _declared(summary: SpaceSaving) -> dict[str, object]:
    return {"capacity": summary.capacity, "tie": summary.tie.value, "partitions": summary.partitions}


def _counted_by(summary: SpaceSaving) -> tuple[str, str]:
    partitions = f", {summary.partitions} partitions" if summary.partitions > 1 else ""
    evicting = f"evicting the {summary.tie.value} minimum{partitions}"
    return "Counted by", f"SpaceSaving, capacity {summary.capacity}, {evicting}."
