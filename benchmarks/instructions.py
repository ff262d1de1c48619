"""A regression guard without noise: instructions of the Rust core on fixed inputs, counted by callgrind.

    python -m benchmarks.instructions          # the table; fails where a count is more than 10 % above the baseline
    python -m benchmarks.instructions --renew  # write the counts of today as the baseline

Not gungraun, which does this for whole benchmark suites: it wants a runner installed in its own version and keeps its
baselines among the build products; ours is a file under review.

A count depends on the compiler and on the vector instructions that valgrind offers, so the baseline names both. With
another compiler the counts are shown and not judged; each set of vector instructions has a baseline of its own. Noise
alone draws real entropy: its count varies by less than a percent.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

BASELINE: Final = Path(__file__).with_suffix(".json")
LIMIT: Final = 1.10
RENEW: Final = "make bench-guard-renew"
BUILD: Final = ("cargo", "bench", "--package", "dptop-summaries", "--bench", "instructions", "--no-run", "--quiet")


def run(*command: str) -> str:
    """Return what a command writes to stdout; exit with what it writes to stderr if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def valgrind() -> str:
    """Return the path of valgrind."""
    if found := shutil.which("valgrind"):
        return found
    sys.exit(
        "valgrind counts the instructions and is not installed. Run: sudo apt-get install valgrind libc6-dbg"
        " (Debian, Ubuntu), or your system's like of it. There is none for Windows and for Macs of today."
    )


def build() -> str:
    """Compile the pieces of work; return the program's path."""
    messages = map(json.loads, run(*BUILD, "--message-format=json").splitlines())
    [program] = [m["executable"] for m in messages if m.get("target", {}).get("name") == "instructions"]
    return str(program)


def instructions(program: str, name: str) -> int:
    """Count the instructions of one piece of work, its preparation left out."""
    with tempfile.NamedTemporaryFile() as out:
        run(
            *(valgrind(), "--tool=callgrind", f"--callgrind-out-file={out.name}"),
            *("--toggle-collect=*instructions::counted*", program, name),
        )
        [total] = re.findall(r"^totals: (\d+)$", Path(out.name).read_text(), re.MULTILINE)
    if total == "0":
        sys.exit(
            f"callgrind must meet the function `counted` of {program}; it did not. Is it still there, not inlined?"
        )
    return int(total)


def main() -> None:
    """Compare with the baseline, or renew it."""
    parser = argparse.ArgumentParser(description="Instructions of the core on fixed inputs, against the baseline.")
    parser.add_argument("--renew", action="store_true", help="write the baseline")
    renew = parser.parse_args().renew

    program = build()
    path, *names = run(valgrind(), "--quiet", "--tool=none", program).splitlines()
    compiler = run("rustc", "--version").strip()
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        counts = dict(zip(names, workers.map(lambda name: instructions(program, name), names), strict=True))

    baselines = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    if renew:
        baselines[path] = {"compiler": compiler, "instructions": counts}
        BASELINE.write_text(json.dumps(baselines, indent=2, sort_keys=True) + "\n")
    if path not in baselines:  # of another machine: there is nothing to compare with, which is no regression
        print(
            f"NOT COMPARED: {BASELINE.name} has no baseline for the vector instructions that valgrind offers here:"
            f" {path!r}; it has {', '.join(map(repr, baselines)) or 'none'}. Add one, on a tree that is known to be"
            f" fast: {RENEW}"
        )
        return
    baseline = baselines[path]
    known: dict[str, int] = baseline["instructions"]
    print(f"{path}; {compiler}; baseline by {baseline['compiler']}")
    print(f"{'million instructions':42}{'baseline':>10}{'now':>10}{'ratio':>8}")
    worse = []
    if counts.keys() != known.keys():
        sys.exit(f"baseline and program must have the same pieces of work; {counts.keys() ^ known.keys()}. {RENEW}")
    for name in sorted(counts):
        ratio = counts[name] / known[name]
        if ratio > LIMIT:
            worse.append(name)
        remark = "  WORSE" if ratio > LIMIT else "  better: renew the baseline" if ratio < 1 / LIMIT else ""
        print(f"{name:42}{known[name] / 1e6:10.2f}{counts[name] / 1e6:10.2f}{ratio:8.3f}{remark}")
    if not worse:
        return
    if compiler != baseline["compiler"]:  # it may be the cause, and nobody's change is
        print(f"NOT JUDGED: the compiler is {compiler}, the baseline's {baseline['compiler']}. Renew it: {RENEW}")
        return
    sys.exit(
        f"instruction counts must stay within {LIMIT - 1:.0%} of the baseline; these do not: {', '.join(worse)}."
        f" Make them fast again, or accept the counts: {RENEW}"
    )


if __name__ == "__main__":
    main()
