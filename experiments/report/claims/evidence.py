"""What the raw rows say, as means: the evidence that claims are judged by."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeAlias

from experiments.plan import GRID
from experiments.report import series
from experiments.report.fingerprints import can_release
from experiments.report.keys import ALGORITHM_3

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from experiments.report.series import Along, Metric
    from experiments.results import Row

__all__ = ["Evidence", "Means", "NotMeasuredError", "Place"]

Place: TypeAlias = "tuple[Along, float]"
"""What is swept, and its value there."""
Means: TypeAlias = "dict[Place, float]"
"""The mean of a metric, where there is one, by the place on the sweeps."""

ANCHOR: Final = ALGORITHM_3
"""A private method that every sweep has: where it stands at an epsilon, so does what is not private."""


class NotMeasuredError(LookupError):
    """The rows do not have what a claim needs."""


class Evidence:
    """The rows of one run; each selection is made once.

    Attributes:
        streams: in the order of the rows.
        rows: all of them.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: list[Row] = list(rows)
        self.streams = list(dict.fromkeys(row.stream for row in self.rows))
        self._grid: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        self._frontier: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self.rows:
            (self._grid if row.sweep == GRID else self._frontier)[row.stream, row.method].append(row)
        self._selected: dict[tuple[str, str, Along], dict[float, list[Row]]] = {}

    def points(self, stream: str, method: str, along: Along) -> dict[float, list[Row]]:
        """Return the rows of a method in one sweep of the grid, by the value that is swept; none if it has none."""
        key = stream, method, along
        if key not in self._selected:
            rows = self._grid[stream, method] + (self._grid[stream, ANCHOR] if method != ANCHOR else [])
            self._selected[key] = series.select(rows, stream=stream, method=method, along=along)
        return self._selected[key]

    def means(
        self, stream: str, method: str, along: Sequence[Along], metric: Metric, *, where_possible: bool = False
    ) -> Means:
        """Return the means of a metric along sweeps: places without a value, such as a precision of nothing, are out.

        So are those without a heavy label, where it is about heavy labels, and, `where_possible`, those at which the
        method can release nothing whatever the stream says (`fingerprints`).

        Raises:
            NotMeasuredError: there are no rows, or no label is heavy anywhere.
        """
        points = {(axis, value): rows for axis in along for value, rows in self.points(stream, method, axis).items()}
        if where_possible:
            points = {place: rows for place, rows in points.items() if all(map(can_release, rows))}
        if not any(series.concerned(rows, metric) for rows in points.values()):
            raise NotMeasuredError(stream, method, along, metric)
        return {place: spread.mean for place, rows in points.items() if (spread := series.spread(rows, metric))}

    def frontier(self, stream: str, method: str, budget: tuple[float, float], metric: Metric) -> dict[int, float]:
        """Return the means of a metric on the frontier, by capacity, at one (epsilon, delta).

        Raises:
            NotMeasuredError: there are no rows.
        """
        epsilon, delta = budget
        rows = self._frontier[stream, method]
        points = series.frontier(rows, stream=stream, method=method, epsilon=epsilon, delta=delta)
        if not points:
            raise NotMeasuredError(stream, method, budget, metric)
        return {at: spread.mean for at, of in points.items() if (spread := series.spread(of, metric))}

    def budgets(self, stream: str) -> list[tuple[float, float]]:
        """Return the (epsilon, delta) of the frontier of a stream.

        Raises:
            NotMeasuredError: it has no frontier.
        """
        rows = (row for (of, _), found in self._frontier.items() if of == stream for row in found)
        if not (found := series.budgets(rows, stream=stream)):
            raise NotMeasuredError(stream)
        return found
