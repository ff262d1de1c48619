"""The saved form: it reads back, it does not read back changed, and it takes its privacy record along."""

from __future__ import annotations

import dataclasses
import pickle
import stat
import struct
import sys
import zlib
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from containers import summary_of
from dptop.record import Record
from saved import Saved, refused_in_little_memory, routing
from saved_frame import SHORTENED, encoded, sealed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LABELS: dict[str, list[Any]] = {
    "none": [],
    "integers": [3, -1, 2**64 - 1, 3, 2**63, 0, -(2**63), 3],
    "text": ["b", "", "é", "b", "\0", "x" * 70, "x" * 71, "b"],
    "bytes": [b"b", b"", b"\xff", b"b", b"\0", b"x" * 70, b"x" * 71, b"b"],
}


def of_kind(kind: str, capacity: int = 4, **parameters: Any) -> dptop.SpaceSaving:
    return summary_of(LABELS[kind], capacity, max_label_bytes=64, **parameters)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(("capacity", "partitions"), [(1, 1), (4, 1), (5, 3), (100, 1), (100, 7)])
@pytest.mark.parametrize("tie", ["least-recent", "most-recent"])
def test_everything_reads_back(kind: str, capacity: int, partitions: int, tie: str, tmp_path: Path) -> None:
    """Full, partly filled and empty summaries of all kinds read back from bytes, from a file and from a pickle."""
    summary = of_kind(kind, capacity, partitions=partitions, tie=tie)
    summary.save(tmp_path / "part.dptop")
    for read in (
        dptop.SpaceSaving.from_bytes(summary.to_bytes()),
        dptop.SpaceSaving.from_bytes(bytearray(summary.to_bytes())),
        dptop.SpaceSaving.from_bytes(memoryview(summary.to_bytes())),
        dptop.load(tmp_path / "part.dptop"),
        pickle.loads(pickle.dumps(summary)),
    ):
        assert isinstance(read, dptop.SpaceSaving)
        assert read.private_counters() == summary.private_counters()
        assert repr(read) == repr(summary)
        assert (read.capacity, read.tie, read.partitions) == (capacity, summary.tie, partitions)
        assert read.max_label_bytes == 64
        assert read.to_bytes() == summary.to_bytes()


def test_the_form_is_as_described() -> None:
    """The bytes are those of the description in docs/saved-form.md, written down here one by one."""
    summary = dptop.SpaceSaving(3, tie="most-recent", max_label_bytes=100)
    summary.extend(["b", "a", "b"])
    data = summary.to_bytes()
    identity = summary._tables.identity
    parameters = bytes.fromhex("0300000000000000 0100000000000000 01 02 64000000") + identity
    counters = bytes.fromhex("0200000000000000 0100000000000000 01000000 61 0200000000000000 01000000 62")
    record = bytes(5)
    expected = b"dptop\0\r\n" + bytes.fromhex("0100 0100 03000000")
    for tag, section in enumerate((parameters, counters, record), 1):
        expected += struct.pack("<IQ", tag, len(section)) + section
    assert data == expected + struct.pack("<I", zlib.crc32(expected))


@pytest.mark.parametrize("kind", LABELS)
def test_every_flipped_bit_is_seen(kind: str) -> None:
    """A form with any one bit changed is refused."""
    data = of_kind(kind).to_bytes()
    for position in range(8 * len(data)):
        changed = bytearray(data)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises(dptop.CorruptSummary):
            dptop.SpaceSaving.from_bytes(changed)


@pytest.mark.parametrize("kind", LABELS)
def test_every_cut_is_seen(kind: str) -> None:
    """A form that was cut short anywhere, or is followed by anything, is refused."""
    data = of_kind(kind).to_bytes()
    for length in range(len(data)):
        with pytest.raises(dptop.CorruptSummary):
            dptop.SpaceSaving.from_bytes(data[:length])
    for more in (b"\0", data, data[-4:]):
        with pytest.raises(dptop.CorruptSummary):
            dptop.SpaceSaving.from_bytes(data + more)


@pytest.mark.parametrize("data", [b"", b"\0", b"PAR1" * 100, b"\x80\x04.", b"dptop", b"dptop\0\r\n", bytes(10_000)])
def test_foreign_bytes_are_refused(data: bytes) -> None:
    """What is no summary is told so."""
    with pytest.raises(dptop.CorruptSummary):
        dptop.SpaceSaving.from_bytes(data)


@pytest.mark.parametrize("data", [None, "text", 3, ["x"]])
def test_other_types_are_no_saved_form(data: Any) -> None:
    """A path is not read by accident."""
    with pytest.raises(dptop.InvalidParameter, match="bytes"):
        dptop.SpaceSaving.from_bytes(data)


def changed(of: str = "text", /, **fields: Any) -> bytes:
    return dataclasses.replace(Saved.of(of_kind(of)), **fields).to_bytes()


def with_table(of: str, table: list[tuple[int, bytes]]) -> bytes:
    return changed(of, counters=[table])


def shortened(size: int, letter: bytes = b"x") -> bytes:
    """Return a shortened label of so many bytes: letters, and zeros for a digest."""
    return struct.pack("<I", size | SHORTENED) + letter * (size - 32) + bytes(32)


A, B = encoded("a"), encoded("b")
ONE, TWO = encoded(1), encoded(2)
TEN = [(i + 1, encoded(i)) for i in range(10)]

CONTRADICTIONS = {
    "a label twice": with_table("text", [(1, A), (2, B), (3, A)]),
    "an integer twice": with_table("integers", [(1, ONE), (2, ONE)]),
    "a count of zero": with_table("text", [(0, A)]),
    "a count above the range": with_table("text", [(2**63, A)]),
    "counts that sum past the range": with_table("text", [(2**62, A), (2**62, B)]),
    "counts that wrap": with_table("text", [(2**64 - 1, A), (2, B)]),
    "more labels than the capacity": with_table("integers", TEN),
    "a capacity too small": changed(capacity=2),
    "a capacity of zero": changed(capacity=0),
    "a capacity too large": changed(capacity=2**31 + 1),
    "a capacity that wraps": changed(capacity=2**64 - 1),
    "no partition": changed(partitions=0, counters=[]),
    "more partitions than counters": changed(partitions=5, counters=[[]] * 5, kind=0),
    "partitions without counters": changed(capacity=2**31, partitions=2**31, counters=[], kind=0),
    "a tie rule that there is not": changed(tie=2),
    "a kind that there is not": changed(kind=4),
    "labels of no kind": changed(kind=0),
    "a kind without labels": changed(counters=[[]]),
    "text read as integers": changed(kind=1),
    "integers read as text": changed("integers", kind=2),
    "bytes read as text": changed("bytes", kind=2, counters=[[(1, encoded(b"\xff"))]]),
    "a limit of labels too small": changed(max_label_bytes=63),
    "a limit of labels too large": changed(max_label_bytes=2**30 + 1),
    "a label above the limit": with_table("text", [(1, struct.pack("<I", 65) + b"x" * 65)]),
    "text that is not UTF-8": with_table("text", [(1, struct.pack("<I", 1) + b"\xff")]),
    "a short label with a digest": with_table("text", [(1, struct.pack("<I", 31 | SHORTENED) + b"x" * 31)]),
    "a shortened label that is not UTF-8": with_table("text", [(1, shortened(64, b"\xff"))]),
    "a shortened label of less than the limit": with_table("text", [(1, shortened(60))]),
    "a shortened label of more than the limit": with_table("text", [(1, shortened(65))]),
    "shortened bytes of less than the limit": with_table("bytes", [(1, shortened(63))]),
    "an integer of another range": with_table("integers", [(1, struct.pack("<BQ", 2, 5))]),
    "a small integer marked as large": with_table("integers", [(1, struct.pack("<BQ", 1, 5))]),
    "another version": changed(version=2),
    "another type": changed(type=7),
    "another number of sections": changed(sections=4),
    "no record": changed(record=b""),
    "a record cut short": changed(record=bytes(4)),
    "a record too long": changed(record=bytes(6)),
    "a record with unknown flags": changed(record=b"\x08" + bytes(4)),
    "a record of entries that are not there": changed(record=b"\0" + b"\xff" * 4),
}


def with_labels_claimed(labels: int) -> bytes:
    saved = Saved.of(of_kind("integers"))
    saved.capacity = 2**31
    body = struct.pack("<Q", labels) + b"".join(struct.pack("<Q", count) + label for count, label in saved.counters[0])
    return saved.with_counters(body)


def with_length_claimed(section: int, length: int) -> bytes:
    data = bytearray(of_kind("text").to_bytes()[:-4])
    at = 16
    for _ in range(section):
        at += 12 + int.from_bytes(data[at + 4 : at + 12], "little")
    data[at + 4 : at + 12] = struct.pack("<Q", length)
    return sealed(bytes(data))


LABELS_THAT_ARE_NOT_THERE = [with_labels_claimed(labels) for labels in (2**63, 2**64 - 1, 10**12, 5)]
SECTIONS_THAT_ARE_NOT_THERE = [
    with_length_claimed(section, length) for section in range(3) for length in (2**63, 2**64 - 1, 2**64 - 11, 2**40)
]


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_under_a_right_checksum_are_seen(name: str) -> None:
    """A form that no summary writes is refused, whatever its checksum says."""
    with pytest.raises(dptop.CorruptSummary) as caught:
        dptop.SpaceSaving.from_bytes(CONTRADICTIONS[name])
    assert "Save the summary again" in str(caught.value)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells the size of the process")
def test_contradictions_are_seen_in_bounded_memory() -> None:
    """No form makes room for what it only claims to hold: 64 MiB are enough to refuse them all."""
    forms = [*CONTRADICTIONS.values(), *LABELS_THAT_ARE_NOT_THERE, *SECTIONS_THAT_ARE_NOT_THERE]
    assert refused_in_little_memory(forms, "SpaceSaving") == len(forms)


def test_the_maker_of_contradictions_makes_sound_forms_too() -> None:
    """What the tests above change is the only thing that is wrong with their bytes."""
    read = dptop.SpaceSaving.from_bytes(changed())
    assert read.private_counters() == of_kind("text").private_counters()
    read = dptop.SpaceSaving.from_bytes(with_table("text", [(2**62, A), (2**62 - 1, B)]))
    assert read.private_counters() == [("a", 2**62), ("b", 2**62 - 1)]
    for size in range(61, 65):
        read = dptop.SpaceSaving.from_bytes(with_table("text", [(1, shortened(size))]))
        assert read.private_counters() == [(dptop.ShortenedLabel("x" * (size - 32), bytes(32)), 1)]
    read = dptop.SpaceSaving.from_bytes(with_table("bytes", [(1, shortened(64))]))
    assert read.private_counters() == [(dptop.ShortenedLabel(b"x" * 32, bytes(32)), 1)]


def test_numbers_of_things_that_are_not_there_are_seen() -> None:
    """No length reaches past the end, or wraps around it."""
    for form in (*LABELS_THAT_ARE_NOT_THERE, *SECTIONS_THAT_ARE_NOT_THERE):
        with pytest.raises(dptop.CorruptSummary):
            dptop.SpaceSaving.from_bytes(form)


def test_a_label_in_the_wrong_partition_is_seen() -> None:
    """Each label stands in the partition that its hash routes it to; under another identity it would be another."""
    labels: list[Any] = list(range(40))
    summary = dptop.SpaceSaving(200, partitions=2)
    route = routing(summary, labels)
    summary.extend(labels)
    saved = Saved.of(summary)
    assert [{label for _, label in table} for table in saved.counters] == [
        {label for label, number in route.items() if number == partition} for partition in range(2)
    ]
    saved.counters.reverse()
    with pytest.raises(dptop.CorruptSummary):
        dptop.SpaceSaving.from_bytes(saved.to_bytes())
    saved.counters.reverse()
    saved.identity = bytes(16)  # 40 labels are all routed as before with chance 2^-40
    with pytest.raises(dptop.CorruptSummary):
        dptop.SpaceSaving.from_bytes(saved.to_bytes())


def spent(delta: bytes, epsilon: int = 2**32) -> bytes:
    return b"\0" + struct.pack("<I", 1) + bytes(16) + struct.pack("<QQH", 1, epsilon, len(delta)) + delta


@pytest.mark.parametrize(
    "delta",
    [
        *(b"", b"x", b"nan", b"sNaN", b"inf", b"-1E-9", b"1", b"2", b"\xff", b"1E-999999999", b"0E-999999999", b"-0.1"),
        *(b"-0", b"-0E-9", b"-0.0"),  # no less than 0, but not as it is written either
        *(b"1e-9", b"1E-09", b" 1E-9", b"1E-9\n", b"1_0E-10", b"+1E-9", b"0.000000001"),  # not as it is written
    ],
)
def test_a_record_of_an_impossible_delta_is_seen(delta: bytes) -> None:
    """What was spent is a number from 0 to 1 of a sane size: sums with it stay quick."""
    with pytest.raises(dptop.CorruptSummary):
        dptop.SpaceSaving.from_bytes(changed(record=spent(delta)))
    assert len(dptop.SpaceSaving.from_bytes(changed(record=spent(b"1E-9")))._ledger.entries) == 1


def test_a_record_of_nothing_spent_is_seen() -> None:
    """Entries of no epsilon, unit or identity of their own, and lengths of nothing, are not what a ledger writes."""
    entry = spent(b"1E-9")[5:]
    for_nobody, for_too_many = (entry[:16] + struct.pack("<Q", units) + entry[24:] for units in (0, 2**63))
    records = [spent(b"1E-9", epsilon=0), b"\0" + struct.pack("<I", 2) + entry * 2]
    records += [b"\0" + struct.pack("<I", 1) + other for other in (for_nobody, for_too_many)]
    records += [b"\x08" + struct.pack("<Q", length) + bytes(4) for length in (0, 2**63)]
    for record in records:
        with pytest.raises(dptop.CorruptSummary):
            dptop.SpaceSaving.from_bytes(changed(record=record))


@pytest.mark.parametrize("budget", [(0.0, 1e-9), (1.0, 0.0), (float("nan"), 1e-9), (1.0, float("inf")), (65.0, 0.1)])
def test_a_record_of_an_impossible_budget_is_seen(budget: tuple[float, float]) -> None:
    """A budget that could not be declared cannot be loaded."""
    with pytest.raises(dptop.CorruptSummary):
        dptop.SpaceSaving.from_bytes(changed(record=b"\x01" + struct.pack("<dd", *budget) + bytes(4)))


def test_the_record_travels(tmp_path: Path) -> None:
    """Budget, what was spent and an incomplete stream are in the saved form, exactly."""
    summary = dptop.SpaceSaving(10, budget=dptop.Budget(0.3, 3e-9))
    summary.extend([1, 2, 3])
    dptop.release(summary, epsilon=0.1, delta=1e-9)
    dptop.release(summary, epsilon=0.1, delta=5e-324, length=1000)
    with pytest.raises(RuntimeError):
        summary.extend(breaking())
    summary.save(tmp_path / "part")
    read = dptop.load(tmp_path / "part")
    assert isinstance(read, dptop.SpaceSaving)
    record = Record.from_bytes(Saved.of(read).record)
    assert record == Record(dptop.Budget(0.3, 3e-9), summary._ledger.record(), incomplete=True)
    assert [str(spent.parameters.delta) for spent in record.ledger.entries.values()] == ["1E-9", "5E-324"]
    assert read.budget == summary.budget
    with pytest.raises(dptop.SourceError, match="was cut short"):
        dptop.release(read, epsilon=0.1, delta=1e-9)


def breaking() -> Any:
    yield 1
    raise RuntimeError


def test_a_saved_file_is_private_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the owner may read it; a save that fails leaves the old file and no other."""
    path = tmp_path / "part.dptop"
    summary = of_kind("text")
    path.write_bytes(b"old")
    path.chmod(0o644)
    summary.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = path.read_bytes()
    assert kept == summary.to_bytes()
    for broken in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            if broken == "fsync":
                patch.setattr("os.fsync", failing)
            else:
                patch.setattr("pathlib.Path.replace", failing)
            summary.update("more")
            with pytest.raises(dptop.SourceError, match="cannot be written"):
                summary.save(path)
        assert path.read_bytes() == kept
        assert list(tmp_path.iterdir()) == [path]


def failing(*_: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("act", "rule"),
    [
        (lambda folder: dptop.load(folder / "missing"), "cannot be read"),
        (lambda folder: dptop.load(folder), "cannot be read"),
        (lambda folder: of_kind("text").save(folder / "missing" / "part"), "cannot be written"),
        (lambda folder: of_kind("text").save(folder), "cannot be written"),
    ],
)
def test_a_path_that_cannot_be_used_is_told(act: Callable[[Path], Any], rule: str, tmp_path: Path) -> None:
    """The error names the path, and no file of ours is left."""
    with pytest.raises(dptop.SourceError, match=rule) as caught:
        act(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_corrupt_file_is_told_by_its_name(tmp_path: Path) -> None:
    """Which of many parts is corrupt is said."""
    path = tmp_path / "part.dptop"
    path.write_bytes(of_kind("text").to_bytes()[:-1])
    with pytest.raises(dptop.CorruptSummary, match=r"part\.dptop"):
        dptop.load(path)
