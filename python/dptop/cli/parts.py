"""Parts on disk: saved summaries that the command releases, and marks as spent before it does.

What a process holds in memory dies with it; what was spent must not. So a part is locked from before it is read until
noise was drawn, and its file is replaced by one that says what the release spends before that. A part that cannot be
locked or replaced is not released.
"""

from __future__ import annotations

import contextlib
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dptop.atomic import is_at, on_disk, reason, refuse_what_is_kept, replacing
from dptop.errors import CorruptSummary, DptopError, InvalidParameter, SourceError
from dptop.files import is_stdin
from dptop.locks import let_go, opened, take
from dptop.release import check_whole
from dptop.summary import Summary, saved_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dptop.ledger import Spent

__all__ = ["Part", "locked_parts", "mark"]

FILES_OF_A_PART: Final = 3
"""Open at once: the one that is locked, the one that takes its place, and their folder."""
OTHER_FILES: Final = 256


@dataclass(frozen=True)
class Part:
    """A saved summary in a locked file.

    Attributes:
        name: what messages call the file: its path as it was given.
        path: without symbolic links, so that the file that they lead to is replaced.
        descriptor: holds the lock, which goes with the file and not with its path.
        summary: PRIVATE; what the file holds.
    """

    name: str
    path: Path
    descriptor: int
    summary: Summary

    def check(self, spent: Spent, length: int | None) -> None:
        """Refuse a release that the part does not allow, as `release` would, with the name of the file.

        Raises:
            BudgetExhausted, InvalidParameter: as `Ledger.charge`.
            SourceError: what was counted is not whole.
        """
        try:
            check_whole(self.summary)
            self.summary._ledger._check(spent, self.summary.budget, length)
        except DptopError as error:
            raise type(error)(f"{self.name}: {error}") from None


@contextlib.contextmanager
def locked_parts(names: Sequence[str]) -> Iterator[list[Part]]:
    """Lock the files of parts and read them, in the order given; other processes that ask for one are refused.

    Two processes with files in common cannot refuse each other: files are locked in the order of their paths, and the
    one that has locked the last of those goes on.

    Raises:
        InvalidParameter: a file twice, or standard input.
        SourceError: a file that cannot be opened to be read and replaced, that has a second name, which would not be
            marked, that another process has locked, or replaced in the meantime.
        CorruptSummary: a file that holds no whole, consistent summary.
    """
    _allow_open_files(FILES_OF_A_PART * len(names))
    with contextlib.ExitStack() as stack:
        files: dict[tuple[str, int], Path] = {}
        known: dict[tuple[int, int], str] = {}
        for name in names:
            descriptor, path = _opened(name)
            stack.callback(let_go, descriptor)
            files[name, descriptor] = path
            status = os.fstat(descriptor)
            file = status.st_dev, status.st_ino
            if first := known.get(file):
                raise InvalidParameter(f"{name}: each part must be given once; this is the file {first}. Leave it out.")
            known[file] = name
        for (name, descriptor), path in sorted(files.items(), key=lambda file: file[1]):
            _lock(name, descriptor, path)
        yield [Part(name, path, descriptor, _read(name, descriptor)) for (name, descriptor), path in files.items()]


def mark(parts: Sequence[Part]) -> None:
    """Replace the file of each part by what its summary is now, with all that was spent. It is on disk on return.

    All are written, beside the old ones, before the first is replaced: what usually fails, a full disk or a folder that
    may not be written, fails while nothing is spent.

    Raises:
        SourceError: one cannot be replaced; others may have been, and stay spent.
    """
    try:
        with contextlib.ExitStack() as replaced:
            for part in parts:
                file = replaced.enter_context(replacing(part.path, private=True))
                file.write(part.summary.to_bytes())
                on_disk(file)
            for part in parts:  # save() waits for the lock; whoever does not may have put another file there
                _same_file(part.name, part.descriptor, part.path)
    except SourceError as error:
        raise SourceError(f"{error} Nothing was released; a part that was marked before stays spent.") from None


def _allow_open_files(number: int) -> None:
    """Let the process open as many files more, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number + OTHER_FILES
    if resource.RLIM_INFINITY != soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):  # then a file that cannot be opened says so
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _opened(name: str) -> tuple[int, Path]:
    if is_stdin(name):
        raise InvalidParameter(
            "a part must be a file, as it is marked as spent; got standard input. Save it in a file first."
        )
    try:
        path = Path(name).resolve()
        refuse_what_is_kept(path)
        descriptor = opened(path, os.O_RDWR)
    except (OSError, ValueError, RuntimeError) as error:  # the last one: a loop of links
        raise SourceError(
            f"{name}: a part is opened to be read and to be marked as spent, and this one cannot be ({reason(error)})."
            " Check its path, and that it may be written."
        ) from None
    if descriptor is None:
        raise SourceError(f"{name}: a part must be a regular file, as it is marked as spent. Save it in one.")
    return descriptor, path


def _lock(name: str, descriptor: int, path: Path) -> None:
    try:
        free = take(descriptor)
    except OSError as error:
        raise SourceError(
            f"{name}: a part is locked while it is released, and this one cannot be ({reason(error)}). Move it to"
            " another file system."
        ) from None
    if not free:
        raise SourceError(f"{name}: another process is releasing or saving this part. Wait until it is done.")
    _same_file(name, descriptor, path)
    if os.fstat(descriptor).st_nlink > 1:
        raise SourceError(
            f"{name}: a part must have one name, as another one would not be marked as spent. Remove the other links."
        )


def _same_file(name: str, descriptor: int, path: Path) -> None:
    """Refuse a file that is not at its path any more: whoever replaced it may have released it.

    A process that opened the file before another one marked it gets the lock of the old file once that one is done.
    """
    if not is_at(descriptor, path):
        raise SourceError(
            f"{name}: the part was replaced or removed by another process. Release it again if it is there."
        )


def _read(name: str, descriptor: int) -> Summary:
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return Summary.from_bytes(saved_bytes(file))
    except OSError as error:
        raise SourceError(f"{name}: the part cannot be read ({reason(error)}). Check its disk.") from None
    except CorruptSummary as error:
        raise CorruptSummary(f"{name}: {error}") from None
