"""The saved forms of sketches and of what tracks labels beside them, put together from their description.

An implementation of its own of docs/saved-form.md: tests take forms apart with it, and write forms that
no summary would.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import saved_frame as frame


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
        number, sections = frame.sections_of(data)
        assert list(sections) == [frame.PARAMETERS, frame.RECORD, frame.KEYS, frame.CELLS, frame.NOISE]
        keys, cells = sections[frame.KEYS], sections[frame.CELLS]
        width, depth, seeded, kind, limit, identity, length = struct.unpack("<QQBBI16sQ", sections[frame.PARAMETERS])
        return cls(
            *(number, width, depth, seeded, kind, limit, identity, length, sections[frame.RECORD]),
            keys=list(struct.unpack(f"<{len(keys) // 8}Q", keys)),
            cells=list(struct.unpack(f"<{len(cells) // 8}q", cells)),
            noise=sections[frame.NOISE],
        )

    def to_bytes(self) -> bytes:
        """Put it together, with a right checksum."""
        return frame.form(self.type, self.sections())

    def sections(self) -> dict[int, bytes]:
        """Return the sections by tag."""
        shape = (self.width, self.depth, self.seeded, self.kind, self.max_label_bytes, self.identity, self.length)
        return {
            frame.PARAMETERS: struct.pack("<QQBBI16sQ", *shape),
            frame.RECORD: self.record,
            frame.KEYS: struct.pack(f"<{len(self.keys)}Q", *self.keys),
            frame.CELLS: struct.pack(f"<{len(self.cells)}q", *self.cells),
            frame.NOISE: self.noise,
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
    labels: frame.Numbered = field(default_factory=list)
    """Estimates and encoded labels, the estimate that was stored first before the others."""
    claimed: int | None = None
    """How many labels there are said to be, if that is not the truth."""

    @classmethod
    def parse(cls, data: bytes) -> SavedTop:
        """Take the saved form apart."""
        number, sections = frame.sections_of(data)
        assert (number, list(sections)) == (frame.TOP_ESTIMATES, [frame.PARAMETERS, frame.RECORD, frame.ESTIMATES])
        capacity, kind, limit, identity, length = struct.unpack("<QBI16sQ", sections[frame.PARAMETERS])
        saved = cls(capacity, kind, limit, identity, length, sections[frame.RECORD])
        saved.labels, end = frame.numbered_labels(sections[frame.ESTIMATES], 0, kind, "q")
        assert end == len(sections[frame.ESTIMATES])
        return saved

    def to_bytes(self) -> bytes:
        """Put it together, with a right checksum."""
        parameters = struct.pack("<QBI16sQ", self.capacity, self.kind, self.max_label_bytes, self.identity, self.length)
        labels = frame.with_numbers(self.labels, "q", claimed=self.claimed)
        sections = {frame.PARAMETERS: parameters, frame.RECORD: self.record, frame.ESTIMATES: labels}
        return frame.form(frame.TOP_ESTIMATES, sections)


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
        number, sections = frame.sections_of(data)
        assert (number, list(sections)) == (frame.TRACKED, [frame.PARAMETERS, frame.RECORD, frame.SKETCH, frame.LABELS])
        capacity, candidates, tie = struct.unpack("<QBB", sections[frame.PARAMETERS])
        return cls(capacity, candidates, tie, sections[frame.RECORD], sections[frame.SKETCH], sections[frame.LABELS])

    def to_bytes(self) -> bytes:
        """Put it together, with a right checksum."""
        parameters = struct.pack("<QBB", self.capacity, self.candidates, self.tie)
        sections = {
            frame.PARAMETERS: parameters,
            frame.RECORD: self.record,
            frame.SKETCH: self.sketch,
            frame.LABELS: self.labels,
        }
        return frame.form(frame.TRACKED, sections)
