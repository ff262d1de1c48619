"""The saved files of each version of the form, and what was counted into them, written down by hand."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saved_form_reader import BYTES, STEP

if TYPE_CHECKING:
    from fractions import Fraction

FOLDER = Path(__file__).parent / "cases" / "saved-form-1"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text())
del EXPECTED["about"]


def saved(name: str) -> bytes:
    """Return the bytes of a file."""
    return (FOLDER / f"{name}.dptop").read_bytes()


def label(written: Any, kind: int) -> Any:
    """Return a label as it was counted: a shortened one is its beginning and its digest."""
    if isinstance(written, list):
        beginning, digest = written
        return label(beginning, kind), bytes.fromhex(digest)
    return bytes.fromhex(written) if kind == BYTES else written


def pairs(written: list[Any], kind: int) -> list[tuple[Any, int]]:
    """Return labels with their counts."""
    return [(label(each, kind), count) for each, count in written]


def epsilon(steps: int) -> Fraction:
    """Return an epsilon that is written in units of 2^-32."""
    return steps * STEP


def noise(written: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what is said of noise, with exact numbers."""
    if written is None:
        return None
    exact = {name: epsilon(steps) for name, steps in written.items() if name.startswith("epsilon")}
    return {**written, **exact, "delta": Decimal(written["delta"])}


def spent(written: list[Any]) -> list[tuple[int, Fraction, Decimal]]:
    """Return what was spent: max_contributions, epsilon, delta."""
    return [(contributions, epsilon(steps), Decimal(delta)) for contributions, steps, delta in written]
