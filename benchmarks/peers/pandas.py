"""pandas: value_counts of a Series; strings in the Arrow-backed type that is its default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from benchmarks.peers import Found, Work
from benchmarks.streams import TOP

if TYPE_CHECKING:
    from benchmarks.streams import Stream


def exact(stream: Stream, capacity: int) -> Work:
    """Group and count."""
    series = pd.Series(stream.arrow.to_pandas())
    return Work(
        lambda: series.value_counts(sort=False),
        lambda counts: Found(lambda: counts.nlargest(TOP).index.tolist()),
    )
