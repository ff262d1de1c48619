"""The streams: made from a seed, cached as .npy, .arrow and text under build/bench, loaded whole before a clock starts.

| name | what |
|---|---|
| int64-zipf-1.1, int64-zipf-1.5 | 10^7 items over 10^6 labels, that of rank r with probability ~ r^-1.1 or r^-1.5 |
| int64-distinct | 10^7 items, each once |
| string-zipf-1.1, string-zipf-1.5 | 5 * 10^6 items over 10^6 labels of 20 to 28 bytes |
| string-distinct | 5 * 10^6 items, each once |
| lines, csv, parquet | string-zipf-1.1 in files: alone, and as one of five columns |
| free-slot, far-apart, large-weights, sawtooth | the hard ones: see their functions; made for a capacity |

Integer labels are 64 random-looking bits (a bijection of the rank), so that nobody gains from small or ordered ones.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FILES", "HARD", "TOP", "Stream", "Truth", "cached_file", "folder", "make", "stream"]

Ranks = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

SEED: Final = 20_240_607
LABELS: Final = 10**6
TOP: Final = 100
"""Recall is that of the labels whose true count is among the 100 largest."""
FILES: Final = {"lines": "lines.txt", "csv": "table.csv", "parquet": "table.parquet"}


def quick() -> bool:
    """Return whether everything is a twentieth of its size, to try the suite."""
    return os.environ.get("DPTOP_BENCH_QUICK") == "1"


def items(number: int) -> int:
    """Return the length of a stream in this run."""
    return number // 20 if quick() else number


def folder() -> Path:
    """Where streams and raw results are kept."""
    return Path("build/bench/quick" if quick() else "build/bench")


@dataclass(frozen=True)
class Truth:
    """Labels among the TOP most frequent, all that tie with the last of them included."""

    labels: frozenset[int | str]

    def recall(self, found: list[int | str]) -> float:
        """Return how many of the first TOP labels found belong there, as a share."""
        return len(self.labels.intersection(found[:TOP])) / TOP


@dataclass
class Stream:
    """Items in stream order, in memory.

    A hard stream has a `prologue`, counted before the clock starts, and weights for both.
    """

    values: Any
    """A NumPy array of int64, or an Arrow array of strings."""
    truth: Truth | None = None
    weights: npt.NDArray[np.uint64] | None = None
    prologue: Integers | None = None
    prologue_weights: npt.NDArray[np.uint64] | None = field(default=None)

    def __len__(self) -> int:
        return len(self.values)

    def head(self, length: int) -> Stream:
        """Return the first items, without the prologue."""
        return Stream(self.values[:length], weights=None if self.weights is None else self.weights[:length])

    @cached_property
    def arrow(self) -> Any:
        """The items as an Arrow array; integers are not copied."""
        import pyarrow as pa

        return pa.array(self.values) if isinstance(self.values, np.ndarray) else self.values

    @cached_property
    def list(self) -> list[Any]:
        """The items as Python objects, one for each."""
        values: list[Any] = self.values.tolist()
        return values


def scrambled(ranks: Ranks) -> Ranks:
    """SplitMix64: a bijection of the 64-bit numbers that leaves no order among them."""
    z = ranks + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def integers(ranks: Ranks) -> Integers:
    """Return an integer label for each rank."""
    return scrambled(ranks).view(np.int64)


def zipf_ranks(length: int, exponent: float) -> Ranks:
    """Draw ranks below LABELS, rank r with probability proportional to (r + 1)^-exponent, by inversion."""
    cumulated = np.cumsum(np.arange(1, LABELS + 1, dtype=np.float64) ** -exponent)
    uniform = np.random.default_rng([SEED, round(10 * exponent)]).random(length)
    ranks = np.searchsorted(cumulated, uniform * cumulated[-1], side="right")
    # a product that is rounded up may reach the end
    clipped: Ranks = np.minimum(ranks, LABELS - 1).astype(np.uint64)
    return clipped


def strings(ranks: Ranks) -> Any:
    """Return a text label of 20 to 28 bytes for each rank."""
    import pyarrow as pa

    codes = scrambled(np.arange(ranks.max() + np.uint64(1), dtype=np.uint64)).tolist()
    return pa.array([f"/p/{code:016x}/{'.' * (code % 9)}" for code in codes]).take(pa.array(ranks))


def most_frequent(values: Any) -> Truth:
    """Count exactly."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counts = pc.value_counts(pa.array(values) if isinstance(values, np.ndarray) else values)
    numbers = counts.field("counts").to_numpy()
    least = np.partition(numbers, -TOP)[-TOP]
    return Truth(frozenset(counts.field("values").filter(pa.array(numbers >= least)).to_pylist()))


def make(name: str) -> None:
    """Make the file of a stream, unless it is there."""
    if name in HARD:
        return
    path = cached_file(name)
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"unfinished-{path.name}")
    if name in FILES:
        make("string-zipf-1.1")
        _write_table(name, _strings_of(cached_file("string-zipf-1.1")), temporary)
    else:
        kind, shape = name.split("-", 1)
        length = items(10**7 if kind == "int64" else 5 * 10**6)
        ranks = np.arange(length, dtype=np.uint64) if shape == "distinct" else zipf_ranks(length, float(shape[5:]))
        values = integers(ranks) if kind == "int64" else strings(ranks)
        if shape != "distinct":
            truth_file(name).write_text(json.dumps(sorted(most_frequent(values).labels)))
        if kind == "int64":
            with temporary.open("wb") as file:
                np.save(file, values)
        else:
            _write_strings(values, temporary)
    temporary.replace(path)


def cached_file(name: str) -> Path:
    """Return the path of a stream's file."""
    if name in FILES:
        return folder() / FILES[name]
    return folder() / f"{name}.{'npy' if name.startswith('int64') else 'arrow'}"


def truth_file(name: str) -> Path:
    """Return the path of the labels that belong to the top."""
    return folder() / f"{name}.top.json"


def stream(name: str, capacity: int) -> Stream:
    """Load a stream that was made, or one made for this capacity."""
    if name in HARD:
        return HARD[name](capacity, items(2 * 10**6))
    known = truth_file(name)
    truth = Truth(frozenset(json.loads(known.read_text()))) if known.exists() else None
    path = cached_file(name)
    return Stream(np.load(path) if path.suffix == ".npy" else _strings_of(path), truth)


def _write_strings(values: Any, path: Path) -> None:
    import pyarrow as pa

    batch = pa.record_batch([values], names=["label"])
    with pa.ipc.new_file(str(path), batch.schema) as writer:
        writer.write_batch(batch)


def _strings_of(path: Path) -> Any:
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:  # read, not mapped: no page is touched for the first time under the clock
        return pa.ipc.open_file(file).get_batch(0).column(0)


def _write_table(name: str, labels: Any, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if name == "lines":
        bare = pa.csv.WriteOptions(include_header=False, quoting_style="none")
        pa.csv.write_csv(pa.table({"label": labels}), str(path), bare)
        return
    random = np.random.default_rng(SEED)
    length = len(labels)
    table = pa.table(
        {
            "time": np.arange(length) + 1_700_000_000,
            "status": random.choice([200, 304, 404], length),
            "label": labels,
            "bytes": random.integers(0, 100_000, length),
            "seconds": random.random(length).round(4),
        }
    )
    if name == "csv":
        pa.csv.write_csv(table, str(path), pa.csv.WriteOptions(quoting_style="none"))
    else:
        pa.parquet.write_table(table, str(path))


# The hard streams. Each fills the table in its prologue, then asks for victims in the way that suits a queue of them
# least. If an update costs amortised O(1), the nanoseconds do not depend on the capacity but through caches.


def free_slot(capacity: int, length: int) -> Stream:
    """One light label among heavy ones, then labels that never came before: each evicts the one before it."""
    heavy = np.full(capacity, 1 << 40, dtype=np.uint64)
    heavy[capacity // 2] = 1
    new = np.arange(capacity, capacity + length, dtype=np.uint64)
    return _after(np.arange(capacity, dtype=np.uint64), heavy, integers(new), np.ones(length, dtype=np.uint64))


def far_apart(capacity: int, length: int) -> Stream:
    """Give counts 1000, 2000, 3000, ... in random order, then labels that never came before: one victim at a time."""
    counts = (np.random.default_rng(SEED).permutation(capacity).astype(np.uint64) + np.uint64(1)) * np.uint64(1000)
    new = np.arange(capacity, capacity + length, dtype=np.uint64)
    return _after(np.arange(capacity, dtype=np.uint64), counts, integers(new), np.ones(length, dtype=np.uint64))


def large_weights(capacity: int, length: int) -> Stream:
    """Labels that never came before with weights from 1 to 2^30, small ones more often: none arrives at minimum + 1."""
    random = np.random.default_rng(SEED)
    weights = np.exp2(random.uniform(0, 30, capacity + length)).astype(np.uint64)
    new = np.arange(capacity, capacity + length, dtype=np.uint64)
    return _after(np.arange(capacity, dtype=np.uint64), weights[:capacity], integers(new), weights[capacity:])


def sawtooth(capacity: int, length: int) -> Stream:
    """As many new labels as there are counters, then the same once more, backwards: every victim foreseen is lost."""
    teeth = -(-length // (2 * capacity))
    up = np.arange(capacity, capacity * (teeth + 1), dtype=np.uint64).reshape(teeth, capacity)
    ranks = np.concatenate([up, up[:, ::-1]], axis=1).reshape(-1)[:length]
    first = np.arange(capacity, dtype=np.uint64)
    one = np.ones(capacity, dtype=np.uint64)
    return _after(first, one, integers(ranks), np.ones(length, dtype=np.uint64))


def _after(ranks: Ranks, prologue_weights: Ranks, values: Integers, weights: Ranks) -> Stream:
    return Stream(values, None, weights, integers(ranks), prologue_weights)


HARD: Final[dict[str, Callable[[int, int], Stream]]] = {
    "free-slot": free_slot,
    "far-apart": far_apart,
    "large-weights": large_weights,
    "sawtooth": sawtooth,
}
