"""Fixtures: a cluster of two executors on this machine, and what comes to its driver."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyspark
import pytest
from pyspark.sql import SparkSession

from dptop import noise, spark
from dptop.release import release_as
from dptop.spark import job
from dptop.spark.executor import Counting
from dptop.spark.pieces import PIECES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from dptop.release import Request
    from dptop.report import Release
    from dptop.sharded import Sharded
    from dptop.spark.pieces import Piece

LOGGING = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Give a session on a real cluster: a master, two workers, an executor of one core and 1 GB on each."""
    place = tmp_path_factory.mktemp("spark")
    os.environ |= {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.12" if pyspark.__version__.startswith("3.") else "2.13",  # workers ask for it
    }
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": LOGGING,
        "spark.executor.extraJavaOptions": LOGGING,
        "spark.local.dir": str(place / "local"),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.sql.shuffle.partitions": "3",
        "spark.task.maxFailures": "2",  # one executor is killed; what fails for good need not be tried four times
        "spark.sql.ansi.enabled": "true",  # the default of Spark 4: a cast that fails says of what
        # every file a partition of its own: docs/how-to-spark.md
        "spark.sql.files.maxPartitionBytes": "1g",
        "spark.sql.files.openCostInBytes": "1g",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("tests of dptop")
    for name, value in conf.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    yield made
    work = Path(pyspark.__file__).parent / "work" / str(made.sparkContext.applicationId)
    made.stop()
    shutil.rmtree(work, ignore_errors=True)  # what executors wrote; workers have no setting for the place


class Seen(NamedTuple):
    """What a release did on the driver.

    Attributes:
        plans: what Spark would run for each job, in its words.
        pieces: the rows that each job brought there.
        sharded: what was released.
        draws: epsilon and number of draws, each time that noise was drawn.
    """

    plans: list[str]
    pieces: list[list[Piece]]
    sharded: list[Sharded]
    draws: list[tuple[Fraction, int]]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Watch the driver."""
    found = Seen([], [], [], [])
    collect, draw = job.collected, noise.draw

    def collected(counted: Any, summarise: Any) -> list[Piece]:
        job = counted.mapInArrow(summarise, PIECES)
        found.plans.append(str(job._jdf.queryExecution().executedPlan().toString()))
        pieces = collect(counted, summarise)
        found.pieces.append(list(pieces))
        return pieces

    def released(request: Request, sharded: Sharded) -> Release:
        found.sharded.append(sharded)
        return release_as(request, sharded)

    def drawn(epsilon: Fraction, count: int, seed: int | None = None) -> list[int]:
        found.draws.append((epsilon, count))
        return draw(epsilon, count, seed)

    monkeypatch.setattr(spark, "collected", collected)
    monkeypatch.setattr(spark, "release_as", released)
    monkeypatch.setattr(noise, "draw", drawn)
    return found


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all noise zero."""
    monkeypatch.setattr(noise, "draw", lambda _epsilon, count, _seed=None: [0] * count)


ONE_SECRET = Counting(1, b"the same each time")


@pytest.fixture
def one_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give all releases one secret, so that the same counts are the same bytes."""
    monkeypatch.setattr(spark, "Counting", lambda capacity, _: replace(ONE_SECRET, capacity=capacity))
