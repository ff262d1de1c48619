"""The runs of the experiments: what is measured, kept, and gone on with."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from experiments import results
from experiments.methods import METHODS, PLAIN
from experiments.plan import FULL, GRID, QUICK, Size, tasks
from experiments.run import Run, alone, measure, run_all
from experiments.streams.zipf import trace_stand_in, zipf

if TYPE_CHECKING:
    import pyarrow as pa

ROOT = Path(__file__).parents[1]
TINY = Size(
    length=20_000,
    head=1_000,
    stand_in=(30_000, 3_000),
    ks=(8, 128),
    skews=(1.1, 2.6),
    epsilons=(0.1, 1.0),
    real_ks=(128,),
    factors=(1, 2),
    capacities=(32, 256),
    frontier=((1.0, 1e-3),),
    repetitions=1,
    draws=2,
)


def run_of(folder: Path, seed: int = 1) -> Run:
    return Run(seed, TINY, folder)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[results.Row]:
    """Return what every task of a tiny run measures."""
    run = run_of(tmp_path_factory.mktemp("run"))
    return [row for task in tasks(TINY, ["zipf"]) for row in measure(run, task)]


def test_zipf_has_the_law_it_is_named_after() -> None:
    """The largest counts are those of Zipf's law, within six standard deviations; labels are not in rank order."""
    stream = zipf(1.4, seed=1, repetition=0, length=200_000, distinct=1000)
    counts = -np.sort(-np.bincount(stream.items.to_numpy(), minlength=1000))
    chances = np.arange(1, 1001) ** -1.4
    expected = 200_000 * chances / chances.sum()
    assert np.all(np.abs(counts[:10] - expected[:10]) < 6 * np.sqrt(expected[:10]))
    assert np.argmax(np.bincount(stream.items.to_numpy())) != 0


def test_repetitions_and_seeds_are_other_streams() -> None:
    """The same seed repeats a stream; another seed, repetition or skew does not."""

    def made(skew: float, seed: int, repetition: int) -> pa.Array:
        return zipf(skew, seed, repetition, length=1000, distinct=100).items

    first = made(1.1, 1, 0)
    assert first.equals(made(1.1, 1, 0))
    assert not any(first.equals(made(*other)) for other in ((1.1, 2, 0), (1.1, 1, 1), (1.4, 1, 0)))


def test_the_stand_in_has_the_published_size_and_number_of_labels() -> None:
    """And says that it is not the trace."""
    stream = trace_stand_in(1, length=50_000, distinct=4_000)
    assert (len(stream), len(stream.items.unique())) == (50_000, 4_000)
    assert "stand-in" in stream.source
    assert FULL.stand_in == (26_600_000, 312_000)  # section 6.2 of the paper


def test_every_method_is_measured_at_every_point(rows: list[results.Row]) -> None:
    """Private methods with each draw of noise, the others once; on the same stream, whose exact counts they share."""
    grid = [row for row in rows if row.sweep == GRID]
    for skew, k, epsilons in ((1.1, 8, (0.1,)), (1.1, 128, (0.1, 1.0)), (2.6, 128, (0.1,))):
        point = [row for row in grid if (row.skew, row.k) == (skew, k)]
        assert {row.method for row in point} == set(METHODS)
        assert len({(row.length, row.distinct, row.heavy) for row in point}) == 1
        for method, how in METHODS.items():
            drawn = [(row.epsilon, row.draw) for row in point if row.method == method]
            if how.family == PLAIN:
                assert drawn == [(None, 0)]
            else:
                assert drawn == [(epsilon, draw) for epsilon in epsilons for draw in range(2)]


def test_the_same_seed_gives_the_same_rows_and_another_one_others(tmp_path: Path) -> None:
    """All but the time that counting took; at one point of the grid, with every method."""
    point = [task for task in tasks(TINY, ["zipf"]) if (task.skew, task.k) == (1.1, 8)]
    first, again, other = (
        [row._replace(update_ns=0, seed=0) for task in point for row in measure(run_of(tmp_path / name, seed), task)]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert {row.method for row in first} == set(METHODS)
    assert first == again
    noisy = [
        (row.absolute_error, unlike.absolute_error)
        for row, unlike in zip(first, other, strict=True)
        if row.released and unlike.released and row.epsilon
    ]
    assert sum(here != there for here, there in noisy) > len(noisy) / 2


def test_draws_differ(rows: list[results.Row]) -> None:
    """Two draws on one summary are two noises."""
    pairs: dict[tuple[object, ...], list[float | None]] = {}
    for row in rows:
        if row.method == "stable-threshold" and row.released > 1:
            pairs.setdefault((row.sweep, row.skew, row.k, row.epsilon, row.capacity), []).append(row.absolute_error)
    assert pairs
    assert all(len(set(errors)) == 2 for errors in pairs.values())


def test_a_summary_without_privacy_and_enough_room_is_exact(rows: list[results.Row]) -> None:
    """With a counter for every label SpaceSaving recalls all heavy labels, without error and without others."""
    roomy = [row for row in rows if row.method == "plain-space-saving" and row.distinct <= row.capacity]
    assert roomy
    assert all((row.recall, row.precision, row.relative_error) == (1, 1, 0) for row in roomy)


def test_a_run_keeps_what_is_finished_and_goes_on(tmp_path: Path) -> None:
    """A second run measures nothing again; a part that is gone is measured alone."""
    run = run_of(tmp_path)
    first = run_all(run, ["zipf"], workers=1).rows
    parts = sorted(run.parts.iterdir())
    times = {part: part.stat().st_mtime_ns for part in parts}
    parts[3].unlink()
    again = run_all(run, ["zipf"], workers=1).rows
    changed = [part for part in parts if part.stat().st_mtime_ns != times[part]]
    assert changed == [parts[3]]
    assert [row._replace(update_ns=0) for row in again] == [row._replace(update_ns=0) for row in first]


def started(folder: Path) -> subprocess.Popen[bytes]:
    """Start a tiny run without real streams, and return when some points are finished."""
    source = (
        "import sys; import experiments.__main__ as main; import tests.test_experiment_run as t;"
        "main.QUICK = t.TINY; sys.argv = ['experiments', '--quick']; main.REAL.clear(); main.command()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "python")])}
    process = subprocess.Popen(
        [sys.executable, "-c", source], cwd=folder, env=environment, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline, there = time.monotonic() + 100, len(parts_of(folder))
    while len(parts_of(folder)) < there + 3:
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < deadline, "no three points in 100 s"
        time.sleep(0.05)
    return process


def parts_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("build/experiments/quick/parts-*/*.parquet"))


def test_an_interrupt_or_a_kill_loses_no_finished_point(tmp_path: Path) -> None:
    """Ctrl-C ends the run with 130; what was finished is whole, and a run after it does not measure it again."""
    process = started(tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130
    assert "finished points are kept" in said
    assert "Traceback" not in said
    kept = {part: part.stat().st_mtime_ns for part in parts_of(tmp_path)}
    assert len(kept) >= 3
    assert all(results.read(part) for part in kept)

    process = started(tmp_path)
    process.kill()
    process.communicate(timeout=60)  # its workers hold the other end: they have ended too
    assert {part: part.stat().st_mtime_ns for part in kept} == kept
    assert len(parts_of(tmp_path)) > len(kept)
    assert all(results.read(part) for part in parts_of(tmp_path))


def test_two_runs_do_not_time_each_other(tmp_path: Path) -> None:
    """The second one is told that there is another."""
    with alone(tmp_path), pytest.raises(BlockingIOError), alone(tmp_path):
        pass
    with alone(tmp_path):
        pass


def test_names_of_tasks_are_their_own() -> None:
    """No two tasks share a file."""
    for size in (FULL, QUICK):
        names = [task.name for task in tasks(size, ["zipf", "words", "trace-stand-in"])]
        assert len(names) == len(set(names))
        assert all(re.fullmatch(r"[\w.-]+", name) for name in names)


@pytest.mark.parametrize("folder", ["python/dptop", "benchmarks", "crates"])
def test_nothing_imports_the_experiments(folder: str) -> None:
    """They stand at the end of the path."""
    files = [file for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".pyi", ".rs")]
    assert files
    assert not [file for file in files if re.search(r"\b(import|from) experiments\b", file.read_text())]
