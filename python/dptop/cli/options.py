"""What can be said on the command line, each option once; the commands share them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from dptop.cli.counting import DEPTHS, SUMMARIES, WIDTH
from dptop.cli.output import OUTPUTS
from dptop.files import FORMATS
from dptop.mechanism import NOISES, PUBLIC_LABELS
from dptop.release import PLANS
from dptop.sharded import AS_STORED, BY_LABEL, Sharded
from dptop.tracked import CANDIDATES

OFFERED: Final = {summary: tuple(name for name in plans if name != PUBLIC_LABELS) for summary, plans in PLANS.items()}
"""Those that need no labels to be declared, by what counted; the best for each first."""


def _named(*, sharded: bool) -> str:
    kept = [names for summary, names in OFFERED.items() if sharded or summary is not Sharded]
    return ", ".join(dict.fromkeys(name for names in kept for name in names))


def whole(text: str) -> Any:
    """Return the number that an option says, or else its text, which the check of the parameter then refuses."""
    try:
        return int(text)
    except ValueError:
        return text


def real(text: str) -> Any:
    """Return the number that an option says, or else its text, as `whole` does."""
    try:
        return float(text)
    except ValueError:
        return text


def _depths(envelope: int) -> str:
    return " and ".join(f"{depths[envelope]} of {name}" for name, depths in DEPTHS.items())


# --- what is read ----------------------------------------------------------------------------------------------------

Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Files to read, in order; - is stdin.")]
Column = Annotated[
    str | None,
    typer.Option("--column", help="Column, or member of JSON objects, that holds the labels.", metavar="NAME"),
]
Format = Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.", metavar="FORMAT")]
Null = Annotated[
    list[str] | None, typer.Option("--null", help="A text that stands for a missing value; repeatable.", metavar="TEXT")
]

# --- what shapes a summary -------------------------------------------------------------------------------------------

Capacity = Annotated[
    int, typer.Option("--capacity", help="Counters: labels tracked at the most.", parser=whole, metavar="N")
]
Partitions = Annotated[
    int, typer.Option("--partitions", help="Tables that share the capacity.", parser=whole, metavar="N")
]
Threads = Annotated[
    int, typer.Option("--threads", help="Workers that share the partitions.", parser=whole, metavar="N")
]
Kind = Annotated[str, typer.Option("--summary", help=f"One of {', '.join(SUMMARIES)}.", metavar="NAME")]
Width = Annotated[
    int | None,
    typer.Option("--width", help=f"Cells in a row of a sketch, {WIDTH:,} by default.", parser=whole, metavar="N"),
]
Depth = Annotated[
    int | None,
    typer.Option(
        "--depth",
        help=f"Rows of a sketch. By default {_depths(0)}; with envelope {_depths(1)}.",
        parser=whole,
        metavar="N",
    ),
]
DepthOfPart = Annotated[
    int | None,
    typer.Option(
        "--depth",
        help=f"Rows of a sketch. By default {_depths(0)}; with --candidates estimates {_depths(1)}, which are about the"
        " best for any release by envelope.",
        parser=whole,
        metavar="N",
    ),
]
Candidates = Annotated[
    str | None,
    typer.Option(
        "--candidates", help=f"What tracks labels beside a sketch: {' or '.join(CANDIDATES)}.", metavar="NAME"
    ),
]
BudgetOfPart = Annotated[
    str | None,
    typer.Option(
        "--budget",
        help="What all releases of the part may spend together; by default there is one, of any size.",
        metavar="EPSILON,DELTA",
    ),
]
PartOut = Annotated[
    Path, typer.Option("--output", "-o", help="The part to write, such as monday.dptop.", metavar="PART")
]

# --- what shapes a release -------------------------------------------------------------------------------------------

Parts = Annotated[
    list[str], typer.Argument(metavar="PART...", help="What dptop summarize wrote, or save() in Python; each once.")
]
Partition = Annotated[
    str,
    typer.Option(
        "--partition",
        help=f"How items came to several parts: {AS_STORED}; or {BY_LABEL}, where all items of a label are in one part:"
        " intervals are shorter.",
        metavar="NAME",
    ),
]
Top = Annotated[int | None, typer.Option("--top", help="Rows to release at the most.", parser=whole, metavar="N")]
Share = Annotated[
    float | None,
    typer.Option("--share", help="Only labels with this share of the stream, 0 to 1.", parser=real, metavar="F"),
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Total epsilon, 2**-20 to 64.", parser=real, metavar="F")]
Delta = Annotated[float, typer.Option("--delta", help="Total delta, between 0 and 1.", parser=real, metavar="F")]
Mechanism = Annotated[
    str | None,
    typer.Option(
        "--mechanism",
        help=f"By default the best for the summary. All: {_named(sharded=False)}; paper needs --share.",
        metavar="NAME",
    ),
]
MechanismOfParts = Annotated[
    str | None,
    typer.Option(
        "--mechanism",
        help=f"By default the best for what counted. All: {_named(sharded=True)}; paper needs --share;"
        f" {' and '.join(OFFERED[Sharded])} are for several parts.",
        metavar="NAME",
    ),
]
Noise = Annotated[
    str | None, typer.Option("--noise", help=f"In the cells of a sketch: {' or '.join(NOISES)}.", metavar="NAME")
]
Length = Annotated[
    int | None,
    typer.Option(
        "--length",
        help="Public upper bound on the number of items; misra-gries needs it for high.",
        parser=whole,
        metavar="N",
    ),
]

# --- where the result goes -------------------------------------------------------------------------------------------

Json = Annotated[bool, typer.Option("--json", help="Write JSON lines to stdout.")]
Table = Annotated[bool, typer.Option("--table", help="Write a table to stdout, also into a pipe.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help=f"Write a file instead: {', '.join(OUTPUTS)}.", metavar="PATH"),
]

DEFAULT_TOP: Final = 20
DEFAULT_EPSILON: Final = 1.0
DEFAULT_DELTA: Final = 1e-9
DEFAULT_CAPACITY: Final = 65_536
DEFAULT_PARTITION: Final = AS_STORED
