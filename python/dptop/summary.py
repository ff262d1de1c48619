"""What all summaries share: bounded memory, raw and private; reading a stream, the ledger, saving and loading.

Only `dptop.release` turns a summary into something public.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Final, Self

from dptop._native import MAX_LABEL_BYTES, MAX_THREADS, MIN_LABEL_BYTES, Reading
from dptop.atomic import Appeared, check_place, reason, replacing, settled
from dptop.errors import CorruptSummary, InvalidParameter, SourceError
from dptop.ledger import Ledger
from dptop.locks import held
from dptop.parameters import whole_number
from dptop.privacy import Budget
from dptop.record import Record
from dptop.source import open_labels, read_weights, rereadable

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from dptop.ledger import Spent

__all__ = ["Summary", "check_replaceable", "label_limit", "load", "saved_bytes", "thread_count"]

SAVED_MAGIC: Final = b"dptop\0\r\n"
"""How the saved form begins."""
SAVED_TYPE: Final = slice(10, 12)
"""Where it says which type of summary it is."""


class Summary(ABC):
    """A stream in bounded memory. Everything in it is private except its parameters; only `dptop.release` publishes.

    Its repr is for whoever may see the stream: it tells the kind of the labels, and so whether there were any.
    """

    _saved_as: ClassVar[int]
    """The number of the type in the saved form (docs/saved-form.md)."""
    _types: ClassVar[dict[int, type[Summary]]] = {}

    def __init_subclass__(cls) -> None:
        if (number := cls.__dict__.get("_saved_as")) is not None:
            cls._types[number] = cls

    def _start(self, budget: Budget | None, *, incomplete: bool = False, known: bool = True) -> None:
        """Begin without items, or go on with those of a saved summary. Called once the counters are there.

        Not `known` is a summary of which there is no copy, and never will be: the process does not keep its ledger.
        """
        if budget is not None and not isinstance(budget, Budget):
            raise InvalidParameter(f"budget must be a dptop.Budget; got {type(budget).__name__}. Build one of it.")
        self._budget = budget
        self._begun: Reading | None = None
        self._open = {Reading()} if incomplete else set()
        self._ledger = Ledger.of(self._identity) if known else Ledger(self._identity)

    @property
    @abstractmethod
    def _identity(self) -> bytes:
        """Random, drawn at construction, kept by copies and saved forms."""

    @abstractmethod
    def _count(self, batches: list[Any], weights: Any, threads: int, reading: Reading) -> None:
        """Count batches of labels, all or none, and mark the reading once they are counted."""

    def _read_weights(self, weights: Any) -> Any:
        """Return the weights of an input, as `_count` takes them."""
        return read_weights(weights)

    @abstractmethod
    def _length(self) -> int:
        """Return the sum of all weights. PRIVATE."""

    @abstractmethod
    def _snapshot(self) -> tuple[Any, ...]:
        """Return the length, and what else a release reads, all of one moment. PRIVATE."""

    @abstractmethod
    def _encode(self, record: bytes) -> bytes:
        """Return the saved form with a record in it."""

    @abstractmethod
    def _decode(self, data: bytes) -> bytes:
        """Take the counters from a saved form and return the record; called on an object without any."""

    @property
    def budget(self) -> Budget | None:
        """What was declared for all releases together. Public."""
        return self._budget

    @abstractmethod
    def update(self, item: int | str | bytes | None, weight: int = 1) -> None:
        """Count one item, `weight` times in a row. None is a null and skipped; weight 0 changes nothing."""

    def extend(self, items: Any, weights: Any = None, *, threads: int = 1) -> None:
        """Count many items in their order: the same as `update` for each.

        A list, a tuple or an array is checked whole, then counted: on an error nothing of it is. An error or an
        interruption after a part of an input was counted, or may have been lost, leaves the summary incomplete, and it
        is never released: any error that comes with an iterator, or with a stream that may not be given again. Neither
        is it released while an input is being read.

        Args:
            items: a list, tuple or any iterable of int, str or bytes (None is a null and skipped) that has an order of
                its own, so no set; a one-dimensional NumPy array of integers, text or bytes; whatever hands over Arrow
                data, with `__arrow_c_array__` or `__arrow_c_stream__`: a pyarrow array or chunked array, a pandas or
                Polars Series, a table with one column, a DuckDB relation; a file, by `dptop.read_labels`.
            weights: as many whole numbers as items, from the same kinds of input; 0 leaves the item out. They belong to
                the items of the stream as it came: in counts that were added up first, one item more may move a label
                past others, which no release covers. With weights all of both is in memory before the first item is
                counted; give a long stream piece by piece.
            threads: workers that share the partitions, 1 to 64; more than there are partitions do nothing.

        Raises:
            UnsupportedLabel: items that are no labels, or of another kind than this summary holds.
            InvalidParameter: weights that are no whole numbers or not as many as items, or that sum past 2^63 - 1.
            SourceError: an Arrow stream broke off.
        """
        threads = thread_count(threads)
        with self._reading(items, weights) as reading:
            source = open_labels(items)
            if weights is None:
                for batch in source:
                    self._count([batch], None, threads, reading)
            else:
                known = self._read_weights(weights)
                self._count(list(source), known, threads, reading)

    def _begin_reading(self) -> Reading:
        """Mark the summary as not to be released, until the reading is taken out of `_open`."""
        reading = Reading()
        self._open.add(reading)  # first: whoever saves now sees either this or that another input was begun
        self._begun = reading
        return reading

    @contextlib.contextmanager
    def _reading(self, *inputs: object) -> Iterator[Reading]:
        """Mark the summary as not to be released while inputs are read, and for good unless that is known to end well.

        It ends well if they were read to their end, or if an error came before anything of them was counted or lost. A
        stream that was cut is not a neighbour of itself with an early item removed.
        """
        reading = self._begin_reading()
        can_reread = all(map(rereadable, inputs))
        try:
            yield reading
        except Exception:  # an interruption, or a failure of the machine, never ends well
            if can_reread and not reading.counted:
                self._open.discard(reading)
            raise
        self._open.discard(reading)

    @property
    def _releasable(self) -> bool:
        """Whether every input was read to its end."""
        return not self._open

    def _charge(self, spent: Spent, length: int | None) -> None:
        """Record what a release spends, or refuse it: see `Ledger.charge`."""
        self._ledger.charge(spent, self._budget, length)

    def _close(self) -> None:
        """Allow no further release: the stream was longer than it was declared to be."""
        self._ledger.close()

    def to_bytes(self) -> bytes:
        """Return the saved form: PRIVATE data, as the stream was. What was spent goes with it."""
        begun = self._begun
        data = self._encoded(whole=self._releasable)
        # an input that was begun meanwhile, and perhaps ended, may be in the data in part
        return data if self._begun is begun else self._encoded(whole=False)

    def _encoded(self, *, whole: bool) -> bytes:
        record = Record(self._budget, self._ledger.record(), incomplete=not whole)
        return self._encode(record.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """Read a saved summary; going on with it is the same as never having saved it.

        Raises:
            CorruptSummary: the bytes are cut short, changed, foreign, of another type, or contradict themselves.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidParameter(f"a saved summary is bytes; got {type(data).__name__}. Use dptop.load for a path.")
        return cls._read(bytes(data))[0]

    @classmethod
    def _read(cls, data: bytes, *, known: bool = True) -> tuple[Self, Record]:
        """Return a saved summary, and the record that was saved with it."""
        kind = cls._type_of(data)
        summary = kind.__new__(kind)
        record = Record.from_bytes(summary._decode(data))
        summary._start(record.budget, incomplete=record.incomplete, known=known)
        summary._ledger.unite(record.ledger)
        return summary, record

    @classmethod
    def _type_of(cls, data: bytes) -> type[Self]:
        """Return the type that reads a saved form; of what is none, one that refuses it and says why."""
        named = None
        if data.startswith(SAVED_MAGIC):
            named = cls._types.get(int.from_bytes(data[SAVED_TYPE], "little"))
        if named is None:
            return next((kind for kind in cls._types.values() if issubclass(kind, cls)), cls)
        if issubclass(cls, named):
            return cls
        if not issubclass(named, cls):
            raise CorruptSummary(
                f"the saved summary is of another type: a {named.__name__}, which is not a {cls.__name__}."
                " Use dptop.load, which reads every type."
            )
        return named

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the saved form to a file that only its owner can read; the old file or the new one, never a part.

        If the file that it replaces is an earlier save of this stream, what was spent on it since, as by the command
        `dptop release`, is spent for this summary too.

        Raises:
            SourceError: the file cannot be written, another process is releasing it, or it holds a saved summary that
                cannot be read, so that nobody knows what was spent on it.
        """
        while True:
            place = settled(path)
            with held(place) as old, contextlib.suppress(Appeared):  # then what is there now is looked at
                if old is not None:
                    _unite_with(place, old)
                with replacing(place, private=True, over=old) as file:
                    file.write(self.to_bytes())
                return

    def __copy__(self) -> Self:
        return type(self).from_bytes(self.to_bytes())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return type(self).from_bytes, (self.to_bytes(),)


def _unite_with(path: str | os.PathLike[str], descriptor: int) -> None:
    """Take what a saved summary says was spent into this process's ledger of its stream; other files say nothing."""
    try:
        with open(descriptor, "rb", closefd=False) as file:
            data = saved_bytes(file)
    except OSError as error:
        raise SourceError(
            f"{path!s}: what would be replaced cannot be read ({reason(error)}). Save to another path."
        ) from None
    if not data or not (data.startswith(SAVED_MAGIC) or SAVED_MAGIC.startswith(data)):
        return  # another file; an empty one is what others make to have a name
    try:
        Summary.from_bytes(data)
    except CorruptSummary:
        raise SourceError(
            f"{path!s}: a saved summary that cannot be read is not replaced, as it may say what was spent on this"
            " stream. Save to another path, or remove it."
        ) from None


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Refuse a place where `Summary.save` would replace nothing, before anything is counted.

    Raises:
        SourceError: as `Summary.save`.
    """
    check_place(path, private=True)
    place = settled(path)
    with held(place) as old:
        if old is not None:
            _unite_with(place, old)


def saved_bytes(file: BinaryIO) -> bytes:
    """Return what a file holds; of one that does not begin as a saved form only the beginning, as a log may be long."""
    data = file.read(len(SAVED_MAGIC))
    return data + file.read() if data == SAVED_MAGIC else data


def thread_count(threads: int) -> int:
    """Return a number of workers, 1 to 64, or refuse it."""
    return whole_number("threads", threads, 1, MAX_THREADS, "More than there are cores do not help.")


def label_limit(max_label_bytes: int) -> int:
    """Return a length limit of labels in bytes, 64 to 2^30, or refuse it."""
    return whole_number("max_label_bytes", max_label_bytes, MIN_LABEL_BYTES, MAX_LABEL_BYTES, "The default is 4096.")


def load(path: str | os.PathLike[str]) -> Summary:
    """Read a summary of any type that `save` wrote. Of a file that does not begin as one no more is read.

    Raises:
        SourceError: the file cannot be read.
        CorruptSummary: it holds no whole, consistent summary.
    """
    try:
        with Path(path).open("rb") as file:
            data = saved_bytes(file)
    except (OSError, ValueError, TypeError) as error:
        raise SourceError(f"{path!s}: cannot be read ({reason(error)}). Check the path.") from None
    try:
        return Summary.from_bytes(data)
    except CorruptSummary as error:
        raise CorruptSummary(f"{path}: {error}") from None
