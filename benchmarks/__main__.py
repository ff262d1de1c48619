"""Run the suite: `python -m benchmarks` (about ten minutes), `--quick` to try it, `--only TEXT` for a part.

Not pyperf or asv: they measure the clock of Python functions, not CPU time, memory and recall of whole engines.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks import report, streams
from benchmarks.measure import ONE_THREAD
from benchmarks.plan import PLAN, ROUNDS, Measurement
from benchmarks.results import Results

PAGE: Final = Path(__file__).with_name("results.md")


def main() -> None:
    """Measure in rounds, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory, ours and the peers'.")
    parser.add_argument(
        "--quick", action="store_true", help="a twentieth of the items, one round: only to try the suite"
    )
    parser.add_argument(
        "--rounds", type=int, help=f"repetitions of each measurement; {ROUNDS} by default, some have fewer"
    )
    parser.add_argument("--only", default="", help="measurements whose name or stream contains this")
    arguments = parser.parse_args()
    if arguments.quick:
        os.environ["DPTOP_BENCH_QUICK"] = "1"
    rounds = arguments.rounds or (1 if arguments.quick else ROUNDS)
    plan = [m for m in PLAN if arguments.only in m.name or arguments.only in m.stream]
    target = streams.folder() / "results.md" if arguments.quick or arguments.only else PAGE

    load = os.getloadavg()[0]
    start = time.monotonic()
    for name in dict.fromkeys(m.stream for m in plan if m.stream != "endless"):
        streams.make(name)
    say(f"streams ready after {time.monotonic() - start:.0f} s")
    results = Results()
    raw = streams.folder() / "results.jsonl"
    raw.parent.mkdir(parents=True, exist_ok=True)
    with raw.open("w") as file:
        for number in range(rounds):
            for measurement in plan:
                if not measurement.is_due(number):
                    continue
                line = measure(measurement)
                file.write(json.dumps(line) + "\n")
                results.add(line)
            say(f"round {number + 1} of {rounds} done after {time.monotonic() - start:.0f} s")
    run = report.Run(rounds, time.monotonic() - start, load, os.getloadavg()[0])
    target.write_text(report.page(results, run))
    say(f"wrote {target.relative_to(Path.cwd()) if target.is_absolute() else target}")


def measure(measurement: Measurement) -> dict[str, object]:
    """Run one measurement in a process of its own. One that fails is told and left out."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.measure", *map(str, measurement)],
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD},
        check=False,
    )
    if done.returncode:
        say(f"{measurement} failed: {done.stderr.strip().splitlines()[-1:]}")
        return {**measurement._asdict(), "failed": done.returncode}
    line: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    if "missing" in line:
        say(f"{measurement.name} is left out: no package {line['missing']}")
    return line


def say(text: str) -> None:
    """Tell whoever waits."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
