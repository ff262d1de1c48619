"""The error of a CountSketch estimate: the median over d independent rows, collisions and noise summed exactly.

Charikar, Chen and Farach-Colton 2002; Lemma 13 of Holland's paper, with the exact tail of the binomial.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from operator import truediv
from typing import TYPE_CHECKING

from dptop.envelope.binomial import majority
from dptop.envelope.rounding import SLACK, up
from dptop.envelope.rows import LARGEST, checked_collision, checked_shape, some_pair
from dptop.errors import InvalidParameter
from dptop.parameters import real_number, shown, whole_number

if TYPE_CHECKING:
    from dptop.envelope.cell_noise import CellNoise

__all__ = ["CountSketchError"]


@dataclass(frozen=True)
class CountSketchError:
    """The chances that CountSketch estimates err, never below the true ones, on every stream of at most `length` items.

    Assumed of the hashes: two labels fall into one cell of a row with chance at most `collision`; signs are pairwise
    independent, with mean 0, given the cells; rows are independent; the stream does not depend on the seeds. With
    `fully_random_signs` a label's sign is a fair coin given all else, so that errors of both signs are equally likely:
    that halves the chances.

    Args:
        width: w, cells in a row, from 1.
        depth: d, rows, odd, from 1.
        length: N, a bound on the length of the stream, from 1.
        noise: of every cell. Its parameter belongs to the depth: one item changes d cells.
        squares: F, a bound on the sum of the squared counts: N^2, which is always one, or what `squares_bound` found.
        once: the chance that `squares` is too low.
        fully_random_signs: whether the signs are; no family of hashes with a short seed has such signs.
        collision: the chance of a collision; that of this package's hashes by default, 2/w for some others.
        sharing: the chance that two labels share all their cells, whatever the rows: 2^-b where rows hash a fingerprint
            of b bits. 0 leaves that out.

    Raises:
        InvalidParameter: a value out of range.

    >>> from dptop.envelope import NoNoise
    >>> error = CountSketchError(width=1024, depth=1, length=32, noise=NoNoise(), fully_random_signs=True)
    >>> round(error.over(9), 9)  # (1/100)/2
    0.005
    """

    width: int
    depth: int
    length: int
    noise: CellNoise
    squares: int | None = None
    once: float = 0.0
    fully_random_signs: bool = False
    collision: Fraction | None = None
    sharing: Fraction = Fraction(0)
    pairs: float = field(init=False, repr=False, compare=False)
    _load: float = field(init=False, repr=False, compare=False)
    _share: float = field(init=False, repr=False, compare=False)
    _known: dict[int, float] = field(init=False, repr=False, compare=False, default_factory=dict)
    _known_collisions: dict[int, float] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        checked_shape(self.width, self.depth, self.length, self.sharing)
        object.__setattr__(self, "pairs", some_pair(self.length, self.sharing))
        if self.depth % 2 == 0:
            raise InvalidParameter(
                f"depth must be odd, for a median; got {shown(self.depth)}. Use one row more or less."
            )
        squares = self.length**2 if self.squares is None else self.squares
        whole_number("squares", squares, 0, LARGEST**2, "Leave it out for the worst case.")
        real_number("once", self.once, "0 <= once < 1", lambda x: 0 <= x < 1, "It is 0 for the worst case.")
        object.__setattr__(self, "squares", squares)
        collision = checked_collision(self.collision, self.width)
        object.__setattr__(self, "collision", collision)
        object.__setattr__(self, "_load", float(squares * collision) * (1 + SLACK))
        object.__setattr__(self, "_share", 0.5 if self.fully_random_signs else 1.0)

    def row(self, g: int) -> float:
        """Return q(g), at least the chance that one row's estimate exceeds a label's count by more than g.

        sum over z of P[Z = z] * (1 if z >= g + 1, else min(1, F c/(g + 1 - z)^2)), the minimum halved with fully random
        signs: Chebyshev's inequality for the other labels in the cell, whose signed sum has a variance of at most F c.
        """
        known = self._known.get(g)
        if known is None:
            lasts, chances, above = self.noise.spread
            surely = bisect_left(lasts, g + 1)
            capped = bisect_left(lasts, g + 1 - math.sqrt(self._load), hi=surely)  # from here on the minimum is 1
            gaps = [(g + 1 - z) ** 2 for z in lasts[:capped]]
            others = above[capped] - above[surely] + self._load * sum(map(truediv, chances, gaps))
            known = self._known[g] = up(above[surely] + self._share * others)
        return known

    def over(self, g: int) -> float:
        """Return P[Bin(d, q(g)) >= (d + 1)/2], at least P[estimate - f > g] for g >= 0, as `CountMinError.over` is."""
        return majority(self.depth, self.row(g))

    def over_fixed(self, g: int) -> float:
        """Return that and N `sharing`, at least P[estimate - f > g], for any label fixed beforehand and g >= 0."""
        return up(self.over(g) + float(self.length * self.sharing))

    def under(self, g: int) -> float:
        """Return at least P[estimate - f < -g]: the noise is symmetric, and so is the bound on collisions."""
        return self.over(g)

    def collisions(self, t: int) -> float:
        """Return at least the chance that an estimate without noise exceeds f by more than t; below f likewise."""
        known = self._known_collisions.get(t)
        if known is None:
            row = self._share * min(1.0, self._load / (t + 1) ** 2)
            known = self._known_collisions[t] = majority(self.depth, row)
        return known

    # ---- all estimates that are asked for

    def finals(self, g: int) -> float:
        """Return (N + 1) P[estimate - f > g]: some label of the stream, or one that is not in it, ends too large."""
        return (self.length + 1) * self.over(g)

    def trackings(self, t: int) -> float:
        """Return N P[collisions > t1] + N P[collisions < -t2]: an estimate without noise is wrong on some arrival.

        Collisions come and go, so that every arrival counts, on both sides.
        """
        above, below = self.parted(t)
        return self.length * (self.collisions(above) + self.collisions(below))

    def parted(self, t: int) -> tuple[int, int]:
        """Return (t1, t2) with t1 + t2 = t and the smallest chance: halves.

        Let p be a row's chance and m = (d + 1)/2. Where p <= 1/2 the estimate's chance is convex in t: it falls at a
        rate proportional to p^m (1-p)^(m-1) / (t + 1), which itself falls as t grows and p falls. Where p > 1/2 it is
        above 1/2, which no beta below 1/2 allows.
        """
        return t - t // 2, t // 2

    def noisy_overs(self, g: int) -> float:
        """Return (2N + 1) P[estimate - f > g]: N noisy estimates on arrival and N + 1 at the end."""
        return (2 * self.length + 1) * self.over(g)

    def noisy_unders(self, g: int) -> float:
        """Return N P[estimate - f < -g]: the noisy estimates on arrival."""
        return self.length * self.under(g)
