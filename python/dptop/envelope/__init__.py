"""Error envelopes: how far the estimates of a frequency oracle are from the true counts, and with what probability.

A release of the labels whose estimates are largest needs them (Holland, section 5 and Appendix B): the threshold is
made of the errors, and their chance of failure is paid for in delta. For sketches they are computed here, by exact
summation over the noise; an oracle of another library states its own as an `Envelope`.

    CellNoise -> CountMinError, CountSketchError -> noise_at_release, noise_first, fixed_labels -> Envelope
"""

from dptop.envelope.binomial import majority
from dptop.envelope.cell_noise import CellNoise, GaussianCells, LaplaceCells, Moments, NoNoise, Spread
from dptop.envelope.claim import Envelope, LabelEnvelope, beta_within, delta_of
from dptop.envelope.count_min import CountMinError
from dptop.envelope.count_sketch import CountSketchError
from dptop.envelope.rows import collision_chance
from dptop.envelope.shape import Shape, count_min_shape, count_sketch_shape
from dptop.envelope.smallest import SketchError, fixed_labels, noise_at_release, noise_first
from dptop.envelope.squares import squares_bound, squares_failure, squares_payable

__all__ = [
    "CellNoise",
    "CountMinError",
    "CountSketchError",
    "Envelope",
    "GaussianCells",
    "LabelEnvelope",
    "LaplaceCells",
    "Moments",
    "NoNoise",
    "Shape",
    "SketchError",
    "Spread",
    "beta_within",
    "collision_chance",
    "count_min_shape",
    "count_sketch_shape",
    "delta_of",
    "fixed_labels",
    "majority",
    "noise_at_release",
    "noise_first",
    "squares_bound",
    "squares_failure",
    "squares_payable",
]
