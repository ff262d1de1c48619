"""What a row costs on Spark: `make bench-spark` writes benchmarks/spark.md.

Parquet files of four partitions, counted by one executor core, by dptop and exactly. CPU time is that of the JVM and of
all Python processes together, as Linux has it in /proc; the clocks run while a job runs and at no other time.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow.parquet
from pyspark.sql import SparkSession

from benchmarks import streams
from benchmarks.machine import machine
from benchmarks.markdown import table
from dptop import spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE: Final = Path(__file__).with_name("spark.md")
REPEATS: Final = 5
PARTS: Final = 4
CAPACITY: Final = 10_000
FEW: Final = 1000
"""Labels at low cardinality, of Zipf 1.1; at high cardinality every row has a label of its own."""
LENGTHS: Final = {"int64": 10**7, "string": 5 * 10**6}


class Cost(NamedTuple):
    """Seconds of one job."""

    cpu: float
    wall: float


def no_operation(batches: Iterator[Any]) -> Iterator[Any]:
    """Take all rows and do nothing: what it costs to bring them to Python."""
    rows = sum(batch.num_rows for batch in batches)
    yield pyarrow.RecordBatch.from_pydict({"rows": pyarrow.array([rows], pyarrow.int64())})


def released(partition: str) -> Callable[[Any], object]:
    """Return a release with dptop."""

    def job(df: Any) -> object:
        return spark.release(df, "item", capacity=CAPACITY, epsilon=1.0, delta=1e-9, top=100, partition=partition)

    return job


JOBS: Final[dict[str, Callable[[Any], object]]] = {
    "no-op": lambda df: df.mapInArrow(no_operation, "rows long").collect(),
    "as stored": released("as-stored"),
    "by label": released("label"),
    "groupBy().count()": lambda df: df.groupBy("item").count().orderBy("count", ascending=False).limit(100).collect(),
}
"""By the names of the columns. The exact counts include finding the 100 largest, as the releases do."""


def files(kind: str, cardinality: str) -> Path:
    """Return the folder of a stream's files; they are made if they are not there."""
    folder = streams.folder() / "spark" / f"{kind}-{cardinality}"
    if folder.exists():
        return folder
    length = streams.items(LENGTHS[kind])
    ranks = streams.zipf_ranks(length, 1.1) % np.uint64(FEW) if cardinality == "low" else np.arange(length)
    ranks = ranks.astype(np.uint64)
    values = pyarrow.array(streams.integers(ranks)) if kind == "int64" else streams.strings(ranks)
    unfinished = folder.with_name(f"unfinished-{folder.name}")
    unfinished.mkdir(parents=True, exist_ok=True)
    size = -(-length // PARTS)
    for part in range(PARTS):
        items = values.slice(part * size, size)
        pyarrow.parquet.write_table(pyarrow.table({"item": items}), unfinished / f"{part}.parquet")
    unfinished.rename(folder)
    return folder


def cpu_seconds(root: int) -> float:
    """Return the CPU time of a process and of all that came from it and live, those that ended and were awaited too."""
    parents, used = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        pid = int(stat.parent.name)
        parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(used[pid] for pid in family) / os.sysconf("SC_CLK_TCK")


def measured(session: SparkSession, job: Callable[[Any], object], folder: Path) -> Cost:
    """Run one job, plan and result included."""
    df = session.read.parquet(str(folder.resolve()))
    jvm = session._jvm.java.lang.ProcessHandle.current().pid()
    wall, cpu = time.perf_counter(), cpu_seconds(jvm) + time.process_time()
    job(df)
    return Cost(cpu_seconds(jvm) + time.process_time() - cpu, time.perf_counter() - wall)


def page(session: SparkSession) -> str:
    """Measure everything and return the page."""
    names = [(kind, cardinality) for kind in LENGTHS for cardinality in ("low", "high")]
    folders = {name: files(*name) for name in names}
    costs: dict[tuple[str, str], dict[str, list[Cost]]] = {name: {job: [] for job in JOBS} for name in names}
    for repeat in range(1 + REPEATS):  # the rounds take turns through all rows; the first one warms the JVM
        for name, folder in folders.items():
            for job, run in JOBS.items():
                cost = measured(session, run, folder)
                if repeat:
                    costs[name][job].append(cost)
    sections = [INTRODUCTION.format(repeats=REPEATS, parts=PARTS, few=FEW, capacity=CAPACITY)]
    facts = machine(["pyspark", "pyarrow", "numpy"])
    sections.append("## Machine and versions\n\n" + table(("what", "which"), facts.items()))
    for title, clock in (("CPU time", Cost._fields.index("cpu")), ("Wall time", Cost._fields.index("wall"))):
        rows = []
        for kind, cardinality in names:
            length = streams.items(LENGTHS[kind])
            each = {
                job: statistics.median(cost[clock] for cost in found) / length * 1e9
                for job, found in costs[kind, cardinality].items()
            }
            over = (f"{each[job] - each['no-op']:.0f}" for job in ("as stored", "by label"))
            exact = (f"{each[job] / each['groupBy().count()']:.2f}" for job in ("as stored", "by label"))
            rows.append([f"{kind}, {cardinality}", *(f"{ns:.0f}" for ns in each.values()), *over, *exact])
        head = ["column", *JOBS, "as stored - no-op", "by label - no-op", "as stored / exact", "by label / exact"]
        sections.append(f"## {title}, nanoseconds a row\n\n" + table(head, rows))
    return "\n".join(sections)


INTRODUCTION: Final = """# A row's cost on Spark

Written by `make bench-spark`; not edited. Public synthetic data: {parts} Parquet files, each a partition, on
`local[1]`, one executor core in the driver's JVM. `int64` has 10^7 rows, `string` 5 * 10^6 of 20 to 28 bytes. *Low*:
{few} labels of Zipf 1.1. *High*: every row has a label of its own.

* *no-op*: rows go to Python, by `mapInArrow`, and nothing is done with them.
* *as stored*, *by label*: `dptop.spark.release` with {capacity:,} counters a partition, noise and rows included.
* *groupBy().count()*: Spark's exact counts, in the JVM, and the 100 largest of them. They are not private.
* A figure is the median of {repeats} runs, after one that is not counted. CPU time is that of the JVM and all Python
  processes, JIT compilation and garbage collection included. The JVM and Python work at once, so wall time may be less.
"""


def main() -> None:
    """Write the page."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[1]").appName("benchmark of dptop").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    for name in ("maxPartitionBytes", "openCostInBytes"):
        builder = builder.config(f"spark.sql.files.{name}", "1g")  # a file is a partition
    builder = builder.config("spark.sql.shuffle.partitions", str(PARTS)).config("spark.driver.memory", "4g")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    written = page(session)
    (streams.folder() / "spark.md" if streams.quick() else PAGE).write_text(written)
    session.stop()


if __name__ == "__main__":
    main()
