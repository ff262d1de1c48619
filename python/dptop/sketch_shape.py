"""Width and depth of a sketch from a budget of memory: those of the smallest threshold of its release."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dptop._native import MAX_CAPACITY, MAX_LENGTH
from dptop.envelope import (
    CountSketchError,
    beta_within,
    count_min_shape,
    count_sketch_shape,
    fixed_labels,
    noise_at_release,
    squares_failure,
)
from dptop.envelope.rows import EQUAL_FINGERPRINTS
from dptop.envelope.squares import squares_payable
from dptop.errors import InvalidParameter
from dptop.mechanism.sketch_noise import NOISES, SketchNoise
from dptop.parameters import one_of, shown, whole_number
from dptop.privacy import PrivacyParameters
from dptop.tie import Tie

if TYPE_CHECKING:
    from dptop.envelope import CellNoise, Envelope, LabelEnvelope, Shape, SketchError

__all__ = ["best_shape"]

COUNT_SKETCH: Final = "count-sketch"
MOST_BYTES: Final = 2**46
SPACE_SAVING: Final = "space-saving"  # both stand in dptop.tracked too, which needs this module
ESTIMATES: Final = "estimates"


def best_shape(
    rule: str,
    memory: int,
    *,
    capacity: int,
    length: int,
    epsilon: float,
    delta: float,
    candidates: str,
    noise: str,
    expected_squares: int | None,
) -> Shape[Envelope | LabelEnvelope]:
    """Return width and depth, and the envelope that a release has then: arguments and errors as in `for_memory`.

    Of a CountSketch it is the envelope if the bound on the squares that the release finds in the noisy rows comes to
    what is expected. Where the release takes length^2 instead, so does this.

    >>> shape = best_shape(
    ...     "count-min", 1_000_000, capacity=2000, length=10**6, epsilon=1.0, delta=1e-9, candidates="space-saving",
    ...     noise="laplace", expected_squares=None,
    ... )
    >>> shape.width, shape.depth, shape.claim.threshold(10**6, 2000)
    (5952, 21, 968)
    """
    memory = whole_number("memory", memory, 8, MOST_BYTES, "It is in bytes, 8 for a cell.")
    capacity = whole_number("capacity", capacity, 1, MAX_CAPACITY, "It is how many labels will be tracked.")
    length = whole_number("length", length, 1, MAX_LENGTH, "Declare a bound on the length of the stream.")
    one_of("candidates", candidates, (SPACE_SAVING, ESTIMATES))
    one_of("noise", noise, NOISES)
    if expected_squares is not None and rule != COUNT_SKETCH:
        raise InvalidParameter(
            "expected_squares must be left out but for a CountSketch: no other error depends on the squares; got"
            f" {shown(expected_squares)}. Leave it out."
        )
    squares = length**2
    if expected_squares is not None:
        remedy = "Without it, length^2 is expected."
        squares = whole_number("expected_squares", expected_squares, 0, squares, remedy)
    whole = PrivacyParameters.of(epsilon, delta)

    def noise_of(depth: int) -> CellNoise:
        return SketchNoise.of(noise, whole, depth)[0].cells

    made, left = SketchNoise.of(noise, whole, 1)  # the state's epsilon and delta are those of any depth
    form: partial[Any]
    if candidates == SPACE_SAVING:
        allowed = left
        form = partial(fixed_labels, delta=left, capacity=capacity, tie=Tie.LEAST_RECENT, state=made.state)
    else:
        allowed = beta_within(left, whole.epsilon)
        form = partial(noise_at_release, beta=allowed, capacity=capacity, state=made.state)

    def as_released(error: SketchError, *, within: int | None) -> Envelope | LabelEnvelope | None:
        if isinstance(error, CountSketchError) and squares_payable(error.width, error.depth, float(allowed)):
            error = replace(error, squares=squares, once=squares_failure(error.depth))
        claim: Envelope | LabelEnvelope | None = form(error, within=within)
        return claim

    shape: Shape[Envelope | LabelEnvelope] | None
    if rule == COUNT_SKETCH:
        shape = count_sketch_shape(
            memory,
            length=length,
            noise_of=noise_of,
            form=as_released,
            fully_random_signs=True,
            sharing=EQUAL_FINGERPRINTS,
        )
    else:
        shape = count_min_shape(memory, length=length, noise_of=noise_of, form=as_released, sharing=EQUAL_FINGERPRINTS)
    if shape is None:
        raise InvalidParameter(
            f"memory must be enough for a threshold below the length; got {memory} bytes for {length} items."
            " Give more, or release by the mechanism 'selected', which needs no envelope."
        )
    return shape
