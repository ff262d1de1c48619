"""The standard library: collections.Counter of a list."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.peers import Found, Work
from benchmarks.streams import TOP

if TYPE_CHECKING:
    from benchmarks.streams import Stream


def exact(stream: Stream, capacity: int) -> Work:
    """Count Python objects, which are made before the clock starts."""
    items = stream.list
    return Work(lambda: Counter(items), lambda counts: Found(lambda: [label for label, _ in counts.most_common(TOP)]))
