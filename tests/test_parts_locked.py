"""Processes that meet at a part: one releases it, and the others are refused."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from commands import COPIES, DPTOP, EXACT, HEADER, PATIENCE, assert_refused, rows
from dptop.cli import parts
from dying_runs import Run, dying
from part_makers import PARTS, counted, releases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commands import Command


def winners(run: Run) -> int:
    """Return how many of the processes of a round released something; the others must have said why they did not."""
    assert len(run.codes) == 6
    for number, code in enumerate(run.codes):
        err = (run.folder / f"err-{number}").read_text()
        assert code in (0, 1), err
        assert (run.folder / f"out-{number}").read_bytes().startswith(HEADER) == (code == 0)
        assert code == 0 or re.match(r"dptop: \d\.dptop: (another process|the part was|one release per)", err), err
    return run.codes.count(0)


@pytest.mark.parametrize("arguments", [("1.dptop",), PARTS])
def test_of_processes_that_release_a_part_at_once_one_succeeds(template: Path, arguments: tuple[str, ...]) -> None:
    """Six start together, five times: one releases, five are refused and say why."""
    assert [winners(run) for run in dying("together", template, "release", *arguments, *EXACT)] == [1] * 5


def test_processes_without_a_lock_are_seen(template: Path) -> None:
    """Where every process gets every lock, all six release."""
    runs = dying("together", template, "release", "1.dptop", *EXACT, broken="lock-nothing")
    assert [run.codes.count(0) for run in runs] == [6] * 5


def while_opened(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen right after the command has opened a part, before it locks it."""
    real = parts._opened

    def opened(name: str) -> tuple[int, Path]:
        found = real(name)
        act()
        return found

    monkeypatch.setattr(parts, "_opened", opened)


@pytest.mark.parametrize("looks", [True, False], ids=["as it is", "without the second look"])
def test_a_part_that_was_released_between_opening_and_locking_is_refused(
    dptop_command: Command, three: list[Path], monkeypatch: pytest.MonkeyPatch, looks: bool
) -> None:
    """The lock of the old file is free then and says nothing, as the path leads elsewhere; without that look, twice."""
    part = three[0]

    def elsewhere() -> None:
        subprocess.run([DPTOP, "release", part], capture_output=True, timeout=PATIENCE, check=True)

    while_opened(monkeypatch, elsewhere)
    if not looks:
        monkeypatch.setattr(parts, "_same_file", lambda *_: None)
    outcome = dptop_command("release", part, *EXACT)
    if looks:
        assert_refused(outcome, 1, r"mon\.dptop: the part was replaced or removed by another process")
    assert (outcome.code == 0) == (not looks)
    assert releases(part) == 1


def test_a_part_that_is_replaced_or_removed_meanwhile_is_refused(
    dptop_command: Command, three: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after it was locked: a new part in its place is not overwritten, and nothing is released."""
    fresh = counted(new=COPIES).to_bytes()
    real = parts.mark
    for replaced in (False, True):

        def acted(found: Any, replaced: bool = replaced) -> None:
            three[0].unlink()
            if replaced:
                three[0].write_bytes(fresh)
            real(found)

        three[0].write_bytes(counted(mon=COPIES).to_bytes())
        monkeypatch.setattr("dptop.cli.commands.mark", acted)
        assert_refused(dptop_command("release", *three), 1, "mon.dptop: the part was replaced or removed")
    assert three[0].read_bytes() == fresh
    assert [releases(part) for part in three] == [0, 0, 0]


def test_another_process_has_to_wait(dptop_command: Command, three: list[Path]) -> None:
    """While a part is locked it is refused by name, and it can be released when that process is gone."""
    holder: list[str | Path] = [sys.executable, "-c", HOLD, three[1]]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        assert_refused(
            dptop_command("release", *three), 1, r"tue\.dptop: another process is releasing or saving this part"
        )
        process.kill()
    assert rows(dptop_command("release", *three, *EXACT))[b"both"] == 150


HOLD = """
import sys
from dptop.cli.parts import locked_parts
with locked_parts(sys.argv[1:]):
    print("locked", flush=True)
    sys.stdin.read()
"""
