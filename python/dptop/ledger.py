"""What was spent on a stream, and what may still be: every release is charged here before any noise is drawn."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from dptop.errors import BudgetExhausted, InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dptop.privacy import Budget, PrivacyParameters

__all__ = ["Closed", "Ledger", "LedgerRecord", "Spent", "charge_all"]

IDENTITY_BYTES: Final = 16
"""Of a stream."""
ENTRY_IDENTITY_BYTES: Final = 16


class Spent(NamedTuple):
    """What one release spent: its total, for a unit that owns items of total weight at most `max_contributions`."""

    parameters: PrivacyParameters
    max_contributions: int


@dataclass(frozen=True)
class LedgerRecord:
    """A ledger as it is saved: the entries, the length that was declared, and whether no release may follow."""

    entries: dict[bytes, Spent] = field(default_factory=dict)
    length: int | None = None
    closed: bool = False


class Closed(Enum):
    """Why a stream is released no more, as the error says it. A saved form tells only that it is."""

    TOO_LONG = (
        "a stream that was longer than its declared length is not released: its length is not found by asking again."
        " Count it again, with a bound that you know without the data."
    )
    MERGED = (
        "a sketch that was merged into another is not released: the other one is, for both. Release that one, or count"
        " this part again."
    )
    HANDED_OVER = (
        "a sketch whose noise was handed to Tracked is not released: that noise must hide one stream. Release what"
        " tracks beside it, or make another one with with_noise()."
    )
    OTHERWISE_DECLARED = (
        "a stream whose copies declared different lengths is not released: the answers to both tell of its length."
        " Count it again, with one bound that you know without the data."
    )
    SOMEHOW = (
        "a stream that was longer than its declared length, whose copies declared different lengths, or that was merged"
        " into another or handed to Tracked, is not released: its length is not found by asking again, and the other"
        " one is released for both. Count it again, with a bound that you know without the data."
    )


class Charge:
    """One charge of one ledger or several, while it lasts: made by whoever has the lock, and over with it."""

    def __init__(self) -> None:
        self.lasts = True
        self.lock: object = _lock


_lock = threading.RLock()
"""One for all ledgers, as a charge may be of several. Whoever has it may come again: a signal's handler may charge."""


def _renew_lock() -> None:
    """Give the child of a fork a lock of its own, where another thread has the old one and is not there to return it.

    A charge of that thread is over then. One of the thread that forked, from a signal's handler, goes on.
    """
    global _lock
    if _lock.acquire(blocking=False):
        _lock.release()
    else:
        _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


class Ledger:
    """What has been spent on one stream. Copies and unpickled twins of a summary share it within a process.

    Without a budget there is a single release, of any size. With one, the sums of epsilon and of delta stay within it,
    and all releases protect the same unit: what protects one item says little of a unit with many.
    An entry carries a random identity, so that the record of a saved copy can be united with the process's own.
    """

    _known: ClassVar[dict[bytes, Ledger]] = {}  # never forgotten while the process lives: a copy may still be loaded

    def __init__(self, identity: bytes) -> None:
        self.identity = identity
        self.entries: dict[bytes, Spent] = {}
        self.length: int | None = None
        self.closed = False
        self._why = Closed.SOMEHOW
        self._charge: Charge | None = None
        self._claimed = False  # by a merge that may still give it back

    @classmethod
    def of(cls, identity: bytes) -> Ledger:
        """Return the process's one ledger of the stream with this identity."""
        return cls._known.setdefault(identity, cls(identity))  # one step, also for signal handlers and finalisers

    def unite(self, record: LedgerRecord) -> None:
        """Add the record of a saved copy; entries already known count once."""
        with _lock:
            self.entries.update(record.entries)
            if record.closed:
                self.closed, self._claimed = True, False  # a merge that gives back must not open it again
            if self.length is None:
                self.length = record.length
            elif record.length not in (None, self.length):  # declared in two processes
                self.closed, self._why, self._claimed = True, Closed.OTHERWISE_DECLARED, False

    def close(self, why: Closed = Closed.TOO_LONG) -> None:
        """Allow no further release, also of copies, whatever the budget."""
        with _lock:
            self.closed, self._why, self._claimed = True, why, False

    def hand_over(self) -> None:
        """Close it for the summary that takes over from this one.

        Raises:
            InvalidParameter: it is closed already, or something was released: there is nothing to hand over.
        """
        with _lock:
            if self.closed or self._is_charged or self.entries:
                raise InvalidParameter(
                    "noise in the cells must hide one stream; this sketch was released, or handed over before."
                    " Make another one with with_noise()."
                )
            self.closed, self._why = True, Closed.HANDED_OVER  # as in `claim`

    def claim(self) -> LedgerRecord | None:
        """Close it for the sketch that this one's is merged into, and return what was spent, all in one step.

        None if it is closed already.
        """
        with _lock:
            if self.closed or self._is_charged or self.length is not None:  # a declared length is that of one part
                return None
            self.closed, self._why, self._claimed = (
                True,
                Closed.MERGED,
                True,
            )  # no call in between, where a signal's handler might run
            return LedgerRecord(dict(self.entries))

    def give_back(self) -> None:
        """Undo `claim`, where nothing was merged."""
        with _lock:
            if self._claimed:  # and not closed for another reason meanwhile
                self.closed = self._claimed = False

    @property
    def _is_charged(self) -> bool:
        """Whether a release is being charged: in this thread, if that has the lock, so that a handler asks."""
        return self._charge is not None and self._charge.lasts and self._charge.lock is _lock

    def record(self) -> LedgerRecord:
        """Return what there is now, for a saved copy."""
        return LedgerRecord(dict(self.entries), self.length, self.closed)  # no lock: each is taken in one step

    def charge(self, new: Spent, budget: Budget | None, length: int | None = None) -> None:
        """Record what a release spends, or refuse it. Called before any noise is drawn: what fails later stays spent.

        Args:
            new: what it spends.
            budget: what all releases may spend.
            length: the declared length of the stream, if any. A stream has one: from answers to several, its true
                length could be told.

        Raises:
            BudgetExhausted: it does not fit.
            InvalidParameter: all earlier releases protected another unit, or declared another length.
        """
        charge_all([(self, budget)], new, length)

    def _check(self, new: Spent, budget: Budget | None, length: int | None) -> None:
        self._check_length(length)
        self._check_budget(new, budget)

    def _enter(self, new: Spent, length: int | None) -> None:
        self.entries[os.urandom(ENTRY_IDENTITY_BYTES)] = new
        self.length = self.length if length is None else length

    def _check_length(self, length: int | None) -> None:
        if self.closed:
            raise BudgetExhausted(self._why.value)
        if length is not None and self.length not in (None, length):
            raise InvalidParameter(
                f"length must be the one declared before, as its answer tells of the stream; got {length} after"
                f" {self.length}. Use the same one, or none."
            )

    def _check_budget(self, new: Spent, budget: Budget | None) -> None:
        spent = list(self.entries.values())
        if budget is None:
            if spent:
                raise BudgetExhausted(
                    f"one release per stream unless a budget declares more; {len(spent)} already made."
                    " Construct the summary with budget=dptop.Budget(epsilon, delta), or summarize with --budget, to"
                    " release more than once."
                )
            return
        units = {s.max_contributions for s in spent}
        if len(units) > 1:
            raise BudgetExhausted(
                "all releases within one budget must protect the same unit; copies of this stream were released for"
                " different ones. Count it again."
            )
        if units - {new.max_contributions}:
            raise InvalidParameter(
                "all releases within one budget must protect the same unit;"
                f" got max_contributions={new.max_contributions} after {units.pop()}. Use the same one."
            )
        epsilon = sum((s.parameters.epsilon for s in spent), new.parameters.epsilon)
        delta = sum((Fraction(s.parameters.delta) for s in spent), Fraction(new.parameters.delta))
        if epsilon > budget.total.epsilon or delta > Fraction(budget.total.delta):
            raise BudgetExhausted(
                f"the sums of epsilon and delta must stay within budget ({budget.epsilon}, {budget.delta});"
                f" this release would bring them to ({float(epsilon)}, {float(delta)})."
                " Release with less, or declare a larger budget before the stream is read."
            )


def charge_all(charged: Sequence[tuple[Ledger, Budget | None]], new: Spent, length: int | None = None) -> None:
    """Charge one release to the ledgers of several shards, each with its budget: to all of them, or to none.

    Arguments and errors as in `Ledger.charge`. An interruption in the middle may leave some charged, and nothing is
    released then.
    """
    with _lock:
        if any(ledger._is_charged for ledger, _ in charged):
            raise BudgetExhausted("another release of the stream is being charged. Release again when it is done.")
        charge = Charge()
        try:
            for ledger, _ in charged:
                ledger._charge = charge
            for ledger, budget in charged:
                ledger._check(new, budget, length)
            if length is not None and len(charged) > 1 and any(ledger.length is not None for ledger, _ in charged):
                # with shards of known lengths beside it, one bound after the other could be tried on a shard
                raise InvalidParameter(
                    "length must be declared in one release of several shards at most, as its answer tells of their"
                    " sum; one was declared for a shard before. Leave it out."
                )
            for ledger, _ in charged:
                ledger._enter(new, length)
        finally:
            charge.lasts = False  # for all of them in one step, which nothing interrupts
