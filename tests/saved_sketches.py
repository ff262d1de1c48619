"""The saved forms of sketches and of what tracks labels beside them, put together from their description.

An implementation of its own of docs/saved-form.md: tests take forms apart with it, and write forms that
no summary would.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

from saved import MAGIC, sealed

PARAMETERS, COUNTERS, RECORD, KEYS, CELLS, NOISE, ESTIMATES, SKETCH, LABELS = range(1, 10)
COUNT_MIN, COUNT_SKETCH, TOP_ESTIMATES, TRACKED = 3, 4, 5, 6

EMPTY_RECORD = bytes(5)


def form(number: int, sections: dict[int, bytes]) -> bytes:
    """Return a form of a type with these sections, in this order, and its right checksum."""
    body = MAGIC + struct.pack("<HHI", 1, number, len(sections))
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


@dataclass
class SavedSketch:
    """Everything in the saved form of a sketch, to be read or changed."""

    type: int
    width: int
    depth: int
    seeded: int
    kind: int
    max_label_bytes: int
    identity: bytes
    length: int
    record: bytes
    keys: list[int]
    cells: list[int]
    noise: bytes

    @classmethod
    def parse(cls, data: bytes) -> SavedSketch:
        """Take the saved form apart."""
        number, sections = sections_of(data)
        assert list(sections) == [PARAMETERS, RECORD, KEYS, CELLS, NOISE]
        keys, cells = sections[KEYS], sections[CELLS]
        width, depth, seeded, kind, limit, identity, length = struct.unpack("<QQBBI16sQ", sections[PARAMETERS])
        return cls(
            *(number, width, depth, seeded, kind, limit, identity, length, sections[RECORD]),
            keys=list(struct.unpack(f"<{len(keys) // 8}Q", keys)),
            cells=list(struct.unpack(f"<{len(cells) // 8}q", cells)),
            noise=sections[NOISE],
        )

    def to_bytes(self) -> bytes:
        """Put it together, with a right checksum."""
        return form(self.type, self.sections())

    def sections(self) -> dict[int, bytes]:
        """Return the sections by tag."""
        shape = (self.width, self.depth, self.seeded, self.kind, self.max_label_bytes, self.identity, self.length)
        return {
            PARAMETERS: struct.pack("<QQBBI16sQ", *shape),
            RECORD: self.record,
            KEYS: struct.pack(f"<{len(self.keys)}Q", *self.keys),
            CELLS: struct.pack(f"<{len(self.cells)}q", *self.cells),
            NOISE: self.noise,
        }


@dataclass
class SavedTop:
    """Everything in the saved form of what tracks labels by their estimates."""

    capacity: int
    kind: int
    max_label_bytes: int
    identity: bytes
    length: int
    record: bytes = b""
    labels: list[tuple[int, bytes]] = field(default_factory=list)
    """Estimates and encoded labels, the estimate that was stored first before the others."""
    claimed: int | None = None
    """How many labels there are said to be, if that is not the truth."""

    @classmethod
    def parse(cls, data: bytes) -> SavedTop:
        """Take the saved form apart."""
        number, sections = sections_of(data)
        assert (number, list(sections)) == (TOP_ESTIMATES, [PARAMETERS, RECORD, ESTIMATES])
        capacity, kind, limit, identity, length = struct.unpack("<QBI16sQ", sections[PARAMETERS])
        saved = cls(capacity, kind, limit, identity, length, sections[RECORD])
        body, at = sections[ESTIMATES], 8
        (labels,) = struct.unpack_from("<Q", body)
        for _ in range(labels):
            (estimate,) = struct.unpack_from("<q", body, at)
            length = 9 if saved.kind == 1 else 4 + (int.from_bytes(body[at + 8 : at + 12], "little") & (2**31 - 1))
            saved.labels.append((estimate, body[at + 8 : at + 8 + length]))
            at += 8 + length
        assert at == len(body)
        return saved

    def to_bytes(self) -> bytes:
        """Put it together, with a right checksum."""
        claimed = len(self.labels) if self.claimed is None else self.claimed
        labels = b"".join(struct.pack("<q", estimate) + label for estimate, label in self.labels)
        parameters = struct.pack("<QBI16sQ", self.capacity, self.kind, self.max_label_bytes, self.identity, self.length)
        sections = {PARAMETERS: parameters, RECORD: self.record, ESTIMATES: struct.pack("<Q", claimed) + labels}
        return form(TOP_ESTIMATES, sections)


@dataclass
class SavedTracked:
    """Everything in the saved form of labels that are tracked beside a sketch."""

    capacity: int
    candidates: int
    tie: int
    record: bytes
    sketch: bytes
    labels: bytes

    @classmethod
    def parse(cls, data: bytes) -> SavedTracked:
        """Take the saved form apart."""
        number, sections = sections_of(data)
        assert (number, list(sections)) == (TRACKED, [PARAMETERS, RECORD, SKETCH, LABELS])
        capacity, candidates, tie = struct.unpack("<QBB", sections[PARAMETERS])
        return cls(capacity, candidates, tie, sections[RECORD], sections[SKETCH], sections[LABELS])

    def to_bytes(self) -> bytes:
        """Put it together, with a right checksum."""
        parameters = struct.pack("<QBB", self.capacity, self.candidates, self.tie)
        sections = {PARAMETERS: parameters, RECORD: self.record, SKETCH: self.sketch, LABELS: self.labels}
        return form(TRACKED, sections)
