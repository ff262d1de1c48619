"""`Sharded`: parts of a stream that were counted apart and are released once, together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dptop.counters import SpaceSaving
from dptop.errors import IncompatibleSummaries, InvalidParameter
from dptop.parameters import one_of, shown
from dptop.privacy import charge_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dptop._native import Reading
    from dptop.privacy import Spent
    from dptop.release.selection import Table

__all__ = ["AS_STORED", "BY_LABEL", "PARTITIONS", "Sharded"]

AS_STORED: Final = "as-stored"
BY_LABEL: Final = "label"
PARTITIONS: Final = (AS_STORED, BY_LABEL)
MAX_SHARDS: Final = 2**20


class Sharded:
    """Shards of one stream, each counted by a `SpaceSaving` of its own, that `dptop.release` publishes together, once.

    A shard as the caller stores it (a file, a stored partition) is a part of the item: two streams are neighbours if
    one item was added to, or removed from, one of the shards. So which shard an item is in may depend on the item, and
    on where and when it came about, but never on its place among other items: a stream that was cut by position (round
    robin, blocks of so many items, halves of an array) is not protected. `dptop` cuts no stream: `partitions=` of
    `SpaceSaving` routes by the label alone.

    The counters of the shards are never added up to one table, which would not be private. Each shard selects its
    labels by itself, and only the counts of selected labels are added, with noise of which the amount does not grow
    with the number of shards.

    Args:
        shards: one `SpaceSaving` or more, at most 2^20; any capacities, partitions and tie rules. They stay as they
            are, and each release is charged to all of them. Their order is public, as minima are published in it: it
            must not depend on what they hold.
        partition: "as-stored", or "label" if all items of a label are in one shard, as after a shuffle by label:
            intervals are shorter then. The guarantee does not rest on it.

    Raises:
        InvalidParameter: no shard, something else than a `SpaceSaving`, or one shard twice, perhaps as a copy; or
            lengths that sum to more than 2^63 - 1.
        IncompatibleSummaries: shards hold labels of different kinds, or have different `max_label_bytes`. Both are for
            whoever may see all of them: they tell of what these hold. `release` asks again, before it spends anything.

    Source: docs/privacy.md section 17.

    >>> import dptop
    >>> monday, tuesday = dptop.SpaceSaving(capacity=100), dptop.SpaceSaving(capacity=100)
    >>> monday.extend(["/home", "/cart"] * 1000)
    >>> tuesday.extend(["/home", "/help"] * 1000)
    >>> result = dptop.release(Sharded([monday, tuesday]), epsilon=1.0, delta=1e-9)
    >>> sorted(row.item for row in result)
    ['/cart', '/help', '/home']
    """

    def __init__(self, shards: Iterable[SpaceSaving], partition: str = AS_STORED) -> None:
        try:
            parts = iter(shards)
        except TypeError:
            raise InvalidParameter(
                f"shards must be a list of SpaceSaving; got {type(shards).__name__}. Put it into a list."
            ) from None
        self._shards = tuple(parts)
        self._partition = one_of("partition", partition, PARTITIONS)
        if not 1 <= len(self._shards) <= MAX_SHARDS:
            raise InvalidParameter(
                f"shards must be one SpaceSaving or more, at most 2**20; got {len(self._shards)}. Count each shard with"
                " a SpaceSaving of its own."
            )
        for shard in self._shards:
            if not isinstance(shard, SpaceSaving):
                raise InvalidParameter(
                    f"a shard must be a SpaceSaving; got {shown(type(shard).__name__)}. Others have no proof here;"
                    " linear sketches merge instead."
                )
        if len({shard._identity for shard in self._shards}) < len(self._shards):
            raise InvalidParameter(
                "each shard must be another part of the stream; got one of them twice, or a copy of it. Leave it out."
            )
        self._compatible()

    def _compatible(self) -> None:
        limits = {shard.max_label_bytes for shard in self._shards}
        if len(limits) > 1:
            raise IncompatibleSummaries(
                f"shards must have one max_label_bytes, so that a label is the same in all; got {sorted(limits)}. Count"
                " again with one."
            )
        if len({shard._tables.kind for shard in self._shards} - {None}) > 1:
            raise IncompatibleSummaries(
                "shards must hold labels of one kind: all integers, all strings or all bytes. Count again with one."
            )

    @property
    def shards(self) -> tuple[SpaceSaving, ...]:
        """The parts, each raw and private."""
        return self._shards

    @property
    def partition(self) -> str:
        """How items came to shards, as declared. Public."""
        return self._partition

    def __len__(self) -> int:
        return len(self._shards)

    def __repr__(self) -> str:
        return f"Sharded({len(self)} shards, partition={self._partition!r})"

    @property
    def _begun(self) -> tuple[Reading | None, ...]:
        return tuple(shard._begun for shard in self._shards)

    @property
    def _releasable(self) -> bool:
        return all(shard._releasable for shard in self._shards)

    def _length(self) -> int:
        return sum(shard._length() for shard in self._shards)

    def _snapshot(self) -> tuple[int, list[list[Table]]]:
        """Return the length, and the tables of each shard. PRIVATE."""
        snapshots = [shard._snapshot() for shard in self._shards]
        self._compatible()  # an empty one may have begun since the charge, and labels of two kinds have no order
        return sum(length for length, _ in snapshots), [tables for _, tables in snapshots]

    def _charge(self, spent: Spent, length: int | None) -> None:
        self._compatible()  # shards may have been counted into since
        charge_all([(shard._ledger, shard.budget) for shard in self._shards], spent, length)

    def _close(self) -> None:
        for shard in self._shards:
            shard._close()
