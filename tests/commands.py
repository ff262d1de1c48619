"""The command line as tests run it: what a run leaves, how it is read, processes of their own.

At epsilon 64 a draw of noise is not 0 with chance below 1e-27, so counts are compared with equality: far below the
false-alarm rate of 1e-6 that `test_the_noise_at_epsilon_64_is_no_noise` in tests/test_cli_top.py checks.
"""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from containers import SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator

DPTOP = Path(sys.executable).with_name("dptop")
EXACT = ("--epsilon", "64", "--delta", "1e-9")
HEADER = b"item,count,low,high\n"
COPIES = 50
"""Repetitions of a label that is to pass the threshold, which is below 5 at epsilon 64."""
LINES = f"{SECRET}\n".encode() * 20_000
PATIENCE = 60
"""Seconds after which a test gives up waiting; nothing here is timed."""


class Outcome(NamedTuple):
    """What a run of the command line left behind."""

    code: int
    out: bytes
    err: str


Command = Callable[..., Outcome]
"""Run `dptop` with arguments, and `stdin=` bytes on standard input."""


def rows(outcome: Outcome) -> dict[bytes, int]:
    """Return label -> count from CSV; Python reads it as Latin-1, which keeps every byte."""
    assert outcome.code == 0, outcome.err
    reader = csv.reader(io.StringIO(outcome.out.decode("latin-1"), newline=""), strict=True)
    assert next(reader) == ["item", "count", "low", "high"]
    table = list(reader)
    assert all(int(low) <= int(count) <= int(high) for _, count, low, high in table)
    return {item.encode("latin-1"): int(count) for item, count, _, _ in table}


def assert_refused(outcome: Outcome, code: int, *patterns: str) -> None:
    """Check that nothing came out and that one line on stderr says what is asked, without the secret."""
    assert (outcome.code, outcome.out) == (code, b""), outcome
    for pattern in (r"\Adptop: .*\n\Z", *patterns):
        assert re.search(pattern, outcome.err), f"{pattern} is not in {outcome.err}"
    assert SECRET not in outcome.err


COMMAND = [
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from dptop.cli import main; main()",
]
"""The command, with Ctrl-C as at a terminal: a test runner in the background may have it ignored for its children."""


@contextmanager
def started(*arguments: object, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command with a pipe at each end, and end it when the test does."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def feed(process: subprocess.Popen[bytes], content: bytes) -> None:
    """Write more than a pipe holds, so that the process is reading once this returns."""
    assert len(content) > 2**20
    assert process.stdin is not None
    process.stdin.write(content)
    process.stdin.flush()


def ended(process: subprocess.Popen[bytes]) -> Outcome:
    out, err = process.communicate(timeout=PATIENCE)
    return Outcome(process.returncode, out, err.decode())
