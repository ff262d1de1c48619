"""A first save makes a file where there is none, and replaces none that comes meanwhile: that may be spent."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from commands import COPIES, DPTOP, HEADER, PATIENCE
from dptop import atomic
from dptop import summary as summaries
from dying_runs import dying
from part_makers import counted, releases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SAVE = "import sys, dptop; dptop.Summary.from_bytes(sys.stdin.buffer.read()).save(sys.argv[1])"


def released(path: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([DPTOP, "release", path], capture_output=True, timeout=PATIENCE, check=False)


def before_a_call(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], object]) -> list[bool]:
    """Let something happen before a function is called for the first time; return whether it did, once it has."""
    real, happened = getattr(module, name), list[bool]()

    def called(*arguments: Any, **options: Any) -> Any:
        if not happened:
            happened.append(True)
            act()
        return real(*arguments, **options)

    monkeypatch.setattr(module, name, called)
    return happened


@pytest.mark.parametrize(("module", "name"), [(atomic, "on_disk"), (os, "link")], ids=["written", "about to be named"])
@pytest.mark.parametrize("behind_a_link", [False, True])
def test_a_first_save_does_not_unmark_what_another_process_saved_and_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, behind_a_link: bool
) -> None:
    """Both found nothing there. The one that comes second looks again, and knows what was spent on its stream."""
    path = tmp_path / "part.dptop"
    if behind_a_link:
        path.symlink_to("elsewhere.dptop")
    summary = counted(a=COPIES)
    saved = summary.to_bytes()

    def elsewhere() -> None:
        subprocess.run([sys.executable, "-c", SAVE, path], input=saved, timeout=PATIENCE, check=True)
        assert released(path).stdout.startswith(HEADER)

    happened = before_a_call(monkeypatch, module, name, elsewhere)
    summary.update(b"a")
    summary.save(path)
    assert happened
    assert releases(path) == 1
    assert path.read_bytes() == summary.to_bytes()
    assert path.is_symlink() == behind_a_link
    again = released(path)
    assert (again.returncode, again.stdout) == (1, b"")
    assert b"one release per stream" in again.stderr
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(summary, epsilon=1.0, delta=1e-9)


def test_a_first_save_finds_a_corrupt_part_that_came_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked at as if it had been there from the start."""
    path, summary = tmp_path / "part.dptop", counted(a=COPIES)
    before_a_call(monkeypatch, os, "link", lambda: path.write_bytes(summary.to_bytes()[:-1]))
    with pytest.raises(dptop.SourceError, match="cannot be read is not replaced"):
        summary.save(path)
    assert path.read_bytes() == summary.to_bytes()[:-1]
    assert list(tmp_path.iterdir()) == [path]


def assert_alone(path: Path, summary: dptop.Summary) -> None:
    """Check that a summary is saved under one name, as only its owner can read it, with nothing beside it."""
    assert path.read_bytes() == summary.to_bytes()
    assert (path.stat().st_nlink, stat.S_IMODE(path.stat().st_mode)) == (1, 0o600)
    assert list(path.parent.iterdir()) == [path]


def test_a_part_has_one_name(tmp_path: Path) -> None:
    """After its first save and after others: a second name would not be marked, so such a part is not released."""
    path, summary = tmp_path / "part.dptop", counted(a=COPIES)
    for _ in range(3):
        summary.save(path)
        assert_alone(path, summary)
    assert released(path).returncode == 0


@pytest.mark.parametrize("code", sorted(atomic.NO_LINKS), ids=errno.errorcode.get)
def test_a_file_system_without_hard_links_is_good_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Such as FAT: there the file takes its name as any other does."""
    path, summary = tmp_path / "part.dptop", counted(a=COPIES)
    refuse_links(monkeypatch, code)
    summary.save(path)
    assert_alone(path, summary)


def test_a_name_that_cannot_be_given_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves nothing behind."""
    refuse_links(monkeypatch, errno.ENOSPC)
    with pytest.raises(dptop.SourceError, match=r"part: cannot be written \(No space left on device\)"):
        counted(a=COPIES).save(tmp_path / "part")
    assert list(tmp_path.iterdir()) == []


def refuse_links(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refused)


def test_a_killed_first_save_leaves_nothing_or_the_whole_file(tmp_path: Path) -> None:
    """At each of its steps; what else is left is as private, and in the way of no later save."""
    template = tmp_path / "template"
    template.mkdir()
    runs = dying("steps", template, "save", "part", "1")
    assert [run.codes for run in runs] == [[-signal.SIGKILL]] * (len(runs) - 1) + [[0]]
    for moment in ("within write", "before link", "after link", "before unlink", "after unlink"):
        assert any(run.steps[-1].startswith(moment) for run in runs)
    whole = [step.rstrip("0123456789abcdef") for step in runs[-1].steps]
    assert whole.index("after unlink .dptop-") < whole.index("before fsync folder")  # one name, once it is on the disk
    names = set()
    for run in runs:
        path = run.folder / "part"
        assert path.exists() == any(step.startswith("after link") for step in run.steps)
        if path.exists():
            assert isinstance(dptop.load(path), dptop.CountMin)
            names.add(path.stat().st_nlink)
        for file in run.folder.glob(".dptop-*"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        summary = counted(a=COPIES)
        summary.save(path)
        assert path.read_bytes() == summary.to_bytes()
        assert path.stat().st_nlink == 1
    assert names == {1, 2}  # killed between the two steps it has a second name, and is not released until it is gone


def test_a_link_that_is_moved_during_a_save_leads_it_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is locked and looked at is what is replaced; what the link leads to by then keeps its mark."""
    summary = counted(a=COPIES)
    link, one, other = (tmp_path / f"{name}.dptop" for name in ("link", "one", "other"))
    for path in (one, other):
        summary.save(path)
    link.symlink_to(one)

    def elsewhere() -> None:
        link.unlink()
        link.symlink_to(other)
        assert released(other).stdout.startswith(HEADER)

    happened = before_a_call(monkeypatch, summaries, "_unite_with", elsewhere)
    summary.save(link)
    assert happened
    assert b"one release per stream" in released(other).stderr


def test_a_part_that_was_moved_away_during_a_save_is_not_unmarked_in_its_new_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process saved there meanwhile, and that was released: the save looks again."""
    path = tmp_path / "part.dptop"
    summary = counted(a=COPIES)
    summary.save(path)
    saved = summary.to_bytes()

    def elsewhere() -> None:
        path.rename(tmp_path / "archived.dptop")
        subprocess.run([sys.executable, "-c", SAVE, path], input=saved, timeout=PATIENCE, check=True)
        assert released(path).stdout.startswith(HEADER)

    happened = before_a_call(monkeypatch, atomic, "on_disk", elsewhere)
    summary.save(path)
    assert happened
    assert b"one release per stream" in released(path).stderr
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(summary, epsilon=1.0, delta=1e-6)


def test_a_lock_that_cannot_be_had_now_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ENOLCK says that the service of locks is away; another process may hold one. ENOTSUP says that nobody can."""
    path = tmp_path / "part.dptop"
    summary = counted(a=COPIES)
    summary.save(path)
    monkeypatch.setattr("dptop.locks.PATIENCE", 0.1)

    def refuse(number: int) -> None:
        def flock(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", flock)

    refuse(errno.ENOLCK)
    with pytest.raises(dptop.SourceError, match="being released or saved"):
        summary.save(path)
    refuse(errno.ENOTSUP)
    summary.save(path)


@pytest.mark.parametrize("name", ["part.dptop/", "part.dptop/.", "nowhere/../part.dptop"])
def test_names_of_one_place_lead_to_it(tmp_path: Path, name: str) -> None:
    """However the system and Python take them, a save ends, and there is one part."""
    summary = counted(a=COPIES)
    summary.save(tmp_path / "part.dptop")
    summary.save(f"{tmp_path}/{name}")
    assert [path.name for path in tmp_path.iterdir()] == ["part.dptop"]


def test_the_owner_can_read_a_part_whatever_the_umask(tmp_path: Path) -> None:
    """And nobody else can."""
    old = os.umask(0o777)
    try:
        counted(a=COPIES).save(tmp_path / "part.dptop")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "part.dptop").stat().st_mode) == 0o600
