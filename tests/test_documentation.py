"""What is written is run: docstrings, the README and the documents."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dptop

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NEEDS_SPARK = ROOT / "docs" / "how-to-spark.md"
"""Its Python is run by tests_spark/test_documentation.py."""
RUN_ELSEWHERE = ("make", "pip", "git")
"""First words of commands that the tests leave alone: they install, or run these tests."""

MODULES = ["dptop", *(module.name for module in pkgutil.walk_packages(dptop.__path__, "dptop."))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def of_repository(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Return the fragments that the page's headings can be linked by, as they are made of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", dptop.__all__)
def test_a_public_name_is_there_and_documented(name: str) -> None:
    """Every name of `__all__` exists and says what it is, down to its public methods and properties."""
    public = getattr(dptop, name)
    if name == "__version__":
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", public)
        return
    assert inspect.getdoc(public)
    for member_name, member in vars(public).items() if inspect.isclass(public) else ():
        if not member_name.startswith("_") and (callable(member) or isinstance(member, (property, classmethod))):
            assert member.__doc__, f"{name}.{member_name} has no docstring"


def test_all_is_sorted_and_complete() -> None:
    """`__all__` lists each name once, and nothing that looks public is left out."""
    assert sorted(set(dptop.__all__)) == sorted(dptop.__all__)
    visible = {n for n, value in vars(dptop).items() if not n.startswith("_") and not inspect.ismodule(value)}
    assert visible <= set(dptop.__all__)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_documented_and_its_examples_hold(name: str) -> None:
    """Every module has a docstring, and its doctests pass."""
    module = importlib.import_module(name)
    if name.rpartition(".")[2] != "_native":
        assert module.__doc__
    assert doctest.testmod(module).failed == 0


def test_doctests_are_found() -> None:
    """The package has examples at all, so the test above is not empty."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = [e for name in MODULES for t in finder.find(importlib.import_module(name)) for e in t.examples]
    assert len(examples) > 20


@pytest.mark.parametrize("page", [page for page in PAGES if page != NEEDS_SPARK], ids=of_repository)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python blocks of a page run in order, in one namespace, and leave nothing in the repository."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)


def test_the_readme_shows_a_session_that_releases() -> None:
    """The README's Python ends in a release with rows, and its console blocks call the command."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(ROOT / "README.md", "python"):
        exec(block, namespace)
    assert len(namespace["result"]) > 0
    assert any("dptop top" in command for command in commands(ROOT / "README.md"))


def commands(page: Path) -> list[str]:
    """Return the commands of a page's console blocks: what follows a dollar sign, with continued lines."""
    text = "".join(blocks(page, "console")).replace("\\\n", "")
    return re.findall(r"^\$ (.*)$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=of_repository)
def test_the_commands_of_a_page_succeed(page: Path, tmp_path: Path) -> None:
    """Each command exits 0, every part of its pipe included: in order, in one folder that has all of the repository."""
    for path in ROOT.iterdir():
        (tmp_path / path.name).symlink_to(path)
    environment = os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    for command in commands(page):
        if command.split()[0] in RUN_ELSEWHERE:
            continue
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=of_repository)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    """A relative link points at a file that exists, and a fragment at a heading of it."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, fragment = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{link} is not there"
        assert not fragment or fragment in anchors(target), f"{link} has no such heading"


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("*.md"))], ids=of_repository)
def test_prose_is_wrapped(page: Path) -> None:
    """Lines outside tables and blocks of code end within 120 columns."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > 120 and "|" not in line] == []


PLACES = ("", "python/dptop", "tests", "crates/summaries/src")
"""Folders that a file may be named from, besides the folder of the file named before it in the same cell or line."""


def missing(text: str) -> list[str]:
    """Return the files that a line or cell names in backticks and that are not there, and its test functions likewise.

    A test is looked for in the file of tests named before it, wherever in the same text that was.
    """
    found: list[str] = []
    folders, tests = [ROOT / place for place in PLACES], Path()
    for name in re.findall(r"`([^`\s]+)`", text):
        if re.fullmatch(r"[\w./-]*\w\.(py|rs|md)|crates/[\w/]+", name):
            path = next((folder / name for folder in folders if (folder / name).exists()), None)
            if path is None:
                found.append(name)
            else:
                folders[len(PLACES) :] = [path.parent]
                tests = path if path.name.startswith("test_") else tests
        elif re.fullmatch(r"test_\w+", name) and not (
            tests.is_file() and re.search(rf"^def {name}\(", tests.read_text(), re.MULTILINE)
        ):
            found.append(name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=of_repository)
def test_the_files_and_tests_that_a_page_names_are_there(page: Path) -> None:
    """Each file and each test in backticks exists, paragraph by paragraph and row by row."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [name for part in re.split(r"\n\n|\n(?=\|)", text) for name in missing(part)] == []


def is_named(name: str) -> bool:
    """Return whether a name is one of the package's: public, in a module of that name, or an argument of `release`."""
    first, *rest = name.split(".")
    owners: list[Any] = [dptop]
    if f"dptop.{first}" in MODULES and rest:
        owners.append(importlib.import_module(f"dptop.{first}"))
    for owner, path in zip(owners, ([first, *rest], rest), strict=False):
        for part in path:
            owner = getattr(owner, part, None)
        if owner is not None:
            return True
    return name in inspect.signature(dptop.release).parameters


PAPER = ROOT / "docs" / "paper-to-code.md"


def unknown(page: str) -> list[str]:
    """Return what the cells of the page's table name in backticks, and is neither file nor test nor name."""
    cells = [cell for line in page.splitlines() if line.startswith("|") for cell in line.split("|")]
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell) if not re.search(r"/|\.(py|rs)$", name)]
    return [name for name in names if not is_named(name)] + [name for cell in cells for name in missing(cell)]


def test_the_table_from_the_paper_to_the_code_names_what_is_there() -> None:
    """Every function, file and test of the table exists."""
    assert unknown(PAPER.read_text()) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("`noise.draw`", "`noise.drawn`"),
        ("`Tie.isolated_per_side`", "`Tie.isolated`"),
        ("`mechanism.StableThreshold`", "`mechanisms.StableThreshold`"),
        ("`crates/summaries/src/table.rs`", "`crates/summaries/src/tables.rs`"),
        ("`victims.rs`", "`victim.rs`"),
        ("`reference/stable_threshold.py`", "`reference/threshold.py`"),
        ("`test_theorems.py`", "`test_theorem.py`"),
        ("`share`", "`shares`"),
    ],
)
def test_a_name_that_is_not_there_is_seen(right: str, wrong: str) -> None:
    """The search above fails on a table with one name changed."""
    page = PAPER.read_text()
    assert right in page
    assert wrong.strip("`") in unknown(page.replace(right, wrong))


def test_a_test_that_is_not_there_is_seen() -> None:
    """Neither one that no file has, nor one of another file."""
    assert missing("`tests/test_ledger.py`, `test_a_budget_protects_one_unit`") == []
    assert missing("`tests/test_noise.py`, `test_a_budget_protects_one_unit`") == ["test_a_budget_protects_one_unit"]
    assert missing("`test_a_budget_protects_one_unit`") == ["test_a_budget_protects_one_unit"]


def test_figures_of_the_readme_are_those_of_the_benchmarks() -> None:
    """Its table of speed quotes benchmarks/results.md, which is written by a run and not edited."""
    (section,) = re.findall(r"^## Speed$(.*?)^## ", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    results = (ROOT / "benchmarks" / "results.md").read_text()
    quoted = re.findall(r"\d+\.\d+", section)
    assert len(quoted) > 15
    assert [figure for figure in quoted if not re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.])", results)] == []
    (processor,) = re.findall(r"^\| processor \| (.*?) \|$", results, re.MULTILINE)
    assert processor in " ".join(section.split())


def tables(text: str) -> dict[tuple[str, ...], list[list[str]]]:
    """Return head -> rows of the tables of a text; a head that comes again takes the rows of the last one."""
    found: dict[tuple[str, ...], list[list[str]]] = {}
    for table in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        head, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
        found[tuple(head)] = body
    return found


def test_costs_of_the_how_to_are_those_of_the_run() -> None:
    """Its table has the CPU time of benchmarks/spark.md, row by row, and its ratios are those of the page."""
    how_to = NEEDS_SPARK.read_text().partition("## What it costs")[2]
    page = (ROOT / "benchmarks" / "spark.md").read_text().partition("## CPU time")[2].partition("## Wall")[0]
    [(_, run)], [(head, quoted)] = tables(page).items(), tables(how_to).items()
    assert head == ("column", "rows to Python", "as stored", "by label", "exact")
    assert quoted == [row[:5] for row in run]
    ratios = {row[0]: (float(row[7]), float(row[8])) for row in run}
    words = " ".join(how_to.split())
    (of_high, of_low) = ([ratios[f"{kind}, {labels}"] for kind in ("int64", "string")] for labels in ("high", "low"))
    assert "({} and {} times)".format(*(f"{as_stored:.2f}" for as_stored, _ in of_high)) in words
    assert "{} and {} times, since".format(*(f"{as_stored:.1f}" for as_stored, _ in of_low)) in words
    assert "{} and {} times the exact".format(*(f"{by_label:.1f}" for _, by_label in of_high)) in words
    assert "{} and {} times where they are few".format(*(f"{by_label:.0f}" for _, by_label in of_low)) in words
    assert "counting adds {} to {} ns".format(*(f(int(row[5]) for row in run) for f in (min, max))) in words


def test_thresholds_of_the_readme_are_those_of_the_run() -> None:
    """Every row of its table of summaries has the figures of benchmarks/thresholds.md, row by row."""
    (section,) = re.findall(r"^## Which summary$(.*?)^## ", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    page = (ROOT / "benchmarks" / "thresholds.md").read_text()
    runs = {}
    for memory in ("100 kB", "1,000 kB"):
        (run,) = re.findall(rf"^## {memory}, delta = 1e-6$(.*?)(?:^## |\Z)", page, re.MULTILINE | re.DOTALL)
        [(_, body)] = tables(run).items()
        runs[memory] = {(name, mechanism): figures for name, mechanism, _, _, *figures in body}
    [(head, quoted)] = tables(section).items()
    assert head == ("summary", "mechanism", "needs, 100 kB", "needs, 1 MB", "noise", "bias")
    assert [(name, mechanism) for name, mechanism, *_ in quoted] == list(runs["1,000 kB"])
    for name, mechanism, *figures in quoted:
        small, large = runs["100 kB"][name, mechanism], runs["1,000 kB"][name, mechanism]
        assert figures == [small[0], *large[:3]], (name, mechanism)
