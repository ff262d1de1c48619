"""The saved form of counters taken apart and put together again, from its description in docs/saved-form.md.

It is an implementation of its own: tests read the order of last occurrences with it, and write forms that no summary
would.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import dptop
import saved_frame as frame

if TYPE_CHECKING:
    from saved_frame import Label


@dataclass
class Saved:
    """Everything in the saved form of a SpaceSaving or a Misra-Gries summary, to be read or changed."""

    capacity: int
    partitions: int
    tie: int
    kind: int
    max_label_bytes: int
    identity: bytes
    counters: list[frame.Numbered] = field(default_factory=list)
    """Of each table in the order of last occurrence, the longest ago first; of Misra-Gries, of the labels."""
    record: bytes = frame.EMPTY_RECORD
    version: int = 1
    type: int = frame.SPACE_SAVING
    sections: int = 3
    length: int = 0
    """Of the stream; saved for Misra-Gries only."""

    @classmethod
    def parse(cls, data: bytes) -> Saved:
        """Take the saved form apart."""
        number, sections = frame.sections_of(data)
        assert list(sections) == [frame.PARAMETERS, frame.COUNTERS, frame.RECORD]
        saved = cls(*struct.unpack("<QQBBI16s", sections[frame.PARAMETERS]))
        saved.type, saved.record = number, sections[frame.RECORD]
        saved._read(sections[frame.COUNTERS])
        return saved

    @classmethod
    def of(cls, summary: dptop.SpaceSaving) -> Saved:
        """Take the saved form of a summary apart."""
        return cls.parse(summary.to_bytes())

    def _read(self, body: bytes) -> None:
        at = 0
        if self.type == frame.MISRA_GRIES:
            (self.length,) = struct.unpack_from("<Q", body)
            at = 8
        for _ in range(self.partitions):
            table, at = frame.numbered_labels(body, at, self.kind, "Q")
            self.counters.append(table)
        assert at == len(body)

    def to_bytes(self) -> bytes:
        """Put it together, with a right checksum."""
        length = struct.pack("<Q", self.length) if self.type == frame.MISRA_GRIES else b""
        return self.with_counters(length + b"".join(frame.with_numbers(table, "Q") for table in self.counters))

    def with_counters(self, counters: bytes) -> bytes:
        """Put it together with another section of counters."""
        parameters = struct.pack(
            "<QQBBI16s", self.capacity, self.partitions, self.tie, self.kind, self.max_label_bytes, self.identity
        )
        sections = {frame.PARAMETERS: parameters, frame.COUNTERS: counters, frame.RECORD: self.record}
        return frame.form(self.type, sections, version=self.version, claimed=self.sections)


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
