"""The how-to is run as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[1] / "docs" / "how-to-spark.md"


def test_the_how_to_runs(session: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Its Python blocks run in order, in one namespace, and print what their comments say."""
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
    assert "budget" in printed.splitlines()[-1]
