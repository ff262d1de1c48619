"""One release per stream unless a budget declares more, whatever way the summary takes meanwhile."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import dptop
from dptop import noise
from saved import released_elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def counted(budget: dptop.Budget | None = None) -> dptop.SpaceSaving:
    summary = dptop.SpaceSaving(10, budget=budget)
    summary.extend(["a"] * 500 + ["b"] * 300)
    return summary


def release(summary: dptop.Summary, epsilon: float = 1.0, delta: float = 1e-9) -> dptop.Release:
    labels = ["a"] if isinstance(summary, dptop.CountMin) else None
    return dptop.release(summary, epsilon=epsilon, delta=delta, labels=labels)


def through_pickle(summary: dptop.SpaceSaving) -> dptop.SpaceSaving:
    twin = pickle.loads(pickle.dumps(summary))
    assert isinstance(twin, dptop.SpaceSaving)
    return twin


WAYS: list[Callable[[dptop.SpaceSaving], dptop.SpaceSaving]] = [
    lambda summary: summary,
    copy.copy,
    copy.deepcopy,
    through_pickle,
    lambda summary: dptop.SpaceSaving.from_bytes(summary.to_bytes()),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_second_release_is_refused(way: Callable[[dptop.SpaceSaving], dptop.SpaceSaving]) -> None:
    """A twin made before the release and one made after it share the ledger with the original, in all directions."""
    original = counted()
    before = way(original)
    release(original)
    for summary in (original, before, way(original), way(before)):
        with pytest.raises(dptop.BudgetExhausted, match="budget="):
            release(summary)
    other = counted()
    twin = way(other)
    release(twin)
    with pytest.raises(dptop.BudgetExhausted):
        release(other)


def test_a_saved_file_shares_the_ledger(tmp_path: Path) -> None:
    """A file saved before the release knows of it, within the process; one saved after it knows anywhere."""
    summary = counted()
    summary.save(tmp_path / "before")
    release(summary)
    summary.save(tmp_path / "after")
    for name in ("before", "after"):
        with pytest.raises(dptop.BudgetExhausted):
            release(dptop.load(tmp_path / name))
    code = "import dptop, sys; dptop.release(dptop.load(sys.argv[1]), epsilon=1.0, delta=1e-9)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "after")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "dptop.errors.BudgetExhausted" in done.stderr


def test_a_release_is_not_forgotten_with_its_summary() -> None:
    """Bytes saved before the release stay spent after every summary of the stream is gone."""
    summary = counted()
    data = summary.to_bytes()
    release(summary)
    del summary
    gc.collect()
    with pytest.raises(dptop.BudgetExhausted):
        release(dptop.SpaceSaving.from_bytes(data))


def test_a_loaded_release_is_not_forgotten() -> None:
    """What a loaded twin knows of spending counts for twins that were there before, and stays when it is gone."""
    summary = counted()
    data = summary.to_bytes()
    release(summary)
    spent = summary.to_bytes()
    identity = summary._tables.identity
    del summary
    type(counted()._ledger)._known.pop(identity)  # as in another process
    gc.collect()
    fresh = dptop.SpaceSaving.from_bytes(data)
    assert not fresh._ledger.entries
    dptop.SpaceSaving.from_bytes(spent)
    gc.collect()
    with pytest.raises(dptop.BudgetExhausted):
        release(fresh)


def test_streams_have_ledgers_of_their_own() -> None:
    """Equal data in two summaries is two streams: each has its release."""
    for summary in [counted() for _ in range(3)]:
        release(summary)


@pytest.mark.parametrize("part", [0.1, 0.7, 1e-3, 1 / 3])
@pytest.mark.parametrize("delta", [1e-9, 0.1, 1e-300])
def test_a_budget_allows_what_fits_exactly(part: float, delta: float) -> None:
    """Three parts of 0.1 fit within 0.3, as the numbers are written, and a fourth does not."""
    parts = 3 * Fraction(part)
    budget = dptop.Budget(float(parts), float(3 * Decimal(repr(delta))))
    summary = counted(budget)
    for _ in range(3):
        release(copy.copy(summary), part, delta)
    with pytest.raises(dptop.BudgetExhausted, match="sums"):
        release(summary, part, 5e-324)


def test_the_budgets_of_the_handbook() -> None:
    """0.1 three times is within 0.3, 1e-9 three times within 3e-9, though floats would deny it; more is not."""
    assert 0.1 + 0.1 + 0.1 > 0.3
    assert 1e-9 + 1e-9 + 1e-9 != 3e-9
    summary = counted(dptop.Budget(0.3, 3e-9))
    for _ in range(3):
        release(summary, 0.1, 1e-9)
    for epsilon, delta in ((2.0**-20, 5e-324), (0.1, 1e-9)):
        with pytest.raises(dptop.BudgetExhausted):
            release(summary, epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.1, 1e-10), (0.1, 2e-9), (64, 0.5)])
def test_what_does_not_fit_spends_nothing(epsilon: float, delta: float) -> None:
    """A release above the budget, in epsilon or in delta, is refused, and the whole budget is still there."""
    summary = counted(dptop.Budget(1.0, 1e-9))
    with pytest.raises(dptop.BudgetExhausted):
        release(summary, epsilon, delta)
    assert not summary._ledger.entries
    release(summary, 1.0, 1e-9)


def test_parts_of_different_sizes() -> None:
    """Both sums count: a release is refused where only one of them is used up."""
    summary = counted(dptop.Budget(2.0, 1e-6))
    release(summary, 1.0, 1e-6)
    with pytest.raises(dptop.BudgetExhausted):
        release(summary, 1.0, 1e-12)
    other = counted(dptop.Budget(1.0, 1e-6))
    release(other, 1.0, 1e-9)
    with pytest.raises(dptop.BudgetExhausted):
        release(other, 0.001, 1e-9)


@pytest.mark.parametrize(("budget", "winners"), [(None, 1), ((0.5, 1e-6), 5)])
def test_threads_race_for_the_last_release(budget: tuple[float, float] | None, winners: int) -> None:
    """Of many threads with twins of one summary exactly as many release as the budget allows."""
    summary = counted(dptop.Budget(*budget) if budget else None)
    twins = [copy.copy(summary) for _ in range(16)]
    barrier = threading.Barrier(len(twins))
    outcomes: list[str] = []

    def work(twin: dptop.SpaceSaving) -> None:
        barrier.wait()
        try:
            release(twin, 0.1, 1e-9)
            outcomes.append("released")
        except dptop.BudgetExhausted:
            outcomes.append("refused")

    workers = [threading.Thread(target=work, args=(twin,)) for twin in twins]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (outcomes.count("released"), outcomes.count("refused")) == (winners, len(twins) - winners)


def test_an_error_after_the_charge_stays_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is charged a release may have drawn its noise: it is not given back."""
    summary = counted()

    def broken(*_: Any) -> list[int]:
        raise OSError("no entropy")

    with monkeypatch.context() as patch:
        patch.setattr(noise, "draw", broken)
        with pytest.raises(OSError, match="no entropy"):
            release(summary)
    with pytest.raises(dptop.BudgetExhausted):
        release(summary)


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0},
        {"delta": 2},
        {"top": 0},
        {"share": 2},
        {"confidence": 1},
        {"confidence": 1e-20},
        {"max_contributions": 0},
        {"mechanism": "best"},
        {"seed": -1},
        {"epsilon": 2.0**-20, "share": 0.1, "max_contributions": 4000},
    ],
)
def test_a_refused_argument_spends_nothing(arguments: dict[str, Any]) -> None:
    """After the error the stream still has its release."""
    summary = counted()
    with pytest.raises(dptop.InvalidParameter):
        dptop.release(summary, **({"epsilon": 1.0, "delta": 1e-9} | arguments))
    release(summary)


def test_a_seed_is_charged_too() -> None:
    """A release for tests is a release: seeded noise does not leave the stream fresh."""
    summary = counted()
    dptop.release(summary, epsilon=1.0, delta=1e-9, seed=1)
    with pytest.raises(dptop.BudgetExhausted):
        release(summary)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "abc", True, None, 2.0**-21, 65])
def test_a_budget_out_of_range_is_refused(value: Any) -> None:
    """The rules are those of a release."""
    with pytest.raises(dptop.InvalidParameter, match="epsilon must"):
        dptop.Budget(value, 1e-9)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "abc", True, None, 1, 2])
def test_a_budget_of_delta_out_of_range_is_refused(value: Any) -> None:
    """The rules are those of a release."""
    with pytest.raises(dptop.InvalidParameter, match="delta must"):
        dptop.Budget(1.0, value)


def test_a_budget_protects_one_unit() -> None:
    """What protects one item says little of a unit with many, so that their sums mean nothing together."""
    summary = dptop.SpaceSaving(10, budget=dptop.Budget(2.0, 1e-5))
    summary.extend([1] * 100)
    dptop.release(summary, epsilon=0.5, delta=1e-6, max_contributions=3)
    for other in (1, 4):
        with pytest.raises(dptop.InvalidParameter, match="the same unit"):
            dptop.release(summary, epsilon=0.5, delta=1e-6, max_contributions=other)
    again = dptop.SpaceSaving.from_bytes(summary.to_bytes())
    with pytest.raises(dptop.InvalidParameter, match="the same unit"):
        dptop.release(again, epsilon=0.5, delta=1e-6)
    dptop.release(summary, epsilon=0.5, delta=1e-6, max_contributions=3)
    assert len(summary._ledger.entries) == 2


def test_a_fork_has_a_ledger_of_its_own() -> None:
    """The documented limit: a process and its fork do not know of each other's releases."""
    summary = dptop.SpaceSaving(10)
    summary.extend([1] * 100)
    child = os.fork()
    if child == 0:  # no assertion leaves a child: its exit code tells
        try:
            dptop.release(summary, epsilon=1.0, delta=1e-6)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    dptop.release(summary, epsilon=1.0, delta=1e-6)


def test_a_save_around_a_reading_is_marked() -> None:
    """A save that an input begins and ends in, with another look at it between, may hold it in part."""
    summary = dptop.SpaceSaving(10)
    summary.extend(["a"] * 50)
    tables = summary._tables

    class Between:
        """The native summary, with an input that begins before the encoding and ends after it."""

        def __getattr__(self, name: str) -> object:
            return getattr(tables, name)

        def to_bytes(self, record: bytes) -> bytes:
            summary._tables = tables
            pieces = iter(["b"] * 65_536 + ["c"])
            encoded = []

            def items() -> Iterator[str]:
                for number, item in enumerate(pieces):
                    if number == 65_536:
                        encoded.append(tables.to_bytes(record))
                    yield item

            summary.extend(items())
            return encoded[0]

    summary._tables = Between()  # type: ignore[assignment]
    part = dptop.SpaceSaving.from_bytes(summary.to_bytes())
    with pytest.raises(dptop.SourceError, match="cut short"):
        dptop.release(part, epsilon=1.0, delta=1e-6)


def test_copies_released_for_different_units_are_spent() -> None:
    """Two processes released with different units; where their records meet, no unit fits both."""
    budget = dptop.Budget(10.0, 1e-3)
    summary = dptop.SpaceSaving(10, budget=budget)
    summary.extend(["a"] * 100)
    saved = summary.to_bytes()
    for unit in (1, 2):
        done = released_elsewhere(saved, max_contributions=unit)
        united = dptop.SpaceSaving.from_bytes(done.stdout)
    for unit_now in (1, 2):
        with pytest.raises(dptop.BudgetExhausted, match="same unit"):
            dptop.release(united, epsilon=1.0, delta=1e-6, max_contributions=unit_now)


def test_a_stream_has_one_declared_length() -> None:
    """Asking with one bound after the other would find the length; the same one, or none, is fine."""
    summary = dptop.SpaceSaving(10, budget=dptop.Budget(10.0, 1e-3))
    summary.extend(["a"] * 100)
    dptop.release(summary, epsilon=1.0, delta=1e-6, length=120)
    loaded = released_elsewhere(summary.to_bytes(), length=119)
    assert b"InvalidParameter: length must be the one declared before" in loaded.stderr
    for twin in (summary, copy.copy(summary)):
        for length in (119, 121):
            with pytest.raises(dptop.InvalidParameter, match="declared before"):
                dptop.release(twin, epsilon=1.0, delta=1e-6, length=length)
    dptop.release(summary, epsilon=1.0, delta=1e-6, length=120)
    dptop.release(summary, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("saves", [True, False], ids=["replaced", "read"])
@pytest.mark.parametrize("lengths", [(120, 120), (120, None), (None, 120), (120, 121), (121, 120)])
def test_copies_that_declared_different_lengths_are_closed(
    tmp_path: Path, lengths: tuple[int | None, int | None], saves: bool
) -> None:
    """Their answers together tell of the length. The same one twice, or one and none, leave the rest of the budget."""
    summary = dptop.SpaceSaving(10, budget=dptop.Budget(10.0, 1e-3))
    summary.extend(["a"] * 100)
    saved = summary.to_bytes()
    dptop.release(summary, epsilon=1.0, delta=1e-6, length=lengths[0])
    done = released_elsewhere(saved, **({} if lengths[1] is None else {"length": lengths[1]}))
    if saves:
        (tmp_path / "part").write_bytes(done.stdout)
        summary.save(tmp_path / "part")
    united = dptop.load(tmp_path / "part") if saves else dptop.SpaceSaving.from_bytes(done.stdout)
    for twin in (summary, united):
        if None in lengths or lengths[0] == lengths[1]:
            dptop.release(twin, epsilon=1.0, delta=1e-6)
            continue
        with pytest.raises(dptop.BudgetExhausted, match="copies declared different lengths"):
            dptop.release(twin, epsilon=1.0, delta=1e-6)


def test_a_handler_that_saves_or_releases_while_a_release_is_charged_neither_hangs_nor_spends_twice() -> None:
    """A signal may come at any place: also between the look at what was spent and the entry."""
    summary = dptop.SpaceSaving(10, budget=dptop.Budget(1.0, 1e-3))
    summary.extend(["a"] * 100)
    ledger = summary._ledger

    class Slow(dict[bytes, Any]):
        """Entries whose first look comes with an interruption, as a signal's handler would run."""

        def values(self) -> Any:
            ledger.entries = dict(self)
            saved.append(summary.to_bytes())
            with pytest.raises(dptop.BudgetExhausted, match="being charged"):
                dptop.release(summary, epsilon=1.0, delta=1e-6)
            return super().values()

    saved: list[bytes] = []
    ledger.entries = Slow()
    dptop.release(summary, epsilon=1.0, delta=1e-6)
    assert saved
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(summary, epsilon=1.0, delta=1e-6)


def test_a_finaliser_that_makes_summaries_does_not_hang() -> None:
    """The garbage collector may run anything at any place, also where a summary's ledger is looked up."""
    script = (
        "import gc, dptop\n"
        "class C:\n"
        " def __init__(self): self.me = self\n"
        " def __del__(self): dptop.SpaceSaving(4)\n"
        "for threshold in range(1, 200):\n"  # so that every allocation is the one that collects, some time
        " gc.set_threshold(threshold)\n"
        " for _ in range(20): C(); dptop.SpaceSaving(4)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def too_long() -> dptop.Summary:
    summary = counted(dptop.Budget(8.0, 1e-6))
    with pytest.raises(dptop.InvalidParameter, match="length must bound"):
        dptop.release(summary, epsilon=1.0, delta=1e-9, length=700)
    return summary


def merged() -> dptop.Summary:
    one = dptop.CountMin(8, 2)
    other = one.empty_copy()
    one.merge(other)
    return other


def handed_over() -> dptop.Summary:
    sketch = dptop.CountMin(8, 2).with_noise(epsilon=0.5)
    dptop.Tracked(sketch, 5)
    return sketch


def otherwise_declared() -> dptop.Summary:
    summary = counted(dptop.Budget(8.0, 1e-6))
    done = released_elsewhere(summary.to_bytes(), length=900)
    dptop.release(summary, epsilon=1.0, delta=1e-9, length=1000)
    dptop.Summary.from_bytes(done.stdout)
    return summary


CAUSES = {
    too_long: "longer than its declared length",
    otherwise_declared: "copies declared different lengths",
    merged: "merged into another",
    handed_over: "handed to Tracked",
}


@pytest.mark.parametrize("make", CAUSES)
def test_a_closed_ledger_says_why(make: Callable[[], dptop.Summary]) -> None:
    """And nothing of the other causes, also of a copy; one that is read where that is not known names them all."""
    closed = make()
    for summary in (closed, copy.copy(closed)):
        with pytest.raises(dptop.BudgetExhausted, match=CAUSES[make]) as caught:
            release(summary)
        assert [cause for cause in CAUSES.values() if cause in str(caught.value)] == [CAUSES[make]]
    data = closed.to_bytes()
    type(closed._ledger)._known.pop(closed._identity)  # as in another process
    read = dptop.Summary.from_bytes(data)
    assert read.to_bytes() == data
    with pytest.raises(dptop.BudgetExhausted) as caught:
        release(read)
    assert all(cause in str(caught.value) for cause in CAUSES.values())
