"""Summaries that track labels with a counter each; they carry what their proofs need: capacity and tie rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from dptop import _native
from dptop._native import MAX_CAPACITY, MAX_PARTITIONS, Reading
from dptop.label import Label, ShortenedLabel, largest_first
from dptop.parameters import whole_number
from dptop.summary import Summary, label_limit
from dptop.tie import Tie

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dptop.privacy import Budget

MISRA_GRIES: Final = "misra-gries"
LABEL_BYTES: Final = 4096
"""The length up to which labels are kept whole, unless another is asked for."""

__all__ = ["Counters", "MisraGries", "SpaceSaving", "capacity_of", "plain_labels"]


class Counters(Summary):
    """A summary of at most `capacity` labels, each with a counter."""

    _tables: _native.Counters

    @property
    def capacity(self) -> int:
        """How many labels are tracked at the most. Public."""
        return self._tables.capacity

    @property
    def max_label_bytes(self) -> int:
        """Labels above this length are kept as prefix and digest. Public."""
        return self._tables.max_label_bytes

    @property
    def _table_capacity(self) -> int:
        """How many labels one partition tracks at the most: the capacity, where there is one."""
        return -(-self.capacity // self._tables.partitions)

    @property
    def _identity(self) -> bytes:
        return self._tables.identity

    def update(self, item: int | str | bytes | None, weight: int = 1) -> None:
        """Count one item, `weight` times in a row. None is a null and skipped; weight 0 changes nothing.

        Raises:
            UnsupportedLabel: not an int, str or bytes, or not of the kind that this summary holds.
            InvalidParameter: a weight that is no whole number from 0 to 2^63 - 1, or a sum of weights above that.
        """
        self._tables.update(item, weight)

    def _count(self, batches: list[Any], weights: Any, threads: int, reading: Reading) -> None:
        self._tables.extend(batches, weights, threads, reading)

    def _length(self) -> int:
        return self._tables.length()

    def _snapshot(self) -> tuple[int, list[tuple[int, list[int]]]]:
        return self._tables.snapshot()

    def _encode(self, record: bytes) -> bytes:
        return self._tables.to_bytes(record)

    def _decode(self, data: bytes) -> bytes:
        self._tables, record = _native.Counters.from_bytes(data)
        return record

    def private_counters(self) -> list[tuple[Label, int]]:
        """Return (item, counter) for every tracked label, by counter downwards, then item. PRIVATE: not a release."""
        _, tables = self._snapshot()
        return largest_first(
            pair
            for partition, (_, counts) in enumerate(tables)
            for pair in zip(self._labels(partition, range(len(counts))), counts, strict=True)
        )

    def _labels(self, partition: int, positions: Sequence[int]) -> list[Label]:
        return plain_labels(self._tables.labels(partition, list(positions)))


class SpaceSaving(Counters):
    """The most frequent labels of a stream in at most `capacity` counters.

    With f the true counts, C the counters and m the minimum counter (0 while a counter is free), every tracked label
    has f <= C <= f + m, every label with f > m is tracked, and m <= n / capacity for a stream of length n (for one
    partition). Memory grows with the distinct labels seen and stops at the capacity. The result depends on the order
    of the items but not on how they are batched, nor on `threads`.

    Everything in a summary is private except its parameters; only `dptop.release` publishes. Its repr is for whoever
    may see the stream: it tells the kind of the labels, and so whether there were any.

    Args:
        capacity: counters, 1 to 2^31; the paper's k-tilde. Memory: at most about 38 bytes times the capacity for
            integers (20 in partitions of at most 64 counters), about 55 plus the label for text.
        tie: which label at the minimum is evicted: "least-recent" (default; needs the smaller threshold) or
            "most-recent" (the paper's rule).
        partitions: tables that share the capacity, 1 to `capacity` and to 2^20; each label is routed to one by a hash
            of itself. Each has its own minimum. More than one lets `extend` use threads.
        max_label_bytes: longer labels are counted apart but kept as a prefix and a SHA-256 digest, 64 to 2^30.
        budget: what all releases of this stream may spend together; by default there is one release, of any size.

    Raises:
        InvalidParameter: a value out of range; nothing is allocated.

    Source: Algorithm 2 of the paper; docs/privacy.md section 2.

    >>> import dptop
    >>> pages = dptop.SpaceSaving(capacity=1000)
    >>> pages.extend(["/home", "/cart", "/home"])
    >>> pages
    SpaceSaving(capacity=1000, tie='least-recent', labels='strings')
    """

    _saved_as: ClassVar[int] = 1

    def __init__(
        self,
        capacity: int,
        tie: str | Tie = Tie.LEAST_RECENT,
        partitions: int = 1,
        max_label_bytes: int = LABEL_BYTES,
        budget: Budget | None = None,
    ) -> None:
        capacity = capacity_of(capacity)
        partitions = whole_number(
            "partitions", partitions, 1, min(capacity, MAX_PARTITIONS), "Use at most one partition per counter."
        )
        self._tables = _native.Counters(Tie.of(tie).algorithm, capacity, partitions, label_limit(max_label_bytes))
        self._start(budget)

    @classmethod
    def _identified(cls, capacity: int, identity: bytes) -> Self:
        """Return an empty one with an identity that was drawn elsewhere: secret, and of this part of this stream only.

        Everything else is as by default. What it holds after a stream is then a function of the stream. The process
        does not keep its ledger: no copy may be made of it.
        """
        summary = cls.__new__(cls)
        summary._tables = _native.Counters(Tie.LEAST_RECENT.algorithm, capacity, 1, LABEL_BYTES, identity)
        summary._start(None, known=False)
        return summary

    @property
    def tie(self) -> Tie:
        """The rule that breaks ties at the minimum. Public."""
        return next(tie for tie in Tie if tie.algorithm == self._tables.algorithm)

    @property
    def partitions(self) -> int:
        """How many tables share the capacity. Public."""
        return self._tables.partitions

    def __repr__(self) -> str:
        kind = self._tables.kind
        partitions = f", partitions={self.partitions}" if self.partitions > 1 else ""
        return f"SpaceSaving(capacity={self.capacity}, tie={self.tie.value!r}{partitions}, labels={kind!r})"


class MisraGries(Counters):
    """The most frequent labels of a stream in at most `capacity` counters, each at most its label's true count.

    Every label's count f is above its counter by at most n / (capacity + 1), for a stream of length n; an untracked
    label counts as 0. Labels whose counter has come to 0 stay until their place is needed, the smallest label going
    first: the private release rests on that. The counters are those of SpaceSaving with one counter more, less its
    minimum, so that SpaceSaving releases the same labels with less noise.

    Args:
        capacity: counters, 1 to 2^31; as good as SpaceSaving with one more.
        max_label_bytes: longer labels are counted apart but kept as a prefix and a SHA-256 digest, 64 to 2^30.
        budget: what all releases of this stream may spend together; by default there is one release, of any size.

    Raises:
        InvalidParameter: a value out of range; nothing is allocated.

    Source: Misra and Gries 1982, in the variant of Lebeda and Tětek 2023; Algorithm 1 of the paper; docs/privacy.md
    section 13.

    >>> import dptop
    >>> pages = dptop.MisraGries(capacity=2)
    >>> pages.extend(["a", "a", "b", "c", "d"])
    >>> pages.private_counters()
    [('a', 1), ('d', 1)]
    """

    _saved_as: ClassVar[int] = 2

    def __init__(self, capacity: int, *, max_label_bytes: int = LABEL_BYTES, budget: Budget | None = None) -> None:
        self._tables = _native.Counters(MISRA_GRIES, capacity_of(capacity), 1, label_limit(max_label_bytes))
        self._start(budget)

    def __repr__(self) -> str:
        return f"MisraGries(capacity={self.capacity}, labels={self._tables.kind!r})"


def plain_labels(labels: list[int | str | bytes | tuple[str | bytes, bytes]]) -> list[Label]:
    """Return labels as they leave a summary."""
    return [ShortenedLabel(*label) if isinstance(label, tuple) else label for label in labels]


def capacity_of(capacity: int) -> int:
    """Return a number of counters, 1 to 2^31, or refuse it."""
    return whole_number("capacity", capacity, 1, MAX_CAPACITY, "Choose how many labels to track.")
