"""Run the experiments: `python -m experiments`, `--quick` to see that all of it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.machine import machine
from experiments import results
from experiments.plan import FULL, QUICK
from experiments.report import claims, figures, page
from experiments.run import Run, alone, load, run_all, say
from experiments.streams import REAL, MissingStream

HERE: Final = Path(__file__).parent
PAGE: Final = HERE.parent / "docs" / "experiments.md"
RAW: Final = "raw.parquet"
SEED: Final = 1
"""Of the committed results."""
PACKAGES: Final = ("dptop", "numpy", "pyarrow", "matplotlib", "cypcap", "python-pcapng")

command = typer.Typer(add_completion=False)


@command.command()
def main(
    quick: Annotated[bool, typer.Option("--quick", help="Short streams and few points: to see that it runs.")] = False,  # noqa: FBT002 - an option
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=2**63 - 1, help="Of streams, hashes and noise. Another one is compared with the first."
        ),
    ] = SEED,
    trace: Annotated[str | None, typer.Option(help="Your own trace: CSV, Parquet, pcap or pcapng.")] = None,
    column: Annotated[str | None, typer.Option(help="The column of a CSV or Parquet trace.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes at a time, one core each.")] = 2,
) -> None:
    """Measure all points of section 6 and the frontier; write raw results, figures and the page.

    A run that was interrupted goes on where it was. With another seed than that of the committed results nothing of
    them is touched: the conclusions are compared.
    """
    folder = Path("build/experiments/quick" if quick else "build/experiments")
    begun = Run(seed, QUICK if quick else FULL, folder, None if trace is None else (trace, column))
    committed, target = HERE / "results", _target(begun, quick=quick)
    if not quick and seed != SEED and not (committed / RAW).exists():
        say(f"another seed is compared with the results of seed {SEED}, which are not there. Run that one first.")
        sys.exit(2)
    if column is not None and trace is None:
        say("a column is one of a trace; got no trace. Give --trace too.")
        sys.exit(2)
    try:
        with alone(folder):
            sources, missing = _streams(begun)
            done = run_all(begun, list(sources), workers)
    except BlockingIOError:
        say(f"another run measures in {folder}, and two would time each other. Wait for it.")
        sys.exit(1)
    except KeyboardInterrupt:
        say("interrupted; finished points are kept: run it again to go on")
        sys.exit(130)
    made_by = {
        **machine(PACKAGES),
        "seed": seed,
        "quick": quick,
        "minutes": round(done.minutes, 1),
        "workers": workers,
        "streams": sources,
        "missing": missing,
    }
    results.write(target / RAW, done.rows, made_by)
    drawn = figures.draw(done.rows, target / "figures")
    page.write(done.rows, made_by, drawn, PAGE if target == committed else target / "experiments.md")
    say(f"wrote {target / RAW}, {len(drawn)} figures and the page; the points took {made_by['minutes']} minutes")
    if not quick and seed != SEED:
        _compare(results.read(committed / RAW), done.rows)


def _target(run: Run, *, quick: bool) -> Path:
    """Return where results go: the committed ones are those of everybody's streams, whole and with the first seed."""
    if not quick and run.seed == SEED and run.trace is None:
        return HERE / "results"
    return run.folder / ("trace" if run.trace else f"seed-{run.seed}")


def _streams(run: Run) -> tuple[dict[str, str], dict[str, str]]:
    """Make every stream that can be had, and return their sources, and one line for each that is missing."""
    names = [*(["trace"] if run.trace else []), "zipf", *REAL, "trace-stand-in"]
    sources, missing = {}, {}
    for name in names:
        skew = run.size.skews[0] if name == "zipf" else None
        try:
            stream = load(run, name, skew, 0)
        except MissingStream as reason:
            if name == "trace":  # it was asked for
                say(str(reason))
                sys.exit(2)
            missing[name] = str(reason)
            say(f"{name} is left out: {reason}")
        else:
            sources[name] = stream.source
            say(f"{name}: {len(stream):,} items, {stream.source}")
    return sources, missing


def _compare(committed: list[results.Row], rows: list[results.Row]) -> None:
    """Tell which conclusions another seed changes, and fail if there is one; of the streams that both runs have."""
    both = {row.stream for row in committed} & {row.stream for row in rows}
    differing = claims.changed(*([row for row in run if row.stream in both] for run in (committed, rows)))
    for line in differing:
        say(str(line))
    if differing:
        sys.exit(1)
    say(f"every conclusion is that of the committed results, on {', '.join(sorted(both))}")


if __name__ == "__main__":
    command()
