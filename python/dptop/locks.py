"""One writer at a time for a saved summary, so that nobody's mark on it is lost."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dptop.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["held", "is_at"]

PATIENCE: Final = 10.0
"""Seconds that a save waits for the release of what it would replace."""
PAUSE: Final = 0.05


@contextlib.contextmanager
def held(path: str | os.PathLike[str]) -> Iterator[int | None]:
    """Hold the lock of the file at a path, which goes with the file and not with the path; give its descriptor.

    None where there is no regular file that can be read, or where the file system has no locks: then nothing that is
    there can be a part that the command releases.

    Raises:
        SourceError: another process held it for too long.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            target = Path(path).resolve()
            descriptor = os.open(target, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError, TypeError):  # whoever writes there says what is wrong
            yield None
            return
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode) or (taken := _take(descriptor)) is None:
                yield None
                return
            if taken and is_at(descriptor, target):
                yield descriptor
                return
        finally:
            os.close(descriptor)
        if time.monotonic() > deadline:  # replaced again and again, or never let go
            raise SourceError(f"{path!s}: another process is releasing or saving it. Save again when that is done.")
        time.sleep(PAUSE)


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether a file is still the one at its path: whoever replaced it had the lock of the old one."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _take(descriptor: int) -> bool | None:
    """Return whether the lock was free, and is taken now; None where there are no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
