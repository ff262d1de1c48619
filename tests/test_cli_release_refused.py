"""`dptop release` refuses all parts if one cannot be released, or cannot be marked, and says which."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from commands import COPIES, DPTOP, EXACT, HEADER, LINES, PATIENCE, assert_refused, rows
from containers import SECRET
from dptop import atomic
from dptop.cli import parts
from part_makers import counted, releases
from users import as_anybody

if TYPE_CHECKING:
    from commands import Command


Refused = tuple[list[object], int, str]
"""Arguments of a release that must be refused because of one part, the exit code, and what the message says."""

Spoil = Callable[[list[Path], Path], Refused]
"""Spoil one of three parts, or another file of that name beside them."""

SPOILED: dict[str, Spoil] = {}


def case(spoil: Spoil) -> Spoil:
    """Add a case to the test below by the name of the function: none that is written here stays out."""
    name = spoil.__name__.replace("_", " ")
    assert name not in SPOILED
    SPOILED[name] = spoil
    return spoil


@case
def the_same_file_twice(three: list[Path], _other: Path) -> Refused:
    return [*three, three[0]], 2, f"{three[0]}: each part must be given once; this is the file {three[0]}"


@case
def the_same_file_by_another_path(three: list[Path], _other: Path) -> Refused:
    return [*three, three[0].parent / "." / "x" / ".." / three[0].name], 2, "each part must be given once"


@case
def the_same_file_by_a_link(three: list[Path], other: Path) -> Refused:
    other.symlink_to(three[0])
    return [*three, other], 2, f"other: each part must be given once; this is the file {three[0]}"


@case
def a_copy(three: list[Path], other: Path) -> Refused:
    shutil.copy(three[0], other)
    return [*three, other], 2, f"other: each shard must be another part of the stream; got a copy of {three[0]}"


@case
def a_second_name(three: list[Path], other: Path) -> Refused:
    os.link(three[0], other)
    return [*three], 1, f"{three[0].name}: a part must have one name"


@case
def one_that_was_released(three: list[Path], _other: Path) -> Refused:
    elsewhere = subprocess.run([DPTOP, "release", three[-1]], capture_output=True, timeout=PATIENCE, check=True)
    assert elsewhere.stdout.startswith(HEADER)
    return [*three], 1, f"{three[-1].name}: one release per stream"


@case
def one_that_was_released_and_a_mechanism_of_others(three: list[Path], _other: Path) -> Refused:
    subprocess.run([DPTOP, "release", three[-1]], capture_output=True, timeout=PATIENCE, check=True)
    arguments = [*three, "--mechanism", "paper", "--share", "0.1"]
    return arguments, 2, r"\Adptop: mechanism must be one for a Sharded"


@case
def another_type(three: list[Path], other: Path) -> Refused:
    summary = dptop.MisraGries(10)
    summary.save(other)
    return [*three, other], 1, "other: summaries that are released together must be SpaceSaving, .*; got Misra"


@case
def another_kind_of_label(three: list[Path], other: Path) -> Refused:
    numbers = dptop.SpaceSaving(10)
    numbers.update(1)
    numbers.save(other)
    return [*three, other], 1, f"other: .* one kind of labels; got integers here and bytes in {three[0]}"


@case
def a_part_of_a_part(three: list[Path], other: Path) -> Refused:
    other.write_bytes(three[-1].read_bytes()[:-1])
    return [*three, other], 1, "other: "


@case
def no_part(three: list[Path], other: Path) -> Refused:
    other.write_bytes(LINES)
    return [*three, other], 1, "other: these bytes are not a saved dptop summary"


@case
def an_input_that_broke_off(three: list[Path], other: Path) -> Refused:
    broken = counted(a=1)
    with pytest.raises(ZeroDivisionError):
        broken.extend(str(1 // (i - 5)) for i in range(10))
    broken.save(other)
    return [*three, other], 1, "other: a summary is released only if its stream was read to the end"


@case
def a_missing_file(three: list[Path], other: Path) -> Refused:
    return [*three, other], 1, r"other: a part is opened .* \(No such file or directory\)\. Check its path"


@case
def a_folder(three: list[Path], _other: Path) -> Refused:
    return [*three, three[0].parent], 1, "a part must be a regular file"


@case
def a_pipe(three: list[Path], other: Path) -> Refused:
    os.mkfifo(other)
    return [*three, other], 1, "other: a part must be a regular file"


@case
def standard_input(three: list[Path], _other: Path) -> Refused:
    return [*three, "-"], 2, "a part must be a file, as it is marked as spent; got standard input"


@case
def its_own_output(three: list[Path], other: Path) -> Refused:
    three[-1].rename(other.with_suffix(".csv"))
    return [*three[:2], other.with_suffix(".csv"), "-o", other.with_suffix(".csv")], 2, "another file than"


@case
def no_place_for_the_output(three: list[Path], _other: Path) -> Refused:
    return [*three, "-o", three[0].parent / "missing" / "x.csv"], 1, "must be writable there"


@case
def no_such_partition(three: list[Path], _other: Path) -> Refused:
    return [*three, "--partition", "random"], 2, "partition must be one of 'as-stored', 'label'; got 'random'"


@case
def a_mechanism_of_others(three: list[Path], _other: Path) -> Refused:
    return [*three, "--mechanism", "paper", "--share", "0.1"], 2, "mechanism must be one for a Sharded"


@case
def no_epsilon(three: list[Path], _other: Path) -> Refused:
    return [*three, "--epsilon", "0"], 2, "epsilon must be"


@case
def a_broken_budget(three: list[Path], other: Path) -> Refused:
    small = dptop.SpaceSaving(10, budget=dptop.Budget(0.5, 1e-9))
    small.save(other)
    return [*three, other], 1, "other: the sums of epsilon and delta must stay within budget"


@pytest.mark.parametrize(("kind", "spoil"), SPOILED.items(), ids=SPOILED)
def test_one_part_that_cannot_be_released_spends_none(
    dptop_command: Command, three: list[Path], kind: str, spoil: Spoil
) -> None:
    """All are checked before the first is marked: the others are as they were, and can be released without it."""
    (three[0].parent / "x").mkdir()
    arguments, code, pattern = spoil(three, three[0].with_name("other"))
    old = {path: path.read_bytes() for path in three[0].parent.iterdir() if path.is_file()}
    assert_refused(dptop_command("release", *arguments), code, pattern)
    assert {path: path.read_bytes() for path in three[0].parent.iterdir() if path.is_file()} == old
    if kind != "a second name":
        assert rows(dptop_command("release", *three[:2], *EXACT)) == {b"both": 100, b"tue": 51, b"mon": 50}


# --- places that cannot be marked ------------------------------------------------------------------------------------


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
