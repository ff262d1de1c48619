"""What `StableThreshold` lets pass of a table: drawn, compared and kept in one place for every release that selects."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dptop import noise

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

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


def select(tables: Iterable[tuple[StableThreshold, Table]], epsilon: Fraction, seed: int | None) -> list[Selected]:
    """Return what passes of each table: Z_0 for its minimum and one Z_x for each counter, all fresh.

    Args:
        tables: each with the mechanism for its tie rule; all have the same epsilon.
        epsilon: that of the mechanisms.
        seed: for tests.
    """
    tables = list(tables)
    draws = iter(noise.draw(epsilon, sum(1 + len(counts) for _, (_, counts) in tables), seed))
    found = []
    for stable, (minimum, counts) in tables:
        noisy_minimum = minimum + next(draws)
        noisy = [count + next(draws) for count in counts]
        found.append(Selected(noisy_minimum, {x: v for x, v in enumerate(noisy) if stable.keeps(v, noisy_minimum)}))
    return found
