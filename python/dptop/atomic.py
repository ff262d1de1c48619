"""Files that appear whole: the old content or the new one, never a part of it, also when the process is killed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from dptop.errors import DptopError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["on_disk", "reason", "replacing"]


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of `path` when it is complete.

    A private one can be read by its owner only, and stays in its place also if the machine stops right after. A place
    that is no regular file, such as a pipe, is written directly. A process that is killed may leave its unfinished
    file beside `path`, named .dptop- and 16 digits.

    Raises:
        SourceError: the file cannot be written.
    """
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        temporary = target.with_name(f".dptop-{secrets.token_hex(8)}")
        mode = 0o600 if private else 0o666
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                yield file
                on_disk(file)
            temporary.replace(target)
            if private:  # else a folder that can be written but not read is good enough
                _names_on_disk(target.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except DptopError:  # tells of what was to be written, not of the path
        raise
    except (OSError, ValueError, TypeError) as error:
        raise SourceError(f"{path!s}: cannot be written ({reason(error)}). Choose another path.") from None


def on_disk(file: BinaryIO) -> None:
    """Return once what was written to a file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def _names_on_disk(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync folders keeps names in its own way
            raise
    finally:
        os.close(descriptor)


def reason(error: Exception) -> str:
    """Return why a path does not work, in the system's words."""
    return str(getattr(error, "strerror", None) or "it is no path")
