"""The release twin: small releases worked by hand, and agreement with the mechanism over a grid of losses."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptop.mechanism import StableThreshold
from dptop.privacy import exact_epsilon
from dptop.reference import stable_threshold as reference
from dptop.tie import Tie


def test_a_release_worked_by_hand() -> None:
    """Published are u = m + Z_0 and the labels more than `offset` above u; no other leaves a trace."""
    counters = {"a": 9, "b": 5, "c": 5, "d": 2}
    noise = {"a": 0, "b": 1, "c": 0, "d": -3}
    u, rows = reference.release(counters, 2, offset=4, minimum_noise=-1, noise=noise)
    assert (u, rows) == (1, {"a": 9, "b": 6})  # c is at u + 4 exactly: not above it
    assert reference.release({}, 0, offset=1, minimum_noise=3, noise={}) == (3, {})


@given(
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    z=st.lists(st.integers(-30, 30), min_size=9, max_size=9),
    tie=st.sampled_from(Tie),
)
@settings(deadline=None, derandomize=True)
def test_the_twin_keeps_what_the_mechanism_keeps(counts: list[int], z: list[int], tie: Tie) -> None:
    """From the same counters and the same noise both publish the same."""
    mechanism = StableThreshold.calibrate(epsilon=1.0, delta=1e-2, tie=tie)
    counters = dict(enumerate(counts))
    u, rows = reference.release(
        counters, min(counts), offset=mechanism.offset, minimum_noise=z[8], noise=dict(enumerate(z))
    )
    assert rows == {x: c + z[x] for x, c in counters.items() if mechanism.keeps(c + z[x], min(counts) + z[8])}
    assert u == min(counts) + z[8]


@pytest.mark.parametrize("tie", Tie)
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 2.5, 8.0])
def test_offsets_agree_with_the_closed_form(epsilon: float, tie: Tie) -> None:
    """Sums over single probabilities and the closed form calibrate the same offsets."""
    for exponent in range(-30, 0):
        delta = float(f"1e{exponent}")
        mechanism = StableThreshold.calibrate(epsilon=epsilon, delta=delta, tie=tie)
        assert reference.smallest_offset(mechanism.epsilon, mechanism.delta, tie) == mechanism.offset


def test_chances_add_up() -> None:
    """The probabilities of single values sum to one, but for what is left out, and a difference is symmetric."""
    for epsilon in (exact_epsilon(0.5), exact_epsilon(3.0)):
        assert abs(sum(reference.laplace(epsilon).values(), Decimal(0)) - 1) < Decimal("1e-25")
        for g in range(-10, 11):
            both = reference.chance_above(epsilon, g) + reference.chance_above(epsilon, -g - 1)
            assert abs(both - 1) < Decimal("1e-25")
