"""A part that the command released, and the process that goes on with the summary: one payment for one release."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from dptop.cli.parts import locked_parts, mark
from dptop.ledger import Spent
from dptop.locks import held
from dptop.privacy import PrivacyParameters

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ASK: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def counted(label: str = "a") -> dptop.SpaceSaving:
    summary = dptop.SpaceSaving(20)
    summary.update(label, 300)
    return summary


def released(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dptop.cli", "release", path], capture_output=True, text=True, check=False
    )


def test_a_checkpoint_does_not_unmark_a_part(tmp_path: Path) -> None:
    """What the command spent is spent for the process that saves the same summary again, and for what it saves."""
    path = tmp_path / "part.dptop"
    summary = counted()
    summary.save(path)
    assert released(path).returncode == 0
    summary.update("a")
    summary.save(path)
    again = released(path)
    assert again.returncode == 1
    assert "one release per stream" in again.stderr
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(summary, **ASK)


def test_another_summary_takes_the_place_of_a_part(tmp_path: Path) -> None:
    """What was spent goes with the stream, and not with the path."""
    path = tmp_path / "part.dptop"
    counted().save(path)
    assert released(path).returncode == 0
    counted("b").save(path)
    assert released(path).stdout.splitlines()[1].startswith("b,")


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def of_a_later_version(data: bytes) -> bytes:
    return data[:8] + b"\2\0" + data[10:]


@pytest.mark.parametrize("damage", [flipped, of_a_later_version, lambda data: data[:-1]], ids=["bit", "version", "cut"])
def test_a_saved_summary_that_cannot_be_read_is_not_replaced(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """It may be a part that was released, and nobody knows."""
    path = tmp_path / "part.dptop"
    summary = counted()
    summary.save(path)
    assert released(path).returncode == 0
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(dptop.CorruptSummary):
        dptop.load(path)
    before = path.read_bytes()
    with pytest.raises(dptop.SourceError, match="cannot be read is not replaced"):
        summary.save(path)
    assert path.read_bytes() == before


def test_the_beginning_of_a_saved_summary_is_not_replaced(tmp_path: Path) -> None:
    """What a file system kept of a part may be all but nothing; nothing at all, or another file, is in nobody's way."""
    path = tmp_path / "part.dptop"
    summary = counted()
    data = summary.to_bytes()
    for length in range(1, 9):
        path.write_bytes(data[:length])
        with pytest.raises(dptop.SourceError, match="cannot be read is not replaced"):
            summary.save(path)
        assert path.read_bytes() == data[:length]
        for other in (b"", data[: length - 1] + b"~", b"~" * length):
            path.write_bytes(other)
            summary.save(path)
            assert path.read_bytes() == data
    descriptor, name = tempfile.mkstemp(dir=tmp_path)
    os.close(descriptor)
    summary.save(name)
    assert dptop.load(name).to_bytes() == data


def test_what_cannot_be_opened_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is a file that the system does not hand over; one that is no saved summary is."""
    path = tmp_path / "part.dptop"
    path.write_bytes(b"a log, say")
    summary = counted()
    summary.save(path)
    with monkeypatch.context() as refusing:
        refusing.setattr("dptop.locks.opened", refused)
        with pytest.raises(dptop.SourceError, match=r"cannot be read \(Permission denied\)"):
            summary.save(path)
    assert released(path).returncode == 0


def refused(path: Path, access: int) -> int | None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path), access)


def test_a_save_waits_for_the_release_of_what_it_replaces(tmp_path: Path) -> None:
    """A new part is not overwritten by the mark on the old one."""
    path = tmp_path / "part.dptop"
    counted("old").save(path)
    fresh = counted("fresh")
    saving = threading.Thread(target=fresh.save, args=(path,))
    with locked_parts([str(path)]) as parts:
        saving.start()
        time.sleep(0.3)
        assert saving.is_alive()
        parts[0].summary._charge(Spent(PrivacyParameters.of(1.0, 1e-6), 1), None)
        mark(parts)
    saving.join(20)
    loaded = dptop.load(path)
    assert isinstance(loaded, dptop.SpaceSaving)
    assert loaded.private_counters() == [("fresh", 300)]


def test_a_save_that_waits_for_too_long_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves the file as it was."""
    monkeypatch.setattr("dptop.locks.PATIENCE", 0.1)
    path = tmp_path / "part.dptop"
    counted().save(path)
    before = path.read_bytes()
    with held(path), pytest.raises(dptop.SourceError, match="it is being released or saved, by another process"):
        counted("b").save(path)
    assert path.read_bytes() == before


def test_an_output_is_not_the_file_that_stdin_reads(tmp_path: Path) -> None:
    """Whatever name stdin goes by."""
    log = tmp_path / "log"
    log.write_bytes(b"a\n" * 100)
    commands: list[list[str | Path]] = [
        ["summarize", "-", "-o", log],
        ["top", "-", "--format", "lines", "-o", tmp_path / "log.csv"],
    ]
    for arguments in commands:
        (tmp_path / "log.csv").unlink(missing_ok=True)
        if arguments[0] == "top":
            (tmp_path / "log.csv").hardlink_to(log)
        with log.open("rb") as stdin:
            done = subprocess.run(
                [sys.executable, "-m", "dptop.cli", *arguments],
                stdin=stdin,
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 2
        assert "output must be another file" in done.stderr
        assert log.read_bytes() == b"a\n" * 100


def test_a_pipe_is_written_and_not_opened_to_be_looked_at(tmp_path: Path) -> None:
    """A save waits for the reader of a named pipe, as any writer does, and loses nothing."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    summary = counted()
    saving = threading.Thread(target=summary.save, args=(pipe,), daemon=True)
    saving.start()
    time.sleep(0.3)
    assert saving.is_alive()
    assert pipe.read_bytes() == summary.to_bytes()
    saving.join(20)


def test_what_was_spent_is_read_also_where_nothing_can_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without locks a save does not wait, but it takes over what the old file says."""
    path = tmp_path / "part.dptop"
    summary = counted()
    summary.save(path)
    assert released(path).returncode == 0

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "no locks")

    monkeypatch.setattr("dptop.locks.fcntl.flock", no_locks)
    summary.save(path)
    monkeypatch.undo()
    assert released(path).returncode == 1
