"""The command line: exit codes, what goes to which stream, and nothing released where it must not be.

At epsilon 64 a draw of noise is not 0 with chance below 1e-27, so counts are compared with equality: far below the
false-alarm rate of 1e-6 that `test_the_noise_at_epsilon_64_is_no_noise` checks. Where the process itself matters (exit
codes, pipes, signals, terminals, memory) a real one is started; else the command runs in this process.
"""

from __future__ import annotations

import csv
import fcntl
import gzip
import io
import json
import math
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager, suppress
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

from conftest import Outcome
from containers import COMPRESSIONS, CONTAINERS, SECRET, arrow_stream, parquet
from dptop.cli.counting import DEPTHS
from dptop.envelope import squares_failure
from dptop.intervals import quantile
from dptop.mechanism import SketchNoise
from dptop.privacy import PrivacyParameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Command

DPTOP = Path(sys.executable).with_name("dptop")
EXACT = ("--epsilon", "64", "--delta", "1e-9")
HEADER = b"item,count,low,high\n"
COPIES = 50
"""Repetitions of a label that is to pass the threshold, which is below 5 at epsilon 64."""


def rows(outcome: Outcome) -> dict[bytes, int]:
    """Return label -> count from CSV; Python reads it as Latin-1, which keeps every byte."""
    assert outcome.code == 0, outcome.err
    reader = csv.reader(io.StringIO(outcome.out.decode("latin-1"), newline=""), strict=True)
    assert next(reader) == ["item", "count", "low", "high"]
    table = list(reader)
    assert all(int(low) <= int(count) <= int(high) for _, count, low, high in table)
    return {item.encode("latin-1"): int(count) for item, count, _, _ in table}


def assert_refused(outcome: Outcome, code: int, *patterns: str) -> None:
    """Check that nothing was released and that one line on stderr says what is asked, without the secret."""
    assert outcome.out == b""
    assert outcome.code == code, outcome.err
    assert re.fullmatch(r"dptop: .*\n", outcome.err), outcome.err
    for pattern in patterns:
        assert re.search(pattern, outcome.err), outcome.err
    assert SECRET not in outcome.err


def test_the_noise_at_epsilon_64_is_no_noise() -> None:
    """The precondition of every equality of counts in this file: 100,000 draws are all 0, except with chance 1e-6."""
    assert quantile(Fraction(64), Decimal("1e-6") / 200_000) == 0


# --- wrong usage: exit 2, nothing read -------------------------------------------------------------------------------

WRONG = {
    "--epsilon": ["0", "-1", "nan", "inf", "abc", "True", "", "65"],
    "--delta": ["0", "-1", "nan", "inf", "2", "1", "abc", "True"],
    "--capacity": ["0", "-1", "1000000000000", "2.5", "abc", "True", "1e3"],
    "--top": ["0", "-1", "2.5", "abc"],
    "--share": ["0", "-1", "2", "nan", "abc"],
    "--length": ["0", "-1", "2.5", "abc", "9223372036854775808"],
    "--partitions": ["0", "-1", "2.5", "65537"],
    "--threads": ["0", "-1", "2.5", "65"],
}


@pytest.mark.parametrize(("option", "value"), [(option, value) for option, values in WRONG.items() for value in values])
def test_a_wrong_number_is_refused_before_anything_is_read(dptop_command: Command, option: str, value: str) -> None:
    """A parameter out of its range is told with its rule, its value and a remedy; the file need not even exist."""
    number = re.escape(value) if value != "" else "''"
    rule = rf"^dptop: {option[2:]} must (satisfy|be) .*; got '?-?{number.lstrip('-')}(\.0)?'?\. [A-Z0-9].*\."
    assert_refused(dptop_command("top", "missing", f"{option}={value}"), 2, rule)


WRONG_OF_SKETCHES = {
    "--width": ["0", "-1", "2.5", "abc", "True", "1e3", "2147483649"],
    "--depth": ["0", "-1", "2.5", "abc", "65537"],
    "--capacity": ["0", "2.5", "1000000000000"],
    "--candidates": ["", "wrong", "Estimates"],
    "--noise": ["", "none", "gauss"],
}


@pytest.mark.parametrize("summary", ["count-min", "count-sketch"])
@pytest.mark.parametrize(
    ("option", "value"), [(option, value) for option, values in WRONG_OF_SKETCHES.items() for value in values]
)
def test_a_wrong_shape_of_a_sketch_is_refused_before_anything_is_read(
    dptop_command: Command, summary: str, option: str, value: str
) -> None:
    """What shapes a sketch is told with its rule, its value and a remedy, like other numbers."""
    rule = rf"^dptop: {option[2:]} must be .*; got '?{re.escape(value)}'?\. [A-Z].*\."
    assert_refused(dptop_command("top", "missing", "--summary", summary, f"{option}={value}"), 2, rule)


CONTRADICTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "an unknown format": (("--format", "xml"), "format must be one of .*'jsonl'.*; got 'xml'"),
    "an unknown summary": (("--summary", "bloom"), "summary must be one of .*; got 'bloom'"),
    "an unknown mechanism": (("--mechanism", "magic"), "mechanism must be one of .*; got 'magic'"),
    "the paper's mechanism without a share": (("--mechanism", "paper"), "must have a share"),
    "the paper's mechanism for Misra-Gries": (
        ("--summary", "misra-gries", "--mechanism", "paper", "--share", "0.1"),
        "must be one for a MisraGries: 'misra-gries', 'misra-gries-published'; got 'paper'",
    ),
    "an envelope of SpaceSaving": (("--mechanism", "envelope"), "one for a SpaceSaving: .*; got 'envelope'"),
    "an envelope of Misra-Gries": (
        ("--summary", "misra-gries", "--mechanism", "envelope"),
        "one for a MisraGries: .*; got 'envelope'",
    ),
    "the noisy minimum of a sketch": (
        ("--summary", "count-min", "--mechanism", "stable-threshold"),
        "one for a Tracked: 'selected', 'envelope'; got 'stable-threshold'",
    ),
    "declared labels, of which there are none": (
        ("--summary", "count-sketch", "--mechanism", "public-labels"),
        "one for a Tracked: .*; got 'public-labels'",
    ),
    "a selection from estimates": (
        ("--summary", "count-min", "--candidates", "estimates", "--mechanism", "selected"),
        "must have candidates of SpaceSaving; got candidates='estimates'",
    ),
    "noise of cells without cells": (("--noise", "gaussian"), "noise is for sketches"),
    "noise of cells for Misra-Gries": (
        ("--summary", "misra-gries", "--noise", "laplace"),
        "noise is for sketches",
    ),
    "partitions of Misra-Gries": (
        ("--summary", "misra-gries", "--partitions", "2"),
        "partitions is for space-saving; got 2 for misra-gries. Leave",
    ),
    "partitions of a sketch": (
        ("--summary", "count-min", "--partitions", "2"),
        "for space-saving; got 2 for count-min",
    ),
    "cells of SpaceSaving": (("--width", "100"), "width is for count-min and count-sketch; got 100 for space-saving"),
    "rows of Misra-Gries": (("--summary", "misra-gries", "--depth", "5"), "depth is for .*; got 5 for misra-gries"),
    "candidates of SpaceSaving": (("--candidates", "estimates"), "candidates is for .* for space-saving. Leave"),
    "a median of an even number of rows": (("--summary", "count-sketch", "--depth", "4"), "depth must be odd.*; got 4"),
    "more cells than memory": (
        ("--summary", "count-min", "--width", "2147483647", "--depth", "65536"),
        r"must fit into memory twice.* got width 2147483647 and depth 65536.* Use a smaller",
    ),
    "an epsilon too small for so many rows": (
        ("--summary", "count-min", "--epsilon", "1e-6", "--width", "1", "--depth", "65536"),
        r"epsilon / depth must be at least 2\*\*-32",
    ),
    "Gaussian noise beyond its limits": (
        ("--summary", "count-min", "--noise", "gaussian", "--delta", "1e-301"),
        "delta must be .*1e-300 <= delta",
    ),
    "two forms of output": (("--json", "--table"), "exclude each other"),
    "a form and a file": (("--json", "-o", "x.csv"), "exclude each other"),
    "an output of no known form": (("-o", "x.txt"), r"output must end in .*\.csv.*; got '\.txt'\. Rename"),
    "stdin twice": (("-", "/dev/stdin"), "standard input can be read once; got it 2 times"),
}


@pytest.mark.parametrize(("arguments", "pattern"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_contradiction_is_refused_before_anything_is_read(
    dptop_command: Command, arguments: tuple[str, ...], pattern: str
) -> None:
    """Unknown names and options that exclude each other are wrong usage."""
    assert_refused(dptop_command("top", "missing", *arguments), 2, pattern)


@pytest.mark.parametrize("arguments", [("top",), ("top", "--nonsense", "x"), ("top", "x", "--top"), ("nonsense",)])
def test_a_command_line_that_cannot_be_parsed_is_wrong_usage(
    dptop_command: Command, arguments: tuple[str, ...]
) -> None:
    """A missing file, an unknown option, an option without its value and an unknown command exit 2, on stderr."""
    outcome = dptop_command(*arguments)
    assert (outcome.code, outcome.out) == (2, b"")
    assert "Error" in outcome.err


def test_help_and_version_are_results(dptop_command: Command) -> None:
    """What is asked for goes to stdout and exits 0; no command at all shows the help and exits 2."""
    assert dptop_command("--version").out.startswith(b"dptop ")
    helped = dptop_command("top", "--help")
    assert (helped.code, helped.err) == (0, "")
    assert b"--epsilon" in helped.out
    assert dptop_command().code == 2


def test_the_help_names_what_there_is_to_choose_from(dptop_command: Command) -> None:
    """Every summary, every mechanism that finds labels, both ways to track them and both kinds of noise."""
    words = re.sub(r"[^\w,.-]+", " ", dptop_command("top", "--help").out.decode())
    for choices in (
        "space-saving, misra-gries, count-min, count-sketch.",
        "stable-threshold, paper, misra-gries, misra-gries-published, selected, envelope",
        "space-saving or estimates.",
        "laplace or gaussian.",
    ):
        assert choices in words


def test_lines_have_no_columns(dptop_command: Command) -> None:
    """The message says how to name the format; who named lines used the command wrongly."""
    outcome = dptop_command("top", "-", "--column", "x", stdin=b"x,y\n")
    assert_refused(outcome, 1, "standard input: there is no column.* csv, tsv or jsonl")
    outcome = dptop_command("top", "-", "--column", "x", "--format", "lines", stdin=b"x,y\n")
    assert_refused(outcome, 2, "standard input: lines have no columns.* csv, tsv or jsonl")


def test_a_stream_longer_than_its_declared_length_is_refused(dptop_command: Command) -> None:
    """The promise covers streams within the bound, so a longer one is wrong usage; its length is not told."""
    lines = f"{SECRET}\n".encode() * 1234
    outcome = dptop_command("top", "-", "--share", "0.5", "--length", "1233", stdin=lines)
    assert_refused(outcome, 2, "length must bound the length of the stream; 1233 does not")
    assert "1234" not in outcome.err
    assert dptop_command("top", "-", "--share", "0.5", "--length", "1234", *EXACT, stdin=lines).code == 0


# --- broken input: exit 1, nothing released --------------------------------------------------------------------------

LINES = f"{SECRET}\n".encode() * 20_000
TABLE = b"x,y\n" + f"{SECRET},1\n".encode() * 20_000
COLUMNS = pyarrow.table({"x": [SECRET] * 20_000, "y": [1] * 20_000})
TWICE = pyarrow.table([[SECRET], [SECRET]], names=["x", "x"])

BROKEN: dict[str, tuple[str, bytes, tuple[str, ...], str]] = {
    # name -> file name, content, further arguments, what the message says of the place or of the columns there are
    "no such column in CSV": ("t.csv", TABLE, ("--column", "z"), r'no column "z"; choose one of "x", "y"'),
    "no such column in TSV": ("t.tsv", TABLE.replace(b",", b"\t"), ("--column", "z"), r'"x", "y"'),
    "no such column in JSON": ("t.jsonl", b'{"x":"%s","y":1}\n' % SECRET.encode(), ("--column", "z"), r'"x", "y"'),
    "no column chosen": ("t.csv", TABLE, (), r'2 columns and none was chosen; choose one of "x", "y"'),
    "a column twice in CSV": ("t.csv", b"x,y,x\n" + f"{SECRET},1,2\n".encode(), ("--column", "x"), '"x" 2 times'),
    "a column twice in JSON": ("t.jsonl", b'{"x":"%s","x":"b"}\n' % SECRET.encode(), ("--column", "x"), "line 1: "),
    "a ragged row": ("t.csv", TABLE + SECRET.encode() + b"\n", ("--column", "x"), "line 20002: .*mend the row"),
    "a ragged row with quotes": ("t.csv", TABLE + b'"%s"\n' % SECRET.encode(), ("--column", "x"), "line 20002: "),
    "a ragged row of TSV": ("t.tsv", b"x\ty\n%s\n" % SECRET.encode(), ("--column", "x"), "line 2: "),
    "an open quote": ("t.csv", TABLE + f'"{SECRET},1\n'.encode(), ("--column", "x"), "line 20002: .*quote.*close it"),
    "text after a quote": ("t.csv", TABLE + f'"{SECRET}"{SECRET},1\n'.encode(), ("--column", "x"), "line 20002: "),
    "a bad JSON line": ("t.jsonl", b'"a"\n{"x":"%s"\n' % SECRET.encode(), (), "line 2: "),
    "JSON that is not UTF-8": ("t.jsonl", b'"a"\n"%s\xff"\n' % SECRET.encode(), (), "line 2: "),
    "a UTF-16 text": ("log", SECRET.encode("utf-16"), (), "byte 0: .*UTF-16 mark.*iconv"),
    "a UTF-16 CSV": ("t.csv", SECRET.encode("utf-16"), ("--column", "x"), "byte 0: .*UTF-16 mark.*iconv"),
    "a ZIP archive": ("t.csv", b"PK\x03\x04" + TABLE, ("--column", "x"), "this is a ZIP archive.*Convert it"),
    "a database": ("log", b"SQLite format 3\0" + LINES, (), "this is an SQLite database.*Convert it"),
    "a text named Parquet": ("t.parquet", LINES, (), r"byte 0: a file named \.parquet .*Write it again"),
    "an empty file named Arrow": ("t.arrow", b"", (), r"byte 0: a file named \.arrow .*Write it again"),
    "a text called Parquet": ("log", LINES, ("--format", "parquet"), f"byte {len(LINES)}: .*Write it again"),
    "a text called Arrow": ("log", LINES, ("--format", "arrow"), "byte .*Write it again"),
    "two Arrow streams": ("t", arrow_stream(COLUMNS) * 2, ("--column", "x"), r"byte \d+: bytes follow the end mark"),
    "floats": ("t", parquet(pyarrow.table({"x": [1.5]})), (), "labels are integers, strings or bytes; .*Cast them"),
}  # fmt: skip
for name, write in CONTAINERS.items():
    whole = write(COLUMNS)
    chosen = ("--column", "x")
    BROKEN |= {
        f"no such column in {name}": ("t", whole, ("--column", "z"), r'no column "z"; choose one of "x", "y"'),
        f"no column chosen in {name}": ("t", whole, (), r'2 columns and none was chosen; choose one of "x", "y"'),
        f"a column twice in {name}": ("t", write(TWICE), chosen, r'the column "x" 2 times; rename all but one'),
        f"truncated {name}": ("t", whole[:-9], chosen, rf"byte {len(whole) - 9}: .*Write it again"),
        f"half a {name}": ("t", whole[: len(whole) // 2], chosen, rf"byte {len(whole) // 2}: .*Write it again"),
        f"garbage after {name}": ("t", whole + LINES, chosen, r"byte \d+: .*(Write it again|Cut them off)"),
    }
for extension, compress in COMPRESSIONS.items():
    whole = compress(LINES)
    BROKEN |= {
        f"truncated {extension}": ("log", whole[:-1], (), f"byte {len(whole) - 1}: .*ends before its end mark; get"),
        f"half a {extension}": ("log", whole[: len(whole) // 2], (), f"byte {len(whole) // 2}: .*ends before its end"),
        f"a truncated second member of {extension}": ("log", whole + whole[:-1], (), "ends before its end mark"),
        f"an empty file named {extension}": (f"log.{extension}", b"", (), "byte 0: .*ends before its end mark"),
        f"garbage after {extension}": ("log", whole + SECRET.encode(), (), f"byte {len(whole)}: .*followed by bytes"),
        f"a ragged row in {extension}": (
            "t.csv", compress(TABLE + b"%s\n" % SECRET.encode()), ("--column", "x"), "line 20002: ",
        ),
        f"truncated Parquet in {extension}": ("t", compress(parquet(COLUMNS)[:-9]), ("--column", "x"), "again"),
        f"truncated {extension} of Parquet": ("t", compress(parquet(COLUMNS))[:-1], ("--column", "x"), "end mark"),
    }  # fmt: skip


@pytest.mark.parametrize(("name", "content", "arguments", "place"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_releases_nothing(
    dptop_command: Command, tmp_path: Path, name: str, content: bytes, arguments: tuple[str, ...], place: str
) -> None:
    """The file, the place and a remedy are told, no label is quoted, and no part of the result gets out."""
    path = tmp_path / name
    path.write_bytes(content)
    assert_refused(dptop_command("top", path, *arguments), 1, f"^dptop: {re.escape(str(path))}: .*{place}")


@pytest.mark.parametrize("kind", ["an open quote", "truncated gz", "truncated parquet", "garbage after arrow-stream"])
def test_a_broken_standard_input_releases_nothing(dptop_command: Command, kind: str) -> None:
    """Standard input is told by that name, and is checked to its end like a file."""
    name, content, arguments, place = BROKEN[kind]
    format_ = ("--format", "csv") if name.endswith(".csv") else ()
    outcome = dptop_command("top", "-", *arguments, *format_, stdin=content)
    assert_refused(outcome, 1, f"^dptop: standard input: .*{place}")


def test_a_broken_second_file_releases_nothing(dptop_command: Command, tmp_path: Path) -> None:
    """What an earlier, whole file held is not released when a later one breaks, also into a file."""
    (tmp_path / "good.gz").write_bytes(gzip.compress(LINES))
    (tmp_path / "bad.gz").write_bytes(gzip.compress(LINES)[:-1])
    output = tmp_path / "out.csv"
    outcome = dptop_command("top", tmp_path / "good.gz", tmp_path / "bad.gz", "-o", output)
    assert_refused(outcome, 1, r"bad\.gz: byte \d+")
    assert not output.exists()


def test_a_second_file_that_is_missing_releases_nothing(dptop_command: Command, tmp_path: Path) -> None:
    """A file that is not there is an error even after others were read."""
    (tmp_path / "good").write_bytes(LINES)
    outcome = dptop_command("top", tmp_path / "good", tmp_path / "missing")
    assert_refused(outcome, 1, "missing: the file cannot be opened: No such file.*Check its path")


def test_a_folder_is_no_file(dptop_command: Command, tmp_path: Path) -> None:
    """A folder is told to be one."""
    assert_refused(dptop_command("top", tmp_path), 1, "this is a folder, .*Name the files in it")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_told(dptop_command: Command, tmp_path: Path) -> None:
    """A file that may not be read is an error that says so."""
    path = tmp_path / "log"
    path.write_bytes(LINES)
    path.chmod(0)
    assert_refused(dptop_command("top", path), 1, "cannot be opened: Permission denied")


def test_a_place_for_the_output_is_checked_before_anything_is_read(dptop_command: Command, tmp_path: Path) -> None:
    """A missing folder, a folder in the place of the file and a file in the place of a folder are found at once."""
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").touch()
    for place in ("missing/x.csv", "folder.csv", "file/x.csv"):
        outcome = dptop_command("top", "missing", "-o", tmp_path / place)
        assert_refused(outcome, 1, re.escape(f"{place}: a file must be writable there"))


def test_an_output_does_not_take_the_place_of_an_input(dptop_command: Command, tmp_path: Path) -> None:
    """The stream is not overwritten by its release, whatever path leads to it."""
    path, link = tmp_path / "t.csv", tmp_path / "link.csv"
    path.write_bytes(TABLE)
    link.symlink_to(path)
    for output in (path, link):
        outcome = dptop_command("top", path, "--column", "x", "-o", output)
        assert_refused(outcome, 2, "output must be another file than those that are read")
    assert path.read_bytes() == TABLE


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_found_before_anything_is_read(
    dptop_command: Command, tmp_path: Path
) -> None:
    """Permissions of the output are part of that check."""
    tmp_path.chmod(0o500)
    assert_refused(dptop_command("top", "missing", "-o", tmp_path / "x.csv"), 1, "must be writable")


# --- empty input: an empty release, exit 0 ---------------------------------------------------------------------------

NO_TEXT = pyarrow.array([], pyarrow.string())
EMPTY: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "an empty file": ("log", b"", ()),
    "blank lines": ("log", b"\n\r\n\n", ()),
    "only a byte order mark": ("log", b"\xef\xbb\xbf", ()),
    "an empty CSV": ("t.csv", b"", ("--column", "x")),
    "only a header": ("t.csv", b"x,y\n", ("--column", "x")),
    "only a header, without its end": ("t.tsv", b"x\ty", ("--column", "x")),
    "only a header, compressed": ("t.csv.gz", gzip.compress(b"x,y\n"), ("--column", "x")),
    "empty cells": ("t.csv", b"x,y\n,1\n,2\n", ("--column", "x")),
    "nulls by text": ("t.csv", b"x,y\nNA,1\n-,2\n", ("--column", "x", "--null", "NA", "--null", "-")),
    "JSON nulls": ("t.jsonl", b'{"x":null}\n{"x":null}\n', ("--column", "x")),
    "blank JSON lines": ("t.jsonl", b"\n \n", ()),
}
for name, write in CONTAINERS.items():
    EMPTY |= {
        f"no rows in {name}": ("t", write(pyarrow.table({"x": NO_TEXT})), ()),
        f"nulls in {name}": ("t", write(pyarrow.table({"x": pyarrow.nulls(5)})), ()),
        f"nulls of text in {name}": ("t", write(pyarrow.table({"x": pyarrow.nulls(5, pyarrow.string())})), ()),
    }


@pytest.mark.parametrize(("name", "content", "arguments"), EMPTY.values(), ids=EMPTY)
def test_an_empty_input_is_an_empty_release(
    dptop_command: Command, tmp_path: Path, name: str, content: bytes, arguments: tuple[str, ...]
) -> None:
    """Nothing to count is no error: the header of the CSV is all there is."""
    path = tmp_path / name
    path.write_bytes(content)
    outcome = dptop_command("top", path, *arguments)
    assert (outcome.code, outcome.out) == (0, HEADER)
    assert outcome.err.startswith("Protected: ")


def test_an_empty_device_is_an_empty_release(dptop_command: Command) -> None:
    """/dev/null is a file like others."""
    assert dptop_command("top", os.devnull).out == HEADER


# --- labels read back ------------------------------------------------------------------------------------------------

ODD_LABELS = [
    *(
        b"new\nline",
        b"return\r",
        b"return\r\nnewline",
        b"tab\t",
        b"nul\0",
        b'"',
        b'"quoted"',
        b'a""b',
        b",",
        b" space ",
    ),
    *("grüße, 世界 🎉".encode(), b"'", b"=1+1", b"\\", b"\xef\xbb\xbfmark", b"[bold]", b":smile:", b"x" * 4096),
]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_odd_labels_of_csv_read_back(dptop_command: Command, tmp_path: Path, form: str) -> None:
    """Labels with line ends, quotes, NUL and the like are equal after CSV or JSON out, each with its own count."""
    path = tmp_path / "t.csv"
    cells = [b'"' + label.replace(b'"', b'""') + b'",' for label in ODD_LABELS]
    path.write_bytes(b"x,y\r\n" + b"".join((cell + b"\r\n") * (COPIES + i) for i, cell in enumerate(cells)))
    expected = {label: COPIES + i for i, label in enumerate(ODD_LABELS)}
    outcome = dptop_command("top", path, "--column", "x", "--top", 100, *EXACT, *(["--json"] if form == "json" else []))
    if form == "csv":
        assert rows(outcome) == expected
    else:
        found = [json.loads(line) for line in outcome.out.decode().split("\n")[:-1]]
        assert {row["item"].encode(): row["count"] for row in found} == expected


def test_empty_strings_are_labels_where_a_format_has_them(dptop_command: Command) -> None:
    """JSON and Parquet tell an empty text from a missing one; the CSV that comes out does so by quotes."""
    json_lines = dptop_command("top", "-", "--format", "jsonl", *EXACT, stdin=b'""\n' * COPIES + b"null\n")
    table = dptop_command("top", "-", *EXACT, stdin=parquet(pyarrow.table({"x": [""] * COPIES + [None]})))
    assert json_lines.out == table.out
    assert json_lines.out.startswith(HEADER + b'"",50,')
    assert rows(table) == {b"": COPIES}


def test_invalid_utf_8_reads_back(dptop_command: Command) -> None:
    """Bytes that are no text are distinct labels: as they are in CSV, in base64 in JSON."""
    labels = [b"\xff", b"\xfe", b"\xef\xbf\xbd", b"caf\xe9", b"\xed\xa0\x80"]
    lines = b"".join((label + b"\n") * (COPIES + i) for i, label in enumerate(labels))
    expected = {label: COPIES + i for i, label in enumerate(labels)}
    assert rows(dptop_command("top", "-", *EXACT, stdin=lines)) == expected
    found = [json.loads(line) for line in dptop_command("top", "-", "--json", *EXACT, stdin=lines).out.splitlines()]
    shown = {row.get("item_base64", row.get("item")): row["count"] for row in found}
    assert shown == {"/w==": 50, "/g==": 51, "�": 52, "Y2Fm6Q==": 53, "7aCA": 54}


def test_labels_of_three_megabytes_are_counted_apart(dptop_command: Command) -> None:
    """Long labels that differ at their ends only are two; each is told by a prefix and the SHA-256 of the whole."""
    labels = [b"x" * 3_000_000 + end for end in (b"1", b"2")]
    lines = b"".join((label + b"\n") * (8 + i) for i, label in enumerate(labels))
    outcome = dptop_command("top", "-", "--json", *EXACT, stdin=lines)
    found = [json.loads(line) for line in outcome.out.splitlines()]
    assert {row["sha256"]: row["count"] for row in found} == {
        sha256(label).hexdigest(): 8 + i for i, label in enumerate(labels)
    }
    assert all(labels[0].startswith(row["prefix"].encode()) and "item" not in row for row in found)
    as_csv = rows(dptop_command("top", "-", *EXACT, stdin=lines))
    assert sorted(as_csv.values()) == [8, 9]
    assert all(len(label) < 5000 and b"[sha256:" in label for label in as_csv)


# --- formats ---------------------------------------------------------------------------------------------------------

LABELS = ["grün", "b", "7"]
STREAM = [label for i, label in enumerate(LABELS) for _ in range(COPIES + i)]
FORMATS: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "lines": ("log", "\n".join(STREAM).encode(), ("--format", "lines")),
    "csv": ("t.csv", ("größe,y\n" + "".join(f'"{label}",\n' for label in STREAM)).encode(), ("--format", "csv")),
    "tsv": ("t.tsv", ("größe\ty\n" + "".join(f"{label}\t\n" for label in STREAM)).encode(), ("--format", "tsv")),
    "jsonl": ("t.jsonl", "".join(f'{{"größe":"{label}","y":1}}\n' for label in STREAM).encode(), ("--format", "jsonl")),
    **{
        name: ("t", write(pyarrow.table({"größe": STREAM, "y": STREAM})), ("--format", name.partition("-")[0]))
        for name, write in CONTAINERS.items()
    },
}


@pytest.mark.parametrize("compression", ["", *COMPRESSIONS])
@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_in_every_compression(
    dptop_command: Command, tmp_path: Path, format_: str, compression: str
) -> None:
    """The same stream in any format gives the same result: from a file by content and name, and from standard input."""
    name, content, stated = FORMATS[format_]
    if compression:
        middle = len(content) // 2
        content = COMPRESSIONS[compression](content[:middle]) + COMPRESSIONS[compression](content[middle:])
    path = tmp_path / (f"{name}.{compression}" if compression else name)
    path.write_bytes(content)
    column = () if format_ == "lines" else ("--column", "größe")
    expected = {label.encode(): COPIES + i for i, label in enumerate(LABELS)}
    assert rows(dptop_command("top", path, *column, *EXACT)) == expected
    assert rows(dptop_command("top", "-", *column, *stated, *EXACT, stdin=content)) == expected


def test_integers_are_exact_over_the_range_of_64_bits(dptop_command: Command) -> None:
    """JSON integers from -2^63 to 2^64 - 1 come out as they went in, in CSV and JSON."""
    numbers = [2**64 - 1, 2**63, 2**63 - 1, 0, -1, -(2**63)]
    lines = b"".join(b"%d\n" % number * (COPIES + i) for i, number in enumerate(numbers))
    expected = {number: COPIES + i for i, number in enumerate(numbers)}
    outcome = dptop_command("top", "-", "--format", "jsonl", *EXACT, stdin=lines)
    assert {int(label): count for label, count in rows(outcome).items()} == expected
    outcome = dptop_command("top", "-", "--format", "jsonl", "--json", *EXACT, stdin=lines)
    assert {row["item"]: row["count"] for row in map(json.loads, outcome.out.splitlines())} == expected


def test_files_are_read_in_order_and_counted_together(dptop_command: Command, tmp_path: Path) -> None:
    """Several files and standard input are one stream, in formats and compressions of their own."""
    (tmp_path / "a.csv").write_bytes(b"x,y\n" + b"a,1\n" * COPIES)
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(b"y\tx\n" + b"1\ta\n" * COPIES))
    stdin = b"x\n" + b"b\n" * COPIES
    (tmp_path / "c.csv").write_bytes(stdin)
    outcome = dptop_command(
        "top", *(tmp_path / name for name in ("a.csv", "c.csv", "b.tsv.gz")), "--column", "x", *EXACT
    )
    assert rows(outcome) == {b"a": 2 * COPIES, b"b": COPIES}
    outcome = dptop_command("top", tmp_path / "a.csv", "-", "--format", "csv", "--column", "x", *EXACT, stdin=stdin)
    assert rows(outcome) == {b"a": COPIES, b"b": COPIES}


def test_kinds_of_two_files_must_agree(dptop_command: Command, tmp_path: Path) -> None:
    """Bytes of a log and text of a Parquet file are two kinds of label; the message says how to cast."""
    (tmp_path / "log").write_bytes(LINES)
    (tmp_path / "t.parquet").write_bytes(parquet(pyarrow.table({"x": [SECRET]})))
    assert_refused(
        dptop_command("top", tmp_path / "log", tmp_path / "t.parquet"), 1, r"t\.parquet: .*one kind of label.*Cast them"
    )


def test_nulls_are_many(dptop_command: Command) -> None:
    """`--null` may be given several times, and goes by the whole cell."""
    lines = b"a\nNA\n-\nNAN\n" * COPIES
    outcome = dptop_command("top", "-", "--null", "NA", "--null", "-", *EXACT, stdin=lines)
    assert rows(outcome) == {b"a": COPIES, b"NAN": COPIES}


# --- what is released ------------------------------------------------------------------------------------------------


def test_top_keeps_the_largest(dptop_command: Command) -> None:
    """`--top` rows come out at the most, the largest first, 20 by default."""
    lines = b"".join(b"label%d\n" % i * (COPIES + i) for i in range(30))
    assert list(rows(dptop_command("top", "-", "--top", 3, *EXACT, stdin=lines))) == [
        b"label29",
        b"label28",
        b"label27",
    ]
    assert len(rows(dptop_command("top", "-", *EXACT, stdin=lines))) == 20


def test_share_keeps_labels_by_their_part_of_the_stream(dptop_command: Command) -> None:
    """`--share` compares with the noisy length, or with a declared bound, which may be larger than the stream."""
    lines = b"a\n" * 600 + b"b\n" * 300 + b"c\n" * 100
    arguments = ("top", "-", "--share", "0.25", *EXACT)
    assert rows(dptop_command(*arguments, stdin=lines)) == {b"a": 600, b"b": 300}
    assert rows(dptop_command(*arguments, "--length", 1000, stdin=lines)) == {b"a": 600, b"b": 300}
    declared = dptop_command(*arguments, "--length", 2000, stdin=lines)
    assert rows(declared) == {b"a": 600}
    assert "2000" in declared.err


def test_the_paper_s_mechanism_releases_by_share(dptop_command: Command) -> None:
    """The threshold is that of the share, less what the noise may take away."""
    lines = b"a\n" * 600 + b"b\n" * 300 + b"c\n" * 100
    arguments = ("top", "-", "--mechanism", "paper", "--share", "0.25", "--length", 1000)
    outcome = dptop_command(*arguments, *EXACT, stdin=lines)
    assert rows(outcome) == {b"a": 600, b"b": 300}
    assert "N is the declared length 1000" in outcome.err
    refused = dptop_command(*arguments, "--partitions", 2, *EXACT, stdin=lines)
    assert (refused.code, refused.out) == (2, b"")
    assert "must have one table" in refused.err


FLIGHTS = b"year,carrier,tailnum,dest\n" + b"".join(
    b"2013,UA,%s,IAH\n" % tail for i in range(400) for tail in (b"N1", b"NA", b"", b"N2" if i % 2 else b"N%d" % (9 + i))
)
"""In the form of the demo's table: 400 of one aircraft, 200 of another, 200 that occur once, and two forms of nulls."""
CHOSEN = ("--column", "tailnum", "--null", "NA", "--epsilon", "8", "--delta", "1e-9")
KEPT = {b"N1": 400, b"N2": 200}
NEAR = 60
"""How far a noisy count may be from the true one. A label that occurs once passes with a chance of delta at most."""
BY_EVERY_SUMMARY: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # name -> arguments, what the guarantee in words says
    "space-saving": (("--summary", "space-saving"), ("Counted by: SpaceSaving, capacity 300",)),
    "misra-gries": (("--summary", "misra-gries"), ("Counted by: MisraGries, capacity 300",)),
    "misra-gries, published": (
        ("--summary", "misra-gries", "--mechanism", "misra-gries-published", "--length", "1000"),
        ("MisraGries, capacity 300", "at most 3, which high allows for", "at most 1000 items"),
    ),
    "count-min": (("--summary", "count-min"), ("CountMin, 4 rows of 65536 cells; labels by SpaceSaving",)),
    "count-sketch": (("--summary", "count-sketch"), ("CountSketch, 7 rows of 65536 cells; labels by SpaceSaving",)),
    "count-min, declared length": (("--summary", "count-min", "--length", "1000"), ("at most 1000 items",)),
    "count-min, envelope": (
        ("--summary", "count-min", "--mechanism", "envelope"),
        ("CountMin, 21 rows of 65536 cells; labels by SpaceSaving", "Assumed: rows hash labels", "the noisy length"),
    ),
    "count-sketch, envelope": (
        ("--summary", "count-sketch", "--mechanism", "envelope", "--width", "1000", "--length", "800"),
        ("CountSketch, 61 rows of 1000 cells; labels by SpaceSaving", "N is the declared length 800"),
    ),
    "count-min, estimates": (
        ("--summary", "count-min", "--candidates", "estimates", "--noise", "laplace"),
        ("CountMin, 21 rows of 65536 cells; the 300 labels with the largest estimates seen", "discrete Laplace"),
    ),
    "count-sketch, estimates": (
        ("--summary", "count-sketch", "--candidates", "estimates", "--mechanism", "envelope", "--depth", "31"),
        ("CountSketch, 31 rows of 65536 cells; the 300 labels with the largest estimates seen",),
    ),
    "count-min, Gaussian noise": (("--summary", "count-min", "--noise", "gaussian"), ("discrete Gaussian of scale",)),
}


@pytest.mark.parametrize(("arguments", "words"), BY_EVERY_SUMMARY.values(), ids=BY_EVERY_SUMMARY)
@pytest.mark.parametrize("share", [(), ("--share", "0.1")], ids=["all", "share"])
def test_every_summary_releases_what_is_frequent(
    dptop_command: Command, arguments: tuple[str, ...], words: tuple[str, ...], share: tuple[str, ...]
) -> None:
    """On a table like the demo's each finds the two frequent aircraft, about as often as they flew, and says how."""
    outcome = dptop_command(
        "top", "-", "--format", "csv", *CHOSEN, "--capacity", 300, *arguments, *share, stdin=FLIGHTS
    )
    found = rows(outcome)
    assert list(found) == list(KEPT)
    for label, count in KEPT.items():
        assert abs(found[label] - count) <= NEAR, "once in a million runs"
    for word in words:
        assert word in outcome.err


def test_an_envelope_that_cannot_be_met_says_why(dptop_command: Command) -> None:
    """It releases nothing, and what would help depends on what is missing: cells, or a delta for equal fingerprints.

    At delta = 1e-9 and a million items, (10^6)^2 / 2^65 = 2.7e-8 is more than there is; at 1e-6 it is not.
    """
    arguments = ("top", "-", "--summary", "count-min", "--candidates", "estimates", "--length", 10**6)
    for more, why in (
        ((), "64-bit fingerprints.* 1000000 items.* larger delta, or track labels by candidates='space-saving'"),
        (("--delta", "1e-6", "--width", 2), "21 rows of 2 cells cannot tell labels.* Give it more memory"),
    ):
        outcome = dptop_command(*arguments, *more, stdin=b"a\n" * 10_000)
        assert outcome.out == HEADER
        assert re.search(f"^Nothing released: .*{why}", outcome.err, re.MULTILINE), outcome.err
    assert list(rows(dptop_command(*arguments, "--delta", "1e-6", stdin=b"a\n" * 10_000))) == [b"a"]


@pytest.mark.parametrize(("candidates", "fewest"), [("space-saving", 47), ("estimates", 51)])
def test_the_rows_of_an_envelope_can_bound_the_squares(candidates: str, fewest: int) -> None:
    """At epsilon = 1, delta = 1e-9 and a noisy length, CountSketch needs as many rows as docs/privacy.md says for that.

    The bound may take 15/16 of what the errors may cost: half of delta is the length's, of the rest half the noise's,
    which is Gaussian from so many rows on; labels by estimates pay 1 + e^epsilon times.
    """
    assert DEPTHS["count-sketch"][1] >= fewest
    allowed = 15 / 16 * 2.5e-10 / (1 if candidates == "space-saving" else 1 + math.exp(0.98))
    assert squares_failure(fewest) <= allowed < squares_failure(fewest - 2)
    noise, left = SketchNoise.of(None, PrivacyParameters.of(0.98, 5e-10), fewest)
    assert (noise.kind, float(left)) == ("gaussian", 2.5e-10)


def test_misra_gries_has_no_upper_end_without_a_length(dptop_command: Command) -> None:
    """As the words say; a declared length gives one."""
    arguments = ("top", "-", "--summary", "misra-gries", *EXACT)
    outcome = dptop_command(*arguments, stdin=b"a\n" * COPIES)
    assert outcome.out == HEADER + b"a,50,50,%d\n" % (2**63 - 1)
    assert "high is 2^63 - 1" in outcome.err
    outcome = dptop_command(*arguments, "--length", 2**17, stdin=b"a\n" * COPIES)
    assert outcome.out == HEADER + b"a,50,50,51\n"


def test_noise_of_cells_stays_near() -> None:
    """The precondition of the test above: its noise exceeds `NEAR` in the cells of two labels with chance below 1e-6.

    Each part of epsilon = 8 is at least what is taken for it here: half for the cells where labels are selected, 98 %
    where a noisy length is taken; a quarter of delta.
    """
    for epsilon, kind, depth in (
        *((3.9, None, 4), (3.9, None, 7), (3.9, "gaussian", 4)),
        *((7.84, None, 21), (7.84, "laplace", 21), (7.84, None, 31), (7.84, None, 61)),
    ):
        noise, _ = SketchNoise.of(kind, PrivacyParameters.of(epsilon, 2.5e-10), depth)
        assert 2 * 2 * depth * noise.cells.tail(NEAR) < 1e-6
    assert quantile(Fraction(39, 10), Decimal("1e-7")) < NEAR / 4


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_partitions_and_threads_keep_exact_counts(dptop_command: Command, threads: int) -> None:
    """While no table is full, any number of partitions and threads counts the same."""
    lines = b"".join(b"label%d\n" % i * (COPIES + i) for i in range(15))
    outcome = dptop_command("top", "-", "--partitions", 4, "--threads", threads, *EXACT, stdin=lines)
    assert rows(outcome) == {b"label%d" % i: COPIES + i for i in range(15)}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".CSV"])
def test_an_output_file_takes_the_place_of_stdout(dptop_command: Command, tmp_path: Path, suffix: str) -> None:
    """`-o` writes by its suffix, over an old file, and leaves stdout empty; the words still go to stderr."""
    output = tmp_path / f"out{suffix}"
    output.write_bytes(b"old" * 1000)
    outcome = dptop_command("top", "-", "-o", output, *EXACT, stdin=b"a\n" * 60 + b"b\n" * 50)
    assert (outcome.code, outcome.out) == (0, b"")
    assert outcome.err.startswith("Protected: ")
    if suffix == ".parquet":
        found = pyarrow.parquet.read_table(output).to_pylist()
    elif suffix == ".jsonl":
        found = [json.loads(line) for line in output.read_text().splitlines()]
    else:
        found = list(csv.DictReader(io.StringIO(output.read_text())))
    as_read = [(row["item"].decode() if suffix == ".parquet" else row["item"], int(row["count"])) for row in found]
    assert as_read == [("a", 60), ("b", 50)]


def test_a_table_in_a_pipe_is_plain_text(dptop_command: Command) -> None:
    """`--table` aligns columns without colour, escapes what is not printable, and cuts the middle of long labels."""
    lines = b"\x1b[31mred\t\xff\n" * 1000 + b"y" * 5000 + b"\n" + (b"z" * 4000 + b"\n") * 50
    outcome = dptop_command("top", "-", "--table", *EXACT, stdin=lines)
    shown = outcome.out.decode()
    assert re.search(r"^ *item +count +low +high *$", shown, flags=re.MULTILINE)
    assert re.search(r"\\x1b\[31mred\\t\\xff +1,000 +1,000 +1,000", shown)
    assert "\x1b" not in shown
    assert "…" in shown
    assert len(shown) < 2000


def test_words_go_to_stderr(dptop_command: Command) -> None:
    """The guarantee in words is on stderr and data alone on stdout; no progress bar is drawn into a pipe."""
    outcome = dptop_command("top", "-", *EXACT, stdin=b"a\n" * COPIES)
    assert rows(outcome) == {b"a": COPIES}
    assert outcome.out.count(b"\n") == 2
    for word in (
        "Guarantee: (64, 1e-09)-differential privacy",
        "Counted by: SpaceSaving, capacity 65536",
        "Not covered",
    ):
        assert word in outcome.err
    assert not re.search(r"[\x1b\r━]", outcome.err)


# --- the process: pipes, signals, terminals, memory ------------------------------------------------------------------

COMMAND = [
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from dptop.cli import main; main()",
]
"""The command, with Ctrl-C as at a terminal: a test runner in the background may have it ignored for its children."""

PATIENCE = 30
"""Seconds after which a test gives up waiting; nothing here is timed."""


@contextmanager
def started(*arguments: object, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    process = subprocess.Popen([*COMMAND, "top", *map(str, arguments)], **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def feed(process: subprocess.Popen[bytes], content: bytes) -> None:
    """Write more than a pipe holds, so that the process is reading once this returns."""
    assert len(content) > 2**20
    assert process.stdin is not None
    process.stdin.write(content)
    process.stdin.flush()


def ended(process: subprocess.Popen[bytes]) -> Outcome:
    out, err = process.communicate(timeout=PATIENCE)
    return Outcome(process.returncode, out, err.decode())


def has_open(process: subprocess.Popen[bytes], path: Path) -> bool:
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(OSError):  # it may be closed in the meantime
            if descriptor.readlink() == path:
                return True
    return False


def wait_until(process: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
    """Wait until a process has come to a point, which it must before it ends."""
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def written(process: subprocess.Popen[bytes], path: Path) -> Iterator[io.FileIO]:
    """Open a named pipe to write as soon as the process has opened it to read, and fail if it ends before."""
    opened: list[int] = []

    def has_reader() -> bool:
        with suppress(OSError):
            opened.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return bool(opened)

    wait_until(process, has_reader)
    os.set_blocking(opened[0], True)
    with open(opened[0], "wb", buffering=0) as pipe:  # noqa: PTH123 - of a descriptor
        yield pipe


def opens_a_file(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a second thread is there: the one that opens a file and may have to wait for a writer."""
    return len(list(Path(f"/proc/{process.pid}/task").iterdir())) > 1


def assert_interrupted(outcome: Outcome) -> None:
    assert outcome.code == 130, outcome.err
    assert outcome.out == b""
    assert outcome.err == "dptop: interrupted; nothing was released.\n"


def test_the_installed_script_is_the_command() -> None:
    """The console script exists, reads a pipe, and exits 0, 1 and 2 as a process does."""
    for arguments, content, code in [
        (("top", "-", *EXACT), b"a\n" * COPIES, 0),
        (("top", "missing"), b"", 1),
        (("top", "-", "--top=0"), b"", 2),
    ]:
        done = subprocess.run([DPTOP, *arguments], input=content, capture_output=True, timeout=PATIENCE, check=False)
        assert done.returncode == code, done.stderr
        assert bool(done.stdout) == (code == 0)
        assert done.stderr


@pytest.mark.parametrize(
    ("format_", "arguments", "line"),
    [("lines", (), b"label\n"), ("csv", ("--column", "x"), b"x,y\n"), ("jsonl", (), b"1\n"), ("parquet", (), b"PAR1")],
)
def test_ctrl_c_while_a_pipe_stays_open_releases_nothing(format_: str, arguments: tuple[str, ...], line: bytes) -> None:
    """An interrupted read of standard input exits 130 at once, though the pipe's other end stays open."""
    with started("-", "--format", format_, *arguments) as process:
        feed(process, line * 2**20)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        assert_interrupted(ended(process))


def test_ctrl_c_while_compressed_data_comes_releases_nothing() -> None:
    """The same holds in the middle of a gzip member."""
    content = gzip.compress(os.urandom(2**21), compresslevel=0)[:-100]
    with started("-") as process:
        feed(process, content)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        assert_interrupted(ended(process))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc for the moment when the file is read")
def test_ctrl_c_while_files_are_read_releases_nothing(tmp_path: Path) -> None:
    """An interruption in the middle of large files exits 130, and no output file appears."""
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"label%d\n" % (i % 1000) for i in range(2**20)))
    output = tmp_path / "out.csv"
    with started(*[path] * 2000, "-o", output) as process:  # gigabytes: it cannot be done before the signal
        wait_until(process, lambda: has_open(process, path))
        process.send_signal(signal.SIGINT)
        assert_interrupted(ended(process))
    assert not output.exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks into /proc for the moment when it waits")
def test_ctrl_c_while_a_named_pipe_has_no_writer_releases_nothing(tmp_path: Path) -> None:
    """Waiting for somebody to open the other end of a named pipe can be interrupted too."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with started("-", path) as process:
        feed(process, b"label\n" * 2**18)
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        wait_until(process, lambda: opens_a_file(process))
        process.send_signal(signal.SIGINT)
        assert_interrupted(ended(process))


def test_a_named_pipe_is_read(tmp_path: Path) -> None:
    """A named pipe is a file whose writer may come later and write in pieces."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with started(path, *EXACT, stdin=subprocess.DEVNULL) as process:
        with written(process, path) as pipe:
            for _ in range(COPIES):
                pipe.write(b"la")
                pipe.write(b"bel\n")
        assert rows(ended(process)) == {b"label": COPIES}


@pytest.mark.parametrize("form", [(), ("--json",), ("--table",)])
def test_a_reader_who_left_is_no_error(form: tuple[str, ...]) -> None:
    """Where the other end of stdout is closed, the command is silent and exits 0."""
    with started("-", *form, *EXACT) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(b"label\n" * COPIES, timeout=PATIENCE)
        assert (process.returncode, err) == (0, b"")


def test_head_takes_a_line() -> None:
    """`dptop top | head -1` gives the header, and every part of the pipe succeeds."""
    script = f"yes label | head -1000 | '{DPTOP}' top - 2>/dev/null | head -1; echo ${{PIPESTATUS[@]: -2}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=PATIENCE, check=False)
    assert done.stdout == HEADER + b"0 0\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full")
def test_a_full_disk_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    """Where stdout cannot take the result, the exit code is 1 and the message says why."""
    with Path("/dev/full").open("wb") as full, started("-", stdout=full) as process:
        _, err = process.communicate(b"label\n" * COPIES, timeout=PATIENCE)
        assert process.returncode == 1
        assert err.startswith(b"dptop: standard output cannot be written (No space left on device).")
        assert err.count(b"\n") == 1


@pytest.mark.parametrize(("closed", "code"), [("0", 1), ("1", 1), ("2", 0)])
def test_a_closed_descriptor_is_no_traceback(closed: str, code: int) -> None:
    """A closed stdin or stdout is an error in words, found before anything is read; a closed stderr hides the words."""
    script = f"exec {closed}<&-; exec '{DPTOP}' top - "
    done = subprocess.run(["bash", "-c", script], input=b"label\n" * COPIES, capture_output=True, check=False)
    assert done.returncode == code
    assert done.stdout.startswith(HEADER) == (code == 0)
    assert done.stderr.startswith(b"dptop: standard ") == (code == 1)
    assert b"Traceback" not in done.stderr


def test_an_output_encoding_without_the_label_escapes_it() -> None:
    """A table on an ASCII terminal shows what ASCII cannot as an escape."""
    lines = "grün 世界\n".encode() * COPIES
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [DPTOP, "top", "-", "--table", *EXACT], input=lines, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert rb"gr\xfcn \u4e16\u754c" in done.stdout


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """Give the two ends of a pseudo-terminal of 100 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    try:
        yield ours, theirs
    finally:
        os.close(ours)


def drained(end: int) -> str:
    """Return what a terminal shows until its program has closed it."""
    shown = b""
    while select.select([end], [], [], PATIENCE)[0]:
        try:
            shown += os.read(end, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
    return shown.decode()


ON_TERMINAL = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")} | {"TERM": "xterm-256color"}


def test_a_terminal_on_stdout_gets_a_table(tmp_path: Path) -> None:
    """On a terminal the result is a table; stderr, which is a pipe here, has the words and no bar."""
    path = tmp_path / "log"
    path.write_bytes(b"label\n" * 1000)
    with terminal() as (ours, theirs), started(path, *EXACT, stdout=theirs, env=ON_TERMINAL) as process:
        os.close(theirs)
        shown = drained(ours)
        assert process.stderr is not None
        words = process.stderr.read().decode()
        assert process.wait(PATIENCE) == 0
    assert re.search(r"label\S* +(\x1b\[\S*)?1,000 +1,000 +1,000", shown), shown
    assert "item,count" not in shown
    assert words.startswith("Protected: ")
    assert not re.search(r"[\x1b\r━]", words)


def test_a_terminal_on_stderr_gets_the_progress_bar() -> None:
    """On a terminal stderr shows how much was read and then the words; stdout, which is a pipe here, has CSV alone."""
    with terminal() as (ours, theirs), started("-", *EXACT, stderr=theirs, env=ON_TERMINAL) as process:
        os.close(theirs)
        feed(process, b"label\n" * 2**18)
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        shown = drained(ours)
        assert process.stdout is not None
        assert process.stdout.read() == HEADER + b"label,262144,262144,262144\n"
        assert process.wait(PATIENCE) == 0
    assert "━" in shown
    assert "Protected: one item" in shown


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak memory from /proc")
def test_memory_stays_flat_however_long_the_stream() -> None:
    """From 200,000 to 2,000,000 lines with more labels than counters, the peak memory grows by less than 8 MB."""

    def peak(process: subprocess.Popen[bytes]) -> int:
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])  # type: ignore[index]  # the line is always there

    lines = b"".join(b"%d\n" % (i * i % 199_999) for i in range(200_000))
    with started("-", "--capacity", 20_000, "--top", 5) as process:
        feed(process, lines)
        early = peak(process)
        for _ in range(9):
            feed(process, lines)
        late = peak(process)
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert out.startswith(HEADER)
    assert late - early < 8_000
    assert late < 200_000


@pytest.mark.parametrize("arguments", ["--version", "--help", "top --help"])
def test_help_into_a_closed_pipe_is_silent(arguments: str) -> None:
    """What is said about the command may be cut by its reader like a result."""
    script = f"'{DPTOP}' {arguments} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr) == (b"0\n", b"")
