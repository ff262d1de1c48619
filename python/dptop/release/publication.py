"""What a mechanism makes public, and how it is planned: calibrated for a summary before anything is read or spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dptop.report import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from dptop.counters import Counters
    from dptop.release.request import Split
    from dptop.tracked import Tracked

__all__ = [
    "DISCRETE_GAUSSIAN",
    "DISCRETE_LAPLACE",
    "CountersSnapshot",
    "Facts",
    "Plan",
    "Published",
    "length_in_words",
    "noise_in_words",
    "rows_of",
    "share_fact",
]

DISCRETE_LAPLACE: Final = "discrete Laplace"
DISCRETE_GAUSSIAN: Final = "discrete Gaussian"

Facts = list[tuple[str, str]]
"""Public facts of one mechanism in words, by name, for `Release.explain`."""
CountersSnapshot = tuple[int, list[tuple[int, list[int]]]]
"""The length of the stream, and for each partition its minimum counter and its counters. PRIVATE."""


class Published(NamedTuple):
    """What a mechanism makes public.

    Attributes:
        rows: in any order.
        facts: what `Release.explain` says of the summary, the noise, the threshold and the counts.
        parameters: what was declared and what follows from it.
        noisy_minimum: one for each partition, if minima are published.
        noisy_length: if one was drawn.
        private: False if a seed for tests made something that the promise rests on.
        simultaneous: True if intervals hold at once whatever was asked for.
    """

    rows: list[Row]
    facts: Facts
    parameters: dict[str, Any]
    noisy_minimum: tuple[int, ...] = ()
    noisy_length: int | None = None
    private: bool = True
    simultaneous: bool = False


class Plan(NamedTuple):
    """A mechanism for a summary.

    Attributes:
        mechanism: its name.
        split: what its parts spend.
        publish: from a snapshot of the summary and a seed for tests to what is public; draws the noise.
    """

    mechanism: str
    split: Split
    publish: Callable[[Any, int | None], Published]


def noise_in_words(kind: str, scale: float, where: str, *, seeded: bool) -> tuple[str, str]:
    """Return the fact that tells of the noise."""
    source = "drawn exactly from the system's entropy" if not seeded else "determined by a seed"
    return "Noise", f"{kind} of scale {scale:.6g} {where}, {source}."


def length_in_words(split: Split, noisy_length: int | None) -> str:
    """Return where the length in a threshold comes from."""
    if noisy_length is None:
        return f"the declared length {split.declared}"
    total = split.labels.epsilon + split.length_epsilon
    part = f"{float(split.length_epsilon):.6g} of {float(total):.6g}"
    return f"the noisy length {noisy_length}, which took epsilon {part}"


def share_fact(share: float, length: str) -> tuple[str, str]:
    """Return the fact that tells of a share of a length, which is given in words."""
    return "Share", f"and only if its noisy count is at least {share:.12g} of {length}."


def rows_of(
    summary: Counters | Tracked, partition: int, kept: list[int], counts: list[int], intervals: list[tuple[int, int]]
) -> list[Row]:
    """Return the rows of what is kept: positions in a partition, with noisy counts and intervals."""
    labels = summary._labels(partition, kept)
    return [Row(label, v, *ends) for label, v, ends in zip(labels, counts, intervals, strict=True)]
