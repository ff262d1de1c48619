"""Wrong usage of the command line exits 2 before anything is read, and its help says what there is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from commands import EXACT, assert_refused
from containers import SECRET

if TYPE_CHECKING:
    from commands import Command


WRONG = {
    "--epsilon": ["0", "-1", "nan", "inf", "abc", "True", "", "65"],
    "--delta": ["0", "-1", "nan", "inf", "2", "1", "abc", "True"],
    "--capacity": ["0", "-1", "1000000000000", "2.5", "abc", "True", "1e3"],
    "--top": ["0", "-1", "2.5", "abc"],
    "--share": ["0", "-1", "2", "nan", "abc"],
    "--length": ["0", "-1", "2.5", "abc", "9223372036854775808"],
    "--partitions": ["0", "-1", "2.5", "65537"],
    "--threads": ["0", "-1", "2.5", "65"],
}


@pytest.mark.parametrize(("option", "value"), [(option, value) for option, values in WRONG.items() for value in values])
def test_a_wrong_number_is_refused_before_anything_is_read(dptop_command: Command, option: str, value: str) -> None:
    """A parameter out of its range is told with its rule, its value and a remedy; the file need not even exist."""
    number = re.escape(value) if value != "" else "''"
    rule = rf"^dptop: {option[2:]} must (satisfy|be) .*; got '?-?{number.lstrip('-')}(\.0)?'?\. [A-Z0-9].*\."
    assert_refused(dptop_command("top", "missing", f"{option}={value}"), 2, rule)


WRONG_OF_SKETCHES = {
    "--width": ["0", "-1", "2.5", "abc", "True", "1e3", "2147483649"],
    "--depth": ["0", "-1", "2.5", "abc", "65537"],
    "--capacity": ["0", "2.5", "1000000000000"],
    "--candidates": ["", "wrong", "Estimates"],
    "--noise": ["", "none", "gauss"],
}


@pytest.mark.parametrize("summary", ["count-min", "count-sketch"])
@pytest.mark.parametrize(
    ("option", "value"), [(option, value) for option, values in WRONG_OF_SKETCHES.items() for value in values]
)
def test_a_wrong_shape_of_a_sketch_is_refused_before_anything_is_read(
    dptop_command: Command, summary: str, option: str, value: str
) -> None:
    """What shapes a sketch is told with its rule, its value and a remedy, like other numbers."""
    rule = rf"^dptop: {option[2:]} must be .*; got '?{re.escape(value)}'?\. [A-Z].*\."
    assert_refused(dptop_command("top", "missing", "--summary", summary, f"{option}={value}"), 2, rule)


CONTRADICTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "an unknown format": (("--format", "xml"), "format must be one of .*'jsonl'.*; got 'xml'"),
    "an unknown summary": (("--summary", "bloom"), "summary must be one of .*; got 'bloom'"),
    "an unknown mechanism": (("--mechanism", "magic"), "mechanism must be one of .*; got 'magic'"),
    "the paper's mechanism without a share": (("--mechanism", "paper"), "must have a share"),
    "the paper's mechanism for Misra-Gries": (
        ("--summary", "misra-gries", "--mechanism", "paper", "--share", "0.1"),
        "must be one for a MisraGries: 'misra-gries', 'misra-gries-published'; got 'paper'",
    ),
    "an envelope of SpaceSaving": (("--mechanism", "envelope"), "one for a SpaceSaving: .*; got 'envelope'"),
    "an envelope of Misra-Gries": (
        ("--summary", "misra-gries", "--mechanism", "envelope"),
        "one for a MisraGries: .*; got 'envelope'",
    ),
    "the noisy minimum of a sketch": (
        ("--summary", "count-min", "--mechanism", "stable-threshold"),
        "one for a Tracked: 'selected', 'envelope'; got 'stable-threshold'",
    ),
    "declared labels, of which there are none": (
        ("--summary", "count-sketch", "--mechanism", "public-labels"),
        "one for a Tracked: .*; got 'public-labels'",
    ),
    "a selection from estimates": (
        ("--summary", "count-min", "--candidates", "estimates", "--mechanism", "selected"),
        "must have candidates of SpaceSaving; got candidates='estimates'",
    ),
    "noise of cells without cells": (("--noise", "gaussian"), "noise is for sketches"),
    "noise of cells for Misra-Gries": (
        ("--summary", "misra-gries", "--noise", "laplace"),
        "noise is for sketches",
    ),
    "partitions of Misra-Gries": (
        ("--summary", "misra-gries", "--partitions", "2"),
        "partitions is for space-saving; got 2 for misra-gries. Leave",
    ),
    "partitions of a sketch": (
        ("--summary", "count-min", "--partitions", "2"),
        "for space-saving; got 2 for count-min",
    ),
    "cells of SpaceSaving": (("--width", "100"), "width is for count-min and count-sketch; got 100 for space-saving"),
    "rows of Misra-Gries": (("--summary", "misra-gries", "--depth", "5"), "depth is for .*; got 5 for misra-gries"),
    "candidates of SpaceSaving": (("--candidates", "estimates"), "candidates is for .* for space-saving. Leave"),
    "a median of an even number of rows": (("--summary", "count-sketch", "--depth", "4"), "depth must be odd.*; got 4"),
    "more cells than memory": (
        ("--summary", "count-min", "--width", "2147483647", "--depth", "65536"),
        r"must fit into memory twice.* got width 2147483647 and depth 65536.* Use a smaller",
    ),
    "an epsilon too small for so many rows": (
        ("--summary", "count-min", "--epsilon", "1e-6", "--width", "1", "--depth", "65536"),
        r"epsilon / depth must be at least 2\*\*-32",
    ),
    "Gaussian noise beyond its limits": (
        ("--summary", "count-min", "--noise", "gaussian", "--delta", "1e-301"),
        "delta must be .*1e-300 <= delta",
    ),
    "two forms of output": (("--json", "--table"), "exclude each other"),
    "a form and a file": (("--json", "-o", "x.csv"), "exclude each other"),
    "an output of no known form": (("-o", "x.txt"), r"output must end in .*\.csv.*; got '\.txt'\. Rename"),
    "stdin twice": (("-", "/dev/stdin"), "standard input can be read once; got it 2 times"),
}


@pytest.mark.parametrize(("arguments", "pattern"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_contradiction_is_refused_before_anything_is_read(
    dptop_command: Command, arguments: tuple[str, ...], pattern: str
) -> None:
    """Unknown names and options that exclude each other are wrong usage."""
    assert_refused(dptop_command("top", "missing", *arguments), 2, pattern)


@pytest.mark.parametrize("arguments", [("top",), ("top", "--nonsense", "x"), ("top", "x", "--top"), ("nonsense",)])
def test_a_command_line_that_cannot_be_parsed_is_wrong_usage(
    dptop_command: Command, arguments: tuple[str, ...]
) -> None:
    """A missing file, an unknown option, an option without its value and an unknown command exit 2, on stderr."""
    outcome = dptop_command(*arguments)
    assert (outcome.code, outcome.out) == (2, b"")
    assert "Error" in outcome.err


def test_help_and_version_are_results(dptop_command: Command) -> None:
    """What is asked for goes to stdout and exits 0; no command at all shows the help and exits 2."""
    assert dptop_command("--version").out.startswith(b"dptop ")
    helped = dptop_command("top", "--help")
    assert (helped.code, helped.err) == (0, "")
    assert b"--epsilon" in helped.out
    assert dptop_command().code == 2


def test_the_help_names_what_there_is_to_choose_from(dptop_command: Command) -> None:
    """Every summary, every mechanism that finds labels, both ways to track them and both kinds of noise."""
    words = re.sub(r"[^\w,.-]+", " ", dptop_command("top", "--help").out.decode())
    for choices in (
        "space-saving, misra-gries, count-min, count-sketch.",
        "stable-threshold, paper, misra-gries, misra-gries-published, selected, envelope",
        "space-saving or estimates.",
        "laplace or gaussian.",
    ):
        assert choices in words


def test_lines_have_no_columns(dptop_command: Command) -> None:
    """The message says how to name the format; who named lines used the command wrongly."""
    outcome = dptop_command("top", "-", "--column", "x", stdin=b"x,y\n")
    assert_refused(outcome, 1, "standard input: there is no column.* csv, tsv or jsonl")
    outcome = dptop_command("top", "-", "--column", "x", "--format", "lines", stdin=b"x,y\n")
    assert_refused(outcome, 2, "standard input: lines have no columns.* csv, tsv or jsonl")


def test_a_stream_longer_than_its_declared_length_is_refused(dptop_command: Command) -> None:
    """The promise covers streams within the bound, so a longer one is wrong usage; its length is not told."""
    lines = f"{SECRET}\n".encode() * 1234
    outcome = dptop_command("top", "-", "--share", "0.5", "--length", "1233", stdin=lines)
    assert_refused(outcome, 2, "length must bound the length of the stream; 1233 does not")
    assert "1234" not in outcome.err
    assert dptop_command("top", "-", "--share", "0.5", "--length", "1234", *EXACT, stdin=lines).code == 0
