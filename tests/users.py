"""Acting as a user whom permissions bind, also where root runs the tests."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT: Final = os.geteuid() == 0
ANYBODY: Final = 65_534
SOMEBODY_ELSE: Final = 65_533


@contextmanager
def as_anybody(folder: Path, kept: tuple[Path, ...] = ()) -> Iterator[None]:
    """Act in a folder as a user who is not root and has all that is in it but what others keep."""
    if ROOT:
        for path in {folder, *folder.rglob("*")}.difference(kept):
            os.chown(path, ANYBODY, ANYBODY, follow_symlinks=False)
        os.seteuid(ANYBODY)
    try:
        yield
    finally:
        if ROOT:
            os.seteuid(0)
