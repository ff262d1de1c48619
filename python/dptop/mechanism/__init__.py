"""The privacy mechanisms: noise scale, threshold, THE comparison, and the chance that the comparison was built for.

One class per mechanism owns all four, so that they cannot drift apart. `tests/test_exact_divergence.py` sums the exact
probabilities over what `keeps` keeps and compares the result with `delta`.
"""

from typing import Final

from dptop.mechanism.length import LengthBound
from dptop.mechanism.misra_gries import MisraGriesThreshold
from dptop.mechanism.paper import PaperThreshold
from dptop.mechanism.sketch_noise import GAUSSIAN, LAPLACE, NOISES, SketchNoise
from dptop.mechanism.stable import StableThreshold

__all__ = [
    "CENTRAL_COUNTS",
    "ENVELOPE",
    "GAUSSIAN",
    "LAPLACE",
    "LOCAL_SUMS",
    "MECHANISMS",
    "MISRA_GRIES",
    "MISRA_GRIES_PUBLISHED",
    "NOISES",
    "PAPER",
    "PUBLIC_LABELS",
    "SELECTED",
    "STABLE",
    "LengthBound",
    "MisraGriesThreshold",
    "PaperThreshold",
    "SketchNoise",
    "StableThreshold",
]

STABLE: Final = "stable-threshold"
PAPER: Final = "paper"
MISRA_GRIES: Final = "misra-gries"
MISRA_GRIES_PUBLISHED: Final = "misra-gries-published"
ENVELOPE: Final = "envelope"
SELECTED: Final = "selected"
PUBLIC_LABELS: Final = "public-labels"
LOCAL_SUMS: Final = "local-sums"
CENTRAL_COUNTS: Final = "central-counts"
MECHANISMS: Final = (
    STABLE,
    PAPER,
    MISRA_GRIES,
    MISRA_GRIES_PUBLISHED,
    SELECTED,
    ENVELOPE,
    PUBLIC_LABELS,
    LOCAL_SUMS,
    CENTRAL_COUNTS,
)
"""What a release calls each of them."""
