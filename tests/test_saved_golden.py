"""Files of every version of the saved form are read as what was counted into them, and are saved to the same bytes."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

import dptop
from dptop.label import ShortenedLabel, largest_first
from dptop.ledger import Ledger
from dptop.oracle import LinearSketch
from saved_form_cases import EXPECTED, FOLDER, label, noise, pairs, saved, spent
from saved_form_reader import INTEGERS, partition_of, read, signed_cells

PLAIN = ["type", "capacity", "partitions", "tie", "kind", "max_label_bytes", "length", "width", "depth", "seeded"]
PLAIN += ["candidates"]
SPECIAL = {"counters", "counts", "record", "noise", "row_sum", "estimated", "estimates", "labels_in_order"}
PARTS = ("sketch", "labels")


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "_known", {})


def test_there_is_a_file_of_each_sort() -> None:
    """Each type is there, each file has a maker, and what is written down is looked at by the tests below."""
    where = FOLDER.parent / "make_saved_forms.py"
    spec = importlib.util.spec_from_file_location("make_saved_forms", where)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert {make.__name__ for make in script.MAKERS} == set(EXPECTED) == {path.stem for path in FOLDER.glob("*.dptop")}
    forms = [*EXPECTED.values(), *(form[part] for form in EXPECTED.values() for part in PARTS if part in form)]
    assert {form["type"] for form in forms} == set(range(1, 7))
    for form in forms:
        assert set(form) <= {*PLAIN, *SPECIAL, *PARTS}


def same(form: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare what the reader found with what was written down."""
    for name in PLAIN:
        assert form.get(name) == expected.get(name) or name not in expected, name
    if "counters" in expected:
        assert form["counters"] == [pairs(table, form["kind"]) for table in expected["counters"]]
    if "counts" in expected:
        assert sorted(pair for table in form["counters"] for pair in table) == pairs(expected["counts"], form["kind"])
        key = int.from_bytes(form["identity"][:8], "little")
        for number, table in enumerate(form["counters"]):
            assert {partition_of(item, key, form["partitions"]) for item, _ in table} <= {number}
    if "estimates" in expected:
        assert form["estimates"] == pairs(expected["estimates"], form["kind"])
    if "labels_in_order" in expected:
        assert [item for item, _ in form["estimates"]] == [label(x, form["kind"]) for x in expected["labels_in_order"]]
    if "noise" in expected:
        assert form["noise"] == noise(expected["noise"])
    if "row_sum" in expected:
        assert [sum(row) for row in form["cells"]] == [expected["row_sum"]] * form["depth"]
    if "estimated" in expected and form["kind"] == INTEGERS:
        for item, count in pairs(expected["estimated"], form["kind"]):
            cells = sorted(signed_cells(item, form))
            assert (cells[0] if form["type"] == 3 else cells[len(cells) // 2]) == count
    if (record := expected["record"]) is None:
        assert form["record"] is None
    else:
        found = form["record"]
        for name in ("incomplete", "closed", "length"):
            assert found[name] == record[name]
        assert found["budget"] == (record["budget"] and tuple(record["budget"]))
        charged = [(each["max_contributions"], each["epsilon"], each["delta"]) for each in found["spent"]]
        assert charged == spent(record["spent"])
    for part in PARTS:
        assert (part in form) == (part in expected)
        if part in expected:
            same(form[part], expected[part])


@pytest.mark.parametrize("name", EXPECTED)
def test_a_reader_made_from_the_page_reads_them(name: str) -> None:
    """Every file holds what was counted into it, by docs/saved-form.md alone."""
    same(read(saved(name)), EXPECTED[name])


@pytest.mark.parametrize("name", EXPECTED)
def test_they_are_loaded_and_saved_to_the_same_bytes(name: str) -> None:
    """The package reads what was counted, and what was spent, and writes the file again."""
    expected = EXPECTED[name]
    summary = dptop.load(FOLDER / f"{name}.dptop")
    assert summary.to_bytes() == saved(name)
    record = expected["record"]
    assert summary.budget == (record["budget"] and dptop.Budget(*record["budget"]))
    assert (summary._releasable, summary._ledger.closed) == (not record["incomplete"], record["closed"])
    assert summary._ledger.length == record["length"]
    entries = summary._ledger.entries.values()
    charged = [(one.max_contributions, one.parameters.epsilon, one.parameters.delta) for one in entries]
    assert charged == spent(record["spent"])
    if isinstance(summary, (dptop.SpaceSaving, dptop.MisraGries)):
        kind = expected["kind"]
        tables = [expected["counts"]] if "counts" in expected else expected["counters"]
        counted = [(plain(item), count) for table in tables for item, count in pairs(table, kind)]
        assert summary.private_counters() == largest_first(counted)
        assert summary.capacity == expected["capacity"]
        assert summary.max_label_bytes == expected["max_label_bytes"]
    elif isinstance(summary, LinearSketch):
        assert (summary.width, summary.depth) == (expected["width"], expected["depth"])
        assert summary._length() == expected["length"]
        estimated = pairs(expected.get("estimated", []), expected["kind"])
        assert [(item, summary.estimate(item)) for item, _ in estimated] == estimated
        assert (summary.noise is None) == (expected["noise"] is None)
    else:
        assert isinstance(summary, dptop.Tracked)
        sketch, labels = expected["sketch"], expected["labels"]
        assert (summary.capacity, summary._length()) == (expected["capacity"], sketch["length"])
        if sketch["noise"] is None:
            estimates = dict(pairs(sketch["estimated"], sketch["kind"]))
            tracked = labels["counters"][0] if "counters" in labels else labels["estimates"]
            counted = [(item, estimates[item]) for item, _ in pairs(tracked, labels["kind"])]
            assert summary.private_counters() == largest_first(counted)
        else:
            assert {item for item, _ in summary.private_counters()} == set(labels["labels_in_order"])


def plain(item: Any) -> Any:
    """Return a label as a summary gives it out."""
    return ShortenedLabel(*item) if isinstance(item, tuple) else item
