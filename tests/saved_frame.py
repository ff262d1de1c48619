"""What all saved forms share, from docs/saved-form.md: the frame with its checksum, tagged sections, encoded labels.

With it tests/saved.py and tests/saved_sketches.py take forms apart, and write forms that no summary would. The reader
of tests/saved_form_reader.py stays apart from it.
"""

from __future__ import annotations

import hashlib
import struct
import zlib

MAGIC = b"dptop\0\r\n"
SPACE_SAVING, MISRA_GRIES, COUNT_MIN, COUNT_SKETCH, TOP_ESTIMATES, TRACKED = range(1, 7)
PARAMETERS, COUNTERS, RECORD, KEYS, CELLS, NOISE, ESTIMATES, SKETCH, LABELS = range(1, 10)
SHORTENED = 1 << 31
EMPTY_RECORD = bytes(5)

Label = int | str | bytes
Numbered = list[tuple[int, bytes]]
"""Counts or estimates, and encoded labels."""


def sealed(body: bytes) -> bytes:
    """Return bytes with their right checksum."""
    return body + struct.pack("<I", zlib.crc32(body))


def form(number: int, sections: dict[int, bytes], *, version: int = 1, claimed: int | None = None) -> bytes:
    """Return a form of a type with these sections, in this order, and its right checksum.

    It may claim another number of sections.
    """
    body = MAGIC + struct.pack("<HHI", version, number, len(sections) if claimed is None else claimed)
    for tag, section in sections.items():
        body += struct.pack("<IQ", tag, len(section)) + section
    return sealed(body)


def sections_of(data: bytes) -> tuple[int, dict[int, bytes]]:
    """Return the type of a form, and its sections by tag."""
    assert data[:8] == MAGIC
    assert zlib.crc32(data[:-4]) == int.from_bytes(data[-4:], "little")
    version, number, count = struct.unpack_from("<HHI", data, 8)
    assert version == 1
    sections, at = {}, 16
    for _ in range(count):
        tag, length = struct.unpack_from("<IQ", data, at)
        sections[tag] = data[at + 12 : at + 12 + length]
        at += 12 + length
    assert at == len(data) - 4
    assert list(sections) == sorted(sections)
    return number, sections


def encoded(label: Label, max_label_bytes: int = 4096) -> bytes:
    """Return a label as the saved form holds it; a long one as prefix and digest."""
    if isinstance(label, int):
        return struct.pack("<BQ", label >= 2**63, label % 2**64)
    raw = label.encode() if isinstance(label, str) else label
    if len(raw) <= max_label_bytes:
        return struct.pack("<I", len(raw)) + raw
    prefix = raw[: max_label_bytes - 32]
    if isinstance(label, str):
        prefix = prefix.decode(errors="ignore").encode()
    return struct.pack("<I", len(prefix) + 32 | SHORTENED) + prefix + hashlib.sha256(raw).digest()


def numbered_labels(body: bytes, at: int, kind: int, letter: str) -> tuple[Numbered, int]:
    """Read labels of a kind, how many first, each behind a number of its own (Q or q); return them and their end."""
    (labels,) = struct.unpack_from("<Q", body, at)
    at += 8
    found: Numbered = []
    for _ in range(labels):
        (number,) = struct.unpack_from("<" + letter, body, at)
        length = 9 if kind == 1 else 4 + (int.from_bytes(body[at + 8 : at + 12], "little") & ~SHORTENED)
        found.append((number, body[at + 8 : at + 8 + length]))
        at += 8 + length
    return found, at


def with_numbers(labels: Numbered, letter: str, *, claimed: int | None = None) -> bytes:
    """Write labels as `numbered_labels` reads them; it may claim another number of them."""
    written = b"".join(struct.pack("<" + letter, number) + label for number, label in labels)
    return struct.pack("<Q", len(labels) if claimed is None else claimed) + written
