"""Whole commands, from start to exit, on the same file. CPU time is that of the children of the measuring process."""

from __future__ import annotations

import importlib.resources
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from benchmarks.peers import Found, Work
from benchmarks.streams import cached_file, items

if TYPE_CHECKING:
    from collections.abc import Iterator

DPTOP: Final = str(Path(sys.executable).with_name("dptop"))
CAPACITY: Final = "--capacity"
COLUMN: Final = "label"
SET_ONE_THREAD: Final = "SET threads = 1; "
COUNT: Final = "SELECT label, count(*) AS n FROM read_csv({}) GROUP BY label ORDER BY n DESC LIMIT 20"
A_LINE_IS_A_VALUE: Final = (
    r"auto_detect=false, header=false, delim='\t', quote='', escape='', columns={'label': 'VARCHAR'}"
)
RUN_SQL: Final = """
import duckdb, sys
print(duckdb.connect().execute(sys.argv[1]).fetchall())
"""
READ_IN_BATCHES: Final = """
import pyarrow.parquet, sys
with pyarrow.parquet.ParquetFile(sys.argv[1], page_checksum_verification=True) as file:
    print(sum(batch.num_rows for batch in file.iter_batches(batch_size=int(sys.argv[2]), columns=["label"])))
"""
READ_AT_ONCE: Final = """
import pyarrow.parquet, sys
print(pyarrow.parquet.read_table(sys.argv[1], columns=["label"], use_threads=False).num_rows)
"""
ENDLESS: Final = 5 * 10**7
BLOCK: Final = 10**6
"""Lines written at a time; what distinguishes blocks is the block's number, inside each line."""
SAMPLES: Final = 25


def _command(file: str, *command: str, stdin: bool = False) -> Work:
    path = cached_file(file)
    path.read_bytes()  # into the page cache
    rows = items(5 * 10**6)

    def count() -> None:
        with path.open("rb") as opened:
            subprocess.run(
                command,
                stdin=opened if stdin else subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=True,
            )

    def look(_: object) -> Found:
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        return Found(extra={"peak_bytes": peak, "file_bytes": path.stat().st_size})

    return Work(count, look, items=rows)


def dptop_lines(_: object, capacity: int) -> Work:
    """Count lines on standard input."""
    return _command("lines", DPTOP, "top", "-", CAPACITY, str(capacity), stdin=True)


def sort_uniq(_: object, capacity: int) -> Work:
    """Run the pipe that everyone knows, in the C locale, where it is fastest."""
    return _command("lines", "sh", "-c", "export LC_ALL=C; sort | uniq -c | sort -rn | head -n 20", stdin=True)


def _count(file: str) -> str:
    """Return the query that counts a file's labels."""
    arguments = [f"'{cached_file(file)}'"]
    if file == "lines":
        arguments.append(A_LINE_IS_A_VALUE)
    return COUNT.format(", ".join(arguments))


def _duckdb(file: str, before: str = SET_ONE_THREAD) -> Work:
    """Run DuckDB's own command: the program itself, not the script in Python that PyPI's package starts it by."""
    program = importlib.resources.files("duckdb_cli").joinpath("duckdb")
    return _command(file, str(program), "-no-init", "-c", before + _count(file))


def _duckdb_python(file: str) -> Work:
    return _command(file, sys.executable, "-c", RUN_SQL, SET_ONE_THREAD + _count(file))


def duckdb_lines(_: object, capacity: int) -> Work:
    """Tell read_csv that a line is a value; one thread."""
    return _duckdb("lines")


def duckdb_lines_threads(_: object, capacity: int) -> Work:
    """Run the same with as many threads as DuckDB takes by itself."""
    return _duckdb("lines", before="")


def duckdb_lines_python(_: object, capacity: int) -> Work:
    """Run the same from Python, where DuckDB may be newer; one thread."""
    return _duckdb_python("lines")


def dptop_csv(_: object, capacity: int) -> Work:
    """Count one of five columns of a CSV file."""
    path = str(cached_file("csv"))
    return _command("csv", DPTOP, "top", path, "--column", COLUMN, CAPACITY, str(capacity))


def duckdb_csv(_: object, capacity: int) -> Work:
    """Count the same column; one thread."""
    return _duckdb("csv")


def duckdb_csv_python(_: object, capacity: int) -> Work:
    """Run the same from Python; one thread."""
    return _duckdb_python("csv")


def dptop_parquet(_: object, capacity: int) -> Work:
    """Count a string column of a Parquet file."""
    path = str(cached_file("parquet"))
    return _command("parquet", DPTOP, "top", path, "--column", COLUMN, CAPACITY, str(capacity))


def pyarrow_batches(_: object, capacity: int) -> Work:
    """Read that column and nothing else, in the batches that dptop reads."""
    from dptop.arrow_files import ROWS_PER_BATCH

    path = str(cached_file("parquet"))
    return _command("parquet", sys.executable, "-c", READ_IN_BATCHES, path, str(ROWS_PER_BATCH))


def pyarrow_at_once(_: object, capacity: int) -> Work:
    """Read that column into one table; one thread."""
    return _command("parquet", sys.executable, "-c", READ_AT_ONCE, str(cached_file("parquet")))


def dptop_endless(_: object, capacity: int) -> Work:
    """Count lines of 24 bytes, no two of them equal, on standard input; note CPU time and resident memory on the way.

    Not the clock: whoever writes the lines shares the processor.
    """
    total = items(ENDLESS)

    def count() -> list[tuple[int, float, int]]:
        samples: list[tuple[int, float, int]] = []
        with subprocess.Popen(
            [DPTOP, "top", "-", CAPACITY, str(capacity)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pipesize=2**20,
        ) as process:
            child = psutil.Process(process.pid)
            assert process.stdin is not None  # noqa: S101 - it is a pipe; for the type checker
            written, step = 0, total // SAMPLES
            for block in distinct_lines(total):
                process.stdin.write(block)
                written += len(block) // 25
                if written >= step * (len(samples) + 1):
                    samples.append((written, sum(child.cpu_times()[:2]), child.memory_info().rss))
            process.stdin.close()
            if process.wait():
                raise subprocess.CalledProcessError(process.returncode, DPTOP)
        return samples

    return Work(count, lambda samples: Found(extra={"samples": samples}), items=total)


def distinct_lines(total: int) -> Iterator[bytes]:
    """Yield blocks of lines: 8 letters that tell the block, 16 hexadecimal digits that tell the line within it."""
    import numpy as np

    size = min(BLOCK, total // SAMPLES)
    lines = np.array([f"00000000{number:016x}\n".encode() for number in range(size)]).view("S1").reshape(size, 25)
    for number in range(-(-total // size)):
        lines[:, :8] = np.frombuffer(f"{number:08d}".encode(), dtype="S1")
        yield lines[: min(size, total - number * size)].tobytes()
