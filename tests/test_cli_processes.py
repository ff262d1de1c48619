"""`dptop top` as a process: exit codes, pipes, signals, terminals, memory."""

from __future__ import annotations

import fcntl
import gzip
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commands import COPIES, DPTOP, EXACT, HEADER, PATIENCE, ended, feed, rows, started

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterator

    from commands import Outcome


def has_open(process: subprocess.Popen[bytes], path: Path) -> bool:
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(OSError):  # it may be closed in the meantime
            if descriptor.readlink() == path:
                return True
    return False


def wait_until(process: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
    """Wait until a process has come to a point, which it must before it ends."""
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def written(process: subprocess.Popen[bytes], path: Path) -> Iterator[io.FileIO]:
    """Open a named pipe to write as soon as the process has opened it to read, and fail if it ends before."""
    opened: list[int] = []

    def has_reader() -> bool:
        with suppress(OSError):
            opened.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return bool(opened)

    wait_until(process, has_reader)
    os.set_blocking(opened[0], True)
    with open(opened[0], "wb", buffering=0) as pipe:  # noqa: PTH123 - of a descriptor
        yield pipe


def opens_a_file(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a second thread is there: the one that opens a file and may have to wait for a writer."""
    return len(list(Path(f"/proc/{process.pid}/task").iterdir())) > 1


def assert_interrupted(outcome: Outcome) -> None:
    assert outcome.code == 130, outcome.err
    assert outcome.out == b""
    assert outcome.err == "dptop: interrupted; nothing was released.\n"


def test_the_installed_script_is_the_command() -> None:
    """The console script exists, reads a pipe, and exits 0, 1 and 2 as a process does."""
    for arguments, content, code in [
        (("top", "-", *EXACT), b"a\n" * COPIES, 0),
        (("top", "missing"), b"", 1),
        (("top", "-", "--top=0"), b"", 2),
    ]:
        done = subprocess.run([DPTOP, *arguments], input=content, capture_output=True, timeout=PATIENCE, check=False)
        assert done.returncode == code, done.stderr
        assert bool(done.stdout) == (code == 0)
        assert done.stderr


@pytest.mark.parametrize(
    ("format_", "arguments", "line"),
    [("lines", (), b"label\n"), ("csv", ("--column", "x"), b"x,y\n"), ("jsonl", (), b"1\n"), ("parquet", (), b"PAR1")],
)
def test_ctrl_c_while_a_pipe_stays_open_releases_nothing(format_: str, arguments: tuple[str, ...], line: bytes) -> None:
    """An interrupted read of standard input exits 130 at once, though the pipe's other end stays open."""
    with started("top", "-", "--format", format_, *arguments) as process:
        feed(process, line * 2**20)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        assert_interrupted(ended(process))


def test_ctrl_c_while_compressed_data_comes_releases_nothing() -> None:
    """The same holds in the middle of a gzip member."""
    content = gzip.compress(os.urandom(2**21), compresslevel=0)[:-100]
    with started("top", "-") as process:
        feed(process, content)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        assert_interrupted(ended(process))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc for the moment when the file is read")
def test_ctrl_c_while_files_are_read_releases_nothing(tmp_path: Path) -> None:
    """An interruption in the middle of large files exits 130, and no output file appears."""
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"label%d\n" % (i % 1000) for i in range(2**20)))
    output = tmp_path / "out.csv"
    with started("top", *[path] * 2000, "-o", output) as process:  # gigabytes: it cannot be done before the signal
        wait_until(process, lambda: has_open(process, path))
        process.send_signal(signal.SIGINT)
        assert_interrupted(ended(process))
    assert not output.exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks into /proc for the moment when it waits")
def test_ctrl_c_while_a_named_pipe_has_no_writer_releases_nothing(tmp_path: Path) -> None:
    """Waiting for somebody to open the other end of a named pipe can be interrupted too."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with started("top", "-", path) as process:
        feed(process, b"label\n" * 2**18)
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        wait_until(process, lambda: opens_a_file(process))
        process.send_signal(signal.SIGINT)
        assert_interrupted(ended(process))


def test_a_named_pipe_is_read(tmp_path: Path) -> None:
    """A named pipe is a file whose writer may come later and write in pieces."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with started("top", path, *EXACT, stdin=subprocess.DEVNULL) as process:
        with written(process, path) as pipe:
            for _ in range(COPIES):
                pipe.write(b"la")
                pipe.write(b"bel\n")
        assert rows(ended(process)) == {b"label": COPIES}


@pytest.mark.parametrize("form", [(), ("--json",), ("--table",)])
def test_a_reader_who_left_is_no_error(form: tuple[str, ...]) -> None:
    """Where the other end of stdout is closed, the command is silent and exits 0."""
    with started("top", "-", *form, *EXACT) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(b"label\n" * COPIES, timeout=PATIENCE)
        assert (process.returncode, err) == (0, b"")


def test_head_takes_a_line() -> None:
    """`dptop top | head -1` gives the header, and every part of the pipe succeeds."""
    script = f"yes label | head -1000 | '{DPTOP}' top - 2>/dev/null | head -1; echo ${{PIPESTATUS[@]: -2}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=PATIENCE, check=False)
    assert done.stdout == HEADER + b"0 0\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full")
def test_a_full_disk_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    """Where stdout cannot take the result, the exit code is 1 and the message says why."""
    with Path("/dev/full").open("wb") as full, started("top", "-", stdout=full) as process:
        _, err = process.communicate(b"label\n" * COPIES, timeout=PATIENCE)
        assert process.returncode == 1
        assert err.startswith(b"dptop: standard output cannot be written (No space left on device).")
        assert err.count(b"\n") == 1


@pytest.mark.parametrize(("closed", "code"), [("0", 1), ("1", 1), ("2", 0)])
def test_a_closed_descriptor_is_no_traceback(closed: str, code: int) -> None:
    """A closed stdin or stdout is an error in words, found before anything is read; a closed stderr hides the words."""
    script = f"exec {closed}<&-; exec '{DPTOP}' top - "
    done = subprocess.run(["bash", "-c", script], input=b"label\n" * COPIES, capture_output=True, check=False)
    assert done.returncode == code
    assert done.stdout.startswith(HEADER) == (code == 0)
    assert done.stderr.startswith(b"dptop: standard ") == (code == 1)
    assert b"Traceback" not in done.stderr


def test_an_output_encoding_without_the_label_escapes_it() -> None:
    """A table on an ASCII terminal shows what ASCII cannot as an escape."""
    lines = "grün 世界\n".encode() * COPIES
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [DPTOP, "top", "-", "--table", *EXACT], input=lines, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert rb"gr\xfcn \u4e16\u754c" in done.stdout


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """Give the two ends of a pseudo-terminal of 100 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    try:
        yield ours, theirs
    finally:
        os.close(ours)


def drained(end: int) -> str:
    """Return what a terminal shows until its program has closed it."""
    shown = b""
    while select.select([end], [], [], PATIENCE)[0]:
        try:
            shown += os.read(end, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
    return shown.decode()


ON_TERMINAL = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")} | {"TERM": "xterm-256color"}


def test_a_terminal_on_stdout_gets_a_table(tmp_path: Path) -> None:
    """On a terminal the result is a table; stderr, which is a pipe here, has the words and no bar."""
    path = tmp_path / "log"
    path.write_bytes(b"label\n" * 1000)
    with terminal() as (ours, theirs), started("top", path, *EXACT, stdout=theirs, env=ON_TERMINAL) as process:
        os.close(theirs)
        shown = drained(ours)
        assert process.stderr is not None
        words = process.stderr.read().decode()
        assert process.wait(PATIENCE) == 0
    assert re.search(r"label\S* +(\x1b\[\S*)?1,000 +1,000 +1,000", shown), shown
    assert "item,count" not in shown
    assert words.startswith("Protected: ")
    assert not re.search(r"[\x1b\r━]", words)


def test_a_terminal_on_stderr_gets_the_progress_bar() -> None:
    """On a terminal stderr shows how much was read and then the words; stdout, which is a pipe here, has CSV alone."""
    with terminal() as (ours, theirs), started("top", "-", *EXACT, stderr=theirs, env=ON_TERMINAL) as process:
        os.close(theirs)
        feed(process, b"label\n" * 2**18)
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        shown = drained(ours)
        assert process.stdout is not None
        assert process.stdout.read() == HEADER + b"label,262144,262144,262144\n"
        assert process.wait(PATIENCE) == 0
    assert "━" in shown
    assert "Protected: one item" in shown


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak memory from /proc")
def test_memory_stays_flat_however_long_the_stream() -> None:
    """From 200,000 to 2,000,000 lines with more labels than counters, the peak memory grows by less than 8 MB."""

    def peak(process: subprocess.Popen[bytes]) -> int:
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])  # type: ignore[index]  # the line is always there

    lines = b"".join(b"%d\n" % (i * i % 199_999) for i in range(200_000))
    with started("top", "-", "--capacity", 20_000, "--top", 5) as process:
        feed(process, lines)
        early = peak(process)
        for _ in range(9):
            feed(process, lines)
        late = peak(process)
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert out.startswith(HEADER)
    assert late - early < 8_000
    assert late < 200_000


@pytest.mark.parametrize("arguments", ["--version", "--help", "top --help"])
def test_help_into_a_closed_pipe_is_silent(arguments: str) -> None:
    """What is said about the command may be cut by its reader like a result."""
    script = f"'{DPTOP}' {arguments} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr) == (b"0\n", b"")
