"""Input that is broken, and an output that has no place: exit 1, and nothing is released."""

from __future__ import annotations

import gzip
import os
import re
from typing import TYPE_CHECKING

import pyarrow
import pytest

from commands import LINES, assert_refused
from containers import COMPRESSIONS, CONTAINERS, SECRET, arrow_stream, parquet

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Command


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
