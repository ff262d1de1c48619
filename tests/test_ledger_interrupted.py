"""A charge that is interrupted, forked, or met by another one leaves ledgers that can be charged."""

from __future__ import annotations

import _thread
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

import dptop
from commands import PATIENCE
from dptop import ledger as module
from dptop.ledger import Ledger, Spent, charge_all
from dptop.privacy import PrivacyParameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

SPENT: Final = Spent(PrivacyParameters.of(1.0, 1e-9), 1)
BUDGET: Final = dptop.Budget(8.0, 1e-6)
SOON: Final = 10
"""Seconds after which a thread is taken to wait forever; nothing here is timed."""

Charged = list[tuple[Ledger, dptop.Budget | None]]


def ledgers(number: int = 2) -> Charged:
    return [(Ledger(bytes([i]) * 16), BUDGET) for i in range(number)]


def in_a_thread(act: Callable[[], object]) -> Exception | str | None:
    """Do something in another thread; return the error it raises, if any, or that it does not come to its end."""
    raised: list[Exception | None] = []

    def work() -> None:
        try:
            act()
        except Exception as error:
            raised.append(error)
        else:
            raised.append(None)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(SOON)
    return raised[0] if raised else "it waits forever"


class Trip:
    """What makes a signal come when it is asked for an item: Python looks for signals after a call, not after that."""

    __getitem__ = _thread.interrupt_main


TRIP: Final[Any] = Trip()


def interrupted(instruction: int, act: Callable[[], object]) -> BaseException | None:
    """Do something, and have Ctrl-C come at an instruction of dptop/ledger.py; return what that raises.

    The signal comes as from outside: Python runs its handler where it looks for signals next. None if there are fewer
    instructions.
    """
    left = instruction

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != module.__file__:
            return None
        frame.f_trace_opcodes = True
        left -= event == "opcode"
        if left == 0:
            sys.settrace(None)
            _ = TRIP[signal.SIGINT]  # the last that is done here: no call follows, in which the handler would run
        return trace

    outer = sys.gettrace()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    sys._getframe().f_trace_opcodes = True  # on any frame, or Python 3.12 tells of no instruction the first time
    try:
        sys.settrace(trace)
        act()
        sys.settrace(None)
    except BaseException as error:  # whatever it is, the caller looks at it
        return error
    finally:
        sys.settrace(outer)
        signal.signal(signal.SIGINT, handler)
    assert left > 0
    return None


@pytest.mark.parametrize("length", [None, 1000])
def test_an_interruption_at_any_instruction_of_a_charge_leaves_ledgers_that_can_be_charged(length: int | None) -> None:
    """By any thread, and while the interruption is still looked at: nothing goes on to be charged, nothing waits."""
    seen: list[BaseException] = []
    charged: set[int] = set()
    for instruction in itertools.count(1):
        both = ledgers()
        error = interrupted(instruction, partial(charge_all, both, SPENT, length))
        if error is None:
            break
        assert isinstance(error, KeyboardInterrupt), repr(error)
        seen.append(error)  # and so what its frames hold
        charged.add(sum(len(ledger.entries) for ledger, _ in both))
        refused = in_a_thread(partial(charge_all, both[::-1], SPENT))
        assert refused is None, f"after instruction {instruction}: {refused}"
        charge_all(both, SPENT)
    assert len(seen) > 200
    assert charged == {0, 1, 2}


def test_charges_of_the_same_shards_in_any_order_do_not_wait_for_each_other() -> None:
    """Two threads begin together, each with the shard that is the other's last; both charges are made."""
    both = ledgers()
    begun = threading.Barrier(2)

    class Meeting(Charged):
        """Shards of which the first is taken in both threads before a second is, where that can be."""

        def __iter__(self) -> Iterator[tuple[Ledger, dptop.Budget | None]]:
            for pair in super().__iter__():
                yield pair
                with contextlib.suppress(threading.BrokenBarrierError):  # one has to wait until the other is done
                    begun.wait(0.2)

    other = threading.Thread(target=charge_all, args=(Meeting(both[::-1]), SPENT), daemon=True)
    other.start()
    assert in_a_thread(partial(charge_all, Meeting(both), SPENT)) is None
    other.join(SOON)
    assert [len(ledger.entries) for ledger, _ in both] == [2, 2]


FORKED = """
import os, signal, sys, threading
import dptop
from dptop import ledger

summary = dptop.SpaceSaving(10, budget=dptop.Budget(8.0, 1e-6))
summary.update("a", 500)
reached, ended = threading.Event(), threading.Event()

def ask():
    dptop.release(summary, epsilon=1.0, delta=1e-9)

def wait():
    reached.set()
    ended.wait()

def hold():
    with ledger._lock:
        wait()

class Entries(dict):
    def values(self):
        if threading.current_thread() is not threading.main_thread():
            wait()
        return super().values()

summary._ledger.entries = Entries()
threading.Thread(target={"lock": hold, "charge": ask}[sys.argv[1]], daemon=True).start()
reached.wait()
child = os.fork()
signal.alarm(20)  # ends whoever waits forever
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
ask()
assert len(summary._ledger.entries) == 1
"""


@pytest.mark.parametrize("other", ["lock", "charge"])
def test_a_fork_can_charge_whatever_another_thread_was_doing(other: str) -> None:
    """That thread is not there to give the lock back, or to end its charge: the child has a lock of its own."""
    subprocess.run([sys.executable, "-c", FORKED, other], check=True, timeout=PATIENCE)


def test_a_fork_in_the_middle_of_a_charge_does_not_charge_twice() -> None:
    """A signal's handler may fork: the child goes on with the charge once that returns, and so makes no other."""
    [(ledger, budget)] = ledgers(1)
    children: list[int] = []

    class Entries(dict[bytes, Spent]):
        """Entries whose first look comes with a fork, as a signal's handler would run."""

        def values(self) -> Any:
            ledger.entries = dict(self)
            children.append(os.fork())
            if not children[0]:
                signal.alarm(SOON)
                try:
                    ledger.charge(SPENT, budget)
                except dptop.BudgetExhausted as error:
                    os._exit("being charged" not in str(error))
                finally:
                    os._exit(2)
            return super().values()

    ledger.entries = Entries()
    ledger.charge(SPENT, budget)
    assert os.waitpid(children[0], 0)[1] == 0
    assert len(ledger.entries) == 1
