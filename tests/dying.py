"""Run the command, or a save, many times in children of one process, and kill each with SIGKILL: a program for tests.

    python dying.py steps|delays|together FOLDER [--break NAME] -- ARGUMENTS

`steps` kills the first child at its first step, the second at the second, until one comes to its end. A step is just
before or just after a call that opens, writes, syncs, replaces, removes or locks a file, or that draws noise, and in
the middle of what is written. `delays` kills 60 children at random moments. `together` starts 6 at once, 5 times, and
kills none.

ARGUMENTS are those of the command, or `save NAME TIMES`, which saves from Python so many times under one name.

FOLDER/template is copied for each run (for each 6 of `together`), and the child works in its copy, FOLDER/0 and so on.
There it leaves `out-N`, `err-N` and `steps-N` (the names of its steps), and its parent `code-N`, negative for a signal;
N is 0 but for `together`.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import io
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dptop
from dptop import noise
from dptop.cli import main, parts

if TYPE_CHECKING:
    from collections.abc import Callable

commands: Any = importlib.import_module("dptop.cli.commands")  # its own names are changed below

DELAYS = 60
TOGETHER = 6
ROUNDS = 5


def watch(die_at: int, log: Path) -> None:
    """Note every step of this process, and kill it at one."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    steps = 0

    def step(name: str) -> None:
        nonlocal steps
        os.write(descriptor, name.encode() + b"\n")
        if steps == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1

    def watched(module: Any, name: str, called: str) -> None:
        real = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            subject = Path(os.fsdecode(arguments[0])).name if isinstance(arguments[0], (str, bytes, Path)) else ""
            if name == "fsync":
                subject = "folder" if Path(f"/dev/fd/{arguments[0]}").is_dir() else "file"
            verb = "unlock" if arguments[1:] == (fcntl.LOCK_UN,) else called
            step(f"before {verb} {subject}".strip())
            result = real(*arguments, **options)
            step(f"after {verb} {subject}".strip())
            return result

        setattr(module, name, call)

    class Torn:
        """A file that is written in two pieces."""

        def __init__(self, file: Any) -> None:
            self._file = file

        def __enter__(self) -> Torn:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def write(self, data: bytes) -> None:
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            step("within write")
            self._file.write(data[len(data) // 2 :])

    real_fdopen = os.fdopen
    os.fdopen = lambda *arguments, **options: Torn(real_fdopen(*arguments, **options))  # type: ignore[assignment]
    for name in ("open", "fsync", "replace", "link", "unlink"):
        watched(os, name, name)
    watched(fcntl, "flock", "lock")
    watched(noise, "draw", "draw")


def mark_late() -> None:
    """Mark parts as spent after the release was made."""
    real = commands.release_as

    def late(*arguments: Any, on_charged: Callable[[], object]) -> Any:
        result = real(*arguments)
        on_charged()
        return result

    commands.release_as = late


def save_in_place() -> None:
    """Write over the old file, and so over the old part where one is marked."""

    def save(summary: dptop.Summary, path: Any) -> None:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(summary.to_bytes())

    def mark(found: Any) -> None:
        for part in found:
            save(part.summary, part.path)

    dptop.Summary.save = save  # type: ignore[method-assign, assignment] # with the same arguments
    commands.mark = mark


def lock_nothing() -> None:
    """Let every process have every lock, and let all go on together once all have seen their file in its place."""
    fcntl.flock = lambda *_: None
    real, all_together = parts._same_file, multiprocessing.get_context("fork").Barrier(TOGETHER)

    def meet(*arguments: Any) -> None:
        real(*arguments)
        all_together.wait(timeout=60)

    parts._same_file = meet  # type: ignore[assignment] # the same arguments, passed on


BROKEN = {"mark-late": mark_late, "save-in-place": save_in_place, "lock-nothing": lock_nothing}


def save(name: str, times: str) -> None:
    """Save two sketches, large enough to be written in more than one piece, in turns."""
    sketches = [dptop.CountMin(20_000, 5) for _ in range(2)]
    for first, sketch in enumerate(sketches):
        sketch.extend(range(first, 1000))
    for turn in range(int(times)):
        sketches[turn % 2].save(name)


def child(folder: Path, number: int, arguments: list[str], die_at: int | None, ready: int | None = None) -> int:
    """Start the command, or a save, in a folder, once it is let go, and return the number of its process."""
    if process := os.fork():
        return process
    os.chdir(folder)
    for descriptor, name in ((1, f"out-{number}"), (2, f"err-{number}")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    if die_at is not None:
        watch(die_at, Path(f"steps-{number}"))
    if ready is not None:
        os.read(ready, 1)
    sys.argv = ["dptop", *arguments]
    code = 1
    try:
        if arguments[0] == "save":
            save(*arguments[1:])
            code = 0
        else:
            main()
    except SystemExit as exited:
        code = int(str(exited.code))
    sys.stdout.flush()
    os._exit(code)


def ended(process: int, folder: Path, number: int = 0) -> int:
    """Wait for a process and leave its exit code."""
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    (folder / f"code-{number}").write_text(str(code))
    return code


def steps(copy: Callable[[], Path], arguments: list[str]) -> None:
    """Kill one child at every step."""
    for die_at in range(1000):
        folder = copy()
        if ended(child(folder, 0, arguments, die_at), folder) != -signal.SIGKILL:
            return


def delays(copy: Callable[[], Path], arguments: list[str]) -> None:
    """Kill children at random moments; the first one runs to its end and says how long that takes."""
    folder, begin = copy(), time.monotonic()
    ended(child(folder, 0, arguments, None), folder)
    whole = time.monotonic() - begin
    moments = random.Random(20)
    for _ in range(DELAYS):
        folder = copy()
        process = child(folder, 0, arguments, None)
        time.sleep(moments.uniform(0, 1.1 * whole))
        os.kill(process, signal.SIGKILL)
        ended(process, folder)


def together(copy: Callable[[], Path], arguments: list[str]) -> None:
    """Start children that wait for each other."""
    for _ in range(ROUNDS):
        folder = copy()
        ready, go = os.pipe()
        processes = [child(folder, number, arguments, None, ready) for number in range(TOGETHER)]
        os.write(go, bytes(TOGETHER))
        for number, process in enumerate(processes):
            ended(process, folder, number)
        os.close(ready)
        os.close(go)


def warm_up() -> None:
    """Let children find imported what a command imports when it reads its options; a missing part reads no more."""
    sys.argv = ["dptop", "release", "--epsilon", "1", "missing"]
    with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
        main()


def run(way: str, folder: Path, broken: str | None, arguments: list[str]) -> None:
    """Do what the module says."""
    numbers = iter(range(10**6))

    def copy() -> Path:
        made = folder / str(next(numbers))
        shutil.copytree(folder / "template", made)
        return made

    warm_up()
    if broken:
        BROKEN[broken]()
    {"steps": steps, "delays": delays, "together": together}[way](copy, arguments)


if __name__ == "__main__":
    end = sys.argv.index("--")
    way, folder, *options = sys.argv[1:end]
    run(way, Path(folder), options[1] if options else None, sys.argv[end + 1 :])
