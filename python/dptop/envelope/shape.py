"""Width and depth of a sketch for a budget of memory: those of the smallest threshold."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from dptop.envelope.count_min import CountMinError
from dptop.envelope.count_sketch import CountSketchError
from dptop.envelope.squares import squares_failure
from dptop.parameters import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dptop.envelope.cell_noise import CellNoise
    from dptop.envelope.smallest import SketchError

__all__ = ["Shape", "count_min_shape", "count_sketch_shape"]

BYTES_PER_CELL: Final = 8
COUNT_MIN_DEPTHS: Final = range(1, 41)
COUNT_SKETCH_DEPTHS: Final = range(1, 80, 2)
NARROWEST_FOR_SQUARES: Final = 17


class Claim(Protocol):
    """What a use of a sketch comes to: `Envelope` or `LabelEnvelope`."""

    @property
    def errors(self) -> int:
        """The sum of the errors in the threshold."""


C = TypeVar("C", bound=Claim)
C_co = TypeVar("C_co", bound=Claim, covariant=True)


class Form(Protocol[C_co]):
    """A use of a sketch, all but the sketch given: `partial(noise_at_release, beta=..., capacity=..., state=...)`."""

    def __call__(self, error: SketchError, *, within: int | None) -> C_co | None:
        """Return the envelope, or None if there is none within the errors that are of interest."""


@dataclass(frozen=True, slots=True)
class Shape(Generic[C]):
    """A sketch's width and depth, and what can be claimed of it."""

    width: int
    depth: int
    claim: C


def count_min_shape(
    memory: int,
    *,
    length: int,
    noise_of: Callable[[int], CellNoise],
    form: Form[C],
    sharing: Fraction = Fraction(0),
) -> Shape[C] | None:
    """Return the Count-Min sketch of at most `memory` bytes with the smallest threshold, depths 1 to 40; None if none.

    Args:
        memory: bytes for the cells, 8 each.
        length: N, a bound on the length of the stream.
        noise_of: the noise of a cell at a depth: LaplaceCells(floor_epsilon(epsilon / depth)), say.
        form: `noise_at_release`, `noise_first` or `fixed_labels`, with everything but the sketch.
        sharing: as for `CountMinError`.

    Raises:
        InvalidParameter: a value out of range.

    >>> from decimal import Decimal
    >>> from fractions import Fraction
    >>> from functools import partial
    >>> from dptop.envelope import LaplaceCells, fixed_labels
    >>> from dptop.privacy import PrivacyParameters, floor_epsilon
    >>> from dptop.tie import Tie
    >>> state = PrivacyParameters(Fraction(1), Decimal(0))
    >>> form = partial(fixed_labels, delta=Decimal("1e-9"), capacity=2000, tie=Tie.LEAST_RECENT, state=state)
    >>> def noise_of(depth: int) -> LaplaceCells:
    ...     return LaplaceCells(floor_epsilon(Fraction(1, depth)))
    >>> shape = count_min_shape(1_000_000, length=10**6, noise_of=noise_of, form=form)
    >>> shape.width, shape.depth, shape.claim.over
    (5952, 21, 467)
    """
    whole_number("length", length, 1, 2**63 - 1, "Declare a bound on the length of the stream.")

    def error_of(width: int, depth: int) -> SketchError | None:
        return CountMinError(width, depth, length, noise_of(depth), sharing=sharing)

    return _smallest(memory, COUNT_MIN_DEPTHS, error_of, form)


def count_sketch_shape(
    memory: int,
    *,
    length: int,
    noise_of: Callable[[int], CellNoise],
    form: Form[C],
    expected_squares: int | None = None,
    fully_random_signs: bool = False,
    sharing: Fraction = Fraction(0),
) -> Shape[C] | None:
    """Return the CountSketch of at most `memory` bytes with the smallest threshold, odd depths 1 to 79; None if none.

    Args:
        memory: bytes for the cells, 8 each.
        length: N, a bound on the length of the stream.
        noise_of: the noise of a cell at a depth.
        form: `noise_at_release`, `noise_first` or `fixed_labels`, with everything but the sketch.
        expected_squares: what the bound on the squares is expected to come to, if it is to be found from the rows: a
            guess without looking at the data. It only decides the shape. Without it, the worst case N^2 is used.
        fully_random_signs: as for `CountSketchError`.
        sharing: as for `CountSketchError`.

    Raises:
        InvalidParameter: a value out of range.
    """
    whole_number("length", length, 1, 2**63 - 1, "Declare a bound on the length of the stream.")

    def error_of(width: int, depth: int) -> SketchError | None:
        if expected_squares is not None and width < NARROWEST_FOR_SQUARES:
            return None
        return CountSketchError(
            width,
            depth,
            length,
            noise_of(depth),
            squares=expected_squares,
            once=0.0 if expected_squares is None else squares_failure(depth),
            fully_random_signs=fully_random_signs,
            sharing=sharing,
        )

    return _smallest(memory, COUNT_SKETCH_DEPTHS, error_of, form)


def _smallest(
    memory: int, depths: Iterable[int], error_of: Callable[[int, int], SketchError | None], form: Form[C]
) -> Shape[C] | None:
    """Return the shape of the smallest errors, and of those the shallowest.

    Depths far apart come first, so that nearly all others need only be seen not to be better than the best so far.
    """
    whole_number("memory", memory, BYTES_PER_CELL, 2**63 - 1, "It is in bytes, 8 for a cell.")
    best: Shape[C] | None = None
    for depth in sorted(depths, key=_far_apart):
        width = memory // (BYTES_PER_CELL * depth)
        error = error_of(width, depth) if width else None
        within = best.claim.errors - (depth > best.depth) if best else None
        claim = form(error, within=within) if error else None
        if claim is not None:
            best = Shape(width, depth, claim)
    return best


def _far_apart(depth: int) -> int:
    """Return a key that orders whole numbers below 128 by their bits read backwards, so that any first few are spread.

    >>> sorted(range(0, 128, 16), key=_far_apart)
    [0, 64, 32, 96, 16, 80, 48, 112]
    """
    return int(f"{depth:07b}"[::-1], 2)
