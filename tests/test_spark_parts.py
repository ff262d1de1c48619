"""What `dptop.spark` does on either side of Spark, without Spark: `make test-spark` has the rest."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import traceback
import types
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest

import dptop
from dptop import spark
from dptop.ledger import Ledger
from dptop.spark import job
from dptop.spark import pieces as protocol
from dptop.spark.executor import Counting
from dptop.spark.pieces import PIECES, Piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SECRET = b"known to the driver"


def shards_of(pieces: Iterable[Piece], counting: Counting, numbered: int | None) -> list[dptop.SpaceSaving]:
    """Put a copy of the pieces together."""
    return protocol.shards_of(list(pieces), counting, numbered)


class Task:
    """Stands for Spark's TaskContext."""

    number = 0

    @classmethod
    def get(cls) -> type[Task]:
        return cls

    @classmethod
    def partitionId(cls) -> int:  # noqa: N802 - Spark's name
        return cls.number


@pytest.fixture(autouse=True)
def executor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", types.SimpleNamespace(TaskContext=Task))


def batches(*items: Any) -> list[pyarrow.RecordBatch]:
    return [pyarrow.RecordBatch.from_pydict({"label": pyarrow.array(part)}) for part in items]


def sent(partition: int, *items: Any, counting: Counting | None = None) -> list[Piece]:
    """Return what the executor of a partition yields, as the driver has it."""
    counting = counting or Counting(10, SECRET)
    Task.number = partition
    rows: list[Piece] = []
    for batch in counting.summarise(iter(batches(*items))):
        rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return rows


def test_a_partition_is_one_summary_of_its_items() -> None:
    """In their order, over all batches, without nulls; the columns are those that Spark was told of."""
    first, second = ["a", None, "b"], ["a", "c", "d"] * 5
    counting = Counting(2, SECRET)
    (shard,) = shards_of(sent(0, first, second, counting=counting), counting, None)
    alone = dptop.SpaceSaving(2)
    alone.extend([*first, *second])
    assert shard.private_counters() == alone.private_counters()
    (batch,) = counting.summarise(iter([]))
    assert [f"{field.name} {field.type}" for field in batch.schema] == PIECES.replace(" int", " int32").split(", ")


def test_executors_draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of a task give the same bytes: with the driver's secret all is determined, the identity included."""
    counting = Counting(2, SECRET)
    runs = [sent(3, ["a", "b", "c"] * 9, counting=counting) for _ in range(2)]
    assert runs[0] == runs[1]
    assert sent(4, ["a", "b", "c"] * 9, counting=counting) != runs[0]
    assert sent(3, ["a", "b", "c"] * 9, counting=Counting(2, b"another")) != runs[0]

    def drawn(capacity: int, _identity: bytes) -> dptop.SpaceSaving:
        return dptop.SpaceSaving(capacity)

    monkeypatch.setattr(dptop.SpaceSaving, "_identified", drawn)  # a broken copy, seen by the same comparison
    assert sent(3, ["a"]) != sent(3, ["a"])


def test_identities_are_sixteen_bytes_of_their_own() -> None:
    """One for each partition, and none that tells another to who does not know the secret."""
    counting = Counting(2, SECRET)
    identities = [counting.identity(number) for number in range(1000)]
    assert {len(identity) for identity in identities} == {16}
    assert len(set(identities)) == 1000
    assert counting.nothing(7)._identity == identities[7]
    assert SECRET not in repr(counting).encode()


def test_a_large_summary_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are put together by their numbers, in whatever order they come."""
    monkeypatch.setattr(protocol, "PIECE_BYTES", 50)
    pieces = sent(0, ["a", "b", "c"]) + sent(1, ["a", "d"])
    assert len(pieces) > 4
    shards = shards_of(reversed(pieces), Counting(10, SECRET), None)
    assert [shard.private_counters() for shard in shards] == [[("a", 1), ("b", 1), ("c", 1)], [("a", 1), ("d", 1)]]


TORN: dict[str, Callable[[list[Piece]], list[Piece]]] = {
    "a partition is missing": lambda pieces: [piece for piece in pieces if piece[0] != 0],
    "a piece is missing": lambda pieces: pieces[1:],
    "the last piece is missing": lambda pieces: pieces[:-1],
    "a piece came twice": lambda pieces: [*pieces, pieces[0]],
    "a partition came as another": lambda pieces: [(1 - piece[0], *piece[1:]) for piece in pieces],
    "pieces disagree on their number": lambda pieces: [(*pieces[0][:2], 99, pieces[0][3]), *pieces[1:]],
    "another job's": lambda pieces: pieces[: len(pieces) // 2] + sent(1, ["b"], counting=Counting(10, b"another")),
    "another capacity": lambda pieces: pieces[: len(pieces) // 2] + sent(1, ["b"], counting=Counting(11, SECRET)),
}


@pytest.mark.parametrize("tear", TORN.values(), ids=TORN)
def test_parts_that_are_not_whole_are_refused(
    tear: Callable[[list[Piece]], list[Piece]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each partition once, whole, and of this job, or nothing."""
    monkeypatch.setattr(protocol, "PIECE_BYTES", 50)
    pieces = sent(0, ["a"]) + sent(1, ["b"])
    assert len(shards_of(pieces, Counting(10, SECRET), None)) == 2
    with pytest.raises(dptop.SourceError, match="counted once, by this job"):
        shards_of(tear(pieces), Counting(10, SECRET), None)


def test_more_partitions_than_a_release_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is known only after the job: no error says that nothing was spent."""
    monkeypatch.setattr(protocol, "MAX_SHARDS", 2)
    pieces = sent(0, ["a"]) + sent(1, ["b"])
    assert len(shards_of(pieces, Counting(10, SECRET), None)) == 2
    with pytest.raises(dptop.SourceError, match=r"at most 2\*\*20 .* got 3"):
        shards_of(pieces + sent(2, ["c"]), Counting(10, SECRET), None)


def test_partitions_whose_number_is_known_may_be_empty() -> None:
    """What Spark skipped as a whole are empty shards with the identities that they would have had.

    One too many is refused, and one too few: then the shuffle was not the one that was asked for.
    """
    counting = Counting(10, SECRET)
    shards = shards_of([], counting, 3)
    assert [shard.private_counters() for shard in shards] == [[], [], []]
    assert [shard._identity for shard in shards] == [counting.identity(number) for number in range(3)]
    assert len(shards_of([], counting, None)) == 1
    with pytest.raises(dptop.SourceError):
        shards_of(sent(3, ["b"]), counting, 3)
    with pytest.raises(dptop.SourceError):
        shards_of(sent(1, ["b"]), counting, 3)


def test_a_refused_item_comes_as_a_reason() -> None:
    """As a row, without the item, after all batches were taken."""
    rest = iter(batches(["a"], [1.5], ["never"]))
    Task.number = 5
    (batch,) = Counting(10, SECRET).summarise(rest)
    assert list(rest) == []
    ((partition, number, _, data),) = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    assert (partition, number) == (5, protocol.REFUSED)
    with pytest.raises(dptop.SourceError, match=r"cannot be counted: .*Float64") as refused:
        shards_of([(partition, number, 1, data)], Counting(10, SECRET), None)
    assert "1.5" not in str(refused.value)


def frames_of(error: BaseException) -> list[dict[str, Any]]:
    """Return the local variables of the package in the traceback of an error."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [dict(frame.f_locals) for frame in frames if "/dptop/" in frame.f_code.co_filename]


@pytest.mark.parametrize("tear", TORN.values(), ids=TORN)
def test_an_error_about_pieces_holds_none_of_them(
    tear: Callable[[list[Piece]], list[Piece]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither does one that is raised when items were refused; tools that note local variables would keep them."""
    monkeypatch.setattr(protocol, "PIECE_BYTES", 100)
    whole = sent(0, ["s3cret" * 100]) + sent(1, ["b"])
    assert "s3cret" in repr(whole)
    for pieces in (tear(whole), [*whole, (1, protocol.REFUSED, 1, b"why")]):
        with pytest.raises(dptop.SourceError) as torn:
            protocol.shards_of(pieces, Counting(10, SECRET), None)
        assert frames_of(torn.value)
        assert "s3cret" not in repr(frames_of(torn.value))
        assert torn.value.__context__ is None


def test_ledgers_of_parts_are_not_kept() -> None:
    """Nobody can have a copy of a part; a process that releases for years must not remember them all."""
    counting = Counting(10, SECRET)
    before = len(Ledger._known)
    shards = shards_of(sent(0, ["a"]), counting, None)
    assert dptop.release(dptop.Sharded(shards), epsilon=1.0, delta=1e-6).private
    with pytest.raises(dptop.BudgetExhausted):
        dptop.release(shards[0], epsilon=1.0, delta=1e-6)
    assert len(Ledger._known) == before


class Failing:
    """Stands for a frame whose job fails."""

    def __init__(self, fail: Callable[[], object]) -> None:
        self.toArrow = fail

    def mapInArrow(self, *_: object) -> Failing:  # noqa: N802 - Spark's name
        return self


def quoting() -> None:
    raise ValueError("s3cret")


def too_large() -> None:
    raise ValueError(
        "An error occurred while calling o55.collectToPython.\n: org.apache.spark.SparkException: Job aborted due to"
        " stage failure: Total size of serialized results of 3 tasks (2.0 GiB) is bigger than"
        " spark.driver.maxResultSize (1024.0 MiB), and s3cret"
    )


def too_large_in_a_row() -> None:
    raise ValueError("s3cret: Job aborted due to stage failure: Total size of serialized results of 3 tasks")


def collected(fail: Callable[[], object]) -> list[Piece]:
    frame: Any = Failing(fail)
    return job.collected(frame, lambda batches: batches)


def test_nothing_that_spark_said_hangs_on_an_error() -> None:
    for fail, says in (
        (quoting, "ValueError"),
        (too_large, "take a smaller capacity, or max_partitions"),
        (too_large_in_a_row, "the driver's version of dptop"),
    ):
        with pytest.raises(dptop.SourceError, match=says) as failed:
            collected(fail)
        assert (failed.value.__context__, failed.value.__cause__) == (None, None)
        assert "s3cret" not in str(failed.value) + repr(frames_of(failed.value))


def failing_handler(*_: object) -> None:
    """As that of Spark 3.5 may: it cancels the jobs first."""
    raise ValueError("reentrant call")


def another_error() -> None:
    """As py4j and Spark 4 do: what the handler raised is replaced."""
    with contextlib.suppress(ValueError, KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    raise ValueError("s3cret")


def no_error() -> None:
    with contextlib.suppress(ValueError, KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("handler", [signal.default_int_handler, failing_handler])
@pytest.mark.parametrize("happens", [another_error, no_error])
def test_an_interruption_stays_one(handler: Any, happens: Callable[[], object]) -> None:
    """Whatever comes of it; a loop that goes on after errors of the package must not go on after Ctrl-C."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt) as stopped:
            job.keeping_interruptions(happens)
        assert stopped.value.__context__ is None
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted_and_quoting() -> None:
    signal.raise_signal(signal.SIGINT)
    quoting()


def test_what_is_no_interruption_stays_what_it_is() -> None:
    """A job that fails while an interruption that is over is handled, and one beside a handler that raises nothing."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with pytest.raises(dptop.SourceError):
            job.keeping_interruptions(lambda: collected(interrupted_and_quoting))
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(dptop.SourceError):
            job.keeping_interruptions(lambda: collected(quoting))


class ConditionError(Exception):
    """Stands for Spark's errors."""

    def getCondition(self) -> str:  # noqa: N802 - Spark's name
        return str(self)


def test_an_error_is_named_without_its_text() -> None:
    """A condition is a word of capitals; anything else may be a row."""
    assert job.kind_of(ValueError("s3cret")) == "ValueError"
    assert job.kind_of(ConditionError("CAST_INVALID_INPUT")) == "ConditionError, CAST_INVALID_INPUT"
    assert job.kind_of(ConditionError("s3cret")) == "ConditionError"


def test_the_package_does_without_spark() -> None:
    """Nothing imports pyspark or pyarrow before a release of a frame, and a frame of something else is refused."""
    program = "import sys, dptop, dptop.spark; sys.exit(any(m in sys.modules for m in ('pyspark', 'pyarrow')))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    with pytest.raises(dptop.InvalidParameter, match="df must be a DataFrame of Spark"):
        spark.release(["a"], "item", capacity=10, epsilon=1.0, delta=1e-6)
