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


@pytest.mark.parametrize("page", PAGES, ids=of_repository)
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


@pytest.mark.parametrize(
    "command",
    [c for page in PAGES for c in commands(page) if c.split()[0] not in RUN_ELSEWHERE],
)
def test_a_command_of_a_page_succeeds(command: str) -> None:
    """Each command that a page shows exits 0 in the root of the repository, every part of its pipe included."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=ROOT,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


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
