"""`dptop summarize`: the part is what was asked for, whole or not there."""

from __future__ import annotations

import gzip
import os
import re
import signal
from typing import TYPE_CHECKING

import pyarrow
import pytest

import dptop
from commands import EXACT, HEADER, LINES, PATIENCE, Outcome, assert_refused, ended, feed, rows, started
from containers import SECRET, parquet

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Command


FLIGHTS = b"tail,miles\n" + b"N1,1\n" * 400 + b"NA,2\n" * 300 + b",3\n" * 200 + b"N2,4\n" * 200
KINDS: dict[str, tuple[tuple[str, ...], str]] = {
    "space-saving": ((), "SpaceSaving(capacity=65536, tie='least-recent', labels='bytes')"),
    "partitions": (
        ("--partitions", "4", "--threads", "2", "--capacity", "100"),
        "SpaceSaving(capacity=100, tie='least-recent', partitions=4, labels='bytes')",
    ),
    "misra-gries": (("--summary", "misra-gries", "--capacity", "50"), "MisraGries(capacity=50, labels='bytes')"),
    "count-min": (
        ("--summary", "count-min", "--width", "1000"),
        "Tracked(CountMin(width=1000, depth=4), capacity=65536, candidates='space-saving', labels='bytes')",
    ),
    "count-sketch, estimates": (
        ("--summary", "count-sketch", "--candidates", "estimates", "--capacity", "100"),
        "Tracked(CountSketch(width=65536, depth=61), capacity=100, candidates='estimates', labels='bytes')",
    ),
}


@pytest.mark.parametrize(("arguments", "shown"), KINDS.values(), ids=KINDS)
def test_a_part_is_what_was_asked_for_and_is_released_once(
    dptop_command: Command, tmp_path: Path, arguments: tuple[str, ...], shown: str
) -> None:
    """Every summary of `top`, with its options and those of the input; the release finds what is frequent, once."""
    part = tmp_path / "part.dptop"
    source = ("-", "--format", "csv", "--column", "tail", "--null", "NA")
    written = dptop_command("summarize", *source, "-o", part, *arguments, stdin=FLIGHTS)
    assert (written.code, written.out) == (0, b"")
    assert re.fullmatch(
        rf"{re.escape(str(part))}: written\. A part is private data, raw like the stream.*\n", written.err
    )
    assert repr(dptop.load(part)) == shown
    assert part.stat().st_mode & 0o777 == 0o600
    found = rows(dptop_command("release", part, "--epsilon", 8))
    assert list(found) == [b"N1", b"N2"]
    assert all(abs(found[label] - count) < 60 for label, count in ((b"N1", 400), (b"N2", 200))), "once in 10^6 runs"
    assert_refused(dptop_command("release", part), 1, r"part\.dptop: one release per stream unless .*--budget")


def test_a_part_is_the_same_as_top(dptop_command: Command, tmp_path: Path) -> None:
    """Several files in formats and compressions of their own are one shard; the release has the options of `top`."""
    (tmp_path / "a.csv").write_bytes(b"x,y\n" + b"a,1\n" * 600)
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(b"y\tx\n" + b"1\tb\n" * 300 + b"1\tc\n" * 100))
    files = (tmp_path / "a.csv", tmp_path / "b.tsv.gz", "--column", "x")
    for release in (
        (),
        ("--top", 1),
        ("--share", "0.25"),
        ("--share", "0.25", "--length", 2000),
        ("--mechanism", "paper", "--share", "0.25", "--length", 1000),
        ("--json",),
        ("--table",),
    ):
        assert dptop_command("summarize", *files, "-o", tmp_path / "part").code == 0
        ours = dptop_command("release", tmp_path / "part", *EXACT, *release)
        whole = dptop_command("top", *files, *EXACT, *release)
        assert (ours.code, ours.out) == (0, whole.out)
        masked = [re.sub(r"the noisy length \d+", "the noisy length", outcome.err) for outcome in (ours, whole)]
        assert masked[0] == masked[1]  # the guarantee in words


def test_the_help_says_that_a_part_is_private(dptop_command: Command) -> None:
    """It says so where a part is made, and that a copy is not marked where one is released."""
    assert "A part is PRIVATE data, raw like the stream" in dptop_command("summarize", "--help").out.decode()
    assert "they are not marked" in dptop_command("release", "--help").out.decode()


def test_an_empty_part_is_a_part(dptop_command: Command, tmp_path: Path, three: list[Path]) -> None:
    """A shard without items is counted and released like others, alone or with them."""
    for name in ("alone", "with"):
        assert dptop_command("summarize", os.devnull, "-o", tmp_path / name).code == 0
    assert dptop_command("release", tmp_path / "alone").out == HEADER
    assert rows(dptop_command("release", tmp_path / "with", three[0], *EXACT)) == {b"both": 50, b"mon": 50}


BROKEN: dict[str, tuple[str, bytes, tuple[str, ...], int, str]] = {
    "truncated gzip": ("log", gzip.compress(LINES)[:-1], (), 1, "ends before its end mark"),
    "a ragged row": ("t.csv", b"x,y\n1,2\n1\n", ("--column", "x"), 1, "line 3"),
    "no such column": ("t.csv", b"x,y\n1,2\n", ("--column", "z"), 1, "no column"),
    "truncated Parquet": ("t", parquet(pyarrow.table({"x": [SECRET]}))[:-9], (), 1, "Write it again"),
    "a budget of one number": ("log", LINES, ("--budget", "1"), 2, "budget must be EPSILON,DELTA; got '1'"),
    "a budget of words": ("log", LINES, ("--budget", "a,b"), 2, "budget must be EPSILON,DELTA; got 'a,b'"),
    "a budget of three": ("log", LINES, ("--budget", "1,1,1"), 2, "EPSILON,DELTA; got '1,1,1'. Give two numbers"),
    "no delta": ("log", LINES, ("--budget", "1,0"), 2, "delta must be .*0 < delta < 1; got 0.0"),
    "NaN for epsilon": ("log", LINES, ("--budget", "nan,1e-9"), 2, "epsilon must be .*; got nan"),
    "no capacity": ("log", LINES, ("--capacity", "0"), 2, "capacity must be a whole number"),
    "no such summary": ("log", LINES, ("--summary", "bloom"), 2, "summary must be one of"),
    "another one's options": ("log", LINES, ("--width", "10"), 2, "width is for count-min and count-sketch"),
    "too many threads": ("log", LINES, ("--threads", "65"), 2, "threads must be"),
}


@pytest.mark.parametrize(("name", "content", "arguments", "code", "pattern"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("old", [None, b"the old part"])
def test_what_cannot_be_counted_writes_nothing(
    dptop_command: Command,
    tmp_path: Path,
    name: str,
    content: bytes,
    arguments: tuple[str, ...],
    code: int,
    pattern: str,
    old: bytes | None,
) -> None:
    """Neither a part nor a piece of one appears, an old one stays, and nothing else is left behind."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(content)
    (tmp_path / "in" / "good.csv").write_bytes(b"x\n1\n")
    part = tmp_path / "part"
    if old is not None:
        part.write_bytes(old)
    files = (tmp_path / "in" / "good.csv", tmp_path / "in" / name)
    assert_refused(dptop_command("summarize", *files, "-o", part, *arguments), code, pattern)
    assert {path.name for path in tmp_path.iterdir()} == {"in"} | ({"part"} if old is not None else set())
    assert old is None or part.read_bytes() == old


def test_a_place_for_the_part_is_checked_before_anything_is_read(dptop_command: Command, tmp_path: Path) -> None:
    """A folder that is missing, one in the place of the part, one of the inputs, and no place at all."""
    log = tmp_path / "log"
    log.write_bytes(LINES)
    for place in ("missing/part", "."):
        assert_refused(dptop_command("summarize", "missing", "-o", tmp_path / place), 1, "must be writable there")
    (tmp_path / "link").symlink_to(log)
    assert_refused(dptop_command("summarize", log, "-o", tmp_path / "link"), 2, "another file than those that are read")
    assert_refused(dptop_command("summarize", log, "-o", "-"), 2, "output must be a file")
    assert dptop_command("summarize", log).code == 2
    assert log.read_bytes() == LINES


def test_an_interrupted_summary_writes_nothing(tmp_path: Path) -> None:
    """Ctrl-C while standard input stays open exits 130, and neither a part nor a piece of one is there."""
    with started("summarize", "-", "-o", tmp_path / "part") as process:
        feed(process, b"label\n" * 2**20)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        assert ended(process) == Outcome(130, b"", "dptop: interrupted; nothing was written.\n")
    assert list(tmp_path.iterdir()) == []
