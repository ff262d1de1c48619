"""Commands that are killed: a part is the old or the new one, and marked on the disk before noise is drawn."""

from __future__ import annotations

import re
import signal
import struct
from typing import TYPE_CHECKING

import pytest

import dptop
from commands import COPIES, EXACT
from dptop.release import Request, release_as
from dying_runs import Run, dying
from part_makers import PARTS, counted, folder_of_parts, releases
from saved import Saved

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Drawn

RELEASE = ("release", *PARTS, *EXACT)


def test_noise_waits_until_the_charge_lasts(no_noise: Drawn) -> None:
    """What is to happen after the charge sees it in the ledger; if it fails, no noise is drawn and it stays spent."""
    summary = counted(a=COPIES)

    def failing() -> None:
        assert len(summary._ledger.entries) == 1
        assert not no_noise.counters
        raise TimeoutError

    request = Request(epsilon=1.0, delta=1e-9)
    with pytest.raises(TimeoutError):
        release_as(request, summary, on_charged=failing)
    assert not no_noise.counters
    with pytest.raises(dptop.BudgetExhausted):
        release_as(request, summary)


@pytest.fixture(scope="module")
def killed_releases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Run]]:
    """Release two parts, killed at each step."""
    template = folder_of_parts(tmp_path_factory.mktemp("killed") / "template")
    return template, dying("steps", template, *RELEASE)


def unmarked(run: Run, template: Path) -> list[str]:
    """Return the parts that are as they were; the others must be whole, with the counters they had, and spent once."""
    found = []
    for name in PARTS:
        data, old = (run.folder / name).read_bytes(), (template / name).read_bytes()
        if data == old:
            found.append(name)
            continue
        assert Saved.parse(data).counters == Saved.parse(old).counters
        assert releases(run.folder / name) == 1
    return found


def drew(run: Run) -> bool:
    return any(step.endswith("draw") for step in run.steps)


def test_parts_are_marked_on_the_disk_before_noise_is_drawn(killed_releases: tuple[Path, list[Run]]) -> None:
    """Lock; write all, sync all; for each: replace, sync its folder. Then noise for each; after it none is touched."""
    _, runs = killed_releases
    steps = [step.removeprefix("after ") for step in runs[-1].steps]
    steps = [re.sub(r" \.dptop-\w+", "", step) for step in steps if not step.startswith("before")]
    assert [step for step in steps if not step.startswith("open")] == [
        *("lock", "lock"),
        *("within write", "fsync file") * 2,
        *("fsync file", "replace", "fsync folder") * 2,
        *("draw", "draw"),
        *("unlock", "unlock"),
    ]


def test_a_release_that_is_killed_leaves_parts_whole_and_no_unmarked_release(
    killed_releases: tuple[Path, list[Run]],
) -> None:
    """Killed at each step: a part is the old or the spent one, and once noise is drawn, or out, both are spent."""
    template, runs = killed_releases
    assert [run.codes for run in runs] == [[-signal.SIGKILL]] * (len(runs) - 1) + [[0]]
    assert len(runs) > 30
    left = [len(unmarked(run, template)) for run in runs]
    for run, number in zip(runs, left, strict=True):
        assert not (number and (drew(run) or b"".join(run.outs))), run.steps[-1]
    assert left == sorted(left, reverse=True)
    assert set(left) == {0, 1, 2}  # the state between, one marked and one not, was seen too


@pytest.mark.parametrize("broken", ["mark-late", "save-in-place"])
def test_a_release_that_is_marked_late_or_in_place_is_seen(template: Path, broken: str) -> None:
    """The checks above fail on a command that marks after the noise, and on one that writes over the old part."""
    torn = late = 0
    for run in dying("steps", template, *RELEASE, broken=broken):
        try:
            late += bool(unmarked(run, template)) and drew(run)
        except (AssertionError, IndexError, ValueError, struct.error):
            torn += 1
    assert (late > 0, torn > 0) == ((True, False) if broken == "mark-late" else (False, True))


def test_a_release_that_is_killed_at_any_moment(template: Path) -> None:
    """The same at sixty random moments; what is out was marked."""
    for run in dying("delays", template, *RELEASE):
        left = unmarked(run, template)
        assert not (left and b"".join(run.outs))


def assert_old_or_new(run: Run, template: Path) -> bool:
    """Check that the first part is the old one or the whole new one, and return whether it is new."""
    data, old = (run.folder / "1.dptop").read_bytes(), (template / "1.dptop").read_bytes()
    if data != old:
        [table] = Saved.parse(data).counters
        assert [count for count, _ in table] == [COPIES, 20]
        assert releases(run.folder / "1.dptop") == 0
    return data != old


@pytest.mark.parametrize("way", ["steps", "delays"])
def test_a_summary_that_is_killed_leaves_the_old_part_or_the_new_one(template: Path, way: str) -> None:
    """At each step, and at sixty random moments."""
    runs = dying(way, template, "summarize", "log", "-o", "1.dptop")
    new = [assert_old_or_new(run, template) for run in runs]
    if way == "steps":
        assert new == sorted(new)
        assert set(new) == {False, True}
        assert len(runs) > 8
        assert [run.codes for run in runs] == [[-signal.SIGKILL]] * (len(runs) - 1) + [[0]]
