"""Frequency oracles: linear sketches, which estimate the count of any label, and what another library's must offer.

An oracle knows no labels itself. `Tracked` keeps the labels with the largest counts beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self, runtime_checkable

from dptop import _native
from dptop._native import MAX_DEPTH, MAX_WIDTH
from dptop.errors import CorruptSummary, IncompatibleSummaries, InvalidParameter, SourceError
from dptop.mechanism.sketch_noise import NOISES, SketchNoise
from dptop.noise import seed_bytes
from dptop.noise_record import noise_from_bytes, noise_to_bytes
from dptop.parameters import one_of, whole_number
from dptop.privacy import PrivacyParameters
from dptop.record import Record
from dptop.sketch_shape import best_shape
from dptop.source import open_labels, read_signed_weights
from dptop.summary import Summary, label_limit

if TYPE_CHECKING:
    from dptop._native import Reading
    from dptop.envelope import Envelope
    from dptop.privacy import Budget

__all__ = ["NO_BUDGET", "CountMin", "CountSketch", "FrequencyOracle", "LinearSketch", "NoisyAtRelease"]


NO_BUDGET: Final = (
    "noise before the first item must hide a single release; the saved form has a budget for more. Save the summary"
    " again, or read the stream again."
)


@runtime_checkable
class FrequencyOracle(Protocol):
    """What `Tracked` asks of an oracle, also of one from another library.

    The oracle is handed over empty and belongs to the summary from then on. What its estimates at the end are read from
    is private by itself, with the epsilon and delta that its envelope states: noise went into its cells before the
    first item, say; it is released once. An oracle whose noise comes at the end is a `NoisyAtRelease`.

    One of one's own, which counts exactly. At epsilon 0.5 one draw in 10^13 is more than 60 from 0, and every label has
    one, whether it was counted or not: without, an estimate of 0 would tell that it was not.

    >>> import dptop
    >>> from fractions import Fraction
    >>> class Exact:
    ...     def __init__(self, counts=(), epsilon=None):
    ...         self.counts, self.epsilon, self.drawn = dict(counts), epsilon, {}
    ...     def update(self, item, weight=1):
    ...         self.counts[item] = self.counts.get(item, 0) + weight
    ...     def estimate(self, item):
    ...         if self.epsilon and item not in self.drawn:
    ...             [self.drawn[item]] = dptop.noise.draw(self.epsilon, 1)
    ...         return self.counts.get(item, 0) + self.drawn.get(item, 0)
    ...     def envelope(self, length):
    ...         return dptop.Envelope.stated(over=60, under=60, beta=(length + 1) * 1e-13, epsilon=0.5)
    ...     def noisy(self):
    ...         return Exact(self.counts, Fraction(1, 2))
    >>> words = dptop.Tracked(Exact(), capacity=100)
    >>> words.extend(["to"] * 5000 + ["be"] * 3000 + ["or"])
    >>> result = dptop.release(words, epsilon=1.0, delta=1e-6, length=10_000, mechanism="envelope")
    >>> [row.item for row in result]
    ['to', 'be']
    """

    def update(self, item: Any, weight: int = 1) -> object:
        """Count one item, `weight` times."""

    def estimate(self, item: Any) -> int:
        """Return how often a label was counted, about: a whole number."""

    def envelope(self, length: int) -> Envelope:
        """Return how far estimates may be off on streams of at most `length` items: see `dptop.Envelope`."""


@runtime_checkable
class NoisyAtRelease(FrequencyOracle, Protocol):
    """An oracle that counts without noise, and whose noise comes at the end: so it may be released more than once.

    What its envelope says of the end, and of epsilon and delta, is of what `noisy` returns.
    """

    def noisy(self) -> FrequencyOracle:
        """Return an oracle with fresh noise to read the final estimates from: called once in each release."""


class LinearSketch(Summary):
    """Rows of cells, in each of which a label has one: what `CountMin` and `CountSketch` share, and one makes those.

    Cells are sums of weights, so that items can be taken back, sketches of parts of a stream added up, and noise added
    once to each cell hides an item in everything that is read from them.

    Hashes. A label is reduced to a 64-bit fingerprint by a keyed hash; each row has a strongly universal function of
    that (vector multiply-shift, three random 64-bit numbers), so that two distinct fingerprints share a cell of a row
    with chance at most ceil(2^32/width)/2^32, and rows are independent. Keys come from the system's entropy, stay in
    the summary and are as secret as its cells. The mechanism "envelope" assumes that fingerprints behave as independent
    uniform numbers (delta pays for those that two labels share), that the stream was fixed before the keys, and, of
    CountSketch, that buckets and signs behave as independent uniform ones. The mechanisms "selected" and
    "public-labels" assume nothing of them: noise hides an item whatever the hashes.
    """

    _rule: ClassVar[str]

    def __init__(
        self,
        width: int,
        depth: int,
        *,
        max_label_bytes: int = 4096,
        budget: Budget | None = None,
        seed: int | None = None,
    ) -> None:
        width = whole_number("width", width, 1, MAX_WIDTH, "It is the number of cells in a row.")
        depth = self._depth(depth)
        if seed is not None:
            seed = whole_number("seed", seed, 0, 2**63 - 1, "Leave it out: a known seed is for tests only.")
        memory = _native.memory_bytes()
        if memory is not None and 2 * _native.Sketch.bytes_needed(width, depth) > memory:
            raise InvalidParameter(
                "a sketch must fit into memory twice, as a release makes a copy;"
                f" got width {width} and depth {depth}, of 8 bytes each cell. Use a smaller width or depth."
            )
        key = None if seed is None else seed_bytes(seed)
        self._noise: SketchNoise | None = None
        self._sketch = _native.Sketch(self._rule, width, depth, label_limit(max_label_bytes), key)
        self._start(budget)

    @classmethod
    def for_memory(
        cls,
        memory: int,
        *,
        capacity: int,
        length: int,
        epsilon: float,
        delta: float,
        candidates: str = "space-saving",
        noise: str = "laplace",
        expected_squares: int | None = None,
        budget: Budget | None = None,
    ) -> Self:
        """Return an empty sketch of at most `memory` bytes whose release by its envelope has the smallest threshold.

        Release with the same `noise`, a declared `length` and `mechanism="envelope"`: other releases have other shapes
        that are best. All that the shape depends on is public and known before the stream.

        Args:
            memory: bytes for the cells, 8 each.
            capacity: labels that `Tracked` will track beside it.
            length: a bound on the length of the stream, which the release declares.
            epsilon: of the release.
            delta: of the release.
            candidates: what will track labels: "space-saving", with the tie rule "least-recent", or "estimates".
            noise: "laplace" or "gaussian"; to search with the latter takes seconds.
            expected_squares: for `CountSketch` only: a guess, without looking at the data, of the bound on the sum of
                squared counts that the release finds in the noisy rows, at most length^2, which it is without it.
            budget: as at construction.

        Raises:
            InvalidParameter: a value out of range, expected squares for `CountMin`, or memory for no threshold below
                the length.

        >>> import dptop
        >>> dptop.CountMin.for_memory(1_000_000, capacity=2000, length=10**6, epsilon=1.0, delta=1e-9)
        CountMin(width=5952, depth=21, labels=None)
        """
        best = best_shape(
            cls._rule,
            memory,
            capacity=capacity,
            length=length,
            epsilon=epsilon,
            delta=delta,
            candidates=candidates,
            noise=noise,
            expected_squares=expected_squares,
        )
        return cls(best.width, best.depth, budget=budget)

    @staticmethod
    def _depth(depth: int) -> int:
        return whole_number("depth", depth, 1, MAX_DEPTH, "It is the number of rows.")

    @property
    def width(self) -> int:
        """Cells in a row. Public."""
        return self._sketch.width

    @property
    def depth(self) -> int:
        """Rows. Public."""
        return self._sketch.depth

    @property
    def max_label_bytes(self) -> int:
        """Labels above this length are counted by prefix and digest. Public."""
        return self._sketch.max_label_bytes

    @property
    def noise(self) -> SketchNoise | None:
        """The noise that went into the cells before the first item, if any did. Public."""
        return self._noise

    def __repr__(self) -> str:
        return f"{self.shape_in_words[:-1]}, labels={self._sketch.kind!r})"

    @property
    def shape_in_words(self) -> str:
        """What it was made with, such as "CountMin(width=1000, depth=5)". Public."""
        noise = f", noise={self._noise.kind!r}" if self._noise else ""
        return f"{type(self).__name__}(width={self.width}, depth={self.depth}{noise})"

    def update(self, item: int | str | bytes | None, weight: int = 1) -> None:
        """Count one item, `weight` times. None is a null and skipped; a negative weight takes items back.

        Raises:
            UnsupportedLabel: not an int, str or bytes, or not of the kind that this summary holds.
            InvalidParameter: a weight that is no whole number from -(2^63 - 1) to 2^63 - 1, or a sum of their amounts
                above that.
        """
        self._sketch.update(item, weight)

    def estimate(self, items: Any) -> Any:
        """Return the estimated count of a label, or a list of those of many labels. PRIVATE: not a release.

        Args:
            items: an int, str or bytes; or a list, array or other input of labels, as `extend` takes them.

        Raises:
            UnsupportedLabel: no labels, or not of the kind that this summary holds.
        """
        if isinstance(items, (int, str, bytes)) and not isinstance(items, bool):
            [estimate] = self._estimates([items])
            return estimate
        return self._estimates(items)

    def _estimates(self, items: Any) -> list[int]:
        return [estimate for batch in open_labels(items) for estimate in self._sketch.estimate(batch)]

    def merge(self, other: Self) -> None:
        """Add the counts of another sketch with the same keys: this one has then counted both streams.

        The streams are one from then on: what was released of either counts for this sketch, and the other one is
        released no more. Errors are for whoever may see both streams: that the weights sum past 2^63 - 1 tells of them.

        Raises:
            IncompatibleSummaries: another type, width, depth or length limit, other keys or another kind of label,
                noise in either, one that was merged into another before, a copy of this one, or a part that was
                released with a declared length; nothing has changed then.
            SourceError: items were counted into either meanwhile; neither is released any more.
        """
        if type(other) is not type(self) or other is self:
            raise IncompatibleSummaries(
                f"a {type(self).__name__} merges with another one; got {type(other).__name__}."
                " Make the other one with empty_copy()."
            )
        if self._noise or other._noise:
            raise IncompatibleSummaries(
                "sketches with noise do not merge: it would be there twice. Merge, then add it."
            )
        if other._ledger is self._ledger:
            raise IncompatibleSummaries(
                "a sketch merges with one of another part of the stream; got a copy of itself. Make the other one with"
                " empty_copy()."
            )
        if not (self._releasable and other._releasable):
            raise IncompatibleSummaries("sketches merge once their inputs are read. Wait for every extend().")
        if self._ledger.length is not None or other._ledger.length is not None:
            raise IncompatibleSummaries(
                "sketches that were released with a declared length do not merge: answers to several lengths would tell"
                " the true one. Merge the parts first, then release."
            )
        # while these are open neither is released; whatever comes between leaves them open, and both unreleasable
        own, others = self._begin_reading(), other._begin_reading()
        lengths = self._length(), other._length()
        try:
            spent = None if self._ledger.closed else other._ledger.claim()
            if spent is None:
                raise IncompatibleSummaries(
                    "sketches that are released no more do not merge: one of them was merged already, or was longer"
                    " than its declared length. Merge each part once."
                )
            self._sketch.merge(other._sketch)
        except IncompatibleSummaries:
            if self._length() == lengths[0]:  # nothing was merged; a signal's handler may have raised it afterwards
                if spent is not None:
                    other._ledger.give_back()
                self._open.discard(own)
                other._open.discard(others)
            raise
        self._ledger.unite(spent)
        counted = (self._length() - lengths[0], other._length()) != (lengths[1], lengths[1])
        if counted or (self._begun, other._begun) != (own, others) or len(self._open) + len(other._open) > 2:
            raise SourceError(  # what was merged may be a part of a batch
                "sketches merge while nothing is counted into either; items were counted meanwhile, and neither is"
                " released. Count both again."
            )
        self._open.discard(own)
        other._open.discard(others)

    def empty_copy(self) -> Self:
        """Return a sketch with the same keys and no items, to count another part of a stream and to `merge` it."""
        return self._over(self._sketch.empty_copy(), None)

    def _over(self, sketch: _native.Sketch, noise: SketchNoise | None) -> Self:
        """Return another sketch of this type."""
        other = type(self).__new__(type(self))
        other._noise = noise
        other._sketch = sketch
        other._start(self._budget)
        return other

    def with_noise(
        self, *, epsilon: float, delta: float | None = None, noise: str = "laplace", seed: int | None = None
    ) -> Self:
        """Return an empty sketch with the same keys whose cells hold noise before the first item, as the paper has it.

        Everything read from it, once, at the end, is (epsilon, delta)-private; with Laplace noise delta is 0. So it has
        no budget: of two releases, between which the stream grew, the difference would be without noise.

        Args:
            epsilon: 2^-20 <= epsilon <= 64; rounded down to a multiple of 2^-32.
            delta: 0 < delta < 1; Gaussian noise needs it, Laplace noise has none.
            noise: "laplace" or "gaussian".
            seed: for tests only: repeatable noise, and a result that is not private.

        Raises:
            InvalidParameter: a value out of range, or a sketch that has counted something, or has noise or a budget.
        """
        one_of("noise", noise, NOISES)
        if self._length() or self._noise:
            raise InvalidParameter(
                "noise must come before the first item; this sketch has items or noise. Use a new one."
            )
        if self._budget is not None:
            raise InvalidParameter(
                "noise before the first item must hide a single release; this sketch has a budget for more. Leave the"
                " budget out, or the noise for the release."
            )
        if (delta is None) != (noise == NOISES[0]):
            raise InvalidParameter(
                f"delta must be given with Gaussian noise and not with Laplace noise; got {delta!r}. Choose one."
            )
        if delta is None:
            made = SketchNoise.laplace(PrivacyParameters.of(epsilon, 0.5), self.depth)
        else:
            made = SketchNoise.gaussian(PrivacyParameters.of(epsilon, delta), self.depth)
        key = None if seed is None else seed_bytes(whole_number("seed", seed, 0, 2**63 - 1, "It is for tests only."))
        return self._noisy(made, key)

    def _emptied(self) -> Self:
        """Return a sketch with the same keys, no items, and fresh noise of the same law where this one has any."""
        return self.empty_copy() if self._noise is None else self._noisy(self._noise)

    def _noisy(self, noise: SketchNoise, key: bytes | None = None) -> Self:
        """Return a sketch with the same keys, no items, and fresh noise."""
        return self._over(self._sketch.empty_copy().noisy(noise.numerator, noise.variance, key), noise)

    @property
    def _identity(self) -> bytes:
        return self._sketch.identity

    def _read_weights(self, weights: Any) -> Any:
        return read_signed_weights(weights)

    def _count(self, batches: list[Any], weights: Any, threads: int, reading: Reading) -> None:
        del threads
        self._sketch.extend(batches, weights, reading)

    def _length(self) -> int:
        return self._sketch.length()

    def _encode(self, record: bytes) -> bytes:
        return self._sketch.to_bytes(record, noise_to_bytes(self._noise))

    def _decode(self, data: bytes) -> bytes:
        self._sketch, record, noise = _native.Sketch.from_bytes(data)
        self._noise = noise_from_bytes(noise, self.depth)
        if self._noise and Record.from_bytes(record).budget:
            raise CorruptSummary(NO_BUDGET)
        return record

    def _snapshot(self) -> tuple[int]:
        return (self._length(),)


class CountMin(LinearSketch):
    """Estimates the count of any label, never too low without noise, too high by the collisions of its luckiest row.

    With n items, the estimate of a label that shares its fingerprint with no other one exceeds the true count by more
    than t with chance at most (n c/(t + 1))^depth, c = ceil(2^32/width)/2^32. Weights may be negative, as long as no
    label's count ends below 0.

    Args:
        width: cells in a row, 1 to 2^31.
        depth: rows, 1 to 2^16. Memory: 8 bytes times width times depth, at once.
        max_label_bytes: longer labels are counted by a prefix and a SHA-256 digest, 64 to 2^30.
        budget: what all releases of this stream may spend together; by default there is one release, of any size.
        seed: for tests only: known keys; a release of it is not private.

    Raises:
        InvalidParameter: a value out of range, or more memory than the machine has; nothing is allocated.

    Source: Cormode and Muthukrishnan 2005; section 5 and Appendix B of the paper; docs/privacy.md sections 14 and 15.

    >>> sketch = CountMin(width=1000, depth=5)
    >>> sketch.extend(["a", "b", "a"])
    >>> sketch.update("a", -1)
    >>> sketch.estimate("a"), sketch.estimate(["a", "b", "c"])
    (1, [1, 1, 0])
    """

    _rule = "count-min"
    _saved_as: ClassVar[int] = 3


class CountSketch(LinearSketch):
    """Estimates the count of any label by the median of its rows, each right on average: collisions have random signs.

    Weights may be negative.

    Args:
        width: cells in a row, 1 to 2^31.
        depth: rows, odd, 1 to 2^16. Memory: 8 bytes times width times depth, at once.
        max_label_bytes: longer labels are counted by a prefix and a SHA-256 digest, 64 to 2^30.
        budget: what all releases of this stream may spend together; by default there is one release, of any size.
        seed: for tests only: known keys; a release of it is not private.

    Raises:
        InvalidParameter: a value out of range, or more memory than the machine has; nothing is allocated.

    Source: Charikar, Chen and Farach-Colton 2002; section 5 and Appendix B of the paper; docs/privacy.md sections 14
    and 15.

    >>> sketch = CountSketch(width=1000, depth=5)
    >>> sketch.extend([1, 2, 1], weights=[1, 5, -3])
    >>> sketch.estimate([1, 2, 3])
    [-2, 5, 0]
    """

    _rule = "count-sketch"
    _saved_as: ClassVar[int] = 4

    @staticmethod
    def _depth(depth: int) -> int:
        depth = LinearSketch._depth(depth)
        if depth % 2 == 0:
            raise InvalidParameter(f"depth must be odd, for a median; got {depth}. Use one row more or less.")
        return depth
