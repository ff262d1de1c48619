"""What a release is asked to be: `Request` checks it before anything is read or spent, and splits epsilon and delta."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from dptop import noise
from dptop._native import MAX_LENGTH
from dptop.errors import InvalidParameter
from dptop.ledger import Spent
from dptop.mechanism import MECHANISMS, NOISES, PAPER, LengthBound
from dptop.parameters import as_written, one_of, real_number, shown, whole_number
from dptop.privacy import PRECISE, PrivacyParameters, floor_epsilon, per_item

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PublicLength", "Request", "Split"]

LENGTH_SHARE: Final = Fraction(1, 50)
"""The part of epsilon that estimates the length where it is needed and none declared."""
MAX_TOP: Final = 2**31
MAX_CONTRIBUTIONS: Final = 2**31


class PublicLength(NamedTuple):
    """A length that may be used in public: a declared bound, or a noisy length, lifted where it has to be a bound."""

    value: int
    noisy: int | None


@dataclass(frozen=True, slots=True)
class Split:
    """What the parts of a release may spend, for each item.

    Attributes:
        labels: the part of labels and counts.
        length_epsilon: the epsilon of a noisy length, 0 if none is drawn.
        length_delta: the chance that a noisy length may have of being too short, 0 if it may be.
        declared: the declared length, if there is one.
    """

    labels: PrivacyParameters
    length_epsilon: Fraction
    length_delta: Decimal
    declared: int | None

    def public_length(self, length: int, seed: int | None) -> PublicLength:
        """Return the declared length, or else the noisy one, which is drawn here."""
        if self.declared is not None:
            return PublicLength(self.declared, None)
        own_seed = None if seed is None else seed + noise.LENGTH_SEED
        noisy = length + noise.draw(self.length_epsilon, 1, own_seed)[0]
        if self.length_delta:
            return PublicLength(LengthBound(self.length_epsilon, self.length_delta).above(noisy), noisy)
        return PublicLength(noisy, noisy)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a release is asked to be, checked before anything is read or spent. Arguments as in `dptop.release`."""

    epsilon: float
    delta: float
    top: int | None = None
    share: float | None = None
    length: int | None = None
    max_contributions: int = 1
    mechanism: str | None = None
    noise: str | None = None
    labels: Sequence[int | str | bytes] | None = None
    confidence: float = 0.95
    simultaneous: bool | None = None
    total: PrivacyParameters = field(init=False, repr=False)
    per_item: PrivacyParameters = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, value in self._checked().items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "per_item", per_item(self.total, self.max_contributions))
        self.split()  # refuses an epsilon that is too small to be split

    def _checked(self) -> dict[str, object]:
        """Return the fields as plain Python numbers in their ranges, or refuse them."""
        values: dict[str, object] = {"total": PrivacyParameters.of(self.epsilon, self.delta)}
        if self.top is not None:
            values["top"] = whole_number("top", self.top, 1, MAX_TOP, "Leave it out for every label that passes.")
        if self.share is not None:
            values["share"] = real_number(
                "share", self.share, "0 < share <= 1", lambda x: 0 < x <= 1, "0.01 asks for 1 %."
            )
        if self.length is not None:
            remedy = "Declare a bound that you know without the data."
            values["length"] = whole_number("length", self.length, 1, MAX_LENGTH, remedy)
        values["max_contributions"] = whole_number(
            "max_contributions", self.max_contributions, 1, MAX_CONTRIBUTIONS, "Bound it at the source."
        )
        if self.mechanism is not None:
            one_of("mechanism", self.mechanism, MECHANISMS)
        if self.mechanism == PAPER and self.share is None:
            raise InvalidParameter(
                "mechanism 'paper' must have a share, the paper's 1/k; got none. Give share=, such as 0.01."
            )
        if self.noise is not None:
            one_of("noise", self.noise, NOISES)
        values["confidence"] = real_number(
            "confidence", self.confidence, "0 < confidence < 1", lambda x: 0 < 1 - x < 1, "Try 0.95."
        )
        if self.simultaneous is None:
            values["simultaneous"] = self.top is not None or self.share is not None
        elif not isinstance(self.simultaneous, bool):
            raise InvalidParameter(f"simultaneous must be True or False; got {shown(self.simultaneous)}. Choose one.")
        return values

    @property
    def spent(self) -> Spent:
        """What a ledger is charged with."""
        return Spent(self.total, self.max_contributions)

    def split(self, *, bounds_length: bool = False) -> Split:
        """Return what labels and length may spend.

        Args:
            bounds_length: whether the mechanism needs a length that is hardly ever too short, share or not: half of
                delta then goes to a noisy one.

        Raises:
            InvalidParameter: the part of a noisy length is below the grid of epsilon.
        """
        whole = self.per_item
        if self.length is not None or (self.share is None and not bounds_length):
            return Split(whole, Fraction(0), Decimal(0), self.length)
        length_epsilon = floor_epsilon(whole.epsilon * LENGTH_SHARE)
        if not length_epsilon:
            raise InvalidParameter(
                "2 % of epsilon / max_contributions must be at least 2**-32 to estimate the length; got"
                f" {float(whole.epsilon)!r}. Declare length=, or use a larger epsilon."
            )
        length_delta = PRECISE.divide(whole.delta, 2) if bounds_length else Decimal(0)
        # exact: in the context of the caller the difference of two decimals may be rounded, also up
        labels = PrivacyParameters(whole.epsilon - length_epsilon, PRECISE.subtract(whole.delta, length_delta))
        return Split(labels, length_epsilon, length_delta, None)

    @property
    def exact_share(self) -> Fraction:
        """The share as the decimal number that it is written as; 0 where none is asked for."""
        return Fraction(as_written(self.share or 0.0))

    def least_count(self, length: int) -> int:
        """Return the smallest count with the share asked for, of a public length: v >= share * length in integers."""
        share = self.exact_share
        return -(-share.numerator * length // share.denominator)
