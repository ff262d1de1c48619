"""What is compared: every method by its key, with the words that figures and the page use."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["CEILING", "METHODS", "OURS", "PAPER", "PLAIN", "Method"]

PAPER: Final = "paper"
"""As in the paper."""
OURS: Final = "ours"
"""Of this project."""
CEILING: Final = "ceiling"
"""Private, but in memory that grows with the data: no private summary can be expected to do better."""
PLAIN: Final = "plain"
"""Not private at all: what the summary itself says."""


class Method(NamedTuple):
    """One way to report heavy labels.

    Attributes:
        title: in a legend.
        family: PAPER, OURS, CEILING or PLAIN.
        summary: what counts: a key of `experiments.methods.summaries.SUMMARIES`.
    """

    title: str
    family: str
    summary: str


METHODS: Final = {
    "paper": Method("SpaceSaving, Algorithm 3", PAPER, "space-saving, most recent"),
    "misra-gries-published": Method("Misra-Gries, published threshold", PAPER, "misra-gries"),
    "count-min": Method("Count-Min, envelope", PAPER, "count-min, estimates"),
    "count-sketch": Method("CountSketch, envelope", PAPER, "count-sketch, estimates"),
    "misra-gries": Method("Misra-Gries, exact threshold", OURS, "misra-gries"),
    "stable-threshold": Method("SpaceSaving, StableThreshold", OURS, "space-saving"),
    "count-min-selected": Method("Count-Min, selected", OURS, "count-min, space-saving"),
    "count-sketch-selected": Method("CountSketch, selected", OURS, "count-sketch, space-saving"),
    "count-min-candidates": Method("Count-Min, envelope over SpaceSaving", OURS, "count-min, space-saving"),
    "count-sketch-candidates": Method("CountSketch, envelope over SpaceSaving", OURS, "count-sketch, space-saving"),
    "exact-histogram": Method("exact stability histogram", CEILING, "exact"),
    "plain-space-saving": Method("SpaceSaving, not private", PLAIN, "space-saving"),
    "plain-misra-gries": Method("Misra-Gries, not private", PLAIN, "misra-gries"),
    "plain-count-min": Method("Count-Min, not private", PLAIN, "count-min, estimates"),
    "plain-count-sketch": Method("CountSketch, not private", PLAIN, "count-sketch, estimates"),
}
"""Every method by its key in the raw results, in the order of legends."""
