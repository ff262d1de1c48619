"""Fixtures: the command line run in this process, with real file descriptors; releases without noise."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import pytest

from dptop import noise
from dptop.cli import main
from dptop.files import FileLabels
from dptop.release import public_labels, tracked_envelope, tracked_selected

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from dptop import _native
    from dptop.mechanism import SketchNoise
    from dptop.oracle import LinearSketch


class Outcome(NamedTuple):
    """What a run of the command line left behind."""

    code: int
    out: bytes
    err: str


Command = Callable[..., Outcome]
"""Run `dptop` with arguments, and `stdin=` bytes on standard input."""


@pytest.fixture
def dptop_command(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Give the command line as a function. It reads descriptor 0 and writes 1 and 2, as in a process of its own."""
    own_stdin = os.dup(0)

    def run(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(FileLabels, "_stdin", threading.Lock())
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
