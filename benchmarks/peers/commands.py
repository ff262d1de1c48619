"""Whole commands, from start to exit, on the same file. CPU time is that of the children of the measuring process."""

from __future__ import annotations

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
COUNT_LINES: Final = """
import duckdb, sys
threads, path = sys.argv[1:]
connection = duckdb.connect()
if threads != "all":
    connection.execute(f"SET threads = {threads}")
print(connection.execute('''
    SELECT label, count(*) AS n
    FROM read_csv(?, auto_detect=false, header=false, delim='\\t', quote='', escape='', columns={'label': 'VARCHAR'})
    GROUP BY label ORDER BY n DESC LIMIT 20''', [path]).fetchall())
"""
COUNT_COLUMN: Final = """
import duckdb, sys
connection = duckdb.connect()
connection.execute("SET threads = 1")
print(connection.execute("SELECT label, count(*) AS n FROM read_csv(?) GROUP BY label ORDER BY n DESC LIMIT 20",
      [sys.argv[1]]).fetchall())
"""
READ_COLUMN: Final = """
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


def duckdb_lines(_: object, capacity: int) -> Work:
    """Tell read_csv that a line is a value; one thread."""
    return _command("lines", sys.executable, "-c", COUNT_LINES, "1", str(cached_file("lines")))


def duckdb_lines_threads(_: object, capacity: int) -> Work:
    """Run the same with as many threads as DuckDB takes by itself."""
    return _command("lines", sys.executable, "-c", COUNT_LINES, "all", str(cached_file("lines")))


def dptop_csv(_: object, capacity: int) -> Work:
    """Count one of five columns of a CSV file."""
    path = str(cached_file("csv"))
    return _command("csv", DPTOP, "top", path, "--column", COLUMN, CAPACITY, str(capacity))


def duckdb_csv(_: object, capacity: int) -> Work:
    """Count the same column; one thread."""
    return _command("csv", sys.executable, "-c", COUNT_COLUMN, str(cached_file("csv")))


def dptop_parquet(_: object, capacity: int) -> Work:
    """Count a string column of a Parquet file."""
    path = str(cached_file("parquet"))
    return _command("parquet", DPTOP, "top", path, "--column", COLUMN, CAPACITY, str(capacity))


def pyarrow_column(_: object, capacity: int) -> Work:
    """Read that column and nothing else; one thread."""
    return _command("parquet", sys.executable, "-c", READ_COLUMN, str(cached_file("parquet")))


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
