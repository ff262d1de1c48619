"""The how-to is run as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-to-spark.md"
OF_SHARDS = ROOT / "docs" / "how-to-shards.md"


def release_of_parts() -> None:
    """Run the commands of the other how-to that the page goes on from: three files, their parts, and words.csv."""
    text = OF_SHARDS.read_text().partition("## More than one release")[0]
    commands = re.findall(r"^\$ (.*)$", text, flags=re.MULTILINE)
    in_this_environment = f'dptop() {{ "{sys.executable}" -m dptop.cli "$@"; }}'
    for name in ("docs", "README.md"):
        Path(name).symlink_to(ROOT / name)
    subprocess.run(["bash", "-ec", "\n".join([in_this_environment, *commands])], check=True, capture_output=True)


def test_the_how_to_runs(
    session: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its Python blocks run in order, in one namespace, and print what their comments say."""
    monkeypatch.chdir(tmp_path)
    release_of_parts()
    before = {name: session.conf.get(name) for name in set(re.findall(r'"(spark\.sql\.[\w.]+)", "', PAGE.read_text()))}
    namespace: dict[str, Any] = {"__name__": "__main__"}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    for block in blocks:
        exec(block, namespace)
    for name, value in before.items():
        session.conf.set(name, value)
    printed = capsys.readouterr().out
    said = re.findall(r"^print\(.*\)  # (.*)$", "".join(blocks), flags=re.MULTILINE)
    assert len(said) == 2
    for line in said:
        assert line in printed.splitlines()
    assert "one row of the frame" in printed
    words = {row[0]: row[1:] for row in re.findall(r"^(\w+) (\d+) (\d+)$", printed, flags=re.MULTILINE)}
    by_spark, by_parts = map(int, words["the"])
    assert abs(by_spark - by_parts) <= 6 * 15, "fails once in 10^6 runs: one of six draws at epsilon 1 beyond 15"
    assert "budget" in printed.splitlines()[-1]
