"""Runs of tests/dying.py, the program that kills what it starts, and what they left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from commands import PATIENCE

DYING = Path(__file__).with_name("dying.py")


class Run:
    """What one run of tests/dying.py left in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.codes = [int(path.read_text()) for path in sorted(folder.glob("code-*"))]
        self.outs = [path.read_bytes() for path in sorted(folder.glob("out-*"))]

    @property
    def steps(self) -> list[str]:
        """The steps of a process, to its end or to where it was killed."""
        return (self.folder / "steps-0").read_text().splitlines()


def dying(way: str, template: Path, *arguments: str, broken: str | None = None) -> list[Run]:
    """Run tests/dying.py on copies of a folder named `template` and return its runs in their order."""
    options = ["--break", broken] if broken else []
    command: list[str | Path] = [sys.executable, DYING, way, template.parent, *options, "--", *arguments]
    subprocess.run(command, check=True, timeout=4 * PATIENCE)
    folders = [path for path in template.parent.iterdir() if path.name.isdigit()]
    return [Run(folder) for folder in sorted(folders, key=lambda path: int(path.name))]
