"""`dptop release` refuses all parts if one cannot be released, or cannot be marked, and says which."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from commands import COPIES, DPTOP, EXACT, HEADER, LINES, PATIENCE, assert_refused, rows
from containers import SECRET
from dptop import atomic
from dptop.cli import parts
from part_makers import counted, releases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commands import Command


def spoiled(three: list[Path], kind: str) -> tuple[list[object], int, str]:
    """Return arguments of a release that must be refused because of one of three parts, and how."""
    first, last = three[0], three[-1]
    other = last.with_name("other")
    match kind:
        case "the same file twice":
            return [*three, first], 2, f"{first}: each part must be given once; this is the file {first}"
        case "the same file by another path":
            return [*three, first.parent / "." / "x" / ".." / first.name], 2, "each part must be given once"
        case "the same file by a link":
            other.symlink_to(first)
            return [*three, other], 2, f"other: each part must be given once; this is the file {first}"
        case "a copy":
            shutil.copy(first, other)
            return [*three, other], 2, f"other: each shard must be another part of the stream; got a copy of {first}"
        case "a second name":
            os.link(first, other)
            return [*three], 1, f"{first.name}: a part must have one name"
        case "one that was released":
            elsewhere = subprocess.run([DPTOP, "release", last], capture_output=True, timeout=PATIENCE, check=True)
            assert elsewhere.stdout.startswith(HEADER)
            return [*three], 1, f"{last.name}: one release per stream"
        case "another type":
            summary = dptop.MisraGries(10)
            summary.save(other)
            return [*three, other], 1, "other: summaries that are released together must be SpaceSaving, .*; got Misra"
        case "another kind of label":
            numbers = dptop.SpaceSaving(10)
            numbers.update(1)
            numbers.save(other)
            return [*three, other], 1, f"other: .* one kind of labels; got integers here and bytes in {first}"
        case "a part of a part":
            other.write_bytes(last.read_bytes()[:-1])
            return [*three, other], 1, "other: "
        case "no part":
            other.write_bytes(LINES)
            return [*three, other], 1, "other: these bytes are not a saved dptop summary"
        case "an input that broke off":
            broken = counted(a=1)
            with pytest.raises(ZeroDivisionError):
                broken.extend(str(1 // (i - 5)) for i in range(10))
            broken.save(other)
            return [*three, other], 1, "only if its stream was read to the end"
        case "a missing file":
            return [*three, other], 1, r"other: a part is opened .* \(No such file or directory\)\. Check its path"
        case "a folder":
            return [*three, first.parent], 1, "a part must be a regular file"
        case "a pipe":
            os.mkfifo(other)
            return [*three, other], 1, "other: a part must be a regular file"
        case "standard input":
            return [*three, "-"], 2, "a part must be a file, as it is marked as spent; got standard input"
        case "its own output":
            last.rename(other.with_suffix(".csv"))
            return [*three[:2], other.with_suffix(".csv"), "-o", other.with_suffix(".csv")], 2, "another file than"
        case "no place for the output":
            return [*three, "-o", first.parent / "missing" / "x.csv"], 1, "must be writable there"
        case "no such partition":
            return [*three, "--partition", "random"], 2, "partition must be one of 'as-stored', 'label'; got 'random'"
        case "a mechanism of others":
            return [*three, "--mechanism", "paper", "--share", "0.1"], 2, "mechanism must be one for a Sharded"
        case "no epsilon":
            return [*three, "--epsilon", "0"], 2, "epsilon must be"
        case "a broken budget":
            small = dptop.SpaceSaving(10, budget=dptop.Budget(0.5, 1e-9))
            small.save(other)
            return [*three, other], 1, "other: the sums of epsilon and delta must stay within budget"
    raise AssertionError(kind)


@pytest.mark.parametrize(
    "kind",
    re.findall(r'case "([a-z ]+)":', Path(__file__).read_text()),
)
def test_one_part_that_cannot_be_released_spends_none(dptop_command: Command, three: list[Path], kind: str) -> None:
    """All are checked before the first is marked: the others are as they were, and can be released without it."""
    (three[0].parent / "x").mkdir()
    arguments, code, pattern = spoiled(three, kind)
    old = {path: path.read_bytes() for path in three[0].parent.iterdir() if path.is_file()}
    assert_refused(dptop_command("release", *arguments), code, pattern)
    assert {path: path.read_bytes() for path in three[0].parent.iterdir() if path.is_file()} == old
    if kind != "a second name":
        assert rows(dptop_command("release", *three[:2], *EXACT)) == {b"both": 100, b"tue": 51, b"mon": 50}


# --- places that cannot be marked ------------------------------------------------------------------------------------


@contextmanager
def as_anybody(folder: Path) -> Iterator[None]:
    """Act in a folder as a user whom permissions bind, also where root runs the tests."""
    root = os.geteuid() == 0
    if root:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, 65534, 65534)
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Make a folder that any user can reach."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.parametrize("what", ["the file", "its folder"])
def test_a_part_that_may_not_be_written_is_not_released(dptop_command: Command, open_folder: Path, what: str) -> None:
    """Neither is one that is asked for together with it, in a folder of its own, and nothing is spent."""
    for name in ("a", "b"):
        (open_folder / name).mkdir()
        counted(**{SECRET: COPIES}).save(open_folder / name / "part")
    names = [open_folder / name / "part" for name in ("a", "b")]
    old = [name.read_bytes() for name in names]
    (names[1] if what == "the file" else names[1].parent).chmod(0o400 if what == "the file" else 0o500)
    with as_anybody(open_folder):
        for found in (names, names[::-1], names[1:]):
            assert_refused(dptop_command("release", *found), 1, r"b/part: .*\(Permission denied\)")
    assert [name.read_bytes() for name in names] == old
    names[1].parent.chmod(0o700)
    assert sorted(path.name for path in open_folder.rglob("*")) == ["a", "b", "part", "part"]


def test_a_full_disk_spends_nothing(dptop_command: Command, three: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """All marked parts are on the disk before the first one takes its place."""
    old = [part.read_bytes() for part in three]
    real, calls = atomic.on_disk, iter(range(10))

    def full(file: Any) -> None:
        if next(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    monkeypatch.setattr(parts, "on_disk", full)
    assert_refused(dptop_command("release", *three), 1, r"wed\.dptop: cannot be written \(No space left on device\)")
    assert [part.read_bytes() for part in three] == old
    assert len(list(three[0].parent.iterdir())) == 3


def test_a_part_that_cannot_be_replaced_is_not_released(
    dptop_command: Command, three: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If that happens to the second of three, the first stays spent and nothing comes out, as the message says."""
    real, calls = os.replace, iter(range(10))

    def refusing(*arguments: Any, **options: Any) -> None:
        if next(calls) == 1:
            raise OSError(errno.EROFS, "Read-only file system")
        real(*arguments, **options)

    monkeypatch.setattr(os, "replace", refusing)
    outcome = dptop_command("release", *three)
    assert_refused(outcome, 1, r"\(Read-only file system\)\. .* a part that was marked before stays spent")
    assert sorted(releases(part) for part in three) == [0, 0, 1]
    assert len(list(three[0].parent.iterdir())) == 3
