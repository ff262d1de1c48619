"""One writer at a time for a saved summary, so that nobody's mark on it is lost.

A lock goes with a file and not with its path. So whoever takes one looks again whether the file is still at the path:
whoever replaced it had the lock of the old one, and may have released what it holds.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dptop.atomic import is_at, reason
from dptop.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["held", "let_go", "opened", "take"]

PATIENCE: Final = 10.0
"""Seconds that a save waits for the release of what it would replace."""
PAUSE: Final = 0.05
NO_LOCKS: Final = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)
"""What file systems without locks say. Nobody can hold one there."""


def opened(path: str | os.PathLike[str], access: int) -> int | None:
    """Return a descriptor of the regular file at a path. Others are None: a pipe would wait, or tell its reader.

    Raises:
        OSError: it cannot be opened so.
    """
    if not Path(path).is_file():
        Path(path).stat()  # says what is wrong, if anything is
        return None
    descriptor = os.open(path, access | os.O_CLOEXEC | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def take(descriptor: int) -> bool:
    """Take the lock of a file, unless another process has it.

    Raises:
        OSError: there are no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def let_go(descriptor: int) -> None:
    """Give the lock back and close the file.

    By closing alone a process that was forked meanwhile would go on to hold it.
    """
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


@contextlib.contextmanager
def held(path: str | os.PathLike[str]) -> Iterator[int | None]:
    """Hold the lock of the file at a path; give its descriptor.

    None where there is no regular file. Where the file system has no locks the file is given without
    one: what it says was spent is still read, and the command releases nothing there.

    Raises:
        SourceError: it cannot be opened, or another process held it for too long.
    """
    deadline = time.monotonic() + PATIENCE
    while (descriptor := _readable(path)) is not None:
        try:
            if _take_if_any(descriptor) and is_at(descriptor, Path(path)):
                yield descriptor
                return
        finally:
            let_go(descriptor)
        if time.monotonic() > deadline:  # replaced again and again, or never let go
            raise SourceError(
                f"{path!s}: it is being released or saved, by another process or this one. Save again when that is"
                " done."
            )
        time.sleep(PAUSE)
    yield None


def _readable(path: str | os.PathLike[str]) -> int | None:
    """Open for writing where that is allowed: some file systems, such as NFS, lock only those."""
    for access in (os.O_RDWR, os.O_RDONLY):
        try:
            return opened(path, access)
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return None  # nothing is there; whoever writes there says what is wrong
        except OSError as error:
            refused = error
    raise SourceError(f"{path!s}: what would be replaced cannot be read ({reason(refused)}). Save to another path.")


def _take_if_any(descriptor: int) -> bool:
    try:
        return take(descriptor)
    except OSError as error:  # a lock that cannot be had now may be held by another process
        return error.errno in NO_LOCKS
