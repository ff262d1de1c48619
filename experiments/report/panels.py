"""One panel: curves of methods, and the axes that fit them; `figures` says which panels there are."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from experiments.methods import CEILING, METHODS
from experiments.report.looks import LOOKS, line
from experiments.report.series import spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from experiments.report.series import Metric, Spread
    from experiments.results import Row

__all__ = ["Curve", "Scale", "X", "Y", "curve", "panel", "short"]


Kind: TypeAlias = Literal["log", "linear", "share", "upper share"]


class Scale(NamedTuple):
    """An axis.

    Attributes:
        label: what it is, with its unit.
        kind: "log", "linear", "share" from 0 to 1, or "upper share", which leaves out the part below all values.
        unit: values of the rows are divided by this.
    """

    label: str
    kind: Kind
    unit: float = 1


X: Final[dict[str, Scale]] = {
    "k": Scale("k (heavy: n/k items or more)", "log"),
    "skew": Scale("skew of the Zipf stream", "linear"),
    "epsilon": Scale("privacy parameter ε", "log"),
    "factor": Scale("capacity over k, the factor c", "log"),
    "memory": Scale("memory of the summary (KiB)", "log", 1024),
}
"""The axes that are swept."""

Y: Final[dict[Metric, Scale]] = {
    "recall": Scale("recall", "share"),
    "precision": Scale("precision", "upper share"),
    "relative_error": Scale("average relative error", "log"),
    "absolute_error": Scale("mean absolute error (items)", "log"),
    "released": Scale("labels released", "log"),
    "update_ns": Scale("CPU time of one update (ns)", "log"),
    "memory_bytes": Scale("memory of the summary (KiB)", "log", 1024),
}
"""The axes of what is measured."""

MARGIN: Final = 0.08
"""Of the length of an axis, left free at either end: a marker at the end is whole, and so is the one beside it."""
ASIDE: Final = 2.6
"""Points of print from one curve to the next."""
WIDEST: Final = 13.0
"""Points of print that all curves at one place may take: about half of the way to the next place."""


class Curve(NamedTuple):
    """One method in one panel.

    Attributes:
        method: a key of METHODS.
        places: on the x axis, ascending.
        spreads: what is drawn there, in the unit of the rows; None is a gap.
    """

    method: str
    places: tuple[float, ...]
    spreads: tuple[Spread | None, ...]


def curve(
    method: str,
    points: Mapping[int, Sequence[Row]] | Mapping[float, Sequence[Row]],
    metric: Metric,
    *,
    at: Metric | None = None,
) -> Curve:
    """Return the curve of a metric over rows by the swept value, or over the mean of the metric `at`."""
    places = list(points) if at is None else [fmean(getattr(row, at) for row in rows) for rows in points.values()]
    return Curve(method, tuple(places), tuple(spread(rows, metric) for rows in points.values()))


def panel(axes: Axes, curves: Sequence[Curve], along: str, metric: Metric, *, beside: Sequence[Curve] = ()) -> None:
    """Draw means, with bars from the 5th to the 95th percentile; a gap where no release has a value.

    Curves stand side by side, a point of print or two apart, except over measured memory: several methods are at
    exactly 1 nearly everywhere, and none may hide another.

    Args:
        axes: to draw on.
        curves: one for each method; one without values is left out.
        along: a key of X.
        metric: a key of Y.
        beside: curves of other panels that the axes have to have room for, so that the panels compare.
    """
    x, y = X[along], Y[metric]
    curves = [curve for curve in curves if any(curve.spreads)]
    for number, (method, places, spreads) in enumerate(curves):
        aside = 0 if along == "memory" else (number - (len(curves) - 1) / 2) * min(ASIDE, WIDEST / len(curves))
        transform = axes.transData + ScaledTranslation(aside / 72, 0, axes.figure.dpi_scale_trans)
        look = LOOKS[method]
        means = [math.nan if found is None else found.mean / y.unit for found in spreads]
        axes.plot([place / x.unit for place in places], means, **line(look), transform=transform, label=method)
        # one path for all bars of a curve keeps the file small
        bars = [
            (place, found) for place, found in zip(places, spreads, strict=True) if found and found.low < found.high
        ]
        axes.plot(
            [place / x.unit for place, _ in bars for _ in range(3)],
            [value for _, found in bars for value in (found.low / y.unit, found.high / y.unit, math.nan)],
            color=look.colour,
            linewidth=0.6,
            transform=transform,
            label=f"_{method}",
            zorder=2,
        )
        if along == "memory" and METHODS[method].family == CEILING:
            axes.axhline(means[0], color=look.colour, linestyle=look.line, linewidth=0.6, zorder=1)
    axes.set_xlabel(x.label)
    axes.set_ylabel(y.label)
    if not curves:
        axes.text(
            0.5,
            0.5,
            "no release, or no heavy label",
            transform=axes.transAxes,
            ha="center",
            va="center",
            color="#666666",
        )
    room = [curve for curve in (*curves, *beside) if any(curve.spreads)]
    if room:
        _across(axes, along, sorted({place / x.unit for curve in room for place in curve.places}))
        found = [found for curve in room for found in curve.spreads if found is not None]
        _up(axes, y.kind, [value / y.unit for one in found for value in (one.low, one.mean, one.high)])


def _across(axes: Axes, along: str, places: Sequence[float]) -> None:
    """Set the x axis: logarithmic where the sweep is geometric, with a tick at each value of a sweep."""
    low, high = places[0], places[-1]
    if X[along].kind == "log":
        axes.set_xscale("log", base=2 if along in ("k", "factor") else 10)
        margin = (high / low) ** MARGIN if low < high else 2
        axes.set_xlim(low / margin, high * margin)
    else:
        margin = (high - low) * MARGIN if low < high else 1
        axes.set_xlim(low - margin, high + margin)
    axes.xaxis.set_minor_locator(NullLocator())
    if along != "memory":
        axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_major_formatter(FuncFormatter(short))


def _up(axes: Axes, kind: Kind, values: Sequence[float]) -> None:
    """Set the y axis: a share up to 1; else a logarithm, with a place for 0 where a value is 0."""
    axes.yaxis.set_minor_locator(NullLocator())
    if kind in ("share", "upper share"):
        below = 0 if kind == "share" else max(bottom for bottom in (0, 0.5, 0.9) if bottom <= min(values))
        axes.set_ylim(below - MARGIN * (1 - below), 1 + MARGIN * (1 - below))
        axes.yaxis.set_major_locator(FixedLocator([below + fifth * (1 - below) / 5 for fifth in range(6)]))
        axes.yaxis.set_major_formatter(FuncFormatter(short))
        return
    positive = [value for value in values if value > 0]
    low, high = min(positive, default=1), max(positive, default=1)
    margin = max(1.3, (high / low) ** MARGIN)
    if len(positive) < len(values):
        # the decade of the smallest value stands right above 0
        below = 10.0 ** math.floor(math.log10(low))
        axes.set_yscale("symlog", linthresh=below, linscale=0.4)
        axes.set_ylim(-0.25 * below, high * margin)
        axes.yaxis.set_major_locator(_decades(below, high))
    else:
        axes.set_yscale("log")
        axes.set_ylim(low / margin, high * margin)
        if high / low < 100:
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(short))


def _decades(low: float, high: float) -> FixedLocator:
    """Return ticks at 0 and at no more than five of the decades from `low` on."""
    first, last = round(math.log10(low)), math.floor(math.log10(max(low, high)))
    step = (last - first) // 5 + 1
    return FixedLocator([0, *(10.0**decade for decade in range(first, last + 1, step))])


def short(value: float, _: object = None) -> str:
    """Return a number as a tick or a title has it: 0.001, 1, 4096, 1e-4."""
    if 0 < value < 0.001:
        digits, power = f"{value:.5e}".split("e")
        return f"{float(digits):g}e{int(power)}"
    return f"{value:.6g}"
