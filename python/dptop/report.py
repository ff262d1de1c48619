"""A release as a reader meets it: rows, frames and files in many formats, and the guarantee in words.

Everything here is public: it comes from noisy numbers, published labels and declared parameters. The table for a
terminal is in `dptop.table`.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import io
import json
import operator
import os
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from dptop import _native
from dptop.atomic import replacing
from dptop.errors import InvalidParameter, MissingExtra, SourceError
from dptop.label import Label, ShortenedLabel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

__all__ = ["Release", "Row"]

UNIT: Final = "one item of the stream, added or removed anywhere"


class Row(NamedTuple):
    """A released label.

    Attributes:
        item: the label.
        count: its noisy count: the counter of a summary plus noise, or an estimate that is read from noisy cells or
            from an oracle.
        low: the lower end of its interval.
        high: the upper end.
    """

    item: Label
    count: int  # type: ignore[assignment]  # hides tuple.count: the name is part of the public interface
    low: int
    high: int


@dataclass(frozen=True)
class Release:
    """The public result of `dptop.release`: rows by count downwards, then item.

    Iterate over it for `Row`s. It holds no raw state and can be pickled, copied, printed and published.

    Attributes:
        rows: the released labels.
        epsilon: the total epsilon that is kept.
        delta: the total delta.
        mechanism: the name of the mechanism.
        private: False if a seed for tests was used; such a result protects nobody.
        noisy_minimum: the noisy minimum counter of each partition, of each shard in turn (from Spark in ascending
            order), with the mechanisms "stable-threshold", "selected", "local-sums" and "central-counts"; of the others
            there is none.
        noisy_length: the noisy length of the stream, if a share, an envelope or an oracle of another library asked for
            it and none was declared.
        facts: what the mechanism says of itself in words; `explain` has them and those that hold for all.
        parameters: what was declared and what follows from it; it cannot be changed. Its keys:

            - `summary`: what counted the stream, by the name of its type: "SpaceSaving", "Tracked" and so on.
            - `capacity`: the labels that it tracks at the most, over all partitions and shards.
            - `shards`: how many parts of the stream were counted apart.
            - `partition`: how items came to shards, as declared: "as-stored" or "label".
            - `label_epsilon`: the part of `item_epsilon` that selects labels in each shard, where counts have another.
            - `candidates`: how `Tracked` chooses them, "space-saving" or "estimates".
            - `tie`: the tie rule of SpaceSaving, "least-recent" or "most-recent"; None where labels are tracked by
              their estimates.
            - `partitions`: the tables of SpaceSaving, each with a noisy minimum of its own.
            - `sketch`: what counts read from a sketch of dptop are read from: "CountMin" or "CountSketch".
            - `width`: the cells in each of its rows.
            - `depth`: its rows.
            - `noise`: in its cells: "laplace" or "gaussian".
            - `scale`: of that noise, in items: 1/epsilon of a cell, or the square root of the variance. Where there is
              no sketch, of the Laplace noise on counters: 1/epsilon of a counter; with "central-counts" of the noise on
              each sum of counters.
            - `offset`: items; a label is released if its noisy counter exceeds the noisy minimum by more than this,
              with the mechanisms "stable-threshold" and "selected", and with those of shards if it does in one of
              them; the largest one where shards have several, by their tie rules.
            - `gap`: items; with the mechanism "paper": what noise adds to the threshold.
            - `threshold`: items; a label is released if its noisy count exceeds this, with the mechanisms "paper" and
              "envelope"; if it is at least this, with "misra-gries" and "misra-gries-published". It is left out where
              no envelope holds and nothing is released.
            - `undercount`: items; of Misra-Gries: a count is below the true count by at most this, besides the noise;
              None if no length is public.
            - `top`: rows at the most; None for no limit.
            - `share`: the smallest share of the stream, 0 to 1; None for no such rule.
            - `length`: the declared upper bound on the length, in items; None if there is none.
            - `length_epsilon`: the part of `item_epsilon` that the noisy length took; 0 where none was drawn.
            - `max_contributions`: the largest total weight of the items of one unit, in items.
            - `item_epsilon`: the epsilon that protects each single item; the total if `max_contributions` is 1.
            - `item_delta`: the delta that protects each single item, likewise.
            - `confidence`: the probability that intervals hold, 0 to 1.
            - `simultaneous`: True if that is the probability that all hold at once, False if it is that of each.
    """

    rows: tuple[Row, ...]
    epsilon: float
    delta: float
    mechanism: str
    private: bool
    noisy_minimum: tuple[int, ...]
    noisy_length: int | None
    parameters: Mapping[str, Any] = field(repr=False, hash=False)
    facts: tuple[tuple[str, str], ...] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    def __reduce__(self) -> tuple[type[Release], tuple[Any, ...]]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Release, tuple((values | {"parameters": dict(self.parameters)}).values())

    @property
    def unit(self) -> str:
        """What is protected."""
        contributions = self.parameters["max_contributions"]
        if contributions == 1:
            return UNIT
        return f"all items of one unit, of total weight at most {contributions}, added or removed anywhere"

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, position: int) -> Row:
        return self.rows[position]

    def explain(self) -> str:
        """Return the guarantee in words: unit, epsilon and delta, noise, rule, intervals, limits. Public facts only."""
        return "\n".join(f"{name}: {text}" for name, text in self._facts())

    def _facts(self) -> Iterator[tuple[str, str]]:
        p = self.parameters
        if not self.private:
            yield "NOT PRIVATE", "a seed for tests determined noise or hashes; this result protects nobody."
        yield "Protected", f"{self.unit}."
        guarantee = f"({self.epsilon:.12g}, {self.delta:.12g})-differential privacy for this release as a whole;"
        yield "Guarantee", f"{guarantee} replacing an item instead costs (2 epsilon, (1 + e^epsilon) delta)."
        if p["max_contributions"] > 1:
            each = f"each item is protected with ({p['item_epsilon']:.6g}, {p['item_delta']:.3g})"
            bound = f"the caller, at the source: at most {p['max_contributions']} a unit. dptop did not check it"
            yield "Enforced by", f"{bound}; {each}."
        yield from self.facts
        if p["length"] is not None:
            yield "Length", f"the guarantee covers streams of at most {p['length']} items, as the caller declared."
        if p["top"] is not None:
            yield "Top", f"of those, the {p['top']} with the largest noisy counts."
        chance = f"with probability {p['confidence']:.12g}"
        if p["simultaneous"]:
            yield "Intervals", f"low to high holds the true count of every released label at once {chance}."
        else:
            picked = ", and less often if top or share picked it by its noisy count" if p["top"] or p["share"] else ""
            given = f"each label by itself, given that it was released{picked}"
            yield "Intervals", f"low to high holds a label's true count {chance}, {given}."
        yield "Not covered", "timing, memory use, and the machine that holds the summary."

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dict per row: item, count, low, high."""
        return [row._asdict() for row in self.rows]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand over the rows as an Arrow stream with columns item, count, low and high, to any library that asks."""
        items: list[Any] = [_plain(row.item) for row in self.rows]
        _, counts, lows, highs = zip(*self.rows, strict=True) if self.rows else ((), (), (), ())
        return _native.table_stream(items, list(counts), list(lows), list(highs))

    def to_arrow(self) -> Any:
        """Return a pyarrow table. Needs the extra `parquet`."""
        return _optional("pyarrow", "parquet").table(self)

    def to_polars(self) -> Any:
        """Return a Polars frame. Needs Polars."""
        return _optional("polars").DataFrame(self)

    def to_pandas(self) -> Any:
        """Return a pandas frame. Needs pandas."""
        rows = [row._replace(item=_plain(row.item)) for row in self.rows]
        return _optional("pandas").DataFrame(rows, columns=list(Row._fields))

    def to_csv(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Write item,count,low,high as CSV; bytes labels are written as they are, text as UTF-8.

        Args:
            file: a path, where the file appears whole; or an object open for writing bytes.

        Raises:
            SourceError: the path cannot be written.
            InvalidParameter: neither a path nor an object that takes bytes.
        """
        with _opened(file) as out:
            out.write(b"item,count,low,high\n")
            for item, count, low, high in self.rows:
                out.write(_csv_cell(item) + f",{count},{low},{high}\n".encode())

    def to_json(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the rows as one JSON array of objects; their members as in `json_lines`, all else as in `to_csv`."""
        with _opened(file) as out:
            lines = (line.encode() for line in self.json_lines())
            out.write(b"[" + b",\n ".join(lines) + b"]\n")

    def to_jsonl(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the rows as JSON lines; their members as in `json_lines`, all else as in `to_csv`."""
        with _opened(file) as out:
            for line in self.json_lines():
                out.write(line.encode() + b"\n")

    def json_lines(self) -> Iterator[str]:
        """Yield each row as a JSON object: item, count, low, high.

        Bytes labels are written as text where they are UTF-8; others, which no JSON text can hold, as `item_base64`.
        A label above the length limit has `prefix` or `prefix_base64` and `sha256` in place of `item`.
        """
        for row in self.rows:
            yield json.dumps(
                {**_json_item(row.item), "count": row.count, "low": row.low, "high": row.high}, ensure_ascii=False
            )

    def to_parquet(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Write Parquet, to a path or an object as in `to_csv`. Needs the extra `parquet`."""
        table = self.to_arrow()
        parquet = _optional("pyarrow.parquet", "parquet")
        with _opened(file) as out:
            parquet.write_table(table, out)


@contextlib.contextmanager
def _opened(file: str | os.PathLike[str] | BinaryIO) -> Iterator[BinaryIO]:
    """Open a path; an object that can be written is the caller's own to open and to close."""
    if isinstance(file, (str, os.PathLike)):
        with replacing(file, private=False) as out:
            yield out
    elif hasattr(file, "write"):
        content = io.BytesIO()
        yield content
        _write_whole(file, content.getvalue())
    else:
        raise _no_file(file)


def _write_whole(file: BinaryIO, content: bytes) -> None:
    """Write all of it: an object without a buffer may take a part at a time, and says how much it took."""
    while content:
        try:
            written = file.write(content)
            if written is None or isinstance(written, bool):
                written = 0 if isinstance(file, io.RawIOBase) else len(content)  # who does not count takes all
            written = operator.index(written)
        except (TypeError, ValueError):  # also of a file that is closed, open for reading, or asynchronous
            raise _no_file(file) from None
        if not 0 < written <= len(content):
            raise SourceError("the object takes no more of the content. Write to one that waits, or to a path.")
        content = content[written:]


def _no_file(file: object) -> InvalidParameter:
    return InvalidParameter(
        f"file must be a path or an object open for writing bytes; got {type(file).__name__}."
        " Open a file with mode 'wb'."
    )


def _plain(item: Label) -> int | str | bytes:
    return item.plain() if isinstance(item, ShortenedLabel) else item


def _csv_cell(item: Label) -> bytes:
    """Return a label as a CSV cell, quoted where it must be to read back (RFC 4180)."""
    plain = _plain(item)
    raw = plain if isinstance(plain, bytes) else str(plain).encode()
    if raw and not any(mark in raw for mark in (b'"', b",", b"\n", b"\r")):
        return raw
    return b'"' + raw.replace(b'"', b'""') + b'"'


def _json_item(item: Label) -> dict[str, int | str]:
    if isinstance(item, ShortenedLabel):
        return {**_json_text("prefix", item.prefix), "sha256": item.sha256.hex()}
    return {"item": item} if isinstance(item, int) else _json_text("item", item)


def _json_text(name: str, value: str | bytes) -> dict[str, int | str]:
    if isinstance(value, str):
        return {name: value}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def _optional(module: str, extra: str | None = None) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        package = f"'dptop[{extra}]'" if extra else module
        raise MissingExtra(f"this needs {module}, which is not installed. Run: pip install {package}") from None
