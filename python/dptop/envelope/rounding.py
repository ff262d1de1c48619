"""Chances in floats that are never below the true ones.

A float's relative error in what is computed here stays below 1e-11; every chance is lifted by a hundred times that.
What is below the smallest floats counts as 1e-300, so that nothing is lost in an underflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from decimal import Decimal

__all__ = ["SLACK", "TINY", "at_most", "up"]

SLACK: Final = 1e-9
"""Relative error granted to a chance in floats, at the cost of a larger error bound."""

TINY: Final = 1e-300
"""What every chance is lifted by, and the smallest there is."""


def up(chance: float) -> float:
    """Return a chance lifted above what floats err, and never above one.

    >>> up(0.25) > 0.25, up(0.0), up(3.0)
    (True, 1e-300, 1.0)
    """
    return min(1.0, chance * (1 + SLACK) + TINY)


def at_most(allowed: Decimal) -> float:
    """Return a float just below `allowed`, to compare chances with.

    >>> from decimal import Decimal
    >>> Decimal(at_most(Decimal("0.1"))) < Decimal("0.1")
    True
    """
    return float(allowed) * (1 - 1e-12)
