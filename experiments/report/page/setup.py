"""What was run, and how that differs from what the paper ran."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.markdown import table
from experiments.methods.summaries import SIZE
from experiments.plan import DELTA, EPSILON, FACTOR, FULL
from experiments.report.claims.words import extent
from experiments.report.fingerprints import DEPTHS, can_release, chance_of_equal, longest
from experiments.report.keys import COUNT_MIN, COUNT_SKETCH
from experiments.report.noise import gamma, margin
from experiments.report.page.text import bullets, paragraph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from experiments.results import Row

__all__ = ["differences", "missing", "run"]

SYNTHETIC: Final = ("zipf", "trace-stand-in")
FACTS: Final = ("date", "commit", "seed", "minutes", "workers", "processor", "system", "Python", "packages")
"""Of what the rows were made by, in this order."""
PRIVACY: Final = Path(__file__).parents[3] / "docs" / "privacy.md"
LARGE_EPSILON: Final = max(FULL.epsilons)

REPEAT: Final = """## What was run

```console
$ make reproduce          # this page, its figures and the raw results
$ make reproduce-quick    # short streams, to see that all of it runs
```

"""
DIFFERENCES: Final = """*Machine.* The paper's programs are C++, on a laptop. Ours are this package, a Rust core called
from Python with whole batches, on the machine above. Times are CPU time of one thread, without the making of the stream
and its exact counts. They compare with each other, not with the paper's.

*The length.* The paper's Algorithm 3 has the exact length in its threshold, and with it is not private:
[privacy.md]({privacy}#12-the-papers-algorithm-3) has the counterexample. Here the length is declared, and so public,
for every private method.

*Noise.* All noise is discrete, and thresholds come from exact sums where the paper has tail bounds: at epsilon =
{common:g} and delta = {delta:g} the margin of Algorithm 3 is {margin:,} items, and the paper's gamma {gamma:,.0f}. The
cells of a sketch get discrete Laplace or discrete Gaussian noise, whichever spreads less. With {depth} rows or more
that is the Gaussian, which takes half of delta; Laplace noise would have the scale depth/epsilon.

*The wrapper.* The cells get their noise at release, on a copy, and not before the first item, so that the estimates
that choose labels have none. The package has the paper's order too
([privacy.md]({privacy}#15-frequency-oracles-error-envelopes)), but it was not run here.

*Sketches.* Where the counters have a capacity of ck, a sketch has {size}ck cells a row and tracks {size}ck labels,
{cells}k of either at the factor c = {factor}. The paper does not print the width. Count-Min has {depth} rows, and
CountSketch {deeper}, an odd number.

*Misra-Gries* has the published threshold of Lebeda and Tětek in its discrete form, where nothing else is said.

*Heavy* labels have at least n/k items by exact counts. Every private method keeps only labels with a noisy count of at
least n/k, besides its own threshold; Algorithm 3 lowers n/k by its margin, as it is defined. Precision and error are
means over the releases that have labels, recall over all.

*Epsilon = {epsilon:g}.* The wrapper over labels by estimates pays (1 + e^epsilon) beta out of delta, with beta the
chance that its envelope fails. Our sketches hash 64-bit fingerprints. That any two of {items:,} items share one has a
chance of up to {chance:.1e}, which is a part of beta that no number of rows lowers. At epsilon = {epsilon:g} and delta
= {delta:g} it costs more than noise leaves of delta as soon as a stream has more than {longest:,} items, and then
nothing is released{silent}. With labels tracked by SpaceSaving the chance is that of a few labels, not of all pairs,
and these release.

*Data.* The paper's trace is licensed and cannot be shipped. What is said of it is judged on streams that anyone can get
and on a stand-in, which has its published numbers of items and labels and nothing else of it."""


def run(rows: Sequence[Row], made_by: Mapping[str, Any]) -> str:
    """Say with what, when and on which streams."""
    sources: Mapping[str, str] = made_by.get("streams", {})
    kinds = {name: "drawn" if name in SYNTHETIC else "real" for name in dict.fromkeys(row.stream for row in rows)}
    streams = ([name, kind, *_size(rows, name), sources.get(name, "")] for name, kind in kinds.items())
    facts = [[fact, f"{made_by[fact]}"] for fact in FACTS if fact in made_by]
    return (
        REPEAT
        + table(("what", "which"), [*facts, ["rows of raw results", f"{len(rows):,}"]])
        + "\n"
        + table(("stream", "kind", "items", "labels", "source"), streams)
        + "\n"
        + paragraph(
            "Every method sees the same stream in the same run. A summary is filled once and released with every"
            " epsilon and with several draws of noise; other repetitions have another synthetic stream, or other hashes"
            " on a real one. All draws come from the seed, so that a run repeats the page: releases made that way"
            " protect nobody, and the streams are public or drawn."
        )
    )


def _size(rows: Sequence[Row], stream: str) -> list[str]:
    own = [row for row in rows if row.stream == stream]
    return [extent(row.length for row in own), extent(row.distinct for row in own)]


def differences(rows: Sequence[Row], folder: Path) -> str:
    """Say what is not as in the paper, with links from `folder`."""
    text = DIFFERENCES.format(
        privacy=os.path.relpath(PRIVACY, folder),
        epsilon=LARGE_EPSILON,
        delta=DELTA,
        common=EPSILON,
        margin=margin(EPSILON),
        gamma=gamma(EPSILON),
        depth=DEPTHS[COUNT_MIN],
        deeper=DEPTHS[COUNT_SKETCH],
        size=SIZE,
        cells=SIZE * FACTOR,
        factor=FACTOR,
        items=FULL.length,
        chance=chance_of_equal(FULL.length),
        longest=longest(LARGE_EPSILON, DELTA),
        silent=_silent(rows),
    )
    return "## How this differs from the paper's set-up\n\n" + bullets(text.split("\n\n"))


def _silent(rows: Sequence[Row]) -> str:
    """Return of which streams nothing could be released by the wrapper; of others nothing may have been, too."""
    silent = dict.fromkeys(row.stream for row in rows if not can_release(row))
    return f": here of {', '.join(silent)}" if silent else ""


def missing(made_by: Mapping[str, Any], unmeasured: Sequence[str]) -> str:
    """Say which streams could not be had, and what was not measured."""
    absent: Mapping[str, str] = made_by.get("missing", {})
    own = "trace" not in made_by.get("streams", {})
    texts = [f"{name}: {why}" for name, why in absent.items()]
    texts += [f"Not measured: {text}" for text in unmeasured]
    if own:
        texts.append(
            "The paper's trace, or another one of yours: `python -m experiments --trace FILE --column NAME` reads CSV,"
            " Parquet, pcap and pcapng."
        )
    return "## What is missing\n\n" + (bullets(texts) if texts else paragraph("Nothing."))
