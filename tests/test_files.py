"""Files become labels: every format, every compression, every odd label, counted exactly (raw counters, no noise)."""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

import dptop
from containers import COMPRESSIONS, CONTAINERS, SECRET, arrow_file, arrow_stream, parquet

if TYPE_CHECKING:
    from pathlib import Path


def counted(path: Path | str, **options: Any) -> dict[Any, int]:
    """Return the exact counters of what a file holds."""
    summary = dptop.SpaceSaving(capacity=10_000)
    summary.extend(dptop.read_labels(path, **options))
    return dict(summary.private_counters())


TEXTS: dict[str, tuple[str, bytes, dict[str, Any], dict[Any, int]]] = {
    # name -> file name, content, options, exact counts
    "lines": ("log", b"a\nb\na\n", {}, {b"a": 2, b"b": 1}),
    "lines without a last line end": ("log", b"a\nb\na", {}, {b"a": 2, b"b": 1}),
    "blank lines": ("log", b"\n\na\n\r\n\na\n", {}, {b"a": 2}),
    "CRLF lines": ("log", b"a\r\nb\r\na\r\n", {}, {b"a": 2, b"b": 1}),
    "a byte order mark": ("log", b"\xef\xbb\xbfa\na\n", {}, {b"a": 2}),
    "spaces are text": ("log", b" a\na \na\n \n", {}, {b" a": 1, b"a ": 1, b"a": 1, b" ": 1}),
    "invalid UTF-8": ("log", b"\xff\n\xfe\n\xff\n\xef\xbf\xbd\n", {}, {b"\xff": 2, b"\xfe": 1, b"\xef\xbf\xbd": 1}),
    "tab, NUL and quotes": ("log", b'a\tb\n\x00\n"\n"\n', {}, {b"a\tb": 1, b"\x00": 1, b'"': 2}),
    "nulls of lines": ("log", b"a\nNA\n-\na\n", {"nulls": ["NA", "-"]}, {b"a": 2}),
    "numbers are text": ("log", b"1\n01\n1\n1.0\n", {}, {b"1": 2, b"01": 1, b"1.0": 1}),
    "one column": ("t.csv", b"x\na\nb\na\n", {}, {b"a": 2, b"b": 1}),
    "empty cells": ("t.csv", b"x,y\n,1\na,2\n,3\n", {"column": "x"}, {b"a": 1}),
    "nulls of CSV": ("t.csv", b"x,y\nNA,1\na,2\nn/a,3\n", {"column": "x", "nulls": ["NA", "n/a"]}, {b"a": 1}),
    "quoted cells": ("t.csv", b'x,y\n"a,""b""\n",1\n"a,""b""\n",2\n', {"column": "x"}, {b'a,"b"\n': 2}),
    "a quoted header": ("t.csv", b'\xef\xbb\xbf"x ""1""\n",y\na,1\n', {"column": 'x "1"\n'}, {b"a": 1}),
    "a column that is not ASCII": ("t.csv", "größe,y\na,1\n".encode(), {"column": "größe"}, {b"a": 1}),
    "a column that is not UTF-8": ("t.csv", b"gr\xf6,y\na,1\n", {"column": os.fsdecode(b"gr\xf6")}, {b"a": 1}),
    "CRLF and a last row without an end": ("t.csv", b"x,y\r\na,1\r\na,2", {"column": "x"}, {b"a": 2}),
    "TSV has no quotes": ("t.tsv", b'x\ty\n"a\t1\n"a\t2\n', {"column": "x"}, {b'"a': 2}),
    "CSV by option": ("log", b"x,y\na,1\n", {"format": "csv", "column": "x"}, {b"a": 1}),
    "lines by option": ("t.csv", b"x,y\na,1\n", {"format": "lines"}, {b"x,y": 1, b"a,1": 1}),
    "JSON text": (
        "t.jsonl",
        b'{"x":"a"}\n\n{"x":"\\u00e9\\n","y":[1,{"x":2}]}\n{"x":null}\n{}\n',
        {"column": "x"},
        {"a": 1, "é\n": 1},
    ),
    "JSON text that looks like a number": ("t.ndjson", b'"1"\n"1"\n""\n', {}, {"1": 2, "": 1}),
    "JSON integers": (
        "t.jsonl",
        b'{"x":18446744073709551615}\n{"x":9223372036854775808}\n{"x":-9223372036854775808}\n{"x":-1}\n{"x":-1}\n',
        {"column": "x"},
        {2**64 - 1: 1, 2**63: 1, -(2**63): 1, -1: 2},
    ),
    "JSON nulls by text": ("t.jsonl", b'"NA"\n"a"\n', {"nulls": ["NA"]}, {"a": 1}),
    "a text that starts like Parquet": ("log", b"PAR1S\n", {}, {b"PAR1S": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options", "expected"), TEXTS.values(), ids=TEXTS)
def test_text_is_counted_as_it_stands(
    tmp_path: Path, name: str, content: bytes, options: dict[str, Any], expected: dict[Any, int]
) -> None:
    """Lines and cells are labels in bytes, JSON values labels of their own type; nulls and blanks are no labels."""
    path = tmp_path / name
    path.write_bytes(content)
    assert counted(path, **options) == expected


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("extension", COMPRESSIONS)
def test_compressed_text_is_unpacked_whole(tmp_path: Path, extension: str, members: int) -> None:
    """Every member of a compressed file is read, and the format is that of the name without the compression."""
    compress = COMPRESSIONS[extension]
    path = tmp_path / f"t.csv.{extension}"
    content = b"x,y\n" + b"".join(b"label%d,1\n" % (i % 7) for i in range(7 * members * 1000))
    part = -(-len(content) // members)
    path.write_bytes(b"".join(compress(content[i : i + part]) for i in range(0, len(content), part)))
    assert counted(path, column="x") == {b"label%d" % i: 1000 * members for i in range(7)}


@pytest.mark.parametrize("extension", COMPRESSIONS)
def test_compression_goes_by_content(tmp_path: Path, extension: str) -> None:
    """A compressed file without a telling name is unpacked, and a plain one with such a name is read as it is."""
    (tmp_path / "log").write_bytes(COMPRESSIONS[extension](b"a\na\n"))
    (tmp_path / f"log.{extension}").write_bytes(b"a\na\n")
    assert counted(tmp_path / "log") == counted(tmp_path / f"log.{extension}") == {b"a": 2}


ARROW_COLUMNS: dict[str, tuple[Any, dict[Any, int]]] = {
    "text": (pyarrow.array(["a", None, "", "a"]), {"a": 2, "": 1}),
    "large text": (pyarrow.array(["a", None, "a"], pyarrow.large_string()), {"a": 2}),
    "text views": (pyarrow.array(["a", None, "a"], pyarrow.string_view()), {"a": 2}),
    "bytes": (pyarrow.array([b"\xff", None, b"\xff"], pyarrow.binary()), {b"\xff": 2}),
    "integers": (pyarrow.array([-1, None, -1, 7], pyarrow.int16()), {-1: 2, 7: 1}),
    "unsigned integers": (pyarrow.array([2**64 - 1, 1], pyarrow.uint64()), {2**64 - 1: 1, 1: 1}),
    "a dictionary with nulls": (pyarrow.array(["a", None, "a"]).dictionary_encode(), {"a": 2}),
    "a dictionary with a value twice": (
        pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1, None, 1]), pyarrow.array(["a", "a"])),
        {"a": 3},
    ),
    "nulls only": (pyarrow.nulls(3), {}),
    "nulls of text": (pyarrow.nulls(3, pyarrow.string()), {}),
    "no rows": (pyarrow.array([], pyarrow.string()), {}),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(("column", "expected"), ARROW_COLUMNS.values(), ids=ARROW_COLUMNS)
def test_columns_of_parquet_and_arrow_are_counted(
    tmp_path: Path, container: str, column: Any, expected: dict[Any, int]
) -> None:
    """A column is found by its name whatever stands beside it, and counts by value with nulls skipped."""
    if container == "parquet" and pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()  # Parquet refuses a dictionary with a value twice
    other = pyarrow.array([{"x": 1.5}] * len(column), pyarrow.struct({"x": pyarrow.float64()}))
    table = pyarrow.table({"größe.x": column, "größe": other, "y": other})
    path = tmp_path / "data"  # no name to go by
    path.write_bytes(CONTAINERS[container](table))
    assert counted(path, column="größe.x") == expected


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    "column_type",
    [
        pyarrow.string(),
        pyarrow.large_string(),
        pyarrow.string_view(),
        pyarrow.binary(),
        pyarrow.large_binary(),
        pyarrow.binary_view(),
        pyarrow.binary(2),
        pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
    ],
    ids=str,
)
def test_nulls_by_text_work_in_every_text_column(tmp_path: Path, container: str, column_type: Any) -> None:
    """A text that stands for a missing value is skipped whatever the column's type, also beside one of no text."""
    column = pyarrow.array(["ab", "NA", None, "ab"])
    column = column.dictionary_encode() if pyarrow.types.is_dictionary(column_type) else column.cast(column_type)
    path = tmp_path / "data"
    path.write_bytes(CONTAINERS[container](pyarrow.table({"x": column})))
    assert [count for _, count in counted(path, nulls=["NA", os.fsdecode(b"\xff")]).items()] == [2]


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_table_of_many_batches_is_read_whole(tmp_path: Path, container: str) -> None:
    """Row groups, record batches and compressed buffers change nothing about the counts."""
    table = pyarrow.table({"x": [f"label{i % 11}" for i in range(1100)]})
    options: dict[str, Any] = (
        {"row_group_size": 100, "compression": "zstd"}
        if container == "parquet"
        else {"options": pyarrow.ipc.IpcWriteOptions(compression="zstd")}
    )
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(CONTAINERS[container](table, **options)))
    assert counted(path) == {f"label{i}": 100 for i in range(11)}


def broken_utf8() -> Any:
    offsets = pyarrow.py_buffer(b"".join(i.to_bytes(4, "little") for i in (0, 2, 4)))
    return pyarrow.StringArray.from_buffers(2, offsets, pyarrow.py_buffer(b"\xff\xfe\xff\xfe"))


def broken_offsets() -> bytes:
    """Return an Arrow file whose text lies outside its buffer."""
    good = arrow_file(pyarrow.table({"x": ["eight by", "eight by"]}))
    offsets, wrong = (b"".join(i.to_bytes(4, "little") for i in ends) for ends in ((0, 8, 16), (0, 10**9, 2 * 10**9)))
    assert good.count(offsets) == 1
    return good.replace(offsets, wrong)


def broken_codes() -> bytes:
    """Return an Arrow file whose dictionary has no value for a code."""
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 10**6], pyarrow.int32()), ["a", "b"], safe=False)
    return arrow_file(pyarrow.table({"x": column}))


@pytest.mark.parametrize(
    "content",
    [
        *(
            pytest.param(write(pyarrow.table({"x": broken_utf8()})), id=f"UTF-8 in {k}")
            for k, write in CONTAINERS.items()
        ),
        pytest.param(broken_offsets(), id="offsets"),
        pytest.param(broken_codes(), id="codes"),
    ],
)
def test_a_column_that_breaks_its_type_is_refused(tmp_path: Path, content: bytes) -> None:
    """Text that is not UTF-8, offsets out of range and codes without a value are errors that name rows, not crashes."""
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises(dptop.SourceError, match=r"data: rows 1 to 2: .* Write the file again"):
        counted(path)


def test_a_changed_byte_of_a_parquet_page_is_found(tmp_path: Path) -> None:
    """Where a Parquet file has page checksums they are verified."""
    content = parquet(
        pyarrow.table({"x": ["label"] * 9 + [SECRET]}),
        write_page_checksum=True,
        use_dictionary=False,
        compression="none",
        write_statistics=False,
        store_schema=False,
    )
    assert content.count(SECRET.encode()) == 1
    path = tmp_path / "data"
    path.write_bytes(content.replace(SECRET.encode(), SECRET.upper().encode()))
    with pytest.raises(dptop.SourceError, match="data: byte ") as raised:
        counted(path)
    assert SECRET.upper() not in str(raised.value)


UNSUPPORTED: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "floats of Parquet": ("t", parquet(pyarrow.table({"x": [1.5]})), {}),
    "booleans of Parquet": ("t", parquet(pyarrow.table({"x": [True]})), {}),
    "dates of Parquet": ("t", parquet(pyarrow.table({"x": pyarrow.array([1], pyarrow.date32())})), {}),
    "times of Parquet": ("t", parquet(pyarrow.table({"x": pyarrow.array([1], pyarrow.timestamp("us", "UTC"))})), {}),
    "decimals of Parquet": ("t", parquet(pyarrow.table({"x": pyarrow.array([1], pyarrow.decimal128(5))})), {}),
    "lists of Parquet": ("t", parquet(pyarrow.table({"x": [[SECRET]]})), {}),
    "structures of Parquet": ("t", parquet(pyarrow.table({"x": [{SECRET: SECRET}]})), {}),
    "structures of Arrow": ("t", arrow_stream(pyarrow.table({"x": [{SECRET: SECRET}]})), {}),
    "floats of JSON": ("t.jsonl", b'{"x":1.5}\n', {"column": "x"}),
    "booleans of JSON": ("t.jsonl", b'{"x":true}\n', {"column": "x"}),
    "lists of JSON": ("t.jsonl", json.dumps({"x": [SECRET]}).encode(), {"column": "x"}),
    "objects of JSON": ("t.jsonl", json.dumps({"x": {"y": SECRET}}).encode(), {"column": "x"}),
    "integers of JSON beyond 64 bits": ("t.jsonl", b"18446744073709551616\n", {}),
    "a second kind in JSON": ("t.jsonl", b'"%s"\n1\n' % SECRET.encode(), {}),
}


@pytest.mark.parametrize(("name", "content", "options"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_values_that_are_no_labels_are_refused(
    tmp_path: Path, name: str, content: bytes, options: dict[str, Any]
) -> None:
    """Floats, booleans, dates, nested values and a second kind say what labels are, not what the value was."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(dptop.UnsupportedLabel, match=rf"{name}: .*([Cc]ast|string)") as raised:
        counted(path, **options)
    assert SECRET not in str(raised.value)


def test_a_second_kind_in_another_file_is_refused(tmp_path: Path) -> None:
    """A summary of text takes no integers from a later file, and is then released no more."""
    (tmp_path / "a.jsonl").write_text('"1"\n')
    (tmp_path / "b.jsonl").write_text('"2"\n1\n')
    summary = dptop.SpaceSaving(capacity=10)
    summary.extend(dptop.read_labels(tmp_path / "a.jsonl"))
    with pytest.raises(dptop.UnsupportedLabel):
        summary.extend(dptop.read_labels(tmp_path / "b.jsonl"))


def test_a_file_that_breaks_off_leaves_a_summary_that_is_not_released(tmp_path: Path) -> None:
    """What was read before an error is no result."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"x,y\n" + b"label,1\n" * 400_000 + b"label\n")
    summary = dptop.SpaceSaving(capacity=10)
    with pytest.raises(dptop.SourceError, match=r"t\.csv: line 400002: "):
        summary.extend(dptop.read_labels(path, column="x"))
    with pytest.raises(dptop.SourceError, match="was cut short"):
        dptop.release(summary, epsilon=1.0, delta=1e-9)


@pytest.mark.parametrize("container", ["lines", *CONTAINERS])
def test_the_position_of_a_file_grows_to_its_size(tmp_path: Path, container: str) -> None:
    """The bytes read, which a progress bar shows, never fall, and end near the size of the file."""
    path = tmp_path / "data"
    labels = [f"label{i}" for i in range(200_000)]
    table = pyarrow.table({"x": labels})
    path.write_bytes(
        "\n".join(labels).encode() if container == "lines" else CONTAINERS[container](table.slice(0, 1000))
    )
    file = dptop.read_labels(path)
    positions = [file.position, *(file.position for _ in file), file.position]
    assert positions == sorted(positions)
    assert positions[0] == 0
    assert 0.9 * path.stat().st_size <= positions[-1] <= path.stat().st_size


def test_nothing_is_opened_before_it_is_read(tmp_path: Path) -> None:
    """Naming a missing file is no error; reading it is."""
    file = dptop.read_labels(tmp_path / "missing")
    with pytest.raises(dptop.SourceError, match="missing: the file cannot be opened"):
        next(iter(file))


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"column": 3}, "column must be a str.*; got 3"),
        ({"column": b"x"}, "column must be a str.*; got a value of type bytes"),
        ({"column": "\ud800"}, "column must be a str that UTF-8 can hold"),
        ({"nulls": "NA"}, "nulls must be several str, as in a list; got 'NA'"),
        ({"nulls": b"NA"}, "nulls must be several str, as in a list; got a value of type bytes"),
        ({"nulls": None}, "nulls must be several str, as in a list; got None"),
        ({"nulls": ["NA", 1]}, "each of nulls must be a str.*; got 1"),
        ({"nulls": [None]}, "each of nulls must be a str.*; got None"),
        ({"nulls": ["\ud800"]}, "each of nulls must be a str that UTF-8 can hold"),
    ],
)
def test_a_column_or_nulls_that_are_no_text_are_refused(tmp_path: Path, options: dict[str, Any], rule: str) -> None:
    """They are told at the call, before anything is opened; a single text is not taken for its characters."""
    with pytest.raises(dptop.InvalidParameter, match=rf"{rule}.*\. [A-Z]"):
        dptop.read_labels(tmp_path / "missing", **options)


def test_nulls_may_come_from_an_iterator(tmp_path: Path) -> None:
    """They are taken once, at the call, whatever they come from."""
    path = tmp_path / "log"
    path.write_bytes(b"a\nNA\n-\n")
    file = dptop.read_labels(path, nulls=(null for null in ("NA", "-")))
    assert [counted(path, nulls={"NA": 1, "-": 1}), sum(map(len, file))] == [{b"a": 1}, 1]


HEADER = ["x", "x", "größe", "it's", 'a "quoted" name', "a\tb\x7f\x85\n", "n" * 40, "n" * 41, "é" * 60]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("more", [0, 20, 30, 300])
@pytest.mark.parametrize("column", [None, "x", "z", "", "z" * 40, "z" * 41, "a\tb", "gr\udcf6\udce4n", "\x85\u2028"])
def test_columns_are_told_in_the_same_words_in_every_table(
    tmp_path: Path, container: str, more: int, column: str | None
) -> None:
    """Parquet and Arrow say of a column that is not there, or there twice, exactly what CSV says of the same header."""
    names = HEADER + [f"c{i}" for i in range(more)]
    arrays = [pyarrow.array(["label"])] * len(names)
    path = tmp_path / "t"
    messages = []
    for format_ in ("csv", container.partition("-")[0]):
        if format_ == "csv":
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([names, ["label"] * len(names)])
        else:
            path.write_bytes(CONTAINERS[container](pyarrow.Table.from_arrays(arrays, names)))
        with pytest.raises(dptop.SourceError) as raised:
            counted(path, column=column, format=format_)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert "t: the header has " in messages[0]


def test_a_format_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    """An unknown format is a wrong parameter, told with those there are."""
    with pytest.raises(dptop.InvalidParameter, match=r"format must be one of .*'jsonl'.*; got 'xml'"):
        dptop.read_labels(tmp_path / "missing", format="xml")


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    """Text, compressed text and Parquet come through a pipe that has no size and cannot be rewound."""
    table = parquet(pyarrow.table({"x": ["a"] * 3}))
    for content, expected in [(b"a\n" * 3, b"a"), (gzip.compress(b"a\n" * 3), b"a"), (table, "a")]:
        read_end, write_end = os.pipe()
        os.write(write_end, content)
        os.close(write_end)
        assert counted(f"/dev/fd/{read_end}") == {expected: 3}
        os.close(read_end)


def test_a_full_stream_and_a_summary_agree_with_a_dictionary(tmp_path: Path) -> None:
    """Ten thousand lines of many lengths count as Python counts them."""
    lines = [f"{i * i % 997}" * (i % 13) for i in range(10_000)]
    path = tmp_path / "log"
    path.write_text("\n".join(lines))
    assert counted(path) == Counter(line.encode() for line in lines if line)


def test_a_parquet_file_that_lost_rows_is_refused(tmp_path: Path) -> None:
    """A flipped bit in the footer may hide a row group from pyarrow, which tells no error."""
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"x": range(300)}), path, row_group_size=100)
    whole = path.read_bytes()
    told = 0
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)
        try:
            rows = sum(counted(path).values())
        except dptop.DptopError as error:
            told += "of 300 rows could be read" in str(error)
        else:
            assert rows == 300, f"a bit of byte {at}"
    assert told > 0


@pytest.mark.parametrize("make", [arrow_file, arrow_stream])
def test_a_name_of_a_column_that_is_not_utf8_is_corrupt(tmp_path: Path, make: Any) -> None:
    """It is no failure of Python's, and quotes nothing."""
    path = tmp_path / "t.arrow"
    path.write_bytes(make(pyarrow.table({"cXY": ["a"]})).replace(b"cXY", b"c\xe4Y"))
    with pytest.raises(dptop.SourceError, match="cut or corrupt"):
        counted(path)


AFTER_A_LINE = """
import sys
import dptop
sys.stdin{part}.readline()
summary = dptop.SpaceSaving(10_000)
summary.extend(dptop.read_labels("-"))
print(len(summary.private_counters()))
"""


@pytest.mark.parametrize("seekable", [True, False])
def test_nothing_that_python_took_of_standard_input_is_missing(tmp_path: Path, seekable: bool) -> None:
    """Where a line was read before, all others are counted, or the input is refused."""
    lines = b"".join(b"line %d\n" % number for number in range(5_000))
    (path := tmp_path / "lines").write_bytes(lines)

    def run(part: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-c", AFTER_A_LINE.format(part=part)]
        if seekable:
            with path.open("rb") as file:
                return subprocess.run(command, stdin=file, capture_output=True, check=False)
        return subprocess.run(command, input=lines, capture_output=True, check=False)

    assert run(".buffer").stdout == b"4999\n"
    assert run(".buffer.raw").stdout == b"4999\n"
    refused = run("")
    assert refused.returncode == 1
    assert b"what sys.stdin has read of it would be missing" in refused.stderr


INSTEAD = {
    "a larger buffer": ("sys.stdin = open(0, buffering=4 << 20); sys.stdin.buffer.readline()", False),
    "a decompressor": (
        "import gzip, io; sys.stdin = io.TextIOWrapper(gzip.GzipFile(fileobj=sys.stdin.buffer))",
        False,
    ),
    "closed": ("sys.stdin.buffer.readline(); sys.stdin.close()", False),
    "detached": ("sys.stdin.detach().readline()", False),
    "nothing": ("sys.stdin.buffer.readline(); sys.stdin = None", True),
    "no descriptor": ("import io; sys.stdin.buffer.readline(); sys.stdin = io.StringIO()", True),
}


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/0", "/dev//stdin", "/proc/thread-self/fd/0"])
@pytest.mark.parametrize("instead", INSTEAD)
def test_standard_input_that_was_replaced_is_whole_or_refused(instead: str, name: str) -> None:
    """What another object has taken is not known; what Python's own has kept is read, under every name."""
    code, whole = INSTEAD[instead]
    script = AFTER_A_LINE.replace("sys.stdin{part}.readline()", code).replace('"-"', repr(name))
    lines = b"".join(b"line %d\n" % number for number in range(5_000))
    done = subprocess.run([sys.executable, "-c", script], input=lines, capture_output=True, check=False)
    if whole:
        assert done.stdout == b"4999\n"
    else:
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"what sys.stdin has read of it would be missing" in done.stderr


BY_TWO = """
import threading
import dptop
outcomes = []
def read():
    summary = dptop.SpaceSaving(10_000)
    try:
        summary.extend(dptop.read_labels("-"))
    except dptop.SourceError:
        outcomes.append(0)
    else:
        outcomes.append(len(summary.private_counters()))
threads = [threading.Thread(target=read) for _ in range(2)]
[thread.start() for thread in threads]
print("begun", flush=True)
[thread.join() for thread in threads]
print(sorted(outcomes))
"""


def test_standard_input_is_read_by_one_of_two_threads() -> None:
    """Also where its writer is slow to begin, and the first waits for it."""
    with subprocess.Popen([sys.executable, "-c", BY_TWO], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        out, _ = process.communicate(b"".join(b"line %d\n" % number for number in range(5_000)))
    assert out == b"[0, 5000]\n"


def test_a_device_that_is_standard_input_too_is_opened_again() -> None:
    """Services have /dev/null there."""
    script = "import dptop; s = dptop.SpaceSaving(9); [s.extend(dptop.read_labels('/dev/null')) for _ in range(2)]"
    subprocess.run([sys.executable, "-c", script], stdin=subprocess.DEVNULL, check=True)


def test_nulls_are_found_in_text_with_a_meaning(tmp_path: Path) -> None:
    """As in an Arrow extension type."""
    path = tmp_path / "t.parquet"
    storage = pyarrow.array(["a", "NA", None])
    column = pyarrow.ExtensionArray.from_storage(pyarrow.json_(pyarrow.string()), storage)
    path.write_bytes(parquet(pyarrow.table({"x": column})))
    assert counted(path, nulls=["NA"]) == {"a": 1}


def test_standard_input_that_cannot_be_read_is_told_in_words(tmp_path: Path) -> None:
    """Open for writing only, for example."""
    with (tmp_path / "out").open("wb") as file:
        script = AFTER_A_LINE.replace("sys.stdin{part}.readline()", "")
        done = subprocess.run([sys.executable, "-c", script], stdin=file, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"SourceError: standard input" in done.stderr


def test_nulls_are_found_in_dictionaries_of_views(tmp_path: Path) -> None:
    """Of a kind that pyarrow does not cast."""
    path = tmp_path / "t.arrow"
    values = pyarrow.array(["a", "NA"], pyarrow.string_view())
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1, 0, None], pyarrow.int8()), values)
    path.write_bytes(arrow_file(pyarrow.table({"x": column})))
    assert counted(path, nulls=["NA"]) == {"a": 2}


def test_nulls_of_a_dictionary_are_found_without_unpacking_it(tmp_path: Path) -> None:
    """Its rows together may be longer than memory, or than 32 bits can count."""
    path = tmp_path / "t.arrow"
    codes = pyarrow.array([0, 1] * 30_000, pyarrow.int32())
    path.write_bytes(arrow_file(pyarrow.table({"x": pyarrow.DictionaryArray.from_arrays(codes, ["L" * 80_000, "NA"])})))
    assert list(counted(path, nulls=["NA"]).values()) == [30_000]
