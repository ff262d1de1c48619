"""Which of the labels at the minimum SpaceSaving evicts, and what that choice means for the proof."""

from __future__ import annotations

from enum import Enum

from dptop.errors import InvalidParameter
from dptop.parameters import shown

__all__ = ["Tie"]


class Tie(Enum):
    """A rule that breaks ties between the labels at the minimum count, by their last occurrence in the stream.

    No other rule has a proof: under an order by hash, by label or by age of the counter, more labels can differ
    between neighbouring streams than Theorem B allows (docs/privacy.md section 2).
    """

    LEAST_RECENT = "least-recent"
    """Evict the label at the minimum that has not occurred for longest. The default: it needs the smaller threshold."""

    MOST_RECENT = "most-recent"
    """Evict the label at the minimum that occurred last. The paper's rule."""

    @property
    def isolated_per_side(self) -> int:
        """The most labels that one of two neighbouring streams tracks and the other does not: Theorem B."""
        return 1 if self is Tie.LEAST_RECENT else 2

    @property
    def algorithm(self) -> str:
        """What the native counters call SpaceSaving with this rule."""
        return f"space-saving-{self.value}"

    @classmethod
    def of(cls, value: str | Tie) -> Tie:
        """Return the rule with this name.

        Raises:
            InvalidParameter: no such rule.

        >>> Tie.of("least-recent").isolated_per_side
        1
        """
        try:
            return cls(value)
        except ValueError:
            raise InvalidParameter(
                f"tie must be 'least-recent' or 'most-recent'; got {shown(value)}. Use the default unless you need the"
                " paper's own rule, which is 'most-recent'."
            ) from None
