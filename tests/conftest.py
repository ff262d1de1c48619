"""Fixtures: the command line run in this process, with real file descriptors; parts; releases without noise."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from commands import Outcome
from dptop import noise
from dptop.cli import main
from dptop.files import FileLabels
from dptop.ledger import Ledger
from dptop.release import public_labels, tracked_envelope, tracked_selected
from part_makers import folder_of_parts, three_parts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from commands import Command
    from dptop import _native
    from dptop.mechanism import SketchNoise
    from dptop.oracle import LinearSketch


@pytest.fixture
def dptop_command(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Give the command line as a function. It reads descriptor 0 and writes 1 and 2, as in a process of its own.

    Each run knows nothing of the ones before but what the parts say.
    """
    own_stdin = os.dup(0)

    def run(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(FileLabels, "_stdin", threading.Lock())
        monkeypatch.setattr(Ledger, "_known", {})
        monkeypatch.setattr(sys, "argv", ["dptop", *map(str, arguments)])
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            os.dup2(file.fileno(), 0)
        own = open(0, closefd=False)  # noqa: SIM115 - what Python keeps of standard input lives with it
        monkeypatch.setattr(sys, "stdin", own)
        monkeypatch.setattr(sys, "__stdin__", own)
        with pytest.raises(SystemExit) as exited:
            main()
        captured = capfdbinary.readouterr()
        assert isinstance(exited.value.code, int)
        return Outcome(exited.value.code, captured.out, captured.err.decode())

    yield run
    os.dup2(own_stdin, 0)
    os.close(own_stdin)


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """Make three parts of one stream."""
    return three_parts(tmp_path)


@pytest.fixture
def open_folder(dptop_command: Command) -> Iterator[Path]:
    """Make a folder that any user can reach."""
    dptop_command("release", "missing")  # imports what a command needs, which another user may not be able to read
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """Make the folder that runs of tests/dying.py copy."""
    return folder_of_parts(tmp_path / "template")


class Drawn(NamedTuple):
    """What noise a release asked for: epsilon and number of draws by the way of counters and lengths, and of cells."""

    counters: list[tuple[Fraction, int]]
    cells: list[SketchNoise]


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """Make all noise of a release zero, also that of cells, and note what was asked for."""
    drawn = Drawn([], [])

    def zeros(epsilon: Fraction, count: int, seed: int | None = None) -> list[int]:
        drawn.counters.append((epsilon, count))
        return [0] * count

    def copied(
        cells: _native.Sketch, sketch: LinearSketch, made: SketchNoise, seed: int | None = None
    ) -> _native.Sketch:
        drawn.cells.append(made)
        return cells.copy()

    monkeypatch.setattr(noise, "draw", zeros)
    for form in (tracked_envelope, tracked_selected, public_labels):
        monkeypatch.setattr(form, "noisy_cells", copied)
    return drawn
