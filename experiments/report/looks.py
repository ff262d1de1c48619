"""How each method looks, the same in every figure, and the legend that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matplotlib.lines import Line2D

from experiments.methods import CEILING, METHODS, OURS, PAPER, PLAIN
from experiments.methods.summaries import EXACT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

__all__ = ["BY_SUMMARY", "LOOKS", "Look", "legend", "line", "summary_of"]


class Look(NamedTuple):
    """How a method is drawn, the same in every figure.

    Colour and marker tell what counts, line style and filling tell the family: a reader without colour has the marker.

    Attributes:
        colour: of line and marker.
        marker: of matplotlib.
        line: of matplotlib: a name, or an offset with lengths on and off.
        filled: the marker; else it is hollow.
        width: of the line, in points.
        size: of the marker, in points.
    """

    colour: str
    marker: str
    line: str | tuple[float, tuple[float, ...]]
    filled: bool
    width: float
    size: float


# Blue, orange and bluish green of Okabe and Ito (2008) with Tol's wine: no two are closer than 23 in CIE L*a*b* to a
# reader with protanopia or deuteranopia (Machado and others, 2009), nor closer than 11 in lightness, for print in grey
BY_SUMMARY: Final = {
    "space-saving": ("#0072B2", "o"),
    "misra-gries": ("#E69F00", "s"),
    "count-min": ("#009E73", "^"),
    "count-sketch": ("#882255", "v"),
    EXACT: ("#000000", "D"),
}
"""Colour and marker by what counts, whatever is tracked beside it."""


def summary_of(key: str) -> str:
    """Return what counts in a method: a key of BY_SUMMARY.

    >>> summary_of("count-min-selected"), summary_of("stable-threshold")
    ('count-min', 'space-saving')
    """
    return METHODS[key].summary.split(",")[0]


def _look(key: str) -> Look:
    method = METHODS[key]
    colour, marker = BY_SUMMARY[summary_of(key)]
    if key.endswith("-candidates"):
        return Look(colour, {"^": ">", "v": "<"}[marker], (0, (5, 1.5, 1, 1.5)), filled=False, width=0.9, size=4.2)
    # where two methods coincide, the solid marker stands inside the hollow one
    of_family = {
        PAPER: Look(colour, marker, "-", filled=True, width=1.1, size=3.2),
        OURS: Look(colour, marker, (0, (3.2, 1.4)), filled=False, width=1.1, size=4.8),
        CEILING: Look(colour, marker, (0, (6, 2)), filled=False, width=0.9, size=3.2),
        PLAIN: Look(colour, marker, (0, (1, 1.2)), filled=False, width=0.8, size=3.0),
    }
    return of_family[method.family]


LOOKS: Final = {key: _look(key) for key in METHODS}
"""How each method looks."""


def line(look: Look) -> dict[str, Any]:
    """Return the keywords of a line in matplotlib."""
    return {
        "color": look.colour,
        "linestyle": look.line,
        "linewidth": look.width,
        "marker": look.marker,
        "markersize": look.size,
        "markerfacecolor": look.colour if look.filled else "white",
        "markeredgewidth": 0 if look.filled else min(0.8, look.width),
        "zorder": 3 if look.filled else 2.5,
    }


def legend(figure: Figure, methods: Sequence[str], columns: Sequence[Sequence[str]], note: str) -> None:
    """Put one legend below the panels, with a note above.

    Args:
        figure: whose legend it is.
        methods: in it, in the order within a column.
        columns: which keys of BY_SUMMARY stand in each.
        note: one line or more.
    """
    keys = [[key for summary in column for key in methods if summary_of(key) == summary] for column in columns]
    keys = [column for column in keys if column]
    rows = max(map(len, keys))
    cells = [key for column in keys for key in (*column, *[""] * (rows - len(column)))]
    figure.legend(
        [Line2D([], [], **line(LOOKS[key])) if key else Line2D([], [], linestyle="none") for key in cells],
        [METHODS[key].title if key else "" for key in cells],
        title=note,
        loc="outside lower left",
        ncols=len(keys),
        alignment="left",
    )
