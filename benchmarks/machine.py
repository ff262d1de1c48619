"""Where figures were made: date, commit, processor, system and versions."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["commit", "machine", "packages"]


def machine(distributions: Iterable[str]) -> dict[str, str]:
    """Return the facts in words, by name; `distributions` are the packages whose versions matter."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "Python": platform.python_version(),
        "packages": ", ".join(packages(distributions)),
    }


def commit() -> str:
    """Return what git calls the tree, "-dirty" where it has changed since."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    said = subprocess.run([git, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown"


def packages(distributions: Iterable[str]) -> list[str]:
    """Return each package with its version."""
    return [f"{name} {_version(name)}" for name in distributions]


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    names = [
        line.partition(":")[2].strip()
        for line in (information.read_text().splitlines() if information.exists() else ())
        if line.startswith("model name")
    ]
    return names[0] if names else platform.processor() or "unknown"
