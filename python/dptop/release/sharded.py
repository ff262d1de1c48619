"""Shards made public: labels are selected in each shard by itself, and only counts of selected ones are added."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from dptop import noise
from dptop._native import MAX_LENGTH
from dptop.errors import InvalidParameter
from dptop.intervals import simultaneous_difference_quantile, simultaneous_quantile
from dptop.label import Label, label_order
from dptop.mechanism import CENTRAL, LOCAL_SUMS, StableThreshold
from dptop.privacy import PRECISE, PrivacyParameters, floor_epsilon
from dptop.release.publication import (
    DISCRETE_LAPLACE,
    Facts,
    Plan,
    Published,
    length_in_words,
    noise_in_words,
    share_fact,
)
from dptop.release.selection import select
from dptop.release.sketch import clipped
from dptop.report import Row
from dptop.sharded import AS_STORED, Sharded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dptop.release.request import Request, Split
    from dptop.release.selection import Selected, Table

__all__ = ["by_central_counts", "by_local_sums", "sums_locally"]

FEW: Final = 4
"""Shards up to which sums of noisy counters spread no more than counts with noise for half of epsilon, which have the
variance of 2 + 2 cosh(epsilon/2) noisy counters: of four, or more if epsilon is large (docs/privacy.md section 17)."""
COUNTS_SEED: Final = 3 * (MAX_LENGTH + 1)
"""Added to a seed for tests: the noise of counts must not repeat that of the selection."""

ShardsSnapshot = tuple[int, list[list[tuple[int, list[int]]]]]
"""The length of the stream, and the tables of each shard. PRIVATE."""


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


class Shards:
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
        self.sizes = [-(-s.capacity // s.partitions) for s in sharded.shards for _ in range(s.partitions)]
        self.elsewhere = sharded.partition == AS_STORED and len(sharded) > 1

    def selected(self, tables: list[list[Table]], seed: int | None) -> list[list[Selected]]:
        """Return what passes of each table of each shard."""
        in_a_row = [(stable, t) for stable, of_shard in zip(self.stables, tables, strict=True) for t in of_shard]
        found = iter(select(in_a_row, self.parameters.epsilon, seed))
        return [[next(found) for _ in of_shard] for of_shard in tables]

    def parts(self, selected: list[list[Selected]], counters: list[list[Table]] | None) -> dict[Label, list[Addend]]:
        """Return, for each label, what the shards that selected it add: their counters, or the noisy ones."""
        found: defaultdict[Label, list[Addend]] = defaultdict(list)
        for number, (shard, of_shard) in enumerate(zip(self.sharded.shards, selected, strict=True)):
            for partition, (minimum, noisy) in enumerate(of_shard):
                kept = list(noisy)
                for x, label in zip(kept, shard._labels(partition, kept), strict=True):
                    counter = noisy[x] if counters is None else counters[number][partition][1][x]
                    found[label].append(Addend(number, minimum, counter))
        return found

    def ceilings(self, selected: list[list[Selected]], reach: int) -> list[int]:
        """Return what each shard may have of a label that it did not select, if no draw of it is below -reach.

        The label's counter is at most u + offset + reach, or it is not tracked and occurred at most m <= u + reach
        times, u being that of its table; which that is depends on keys, so it is the largest.
        """
        if not self.elsewhere:
            return [0] * len(self.sharded)
        return [
            max(0, stable.offset + reach + max(minimum for minimum, _ in of_shard))
            for stable, of_shard in zip(self.stables, selected, strict=True)
        ]


def sums_locally(sharded: Sharded) -> bool:
    """Return whether the sum of noisy counters is the better release: few shards, or one of them for each label."""
    return sharded.partition != AS_STORED or len(sharded) <= FEW


def by_local_sums(request: Request, sharded: Sharded) -> Plan:
    """Plan a release of the sums of noisy counters, which spend the whole epsilon in each shard."""
    split = request.split()
    shards = Shards(sharded, split.labels)
    counters = sum(shards.sizes)
    half = PRECISE.multiply(Decimal("0.5"), Decimal(1 - request.confidence))

    def publish(snapshot: ShardsSnapshot, seed: int | None) -> Published:
        length, tables = snapshot
        selected = shards.selected(tables, seed)
        epsilon = split.labels.epsilon
        # no draw that counts is below -above, and in no table some Z_x - Z_0 is above `below`: but for beta/2 each
        above = simultaneous_quantile(epsilon, counters + (len(shards.sizes) if shards.elsewhere else 0), half)
        each = PRECISE.divide(half, Decimal(len(shards.sizes)))
        below = simultaneous_difference_quantile(epsilon, max(shards.sizes), each)
        ceilings = shards.ceilings(selected, above)
        all_ceilings = sum(ceilings)

        def row(label: Label, parts: list[Addend]) -> Row:
            count = sum(part.counter for part in parts)
            low = sum(max(0, part.counter - part.noisy_minimum - below) for part in parts)
            high = all_ceilings + sum(max(0, part.counter + above) - ceilings[part.shard] for part in parts)
            return Row(label, count, *clipped(count, low, high))

        rows = [row(*pair) for pair in shards.parts(selected, None).items()]
        facts: Facts = [
            noise_in_words(
                DISCRETE_LAPLACE,
                float(1 / epsilon),
                "on every counter and on the minimum counter of each shard",
                seeded=seed is not None,
            ),
            ("Form", _summed(float(epsilon))),
        ]
        parameters: dict[str, object] = {"scale": float(1 / epsilon)}
        return _published(request, split, shards, selected, length, seed, rows, facts, parameters)

    return Plan(LOCAL_SUMS, split, publish)


def by_central_counts(request: Request, sharded: Sharded) -> Plan:
    """Plan a release where half of epsilon selects labels in each shard, and half counts them at the centre."""
    split = request.split()
    for_labels = floor_epsilon(split.labels.epsilon / 2)
    if not for_labels:
        raise InvalidParameter(
            f"epsilon must be enough for labels and for counts; got {float(split.labels.epsilon)!r}. Release with a"
            " larger one."
        )
    for_counts = split.labels.epsilon - for_labels
    shards = Shards(sharded, PrivacyParameters(for_labels, split.labels.delta))
    counters = sum(shards.sizes)
    half = PRECISE.multiply(Decimal("0.5"), Decimal(1 - request.confidence))

    def publish(snapshot: ShardsSnapshot, seed: int | None) -> Published:
        length, tables = snapshot
        selected = shards.selected(tables, seed)
        # no draw of the selection that counts is below -reach, and no count's is beyond `spread`: but for beta/2 each
        reach = simultaneous_quantile(for_labels, len(shards.sizes) + (counters if shards.elsewhere else 0), half)
        spread = simultaneous_quantile(for_counts, counters, PRECISE.multiply(Decimal("0.5"), half))
        ceilings = shards.ceilings(selected, reach)
        all_ceilings = sum(ceilings)
        found = sorted(shards.parts(selected, tables).items(), key=lambda pair: label_order(pair[0]))
        draws = noise.draw(for_counts, len(found), None if seed is None else seed + COUNTS_SEED)

        def row(label: Label, parts: list[Addend], draw: int) -> Row:
            count = sum(part.counter for part in parts) + draw
            low = count - spread - sum(max(0, part.noisy_minimum + reach) for part in parts)
            high = count + spread + all_ceilings - sum(ceilings[part.shard] for part in parts)
            return Row(label, count, *clipped(count, low, high))

        rows = [row(*pair, draw) for pair, draw in zip(found, draws, strict=True)]
        facts: Facts = [
            noise_in_words(
                DISCRETE_LAPLACE,
                float(1 / for_labels),
                "on every counter and on the minimum counter of each shard, which select",
                seeded=seed is not None,
            ),
            noise_in_words(
                DISCRETE_LAPLACE,
                float(1 / for_counts),
                "once on the sum of each label's counters",
                seeded=seed is not None,
            ),
            ("Form", _counted(float(for_labels), float(for_counts))),
        ]
        parameters: dict[str, object] = {"label_epsilon": float(for_labels), "scale": float(1 / for_counts)}
        return _published(request, split, shards, selected, length, seed, rows, facts, parameters)

    return Plan(CENTRAL, split, publish)


def _published(
    request: Request,
    split: Split,
    shards: Shards,
    selected: list[list[Selected]],
    length: int,
    seed: int | None,
    rows: list[Row],
    facts: Facts,
    parameters: dict[str, object],
) -> Published:
    """Return what both forms publish: the rows with the share asked for, and how shards were selected from."""
    sharded, noisy_length = shards.sharded, None
    minima = tuple(minimum for of_shard in selected for minimum, _ in of_shard)
    offsets = sorted({stable.offset for stable in shards.stables})
    of_partition = " of its partition" if any(shard.partitions > 1 for shard in sharded.shards) else ""
    rule = f"exceeds that shard's noisy minimum{of_partition} by more than {' or '.join(map(str, offsets))}"
    by_tie = ", by its tie rule" if len(offsets) > 1 else ""
    facts = [
        ("Counted by", f"{len(sharded)} shards of SpaceSaving, capacity {_range(s.capacity for s in sharded.shards)}."),
        ("Shards", _WHAT_A_SHARD_IS[sharded.partition]),
        *facts,
        ("Threshold", f"a shard selects a label only if its noisy counter {rule}{by_tie}."),
        ("Counts", _WHAT_COUNTS_MISS[sharded.partition]),
    ]
    if request.share is not None:
        public_length, noisy_length = split.public_length(length, seed)
        least = request.least_count(public_length)
        rows = [row for row in rows if row.count >= least]
        facts.append(share_fact(request.share, length_in_words(split, noisy_length)))
    parameters = {
        "capacity": sum(shard.capacity for shard in sharded.shards),
        "shards": len(sharded),
        "partition": sharded.partition,
        **parameters,
        "offset": offsets[-1],
    }
    return Published(rows, facts, parameters, minima, noisy_length, simultaneous=True)


_WHAT_A_SHARD_IS: Final = {
    AS_STORED: "as stored: which shard holds an item is a part of the item; neighbours differ in one item of one"
    " shard, and which shards there are is public.",
    "label": "by label: declared to have every label in one shard. Intervals rest on it; the guarantee does not.",
}
_WHAT_COUNTS_MISS: Final = {
    AS_STORED: "a count lacks what shards hold of a label that they did not select, and exceeds it by up to the minimum"
    " counters of those that did, besides the noise.",
    "label": "a count exceeds the true count by up to the minimum counter of its shard, besides the noise.",
}


def _summed(epsilon: float) -> str:
    how = f"local sums: the whole of epsilon {epsilon:.6g} selects and counts in every shard"
    return f"{how}, and the noisy counters of the shards that selected a label are added."


def _counted(for_labels: float, for_counts: float) -> str:
    how = (
        f"central counts: epsilon {for_labels:.6g} selects labels in every shard, epsilon {for_counts:.6g} counts them"
    )
    return f"{how}. The counters of the shards that selected a label are added, and noise once."


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"
