"""Neighbouring streams and the summaries they leave, for the tests that go through all small ones.

X is a stream, X' is X without one item. The streams are all streams up to renaming of labels (restricted-growth
strings), with every position of the removed item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dptop.reference.space_saving import SpaceSaving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dptop.tie import Tie

Stream = tuple[int, ...]


@dataclass(frozen=True)
class State:
    """What a stream leaves behind: the tracked labels with their counts, and the capacity."""

    counts: dict[int, int]
    capacity: int

    @property
    def minimum(self) -> int:
        """Return 0 while a slot is free."""
        return 0 if len(self.counts) < self.capacity else min(self.counts.values())

    def above_minimum(self) -> dict[int, int]:
        """Return D, its zeros left out."""
        return {x: c - self.minimum for x, c in self.counts.items() if c > self.minimum}


class Implementation(Protocol):
    """Runs a stream through a summary; the same checks fit the reference, the native core and broken copies."""

    def __call__(self, stream: Stream, capacity: int, tie: Tie) -> State:
        """Return the state that the stream leaves behind."""


def run_reference(stream: Stream, capacity: int, tie: Tie, *, kind: type[SpaceSaving[int]] = SpaceSaving[int]) -> State:
    summary = kind(capacity, tie)
    for label in stream:
        summary.update(label)
    state = State(summary.counters(), capacity)
    assert summary.minimum == state.minimum
    return state


def streams(longest: int) -> Iterator[Stream]:
    """Yield every stream of 1 to `longest` items, one per class of streams that differ in the names of labels only."""

    def grow(prefix: Stream, labels: int) -> Iterator[Stream]:
        if prefix:
            yield prefix
        if len(prefix) < longest:
            for label in range(labels + 1):
                yield from grow((*prefix, label), max(labels, label + 1))

    yield from grow((), 0)


def neighbours(run: Implementation, capacity: int, tie: Tie, longest: int) -> Iterator[tuple[Stream, State, State]]:
    """Yield (X, state of X, state of X') for all streams X and all positions of the item that X' lacks."""
    known: dict[Stream, State] = {(): State({}, capacity)}

    def state(stream: Stream) -> State:
        if stream not in known:
            known[stream] = run(stream, capacity, tie)
        return known[stream]

    for stream in streams(longest):
        for at in range(len(stream)):
            yield stream, state(stream), state(stream[:at] + stream[at + 1 :])


def isolated(long: State, short: State) -> tuple[dict[int, int], dict[int, int]]:
    """Return the labels that only one side tracks, with their counts."""
    return (
        {x: c for x, c in long.counts.items() if x not in short.counts},
        {x: c for x, c in short.counts.items() if x not in long.counts},
    )
