"""What `dptop top` releases by every summary and mechanism, and the forms in which it comes out."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest

from commands import COPIES, EXACT, HEADER, rows
from dptop.cli.counting import DEPTHS
from dptop.envelope import squares_failure
from dptop.intervals import quantile
from dptop.mechanism import SketchNoise
from dptop.privacy import PrivacyParameters

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Command


def test_the_noise_at_epsilon_64_is_no_noise() -> None:
    """The precondition of every equality of counts at epsilon 64: 100,000 draws are all 0, except with chance 1e-6."""
    assert quantile(Fraction(64), Decimal("1e-6") / 200_000) == 0


def test_top_keeps_the_largest(dptop_command: Command) -> None:
    """`--top` rows come out at the most, the largest first, 20 by default."""
    lines = b"".join(b"label%d\n" % i * (COPIES + i) for i in range(30))
    assert list(rows(dptop_command("top", "-", "--top", 3, *EXACT, stdin=lines))) == [
        b"label29",
        b"label28",
        b"label27",
    ]
    assert len(rows(dptop_command("top", "-", *EXACT, stdin=lines))) == 20


def test_share_keeps_labels_by_their_part_of_the_stream(dptop_command: Command) -> None:
    """`--share` compares with the noisy length, or with a declared bound, which may be larger than the stream."""
    lines = b"a\n" * 600 + b"b\n" * 300 + b"c\n" * 100
    arguments = ("top", "-", "--share", "0.25", *EXACT)
    assert rows(dptop_command(*arguments, stdin=lines)) == {b"a": 600, b"b": 300}
    assert rows(dptop_command(*arguments, "--length", 1000, stdin=lines)) == {b"a": 600, b"b": 300}
    declared = dptop_command(*arguments, "--length", 2000, stdin=lines)
    assert rows(declared) == {b"a": 600}
    assert "2000" in declared.err


def test_the_paper_s_mechanism_releases_by_share(dptop_command: Command) -> None:
    """The threshold is that of the share, less what the noise may take away."""
    lines = b"a\n" * 600 + b"b\n" * 300 + b"c\n" * 100
    arguments = ("top", "-", "--mechanism", "paper", "--share", "0.25", "--length", 1000)
    outcome = dptop_command(*arguments, *EXACT, stdin=lines)
    assert rows(outcome) == {b"a": 600, b"b": 300}
    assert "N is the declared length 1000" in outcome.err
    refused = dptop_command(*arguments, "--partitions", 2, *EXACT, stdin=lines)
    assert (refused.code, refused.out) == (2, b"")
    assert "must have one table" in refused.err


FLIGHTS = b"year,carrier,tailnum,dest\n" + b"".join(
    b"2013,UA,%s,IAH\n" % tail for i in range(400) for tail in (b"N1", b"NA", b"", b"N2" if i % 2 else b"N%d" % (9 + i))
)
"""In the form of the demo's table: 400 of one aircraft, 200 of another, 200 that occur once, and two forms of nulls."""
CHOSEN = ("--column", "tailnum", "--null", "NA", "--epsilon", "8", "--delta", "1e-9")
KEPT = {b"N1": 400, b"N2": 200}
NEAR = 60
"""How far a noisy count may be from the true one. A label that occurs once passes with a chance of delta at most."""
BY_EVERY_SUMMARY: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # name -> arguments, what the guarantee in words says
    "space-saving": (("--summary", "space-saving"), ("Counted by: SpaceSaving, capacity 300",)),
    "misra-gries": (("--summary", "misra-gries"), ("Counted by: MisraGries, capacity 300",)),
    "misra-gries, published": (
        ("--summary", "misra-gries", "--mechanism", "misra-gries-published", "--length", "1000"),
        ("MisraGries, capacity 300", "at most 3, which high allows for", "at most 1000 items"),
    ),
    "count-min": (("--summary", "count-min"), ("CountMin, 4 rows of 65536 cells; labels by SpaceSaving",)),
    "count-sketch": (("--summary", "count-sketch"), ("CountSketch, 7 rows of 65536 cells; labels by SpaceSaving",)),
    "count-min, declared length": (("--summary", "count-min", "--length", "1000"), ("at most 1000 items",)),
    "count-min, envelope": (
        ("--summary", "count-min", "--mechanism", "envelope"),
        ("CountMin, 21 rows of 65536 cells; labels by SpaceSaving", "Assumed: rows hash labels", "the noisy length"),
    ),
    "count-sketch, envelope": (
        ("--summary", "count-sketch", "--mechanism", "envelope", "--width", "1000", "--length", "800"),
        ("CountSketch, 61 rows of 1000 cells; labels by SpaceSaving", "N is the declared length 800"),
    ),
    "count-min, estimates": (
        ("--summary", "count-min", "--candidates", "estimates", "--noise", "laplace"),
        ("CountMin, 21 rows of 65536 cells; the 300 labels with the largest estimates seen", "discrete Laplace"),
    ),
    "count-sketch, estimates": (
        ("--summary", "count-sketch", "--candidates", "estimates", "--mechanism", "envelope", "--depth", "31"),
        ("CountSketch, 31 rows of 65536 cells; the 300 labels with the largest estimates seen",),
    ),
    "count-min, Gaussian noise": (("--summary", "count-min", "--noise", "gaussian"), ("discrete Gaussian of scale",)),
}


@pytest.mark.parametrize(("arguments", "words"), BY_EVERY_SUMMARY.values(), ids=BY_EVERY_SUMMARY)
@pytest.mark.parametrize("share", [(), ("--share", "0.1")], ids=["all", "share"])
def test_every_summary_releases_what_is_frequent(
    dptop_command: Command, arguments: tuple[str, ...], words: tuple[str, ...], share: tuple[str, ...]
) -> None:
    """On a table like the demo's each finds the two frequent aircraft, about as often as they flew, and says how."""
    outcome = dptop_command(
        "top", "-", "--format", "csv", *CHOSEN, "--capacity", 300, *arguments, *share, stdin=FLIGHTS
    )
    found = rows(outcome)
    assert list(found) == list(KEPT)
    for label, count in KEPT.items():
        assert abs(found[label] - count) <= NEAR, "once in a million runs"
    for word in words:
        assert word in outcome.err


def test_an_envelope_that_cannot_be_met_says_why(dptop_command: Command) -> None:
    """It releases nothing, and what would help depends on what is missing: cells, or a delta for equal fingerprints.

    At delta = 1e-9 and a million items, (10^6)^2 / 2^65 = 2.7e-8 is more than there is; at 1e-6 it is not.
    """
    arguments = ("top", "-", "--summary", "count-min", "--candidates", "estimates", "--length", 10**6)
    for more, why in (
        ((), "64-bit fingerprints.* 1000000 items.* larger delta, or track labels by candidates='space-saving'"),
        (("--delta", "1e-6", "--width", 2), "21 rows of 2 cells cannot tell labels.* Give it more memory"),
    ):
        outcome = dptop_command(*arguments, *more, stdin=b"a\n" * 10_000)
        assert outcome.out == HEADER
        assert re.search(f"^Nothing released: .*{why}", outcome.err, re.MULTILINE), outcome.err
    assert list(rows(dptop_command(*arguments, "--delta", "1e-6", stdin=b"a\n" * 10_000))) == [b"a"]


@pytest.mark.parametrize(("candidates", "fewest"), [("space-saving", 47), ("estimates", 51)])
def test_the_rows_of_an_envelope_can_bound_the_squares(candidates: str, fewest: int) -> None:
    """At epsilon = 1, delta = 1e-9 and a noisy length, CountSketch needs as many rows as docs/privacy.md says for that.

    The bound may take 15/16 of what the errors may cost: half of delta is the length's, of the rest half the noise's,
    which is Gaussian from so many rows on; labels by estimates pay 1 + e^epsilon times.
    """
    assert DEPTHS["count-sketch"][1] >= fewest
    allowed = 15 / 16 * 2.5e-10 / (1 if candidates == "space-saving" else 1 + math.exp(0.98))
    assert squares_failure(fewest) <= allowed < squares_failure(fewest - 2)
    noise, left = SketchNoise.of(None, PrivacyParameters.of(0.98, 5e-10), fewest)
    assert (noise.kind, float(left)) == ("gaussian", 2.5e-10)


def test_misra_gries_has_no_upper_end_without_a_length(dptop_command: Command) -> None:
    """As the words say; a declared length gives one."""
    arguments = ("top", "-", "--summary", "misra-gries", *EXACT)
    outcome = dptop_command(*arguments, stdin=b"a\n" * COPIES)
    assert outcome.out == HEADER + b"a,50,50,%d\n" % (2**63 - 1)
    assert "high is 2^63 - 1" in outcome.err
    outcome = dptop_command(*arguments, "--length", 2**17, stdin=b"a\n" * COPIES)
    assert outcome.out == HEADER + b"a,50,50,51\n"


def test_noise_of_cells_stays_near() -> None:
    """The precondition of the test above: its noise exceeds `NEAR` in the cells of two labels with chance below 1e-6.

    Each part of epsilon = 8 is at least what is taken for it here: half for the cells where labels are selected, 98 %
    where a noisy length is taken; a quarter of delta.
    """
    for epsilon, kind, depth in (
        *((3.9, None, 4), (3.9, None, 7), (3.9, "gaussian", 4)),
        *((7.84, None, 21), (7.84, "laplace", 21), (7.84, None, 31), (7.84, None, 61)),
    ):
        noise, _ = SketchNoise.of(kind, PrivacyParameters.of(epsilon, 2.5e-10), depth)
        assert 2 * 2 * depth * noise.cells.tail(NEAR) < 1e-6
    assert quantile(Fraction(39, 10), Decimal("1e-7")) < NEAR / 4


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_partitions_and_threads_keep_exact_counts(dptop_command: Command, threads: int) -> None:
    """While no table is full, any number of partitions and threads counts the same."""
    lines = b"".join(b"label%d\n" % i * (COPIES + i) for i in range(15))
    outcome = dptop_command("top", "-", "--partitions", 4, "--threads", threads, *EXACT, stdin=lines)
    assert rows(outcome) == {b"label%d" % i: COPIES + i for i in range(15)}


# --- the form of the result -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".CSV"])
def test_an_output_file_takes_the_place_of_stdout(dptop_command: Command, tmp_path: Path, suffix: str) -> None:
    """`-o` writes by its suffix, over an old file, and leaves stdout empty; the words still go to stderr."""
    output = tmp_path / f"out{suffix}"
    output.write_bytes(b"old" * 1000)
    outcome = dptop_command("top", "-", "-o", output, *EXACT, stdin=b"a\n" * 60 + b"b\n" * 50)
    assert (outcome.code, outcome.out) == (0, b"")
    assert outcome.err.startswith("Protected: ")
    if suffix == ".parquet":
        found = pyarrow.parquet.read_table(output).to_pylist()
    elif suffix == ".jsonl":
        found = [json.loads(line) for line in output.read_text().splitlines()]
    else:
        found = list(csv.DictReader(io.StringIO(output.read_text())))
    as_read = [(row["item"].decode() if suffix == ".parquet" else row["item"], int(row["count"])) for row in found]
    assert as_read == [("a", 60), ("b", 50)]


def test_a_table_in_a_pipe_is_plain_text(dptop_command: Command) -> None:
    """`--table` aligns columns without colour, escapes what is not printable, and cuts the middle of long labels."""
    lines = b"\x1b[31mred\t\xff\n" * 1000 + b"y" * 5000 + b"\n" + (b"z" * 4000 + b"\n") * 50
    outcome = dptop_command("top", "-", "--table", *EXACT, stdin=lines)
    shown = outcome.out.decode()
    assert re.search(r"^ *item +count +low +high *$", shown, flags=re.MULTILINE)
    assert re.search(r"\\x1b\[31mred\\t\\xff +1,000 +1,000 +1,000", shown)
    assert "\x1b" not in shown
    assert "…" in shown
    assert len(shown) < 2000


def test_words_go_to_stderr(dptop_command: Command) -> None:
    """The guarantee in words is on stderr and data alone on stdout; no progress bar is drawn into a pipe."""
    outcome = dptop_command("top", "-", *EXACT, stdin=b"a\n" * COPIES)
    assert rows(outcome) == {b"a": COPIES}
    assert outcome.out.count(b"\n") == 2
    for word in (
        "Guarantee: (64, 1e-09)-differential privacy",
        "Counted by: SpaceSaving, capacity 65536",
        "Not covered",
    ):
        assert word in outcome.err
    assert not re.search(r"[\x1b\r━]", outcome.err)
