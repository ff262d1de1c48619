"""Over Spark Connect, where there is no SparkContext: a server of its own, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

SERVER = list((Path(pyspark.__file__).parent / "jars").glob("spark-connect_*.jar"))

PROGRAM = """
import dptop
from dptop import noise, spark
from pyspark.sql import SparkSession

session = SparkSession.builder.remote("local[2]").getOrCreate()
noise.draw = lambda epsilon, count, seed=None: [0] * count
item = "concat('item ', floor(1000 / (1 + (id * 7919) % 1000)))"
df = session.range(0, 10_000, 1, 3).selectExpr(f"case when id % 7 = 3 then null else {item} end as item")
assert "connect" in type(df).__module__, type(df)


def release(df, column="item", **options):
    return spark.release(df, column, capacity=1000, epsilon=1.0, delta=1e-6, max_partitions=3, **options)


true = {row[0]: row[1] for row in df.where("item is not null").groupBy("item").count().collect()}
for partition in ("as-stored", "label"):
    result = release(df, partition=partition)
    hold = all(row.low <= true[row.item] <= row.high for row in result)
    print(partition, len(result), len(result.noisy_minimum), hold)
texts = session.range(9).selectExpr("concat('s3cret', id) as text")
for wrong in ("cast(text as int) as item", "length(text) > 3 as item", "text as itm"):
    try:
        release(texts.selectExpr(wrong))
    except dptop.DptopError as error:
        assert "s3cret" not in str(error)
        print(type(error).__name__, error)
try:
    release(session.table("s3cret"))
except dptop.DptopError as error:
    assert "s3cret" not in str(error) and error.__context__ is None
    print(type(error).__name__, error)
session.stop()
"""


@pytest.mark.skipif(not SERVER, reason="the package of Spark 3.5 has no Connect server")
@pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="needs pyspark[connect]")
def test_a_release_over_connect(tmp_path: Path) -> None:
    """Both ways of cutting give what they should, and refusals are the same."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    as_stored, by_label, *refused = done.stdout.splitlines()
    for partition, line in (("as-stored", as_stored), ("label", by_label)):
        said, rows, minima, hold = line.split()
        assert int(rows) > 5
        assert (said, minima, hold) == (partition, "3", "True")
    assert [line.split()[0] for line in refused] == ["SourceError", "UnsupportedLabel", "SourceError", "SourceError"]
    assert "job failed" in refused[0]
    assert "boolean" in refused[1]
    assert "no column 'item'" in refused[2]
    assert "TABLE_OR_VIEW_NOT_FOUND" in refused[3]
