"""Raw results: one row for each release of one method, kept as Parquet with what they were made by.

Figures, claims and the page are made from these rows and nothing else.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from dptop.atomic import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["SCHEMA", "Row", "made_by", "read", "write"]


class Row(NamedTuple):
    """One release.

    Attributes:
        sweep: "grid" (k, skew, epsilon and the factor of the capacity, around one point) or "frontier".
        stream: "zipf", or the name of a real stream.
        length: items of the stream, n.
        distinct: labels that occur in it.
        skew: of a Zipf stream, else None.
        k: the paper's k: heavy labels have at least n/k items. None on the frontier, where nothing is asked for.
        factor: the capacity over k, the paper's c; None on the frontier.
        capacity: labels or counters of the summary.
        epsilon: None for what is not private.
        delta: None for what is not private.
        method: a key of `experiments.methods.METHODS`.
        seed: of the whole run.
        repetition: 0 to 3: another synthetic stream, or other hashes on a real one.
        draw: 0 to 4: other noise on the same summary.
        heavy: labels with at least n/k items.
        released: labels in the release.
        recall: released heavy labels over heavy labels; None if there is no heavy label.
        precision: released heavy labels over released labels; None if none was released.
        relative_error: mean of |count - true count| / true count over released labels; None if none was.
        absolute_error: mean of |count - true count| over released labels, in items; None if none was.
        threshold: what a noisy count had to exceed in this release, in items, apart from n/k; of `selected` the counter
            that selects. None where nothing is private.
        update_ns: CPU time of one item, in nanoseconds: whole batches, one thread.
        memory_bytes: of the summary itself, when the stream has been counted.
    """

    sweep: str
    stream: str
    length: int
    distinct: int
    skew: float | None
    k: int | None
    factor: int | None
    capacity: int
    epsilon: float | None
    delta: float | None
    method: str
    seed: int
    repetition: int
    draw: int
    heavy: int
    released: int
    recall: float | None
    precision: float | None
    relative_error: float | None
    absolute_error: float | None
    threshold: float | None
    update_ns: float
    memory_bytes: int


def _arrow_type(hint: Any) -> pa.DataType:
    types: dict[Any, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    return next(of for python, of in types.items() if hint in (python, python | None))


SCHEMA: Final = pa.schema([(name, _arrow_type(hint)) for name, hint in get_type_hints(Row).items()])
MADE_BY: Final = b"dptop.experiments"
"""The key of the file's metadata under which it says, as JSON, what it was made by."""


def write(path: Path, rows: Iterable[Row], made_by: dict[str, Any]) -> None:
    """Write rows, and what they were made by: versions, machine, seed, sources of the streams. Whole or not at all."""
    table = pa.Table.from_pylist([row._asdict() for row in rows], schema=SCHEMA)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, private=False) as file:
        pq.write_table(table.replace_schema_metadata({MADE_BY: json.dumps(made_by)}), file, compression="zstd")


def read(path: Path) -> list[Row]:
    """Return the rows of one file."""
    return [Row(**row) for row in pq.read_table(path, schema=SCHEMA).to_pylist()]


def made_by(path: Path) -> dict[str, Any]:
    """Return what the rows of a file were made by."""
    found: dict[str, Any] = json.loads(pq.read_schema(path).metadata[MADE_BY])
    return found
