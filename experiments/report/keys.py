"""The methods by name, where one is meant: their keys in the raw results."""

from __future__ import annotations

from typing import Final

from experiments.methods import CEILING, METHODS, PLAIN
from experiments.plan import ON_FRONTIER

__all__ = [
    "ALGORITHM_3",
    "BOUNDED",
    "COUNTERS",
    "COUNT_MIN",
    "COUNT_MIN_CANDIDATES",
    "COUNT_MIN_SELECTED",
    "COUNT_SKETCH",
    "COUNT_SKETCH_CANDIDATES",
    "COUNT_SKETCH_SELECTED",
    "EXACT_THRESHOLD",
    "FOUR",
    "HISTOGRAM",
    "PLAIN_OF",
    "PRIVATE",
    "PUBLISHED",
    "SKETCHES",
    "STABLE",
]

ALGORITHM_3: Final = "paper"
"""SpaceSaving, as in the paper."""
PUBLISHED: Final = "misra-gries-published"
"""Misra-Gries, as in the paper."""
COUNT_MIN: Final = "count-min"
COUNT_SKETCH: Final = "count-sketch"
COUNTERS: Final = (ALGORITHM_3, PUBLISHED)
SKETCHES: Final = (COUNT_MIN, COUNT_SKETCH)
FOUR: Final = (*COUNTERS, *SKETCHES)
"""The paper's four methods."""

EXACT_THRESHOLD: Final = "misra-gries"
STABLE: Final = "stable-threshold"
COUNT_MIN_SELECTED: Final = "count-min-selected"
COUNT_SKETCH_SELECTED: Final = "count-sketch-selected"
COUNT_MIN_CANDIDATES: Final = "count-min-candidates"
COUNT_SKETCH_CANDIDATES: Final = "count-sketch-candidates"
HISTOGRAM: Final = "exact-histogram"

PLAIN_OF: Final = {
    ALGORITHM_3: "plain-space-saving",
    PUBLISHED: "plain-misra-gries",
    COUNT_MIN: "plain-count-min",
    COUNT_SKETCH: "plain-count-sketch",
}
"""What the summaries of the paper's four say without privacy."""
PRIVATE: Final = tuple(key for key, method in METHODS.items() if method.family not in (CEILING, PLAIN))
"""What is private in bounded memory."""
BOUNDED: Final = tuple(key for key in ON_FRONTIER if key in PRIVATE)
"""What of it is on the frontier."""
