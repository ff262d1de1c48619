"""The saved form taken apart and put together again, from its description in docs/saved-form.md.

It is an implementation of its own: tests read the order of last occurrences with it, and write forms that no summary
would.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import struct
import subprocess
import sys
import zlib
from dataclasses import dataclass, field

import dptop

MAGIC = b"dptop\0\r\n"
SHORTENED = 1 << 31
KINDS = {int: 1, str: 2, bytes: 3}

Label = int | str | bytes
Counters = list[tuple[int, bytes]]
"""Counts and encoded labels in the order of last occurrence, the longest ago first; of Misra-Gries, of the labels."""

MISRA_GRIES = 2
"""The type of a saved Misra-Gries summary; SpaceSaving's is 1."""


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


@dataclass
class Saved:
    """Everything in the saved form of a summary, to be read or changed."""

    capacity: int
    partitions: int
    tie: int
    kind: int
    max_label_bytes: int
    identity: bytes
    counters: list[Counters] = field(default_factory=list)
    record: bytes = bytes(5)
    version: int = 1
    type: int = 1
    sections: int = 3
    length: int = 0
    """Of the stream; saved for Misra-Gries only."""

    @classmethod
    def parse(cls, data: bytes) -> Saved:
        """Take the saved form apart."""
        assert data[:8] == MAGIC
        assert zlib.crc32(data[:-4]) == int.from_bytes(data[-4:], "little")
        version, kind_of_summary, sections = struct.unpack_from("<HHI", data, 8)
        bodies, at = [], 16
        for number in (1, 2, 3):
            tag, length = struct.unpack_from("<IQ", data, at)
            assert tag == number
            bodies.append(data[at + 12 : at + 12 + length])
            at += 12 + length
        assert at == len(data) - 4
        parameters, counters, record = bodies
        saved = cls(*struct.unpack("<QQBBI16s", parameters))
        saved.version, saved.type, saved.sections, saved.record = version, kind_of_summary, sections, record
        saved.counters = saved._read(counters)
        return saved

    @classmethod
    def of(cls, summary: dptop.SpaceSaving) -> Saved:
        """Take the saved form of a summary apart."""
        return cls.parse(summary.to_bytes())

    def _read(self, body: bytes) -> list[Counters]:
        tables: list[Counters] = []
        at = 0
        if self.type == MISRA_GRIES:
            (self.length,) = struct.unpack_from("<Q", body)
            at = 8
        for _ in range(self.partitions):
            (labels,) = struct.unpack_from("<Q", body, at)
            at += 8
            table: Counters = []
            for _ in range(labels):
                (count,) = struct.unpack_from("<Q", body, at)
                length = 9 if self.kind == 1 else 4 + (int.from_bytes(body[at + 8 : at + 12], "little") & ~SHORTENED)
                table.append((count, body[at + 8 : at + 8 + length]))
                at += 8 + length
            tables.append(table)
        assert at == len(body)
        return tables

    def to_bytes(self) -> bytes:
        """Put it together, with a right checksum."""
        counters = b"".join(
            struct.pack("<Q", len(table)) + b"".join(struct.pack("<Q", count) + label for count, label in table)
            for table in self.counters
        )
        if self.type == MISRA_GRIES:
            counters = struct.pack("<Q", self.length) + counters
        return self.with_counters(counters)

    def with_counters(self, counters: bytes) -> bytes:
        """Put it together with another section of counters."""
        parameters = struct.pack(
            "<QQBBI16s", self.capacity, self.partitions, self.tie, self.kind, self.max_label_bytes, self.identity
        )
        body = MAGIC + struct.pack("<HHI", self.version, self.type, self.sections)
        for tag, section in enumerate((parameters, counters, self.record), 1):
            body += struct.pack("<IQ", tag, len(section)) + section
        return sealed(body)


def sealed(body: bytes) -> bytes:
    """Return bytes with their right checksum."""
    return body + struct.pack("<I", zlib.crc32(body))


def with_key(summary: dptop.SpaceSaving, key: bytes) -> dptop.SpaceSaving:
    """Return an empty summary with these 8 bytes as the key of its hash: it routes labels to partitions repeatably."""
    saved = Saved.of(summary)
    saved.identity = key + os.urandom(8)  # the whole identity stays new, and so is the ledger
    return dptop.SpaceSaving.from_bytes(saved.to_bytes())


def routing(summary: dptop.SpaceSaving, labels: list[Label]) -> dict[bytes, int]:
    """Return the partition of each encoded label: where it ends up in a large, empty summary of the same identity."""
    saved = Saved.of(summary)
    saved.capacity = 2**20 * saved.partitions
    saved.kind, saved.counters = 0, [[] for _ in range(saved.partitions)]
    large = dptop.SpaceSaving.from_bytes(saved.to_bytes())
    large.extend(labels)
    return {label: number for number, table in enumerate(Saved.of(large).counters) for _, label in table}


ELSEWHERE = """
import sys, dptop
summary = dptop.Summary.from_bytes(sys.stdin.buffer.read())
dptop.release(summary, epsilon=1.0, delta=1e-6, **eval(sys.argv[1]))
sys.stdout.buffer.write(summary.to_bytes())
"""


def released_elsewhere(saved: bytes, **arguments: int) -> subprocess.CompletedProcess[bytes]:
    """Release a saved summary in a process of its own; its stdout is the summary saved again, its stderr an error."""
    command = [sys.executable, "-c", ELSEWHERE, repr(arguments)]
    return subprocess.run(command, input=saved, capture_output=True, check=False, timeout=60)


CAPPED = """
import pickle, resource, sys, time
import dptop
forms = pickle.load(sys.stdin.buffer)
kind = getattr(dptop, sys.argv[1])
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**26, size + 2**26))
refused, longest = 0, 0.0
for form in forms:
    start = time.process_time()
    try:
        kind.from_bytes(form)
    except dptop.CorruptSummary:
        refused += 1
    longest = max(longest, time.process_time() - start)
print(refused, longest)
try:
    bytearray(2**27)
except MemoryError:
    print("capped")
"""


def refused_in_little_memory(forms: list[bytes], kind: str, *, seconds: float = 5.0) -> int:
    """Return how many forms a type of `dptop` refuses in a process of its own that may take 64 MiB for all of them.

    Each is read, or refused with `CorruptSummary` and nothing else, in at most so many seconds of its time.
    """
    command = [sys.executable, "-c", CAPPED, kind]
    done = subprocess.run(command, input=pickle.dumps(forms), capture_output=True, check=True)
    refused, longest, capped = done.stdout.split()
    assert capped == b"capped"
    assert float(longest) < seconds
    return int(refused)
