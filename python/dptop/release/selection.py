"""What `StableThreshold` lets pass of a table: drawn, compared and kept in one place for every release that selects."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dptop import noise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dptop.mechanism import StableThreshold

__all__ = ["Selected", "Table", "select"]

Table = tuple[int, list[int]]
"""The minimum counter of a table, and its counters. PRIVATE."""


class Selected(NamedTuple):
    """What may be published of one table.

    Attributes:
        minimum: the noisy minimum counter.
        counts: noisy counters by their positions in the table.
    """

    minimum: int
    counts: dict[int, int]


def select(stable: StableThreshold, tables: Iterable[Table], seed: int | None) -> list[Selected]:
    """Return what passes of each table: Z_0 for its minimum and one Z_x for each counter, all fresh.

    Args:
        stable: the mechanism of all of them, which owns the noise and the threshold.
        tables: one for each partition.
        seed: for tests.
    """
    tables = list(tables)
    draws = iter(noise.draw(stable.epsilon, sum(1 + len(counts) for _, counts in tables), seed))
    found = []
    for minimum, counts in tables:
        noisy_minimum = minimum + next(draws)
        noisy = [count + next(draws) for count in counts]
        found.append(Selected(noisy_minimum, {x: v for x, v in enumerate(noisy) if stable.keeps(v, noisy_minimum)}))
    return found
