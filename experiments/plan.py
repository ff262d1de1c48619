"""Which points are measured: the sweeps of section 6, and the frontier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from experiments.methods import METHODS
from experiments.methods.summaries import EXACT, SUMMARIES
from experiments.streams import zipf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["FRONTIER", "FULL", "GRID", "QUICK", "Size", "Task", "tasks"]

GRID: Final = "grid"
FRONTIER: Final = "frontier"

ON_FRONTIER: Final = ("paper", "misra-gries-published", "misra-gries", "stable-threshold", "exact-histogram")
"""The methods whose memory is compared with what they release."""
K: Final = 128
EPSILON: Final = 0.1
DELTA: Final = 1e-3
FACTOR: Final = 2
SKEW: Final = 1.1
"""The point that all sweeps share."""


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes:
        length: items of a Zipf stream.
        head: items that are read of a real stream; None for all.
        stand_in: items and labels of the trace's stand-in.
        ks: on Zipf streams.
        skews: of Zipf streams.
        epsilons: at the common point.
        real_ks: on real streams.
        factors: on real streams.
        capacities: on the frontier.
        frontier: (epsilon, delta) on the frontier.
        repetitions: streams, or hashes where the stream is given.
        draws: of noise on each summary.
    """

    length: int
    head: int | None
    stand_in: tuple[int, int]
    ks: tuple[int, ...]
    skews: tuple[float, ...]
    epsilons: tuple[float, ...]
    real_ks: tuple[int, ...]
    factors: tuple[int, ...]
    capacities: tuple[int, ...]
    frontier: tuple[tuple[float, float], ...]
    repetitions: int
    draws: int


FULL: Final = Size(
    length=zipf.LENGTH,
    head=None,
    stand_in=(zipf.TRACE_LENGTH, zipf.TRACE_DISTINCT),
    ks=(32, 64, 128, 256, 512, 1024),
    skews=(1.1, 1.4, 1.7, 2.0, 2.3, 2.6),
    epsilons=(0.001, 0.01, 0.1, 1.0, 10.0),
    real_ks=(128, 256, 512, 1024, 2048, 4096),
    factors=(1, 2, 4, 8, 16),
    capacities=tuple(2**i for i in range(5, 17)),
    frontier=((0.1, 1e-3), (1.0, 1e-6)),
    repetitions=4,
    draws=5,
)
"""As the paper's authors published it, with 20 repetitions."""
QUICK: Final = Size(
    length=2**18,
    head=300_000,
    stand_in=(400_000, 40_000),
    ks=(32, 128, 512),
    skews=(1.1, 1.7, 2.6),
    epsilons=(0.01, 0.1, 10.0),
    real_ks=(128, 1024),
    factors=(1, 2, 4),
    capacities=(64, 512, 4096),
    frontier=((0.1, 1e-3), (1.0, 1e-6)),
    repetitions=2,
    draws=2,
)
"""To see that all of it runs; its streams are too short for the conclusions."""


class Task(NamedTuple):
    """One summary that counts one stream once, and all that is released of it.

    Attributes:
        sweep: GRID or FRONTIER.
        stream: its name.
        skew: of a Zipf stream, else None.
        k: heavy labels have at least n/k items; None on the frontier, where nothing is asked for.
        factor: the capacity over k; None on the frontier.
        capacity: of counters; sketches have twice as many labels. None where all is counted exactly.
        summary: a key of SUMMARIES, or EXACT.
        repetition: of streams or hashes.
        releases: (epsilon, delta) of each.
    """

    sweep: str
    stream: str
    skew: float | None
    k: int | None
    factor: int | None
    capacity: int | None
    summary: str
    repetition: int
    releases: tuple[tuple[float, float], ...]

    @property
    def name(self) -> str:
        """What its file is called."""
        parts = (self.sweep, self.stream, self.skew, self.k, self.factor, self.capacity, self.summary, self.repetition)
        return "_".join(str(part).replace(", ", "-").replace(" ", "-") for part in parts if part is not None)

    @property
    def methods(self) -> list[str]:
        """The methods that this summary serves, in this sweep."""
        served = [method for method, how in METHODS.items() if how.summary == self.summary]
        return [method for method in served if self.sweep == GRID or method in ON_FRONTIER]


def tasks(size: Size, streams: Sequence[str]) -> Iterator[Task]:
    """Yield everything that is to be measured, stream by stream: "zipf", and real ones by name."""
    for stream in streams:
        for repetition in range(size.repetitions):
            if stream == "zipf":
                yield from _zipf(size, repetition)
            else:
                yield from _real(size, stream, repetition)
            yield from _frontier(size, stream, repetition)


def _zipf(size: Size, repetition: int) -> Iterator[Task]:
    for skew in size.skews:
        for k in size.ks if skew == SKEW else (K,):
            common = skew == SKEW and k == K
            yield from _point("zipf", skew, k, FACTOR, repetition, size.epsilons if common else (EPSILON,))


def _real(size: Size, stream: str, repetition: int) -> Iterator[Task]:
    for k in size.real_ks:
        yield from _point(stream, None, k, FACTOR, repetition, size.epsilons if k == K else (EPSILON,))
    for factor in size.factors:
        if factor != FACTOR:
            yield from _point(stream, None, K, factor, repetition, (EPSILON,))


def _point(
    stream: str, skew: float | None, k: int, factor: int, repetition: int, epsilons: tuple[float, ...]
) -> Iterator[Task]:
    releases = tuple((epsilon, DELTA) for epsilon in epsilons)
    for summary in (*SUMMARIES, EXACT):
        capacity = None if summary == EXACT else factor * k
        yield Task(GRID, stream, skew, k, factor, capacity, summary, repetition, releases)


def _frontier(size: Size, stream: str, repetition: int) -> Iterator[Task]:
    skew = SKEW if stream == "zipf" else None
    summaries = dict.fromkeys(METHODS[method].summary for method in ON_FRONTIER)
    for summary in summaries:
        for capacity in (None,) if summary == EXACT else size.capacities:
            yield Task(FRONTIER, stream, skew, None, None, capacity, summary, repetition, size.frontier)
