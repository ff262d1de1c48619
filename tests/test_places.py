"""Places that cannot be written are found before anything is read or spent, and those that can be are written."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dptop
from commands import COPIES, DPTOP, EXACT, LINES, PATIENCE, Outcome, assert_refused, rows
from containers import SECRET
from part_makers import counted, releases
from users import ANYBODY, ROOT, SOMEBODY_ELSE, as_anybody

if TYPE_CHECKING:
    from commands import Command

COMMANDS: dict[str, tuple[str, ...]] = {
    "release": ("release", "{part}", *EXACT),
    "top": ("top", "-", "--format", "lines"),
    "summarize": ("summarize", "-", "--format", "lines"),
}

Place = tuple[Path, tuple[Path, ...], str]
"""A place, what of it is another user's, and why it cannot be written, as the system says it."""

Make = Callable[[Path], Place]
PLACES: list[Make] = []


def case(make: Make) -> Make:
    """Add a place to the tests below: none that is written here stays out."""
    PLACES.append(make)
    return make


@case
def in_a_folder_that_may_not_be_written(folder: Path) -> Place:
    """Make one that itself may be written; but a file is replaced and not overwritten."""
    path = folder / "closed" / "out.csv"
    path.parent.mkdir()
    path.write_bytes(b"old")
    path.chmod(0o666)
    path.parent.chmod(0o500)
    return path, (), "Permission denied"


@case
def behind_a_link_to_nowhere(folder: Path) -> Place:
    path = folder / "out.csv"
    path.symlink_to(folder / "missing" / "out.csv")
    return path, (), "No such file or directory"


@case
def in_a_loop_of_links(folder: Path) -> Place:
    (folder / "other").symlink_to("out.csv")
    (folder / "out.csv").symlink_to("other")
    return folder / "out.csv", (), "Too many levels of symbolic links"


@case
def behind_a_loop_of_links(folder: Path) -> Place:
    return in_a_loop_of_links(folder)[0] / "x.csv", (), "Too many levels of symbolic links"


@case
def with_too_long_a_name(folder: Path) -> Place:
    return folder / f"{'x' * 252}.csv", (), "File name too long"


@case
def a_folder_in_its_place(folder: Path) -> Place:
    (folder / "out.csv").mkdir()
    return folder / "out.csv", (), "Permission denied"


def of_somebody_else_in_a_sticky_folder(folder: Path) -> Place:
    """Make one that may be written, but not replaced; as in /tmp."""
    path = folder / "sticky" / "out.csv"
    path.parent.mkdir()
    path.write_bytes(b"old")
    path.chmod(0o666)
    os.chown(path, SOMEBODY_ELSE, SOMEBODY_ELSE)
    path.parent.chmod(0o1777)
    return path, (path, path.parent), "Operation not permitted"


if ROOT:
    PLACES.append(of_somebody_else_in_a_sticky_folder)


def in_a_folder_that_may_not_be_read(folder: Path) -> Place:
    """Make one of which nobody could know whether its name is on the disk."""
    path = folder / "unread" / "out.csv"
    path.parent.mkdir()
    path.parent.chmod(0o300)
    return path, (), "Permission denied"


def run_there(command: Command, folder: Path, name: str, place: Place) -> Outcome:
    """Run one of `COMMANDS` in a folder with a part, with an output there; what was in the folder must be as it was."""
    path, kept, _ = place
    (folder / "part").write_bytes(counted(a=COPIES).to_bytes())
    with as_anybody(folder, kept):
        before = content(folder)
        arguments = [argument.format(part=folder / "part") for argument in COMMANDS[name]]
        outcome = command(*arguments, "-o", path, stdin=LINES)
        assert content(folder) == before
    return outcome


def content(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("make", PLACES, ids=lambda make: make.__name__)
def test_a_place_that_cannot_be_written_is_found_before_anything_is_read_or_spent(
    dptop_command: Command, open_folder: Path, make: Make, name: str
) -> None:
    """Standard input is not touched, a part can still be released, and nothing is left behind."""
    place = make(open_folder)
    outcome = run_there(dptop_command, open_folder, name, place)
    assert_refused(
        outcome, 1, re.escape(f"{place[0]}: a file must be writable there, in a folder that exists ({place[2]})")
    )
    assert os.lseek(0, 0, os.SEEK_CUR) == 0
    assert rows(dptop_command("release", open_folder / "part", *EXACT)) == {b"a": COPIES}


def test_a_private_place_is_in_a_folder_that_can_be_read(dptop_command: Command, open_folder: Path) -> None:
    """A part must stay there when the machine stops right after, which takes an open folder."""
    place = in_a_folder_that_may_not_be_read(open_folder)
    outcome = run_there(dptop_command, open_folder, "summarize", place)
    assert_refused(outcome, 1, rf"out\.csv: a file must be writable there, .*\({place[2]}\)")
    assert os.lseek(0, 0, os.SEEK_CUR) == 0


def test_a_part_in_a_folder_that_cannot_be_read_is_not_spent(dptop_command: Command, open_folder: Path) -> None:
    """Its mark could be in its place without being on the disk, with nothing to show for it."""
    path, _, why = in_a_folder_that_may_not_be_read(open_folder)
    path.write_bytes(counted(a=COPIES).to_bytes())
    with as_anybody(open_folder):
        outcome = dptop_command("release", path)
    assert_refused(outcome, 1, rf"out\.csv: cannot be written \({why}\).*Nothing was released")
    assert releases(path) == 0
    path.parent.chmod(0o700)
    assert list(path.parent.iterdir()) == [path]


def test_a_result_goes_to_a_folder_that_cannot_be_read(dptop_command: Command, open_folder: Path) -> None:
    """What is public can be written again, and needs no more than to be written."""
    path, _, _ = in_a_folder_that_may_not_be_read(open_folder)
    with as_anybody(open_folder):
        assert dptop_command("top", "-", "-o", path, stdin=LINES).code == 0
        assert os.lseek(0, 0, os.SEEK_CUR) == len(LINES)  # the tests above can fail: what is read is seen
    assert path.read_bytes().startswith(b"item,count,low,high\n")


@pytest.mark.parametrize("name", ["top", "summarize"])
def test_an_owner_that_cannot_be_kept_is_found_before_anything_is_read(
    dptop_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Root is not everywhere allowed to give a file to the owner of the one that it replaces."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fchown", refused)
    path = tmp_path / "out.csv"
    path.write_bytes(b"old")
    outcome = dptop_command(*COMMANDS[name], "-o", path, stdin=LINES)
    assert_refused(outcome, 1, r"must be writable there, .*\(Operation not permitted\)")
    assert os.lseek(0, 0, os.SEEK_CUR) == 0
    assert content(tmp_path) == {path: b"old"}


@pytest.mark.parametrize("make", [in_a_loop_of_links, with_too_long_a_name])
def test_a_part_that_no_path_leads_to_is_told(dptop_command: Command, tmp_path: Path, make: Make) -> None:
    """With the path and the system's reason; the parts beside it can be released without it."""
    path, _, why = make(tmp_path)
    part = tmp_path / "part"
    counted(a=COPIES).save(part)
    assert_refused(dptop_command("release", part, path), 1, rf"csv: a part is opened to be read .*\({why}\)")
    assert releases(part) == 0


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("make", [in_a_loop_of_links, with_too_long_a_name])
def test_an_input_that_no_path_leads_to_is_told(
    dptop_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Make, terminal: bool
) -> None:
    """Also where its size is wanted for the progress, and where it is compared with an output that is there."""
    path, _, why = make(tmp_path)
    monkeypatch.setattr("dptop.cli.counting.is_terminal", lambda _: terminal)
    old = tmp_path / "old.csv"
    old.write_bytes(b"old")
    for arguments in (("top", path), ("top", path, "-o", old), ("summarize", path, "-o", old)):
        outcome = dptop_command(*arguments)
        assert outcome.code == 1
        assert re.search(rf"csv: the file cannot be opened: {why}", outcome.err)
        assert "Traceback" not in outcome.err
    assert old.read_bytes() == b"old"


@pytest.mark.parametrize("size", [-1, 5, None], ids=["cut", "cut to its beginning", "a bit"])
def test_a_corrupt_part_is_found_before_the_input_is_read(
    dptop_command: Command, tmp_path: Path, size: int | None
) -> None:
    """A save would not replace it, as it may say what was spent."""
    path = tmp_path / "part"
    data = counted(a=COPIES).to_bytes()
    damaged = data[:size] if size is not None else data[:-1] + bytes([data[-1] ^ 1])
    path.write_bytes(damaged)
    outcome = dptop_command("summarize", "-", "-o", path, stdin=LINES)
    assert_refused(outcome, 1, "part: a saved summary that cannot be read is not replaced")
    assert os.lseek(0, 0, os.SEEK_CUR) == 0
    assert content(tmp_path) == {path: damaged}


# --- places that can be written --------------------------------------------------------------------------------------

has_descriptors = pytest.mark.skipif(not Path("/dev/fd/1").exists(), reason="open files without a name")


@has_descriptors
def test_a_part_goes_through_a_pipe(tmp_path: Path) -> None:
    """As with other commands, /dev/stdout is where the output goes."""
    (tmp_path / "log").write_bytes(b"label\n" * COPIES)
    script = f"set -o pipefail; '{DPTOP}' summarize log -o /dev/stdout | cat > part"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    loaded = dptop.load(tmp_path / "part")
    assert isinstance(loaded, dptop.SpaceSaving)
    assert loaded.private_counters() == [(b"label", COPIES)]


@has_descriptors
def test_a_summary_is_saved_to_an_open_pipe() -> None:
    """What has no name is written, and nothing is made beside it."""
    summary = counted(**{SECRET: COPIES})
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as end:
        summary.save(f"/dev/fd/{writer}")  # less than a pipe holds
        os.close(writer)
        data = end.read()
    assert data == summary.to_bytes()


@pytest.mark.skipif(not ROOT, reason="only root gives files to others")
def test_a_file_that_root_replaces_stays_with_its_owner(dptop_command: Command, open_folder: Path) -> None:
    """A user's part, saved or marked by root, can be read by that user; and so can a result."""
    part, table = open_folder / "part", open_folder / "out.csv"
    summary = counted(a=COPIES)
    summary.save(part)
    table.write_bytes(b"old")
    for path in (part, table):
        os.chown(path, ANYBODY, SOMEBODY_ELSE)
    summary.update(b"a")
    summary.save(part)
    assert kept(part) == (ANYBODY, SOMEBODY_ELSE, 0o600)
    assert dptop_command("release", part, *EXACT, "-o", table).code == 0
    assert kept(part) == (ANYBODY, SOMEBODY_ELSE, 0o600)
    assert kept(table)[:2] == (ANYBODY, SOMEBODY_ELSE)
    with as_anybody(open_folder):
        dptop.load(part)
    assert releases(part) == 1


def kept(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)
