"""Raw results of a run, and their medians."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import Any

from benchmarks.plan import BEST_EXACT, Measurement

__all__ = ["NotMeasuredError", "Results"]


class NotMeasuredError(LookupError):
    """The run left it out, or its package is not installed."""


class Results:
    """All lines of JSON that the measurements printed, by measurement."""

    def __init__(self) -> None:
        self._lines: defaultdict[Measurement, list[dict[str, Any]]] = defaultdict(list)

    def add(self, line: dict[str, Any]) -> None:
        """Take one line. One without a figure, for a package that is not there, is left out."""
        if "cpu" in line:
            self._lines[Measurement(line["name"], line["stream"], line["capacity"])].append(line)

    def lines(self, name: str, stream: str, capacity: int = 10_000) -> list[dict[str, Any]]:
        """Return the repetitions of a measurement; NotMeasuredError if there are none."""
        lines = self._lines.get(Measurement(name, stream, capacity))
        if not lines:
            raise NotMeasuredError(name, stream, capacity)
        return lines

    def median(self, field: str, name: str, stream: str, capacity: int = 10_000) -> float:
        """Return the median of a field over the repetitions."""
        values = [line[field] for line in self.lines(name, stream, capacity)]
        if any(value is None for value in values):
            raise NotMeasuredError(field, name, stream, capacity)
        return float(statistics.median(values))

    def cpu_ns(self, name: str, stream: str, capacity: int = 10_000) -> float:
        """Return the median CPU time per item in nanoseconds."""
        return self.median("cpu", name, stream, capacity) / self._items(name, stream, capacity) * 1e9

    def wall_ns(self, name: str, stream: str, capacity: int = 10_000) -> float:
        """Return the median time on the clock per item in nanoseconds."""
        return self.median("wall", name, stream, capacity) / self._items(name, stream, capacity) * 1e9

    def _items(self, name: str, stream: str, capacity: int) -> int:
        return int(self.lines(name, stream, capacity)[0]["items"])

    def spread(self, name: str, stream: str, capacity: int = 10_000) -> float:
        """Return (largest - smallest) / median of the CPU times: what the machine's noise did."""
        cpu = [float(line["cpu"]) for line in self.lines(name, stream, capacity)]
        return (max(cpu) - min(cpu)) / statistics.median(cpu)

    def best_exact(self, stream: str) -> tuple[str, float]:
        """Return the exact count that takes the least CPU time, of DuckDB, Polars and pyarrow, and its nanoseconds."""
        return self.fastest(BEST_EXACT, stream)

    def fastest(self, names: tuple[str, ...], stream: str) -> tuple[str, float]:
        """Return which of the names, where it was measured, takes the least CPU time, and its nanoseconds an item."""
        measured = []
        for name in names:
            try:
                measured.append((self.cpu_ns(name, stream), name))
            except NotMeasuredError:
                continue
        if not measured:
            raise NotMeasuredError(stream)
        ns, name = min(measured)
        return name, ns

    def measurements(self) -> list[Measurement]:
        """Return what was measured, in order."""
        return list(self._lines)
