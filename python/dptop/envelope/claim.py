"""What an oracle claims of its estimates, what follows from it for a release, and THE comparison.

Let N bound the length of both neighbouring streams: declared, or one more than `LengthBound.above` of a noisy length,
which bounds the shorter neighbour only. Proofs: docs/privacy.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Final

from dptop.errors import InvalidParameter
from dptop.parameters import as_written, real_number, shown, whole_number
from dptop.privacy import PRECISE, PrivacyParameters, exact_epsilon, to_decimal

if TYPE_CHECKING:
    from fractions import Fraction

    from dptop.tie import Tie

__all__ = ["Envelope", "LabelEnvelope", "beta_within", "delta_of"]

ONE: Final = Decimal(1)
DOWN: Final = Context(prec=50, rounding=ROUND_FLOOR, Emin=PRECISE.Emin, Emax=PRECISE.Emax)
UP: Final = Context(prec=50, rounding=ROUND_CEILING, Emin=PRECISE.Emin, Emax=PRECISE.Emax)

LARGEST_ERROR: Final = 2**63 - 1


def beta_within(delta: Decimal, epsilon: Fraction) -> Decimal:
    """Return a beta that costs at most `delta`: delta/(1 + e^epsilon), rounded down by a relative 1e-28.

    >>> from fractions import Fraction
    >>> round(beta_within(Decimal("1e-9"), Fraction(1)), 16)
    Decimal('2.689414E-10')
    """
    return DOWN.multiply(DOWN.divide(delta, _factor(epsilon)), DOWN.subtract(ONE, Decimal("1e-28")))


def delta_of(beta: Decimal, epsilon: Fraction) -> Decimal:
    """Return what an envelope's beta costs: (1 + e^epsilon) beta, rounded up by at most a relative 1e-44.

    >>> from fractions import Fraction
    >>> delta_of(beta_within(Decimal("1e-9"), Fraction(1)), Fraction(1)) <= Decimal("1e-9")
    True
    """
    return UP.multiply(beta, _factor(epsilon))


def _factor(epsilon: Fraction) -> Decimal:
    """Return 1 + e^epsilon, rounded up: the exponential is right to 60 digits."""
    return UP.add(ONE, UP.multiply(PRECISE.exp(to_decimal(epsilon)), UP.add(ONE, Decimal("1e-45"))))


@dataclass(frozen=True, slots=True)
class Envelope:
    """All estimates asked for are close to the true counts f at once, except with probability `beta` on each stream.

    While a stream of at most N items is read, a label's estimate is asked for when it arrives, with the item counted:
    it is at most f + `over_tracking` and at least f - `under_tracking`, f as of then. At the end the estimates are at
    most f + `over`: of every label of the stream, and of one more, fixed beforehand, that is not in it. `beta` covers
    all of these together, and the oracle's own draws of hashes and noise are all that it is taken over: the stream is
    fixed before. Items are only added.

    The estimates at the end must all be read from a state that is (`state.epsilon`, `state.delta`)-private, whatever
    the hashes: for a linear sketch, noise in every cell once. The estimates while the stream is read may be without
    noise, since they only choose labels.

    An oracle of another library states it with `Envelope.stated`; those of this package have it computed by
    `noise_at_release` and `noise_first`.

    Attributes:
        over_tracking: t1, in items.
        under_tracking: t2.
        over: g1.
        beta: 0 <= beta < 1/2: more would cost all there is of delta.
        state: the privacy of what the final estimates are read from.
        under: how far below f the estimates at the end may be, within beta too; None if that is not claimed. Privacy
            does not need it: it makes the upper end of intervals.
    """

    over_tracking: int
    under_tracking: int
    over: int
    beta: Decimal
    state: PrivacyParameters
    under: int | None = None

    def __post_init__(self) -> None:
        for name in ("over_tracking", "under_tracking", "over", "under"):
            if (error := getattr(self, name)) is not None or name != "under":
                whole_number(name, error, 0, LARGEST_ERROR, "State the error in items, rounded up.")
        if not isinstance(self.beta, Decimal) or not Decimal(0) <= self.beta < Decimal("0.5"):
            raise InvalidParameter(
                f"beta must be a decimal with 0 <= beta < 1/2; got {shown(self.beta)}. State larger errors."
            )

    @classmethod
    def stated(cls, *, over: int, under: int, beta: float, epsilon: float, delta: float = 0.0) -> Envelope:
        """Return the envelope of an oracle whose estimates all lie in [f - under, f + over], early or late.

        Args:
            over: items that an estimate may be too large by, 0 or more.
            under: items that it may be too small by.
            beta: the chance that any estimate asked for is not, 0 <= beta < 1/2.
            epsilon: of the state that the final estimates are read from, 2^-20 <= epsilon <= 64. It is rounded DOWN to
                a multiple of 2^-32, and the oracle must keep what is left.
            delta: of that state, 0 <= delta < 1.

        Raises:
            InvalidParameter: a value out of range.

        >>> envelope = Envelope.stated(over=30, under=20, beta=1e-10, epsilon=1.0)
        >>> envelope.threshold(length=1000, capacity=9)  # floor(1000/9) + 30 + 20 + 30
        191
        >>> round(envelope.total.delta, 14)
        Decimal('3.7183E-10')
        """
        beta = real_number("beta", beta, "0 <= beta < 1/2", lambda x: 0 <= x < 0.5, "State larger errors.")
        delta = real_number("delta", delta, "0 <= delta < 1", lambda x: 0 <= x < 1, "0 is what Laplace noise has.")
        state = PrivacyParameters(exact_epsilon(epsilon), as_written(delta))
        return cls(over, under, over, as_written(beta), state, under)

    @property
    def total(self) -> PrivacyParameters:
        """The privacy of a release of what `keeps` keeps of K tracked labels: (epsilon, delta + (1 + e^epsilon) beta).

        Raises:
            InvalidParameter: that is no longer a delta below 1.
        """
        return _total(self.state, delta_of(self.beta, self.state.epsilon))

    @property
    def errors(self) -> int:
        """The sum of the errors in the threshold."""
        return self.over_tracking + self.under_tracking + self.over

    def threshold(self, length: int, capacity: int) -> int:
        """Return floor(N/K) + t1 + t2 + g1, which an estimate must exceed.

        Args:
            length: N, a bound on the length of both neighbours that does not come from the exact one.
            capacity: K, how many labels are tracked.
        """
        return length // capacity + self.errors

    def keeps(self, estimate: int, length: int, capacity: int) -> bool:
        """Return whether a tracked label is published: THE comparison, strict, in integers."""
        return estimate > self.threshold(length, capacity)


@dataclass(frozen=True, slots=True)
class LabelEnvelope:
    """The final estimate of a label is at most f + `over`, except with probability `beta` for each label by itself.

    And except with probability `once` for all of them together. The label is fixed before hashes and noise are drawn,
    as those that SpaceSaving tracks are: no union over the stream.

    Attributes:
        over: g1, in items.
        beta: of one label.
        once: of the stream as a whole: the chance that a private bound on its squares is too low.
        tie: the tie rule of the SpaceSaving summary that tracks the labels.
        state: the privacy of what the final estimates are read from.

    >>> from dptop.tie import Tie
    >>> state = PrivacyParameters.of(1.0, 1e-10)
    >>> envelope = LabelEnvelope(30, Decimal("1e-10"), Decimal(0), Tie.LEAST_RECENT, state)
    >>> envelope.threshold(length=1000, capacity=9), envelope.total.delta
    (142, Decimal('3E-10'))
    """

    over: int
    beta: Decimal
    once: Decimal
    tie: Tie
    state: PrivacyParameters

    def __post_init__(self) -> None:
        whole_number("over", self.over, 0, LARGEST_ERROR, "State the error in items, rounded up.")
        for name, chance in (("beta", self.beta), ("once", self.once)):
            if not isinstance(chance, Decimal) or not Decimal(0) <= chance < ONE:
                raise InvalidParameter(
                    f"{name} must be a decimal with 0 <= {name} < 1; got {shown(chance)}. State a larger error."
                )

    @property
    def total(self) -> PrivacyParameters:
        """The privacy of a release of what `keeps` keeps: (epsilon, delta + s beta + once), s = `isolated(tie)`.

        Raises:
            InvalidParameter: that is no longer a delta below 1.
        """
        return _total(self.state, UP.add(self.once, UP.multiply(Decimal(isolated(self.tie)), self.beta)))

    @property
    def errors(self) -> int:
        """The sum of the errors in the threshold."""
        return self.over

    def threshold(self, length: int, capacity: int) -> int:
        """Return floor(N/K) + 1 + g1, which an estimate must exceed.

        Args:
            length: N, a bound on the length of both neighbours that does not come from the exact one.
            capacity: K, of the SpaceSaving summary.
        """
        return length // capacity + 1 + self.over

    def keeps(self, estimate: int, length: int, capacity: int) -> bool:
        """Return whether a tracked label is published: THE comparison, strict, in integers."""
        return estimate > self.threshold(length, capacity)


def isolated(tie: Tie) -> int:
    """Return s: how many labels one neighbour tracks and the other does not, both sides together. Theorem B."""
    return 2 * tie.isolated_per_side


def _total(state: PrivacyParameters, delta: Decimal) -> PrivacyParameters:
    total = UP.add(state.delta, delta)
    if total >= 1:
        raise InvalidParameter(
            f"the delta of a release must be below 1; got {total:.3g} from the errors' chance of failure."
            " State larger errors, or give the sketch more memory."
        )
    return PrivacyParameters(state.epsilon, total)
