"""Shards that tests release, and how."""

from __future__ import annotations

from typing import Any, Final

import dptop
from dptop.mechanism import CENTRAL_COUNTS, LOCAL_SUMS

ASK: Final[dict[str, Any]] = {"epsilon": 1.0, "delta": 1e-6}
FORMS: Final = (LOCAL_SUMS, CENTRAL_COUNTS)


def weighed(counts: dict[Any, int], capacity: int = 100, **parameters: Any) -> dptop.SpaceSaving:
    summary = dptop.SpaceSaving(capacity, **parameters)
    summary.extend(list(counts), weights=list(counts.values()))
    return summary


def shards_of(number: int) -> list[dptop.SpaceSaving]:
    """Return shards with one label each, a thousand times."""
    return [weighed({"a": 1000}) for _ in range(number)]
