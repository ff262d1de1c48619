"""The one door from private to public: `release` checks, charges the ledger, draws noise once, and keeps what may pass.

Nothing private leaves by another way: the rows are built from noisy counts, in an order that depends on them and the
labels alone, and the result holds no reference to the summary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NamedTuple

from dptop import noise
from dptop._native import MAX_LENGTH
from dptop.errors import InvalidParameter, SourceError
from dptop.label import label_order
from dptop.mechanism import PAPER, STABLE, LengthBound, PaperThreshold, StableThreshold
from dptop.parameters import as_written, one_of, real_number, shown, whole_number
from dptop.privacy import PRECISE, PrivacyParameters, Spent, floor_epsilon, per_item
from dptop.report import Release, Row
from dptop.summary import SpaceSaving

__all__ = ["Request", "release"]

LENGTH_SHARE: Final = Fraction(1, 50)
"""The part of epsilon that estimates the length where a share is asked for and no length declared."""
MAX_TOP: Final = 2**31
MAX_CONTRIBUTIONS: Final = 2**31


Tables = list[tuple[int, list[int]]]
"""For each partition its minimum counter and its counters."""


class Published(NamedTuple):
    """What a mechanism makes public."""

    rows: list[Row]
    noisy_minimum: tuple[int, ...]
    noisy_length: int | None
    parameters: dict[str, Any]


Publish = Callable[[int, Tables, int | None], Published]
"""From the length of the stream, its tables and a seed for tests to what is public."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a release is asked to be, checked before anything is read or spent. Arguments as in `release`."""

    epsilon: float
    delta: float
    top: int | None = None
    share: float | None = None
    length: int | None = None
    max_contributions: int = 1
    mechanism: str | None = None
    confidence: float = 0.95
    simultaneous: bool | None = None
    total: PrivacyParameters = field(init=False, repr=False)
    per_item: PrivacyParameters = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, value in self._checked().items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "per_item", per_item(self.total, self.max_contributions))
        if self.estimates_length and not self.length_epsilon:
            raise InvalidParameter(
                "2 % of epsilon / max_contributions must be at least 2**-32 to estimate the length; got"
                f" {float(self.per_item.epsilon)!r}. Declare length=, or use a larger epsilon."
            )

    def _checked(self) -> dict[str, object]:
        """Return the fields as plain Python numbers in their ranges, or refuse them."""
        values: dict[str, object] = {"total": PrivacyParameters.of(self.epsilon, self.delta)}
        if self.top is not None:
            values["top"] = whole_number("top", self.top, 1, MAX_TOP, "Leave it out for every label that passes.")
        if self.share is not None:
            values["share"] = real_number(
                "share", self.share, "0 < share <= 1", lambda x: 0 < x <= 1, "0.01 asks for 1 %."
            )
        if self.length is not None:
            remedy = "Declare a bound that you know without the data."
            values["length"] = whole_number("length", self.length, 1, MAX_LENGTH, remedy)
        values["max_contributions"] = whole_number(
            "max_contributions", self.max_contributions, 1, MAX_CONTRIBUTIONS, "Bound it at the source."
        )
        values["mechanism"] = STABLE if self.mechanism is None else one_of("mechanism", self.mechanism, (STABLE, PAPER))
        if values["mechanism"] == PAPER and self.share is None:
            raise InvalidParameter(
                "mechanism 'paper' must have a share, the paper's 1/k; got none. Give share=, such as 0.01."
            )
        values["confidence"] = real_number(
            "confidence", self.confidence, "0 < confidence < 1", lambda x: 0 < 1 - x < 1, "Try 0.95."
        )
        if self.simultaneous is None:
            values["simultaneous"] = self.top is not None or self.share is not None
        elif not isinstance(self.simultaneous, bool):
            raise InvalidParameter(f"simultaneous must be True or False; got {shown(self.simultaneous)}. Choose one.")
        return values

    @property
    def estimates_length(self) -> bool:
        """Whether a part of epsilon goes to the length of the stream."""
        return self.share is not None and self.length is None

    @property
    def length_epsilon(self) -> Fraction:
        """The epsilon of the noisy length, 0 if there is none."""
        return floor_epsilon(self.per_item.epsilon * LENGTH_SHARE) if self.estimates_length else Fraction(0)

    @property
    def for_labels(self) -> PrivacyParameters:
        """What is left for labels and counts: of epsilon what the length leaves, of delta all or, with it, a half."""
        # exact: in the context of the caller the difference of two decimals may be rounded, also up
        delta = PRECISE.subtract(self.per_item.delta, self.length_delta)
        return PrivacyParameters(self.per_item.epsilon - self.length_epsilon, delta)

    @property
    def length_delta(self) -> Decimal:
        """The delta of a noisy length that must not be too short: half of all, where the mechanism depends on it."""
        if self.mechanism == PAPER and self.estimates_length:
            return PRECISE.divide(self.per_item.delta, 2)
        return Decimal(0)

    def release(self, summary: SpaceSaving, seed: int | None = None) -> Release:
        """Release what is asked for: promise, errors and `seed` as in `dptop.release`."""
        if not isinstance(summary, SpaceSaving):
            raise InvalidParameter(
                f"summary must be a summary of dptop; got {type(summary).__name__}. Count the stream with SpaceSaving."
            )
        if seed is not None:
            seed = whole_number("seed", seed, 0, MAX_LENGTH, "Leave it out: a seed is for tests only.")
        if not summary._releasable:
            raise SourceError(
                "a summary is released only if its stream was read to the end; this one is being read, or was cut"
                " short. Wait for every extend(), or count the stream again with a new summary."
            )
        publish = self._by_paper(summary) if self.mechanism == PAPER else self._by_noisy_minimum(summary)
        summary._ledger.charge(Spent(self.total, self.max_contributions), summary.budget, self.length)
        stream_length, tables = summary._tables.snapshot()
        if self.length is not None and stream_length > self.length:  # asked after the charge: the answer tells of n
            summary._ledger.close()  # no second bound is compared with the same stream, nor with a copy
            raise InvalidParameter(
                f"length must bound the length of the stream; {self.length} does not, and the stream is spent."
                " Count it again, and declare a bound that you know without the data."
            )

        result = publish(stream_length, tables, seed)
        if summary._tables.length() != stream_length or not summary._releasable:
            # then the labels may be those of other counters
            raise SourceError(
                "a summary is released only after its stream was read to the end; items were counted meanwhile, and the"
                " release is spent. Wait for every extend() before release()."
            )
        rows = sorted(result.rows, key=lambda row: (-row.count, label_order(row.item)))
        return Release(
            rows=tuple(rows[: self.top]),
            epsilon=float(self.total.epsilon),
            delta=float(self.total.delta),
            mechanism=str(self.mechanism),
            private=seed is None,
            noisy_minimum=result.noisy_minimum,
            noisy_length=result.noisy_length,
            parameters={
                "summary": "SpaceSaving",
                "capacity": summary.capacity,
                "tie": summary.tie.value,
                "partitions": summary.partitions,
                **result.parameters,
                "top": self.top,
                "share": self.share,
                "length": self.length,
                "length_epsilon": float(self.length_epsilon),
                "max_contributions": self.max_contributions,
                "item_epsilon": float(self.per_item.epsilon),
                "item_delta": float(self.per_item.delta),
                "confidence": self.confidence,
                "simultaneous": self.simultaneous,
            },
        )

    def _by_noisy_minimum(self, summary: SpaceSaving) -> Publish:
        """Return what publishes by `StableThreshold`."""
        stable = StableThreshold.of(self.for_labels, summary.tie)
        per_table = -(-summary.capacity // summary.partitions)

        def publish(length: int, tables: Tables, seed: int | None) -> Published:
            least_count, noisy_length = self._least_count(length, seed)
            # for each partition its Z_0, then one Z_x per tracked label
            draws = iter(noise.draw(stable.epsilon, sum(1 + len(counts) for _, counts in tables), seed))
            minima: list[int] = []
            rows: list[Row] = []
            for partition, (minimum, counts) in enumerate(tables):
                noisy_minimum = minimum + next(draws)
                noisy = [count + next(draws) for count in counts]
                kept = [x for x, v in enumerate(noisy) if stable.keeps(v, noisy_minimum)]
                if least_count is not None:
                    kept = [x for x in kept if noisy[x] >= least_count]
                published = [noisy[x] for x in kept]
                intervals = stable.intervals(
                    published,
                    noisy_minimum,
                    1 - self.confidence,
                    simultaneous_over=per_table if self.simultaneous else None,
                    tables=summary.partitions,
                )
                rows += _rows(summary, partition, kept, published, intervals)
                minima.append(noisy_minimum)
            return Published(rows, tuple(minima), noisy_length, {"scale": stable.scale, "offset": stable.offset})

        return publish

    def _by_paper(self, summary: SpaceSaving) -> Publish:
        """Return what publishes by `PaperThreshold`."""
        if summary.partitions > 1:
            raise InvalidParameter(
                "mechanism 'paper' must have one table, whose minimum the length bounds;"
                f" got partitions={summary.partitions}. Count with one partition, or use 'stable-threshold'."
            )
        paper = PaperThreshold.of(self.for_labels, summary.capacity, self._exact_share(), summary.tie)
        bound = LengthBound(self.length_epsilon, self.length_delta) if self.estimates_length else None

        def publish(length: int, tables: Tables, seed: int | None) -> Published:
            public_length, noisy_length = self._public_length(length, seed)
            if bound is not None:
                public_length = bound.above(public_length)
            [(_, counts)] = tables
            draws = noise.draw(paper.epsilon, len(counts), seed)
            noisy = [count + draw for count, draw in zip(counts, draws, strict=True)]
            kept = [x for x, v in enumerate(noisy) if paper.keeps(v, public_length)]
            published = [noisy[x] for x in kept]
            intervals = paper.intervals(
                published, public_length, 1 - self.confidence, simultaneous=bool(self.simultaneous)
            )
            return Published(
                _rows(summary, 0, kept, published, intervals),
                (),
                noisy_length,
                {"scale": paper.scale, "gap": paper.gap, "threshold": paper.threshold(public_length)},
            )

        return publish

    def _least_count(self, length: int, seed: int | None) -> tuple[int | None, int | None]:
        """Return the smallest noisy count with the share asked for, if any, and the noisy length if one was drawn.

        v >= share * n in integers: the share is the decimal number that it is written as.
        """
        if self.share is None:
            return None, None
        public_length, noisy_length = self._public_length(length, seed)
        share = self._exact_share()
        return -(-share.numerator * public_length // share.denominator), noisy_length

    def _exact_share(self) -> Fraction:
        return Fraction(as_written(self.share or 0.0))

    def _public_length(self, length: int, seed: int | None) -> tuple[int, int | None]:
        """Return the declared length, or else the noisy one, which is drawn here; and that again, or None."""
        if self.length is not None:
            return self.length, None
        # a seed of its own: seeded noise must not repeat that of the counts
        own_seed = None if seed is None else seed + MAX_LENGTH + 1
        noisy_length = length + noise.draw(self.length_epsilon, 1, own_seed)[0]
        return noisy_length, noisy_length


def _rows(
    summary: SpaceSaving, partition: int, kept: list[int], counts: list[int], intervals: list[tuple[int, int]]
) -> list[Row]:
    labels = summary._labels(partition, kept)
    return [Row(label, v, *ends) for label, v, ends in zip(labels, counts, intervals, strict=True)]


def release(
    summary: SpaceSaving,
    *,
    epsilon: float,
    delta: float,
    top: int | None = None,
    share: float | None = None,
    length: int | None = None,
    max_contributions: int = 1,
    mechanism: str | None = None,
    confidence: float = 0.95,
    simultaneous: bool | None = None,
    seed: int | None = None,
) -> Release:
    """Release the most frequent labels of a stream: everything in the result is (epsilon, delta)-private, together.

    Two streams are neighbours if one is the other with one item added or removed anywhere. With `max_contributions` c
    the promise holds for all items of one unit (a person, a device), of total weight at most c, provided that the
    source bounds them.

    Args:
        summary: what was counted. One release, unless it declared a budget.
        epsilon: the total, 2^-20 to 64; rounded down to a multiple of 2^-32.
        delta: the total, 0 < delta < 1; well below one over the number of units.
        top: the number of largest noisy counts to keep; by default every label that passes the threshold.
        share: keep labels with at least this share of the stream, 0 < share <= 1 (the paper's 1/k). The length of the
            stream is then estimated with 2 % of epsilon, unless `length` declares a bound.
        length: a public upper bound on the length, known without looking at the data.
        max_contributions: the largest total weight of the items of one unit, 1 to 2^31.
        mechanism: "stable-threshold", which is the default, or "paper": the paper's Algorithm 3, which needs a `share`
            and one partition, publishes no minimum, and is seldom better.
        confidence: of the intervals, 0 < confidence < 1.
        simultaneous: whether all intervals hold at once, whatever is picked among them; they are wider. Otherwise each
            holds by itself, given that its label passed the threshold, and less often if it was picked once more by its
            noisy count. By default True where `top` or `share` picks, else False.
        seed: for tests only: repeatable noise, and a result that is not private.

    Raises:
        InvalidParameter: a value out of range: nothing is spent. A stream longer than `length`: the release is spent
            and the summary closed, since the error tells of the length; the promise covers streams within the bound.
        BudgetExhausted: the stream has been released already, or its budget does not cover this.
        SourceError: an error cut the stream short.

    Source: docs/privacy.md sections 4 to 7 and 12; the mechanisms are `StableThreshold` and `PaperThreshold` of
    `dptop.mechanism`.

    >>> import dptop
    >>> pages = dptop.SpaceSaving(capacity=1000)
    >>> pages.extend(["/home", "/cart", "/home"] * 500)
    >>> [row.item for row in dptop.release(pages, epsilon=1.0, delta=1e-9)]
    ['/home', '/cart']
    """
    return Request(
        epsilon=epsilon,
        delta=delta,
        top=top,
        share=share,
        length=length,
        max_contributions=max_contributions,
        mechanism=mechanism,
        confidence=confidence,
        simultaneous=simultaneous,
    ).release(summary, seed)
