"""The noise that went into a sketch's cells before the first item, as it travels with the saved sketch.

It is the `noise` section of the saved form; docs/saved-form.md says it byte by byte.
"""

from __future__ import annotations

import struct
from typing import Final

from dptop import gaussian
from dptop.errors import CorruptSummary, InvalidParameter
from dptop.mechanism.sketch_noise import GAUSSIAN, LAPLACE, SketchNoise
from dptop.privacy import EPSILON_MAX, EPSILON_MIN, EPSILON_STEP, PrivacyParameters
from dptop.record import saved_delta

__all__ = ["noise_from_bytes", "noise_to_bytes"]

KINDS: Final = (LAPLACE, GAUSSIAN)
NOISE: Final = struct.Struct("<BQQH")


def noise_to_bytes(noise: SketchNoise | None) -> bytes:
    """Return the noise as bytes."""
    if noise is None:
        return b""
    size = noise.numerator if noise.variance is None else noise.variance
    delta = str(noise.state.delta).encode()
    return NOISE.pack(KINDS.index(noise.kind), int(noise.state.epsilon / EPSILON_STEP), size, len(delta)) + delta


def noise_from_bytes(data: bytes, depth: int) -> SketchNoise | None:
    """Read the noise of a sketch with so many rows back.

    Raises:
        CorruptSummary: the bytes are not whole, or the noise does not hide what it says.
    """
    if not data:
        return None
    try:
        noise = _read(data, depth)
    except (struct.error, InvalidParameter):  # it ends too early, or holds an impossible number
        noise = None
    if noise is None or noise_to_bytes(noise) != data:
        raise CorruptSummary("the noise in the cells contradicts itself. Save the sketch again.")
    return noise


def _read(data: bytes, depth: int) -> SketchNoise | None:
    kind, steps, size, _ = NOISE.unpack_from(data)
    delta = saved_delta(data[NOISE.size :])
    epsilon = steps * EPSILON_STEP
    if delta is None or not EPSILON_MIN <= epsilon <= EPSILON_MAX:
        return None
    state = PrivacyParameters(epsilon, delta)
    if kind == KINDS.index(LAPLACE):
        noise = SketchNoise.laplace(state, depth)
        return noise if noise.numerator == size and delta == 0 else None
    if kind == KINDS.index(GAUSSIAN) and gaussian.delta(epsilon, size, depth) <= delta:
        return SketchNoise(state, depth, variance=size)
    return None
