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

    None where there is no regular file that can be read. Where the file system has no locks the file is given without
    one: what it says was spent is still read.

    Raises:
        SourceError: another process held it for too long.
    """
    deadline = time.monotonic() + PATIENCE
    while (descriptor := _opened(path)) is not None:
        try:
            if _take(descriptor) and is_at(descriptor, Path(path)):
                yield descriptor
                return
        finally:
            with contextlib.suppress(OSError):  # a process that was forked meanwhile would go on to hold it
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)
        if time.monotonic() > deadline:  # replaced again and again, or never let go
            raise SourceError(f"{path!s}: another process is releasing or saving it. Save again when that is done.")
        time.sleep(PAUSE)
    yield None


def _opened(path: str | os.PathLike[str]) -> int | None:
    """Return a descriptor of the regular file at a path; others are not opened, as a pipe would tell its reader.

    For writing where that is allowed: some file systems, such as NFS, lock only those.
    """
    for access in (os.O_RDWR, os.O_RDONLY):
        try:
            if not Path(path).is_file():
                return None
            descriptor = os.open(path, access | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError, TypeError):  # whoever writes there says what is wrong
            continue
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    return None


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether a file is still the one at its path: whoever replaced it had the lock of the old one."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _take(descriptor: int) -> bool:
    """Return whether the lock is free, and taken now. Where there are no locks the command releases nothing either."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # no locks here
    return True
