"""A process that is killed while it saves leaves the old file or the new one, and nothing that others may read."""

from __future__ import annotations

import random
import stat
import subprocess
import sys
import time
from typing import IO, TYPE_CHECKING

import pytest

import dptop

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9, and modes of files")

SAVING = """
import os, pathlib, sys, time
import dptop

path, moment, broken = sys.argv[1:]

def stop(*_):
    print("there", flush=True)
    time.sleep(600)

def stopping(function):
    def stopped(*arguments):
        stop()
        return function(*arguments)
    return stopped

if broken:  # a save as it must not be
    def save(self, path):
        data = self.to_bytes()
        with pathlib.Path(path).open("wb") as file:
            file.write(data[: len(data) // 2])
            file.flush()
            os.fsync(file.fileno())
            file.write(data[len(data) // 2 :])
    dptop.Summary.save = save

summaries = []
for number in range(2):
    sketch = dptop.CountMin(20_000, 5)
    sketch.extend(range(number, 1000))
    summaries.append(sketch)

if moment == "sync":  # the bytes are written
    os.fsync = stopping(os.fsync)
elif moment == "replace":  # and synced
    pathlib.Path.replace = stopping(pathlib.Path.replace)
elif moment == "after":  # the name leads to them
    replace = pathlib.Path.replace
    pathlib.Path.replace = lambda self, target: (replace(self, target), stop())
    summaries.reverse()

if moment == "any":
    print("there", flush=True)
    while True:
        for summary in summaries:
            summary.save(path)
summaries[0].save(path)
"""


def saving(path: Path, moment: str, *, broken: bool = False) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Start a process that saves, and wait until it has come to a moment."""
    command = [sys.executable, "-c", SAVING, str(path), moment, "broken" if broken else ""]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"there\n"
    return process, process.stdout


def killed(path: Path, moment: str, *, broken: bool = False, after: float = 0.0) -> None:
    process, out = saving(path, moment, broken=broken)
    time.sleep(after)
    process.kill()
    process.wait()
    out.close()


def old_file(path: Path) -> bytes:
    summary = dptop.SpaceSaving(10)
    summary.extend(["old"])
    summary.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("moment", ["sync", "replace", "after"])
def test_a_killed_save_leaves_the_old_file_or_the_new_one(moment: str, tmp_path: Path) -> None:
    """At each of its steps; what else is left is as private."""
    path = tmp_path / "part.dptop"
    old = old_file(path)
    killed(path, moment)
    if moment == "after":
        assert isinstance(dptop.load(path), dptop.CountMin)
    else:
        assert path.read_bytes() == old
    for file in tmp_path.iterdir():
        assert file == path or file.name.startswith(".dptop-")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = dptop.SpaceSaving(10)
    again.save(path)  # nothing that was left is in the way
    assert path.read_bytes() == again.to_bytes()


def test_a_save_killed_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    """Twelve processes that save all the time, each killed within a tenth of a second."""
    path = tmp_path / "part.dptop"
    generator = random.Random(7)
    old_file(path)
    for _ in range(12):
        killed(path, "any", after=generator.random() / 10)
        assert isinstance(dptop.load(path), (dptop.CountMin, dptop.SpaceSaving))


def test_a_save_in_place_is_seen_to_fail(tmp_path: Path) -> None:
    """The test above can fail: writing over the old file leaves a part of the new one."""
    path = tmp_path / "part.dptop"
    old_file(path)
    killed(path, "sync", broken=True)
    with pytest.raises(dptop.CorruptSummary):
        dptop.load(path)
