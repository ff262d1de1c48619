"""What the shards let pass: each selects its labels by itself, and says what it adds to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dptop import noise
from dptop.mechanism import StableThreshold
from dptop.release.selection import select
from dptop.sharded import AS_STORED, Sharded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dptop.label import Label
    from dptop.privacy import PrivacyParameters
    from dptop.release.selection import Table

__all__ = ["Addend", "Chosen", "Passed", "ShardSelection"]


class Passed(NamedTuple):
    """A label that one table of one shard selected.

    Attributes:
        counter: PRIVATE.
        noisy: the noisy counter.
        noisy_minimum: of the table.
    """

    counter: int
    noisy: int
    noisy_minimum: int


class Addend(NamedTuple):
    """What one shard adds to a label that it selected: to the count, and to the ends of the interval around it."""

    amount: int
    low: int
    high: int


class Chosen(NamedTuple):
    """What the shards let pass.

    Attributes:
        minima: the noisy minimum of each table, all shards in a row.
        sums: for each label what the shards add to it: those that selected it, and to the high end those that did not.
            PRIVATE where exact counters are added.
    """

    minima: list[int]
    sums: dict[Label, Addend]


NOTHING: Final = Addend(0, 0, 0)


class ShardSelection:
    """The shards of a release, with the mechanism that selects in each: all have the same epsilon and delta.

    Attributes:
        stables: the mechanism of each shard, by its tie rule.
        sizes: the largest number of counters of each table, all shards in a row. Public.
        elsewhere: whether shards may hold labels that they did not select and others did.
    """

    def __init__(self, sharded: Sharded, parameters: PrivacyParameters) -> None:
        self.sharded = sharded
        by_tie = {tie: StableThreshold.of(parameters, tie) for tie in {shard.tie for shard in sharded.shards}}
        self.stables = [by_tie[shard.tie] for shard in sharded.shards]
        self.sizes = [shard._table_capacity for shard in sharded.shards for _ in range(shard.partitions)]
        self.elsewhere = sharded.partition == AS_STORED and len(sharded) > 1

    def choose(
        self, tables: Iterable[list[Table]], seed: int | None, reach: int, adds: Callable[[Passed], Addend]
    ) -> Chosen:
        """Let every shard select, one after the other: of one shard at a time all counters are here as Python numbers.

        Args:
            tables: of each shard.
            seed: for tests.
            reach: no draw of the selection is below its negative, but with the chance that intervals may fail.
            adds: what a shard adds to a label that it selected.
        """
        minima: list[int] = []
        sums: dict[Label, Addend] = {}
        all_ceilings = 0
        for number, (shard, stable, of_shard) in enumerate(zip(self.sharded.shards, self.stables, tables, strict=True)):
            of_its_own = None if seed is None else seed + number * noise.NEXT_SHARD
            selected = select(stable, of_shard, of_its_own)
            of_its_tables = [minimum for minimum, _ in selected]
            ceiling = self._ceiling(stable, of_its_tables, reach)
            for partition, (minimum, noisy) in enumerate(selected):
                counters = of_shard[partition][1]
                for x, label in zip(noisy, shard._labels(partition, list(noisy)), strict=True):
                    more, so_far = adds(Passed(counters[x], noisy[x], minimum)), sums.get(label, NOTHING)
                    sums[label] = Addend(
                        so_far.amount + more.amount, so_far.low + more.low, so_far.high + more.high - ceiling
                    )
            minima += of_its_tables
            all_ceilings += ceiling
        return Chosen(minima, {x: Addend(s.amount, s.low, s.high + all_ceilings) for x, s in sums.items()})

    def _ceiling(self, stable: StableThreshold, minima: list[int], reach: int) -> int:
        """Return what a shard may have of a label that it did not select, if no draw of it is below -reach.

        The label's counter is at most u + offset + reach, or it is not tracked and occurred at most m <= u + reach
        times, u being that of its table; which that is depends on keys, so it is the largest.
        """
        return max(0, stable.offset + reach + max(minima)) if self.elsewhere else 0
