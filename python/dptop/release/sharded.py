"""Shards made public: what they add to the labels that they selected, in either form, with its noise and intervals."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from dptop import noise
from dptop.errors import InvalidParameter
from dptop.intervals import clipped, simultaneous_difference_quantile, simultaneous_quantile
from dptop.label import label_order
from dptop.mechanism import CENTRAL_COUNTS, LOCAL_SUMS
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
from dptop.release.shard_selection import Addend, Passed, ShardSelection
from dptop.report import Row
from dptop.sharded import AS_STORED, BY_LABEL, Sharded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dptop.release.request import Request, Split
    from dptop.release.selection import Table

__all__ = ["by_central_counts", "by_local_sums", "sums_locally"]

MOST_SUMMED: Final = 4
"""Shards up to which sums of noisy counters spread no more than counts with noise for half of epsilon, which have the
variance of 2 + 2 cosh(epsilon/2) noisy counters: of four, or more if epsilon is large (docs/privacy.md section 17)."""

ShardsSnapshot = tuple[int, "Iterator[list[Table]]"]
"""The length of the stream, and the tables of each shard, in their order. PRIVATE."""


class Counted(NamedTuple):
    """What is public of one form, before a share is asked for.

    Attributes:
        minima: as in `Chosen`.
        rows: of all labels that a shard selected.
        facts: of the noise and the form.
        parameters: of the noise.
    """

    minima: list[int]
    rows: list[Row]
    facts: Facts
    parameters: dict[str, object]


def sums_locally(sharded: Sharded) -> bool:
    """Return whether noisy counters are summed by default: few shards, or one of them for each label."""
    return sharded.partition != AS_STORED or len(sharded) <= MOST_SUMMED


def by_local_sums(request: Request, sharded: Sharded) -> Plan:
    """Plan a release of the sums of noisy counters, which spend the whole epsilon in each shard."""
    split = request.split()
    shards = ShardSelection(sharded, split.labels)
    counters = sum(shards.sizes)
    half = PRECISE.multiply(Decimal("0.5"), Decimal(1 - request.confidence))

    def counted(tables: Iterable[list[Table]], seed: int | None) -> Counted:
        epsilon = split.labels.epsilon
        # no draw that counts is below -above, and in no table some Z_x - Z_0 is above `below`: but for beta/2 each
        above = simultaneous_quantile(epsilon, counters + (len(shards.sizes) if shards.elsewhere else 0), half)
        each = PRECISE.divide(half, Decimal(len(shards.sizes)))
        below = simultaneous_difference_quantile(epsilon, max(shards.sizes), each)

        def adds(label: Passed) -> Addend:
            low, high = label.noisy - label.noisy_minimum - below, label.noisy + above
            return Addend(label.noisy, max(0, low), max(0, high))

        minima, sums = shards.choose(tables, seed, above, adds)
        rows = [Row(label, s.amount, *clipped(s.amount, s.low, s.high)) for label, s in sums.items()]
        facts: Facts = [
            noise_in_words(
                DISCRETE_LAPLACE,
                float(1 / epsilon),
                "on every counter and on the minimum counter of each shard",
                seeded=seed is not None,
            ),
            ("Form", _summed(float(epsilon))),
        ]
        return Counted(minima, rows, facts, {"scale": float(1 / epsilon)})

    return Plan(LOCAL_SUMS, split, _publishing(request, split, shards, counted))


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
    shards = ShardSelection(sharded, PrivacyParameters(for_labels, split.labels.delta))
    counters = sum(shards.sizes)
    half = PRECISE.multiply(Decimal("0.5"), Decimal(1 - request.confidence))

    def counted(tables: Iterable[list[Table]], seed: int | None) -> Counted:
        # no draw of the selection that counts is below -reach, and no count's is beyond `spread`: but for beta/2 each
        reach = simultaneous_quantile(for_labels, len(shards.sizes) + (counters if shards.elsewhere else 0), half)
        spread = simultaneous_quantile(for_counts, counters, PRECISE.multiply(Decimal("0.5"), half))

        def adds(label: Passed) -> Addend:
            return Addend(label.counter, label.counter - max(0, label.noisy_minimum + reach), label.counter)

        minima, sums = shards.choose(tables, seed, reach, adds)
        found = sorted(sums.items(), key=lambda pair: label_order(pair[0]))
        draws = noise.draw(for_counts, len(found), None if seed is None else seed + noise.COUNTS_SEED)
        rows = [
            Row(label, s.amount + y, *clipped(s.amount + y, s.low + y - spread, s.high + y + spread))
            for (label, s), y in zip(found, draws, strict=True)
        ]
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
        return Counted(minima, rows, facts, {"label_epsilon": float(for_labels), "scale": float(1 / for_counts)})

    return Plan(CENTRAL_COUNTS, split, _publishing(request, split, shards, counted))


def _publishing(
    request: Request,
    split: Split,
    shards: ShardSelection,
    counted: Callable[[Iterable[list[Table]], int | None], Counted],
) -> Callable[[ShardsSnapshot, int | None], Published]:
    """Return what publishes either form: the rows with the share asked for, and how shards were selected from."""
    sharded = shards.sharded
    offsets = sorted({stable.offset for stable in shards.stables})
    of_partition = " of its partition" if any(shard.partitions > 1 for shard in sharded.shards) else ""
    rule = f"exceeds that shard's noisy minimum{of_partition} by more than {' or '.join(map(str, offsets))}"
    by_tie = ", by its tie rule" if len(offsets) > 1 else ""

    def publish(snapshot: ShardsSnapshot, seed: int | None) -> Published:
        length, tables = snapshot
        minima, rows, facts, parameters = counted(tables, seed)
        capacities = _range(shard.capacity for shard in sharded.shards)
        facts = [
            ("Counted by", f"{len(sharded)} shards of SpaceSaving, capacity {capacities}."),
            ("Shards", _WHAT_A_SHARD_IS[sharded.partition]),
            *facts,
            ("Threshold", f"a shard selects a label only if its noisy counter {rule}{by_tie}."),
            ("Counts", _WHAT_COUNTS_MISS[sharded.partition]),
        ]
        noisy_length = None
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
        return Published(rows, facts, parameters, tuple(minima), noisy_length, simultaneous=True)

    return publish


_WHAT_A_SHARD_IS: Final = {
    AS_STORED: "as stored: which shard holds an item is a part of the item; neighbours differ in one item of one"
    " shard, and which shards there are is public.",
    BY_LABEL: "by label: declared to have every label in one shard. Intervals rest on it; the guarantee does not.",
}
_WHAT_COUNTS_MISS: Final = {
    AS_STORED: "a count lacks what shards hold of a label that they did not select, and exceeds it by up to the minimum"
    " counters of those that did, besides the noise.",
    BY_LABEL: "a count exceeds the true count by up to the minimum counter of its shard, besides the noise.",
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
