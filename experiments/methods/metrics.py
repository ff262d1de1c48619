"""How good a release is: recall, precision and errors against exact counts, as in section 6.2 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.methods.exact import ExactCounts, Integers, counted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import pyarrow as pa

__all__ = ["Quality", "Truth", "quality"]


@dataclass(frozen=True)
class Truth:
    """The exact counts of a stream.

    Attributes:
        counts: of every label.
    """

    counts: ExactCounts

    @classmethod
    def of(cls, items: pa.Array) -> Truth:
        """Count a stream of int64 or of strings, without nulls."""
        return cls(counted(items))

    @cached_property
    def length(self) -> int:
        """Items of the stream, n."""
        return int(self.counts.counts.sum())

    @property
    def distinct(self) -> int:
        """Labels that occur."""
        return len(self.counts.labels)

    def least_count(self, k: int) -> int:
        """Return the smallest count of a heavy label: the smallest f with f * k >= n, in integers."""
        return -(-self.length // k)

    def heavy(self, k: int) -> list[int | str]:
        """Return the labels with f * k >= n, smallest first."""
        found: list[int | str] = self.counts.labels.filter(self.counts.counts >= self.least_count(k)).to_pylist()
        return found

    def number_heavy(self, k: int) -> int:
        """Return how many labels have f * k >= n."""
        return int(np.count_nonzero(self.counts.counts >= self.least_count(k)))

    def counts_of(self, labels: Collection[int | str]) -> Integers:
        """Return the true counts of labels, in their order; 0 for one that does not occur."""
        known = self._by_label
        return np.fromiter((known.get(label, 0) for label in labels), np.int64, len(labels))

    @cached_property
    def _by_label(self) -> dict[int | str, int]:
        # Arrow would hash every label anew at each question: a second for three million
        return dict(zip(self.counts.labels.to_pylist(), self.counts.counts.tolist(), strict=True))


class Quality(NamedTuple):
    """What `experiments.results.Row` says of a release: see there."""

    heavy: int
    released: int
    recall: float | None
    precision: float | None
    relative_error: float | None
    absolute_error: float | None


def quality(released: Mapping[int | str, int], truth: Truth, k: int | None) -> Quality:
    """Return how good a release is.

    Args:
        released: counts by label.
        truth: of the stream that was counted.
        k: heavy labels have at least n/k items. None if nothing was asked for: then `heavy` is 0 and there is neither
            recall nor precision.

    Raises:
        ValueError: a released label does not occur in the stream, which no method here can do.
    """
    counts = np.fromiter(released.values(), np.int64, len(released))
    true = truth.counts_of(released.keys())
    if not true.all():
        raise ValueError(
            f"every released label must occur in the stream; {np.count_nonzero(true == 0)} do not."
            " Compare with the truth of the same stream."
        )
    heavy = truth.number_heavy(k) if k is not None else 0
    hits = int(np.count_nonzero(true >= truth.least_count(k))) if k is not None else 0
    errors = np.abs(counts - true)
    return Quality(
        heavy=heavy,
        released=len(released),
        recall=hits / heavy if heavy else None,
        precision=hits / len(released) if released and k is not None else None,
        relative_error=float((errors / true).mean()) if released else None,
        absolute_error=float(errors.mean()) if released else None,
    )
