"""Makers of sketches, and of labels tracked beside them, of every sort that is saved; and the ways to a twin."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import TYPE_CHECKING, Any

import dptop

if TYPE_CHECKING:
    from collections.abc import Callable

    from dptop.oracle import LinearSketch

ITEMS: dict[str, list[Any]] = {
    "none": [],
    "integers": [3, -1, 2**64 - 1, 3, 2**63, 0, -(2**63), 3],
    "text": ["b", "", "é", "b", "\0", "x" * 70, "x" * 71, "b"],
    "bytes": [b"b", b"", b"\xff", b"b", b"\0", b"x" * 70, b"x" * 71, b"b"],
}


def plain(kind: type[LinearSketch], **arguments: Any) -> LinearSketch:
    return kind(width=4, depth=3, max_label_bytes=64, **arguments)


def laplace(kind: type[LinearSketch], **arguments: Any) -> LinearSketch:
    return plain(kind, **arguments).with_noise(epsilon=0.3)


def gaussian(kind: type[LinearSketch], **arguments: Any) -> LinearSketch:
    return plain(kind, **arguments).with_noise(epsilon=0.7, delta=3e-7, noise="gaussian")


def seeded(kind: type[LinearSketch], **arguments: Any) -> LinearSketch:
    return plain(kind, seed=5, **arguments)


def seeded_noise(kind: type[LinearSketch], **arguments: Any) -> LinearSketch:
    return plain(kind, **arguments).with_noise(epsilon=0.3, seed=5)


MAKERS = {make.__name__: make for make in (plain, laplace, gaussian, seeded, seeded_noise)}
SKETCHES: dict[str, Callable[..., LinearSketch]] = {
    f"{kind.__name__} {name}": functools.partial(make, kind)
    for kind in (dptop.CountMin, dptop.CountSketch)
    for name, make in MAKERS.items()
}
WAYS_TO_TRACK = [("space-saving", "least-recent"), ("space-saving", "most-recent"), ("estimates", "most-recent")]


def track(make: Callable[[], LinearSketch], candidates: str, tie: str) -> dptop.Tracked:
    oracle = make()
    budget = None if oracle.noise else dptop.Budget(2.0, 2e-6)  # noise that came first hides one release
    return dptop.Tracked(oracle, 3, candidates, tie=tie, budget=budget)


TRACKERS: dict[str, Callable[[], dptop.Tracked]] = {
    f"{name} {candidates} {tie}": functools.partial(track, make, candidates, tie)
    for name, make in SKETCHES.items()
    for candidates, tie in WAYS_TO_TRACK
}
ALL: dict[str, Callable[[], dptop.Summary]] = {**SKETCHES, **TRACKERS}
SMALL = ["CountMin plain", "CountSketch gaussian", "CountMin laplace estimates most-recent"]
SMALL += ["CountSketch plain space-saving most-recent"]


TRACKED_NAMES = {
    "tables": "CountMin plain space-saving most-recent",
    "top": "CountMin plain estimates most-recent",
    "noisy": "CountMin laplace estimates most-recent",
    "signs": "CountSketch plain estimates most-recent",
}
"""One of each sort of form."""


def counted(name: str, kind: str = "text") -> dptop.Summary:
    summary = ALL[name]()
    summary.extend(ITEMS[kind])
    return summary


def through_pickle(summary: Any) -> Any:
    return pickle.loads(pickle.dumps(summary))


def through_bytes(summary: Any) -> Any:
    return type(summary).from_bytes(summary.to_bytes())


WAYS: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, through_pickle, through_bytes]
