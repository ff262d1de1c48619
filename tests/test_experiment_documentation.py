"""What the modules of the experiments show as an example is run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import experiments

MODULES = [module.name for module in pkgutil.walk_packages(experiments.__path__, "experiments.")]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_documented_and_its_examples_hold(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert doctest.testmod(module).failed == 0


def test_examples_are_found() -> None:
    """There are some at all, so that the test above is not empty."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    with_examples = {name for name in MODULES if any(t.examples for t in finder.find(importlib.import_module(name)))}
    assert {"experiments.methods.histogram", "experiments.report.page.text"} <= with_examples
