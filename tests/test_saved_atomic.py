"""A process that is killed while it saves leaves the old file or the new one, and nothing that others may read."""

from __future__ import annotations

import signal
import stat
import sys
from typing import TYPE_CHECKING

import pytest

import dptop
from dying_runs import Run, dying

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9, and modes of files")

PART = "part.dptop"
OF_THE_RUN = {"code-0", "err-0", "out-0", "steps-0"}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Make a folder with a summary of another type than those that are to take its place."""
    folder = tmp_path / "template"
    folder.mkdir()
    summary = dptop.SpaceSaving(10)
    summary.extend(["old"])
    summary.save(folder / PART)
    return folder


def is_new(run: Run, old: Path) -> bool:
    """Check that the file is whole, and return whether it is a new one."""
    found = dptop.load(run.folder / PART)
    assert isinstance(found, dptop.CountMin) or (run.folder / PART).read_bytes() == (old / PART).read_bytes()
    return isinstance(found, dptop.CountMin)


def test_a_killed_save_leaves_the_old_file_or_the_new_one(old: Path) -> None:
    """At each of its steps; what else is left is as private, and in nobody's way."""
    runs = dying("steps", old, "save", PART, "1")
    assert [run.codes for run in runs] == [[-signal.SIGKILL]] * (len(runs) - 1) + [[0]]
    for moment in ("within write", "before fsync file", "before replace", "after replace", "before fsync folder"):
        assert any(run.steps[-1].startswith(moment) for run in runs)
    for run in runs:
        assert is_new(run, old) == any(step.startswith("after replace") for step in run.steps)
        for file in run.folder.iterdir():
            if file.name not in OF_THE_RUN:
                assert file.name == PART or file.name.startswith(".dptop-")
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
        again = dptop.SpaceSaving(10)
        again.save(run.folder / PART)
        assert (run.folder / PART).read_bytes() == again.to_bytes()
    assert any(file.name.startswith(".dptop-") for run in runs for file in run.folder.iterdir())


def test_a_save_killed_at_any_moment_leaves_a_whole_file(old: Path) -> None:
    """Sixty processes that save four times, each killed at a random moment."""
    for run in dying("delays", old, "save", PART, "4"):
        is_new(run, old)


def test_a_save_in_place_is_seen_to_fail(old: Path) -> None:
    """The tests above can fail: writing over the old file leaves a part of the new one."""
    runs = dying("steps", old, "save", PART, "1", broken="save-in-place")
    [torn] = [run for run in runs if run.steps[-1] == "within write" and run.codes == [-signal.SIGKILL]]
    with pytest.raises(dptop.CorruptSummary):
        is_new(torn, old)
