"""A reader of the saved form, made from docs/saved-form.md alone: no line of it knows the package.

It believes what it reads, so long as the bytes are all there and none is left; tests/saved_form_rules.py does not.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

SECTIONS = {
    1: ["parameters", "counters", "record"],
    2: ["parameters", "counters", "record"],
    3: ["parameters", "record", "keys", "cells", "noise"],
    4: ["parameters", "record", "keys", "cells", "noise"],
    5: ["parameters", "record", "estimates"],
    6: ["parameters", "record", "sketch", "labels"],
}
TAGS = {
    name: tag
    for tag, name in enumerate(
        ["parameters", "counters", "record", "keys", "cells", "noise", "estimates", "sketch", "labels"], 1
    )
}
PARAMETERS = {
    1: ("<QQBBI16s", ["capacity", "partitions", "tie", "kind", "max_label_bytes", "identity"]),
    2: ("<QQBBI16s", ["capacity", "partitions", "tie", "kind", "max_label_bytes", "identity"]),
    3: ("<QQBBI16sQ", ["width", "depth", "seeded", "kind", "max_label_bytes", "identity", "length"]),
    4: ("<QQBBI16sQ", ["width", "depth", "seeded", "kind", "max_label_bytes", "identity", "length"]),
    5: ("<QBI16sQ", ["capacity", "kind", "max_label_bytes", "identity", "length"]),
    6: ("<QBB", ["capacity", "candidates", "tie"]),
}
NO_LABEL, INTEGERS, STRINGS, BYTES = range(4)
STEP = Fraction(1, 2**32)

Label = int | str | bytes | tuple[str | bytes, bytes]
"""A shortened label is its beginning and its digest."""


@dataclass
class Bytes:
    """What is left to read."""

    left: bytes

    def take(self, count: int) -> bytes:
        assert len(self.left) >= count
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def number(self, letter: str) -> Any:
        """Read one number, by its letter of `struct`: B, H, I and Q without a sign, q with one, d a float."""
        return struct.unpack("<" + letter, self.take(struct.calcsize("<" + letter)))[0]

    def label(self, kind: int) -> Label:
        if kind == INTEGERS:
            is_large, bits = self.number("B"), self.number("Q")
            number = bits if is_large or bits < 2**63 else bits - 2**64
            assert is_large == int(number >= 2**63)
            return int(number)
        length = self.number("I")
        raw = self.take(length % 2**31)
        digest = None
        if length >= 2**31:
            raw, digest = raw[:-32], raw[-32:]
        text: str | bytes = raw.decode() if kind == STRINGS else raw
        return text if digest is None else (text, digest)

    def delta(self) -> Decimal:
        text = self.take(self.number("H")).decode()
        assert str(Decimal(text)) == text
        return Decimal(text)

    def end(self) -> None:
        assert not self.left


def read(data: bytes) -> dict[str, Any]:
    """Return everything that a saved summary holds, by the names of the page."""
    assert zlib.crc32(data[:-4]) == int.from_bytes(data[-4:], "little")
    frame = Bytes(data[:-4])
    assert frame.take(8) == bytes.fromhex("64 70 74 6f 70 00 0d 0a")
    assert frame.number("H") == 1
    found: dict[str, Any] = {"type": frame.number("H")}
    names = SECTIONS[found["type"]]
    assert frame.number("I") == len(names)
    sections = {}
    for name in names:
        assert frame.number("I") == TAGS[name]
        sections[name] = Bytes(frame.take(frame.number("Q")))
    frame.end()
    layout, fields = PARAMETERS[found["type"]]
    parameters = sections.pop("parameters")
    found.update(zip(fields, struct.unpack(layout, parameters.take(struct.calcsize(layout))), strict=True))
    parameters.end()
    for name, section in sections.items():
        READERS[name](section, found)
        section.end()
    return found


def read_counters(section: Bytes, found: dict[str, Any]) -> None:
    if found["type"] == 2:
        found["length"] = section.number("Q")
    found["counters"] = []
    for _ in range(found["partitions"]):
        labels = section.number("Q")
        counters = [(section.number("Q"), section.label(found["kind"])) for _ in range(labels)]
        found["counters"].append([(label, count) for count, label in counters])


def read_record(section: Bytes, found: dict[str, Any]) -> None:
    found["record"] = None
    if not section.left:  # of labels within type 6
        return
    flags = section.number("B")
    record = found["record"] = {
        "budget": (section.number("d"), section.number("d")) if flags & 1 else None,
        "incomplete": bool(flags & 2),
        "closed": bool(flags & 4),
        "length": section.number("Q") if flags & 8 else None,
    }
    assert flags < 16
    record["spent"] = [
        {
            "random": section.take(16),
            "max_contributions": section.number("Q"),
            "epsilon": section.number("Q") * STEP,
            "delta": section.delta(),
        }
        for _ in range(section.number("I"))
    ]


def read_keys(section: Bytes, found: dict[str, Any]) -> None:
    found["fingerprint_key"] = section.number("Q")
    found["row_keys"] = [tuple(section.number("Q") for _ in range(3)) for _ in range(found["depth"])]


def read_cells(section: Bytes, found: dict[str, Any]) -> None:
    width, depth = found["width"], found["depth"]
    found["cells"] = [[section.number("q") for _ in range(width)] for _ in range(depth)]


def read_noise(section: Bytes, found: dict[str, Any]) -> None:
    found["noise"] = None
    if section.left:
        kind, epsilon, size = section.number("B"), section.number("Q") * STEP, section.number("Q")
        law = {"epsilon_cell": size * STEP} if kind == 0 else {"variance": size}
        found["noise"] = {"kind": ["laplace", "gaussian"][kind], "epsilon": epsilon, **law, "delta": section.delta()}


def read_estimates(section: Bytes, found: dict[str, Any]) -> None:
    labels = section.number("Q")
    estimates = [(section.number("q"), section.label(found["kind"])) for _ in range(labels)]
    found["estimates"] = [(label, estimate) for estimate, label in estimates]


def read_whole(name: str) -> Any:
    """Return a reader of a section that is a whole form."""

    def within(section: Bytes, found: dict[str, Any]) -> None:
        found[name] = read(section.take(len(section.left)))

    return within


READERS: dict[str, Any] = {
    "counters": read_counters,
    "record": read_record,
    "keys": read_keys,
    "cells": read_cells,
    "noise": read_noise,
    "estimates": read_estimates,
    "sketch": read_whole("sketch"),
    "labels": read_whole("labels"),
}


def integer_hash(label: int, key: int) -> int:
    """Return the hash of an integer label under a key."""

    def fold(x: int, y: int) -> int:
        return (x * y) % 2**64 ^ (x * y) >> 64

    rotated = (key % 2**32) * 2**32 + (key >> 32)
    return fold(fold(label % 2**64 ^ key, 0x9FB21C651E98DF25) ^ rotated, 0xA3B195354A39B70D)


def partition_of(label: int, key: int, partitions: int) -> int:
    """Return the partition in which an integer label stands."""
    return ((integer_hash(label, key) * 0x9E3779B97F4A7C15 % 2**64) >> 32) * partitions >> 32


def signed_cells(label: int, form: dict[str, Any]) -> list[int]:
    """Return the cell of an integer label in each row of a saved sketch, in CountSketch times its sign."""
    fingerprint = integer_hash(label, form["fingerprint_key"]) ^ (label >= 2**63)
    cells = []
    for (a, b, c), row in zip(form["row_keys"], form["cells"], strict=True):
        h = (a * (fingerprint % 2**32) + b * (fingerprint >> 32) + c) % 2**64
        sign = -1 if form["type"] == 4 and h >> 31 & 1 else 1
        cells.append(sign * row[(h >> 32) * form["width"] >> 32])
    return cells
