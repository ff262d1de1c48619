"""Prose in Markdown, in lines of at most 120 columns."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["bullets", "paragraph"]

COLUMNS: Final = 120


def paragraph(text: str) -> str:
    r"""Return a paragraph, with a newline at its end.

    >>> print(paragraph("x" * 117 + " 1. Not an item of a list").splitlines()[1])
    1\. Not an item of a list
    """
    return _filled(text, "", "")


def bullets(texts: Iterable[str], depth: int = 0) -> str:
    """Return a list within so many others, with a newline at its end."""
    indent = "  " * depth
    return "".join(_filled(text, f"{indent}* ", f"{indent}  ") for text in texts)


def _filled(text: str, first: str, others: str) -> str:
    lines = textwrap.wrap(
        " ".join(text.split()),
        COLUMNS - 1,  # room for a backslash
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
    # what would begin a list or a heading were it not in the middle of a sentence
    rest = [re.sub(r"^(\s*\d*)([-+*#>.)] )", r"\1\\\2", line) for line in lines[1:]]
    return "\n".join(lines[:1] + rest) + "\n"
