"""What the command line reads: every format and compression, odd labels, and nothing at all."""

from __future__ import annotations

import gzip
import json
import os
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow
import pytest

from commands import COPIES, EXACT, HEADER, LINES, assert_refused, rows
from containers import COMPRESSIONS, CONTAINERS, SECRET, parquet

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Command


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
