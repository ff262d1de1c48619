"""`dptop summarize` and `dptop release`: a part is whole or not there, and is marked as spent before noise is drawn.

Counts are compared with equality at epsilon 64, as in tests/test_cli.py, whose first test bounds the chance of noise
there. Processes that are killed, and processes that meet, are those of tests/dying.py.
"""

from __future__ import annotations

import csv
import errno
import gzip
import io
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest

import dptop
from containers import SECRET, parquet
from dptop import atomic
from dptop.cli import parts
from dptop.ledger import Ledger
from dptop.record import Record
from dptop.release import Request, release_as
from saved import Saved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Command, Drawn, Outcome

DPTOP = Path(sys.executable).with_name("dptop")
DYING = Path(__file__).with_name("dying.py")
EXACT = ("--epsilon", "64", "--delta", "1e-9")
HEADER = b"item,count,low,high\n"
COPIES = 50
PATIENCE = 60
LINES = f"{SECRET}\n".encode() * 20_000


def rows(outcome: Outcome) -> dict[str, int]:
    assert outcome.code == 0, outcome.err
    return {row["item"]: int(row["count"]) for row in csv.DictReader(io.StringIO(outcome.out.decode()))}


def assert_refused(outcome: Outcome, code: int, pattern: str) -> None:
    """Check that nothing came out and that one line on stderr says what is asked, without the secret."""
    assert (outcome.code, outcome.out) == (code, b""), outcome.err
    assert re.fullmatch(rf"dptop: .*{pattern}.*\n", outcome.err), outcome.err
    assert SECRET not in outcome.err


def releases(path: Path) -> int:
    """Return how many releases a part says were made of it. It is read by tests/saved.py, apart from our ledgers."""
    return len(Record.from_bytes(Saved.parse(path.read_bytes()).record).ledger.entries)


def counted(**labels: int) -> dptop.SpaceSaving:
    summary = dptop.SpaceSaving(100)
    summary.extend([label.encode() for label, count in labels.items() for _ in range(count)])
    return summary


@pytest.fixture
def dptop_command(dptop_command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Let each command know nothing of the ones before but what the parts say, as processes of their own would."""

    def run(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(Ledger, "_known", {})
        return dptop_command(*arguments, stdin=stdin)

    return run


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """Make three parts of one stream."""
    paths = [tmp_path / f"{name}.dptop" for name in ("mon", "tue", "wed")]
    for i, path in enumerate(paths):
        counted(both=COPIES, **{path.stem: COPIES + i}).save(path)
    return paths


# --- what summarize writes -------------------------------------------------------------------------------------------

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
    assert list(found) == ["N1", "N2"]
    assert all(abs(found[label] - count) < 60 for label, count in (("N1", 400), ("N2", 200))), "once in 10^6 runs"
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


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_release_goes_to_a_file(dptop_command: Command, three: list[Path], tmp_path: Path, suffix: str) -> None:
    """`-o` writes by its suffix, as `top` does."""
    output = tmp_path / f"out{suffix}"
    outcome = dptop_command("release", *three, *EXACT, "-o", output)
    assert (outcome.code, outcome.out) == (0, b"")
    assert output.stat().st_size > 0


def test_the_help_says_that_a_part_is_private(dptop_command: Command) -> None:
    """It says so where a part is made, and that a copy is not marked where one is released."""
    assert "A part is PRIVATE data, raw like the stream" in dptop_command("summarize", "--help").out.decode()
    assert "they are not marked" in dptop_command("release", "--help").out.decode()


def test_an_empty_part_is_a_part(dptop_command: Command, tmp_path: Path, three: list[Path]) -> None:
    """A shard without items is counted and released like others, alone or with them."""
    for name in ("alone", "with"):
        assert dptop_command("summarize", os.devnull, "-o", tmp_path / name).code == 0
    assert dptop_command("release", tmp_path / "alone").out == HEADER
    assert rows(dptop_command("release", tmp_path / "with", three[0], *EXACT)) == {"both": 50, "mon": 50}


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


# --- what release takes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partition", [(), ("--partition", "as-stored"), ("--partition", "label")])
@pytest.mark.parametrize("mechanism", [(), ("--mechanism", "central-counts")])
def test_several_parts_are_shards(
    dptop_command: Command, three: list[Path], partition: tuple[str, ...], mechanism: tuple[str, ...]
) -> None:
    """Counts of labels that parts share are added, all parts are marked, and none is released again."""
    outcome = dptop_command("release", *three, *EXACT, *partition, *mechanism)
    assert rows(outcome) == {"both": 150, "wed": 52, "tue": 51, "mon": 50}
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
    assert rows(dptop_command("release", tmp_path / "a", *half)) == {"a": 50}
    assert rows(dptop_command("release", tmp_path / "a", tmp_path / "b", *half)) == {"a": 50, "b": 50}
    assert_refused(dptop_command("release", tmp_path / "b", tmp_path / "a", *half), 1, "/a: the sums .* within budget")
    assert [releases(tmp_path / name) for name in ("a", "b")] == [2, 1]
    assert rows(dptop_command("release", tmp_path / "b", *half)) == {"b": 50}


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
        assert rows(dptop_command("release", *three[:2], *EXACT)) == {"both": 100, "tue": 51, "mon": 50}


def test_a_link_leads_to_the_part_that_is_marked(dptop_command: Command, three: list[Path], tmp_path: Path) -> None:
    """A symbolic link stays one, and the file behind it is spent."""
    link = tmp_path / "link"
    link.symlink_to(three[0])
    assert rows(dptop_command("release", link, *EXACT)) == {"both": 50, "mon": 50}
    assert link.is_symlink()
    assert releases(three[0]) == 1


def test_a_stream_longer_than_declared_closes_the_part(dptop_command: Command, tmp_path: Path) -> None:
    """That is on the disk before the error tells of the length, and holds whatever the budget."""
    part = tmp_path / "part"
    stdin = b"a\n" * 1234
    assert dptop_command("summarize", "-", "-o", part, "--budget", "64,1e-3", stdin=stdin).code == 0
    assert_refused(dptop_command("release", part, "--length", 1233), 2, "length must bound the length of the stream")
    record = Record.from_bytes(Saved.parse(part.read_bytes()).record).ledger
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


# --- the order of things, and processes that are killed --------------------------------------------------------------


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


class Run:
    """What one run of tests/dying.py left in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.codes = [int(path.read_text()) for path in sorted(folder.glob("code-*"))]
        self.outs = [path.read_bytes() for path in sorted(folder.glob("out-*"))]

    @property
    def steps(self) -> list[str]:
        """The steps of a process, to its end or to where it was killed."""
        return (self.folder / "steps-0").read_text().splitlines()


def dying(way: str, template: Path, *arguments: str, broken: str | None = None) -> list[Run]:
    """Run tests/dying.py on copies of a folder named `template` and return its runs in their order."""
    options = ["--break", broken] if broken else []
    command: list[str | Path] = [sys.executable, DYING, way, template.parent, *options, "--", *arguments]
    subprocess.run(command, check=True, timeout=4 * PATIENCE)
    folders = [path for path in template.parent.iterdir() if path.name.isdigit()]
    return [Run(folder) for folder in sorted(folders, key=lambda path: int(path.name))]


PARTS = ("1.dptop", "2.dptop")
RELEASE = ("release", *PARTS, *EXACT)


def made(folder: Path) -> Path:
    """Make a folder with two parts, and a file that is to become the first one."""
    folder.mkdir()
    for name in PARTS:
        counted(**{name[0]: COPIES}).save(folder / name)
    (folder / "log").write_bytes(b"new\n" * COPIES + b"other\n" * 20)
    return folder


@pytest.fixture
def template(tmp_path: Path) -> Path:
    return made(tmp_path / "template")


@pytest.fixture(scope="module")
def killed_releases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Run]]:
    """Release two parts, killed at each step."""
    template = made(tmp_path_factory.mktemp("killed") / "template")
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


@pytest.mark.parametrize("broken", ["mark-late", "mark-in-place"])
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


# --- processes that meet ---------------------------------------------------------------------------------------------


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
        assert_refused(dptop_command("release", *three), 1, r"tue\.dptop: another process is releasing this part")
        process.kill()
    assert rows(dptop_command("release", *three, *EXACT))["both"] == 150


HOLD = """
import sys
from dptop.cli.parts import locked_parts
with locked_parts(sys.argv[1:]):
    print("locked", flush=True)
    sys.stdin.read()
"""


# --- interruptions, pipes, disks -------------------------------------------------------------------------------------


def test_an_interrupted_summary_writes_nothing(tmp_path: Path) -> None:
    """Ctrl-C while standard input stays open exits 130, and neither a part nor a piece of one is there."""
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from dptop.cli import main; main()"
    command = [sys.executable, "-c", code, "summarize", "-", "-o", str(tmp_path / "part")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"label\n" * 2**20)  # more than a pipe holds: it is reading once this returns
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        assert process.stderr is not None
        assert (process.returncode, process.stderr.read()) == (130, b"dptop: interrupted; nothing was written.\n")
    assert list(tmp_path.iterdir()) == []


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


def test_python_reads_what_the_command_wrote_and_the_other_way_round(
    dptop_command: Command, three: list[Path], tmp_path: Path
) -> None:
    """A part is a saved summary: one that was released here is spent there, once it was saved."""
    assert rows(dptop_command("release", three[0], *EXACT)) == {"both": 50, "mon": 50}
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(dptop.load(three[0]), epsilon=1.0, delta=1e-9)
    summary = counted(a=COPIES)
    dptop.release(summary, epsilon=1.0, delta=1e-9)
    summary.save(tmp_path / "here")
    done = subprocess.run([DPTOP, "release", tmp_path / "here"], capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
