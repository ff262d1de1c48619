"""Makers of the parts that `dptop release` publishes, and what a part says was released of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dptop
from commands import COPIES
from dptop.record import Record
from saved import Saved

if TYPE_CHECKING:
    from pathlib import Path

    from dptop.ledger import LedgerRecord

PARTS = ("1.dptop", "2.dptop")


def counted(**labels: int) -> dptop.SpaceSaving:
    summary = dptop.SpaceSaving(100)
    summary.extend([label.encode() for label, count in labels.items() for _ in range(count)])
    return summary


def three_parts(folder: Path) -> list[Path]:
    """Make three parts of one stream."""
    paths = [folder / f"{name}.dptop" for name in ("mon", "tue", "wed")]
    for i, path in enumerate(paths):
        counted(both=COPIES, **{path.stem: COPIES + i}).save(path)
    return paths


def folder_of_parts(folder: Path) -> Path:
    """Make a folder with `PARTS`, and a file that is to become the first one."""
    folder.mkdir()
    for name in PARTS:
        counted(**{name[0]: COPIES}).save(folder / name)
    (folder / "log").write_bytes(b"new\n" * COPIES + b"other\n" * 20)
    return folder


def ledger_of(path: Path) -> LedgerRecord:
    """Return what a part says was spent. It is read by tests/saved.py, apart from our ledgers."""
    return Record.from_bytes(Saved.parse(path.read_bytes()).record).ledger


def releases(path: Path) -> int:
    """Return how many releases a part says were made of it."""
    return len(ledger_of(path).entries)
