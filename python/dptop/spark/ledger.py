"""What may be spent on data that Spark reads: kept by the caller, as no frame knows its data."""

from __future__ import annotations

import math
import os
from typing import NoReturn

from dptop import ledger
from dptop.errors import InvalidParameter
from dptop.ledger import IDENTITY_BYTES, Spent
from dptop.privacy import Budget

__all__ = ["Ledger"]


class Ledger:
    """What may be spent on one set of data, and what was: kept by the caller, and given to every release of it.

    A frame is a plan that Spark runs anew, and nothing in it says that two frames read the same data. So no ledger is
    found by itself: releases that are not given the same one are not added up by anybody but you. It lives as long as
    the process and is not copied; two processes do not know of each other.

    Args:
        budget: what all releases may spend together, by basic composition. The first one says which unit it protects,
            by its `max_contributions`; the others must say the same.

    Raises:
        InvalidParameter: something else than a `dptop.Budget`.

    Source: docs/privacy.md section 9.

    >>> import dptop
    >>> from dptop.spark import Ledger
    >>> visits = Ledger(dptop.Budget(epsilon=2.0, delta=2e-9))
    >>> visits.spent
    (0.0, 0.0)
    """

    def __init__(self, budget: Budget) -> None:
        if not isinstance(budget, Budget):
            raise InvalidParameter(f"budget must be a dptop.Budget; got {type(budget).__name__}. Build one of it.")
        self._budget = budget
        self._ledger = ledger.Ledger(os.urandom(IDENTITY_BYTES))

    @property
    def budget(self) -> Budget:
        """What was declared."""
        return self._budget

    @property
    def spent(self) -> tuple[float, float]:
        """The sums of epsilon and of delta of all releases so far, also of those that failed after the charge."""
        entries = [spent.parameters for spent in self._ledger.record().entries.values()]
        return math.fsum(float(p.epsilon) for p in entries), math.fsum(float(p.delta) for p in entries)

    def _charge(self, spent: Spent) -> None:
        self._ledger.charge(spent, self._budget)

    def __reduce__(self) -> NoReturn:
        raise InvalidParameter(
            "a ledger must not be copied or pickled, or the budget could be spent twice; got a copy of one asked for."
            " Hand over the ledger itself."
        )
