"""Files that appear whole: the old content or the new one, never a part of it, also when the process is killed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from dptop.errors import DptopError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Appeared", "check_place", "is_at", "on_disk", "reason", "refuse_what_is_kept", "replacing", "settled"]

ANY: Final = -1
"""In place of a descriptor: whatever is at the place is replaced."""
NO_LINKS: Final = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What file systems without hard links say of them, and systems that allow none."""


class Appeared(Exception):  # noqa: N818 - no error: whoever is told looks at the file and tries again
    """Another file came to a place than the one that was looked at, or one where there was none."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool, over: int | None = ANY) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of `path` when it is complete.

    A private one can be read by its owner only, and stays in its place also if the machine stops right after. A place
    that is no regular file, such as a pipe, is written directly. A process that is killed may leave its unfinished
    file beside `path`, named .dptop- and 16 digits.

    Args:
        path: the place.
        private: whether it is raw.
        over: a descriptor of the file that is replaced, and no other; None if there is none, and one that appears until
            this one is complete is not replaced, where the file system knows links.

    Raises:
        SourceError: the file cannot be written.
        Appeared: see `over`.
    """
    try:
        if (target := _target(path)) is None:
            with Path(path).open("wb") as file:
                yield file
            return
        temporary = _temporary(target)
        with contextlib.ExitStack() as opened:
            # first: what cannot be opened must not be found out after the file is in its place
            folder = _folder(target, opened) if private else None
            opened.callback(temporary.unlink, missing_ok=True)
            with os.fdopen(_created(temporary, private=private), "wb") as file:
                _keep_owner(file, target)
                if private:
                    os.fchmod(file.fileno(), 0o600)  # whatever the umask says
                yield file
                on_disk(file)
            if over is None:
                _put(temporary, target)
            elif over == ANY or is_at(over, target):
                temporary.replace(target)
            else:
                raise Appeared
            if folder is not None:
                _names_on_disk(path, folder)
    except (DptopError, Appeared):  # tell of what was to be written, not of the path
        raise
    except _NO_PLACE as error:
        raise SourceError(f"{path!s}: cannot be written ({reason(error)}). Choose another path.") from None


def check_place(path: str | os.PathLike[str], *, private: bool) -> None:
    """Refuse a place that `replacing` could not write, by making a file beside it for a moment.

    Raises:
        SourceError: it says why.
    """
    try:
        if (target := _target(path)) is None:
            _refuse_what_is_no_file(Path(path))
            return
        refuse_what_is_kept(target)
        with contextlib.ExitStack() as opened:
            if private:
                _folder(target, opened)
            temporary = _temporary(target)
            opened.callback(temporary.unlink, missing_ok=True)
            with os.fdopen(_created(temporary, private=private), "wb") as file:
                _keep_owner(file, target)
    except _NO_PLACE as error:
        raise SourceError(
            f"{path!s}: a file must be writable there, in a folder that exists ({reason(error)}). Choose another place."
        ) from None


_NO_PLACE: Final = (OSError, ValueError, TypeError)


def _target(path: str | os.PathLike[str]) -> Path | None:
    """Return the regular file that is to be replaced or made; None for a place that is written directly."""
    place = Path(path)
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(place.stat().st_mode):  # not exists(): some versions of Python take every error for a no
            return None
    return place.resolve()


def _temporary(target: Path) -> Path:
    return target.with_name(f".dptop-{secrets.token_hex(8)}")


def _created(temporary: Path, *, private: bool) -> int:
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)


def _folder(target: Path, opened: contextlib.ExitStack) -> int:
    descriptor = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    opened.callback(os.close, descriptor)
    return descriptor


def _keep_owner(file: BinaryIO, target: Path) -> None:
    """Give a file that root makes to the owner of the one it replaces."""
    if os.geteuid() == 0:
        with contextlib.suppress(FileNotFoundError):
            status = target.stat()
            os.fchown(file.fileno(), status.st_uid, status.st_gid)


def _refuse_what_is_no_file(place: Path) -> None:
    """Refuse what cannot be written directly either. A pipe is not opened, as its reader would be told of an end."""
    mode = place.stat().st_mode
    if stat.S_ISDIR(mode) or stat.S_ISSOCK(mode) or not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if stat.S_ISCHR(mode):  # a terminal that is not there says so when it is opened
        os.close(os.open(place, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))


def settled(path: str | os.PathLike[str]) -> Path:
    """Return where a file is or will be, so that all who ask go to the same place, also if a link is moved meanwhile.

    Raises:
        SourceError: it is no path.
    """
    try:
        return _target(path) or Path(path)
    except _NO_PLACE as error:
        raise SourceError(f"{path!s}: cannot be written ({reason(error)}). Choose another path.") from None


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether a file is still the one at its path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def refuse_what_is_kept(target: Path) -> None:
    """In a sticky folder, such as /tmp, a file is replaced by its owner or the folder's only.

    Raises:
        PermissionError: whoever asks is neither.
    """
    with contextlib.suppress(FileNotFoundError):
        folder, user = target.parent.stat(), os.geteuid()
        if folder.st_mode & stat.S_ISVTX and user not in (0, folder.st_uid, target.stat().st_uid):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def _put(temporary: Path, target: Path) -> None:
    """Give a file its name, unless another one has it."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise Appeared from None
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        temporary.replace(target)
    else:
        temporary.unlink()  # at once: a part with two names is not released


def on_disk(file: BinaryIO) -> None:
    """Return once what was written to a file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def _names_on_disk(path: str | os.PathLike[str], folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync folders keeps names in its own way
            raise SourceError(
                f"{path!s}: is written, but may be gone again if the machine stops ({reason(error)}). Look whether it"
                " is there."
            ) from None


def reason(error: Exception) -> str:
    """Return why a path does not work, in the system's words."""
    if isinstance(error, RuntimeError):
        return "Too many levels of symbolic links"
    return str(getattr(error, "strerror", None) or "it is no path")
