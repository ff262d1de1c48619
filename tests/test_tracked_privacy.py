"""The privacy of tracked labels and of sketches, measured from outside, on neighbours that tell most.

Whole public releases, with fresh noise each, of two neighbours; an event that is much likelier on one side than the
promise allows is an alarm. The same audit is seen to find noise of half the scale, noise that forgets the depth, parts
that each spend everything, and thresholds without the errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import beta as beta_law

import dptop
from dptop import noise
from dptop.envelope import CountMinError, Envelope, LabelEnvelope
from dptop.envelope.rows import EQUAL_FINGERPRINTS
from dptop.mechanism import SketchNoise, StableThreshold
from dptop.privacy import PrivacyParameters, floor_epsilon
from dptop.release import Request, public_labels, release_as, tracked_envelope, tracked_selected

if TYPE_CHECKING:
    from fractions import Fraction


Event = Callable[[dict[Any, int], tuple[int, ...]], tuple[bool, ...]]
"""From the released counts, and the noisy minimum if there is one, to which events happened."""

ALARM = 1e-6


class Audit(NamedTuple):
    long: list[Any]
    short: list[Any]
    empty: Callable[[], Any]
    ask: dict[str, Any]
    events: Event
    runs: int = 3000
    fresh: bool = False  # whether each run has a new summary, for noise that is in its cells


def outcomes(audit: Audit, stream: list[Any]) -> Any:
    """Return how often each event happens."""
    total: Any = 0
    summary: Any = None
    request = Request(**audit.ask)
    for _ in range(audit.runs):
        if summary is None or audit.fresh:
            summary = audit.empty()
            summary.extend(stream)
        summary._ledger.entries.clear()  # many releases of one stream, each judged by itself
        result = release_as(request, summary)
        counts = {row.item: row.count for row in result}
        total = total + np.array(audit.events(counts, result.noisy_minimum), dtype=int)
    return total


def excess(audit: Audit) -> float:
    """Return the largest P[E] - e^epsilon P'[E] - delta that is certain, but for a chance of 1e-6 for all together.

    Over events and their complements, in both directions, by exact (Clopper-Pearson) bounds of the chances.
    """
    runs = audit.runs
    p, q = (outcomes(audit, stream) for stream in (audit.long, audit.short))
    assert p.any(), "events that never happen tell nothing"
    assert q.any(), "events that never happen tell nothing"
    alpha = ALARM / (8 * len(p))
    largest = -math.inf
    for a, b in ((p, q), (q, p), (runs - p, runs - q), (runs - q, runs - p)):
        low = np.where(a > 0, beta_law.ppf(alpha, np.maximum(a, 1), runs - a + 1), 0.0)
        high = np.where(b < runs, beta_law.isf(alpha, b + 1, np.maximum(runs - b, 1)), 1.0)
        found = low - math.exp(audit.ask["epsilon"]) * high - audit.ask["delta"]
        largest = max(largest, float(found.max()))
    return largest


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibrate once, and leave out intervals, which are made of what is released and of nothing else."""
    monkeypatch.setattr(StableThreshold, "of", staticmethod(lru_cache(StableThreshold.of)))
    monkeypatch.setattr(SketchNoise, "laplace", staticmethod(lru_cache(SketchNoise.laplace)))
    monkeypatch.setattr(SketchNoise, "gaussian", staticmethod(lru_cache(SketchNoise.gaussian)))
    monkeypatch.setattr(StableThreshold, "intervals", lambda self, counts, *a, **k: [(0, 2**63)] * len(counts))

    @cache
    def error(width: int, depth: int, made: SketchNoise, length: int) -> CountMinError:
        return CountMinError(width, depth, length, made.cells, sharing=EQUAL_FINGERPRINTS)

    def error_of(sketch: Any, noisy: Any, made: SketchNoise, length: int, allowed: float) -> CountMinError:
        assert isinstance(sketch, dptop.CountMin)  # for which it is a function of public numbers
        return error(sketch.width, sketch.depth, made, length)

    monkeypatch.setattr(public_labels, "smallest_by_bisection", lambda holds: 2**63)
    for module in (tracked_envelope, tracked_selected, public_labels):
        monkeypatch.setattr(module, "around", lambda error, estimates, *a: [(0, 2**63)] * len(estimates))
    for module in (tracked_envelope, tracked_selected):
        monkeypatch.setattr(module, "error_of", error_of)
    for name in ("fixed_labels", "noise_at_release", "noise_first"):
        monkeypatch.setattr(tracked_envelope, name, lru_cache(getattr(tracked_envelope, name)))


# ---- neighbours and events


def from_on(label: Any, count: int) -> Event:
    """Events of one label's count: with Laplace noise, counts from the larger true one on tell most."""
    return lambda counts, _: tuple(label in counts and counts[label] >= count + i for i in (-2, -1, 0, 1, 2, 4))


def appears(label: Any) -> Event:
    """Events of a label that one side alone tracks. That it is released may never happen; that it is not, always."""
    return lambda counts, _: (label in counts, label not in counts)


def selected_and_counted(label: Any, count: int) -> Event:
    """Events of both parts: the label's counter passes a minimum that is not low, and its count is large as well."""

    def events(counts: dict[Any, int], minima: tuple[int, ...]) -> tuple[bool, ...]:
        found = label in counts and minima[0] >= 0
        return (found, *(found and counts[label] >= count + i for i in (-1, 0, 1)))

    return events


def sketch_of(depth: int) -> dptop.CountMin:
    return dptop.CountMin(64, depth)


def tracking(depth: int, capacity: int, candidates: str = "space-saving", width: int = 64) -> Callable[[], Any]:
    return lambda: dptop.Tracked(dptop.CountMin(width, depth), capacity, candidates)


def noise_first(depth: int, capacity: int, epsilon: float, width: int = 128) -> Callable[[], Any]:
    base = dptop.CountMin(width, depth)
    return lambda: dptop.Tracked(base.with_noise(epsilon=epsilon), capacity, "estimates")


EPSILON = 1.0
SHORT = [["a"] * n for n in (300, 301)]
OFFSET = StableThreshold.calibrate(epsilon=0.5, delta=1e-3).offset
NEAR = [["a"] * n for n in (OFFSET - 1, OFFSET)]
OFFSET_OF_ALL = StableThreshold.calibrate(epsilon=1.0, delta=1e-3).offset
NEAR_OF_ALL = [["a"] * n for n in (OFFSET_OF_ALL - 1, OFFSET_OF_ALL)]

PUBLIC: dict[str, Any] = {"epsilon": EPSILON, "delta": 1e-9, "labels": ["a"], "noise": "laplace"}
SELECTED: dict[str, Any] = {"epsilon": EPSILON, "delta": 1e-3, "noise": "laplace"}
ENVELOPE: dict[str, Any] = {
    "epsilon": EPSILON,
    "delta": 2e-2,
    "mechanism": "envelope",
    "noise": "laplace",
    "length": 301,
}
FIRST = {key: value for key, value in ENVELOPE.items() if key != "noise"}

# K = 2: on one side the last item has taken the place of "a", whose count is floor(N/K).
BOTH = [label for label in "ab" for _ in range(20)]
# K + 1 labels with 5 items each; one more of the last, and it takes the place of one of the others.
CROWD = [label for label in range(41) for _ in range(5)]

AUDITS: dict[str, Audit] = {
    "declared labels": Audit(SHORT[1], SHORT[0], lambda: sketch_of(3), PUBLIC, from_on("a", 301)),
    "declared labels, noise first": Audit(
        SHORT[1],
        SHORT[0],
        lambda: sketch_of(3).with_noise(epsilon=1.0),
        {key: value for key, value in PUBLIC.items() if key != "noise"},
        from_on("a", 301),
        fresh=True,
    ),
    "selected, count": Audit(SHORT[1], SHORT[0], tracking(3, 4), SELECTED, from_on("a", 301), runs=6000),
    "selected, both parts": Audit(
        NEAR[1], NEAR[0], tracking(1, 4), SELECTED, selected_and_counted("a", OFFSET), runs=7000
    ),
    "selected, both parts with everything": Audit(
        NEAR_OF_ALL[1],
        NEAR_OF_ALL[0],
        tracking(1, 4),
        SELECTED,
        selected_and_counted("a", OFFSET_OF_ALL),
        runs=6000,
    ),
    "envelope of SpaceSaving, count": Audit(SHORT[1], SHORT[0], tracking(3, 4), ENVELOPE, from_on("a", 301)),
    "envelope of SpaceSaving, label": Audit(
        [*BOTH, "c"], BOTH, tracking(2, 2), ENVELOPE | {"length": 41}, appears("a")
    ),
    "envelope of estimates, count": Audit(
        SHORT[1], SHORT[0], tracking(3, 40, "estimates", 128), ENVELOPE, from_on("a", 301)
    ),
    "envelope of estimates, label": Audit(
        [*CROWD, 40], CROWD, tracking(3, 40, "estimates", 256), ENVELOPE | {"length": 206}, appears(40), runs=2000
    ),
    "noise first, count": Audit(SHORT[1], SHORT[0], noise_first(3, 40, 1.0), FIRST, from_on("a", 301), fresh=True),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", AUDITS)
def test_releases_of_neighbours_are_hard_to_tell_apart(name: str) -> None:
    """P[E] <= e^epsilon P'[E] + delta for telling events, both ways; and these do happen."""
    audit = AUDITS[name]
    found = excess(audit)
    assert found <= 0, f"{found} above delta for certain; false once in 10^6 audits, so look for a cause"


# ---- broken copies


def with_half_the_noise_in_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    numerator = SketchNoise.numerator.fget  # type: ignore[attr-defined]  # a property
    monkeypatch.setattr(SketchNoise, "numerator", property(lambda self: 2 * numerator(self)))


def with_half_of_all_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    with_half_the_noise_in_cells(monkeypatch)
    draw = noise.draw
    monkeypatch.setattr(noise, "draw", lambda epsilon, count, seed=None: draw(2 * epsilon, count, seed))


def without_the_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    numerator = SketchNoise.numerator.fget  # type: ignore[attr-defined]  # a property
    monkeypatch.setattr(SketchNoise, "numerator", property(lambda self: self.depth * numerator(self)))


def with_all_of_epsilon_for_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(whole: PrivacyParameters, made: SketchNoise | None) -> tuple[Fraction, Fraction]:
        return whole.epsilon, floor_epsilon(whole.epsilon)

    monkeypatch.setattr(tracked_selected, "_halves", both)


def without_errors_in_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Envelope, LabelEnvelope):
        monkeypatch.setattr(kind, "keeps", lambda self, v, length, capacity: v > length // capacity)


BROKEN = [
    *[(name, broken) for name in AUDITS if name.endswith(("count", "labels", "first")) and name != "selected, count"
      for broken in (with_half_the_noise_in_cells, without_the_depth)],
    ("selected, count", without_the_depth),
    ("selected, both parts", with_half_of_all_noise),
    ("selected, both parts with everything", with_all_of_epsilon_for_each_part),
    ("envelope of SpaceSaving, label", without_errors_in_the_threshold),
    ("envelope of estimates, label", without_errors_in_the_threshold),
]  # fmt: skip


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("name", "broken"), BROKEN)
def test_a_broken_release_is_told_apart(
    name: str, broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same audit of the same neighbours finds each fault."""
    broken(monkeypatch)
    audit = AUDITS[name]
    if broken is without_the_depth and audit.ask is not SELECTED:  # three times epsilon shows in fewer runs
        audit = audit._replace(runs=1000)
    # with the runs of the audit a fault may stay unseen a few times in a hundred, with more of them it does not: of the
    # one that showed least, the mean excess with twice the runs was nine of its standard deviations
    assert any(excess(audit._replace(runs=times * audit.runs)) > 0 for times in (1, 2, 4))
