"""Width and depth of a sketch from a budget of memory: those of the smallest threshold of its release."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dptop.envelope import beta_within, count_min_shape, count_sketch_shape, fixed_labels, noise_at_release
from dptop.envelope.rows import EQUAL_FINGERPRINTS
from dptop.errors import InvalidParameter
from dptop.mechanism.sketch_noise import NOISES, SketchNoise
from dptop.parameters import one_of, whole_number
from dptop.privacy import PrivacyParameters
from dptop.tie import Tie

if TYPE_CHECKING:
    from dptop.envelope import CellNoise

__all__ = ["best_shape"]

COUNT_SKETCH: Final = "count-sketch"
MOST_BYTES: Final = 2**46


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
) -> tuple[int, int]:
    """Return (width, depth): arguments and errors as in `CountMin.for_memory`.

    >>> best_shape(
    ...     "count-min", 1_000_000, capacity=2000, length=10**6, epsilon=1.0, delta=1e-9, candidates="space-saving",
    ...     noise="laplace", expected_squares=None,
    ... )
    (5952, 21)
    """
    memory = whole_number("memory", memory, 8, MOST_BYTES, "It is in bytes, 8 for a cell.")
    capacity = whole_number("capacity", capacity, 1, 2**31, "It is how many labels will be tracked.")
    one_of("candidates", candidates, ("space-saving", "estimates"))
    one_of("noise", noise, NOISES)
    whole = PrivacyParameters.of(epsilon, delta)

    def noise_of(depth: int) -> CellNoise:
        return SketchNoise.of(noise, whole, depth)[0].cells

    made, left = SketchNoise.of(noise, whole, 1)  # the state's epsilon and delta are those of any depth
    form: partial[Any]
    if candidates == "space-saving":
        form = partial(fixed_labels, delta=left, capacity=capacity, tie=Tie.LEAST_RECENT, state=made.state)
    else:
        beta = beta_within(left, whole.epsilon)
        form = partial(noise_at_release, beta=beta, capacity=capacity, state=made.state)
    if rule == COUNT_SKETCH:
        shape = count_sketch_shape(
            memory,
            length=length,
            noise_of=noise_of,
            form=form,
            expected_squares=expected_squares,
            fully_random_signs=True,
            sharing=EQUAL_FINGERPRINTS,
        )
    else:
        shape = count_min_shape(memory, length=length, noise_of=noise_of, form=form, sharing=EQUAL_FINGERPRINTS)
    if shape is None:
        raise InvalidParameter(
            f"memory must be enough for a threshold below the length; got {memory} bytes for {length} items."
            " Give more, or release by the mechanism 'selected', which needs no envelope."
        )
    return shape.width, shape.depth
