"""Measuring: every task once, each kept when it is finished, so that a run that was interrupted goes on."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.progress import Task as ProgressTask

import dptop
from experiments import results
from experiments.methods import METHODS, PLAIN
from experiments.methods.metrics import Truth, quality
from experiments.methods.releases import Asked, release, seed_of, unprotected
from experiments.methods.summaries import count, count_exactly
from experiments.plan import Size, Task, tasks
from experiments.results import Row
from experiments.streams import cached, real, trace_key, user_trace
from experiments.streams.zipf import trace_stand_in, zipf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.process import BaseProcess

    from experiments.methods.releases import Released
    from experiments.methods.summaries import Counted
    from experiments.streams.stream import Stream

__all__ = ["Done", "Run", "alone", "load", "measure", "run_all", "say"]


STDERR: Final = Console(stderr=True)


@dataclass(frozen=True)
class Run:
    """What all tasks of a run have in common.

    Attributes:
        seed: of streams, hashes and noise.
        size: how much is measured.
        folder: where streams are cached and finished tasks kept.
        trace: the user's own trace, and the name of its column.
    """

    seed: int
    size: Size
    folder: Path
    trace: tuple[str, str | None] | None = None

    @property
    def parts(self) -> Path:
        """Where finished tasks are kept: apart for each version of what was measured."""
        return self.folder / f"parts-{self.seed}-{fingerprint()}"


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """Return a digest of what figures depend on: the library, and how it is called here; not of what draws them."""
    places = (Path(dptop.__file__).parent, *(Path(__file__).parent / name for name in ("methods", "streams")))
    files = [file for place in places for file in sorted(place.rglob("*")) if file.suffix in (".py", ".so")]
    digest = hashlib.sha256()
    for file in (*files, *(Path(__file__).with_name(name) for name in ("run.py", "plan.py", "results.py"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@lru_cache(maxsize=2)
def stream_of(run: Run, name: str, skew: float | None, repetition: int) -> tuple[Stream, Truth]:
    """Return a stream and its exact counts; those of the last two stay in memory."""
    stream = load(run, name, skew, repetition)
    return stream, Truth.of(stream.items)


def load(run: Run, name: str, skew: float | None, repetition: int) -> Stream:
    """Return a stream by its name in the results, from the cache if it has it.

    Raises:
        MissingStream: it cannot be had here.
    """
    cache, size = run.folder / "streams", run.size
    if name == "zipf":
        if skew is None:
            raise ValueError("a Zipf stream has a skew; got None. Take it from the task.")
        key = f"zipf-{skew:g}-{size.length}-{run.seed}-{repetition}"
        return cached(cache, key, lambda: zipf(skew, run.seed, repetition, length=size.length))
    if name == "trace-stand-in":
        length, distinct = size.stand_in
        key = f"{name}-{length}-{run.seed}"
        return cached(cache, key, lambda: trace_stand_in(run.seed, length=length, distinct=distinct))
    stream = user_trace(cache, *run.trace) if name == "trace" and run.trace else real(name, cache)
    return stream if size.head is None else stream.head(size.head)


def measure(run: Run, task: Task) -> list[Row]:
    """Count one stream with one summary, and release it by all methods that it serves."""
    stream, truth = stream_of(run, task.stream, task.skew, task.repetition)
    if task.capacity is None:
        counted = count_exactly(truth, stream.items)
    else:
        hashes = seed_of(run.seed, "hashes", task.name)
        counted = count(task.summary, task.capacity, hashes, stream.items)
    rows = []
    for method in task.methods:
        if METHODS[method].family == PLAIN and task.k is not None:
            rows.append(_row(run, task, method, truth, counted, None, 0, unprotected(counted, truth, task.k)))
            continue
        for epsilon, delta in task.releases:
            for draw in range(run.size.draws):
                asked = Asked(epsilon, delta, task.k, seed_of(run.seed, task.name, method, epsilon, delta, draw))
                released = release(method, counted, truth, asked)
                rows.append(_row(run, task, method, truth, counted, asked, draw, released))
    return rows


def _row(
    run: Run, task: Task, method: str, truth: Truth, counted: Counted, asked: Asked | None, draw: int, said: Released
) -> Row:
    return Row(
        sweep=task.sweep,
        stream=task.stream,
        length=truth.length,
        distinct=truth.distinct,
        skew=task.skew,
        k=task.k,
        factor=task.factor,
        capacity=truth.distinct if task.capacity is None else task.capacity,
        epsilon=asked.epsilon if asked else None,
        delta=asked.delta if asked else None,
        method=method,
        seed=run.seed,
        repetition=task.repetition,
        draw=draw,
        threshold=said.threshold,
        update_ns=counted.update_ns,
        memory_bytes=counted.memory_bytes,
        **quality(said.counts, truth, task.k)._asdict(),
    )


class Done(NamedTuple):
    """All rows of a run, and the minutes that its tasks took, whenever they were done."""

    rows: list[Row]
    minutes: float


def run_all(run: Run, streams: Sequence[str], workers: int) -> Done:
    """Do every task that is not done yet, tell of progress on stderr, and return what all of them measured."""
    planned = list(tasks(run.size, streams))
    waiting = [task for task in planned if not _part(run, task).exists()]
    say(f"{len(planned):,} points, {len(planned) - len(waiting):,} of them from a run before; {workers} at a time")
    with _bar() as bar, ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_follow) as pool:
        shown = bar.add_task("measuring", total=len(planned), completed=len(planned) - len(waiting))
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # workers inherit it, until they ignore it
        futures = [pool.submit(_finish, run, task) for task in waiting]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        try:
            for done in as_completed(futures):
                done.result()
                bar.advance(shown)
                if not STDERR.is_terminal and _is_twentieth(bar.tasks[shown]):
                    say(f"{bar.tasks[shown].percentage:.0f} % after {bar.tasks[shown].elapsed or 0:.0f} s")
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)  # those that have begun are finished, and kept
            raise
    parts = [_part(run, task) for task in planned]
    seconds = sum(results.made_by(part)["seconds"] for part in parts)
    return Done([row for part in parts for row in results.read(part)], seconds / 60 / workers)


def _part(run: Run, task: Task) -> Path:
    of_file = f"_{trace_key(*run.trace)}" if task.stream == "trace" and run.trace else ""  # another file, other rows
    return run.parts / f"{task.name}{of_file}.parquet"


def _finish(run: Run, task: Task) -> None:
    start = time.monotonic()
    rows = measure(run, task)
    results.write(_part(run, task), rows, {"seconds": time.monotonic() - start})


def _follow() -> None:
    """Leave Ctrl-C to the process that waits, so that a task that has begun is finished; and end when that one dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(waiting: BaseProcess | None) -> None:
    if waiting is not None:
        waiting.join()
        os._exit(1)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep a second run out of the folder: the two would share the processor, and time each other.

    Raises:
        BlockingIOError: there is another one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _bar() -> Progress:
    """Return a bar on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=STDERR, disable=not STDERR.is_terminal)


def _is_twentieth(task: ProgressTask) -> bool:
    """Return whether another 5 % are done with this step."""
    total, done = int(task.total or 1), int(task.completed)
    return done * 20 // total > (done - 1) * 20 // total


def say(text: str) -> None:
    """Tell whoever waits."""
    print(text, file=sys.stderr, flush=True)
