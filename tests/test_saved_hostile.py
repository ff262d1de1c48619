"""Hostile bytes, behind a right checksum too, are refused or are a summary that agrees with itself; little memory."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import lzma
import pickle
import struct
import sys
import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest

import dptop
from containers import arrow_file, parquet
from dptop.ledger import Ledger
from saved import refused_in_little_memory
from saved_form_cases import EXPECTED, saved
from saved_form_reader import INTEGERS, read
from saved_form_rules import check
from saved_frame import LABELS, SKETCH, TRACKED, form, sealed, sections_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MORE: dict[int, list[Any]] = {0: [1], 1: [7, -1, 12, 2**64 - 2], 2: ["b", "", "x" * 5000], 3: [b"b", b"", b"\xff\xff"]}
"""What is counted after loading, by the kind of label."""


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "_known", {})


def forms_within(data: bytes) -> list[slice]:
    """Return where a form holds other forms."""
    if int.from_bytes(data[10:12], "little") != TRACKED:
        return []
    found, at = [], 16
    while at < len(data) - 4:
        tag, length = struct.unpack_from("<IQ", data, at)
        at += 12 + length
        if tag in (SKETCH, LABELS):
            found.append(slice(at - length, at))
    return found


def resealed(changed: bytes, original: bytes) -> bytes:
    """Return bytes of the same length with right checksums, those of the forms within included."""
    for within in forms_within(original):
        part = sealed(changed[within][:-4])
        changed = changed[: within.start] + part + changed[within.stop :]
    return sealed(changed[:-4])


def allowed(data: bytes) -> bool:
    """Return whether the bytes keep all rules of the page, as far as a reader made from it can tell."""
    try:
        found = read(data)
        check(found)
    except (AssertionError, ArithmeticError, LookupError, ValueError, struct.error):  # ways to break a rule
        return False
    # the reader does not hash strings: it cannot tell what Count-Min says of a label
    return found["type"] != TRACKED or found["sketch"]["kind"] == INTEGERS or found["sketch"]["noise"] is not None


def agrees_with_itself(data: bytes) -> bool:
    """Return whether the bytes are read, as they are exactly if they keep all rules; see that the summary goes on."""
    Ledger._known.clear()
    try:
        summary = dptop.Summary.from_bytes(data)
    except dptop.CorruptSummary:
        assert not allowed(data)
        return False
    assert summary.to_bytes() == data
    found = read(data)
    check(found)
    kind = (found.get("sketch") or found)["kind"]
    if isinstance(summary, dptop.Tracked):
        kind = kind or found["labels"]["kind"]  # where an input broke off, one side alone may know it
    try:
        summary.extend(MORE[kind])
    except dptop.InvalidParameter as error:  # the length is near the end of its range
        assert "2**63" in str(error)  # noqa: PT017 - nearly all are counted
        return True
    Ledger._known.clear()
    after = summary.to_bytes()
    check(read(after))
    again = dptop.Summary.from_bytes(after)
    assert again.to_bytes() == after
    return True


def flipped(data: bytes) -> Iterator[bytes]:
    for position in range(8 * len(data)):
        changed = bytearray(data)
        changed[position // 8] ^= 1 << position % 8
        yield bytes(changed)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_flipped_bit_is_seen(name: str) -> None:
    """A saved file of any type, in which one bit was changed, is refused."""
    for changed in flipped(saved(name)):
        with pytest.raises(dptop.CorruptSummary):
            dptop.Summary.from_bytes(changed)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_cut_is_seen(name: str) -> None:
    """A saved file that was cut anywhere, or has anything behind it, is refused; with a right checksum too."""
    data = saved(name)
    for length in range(len(data)):
        for cut in (data[:length], sealed(data[:length])):
            if cut != data:
                with pytest.raises(dptop.CorruptSummary):
                    dptop.Summary.from_bytes(cut)
    for more in (b"\0", data[-4:], data):
        for longer in (data + more, sealed(data[:-4] + more), sealed(data + more)):
            with pytest.raises(dptop.CorruptSummary):
                dptop.Summary.from_bytes(longer)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_flipped_bit_behind_a_right_checksum_is_seen_or_leaves_a_sound_summary(name: str) -> None:
    """What passes is what keeps all rules of the page; it is written to the same bytes, and counts on."""
    data = saved(name)
    read_anyway = sum(agrees_with_itself(resealed(changed, data)) for changed in flipped(data))
    # identities, and keys of sketches, are any bits; nearly all else is bound by something
    assert 128 <= read_anyway < 8 * len(data)


def cut_within(data: bytes) -> Iterator[bytes]:
    """Yield forms with one section cut short, or longer by a byte, under right lengths and checksums."""
    number, sections = sections_of(data)
    assert form(number, sections) == data
    for tag, section in sections.items():
        changed = [section[:length] for length in range(len(section))] + [section + b"\0"]
        if number == TRACKED and tag in (SKETCH, LABELS):
            changed = [*cut_within(section)]
        for part in changed:
            yield form(number, {**sections, tag: part})
        yield form(number, {other: body for other, body in sections.items() if other != tag})
        yield form(number, {**sections, tag + 10: b""})


@pytest.mark.parametrize("name", EXPECTED)
def test_every_cut_of_a_section_is_seen_or_leaves_a_sound_summary(name: str) -> None:
    """Nothing is read where its bytes are missing: of all cuts at most the noise may go as a whole."""
    read_anyway = [data for data in cut_within(saved(name)) if agrees_with_itself(data)]
    assert len(read_anyway) <= 1
    for data in read_anyway:
        found = read(data)
        assert (found.get("sketch") or found)["noise"] is None


EXTREMES = [struct.pack("<Q", number) for number in (0, 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1)]
EXTREMES += [struct.pack("<I", number) for number in (2**31 - 1, 2**31, 2**32 - 1)]


def with_extremes(data: bytes) -> Iterator[bytes]:
    """Yield forms with a number of 4 or 8 bytes written over them anywhere: every length and every count is hit."""
    for at, number in itertools.product(range(8, len(data) - 4), EXTREMES):
        changed = data[:at] + number + data[at + len(number) :]
        yield resealed(changed[: len(data)], data)


@pytest.mark.parametrize("name", EXPECTED)
def test_numbers_set_to_extremes_are_seen_or_leave_a_sound_summary(name: str) -> None:
    """The largest and the smallest numbers, wherever they stand."""
    assert sum(map(agrees_with_itself, with_extremes(saved(name)))) > 0  # a number may be what it was


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells the size of the process")
def test_hostile_bytes_take_little_memory_and_time() -> None:
    """64 MiB are enough for all of them, and none takes seconds: no number makes room for what it only claims."""
    forms = [data for name in EXPECTED for data in with_extremes(saved(name))]
    refused = refused_in_little_memory(forms, "Summary")
    assert len(forms) // 2 < refused < len(forms)


def zipped(data: bytes) -> bytes:
    sink = BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("part.dptop", data)
    return sink.getvalue()


SOUND = saved("integers")
TABLE = pyarrow.table({"x": [1, 2, 3]})
FOREIGN = {
    "nothing": b"",
    "one byte": b"d",
    "the first bytes alone": SOUND[:8],
    "the frame alone": SOUND[:16],
    "the frame alone, sealed": sealed(SOUND[:16]),
    "zeros": bytes(10_000),
    "ones": b"\xff" * 10_000,
    "text": b"item,count\n/home,3\n" * 100,
    "json": json.dumps({"counters": [["a", 1]]}).encode(),
    "a program": Path(sys.executable).read_bytes()[:100_000],
    "a pickle": pickle.dumps({"a": 1}),
    "a pickled summary": pickle.dumps(dptop.SpaceSaving(3)),
    "parquet": parquet(TABLE),
    "arrow": arrow_file(TABLE),
    "an image": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "a zip archive of one": zipped(SOUND),
    "one in gzip": gzip.compress(SOUND),
    "one in bzip2": bz2.compress(SOUND),
    "one in xz": lzma.compress(SOUND),
    "one in zlib": zlib.compress(SOUND),
    "one in hexadecimal": SOUND.hex().encode(),
    "one with a byte order mark": b"\xef\xbb\xbf" + SOUND,
    "one whose line ends were changed": SOUND.replace(b"\r\n", b"\n"),
    "one whose line ends were changed, sealed": sealed(SOUND.replace(b"\r\n", b"\n")[:-4]),
    "one that went through text": SOUND.decode("latin-1").encode(),
    "one in the other byte order": SOUND[::-1],
    "a form of the next version": sealed(SOUND[:8] + b"\2\0" + SOUND[10:-4]),
    "a form of no type": sealed(SOUND[:10] + b"\7\0" + SOUND[12:-4]),
    "tracked labels by themselves": sections_of(saved("tracked_by_estimates"))[1][LABELS],
}
TYPES: list[Any] = [
    dptop.Summary,
    dptop.SpaceSaving,
    dptop.MisraGries,
    dptop.CountMin,
    dptop.CountSketch,
    dptop.Tracked,
]


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_refused(name: str, tmp_path: Path) -> None:
    """By every type, from bytes and from a file, whose name is said."""
    for kind in TYPES:
        with pytest.raises(dptop.CorruptSummary):
            kind.from_bytes(FOREIGN[name])
    path = tmp_path / "part.dptop"
    path.write_bytes(FOREIGN[name])
    with pytest.raises(dptop.CorruptSummary, match=r"part\.dptop"):
        dptop.load(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a file without an end")
def test_a_foreign_file_is_not_read_to_its_end() -> None:
    """It may have none."""
    with pytest.raises(dptop.CorruptSummary, match="not a saved dptop summary"):
        dptop.load("/dev/zero")


def test_what_was_counted_and_what_tracks_it_must_agree() -> None:
    """Count-Min only grows where nothing is taken back: no label was counted more often than it says now."""
    tracked = dptop.Tracked(dptop.CountMin(64, 5), 10, "estimates")
    tracked.extend(["a", "a", "b"])
    number, sections = sections_of(tracked.to_bytes())
    kind, parts = sections_of(sections[LABELS])
    for estimate, reads in ((2, True), (1, True), (3, False), (0, False), (-1, False)):
        changed = {**parts, 7: parts[7][:8] + struct.pack("<q", estimate) + parts[7][16:]}
        assert agrees_with_itself(form(number, {**sections, LABELS: form(kind, changed)})) == reads
    tracked = dptop.Tracked(dptop.CountMin(64, 5), 10)
    tracked.extend(["a", "a", "b"])
    number, sections = sections_of(tracked.to_bytes())
    kind, parts = sections_of(sections[LABELS])
    for counts, reads in (((2, 1), True), ((1, 2), False)):
        body = parts[2][:8] + struct.pack("<Q", counts[0]) + parts[2][16:21] + struct.pack("<Q", counts[1])
        changed = {**parts, 2: body + parts[2][29:]}
        assert agrees_with_itself(form(number, {**sections, LABELS: form(kind, changed)})) == reads
