"""What the estimates of the linear sketches promise, on streams that do not know the keys."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from scipy.stats import ttest_1samp

from sketching import Label, estimates, extend, sketch_of

ALARM = 1e-6
FALSE_ALARM = "this alarm is false once in 10^6 runs, so look for a cause"


def stream_of(seed: int, items: int) -> list[tuple[Label, int]]:
    generator = random.Random(seed)
    text = seed % 2 == 1
    ranks = [int(3000 ** generator.random()) for _ in range(items)]
    return [(f"label {rank}" if text else rank << 20, generator.choice([0, 1, 1, 5, 1000])) for rank in ranks]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("width", "depth"), [(1, 1), (7, 2), (100, 1), (1000, 5)])
def test_count_min_never_underestimates(seed: int, width: int, depth: int) -> None:
    """On streams without negative weights; of labels that never came as well. The length bounds every estimate."""
    sketch = sketch_of("count-min", width, depth)
    true = Counter[Label]()
    items = stream_of(seed, 5000)
    extend(sketch, [label for label, _ in items], [weight for _, weight in items])
    for label, weight in items:
        true[label] += weight
    unseen: list[Label] = [f"never {i}" if seed % 2 else -i - 1 for i in range(200)]
    asked = [*true, *unseen]
    for label, estimate in zip(asked, estimates(sketch, asked), strict=True):
        assert true[label] <= estimate <= sketch.length()


COUNTS = [40, -25, 30, 10, *range(-5, 35)]
ASKED = 2


def errors(rule: str, sketches: int) -> list[int]:
    """Return the error of one row's estimate of one label, for fresh keys each."""
    found = []
    for _ in range(sketches):
        sketch = sketch_of(rule, 4, 1)
        extend(sketch, list(range(len(COUNTS))), COUNTS)
        found.append(estimates(sketch, [ASKED])[0] - COUNTS[ASKED])
    return found


def mean_law(found: list[int], mean: float) -> float:
    """Return the p-value of errors having this mean."""
    return float(ttest_1samp(found, mean).pvalue)


def test_count_sketch_is_unbiased() -> None:
    """Over fresh keys the errors of a row have the mean 0, whatever the weights' signs."""
    p = mean_law(errors("count-sketch", 4000), 0)
    assert p > ALARM, f"p-value {p}; {FALSE_ALARM}"


def test_count_min_exceeds_by_its_share_of_the_others() -> None:
    """A cell exceeds the count by a fourth of the other labels' weight, exactly as 4 divides 2^32, and has a bias."""
    found = errors("count-min", 4000)
    p = mean_law(found, (sum(COUNTS) - COUNTS[ASKED]) / 4)
    assert p > ALARM, f"p-value {p}; {FALSE_ALARM}"
    assert mean_law(found, 0) < ALARM
