"""The error of a Count-Min estimate: the minimum over d independent rows, collisions and noise summed exactly.

Cormode and Muthukrishnan 2005; Lemma 12 of Holland's paper. Integers turn "more than g" into "at least g + 1".
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from operator import truediv
from typing import TYPE_CHECKING

from dptop.envelope.rounding import SLACK, up
from dptop.envelope.rows import checked_collision, checked_shape, some_pair

if TYPE_CHECKING:
    from dptop.envelope.cell_noise import CellNoise

__all__ = ["CountMinError"]


@dataclass(frozen=True)
class CountMinError:
    """The chances that Count-Min estimates err, never below the true ones, on every stream of at most `length` items.

    Assumed of the hashes: two labels fall into one cell of a row with chance at most `collision`; rows are independent;
    the stream does not depend on the seeds.

    Args:
        width: w, cells in a row, from 1.
        depth: d, rows, from 1.
        length: N, a bound on the length of the stream, from 1.
        noise: of every cell. Its parameter belongs to the depth: one item changes d cells.
        collision: the chance of a collision; that of this package's hashes by default, 2/w for some others.
        sharing: the chance that two labels share all their cells, whatever the rows: 2^-b where rows hash a fingerprint
            of b bits. 0 leaves that out.

    Raises:
        InvalidParameter: a value out of range.

    >>> from dptop.envelope import NoNoise
    >>> error = CountMinError(width=1024, depth=3, length=1024, noise=NoNoise())
    >>> round(error.over(9), 9)  # (1/10)^3
    0.001
    """

    width: int
    depth: int
    length: int
    noise: CellNoise
    collision: Fraction | None = None
    sharing: Fraction = Fraction(0)
    once: float = field(init=False, default=0.0)
    pairs: float = field(init=False, repr=False, compare=False)
    _load: float = field(init=False, repr=False, compare=False)
    _known: dict[int, float] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        checked_shape(self.width, self.depth, self.length, self.sharing)
        object.__setattr__(self, "pairs", some_pair(self.length, self.sharing))
        collision = checked_collision(self.collision, self.width)
        object.__setattr__(self, "collision", collision)
        object.__setattr__(self, "_load", float(self.length * collision) * (1 + SLACK))

    def row(self, g: int) -> float:
        """Return R(g), at least the chance that one cell exceeds a label's count by more than g.

        sum over z of P[Z = z] * (1 if z >= g + 1, else min(1, N c/(g + 1 - z))): Markov's inequality for the items of
        other labels in the cell, N c of them on average.
        """
        known = self._known.get(g)
        if known is None:
            lasts, chances, above = self.noise.spread
            surely = bisect_left(lasts, g + 1 - self._load)  # from here on z >= g + 1 - N c: the minimum is 1
            gaps = [g + 1 - z for z in lasts[:surely]]
            known = self._known[g] = up(above[surely] + self._load * sum(map(truediv, chances, gaps)))
        return known

    def over(self, g: int) -> float:
        """Return R(g)^d, at least P[estimate - f > g] for g >= 0, for a label fixed beforehand that shares no cells."""
        return up(self.row(g) ** self.depth)

    def over_fixed(self, g: int) -> float:
        """Return R(g)^d + N `sharing`, at least P[estimate - f > g], for any label fixed beforehand and g >= 0."""
        return up(self.over(g) + float(self.length * self.sharing))

    def under(self, g: int) -> float:
        """Return d P[Z < -g], at least P[estimate - f < -g]: collisions only add."""
        return min(1.0, self.depth * self.noise.tail(g))

    def collisions(self, t: int) -> float:
        """Return min(1, N c/(t + 1))^d, at least the chance that an estimate without noise exceeds f by more than t."""
        return up(min(1.0, self._load / (t + 1)) ** self.depth)

    # ---- all estimates that are asked for

    def finals(self, g: int) -> float:
        """Return (N + 1) R(g)^d: some label of the stream, or one that is not in it, ends more than g above f."""
        return (self.length + 1) * self.over(g)

    def trackings(self, t: int) -> float:
        """Return N P[collisions > t]: some estimate without noise is above f by more than t when its label arrives.

        None is below f. Collisions only grow, so that one event for each of at most N labels covers all moments.
        """
        return self.length * self.collisions(t)

    def parted(self, t: int) -> tuple[int, int]:
        """Return (t1, t2) with t1 + t2 = t: all of it is for what is too large."""
        return t, 0

    def noisy_overs(self, g: int) -> float:
        """Return (N + 1) R(g)^d: some noisy estimate, on arrival or at the end, is more than g above f.

        With the noise fixed, est - f only grows with the collisions: what is too large early is so at the end.
        """
        return self.finals(g)

    def noisy_unders(self, g: int) -> float:
        """Return min(N, w) d P[Z < -g]: some noisy estimate on arrival is more than g below f.

        That needs a cell with Z < -g among the label's d, whatever the moment; there are d w cells.
        """
        return min(self.length, self.width) * self.depth * self.noise.tail(g)
