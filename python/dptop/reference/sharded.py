"""The release of shards that were counted apart, formula by formula: docs/privacy.md section 17, as text that runs.

Both forms select in each shard by itself, as `reference.stable_threshold` does. It shares no code with
`dptop.release.sharded`, `dptop.intervals` and `dptop.noise`. Slow; meant for epsilon of about 0.05 and more.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Generic, TypeVar

from dptop.reference import stable_threshold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

__all__ = ["Chosen", "Table", "central_counts", "central_interval", "choose", "local_interval", "local_sums"]

Label = TypeVar("Label")


@dataclass(frozen=True)
class Table(Generic[Label]):
    """One table of a shard, with the noise that was drawn for it; a shard has one table for each partition.

    Attributes:
        counters: C. Private.
        minimum: m, 0 while a slot is free. Private.
        offset: 1 + G, by the tie rule of the shard.
        minimum_noise: Z_0, of this table alone.
        noise: Z_x for each label that is tracked.
    """

    counters: Mapping[Label, int]
    minimum: int
    offset: int
    minimum_noise: int
    noise: Mapping[Label, int]


@dataclass(frozen=True)
class Chosen(Generic[Label]):
    """What a table lets pass: u, the offset, and v of the labels it selected."""

    u: int
    offset: int
    v: Mapping[Label, int]


def choose(shards: Sequence[Sequence[Table[Label]]]) -> list[list[Chosen[Label]]]:
    """Return u and the selected labels with their v of every table of every shard: each selects by itself.

    >>> monday = Table({"a": 40, "b": 12}, 12, 16, -1, {"a": 2, "b": 0})
    >>> tuesday = Table({"a": 30, "c": 50}, 30, 16, 0, {"a": 1, "c": -3})
    >>> choose([[monday], [tuesday]])
    [[Chosen(u=11, offset=16, v={'a': 42})], [Chosen(u=30, offset=16, v={'c': 47})]]
    """
    chosen = []
    for shard in shards:
        tables = []
        for table in shard:
            u, v = stable_threshold.release(
                table.counters,
                table.minimum,
                offset=table.offset,
                minimum_noise=table.minimum_noise,
                noise=table.noise,
            )
            tables.append(Chosen(u, table.offset, v))
        chosen.append(tables)
    return chosen


def local_sums(shards: Sequence[Sequence[Table[Label]]]) -> dict[Label, int]:
    """Return, for each label that a shard selected, the sum of v over the shards that selected it.

    >>> local_sums([[Table({"a": 40}, 0, 16, 0, {"a": 2})], [Table({"a": 3}, 0, 16, 0, {"a": 1})]])
    {'a': 42}
    """
    sums: dict[Label, int] = {}
    for shard in choose(shards):
        for table in shard:
            for label, v in table.v.items():
                sums[label] = sums.get(label, 0) + v
    return sums


def central_counts(shards: Sequence[Sequence[Table[Label]]], count_noise: Mapping[Label, int]) -> dict[Label, int]:
    """Return, for each label that a shard selected, the sum of C over the shards that selected it, plus one noise.

    >>> central_counts([[Table({"a": 40}, 0, 16, 0, {"a": 2})], [Table({"a": 3}, 0, 16, 0, {"a": 1})]], {"a": -4})
    {'a': 36}
    """
    sums: dict[Label, int] = {}
    for shard, chosen in zip(shards, choose(shards), strict=True):
        for table, selected in zip(shard, chosen, strict=True):
            for label in selected.v:
                sums[label] = sums.get(label, 0) + table.counters[label]
    return {label: total + count_noise[label] for label, total in sums.items()}


def local_interval(
    label: Label,
    shards: Sequence[Sequence[Chosen[Label]]],
    *,
    epsilon: Fraction,
    sizes: Sequence[int],
    beta: Decimal,
    elsewhere: bool,
) -> tuple[int, int]:
    """Return (low, high) for a label of `local_sums`; those of all labels hold at once but for a risk of beta.

    Args:
        label: one that a shard selected.
        shards: what every table let pass.
        epsilon: of the noise.
        sizes: the capacity of every table.
        beta: half of it for all draws below -above, half for all differences beyond `below`.
        elsewhere: whether shards that did not select the label may hold it.
    """
    above = reach_of_many(epsilon, sum(sizes) + (len(sizes) if elsewhere else 0), beta / 2)
    below = difference_of_many(epsilon, max(sizes), beta / 2 / len(sizes))
    count = low = high = 0
    for shard in shards:
        selecting = [table for table in shard if label in table.v]
        for table in selecting:
            v = table.v[label]
            count += v
            low += max(0, v - table.u - below)  # C - m = v - u - W
            high += max(0, v + above)  # C = v - Z
        if elsewhere and not selecting:
            high += most_unselected(shard, above)
    return min(count, low), max(count, high)


def central_interval(
    label: Label,
    count: int,
    shards: Sequence[Sequence[Chosen[Label]]],
    *,
    selection_epsilon: Fraction,
    count_epsilon: Fraction,
    sizes: Sequence[int],
    beta: Decimal,
    elsewhere: bool,
) -> tuple[int, int]:
    """Return (low, high) for a label of `central_counts`; those of all labels hold at once but for a risk of beta.

    Half of beta for draws of the selection below -reach, a quarter for either side of the noise of counts. Other
    arguments as in `local_interval`.
    """
    reach = reach_of_many(selection_epsilon, len(sizes) + (sum(sizes) if elsewhere else 0), beta / 2)
    spread = reach_of_many(count_epsilon, sum(sizes), beta / 4)
    low, high = count - spread, count + spread
    for shard in shards:
        selecting = [table for table in shard if label in table.v]
        low -= sum(max(0, table.u + reach) for table in selecting)  # C - f <= m = u - Z_0
        if elsewhere and not selecting:
            high += most_unselected(shard, reach)
    return min(count, max(0, low)), max(count, 0, high)


def most_unselected(shard: Sequence[Chosen[Label]], reach: int) -> int:
    """Return what a shard may have of a label that it did not select: v <= u + offset, and C = v - Z <= v + reach."""
    return max(0, *(table.u + table.offset + reach for table in shard))


def reach_of_many(epsilon: Fraction, draws: int, p: Decimal) -> int:
    """Return the smallest q >= 0 such that, of so many draws, some Z < -q with chance at most p."""
    chances = stable_threshold.laplace(epsilon)
    q = 0
    with localcontext() as context:
        context.prec = 60
        while 1 - (1 - sum(p for z, p in chances.items() if z < -q)) ** draws > p:
            q += 1
    return q


def difference_of_many(epsilon: Fraction, draws: int, p: Decimal) -> int:
    """Return the smallest q >= 0 such that, of so many draws, some Z_x - Z_0 > q with chance at most p."""
    chances = stable_threshold.laplace(epsilon)
    reach = max(chances)
    at_most, total = {}, Decimal(0)
    with localcontext() as context:
        context.prec = 60
        for z in range(-reach, reach + 1):
            total += chances[z]
            at_most[z] = total
        q = 0
        while 1 - sum(c * at_most[min(reach, q + z)] ** draws for z, c in chances.items() if q + z >= -reach) > p:
            q += 1
    return q
