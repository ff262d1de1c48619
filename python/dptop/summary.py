"""Summaries: bounded memory, raw and private; they carry what their proofs need: capacity, tie rule, ledger.

Only `dptop.release` turns a summary into something public.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dptop import _native
from dptop._native import MAX_CAPACITY, MAX_LABEL_BYTES, MAX_PARTITIONS, MAX_THREADS, MIN_LABEL_BYTES, Reading
from dptop.atomic import reason, replacing
from dptop.errors import CorruptSummary, InvalidParameter, SourceError
from dptop.label import Label, ShortenedLabel, label_order
from dptop.parameters import whole_number
from dptop.privacy import Budget, Ledger
from dptop.record import Record
from dptop.source import open_labels, read_weights, rereadable
from dptop.tie import Tie

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

__all__ = ["SpaceSaving", "load"]


class SpaceSaving:
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

    def __init__(
        self,
        capacity: int,
        tie: str | Tie = Tie.LEAST_RECENT,
        partitions: int = 1,
        max_label_bytes: int = 4096,
        budget: Budget | None = None,
    ) -> None:
        capacity = whole_number("capacity", capacity, 1, MAX_CAPACITY, "Choose how many labels to track.")
        partitions = whole_number(
            "partitions", partitions, 1, min(capacity, MAX_PARTITIONS), "Use at most one partition per counter."
        )
        max_label_bytes = whole_number(
            "max_label_bytes", max_label_bytes, MIN_LABEL_BYTES, MAX_LABEL_BYTES, "The default is 4096."
        )
        if budget is not None and not isinstance(budget, Budget):
            raise InvalidParameter(f"budget must be a dptop.Budget; got {type(budget).__name__}. Build one of it.")
        most_recent = Tie.of(tie) is Tie.MOST_RECENT
        self._tables = _native.SpaceSaving(capacity, partitions, most_recent, max_label_bytes)
        self._budget = budget
        self._start(incomplete=False)

    def _start(self, *, incomplete: bool) -> None:
        self._begun: Reading | None = None
        self._open = {Reading()} if incomplete else set()
        self._ledger = Ledger.of(self._tables.identity)

    @property
    def capacity(self) -> int:
        """How many labels are tracked at the most. Public."""
        return self._tables.capacity

    @property
    def tie(self) -> Tie:
        """The rule that breaks ties at the minimum. Public."""
        return Tie.MOST_RECENT if self._tables.most_recent else Tie.LEAST_RECENT

    @property
    def partitions(self) -> int:
        """How many tables share the capacity. Public."""
        return self._tables.partitions

    @property
    def max_label_bytes(self) -> int:
        """Labels above this length are kept as prefix and digest. Public."""
        return self._tables.max_label_bytes

    @property
    def budget(self) -> Budget | None:
        """What was declared for all releases together. Public."""
        return self._budget

    def __repr__(self) -> str:
        kind = self._tables.kind
        partitions = f", partitions={self.partitions}" if self.partitions > 1 else ""
        return f"SpaceSaving(capacity={self.capacity}, tie={self.tie.value!r}{partitions}, labels={kind!r})"

    def update(self, item: int | str | bytes | None, weight: int = 1) -> None:
        """Count one item, `weight` times in a row. None is a null and skipped; weight 0 changes nothing.

        Raises:
            UnsupportedLabel: not an int, str or bytes, or not of the kind that this summary holds.
            InvalidParameter: a weight that is no whole number from 0 to 2^63 - 1, or a sum of weights above that.
        """
        self._tables.update(item, weight)

    def extend(self, items: Any, weights: Any = None, *, threads: int = 1) -> None:
        """Count many items in their order: the same as `update` for each.

        A list, a tuple or an array is checked whole, then counted: on an error nothing of it is. An error or an
        interruption after a part of an input was counted, or may have been lost, leaves the summary incomplete, and it
        is never released: any error that comes with an iterator, or with a stream that may not be given again. Neither
        is it released while an input is being read.

        Args:
            items: a list, tuple or any iterable of int, str or bytes (None is a null and skipped) that has an order of
                its own, so no set; a one-dimensional NumPy array of integers, text or bytes; whatever hands over Arrow
                data, with `__arrow_c_array__` or `__arrow_c_stream__`: a pyarrow array or chunked array, a pandas or
                Polars Series, a table with one column, a DuckDB relation; a file, by `dptop.read_labels`.
            weights: as many whole numbers as items, from the same kinds of input; 0 leaves the item out. They belong to
                the items of the stream as it came: in counts that were added up first, one item more may move a label
                past others, which no release covers. With weights all of both is in memory before the first item is
                counted; give a long stream piece by piece.
            threads: workers that share the partitions, 1 to 64; more than there are partitions do nothing.

        Raises:
            UnsupportedLabel: items that are no labels, or of another kind than this summary holds.
            InvalidParameter: weights that are no whole numbers or not as many as items, or that sum past 2^63 - 1.
            SourceError: an Arrow stream broke off.
        """
        threads = thread_count(threads)
        with self._reading(items, weights) as reading:
            source = open_labels(items)
            if weights is None:
                for batch in source:
                    self._tables.extend([batch], None, threads, reading)
            else:
                known = read_weights(weights)
                self._tables.extend(list(source), known, threads, reading)

    @contextlib.contextmanager
    def _reading(self, *inputs: object) -> Iterator[Reading]:
        """Mark the summary as not to be released while inputs are read, and for good unless that is known to end well.

        It ends well if they were read to their end, or if an error came before anything of them was counted or lost. A
        stream that was cut is not a neighbour of itself with an early item removed.
        """
        reading = Reading()
        self._open.add(reading)  # first: whoever saves now sees either this or that another input was begun
        self._begun = reading
        can_reread = all(map(rereadable, inputs))
        try:
            yield reading
        except Exception:  # an interruption, or a failure of the machine, never ends well
            if can_reread and not reading.counted:
                self._open.discard(reading)
            raise
        self._open.discard(reading)

    @property
    def _releasable(self) -> bool:
        """Whether every input was read to its end."""
        return not self._open

    def private_counters(self) -> list[tuple[Label, int]]:
        """Return (item, counter) for every tracked label, by counter downwards, then item. PRIVATE: not a release."""
        _, tables = self._tables.snapshot()
        counters = [
            pair
            for partition, (_, counts) in enumerate(tables)
            for pair in zip(self._labels(partition, range(len(counts))), counts, strict=True)
        ]
        return sorted(counters, key=lambda pair: (-pair[1], label_order(pair[0])))

    def _labels(self, partition: int, positions: Sequence[int]) -> list[Label]:
        labels = self._tables.labels(partition, list(positions))
        return [ShortenedLabel(*label) if isinstance(label, tuple) else label for label in labels]

    def to_bytes(self) -> bytes:
        """Return the saved form: PRIVATE data, as the stream was. What was spent goes with it."""
        begun = self._begun
        data = self._encoded(whole=self._releasable)
        # an input that was begun meanwhile, and perhaps ended, may be in the data in part
        return data if self._begun is begun else self._encoded(whole=False)

    def _encoded(self, *, whole: bool) -> bytes:
        record = Record(self._budget, self._ledger.record(), incomplete=not whole)
        return self._tables.to_bytes(record.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> SpaceSaving:
        """Read a saved summary; going on with it is the same as never having saved it.

        Raises:
            CorruptSummary: the bytes are cut short, changed, foreign or contradict themselves.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidParameter(f"a saved summary is bytes; got {type(data).__name__}. Use dptop.load for a path.")
        tables, record_bytes = _native.SpaceSaving.from_bytes(bytes(data))
        record = Record.from_bytes(record_bytes)
        summary = cls.__new__(cls)
        summary._tables = tables
        summary._budget = record.budget
        summary._start(incomplete=record.incomplete)
        summary._ledger.unite(record.ledger)
        return summary

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the saved form to a file that only its owner can read; the old file or the new one, never a part.

        Raises:
            SourceError: the file cannot be written.
        """
        with replacing(path, private=True) as file:
            file.write(self.to_bytes())

    def __copy__(self) -> SpaceSaving:
        return self.from_bytes(self.to_bytes())

    def __deepcopy__(self, memo: dict[int, Any]) -> SpaceSaving:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return type(self).from_bytes, (self.to_bytes(),)


def thread_count(threads: int) -> int:
    """Return a number of workers, 1 to 64, or refuse it."""
    return whole_number("threads", threads, 1, MAX_THREADS, "More than there are cores do not help.")


def load(path: str | os.PathLike[str]) -> SpaceSaving:
    """Read a summary that `save` wrote.

    Raises:
        SourceError: the file cannot be read.
        CorruptSummary: it holds no whole, consistent summary.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError, TypeError) as error:
        raise SourceError(f"{path!s}: cannot be read ({reason(error)}). Check the path.") from None
    try:
        return SpaceSaving.from_bytes(data)
    except CorruptSummary as error:
        raise CorruptSummary(f"{path}: {error}") from None
