"""One measurement in one process: `python -m benchmarks.measure NAME STREAM CAPACITY` prints one line of JSON.

The clocks run while the peer counts and at no other time: not while Python starts, packages are imported or the stream
is loaded. CPU time is user and system time of all threads, and of children, since whole commands are measured too.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time

import psutil

from benchmarks import streams
from benchmarks.memory import peak_bytes, reset_peak
from benchmarks.peers import Found, peer

COLD = ("dptop, release",)
"""Not tried on a few items before the clock starts, as all others are, to load what they load late: a release happens
once, and its calibration belongs to it."""
ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(name: str, stream_name: str, capacity: int) -> dict[str, object]:
    """Measure once."""
    counter = peer(name)
    stream = streams.Stream([]) if stream_name in (*streams.FILES, "endless") else streams.stream(stream_name, capacity)
    if len(stream) and name not in COLD:
        counter(stream.head(1000), capacity).count()
    work = counter(stream, capacity)
    gc.collect()
    gc.disable()
    before = psutil.Process().memory_info().rss
    reset_peak()
    wall, cpu = time.perf_counter(), cpu_seconds()
    counted = work.count()
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    peak = max(0, peak_bytes() - before)
    found: Found = work.look(counted)
    peak = max(peak, found.summary_bytes or 0)  # pages that were free before do not count as growth
    recall = stream.truth.recall(found.top()) if stream.truth and found.top else None
    return {
        "name": name,
        "stream": stream_name,
        "capacity": capacity,
        "items": len(stream) if work.items is None else work.items,
        "cpu": cpu,
        "wall": wall,
        "peak_bytes": peak,
        "summary_bytes": found.summary_bytes,
        "recall": recall,
        **found.extra,
    }


def main() -> None:
    """Measure what the command line says."""
    os.environ.update(ONE_THREAD)
    name, stream_name, capacity = sys.argv[1:]
    try:
        result = measure(name, stream_name, int(capacity))
    except ImportError as error:
        result = {"name": name, "stream": stream_name, "capacity": int(capacity), "missing": error.name}
    print(json.dumps(result), flush=True)
    os._exit(0)  # nothing is left to do; taking ten million objects apart would take longer than counting them


if __name__ == "__main__":
    main()
