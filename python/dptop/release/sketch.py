"""What the releases of sketches share: the noise, what final estimates are read from, and intervals around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dptop._native import MAX_LENGTH
from dptop.envelope import CountMinError, CountSketchError, squares_bound, squares_failure, squares_payable
from dptop.envelope.rows import EQUAL_FINGERPRINTS
from dptop.errors import InvalidParameter
from dptop.intervals import clipped
from dptop.mechanism import GAUSSIAN, SketchNoise
from dptop.noise import CELLS_SEED, seed_bytes
from dptop.oracle import CountSketch, LinearSketch
from dptop.privacy import PRECISE
from dptop.release.publication import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, noise_in_words
from dptop.search import smallest_between

if TYPE_CHECKING:
    from decimal import Decimal

    from dptop import _native
    from dptop.privacy import PrivacyParameters
    from dptop.release.request import Request

__all__ = ["BY_HASHES", "around", "error_of", "noise_fact", "noise_of", "noisy_cells", "of_sketch", "sketch_in_words"]

BY_HASHES: Final = (
    "Intervals rest on",
    "hashes that behave as independent random functions, by the declared length; the guarantee does not.",
)


def noise_of(
    request: Request, sketch: LinearSketch, whole: PrivacyParameters, *, parts: int = 2
) -> tuple[SketchNoise, Decimal]:
    """Return the noise of the cells for a part of epsilon, and what it leaves of delta.

    Where labels have to be paid for as well, delta has two parts.

    Raises:
        InvalidParameter: the sketch has noise already, and that does not fit.
    """
    made = sketch.noise
    if made is None:
        return SketchNoise.of(request.noise, whole, sketch.depth, parts=parts)
    if request.noise not in (None, made.kind):
        raise InvalidParameter(
            f"noise must be that which is in the cells, {made.kind!r}; got {request.noise!r}. Leave it out."
        )
    left = PRECISE.subtract(whole.delta, made.state.delta)  # exact, whatever the context of the caller
    if made.state.epsilon > whole.epsilon or left < 0 or (parts > 1 and not left):
        raise InvalidParameter(
            "epsilon and delta must cover the noise in the cells,"
            f" ({float(made.state.epsilon)!r}, {made.state.delta:.6g}), and leave a delta for labels that are selected;"
            f" got ({float(whole.epsilon)!r}, {whole.delta:.6g}) for both. Release with more, or count with more noise."
        )
    return made, left


def noisy_cells(cells: _native.Sketch, sketch: LinearSketch, noise: SketchNoise, seed: int | None) -> _native.Sketch:
    """Return a copy of the cells with noise, drawn here unless it came before the first item."""
    if sketch.noise is not None:
        return cells
    key = None if seed is None else seed_bytes(seed + CELLS_SEED)
    return cells.noisy(noise.numerator, noise.variance, key)


def error_of(
    sketch: LinearSketch, noisy: _native.Sketch, noise: SketchNoise, length: int, allowed: float
) -> CountMinError | CountSketchError:
    """Return the chances that estimates err, on streams of at most `length` items.

    For CountSketch the squares come from the noisy rows, which costs nothing, where the chance that this fails leaves
    enough of what is `allowed`; else they are at most length^2. Which of the two is decided by public numbers only.
    """
    length = min(MAX_LENGTH, max(1, length))
    if not isinstance(sketch, CountSketch):
        return CountMinError(sketch.width, sketch.depth, length, noise.cells, sharing=EQUAL_FINGERPRINTS)
    squares, once = length**2, 0.0
    if squares_payable(sketch.width, sketch.depth, allowed):
        squares = squares_bound(noisy.squares(), width=sketch.width, length=length, noise=noise.cells)
        once = squares_failure(sketch.depth)
    return CountSketchError(
        sketch.width,
        sketch.depth,
        length,
        noise.cells,
        squares,
        once,
        fully_random_signs=True,
        sharing=EQUAL_FINGERPRINTS,
    )


def around(
    error: CountMinError | CountSketchError, estimates: list[int], beta: float, labels: int, floor: int | None = 0
) -> list[tuple[int, int]]:
    """Return (low, high) around each estimate: they hold the true counts of `labels` labels at once with 1 - beta.

    The labels, not only those that are shown, are fixed before hashes and noise are drawn.
    """
    each = (beta / 2 - error.once - error.pairs) / labels
    if each <= 0:
        return [clipped(estimate, -MAX_LENGTH, MAX_LENGTH, floor) for estimate in estimates]
    over = smallest_between(0, MAX_LENGTH, lambda g: error.over(g) <= each)
    under = smallest_between(0, MAX_LENGTH, lambda g: error.under(g) <= each)
    return [clipped(estimate, estimate - over, estimate + under, floor) for estimate in estimates]


def sketch_in_words(sketch: LinearSketch) -> str:
    """Return what counted, in words."""
    return f"{type(sketch).__name__}, {sketch.depth} rows of {sketch.width} cells"


def of_sketch(sketch: LinearSketch, noise: SketchNoise) -> dict[str, object]:
    """Return what a release says of a sketch in its parameters."""
    return {
        "sketch": type(sketch).__name__,
        "width": sketch.width,
        "depth": sketch.depth,
        "noise": noise.kind,
        "scale": noise.scale,
    }


def noise_fact(sketch: LinearSketch, noisy: _native.Sketch, noise: SketchNoise, seed: int | None) -> tuple[str, str]:
    """Return the fact that tells of the noise of the cells; where it came first, known keys count as a seed."""
    seeded = noisy.seeded if sketch.noise is not None else seed is not None
    kind = DISCRETE_GAUSSIAN if noise.kind == GAUSSIAN else DISCRETE_LAPLACE
    when = "before the first item" if sketch.noise is not None else "at release"
    return noise_in_words(kind, noise.scale, f"on every cell, once, {when}", seeded=seeded)
