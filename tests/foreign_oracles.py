"""Oracles as another library might offer them: anything with update, estimate and envelope."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dptop.envelope import Envelope

STATED = Envelope.stated(over=20, under=20, beta=1e-8, epsilon=0.5)


class Exact:
    """An oracle that counts exactly and claims errors; it is private only where a subclass draws noise."""

    def __init__(self, envelope: Any = STATED) -> None:
        self.counts: Counter[Any] = Counter()
        self.updates: list[tuple[Any, int]] = []
        self.asked: list[Any] = []
        self.stated = envelope
        self.lengths: list[int] = []

    def update(self, item: Any, weight: int = 1) -> None:
        self.updates.append((item, weight))
        self.counts[item] += weight

    def estimate(self, item: Any) -> Any:
        self.asked.append(item)
        return self.counts[item]

    def envelope(self, length: int) -> Any:
        self.lengths.append(length)
        return self.stated


class NoisyAtRelease(Exact):
    """An oracle whose noise comes at the end: here what it reads its final estimates from is another object."""

    def __init__(self, envelope: Any = STATED, shift: int = 0) -> None:
        super().__init__(envelope)
        self.shift = shift
        self.draws = 0

    def noisy(self) -> Exact:
        self.draws += 1
        final = Exact(self.stated)
        final.counts = Counter({item: count + self.shift for item, count in self.counts.items()})
        return final
