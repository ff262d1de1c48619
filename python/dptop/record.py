"""The record that travels with a saved summary: its budget, what was spent, and whether its stream was read whole.

It is the `record` section of the saved form; docs/saved-form.md says it byte by byte.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Final

from dptop._native import MAX_LENGTH
from dptop.errors import CorruptSummary, InvalidParameter
from dptop.ledger import ENTRY_IDENTITY_BYTES, LedgerRecord, Spent
from dptop.privacy import EPSILON_STEP, Budget, PrivacyParameters

__all__ = ["Record", "saved_delta"]

HAS_BUDGET: Final = 1
INCOMPLETE: Final = 2
CLOSED: Final = 4
HAS_LENGTH: Final = 8

BUDGET: Final = struct.Struct("<dd")
"""Epsilon, delta."""
LENGTH: Final = struct.Struct("<Q")
ENTRY_COUNT: Final = struct.Struct("<I")
ENTRY: Final = struct.Struct("<QQH")
"""What follows the identity of an entry: max_contributions, epsilon in units of 2^-32, bytes of the delta after it."""

DELTA_EXPONENT_MIN: Final = -400
"""Below that of any float; a sum of deltas stays short."""


@dataclass(frozen=True)
class Record:
    """What a saved summary says of its privacy."""

    budget: Budget | None = None
    ledger: LedgerRecord = field(default_factory=LedgerRecord)
    incomplete: bool = False

    def to_bytes(self) -> bytes:
        """Return the record as bytes."""
        ledger = self.ledger
        flags = {
            HAS_BUDGET: self.budget is not None,
            INCOMPLETE: self.incomplete,
            CLOSED: ledger.closed,
            HAS_LENGTH: ledger.length is not None,
        }
        out = bytearray([sum(flag for flag, is_set in flags.items() if is_set)])
        if self.budget:
            out += BUDGET.pack(self.budget.epsilon, self.budget.delta)
        if ledger.length is not None:
            out += LENGTH.pack(ledger.length)
        out += ENTRY_COUNT.pack(len(ledger.entries))
        for identity, (parameters, contributions) in ledger.entries.items():
            delta = str(parameters.delta).encode()
            epsilon = int(parameters.epsilon / EPSILON_STEP)
            out += identity + ENTRY.pack(contributions, epsilon, len(delta)) + delta
        return bytes(out)

    @classmethod
    def from_bytes(cls, data: bytes) -> Record:
        """Read the record back.

        Raises:
            CorruptSummary: the bytes are not a whole record, as a summary writes it.
        """
        try:
            record = cls._read(data)
        except (struct.error, IndexError, InvalidParameter):  # it ends too early, or holds an impossible epsilon
            raise _corrupt() from None
        if record.to_bytes() != data:  # unknown flags, more behind it, an entry twice, a delta written otherwise
            raise _corrupt()
        return record

    @classmethod
    def _read(cls, data: bytes) -> Record:
        flags, at = data[0], 1
        budget = None
        if flags & HAS_BUDGET:
            budget = Budget(*BUDGET.unpack_from(data, at))
            at += BUDGET.size
        length = None
        if flags & HAS_LENGTH:
            (length,) = LENGTH.unpack_from(data, at)
            at += LENGTH.size
        (count,) = ENTRY_COUNT.unpack_from(data, at)
        at += ENTRY_COUNT.size
        entries = {}
        for _ in range(count):
            identity = data[at : at + ENTRY_IDENTITY_BYTES]
            at += ENTRY_IDENTITY_BYTES
            contributions, epsilon, digits = ENTRY.unpack_from(data, at)
            at += ENTRY.size
            delta = saved_delta(data[at : at + digits])
            if delta is None:
                raise _corrupt()
            at += digits
            if not 1 <= contributions <= MAX_LENGTH:
                raise _corrupt()
            entries[identity] = Spent(PrivacyParameters(epsilon * EPSILON_STEP, delta), contributions)
        if length is not None and not 1 <= length <= MAX_LENGTH:
            raise _corrupt()
        ledger = LedgerRecord(entries, length, closed=bool(flags & CLOSED))
        return cls(budget, ledger, incomplete=bool(flags & INCOMPLETE))


def saved_delta(text: bytes) -> Decimal | None:
    """Return a delta that was saved as text; None if it is no finite number, or of no sane size."""
    try:
        delta = Decimal(text.decode("ascii"))
    except (UnicodeDecodeError, InvalidOperation):
        return None
    exponent = delta.as_tuple().exponent  # a letter for infinities and NaN
    sane = isinstance(exponent, int) and exponent >= DELTA_EXPONENT_MIN and not delta.is_signed()
    return delta if sane else None


def _corrupt() -> CorruptSummary:
    return CorruptSummary("the record of what was spent contradicts itself. Save the summary again.")
