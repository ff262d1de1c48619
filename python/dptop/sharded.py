"""`Sharded`: parts of a stream that were counted apart and are released once, together."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from dptop.counters import SpaceSaving
from dptop.errors import IncompatibleSummaries, InvalidParameter
from dptop.ledger import charge_all
from dptop.parameters import one_of, shown
from dptop.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dptop._native import Reading
    from dptop.ledger import Spent
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
        InvalidParameter: no shard, something that is no summary, or one shard twice, perhaps as a copy.
        IncompatibleSummaries: a summary that is no `SpaceSaving`; shards that hold labels of different kinds, or have
            different `max_label_bytes`. The last two are for whoever may see all of them: they tell of what these hold.
            `release` asks again, before it spends anything.

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
        self._shards = tuple(islice(parts, MAX_SHARDS + 1))  # what never ends is not waited for
        self._partition = one_of("partition", partition, PARTITIONS)
        if not 1 <= len(self._shards) <= MAX_SHARDS:
            raise InvalidParameter(
                "shards must be one SpaceSaving or more, at most 2**20; got"
                f" {'more' if self._shards else 'none'}. Count each shard with a SpaceSaving of its own."
            )
        self._compatible()

    def _compatible(self) -> None:
        """Refuse shards that do not go together; asked again later, as they may have been counted into."""
        check_shards({f"shard {number}": shard for number, shard in enumerate(self._shards)})

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

    def _snapshot(self) -> tuple[int, Iterator[list[Table]]]:
        """Return the length, and the tables of each shard when it is asked for: as Python numbers they are large.

        Whoever counts meanwhile makes the release fail, by the length that it asks for again. PRIVATE.
        """
        return self._length(), self._tables()

    def _tables(self) -> Iterator[list[Table]]:
        kinds: set[str | None] = {None}
        for shard in self._shards:
            tables = shard._snapshot()[1]
            kinds.add(shard._tables.kind)
            if len(kinds) > 2:  # an empty one began since the charge, and labels of two kinds have no order
                self._compatible()
            yield tables

    def _charge(self, spent: Spent, length: int | None) -> None:
        self._compatible()  # shards may have been counted into since
        charge_all([(shard._ledger, shard.budget) for shard in self._shards], spent, length)

    def _close(self) -> None:
        for shard in self._shards:
            shard._close()


def check_shards(shards: Mapping[str, object]) -> list[SpaceSaving]:
    """Return summaries as shards of one stream, or refuse them.

    Args:
        shards: by what errors call them.

    Raises:
        InvalidParameter, IncompatibleSummaries: as `Sharded`.
    """
    checked: list[SpaceSaving] = []
    identities: dict[bytes, str] = {}
    limits: dict[int, str] = {}
    kinds: dict[str, str] = {}
    for name, shard in shards.items():
        if not isinstance(shard, Summary):
            raise InvalidParameter(
                f"{name}: a shard must be a SpaceSaving; got {shown(type(shard).__name__)}. Count it with one."
            )
        if not isinstance(shard, SpaceSaving):
            raise IncompatibleSummaries(
                f"{name}: summaries that are released together must be SpaceSaving, as for others nothing is proved;"
                f" got {type(shard).__name__}. Release it by itself, or count again."
            )
        if (first := identities.setdefault(shard._identity, name)) != name:
            raise InvalidParameter(
                f"{name}: each shard must be another part of the stream; got a copy of {first}. Leave it out."
            )
        limits.setdefault(shard.max_label_bytes, name)
        if shard._tables.kind is not None:
            kinds.setdefault(shard._tables.kind, name)
        for rule, found in (("max_label_bytes, so that a label is the same in all", limits), ("kind of labels", kinds)):
            if len(found) > 1:
                (one, first), (other, _) = found.items()
                raise IncompatibleSummaries(
                    f"{name}: shards must have one {rule}; got {other} here and {one} in {first}. Count again with one."
                )
        checked.append(shard)
    return checked
