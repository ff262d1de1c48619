"""Intervals of shards hold for all labels at once, also of those that only some shards selected."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from scipy.stats import binomtest

import dptop
from containers import summary_of
from dptop.mechanism import LOCAL_SUMS, StableThreshold
from dptop.release import sharded
from dptop.release.shard_selection import ShardSelection
from shard_makers import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable


CONFIDENCE, RUNS, TINY = 0.5, 500, 1e-9


def streams(seed: int, offset: int) -> list[list[int]]:
    """Return three streams: a label that is frequent in one and just below the threshold in others, and evictions."""
    generator = random.Random(seed)
    found = []
    for shard in range(3):
        settled = [label for label in range(8) for _ in range(150)]
        generator.shuffle(settled)
        near = [100 + i for i in range(3) for _ in range(200 if i == shard else offset - generator.randrange(2))]
        generator.shuffle(near)
        found.append(settled + list(range(200, 208)) + near)
    return found


def held(form: str, partition: str = "as-stored") -> int:
    """Return in how many of RUNS releases every interval holds its true count."""
    total = 0
    offset = StableThreshold.calibrate(epsilon=1.0 if form == LOCAL_SUMS else 0.5, delta=TINY).offset
    for run in range(RUNS):
        parts = streams(run, offset)
        if partition == "label":
            joined = [x for stream in parts for x in stream]
            parts = [[x for x in joined if x % 3 == j] for j in range(3)]
        true: Counter[Any] = Counter(x for stream in parts for x in stream)
        shards = dptop.Sharded([summary_of(stream, 12) for stream in parts], partition)
        result = dptop.release(shards, epsilon=1.0, delta=TINY, mechanism=form, confidence=CONFIDENCE, seed=run)
        total += all(row.low <= true[row.item] <= row.high for row in result)
    return total


@pytest.mark.parametrize("partition", ["as-stored", "label"])
@pytest.mark.parametrize("form", FORMS)
def test_intervals_hold_for_all_labels_at_once(form: str, partition: str) -> None:
    """Also of labels that some shards track and did not select."""
    found = held(form, partition)
    chance = binomtest(found, RUNS, CONFIDENCE, alternative="less").pvalue
    assert chance > 1e-6, f"{found} of {RUNS} at confidence {CONFIDENCE}: a false alarm once in 10^6"


def forget_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShardSelection, "_ceiling", lambda *_: 0)


def forget_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShardSelection, "_ceiling", lambda self, stable, minima, reach: max(0, reach + max(minima)))


def forget_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharded, "simultaneous_quantile", lambda *_: 0)


@pytest.mark.parametrize("broken", [forget_the_others, forget_the_threshold, forget_the_noise])
@pytest.mark.parametrize("form", FORMS)
def test_an_interval_that_forgets_shards_that_did_not_select_is_seen(
    form: str, broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same simulation fails if others are taken to have nothing, or no more than their minimum, or no noise."""
    broken(monkeypatch)
    assert binomtest(held(form), RUNS, CONFIDENCE, alternative="less").pvalue < 1e-6
