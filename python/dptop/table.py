"""A release as a table for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dptop.label import Label, ShortenedLabel
from dptop.report import Row

if TYPE_CHECKING:
    from dptop.report import Release

__all__ = ["terminal_table"]

SHOWN_START: Final = 160
SHOWN_END: Final = 80
"""Characters of a label, at its start and end; the end of a shortened label is its digest."""


def terminal_table(result: Release) -> str:
    """Return the rows as a table, as wide and as coloured as stdout is."""
    table = Table(box=None)
    item, *numbers = Row._fields
    table.add_column(item, overflow="fold")
    for number in numbers:
        table.add_column(number, justify="right", no_wrap=True)
    for row in result:
        table.add_row(Text(_shown(row.item)), *(f"{number:,}" for number in row[1:]))
    console = Console()
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def _shown(item: Label) -> str:
    """Return a label for a terminal: as text, all that is not printable escaped, a long middle left out."""
    plain = item.plain() if isinstance(item, ShortenedLabel) else item
    text = plain.decode(errors="backslashreplace") if isinstance(plain, bytes) else str(plain)
    if len(text) > SHOWN_START + SHOWN_END:
        text = f"{text[:SHOWN_START]} … {text[-SHOWN_END:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
