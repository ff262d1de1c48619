"""The most frequent items of a data stream, in bounded memory, under differential privacy.

Count with a summary, publish with `release`, read the `Release`:

>>> import dptop
>>> pages = dptop.SpaceSaving(capacity=65_536)
>>> pages.extend(["/home", "/cart", "/home"] * 1000)
>>> result = dptop.release(pages, epsilon=1.0, delta=1e-9, top=20)
>>> [row.item for row in result]
['/home', '/cart']
"""

from dptop import _native
from dptop.counters import MisraGries, SpaceSaving
from dptop.envelope import Envelope
from dptop.errors import (
    BudgetExhausted,
    CorruptSummary,
    DptopError,
    IncompatibleSummaries,
    InvalidParameter,
    MissingExtra,
    SourceError,
    UnsupportedLabel,
)
from dptop.files import FileLabels, read_labels
from dptop.label import Label, ShortenedLabel
from dptop.mechanism import SketchNoise, StableThreshold
from dptop.oracle import CountMin, CountSketch, FrequencyOracle, LinearSketch, NoisyAtRelease
from dptop.privacy import Budget, PrivacyParameters
from dptop.release import release
from dptop.report import Release, Row
from dptop.sharded import Sharded
from dptop.summary import Summary, load
from dptop.tie import Tie
from dptop.tracked import Tracked

__version__ = _native.VERSION

__all__ = [
    "Budget",
    "BudgetExhausted",
    "CorruptSummary",
    "CountMin",
    "CountSketch",
    "DptopError",
    "Envelope",
    "FileLabels",
    "FrequencyOracle",
    "IncompatibleSummaries",
    "InvalidParameter",
    "Label",
    "LinearSketch",
    "MisraGries",
    "MissingExtra",
    "NoisyAtRelease",
    "PrivacyParameters",
    "Release",
    "Row",
    "Sharded",
    "ShortenedLabel",
    "SketchNoise",
    "SourceError",
    "SpaceSaving",
    "StableThreshold",
    "Summary",
    "Tie",
    "Tracked",
    "UnsupportedLabel",
    "__version__",
    "load",
    "read_labels",
    "release",
]
