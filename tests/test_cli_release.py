"""`dptop release`: what is released of parts, once, and what becomes of it when something goes wrong."""

from __future__ import annotations

import re
import resource
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from commands import COPIES, DPTOP, EXACT, HEADER, PATIENCE, assert_refused, rows
from dptop.cli import parts
from part_makers import counted, ledger_of, releases

if TYPE_CHECKING:
    from commands import Command


@pytest.mark.parametrize("partition", [(), ("--partition", "as-stored"), ("--partition", "label")])
@pytest.mark.parametrize("mechanism", [(), ("--mechanism", "central-counts")])
def test_several_parts_are_shards(
    dptop_command: Command, three: list[Path], partition: tuple[str, ...], mechanism: tuple[str, ...]
) -> None:
    """Counts of labels that parts share are added, all parts are marked, and none is released again."""
    outcome = dptop_command("release", *three, *EXACT, *partition, *mechanism)
    assert rows(outcome) == {b"both": 150, b"wed": 52, b"tue": 51, b"mon": 50}
    assert "3 shards of SpaceSaving" in outcome.err
    assert f"Shards: {'by label' if partition[-1:] == ('label',) else 'as stored'}" in outcome.err
    assert [releases(part) for part in three] == [1, 1, 1]
    for part in three:
        assert_refused(dptop_command("release", part, *EXACT), 1, rf"{part.name}: one release per stream")


def test_a_budget_allows_more_than_one_release(dptop_command: Command, tmp_path: Path) -> None:
    """Releases of a part with a budget go on until it is spent, each marked, alone or together with others."""
    half = ("--epsilon", "32", "--delta", "1e-9")  # a draw that is not 0 has a chance below 1e-13
    for name in ("a", "b"):
        stdin = f"{name}\n".encode() * COPIES
        assert dptop_command("summarize", "-", "-o", tmp_path / name, "--budget", "64,2e-9", stdin=stdin).code == 0
    assert rows(dptop_command("release", tmp_path / "a", *half)) == {b"a": 50}
    assert rows(dptop_command("release", tmp_path / "a", tmp_path / "b", *half)) == {b"a": 50, b"b": 50}
    assert_refused(dptop_command("release", tmp_path / "b", tmp_path / "a", *half), 1, "/a: the sums .* within budget")
    assert [releases(tmp_path / name) for name in ("a", "b")] == [2, 1]
    assert rows(dptop_command("release", tmp_path / "b", *half)) == {b"b": 50}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_release_goes_to_a_file(dptop_command: Command, three: list[Path], tmp_path: Path, suffix: str) -> None:
    """`-o` writes by its suffix, as `top` does."""
    output = tmp_path / f"out{suffix}"
    outcome = dptop_command("release", *three, *EXACT, "-o", output)
    assert (outcome.code, outcome.out) == (0, b"")
    assert output.stat().st_size > 0


def test_a_link_leads_to_the_part_that_is_marked(dptop_command: Command, three: list[Path], tmp_path: Path) -> None:
    """A symbolic link stays one, and the file behind it is spent."""
    link = tmp_path / "link"
    link.symlink_to(three[0])
    assert rows(dptop_command("release", link, *EXACT)) == {b"both": 50, b"mon": 50}
    assert link.is_symlink()
    assert releases(three[0]) == 1


def test_a_stream_longer_than_declared_closes_the_part(dptop_command: Command, tmp_path: Path) -> None:
    """That is on the disk before the error tells of the length, and holds whatever the budget."""
    part = tmp_path / "part"
    stdin = b"a\n" * 1234
    assert dptop_command("summarize", "-", "-o", part, "--budget", "64,1e-3", stdin=stdin).code == 0
    assert_refused(dptop_command("release", part, "--length", 1233), 2, "length must bound the length of the stream")
    record = ledger_of(part)
    assert (len(record.entries), record.length, record.closed) == (1, 1233, True)
    for arguments in ((), ("--length", 1233), ("--length", 2000)):
        done = subprocess.run([DPTOP, "release", part, *map(str, arguments)], capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2000, reason="so many files cannot be open here")
def test_more_parts_than_files_may_be_open(tmp_path: Path) -> None:
    """Where the system lets it, the command raises the limit of open files: 400 parts under a limit of 256."""
    names = [tmp_path / f"{number}.dptop" for number in range(400)]
    for name in names:
        name.write_bytes(counted(a=COPIES).to_bytes())
    done = subprocess.run(
        ["bash", "-c", 'ulimit -Sn 256; exec "$@"', "bash", DPTOP, "release", *EXACT, *names],
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(HEADER + b"a,20000,")
    assert all(releases(name) == 1 for name in names)


def test_python_reads_what_the_command_wrote_and_the_other_way_round(
    dptop_command: Command, three: list[Path], tmp_path: Path
) -> None:
    """A part is a saved summary: one that was released here is spent there, once it was saved."""
    assert rows(dptop_command("release", three[0], *EXACT)) == {b"both": 50, b"mon": 50}
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(dptop.load(three[0]), epsilon=1.0, delta=1e-9)
    summary = counted(a=COPIES)
    dptop.release(summary, epsilon=1.0, delta=1e-9)
    summary.save(tmp_path / "here")
    done = subprocess.run([DPTOP, "release", tmp_path / "here"], capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (1, b"")


# --- interruptions, pipes, disks -------------------------------------------------------------------------------------


def test_an_interruption_says_what_may_be_spent(
    dptop_command: Command, three: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once parts may be marked, the message says so; nothing is out, and the parts are refused afterwards."""
    real = parts.mark

    def interrupted(found: Any) -> None:
        real(found)
        raise KeyboardInterrupt

    monkeypatch.setattr("dptop.cli.commands.mark", interrupted)
    outcome = dptop_command("release", *three)
    assert_refused(outcome, 130, "interrupted; nothing was released, but parts may be marked as spent")
    monkeypatch.setattr("dptop.cli.commands.mark", real)
    assert [releases(part) for part in three] == [1, 1, 1]
    assert_refused(dptop_command("release", *three), 1, "one release per stream")


def test_a_reader_who_left_is_no_error_and_no_second_release(three: list[Path]) -> None:
    """A closed pipe is silent and exits 0; the part is spent."""
    script = f"'{DPTOP}' release {three[0]} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=PATIENCE, check=False)
    assert done.stdout == b"0\n"
    assert b"Traceback" not in done.stderr
    assert releases(three[0]) == 1
    again = subprocess.run([DPTOP, "release", three[0]], capture_output=True, timeout=PATIENCE, check=False)
    assert (again.returncode, again.stdout) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full")
def test_a_result_that_cannot_be_written_says_that_the_part_is_spent(three: list[Path]) -> None:
    """A disk that is full only then costs the release, as nothing can be drawn again."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([DPTOP, "release", three[0]], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert re.fullmatch(rb"dptop: standard output cannot be written .* The release is spent\.\n", done.stderr)
    assert releases(three[0]) == 1


def test_a_closed_output_is_found_before_anything_is_spent(three: list[Path]) -> None:
    """As with `top`, a stdout that was closed is an error in words."""
    script = f"exec 1<&-; exec '{DPTOP}' release {three[0]}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"dptop: standard output is closed")
    assert releases(three[0]) == 0
