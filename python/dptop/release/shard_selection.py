"""What the shards let pass: each selects its labels by itself, and says what it adds to them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from dptop import noise
from dptop.mechanism import StableThreshold
from dptop.release.selection import select
from dptop.sharded import AS_STORED, Sharded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dptop.label import Label
    from dptop.privacy import PrivacyParameters
    from dptop.release.selection import Table

__all__ = ["Addend", "Chosen", "ShardSelection"]


class Addend(NamedTuple):
    """What one table of one shard adds to a label that it selected.

    Attributes:
        shard: its number.
        noisy_minimum: of the table.
        counter: PRIVATE; or the noisy counter, where that is what is added.
    """

    shard: int
    noisy_minimum: int
    counter: int


class Chosen(NamedTuple):
    """What the shards let pass.

    Attributes:
        minima: the noisy minimum of each table of each shard.
        addends: PRIVATE with exact counters; for each label, what the shards that selected it add.
    """

    minima: list[list[int]]
    addends: dict[Label, list[Addend]]


class ShardSelection:
    """The shards of a release, with the mechanism that selects in each: all have the same epsilon and delta.

    Attributes:
        stables: the mechanism of each shard, by its tie rule.
        sizes: the largest number of counters of each table, all shards in a row. Public.
        elsewhere: whether shards may hold labels that they did not select and others did.
    """

    def __init__(self, sharded: Sharded, parameters: PrivacyParameters) -> None:
        self.sharded = sharded
        self.parameters = parameters
        by_tie = {tie: StableThreshold.of(parameters, tie) for tie in {shard.tie for shard in sharded.shards}}
        self.stables = [by_tie[shard.tie] for shard in sharded.shards]
        self.sizes = [shard._table_capacity for shard in sharded.shards for _ in range(shard.partitions)]
        self.elsewhere = sharded.partition == AS_STORED and len(sharded) > 1

    def choose(self, tables: Iterable[list[Table]], seed: int | None, *, exact: bool) -> Chosen:
        """Let every shard select, one after the other: of one shard at a time all counters are here as Python numbers.

        Args:
            tables: of each shard.
            seed: for tests.
            exact: whether labels add their counters as they are, for noise that comes later; else the noisy ones.
        """
        minima: list[list[int]] = []
        addends: defaultdict[Label, list[Addend]] = defaultdict(list)
        for number, (shard, stable, of_shard) in enumerate(zip(self.sharded.shards, self.stables, tables, strict=True)):
            of_its_own = None if seed is None else seed + number * noise.NEXT_SHARD
            selected = select(stable, of_shard, of_its_own)
            minima.append([minimum for minimum, _ in selected])
            for partition, (minimum, noisy) in enumerate(selected):
                counters = of_shard[partition][1] if exact else noisy
                kept = list(noisy)
                for x, label in zip(kept, shard._labels(partition, kept), strict=True):
                    addends[label].append(Addend(number, minimum, counters[x]))
        return Chosen(minima, addends)

    def ceilings(self, minima: list[list[int]], reach: int) -> list[int]:
        """Return what each shard may have of a label that it did not select, if no draw of it is below -reach.

        The label's counter is at most u + offset + reach, or it is not tracked and occurred at most m <= u + reach
        times, u being that of its table; which that is depends on keys, so it is the largest.
        """
        if not self.elsewhere:
            return [0] * len(self.sharded)
        return [
            max(0, stable.offset + reach + max(of_shard)) for stable, of_shard in zip(self.stables, minima, strict=True)
        ]
