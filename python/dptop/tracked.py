"""`Tracked`: a frequency oracle and, beside it, the labels whose counts are largest.

Own sketches count in Rust. An oracle of another library is asked item by item.
"""

from __future__ import annotations

import operator
import struct
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dptop import _native
from dptop._native import MAX_LABEL_BYTES
from dptop.counters import capacity_of, plain_labels
from dptop.errors import CorruptSummary, InvalidParameter
from dptop.label import largest_first
from dptop.ledger import LedgerRecord
from dptop.noise_record import noise_to_bytes
from dptop.oracle import NO_BUDGET, CountMin, FrequencyOracle, LinearSketch, NoisyAtRelease
from dptop.parameters import one_of
from dptop.record import Record
from dptop.source import read_both_weights
from dptop.summary import Summary
from dptop.tie import Tie

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dptop._native import LabelBatch, Reading
    from dptop.label import Label
    from dptop.privacy import Budget

__all__ = ["ESTIMATES", "SPACE_SAVING", "Tracked", "whole_estimate"]

ESTIMATES: Final = "estimates"
SPACE_SAVING: Final = "space-saving"
CANDIDATES: Final = (SPACE_SAVING, ESTIMATES)

PARAMETERS: Final = struct.Struct("<QBB")
"""The `parameters` section of the saved form: capacity, and the places of candidates and tie in their lists."""
TIES: Final = (Tie.LEAST_RECENT, Tie.MOST_RECENT)
MAX_ESTIMATE: Final = 2**63 - 1


def whole_estimate(estimate: object) -> int:
    """Return what an oracle of another library estimated.

    Raises:
        InvalidParameter: no whole number, or above 2^63 - 1 or below its negative.

    >>> whole_estimate(7)
    7
    """
    try:
        number = None if isinstance(estimate, bool) else operator.index(estimate)  # type: ignore[arg-type]  # the except is the check
    except TypeError:
        number = None
    if number is None or not -MAX_ESTIMATE <= number <= MAX_ESTIMATE:
        found = "a number out of that range" if number is not None else f"a value of type {type(estimate).__name__}"
        raise InvalidParameter(
            f"an oracle's estimate must be a whole number within 2**63; got {found}. Round it in the oracle."
        )
    return number


class Tracked(Summary):
    """The labels with the largest counts, for any frequency oracle: memory of the oracle and of `capacity` labels.

    Candidates are tracked by SpaceSaving, which is released with the smaller threshold, or, as in the paper, by the
    largest estimates seen: a label's estimate is taken when it arrives, and the `capacity` largest stay.

    Args:
        oracle: an empty `CountMin` or `CountSketch`, whose shape, keys and noise are taken over: the summary counts
            into a copy. One with noise in its cells is handed over once, and not released itself. Or any object that
            fits `FrequencyOracle`, which then belongs to the summary; such a summary is not saved or copied.
        capacity: labels tracked at the most, 1 to 2^31; the paper's k-tilde.
        candidates: "space-saving", the default, or "estimates".
        tie: the tie rule of SpaceSaving.
        budget: what all releases of this stream may spend together; by default there is one release, of any size, and
            there is never more than one of an oracle with noise before the first item.

    Raises:
        InvalidParameter: a value out of range, an oracle that has counted something or was handed over, or no oracle.

    Source: section 5 of the paper; docs/privacy.md sections 15 and 16.

    >>> import dptop
    >>> words = Tracked(dptop.CountMin(width=4096, depth=5), capacity=100)
    >>> words.extend(["a", "b", "a"] * 1000)
    >>> [row.item for row in dptop.release(words, epsilon=1.0, delta=1e-6)]
    ['a', 'b']
    """

    _saved_as: ClassVar[int] = 6

    def __init__(
        self,
        oracle: LinearSketch | FrequencyOracle,
        capacity: int,
        candidates: str = SPACE_SAVING,
        *,
        tie: str | Tie = Tie.LEAST_RECENT,
        budget: Budget | None = None,
    ) -> None:
        self._capacity = capacity_of(capacity)
        self._candidates = one_of("candidates", candidates, CANDIDATES)
        self._tie = Tie.of(tie)
        self._sketch: _native.Sketch | None = None
        self._tables: _native.Counters | None = None
        self._top: _native.TopEstimates | None = None
        if isinstance(oracle, LinearSketch):
            cells = oracle._sketch.copy()
            if cells.length() or not oracle._releasable:
                raise InvalidParameter(
                    "oracle must be empty when it is handed over; this one has counted something. Use a new one."
                )
            limit = oracle.max_label_bytes
        elif isinstance(oracle, FrequencyOracle) and not isinstance(oracle, type):
            limit = MAX_LABEL_BYTES  # it is asked for labels as they came
        else:
            raise InvalidParameter(
                "oracle must have the methods update, estimate and envelope of dptop.FrequencyOracle;"
                f" got {type(oracle).__name__}. Use CountMin, CountSketch or an object that has them."
            )
        if candidates == SPACE_SAVING:
            self._tables = _native.Counters(self._tie.algorithm, self._capacity, 1, limit)
        else:
            self._top = _native.TopEstimates(self._capacity, limit)
        self._oracle: LinearSketch | FrequencyOracle = oracle
        if budget is not None and not self._noise_is_fresh:
            raise InvalidParameter(
                "noise before the first item must hide a single release; got a budget for more. Leave the budget out,"
                " or draw the noise at release: with an oracle of another library, by a method noisy."
            )
        if isinstance(oracle, LinearSketch):
            self._sketch = cells
            self._oracle = oracle._over(self._sketch, oracle.noise)  # shape, noise and these cells
        self._start(budget)
        if isinstance(oracle, LinearSketch) and oracle.noise is not None:
            oracle._ledger.hand_over()  # two streams with the same noise would differ by what it hides

    @property
    def oracle(self) -> LinearSketch | FrequencyOracle:
        """An empty sketch of the shape and keys of the one that was handed over; noise that came first is drawn anew.

        Of another library's oracle the object itself, which is raw and private data.
        """
        oracle = self._oracle
        return oracle._emptied() if isinstance(oracle, LinearSketch) else oracle

    @property
    def capacity(self) -> int:
        """How many labels are tracked at the most. Public."""
        return self._capacity

    @property
    def candidates(self) -> str:
        """How they are chosen: "space-saving" or "estimates". Public."""
        return self._candidates

    @property
    def tie(self) -> Tie:
        """The tie rule of SpaceSaving. Public."""
        return self._tie

    @property
    def _noise_is_fresh(self) -> bool:
        """Whether each release draws noise of its own, and none is in the cells before the first item."""
        if isinstance(self._oracle, LinearSketch):
            return self._oracle.noise is None
        return isinstance(self._oracle, NoisyAtRelease)

    def __repr__(self) -> str:
        oracle = self._oracle  # the repr of another library's may tell what it holds
        shown = oracle.shape_in_words if isinstance(oracle, LinearSketch) else type(oracle).__name__
        kind = self._labelled.kind
        return f"Tracked({shown}, capacity={self._capacity}, candidates={self._candidates!r}, labels={kind!r})"

    @property
    def _labelled(self) -> _native.Counters | _native.TopEstimates:
        """What holds the tracked labels."""
        labelled = self._tables or self._top
        if labelled is None:
            raise AssertionError("labels are tracked in one way or the other")
        return labelled

    @property
    def _cells(self) -> _native.Sketch:
        if self._sketch is None:
            raise AssertionError("an oracle of another library has no cells here")
        return self._sketch

    @property
    def _identity(self) -> bytes:
        return self._labelled.identity

    def update(self, item: int | str | bytes | None, weight: int = 1) -> None:
        """Count one item, `weight` times in a row. None is a null and skipped; weight 0 changes nothing.

        Raises:
            UnsupportedLabel: not an int, str or bytes, or not of the kind that this summary holds.
            InvalidParameter: a weight that is no whole number from 0 to 2^63 - 1, or a sum of weights above that.
        """
        self.extend([item], [weight])

    def _read_weights(self, weights: Any) -> Any:
        return read_both_weights(weights)

    def _count(self, batches: list[LabelBatch], weights: Any, threads: int, reading: Reading) -> None:
        counts, signed = weights or (None, None)
        if self._tables is not None:
            self._tables.extend(batches, counts, threads, reading)
        if self._sketch is not None:
            self._sketch.extend(batches, signed, reading, self._top)
            return
        if self._top is not None:
            self._top.begin(batches, counts, reading)
        each = None if counts is None else iter(counts.values())
        for batch in batches:
            for item in batch.to_list():
                weight = 1 if each is None else next(each)
                if item is not None and weight:
                    self._oracle.update(item, weight)
                    if self._top is not None:
                        self._top.offer(item, whole_estimate(self._oracle.estimate(item)))

    def _length(self) -> int:
        return self._labelled.length()

    def _snapshot(self) -> tuple[int, list[tuple[int, list[int]]]]:
        """Return the length and the table of SpaceSaving; of tracked estimates only how many there are."""
        if self._tables is not None:
            return self._tables.snapshot()
        top = self._labelled
        assert isinstance(top, _native.TopEstimates)  # noqa: S101 - the other way to track labels
        return top.length(), [(0, [0] * top.tracked())]

    def _encode(self, record: bytes) -> bytes:
        oracle = self._oracle
        if not isinstance(oracle, LinearSketch):
            raise InvalidParameter(
                "a summary that is saved or copied must count into a sketch of dptop, whose saved form is known; got"
                f" {type(oracle).__name__}. Release it without, or track beside CountMin or CountSketch."
            )
        parameters = PARAMETERS.pack(self._capacity, CANDIDATES.index(self._candidates), TIES.index(self._tie))
        sketch = self._cells.to_bytes(_handed_over(oracle).to_bytes(), noise_to_bytes(oracle.noise))
        return _native.tracked_to_bytes(parameters, record, sketch, self._labelled.to_bytes(b""))

    def _decode(self, data: bytes) -> bytes:
        parameters, record, saved_sketch, saved_labels = _native.tracked_from_bytes(data)
        try:
            self._capacity, candidates, tie = PARAMETERS.unpack(parameters)
            self._candidates, self._tie = CANDIDATES[candidates], TIES[tie]
        except (struct.error, IndexError):
            raise _corrupt() from None
        counted, given = LinearSketch._read(saved_sketch)
        self._sketch, self._tables, self._top = counted._sketch, None, None
        if self._candidates == SPACE_SAVING:
            self._tables, nothing = _native.Counters.from_bytes(saved_labels)
        else:
            self._top, nothing = _native.TopEstimates.from_bytes(saved_labels)
        spent = Record.from_bytes(record)
        if spent.budget and counted.noise:
            raise CorruptSummary(NO_BUDGET)
        if nothing or given != _handed_over(counted):
            raise _corrupt()
        if not self._parts_agree(self._sketch, incomplete=spent.incomplete):
            raise _corrupt()
        if counted.noise is None and not self._counts_agree(counted, incomplete=spent.incomplete):
            raise _corrupt()
        self._oracle = counted
        return record

    def _parts_agree(self, sketch: _native.Sketch, *, incomplete: bool) -> bool:
        """Whether the labels may be those of what the sketch has counted.

        One of the two may have counted more where an input broke off, or is being read: it is never released then.
        """
        labelled = self._labelled
        kinds = {labelled.kind, sketch.kind}
        tables = self._tables
        if tables is not None and (tables.algorithm, tables.partitions) != (self._tie.algorithm, 1):
            return False
        if (labelled.capacity, labelled.max_label_bytes) != (self._capacity, sketch.max_label_bytes):
            return False
        return len(kinds - {None}) <= 1 if incomplete else len(kinds) == 1 and labelled.length() == sketch.length()

    def _counts_agree(self, counted: LinearSketch, *, incomplete: bool) -> bool:
        """Whether a sketch without noise may give the estimates that are stored, and count what SpaceSaving counted.

        The size of an estimate is at most the length. Items are not taken back here, so that those of Count-Min only
        grow, from 1 at a label's own arrival on.
        """
        _, [(minimum, counts)] = self._snapshot()
        if self._top is not None:
            counts, length = self._top.stored(), self._top.length()
            if any(abs(estimate) > length for estimate in counts):
                return False
        if incomplete or not isinstance(counted, CountMin):
            return True
        least = counts if self._top is not None else [max(count - minimum, 1) for count in counts]
        estimates = counted._sketch.estimates_of(self._labelled, 0, list(range(len(counts))))
        return all(1 <= low <= estimate for low, estimate in zip(least, estimates, strict=True))

    def private_counters(self) -> list[tuple[Label, int]]:
        """Return (item, estimate) for every tracked label, by estimate downwards, then item. PRIVATE: not a release.

        Estimates are those of the oracle now, not those that the labels were tracked by.

        Raises:
            InvalidParameter: an oracle of another library gave an estimate that is no whole number.
        """
        _, [(_, counts)] = self._snapshot()
        positions = list(range(len(counts)))
        labels = self._labels(0, positions)
        if isinstance(self._oracle, LinearSketch):
            return largest_first(zip(labels, self._cells.estimates_of(self._labelled, 0, positions), strict=True))
        return largest_first((label, whole_estimate(self._oracle.estimate(label))) for label in labels)

    def _labels(self, partition: int, positions: Sequence[int]) -> list[Label]:
        return plain_labels(self._labelled.labels(partition, list(positions)))


def _handed_over(oracle: LinearSketch) -> Record:
    """Return the record of an empty sketch that was handed over; noise is handed over once."""
    return Record(oracle.budget, LedgerRecord(closed=oracle.noise is not None))


def _corrupt() -> CorruptSummary:
    return CorruptSummary(
        "the labels contradict the sketch beside them. Save the summary again, or read the stream again."
    )
