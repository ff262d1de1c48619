"""The rules of docs/saved-form.md, for what the reader of saved_form_reader.py found: an AssertionError if broken."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dptop import gaussian
from saved_form_reader import BYTES, INTEGERS, NO_LABEL, STEP, STRINGS, Label, partition_of, signed_cells

MAX_LENGTH = 2**63 - 1
MAX_CAPACITY = 2**31


def check(form: dict[str, Any]) -> None:
    """Check all rules of a saved form, and of the forms in it."""
    record(form["record"])
    parts(form)


def parts(form: dict[str, Any]) -> None:
    {1: counters, 2: counters, 3: sketch, 4: sketch, 5: estimates, 6: tracked}[form["type"]](form)


def labels_of(form: dict[str, Any], found: list[Label]) -> None:
    """Check labels that are in one form, those of all partitions."""
    assert form["kind"] in (NO_LABEL, INTEGERS, STRINGS, BYTES)
    assert 64 <= form["max_label_bytes"] <= 2**30
    assert len(set(found)) == len(found)
    for label in found:
        if form["kind"] == INTEGERS:
            assert isinstance(label, int)
            assert -(2**63) <= label < 2**64
            continue
        assert not isinstance(label, int)
        text = label[0] if isinstance(label, tuple) else label
        size = len(text.encode() if isinstance(text, str) else text)
        if isinstance(label, tuple):
            assert len(label[1]) == 32
            room = 3 if form["kind"] == STRINGS else 0
            assert form["max_label_bytes"] - room <= size + 32 <= form["max_label_bytes"]
        assert size <= form["max_label_bytes"]


def in_order(label: Label) -> tuple[Any, bool]:
    """Return what Misra-Gries sorts labels by."""
    if isinstance(label, int):
        return label, False
    text, digest = label if isinstance(label, tuple) else (label, b"")
    return (text.encode() if isinstance(text, str) else text) + digest, isinstance(label, tuple)


def counters(form: dict[str, Any]) -> None:
    capacity, partitions = form["capacity"], form["partitions"]
    assert 1 <= capacity <= MAX_CAPACITY
    assert 1 <= partitions <= min(capacity, 2**20)
    labels_of(form, [label for table in form["counters"] for label, _ in table])
    for number, table in enumerate(form["counters"]):
        assert len(table) <= capacity // partitions + (number < capacity % partitions)
        if form["kind"] == INTEGERS:
            key = int.from_bytes(form["identity"][:8], "little")
            assert all(partition_of(label, key, partitions) == number for label, _ in table)
    counts = [count for table in form["counters"] for _, count in table]
    assert (form["kind"] == NO_LABEL) == (not counts)
    assert sum(counts) <= MAX_LENGTH
    if form["type"] == 1:
        assert form["tie"] in (0, 1)
        assert all(count >= 1 for count in counts)
        return
    assert (form["tie"], partitions) == (0, 1)
    assert sorted(form["counters"][0], key=lambda pair: in_order(pair[0])) == form["counters"][0]
    more = form["length"] - sum(counts)
    assert more >= 0
    assert form["length"] <= MAX_LENGTH
    assert more % (capacity + 1) == 0
    assert len(counts) == capacity or more == 0
    assert more or all(counts)


def sketch(form: dict[str, Any]) -> None:
    assert 1 <= form["width"] <= 2**31
    assert 1 <= form["depth"] <= 2**16
    assert form["type"] == 3 or form["depth"] % 2 == 1
    assert form["seeded"] <= 2
    labels_of(form, [])
    length, noise = form["length"], form["noise"]
    assert length <= MAX_LENGTH
    assert (form["kind"] == NO_LABEL) == (length == 0)
    if noise is None:
        assert form["seeded"] != 1
        for row in form["cells"]:
            left = length - sum(map(abs, row))
            assert left >= 0
            assert left % 2 == 0
        assert form["type"] == 4 or len({sum(row) for row in form["cells"]}) == 1
        return
    assert Fraction(1, 2**20) <= noise["epsilon"] <= 64
    assert 0 <= noise["delta"] < 1
    assert not noise["delta"].is_signed()
    assert form["record"]["budget"] is None
    if noise["kind"] == "laplace":
        assert noise["delta"] == 0
        assert noise["epsilon_cell"] == noise["epsilon"] / STEP // form["depth"] * STEP > 0
    else:
        assert 1 <= noise["variance"] <= 2**40
        assert gaussian.delta(noise["epsilon"], noise["variance"], form["depth"]) <= noise["delta"]


def estimates(form: dict[str, Any]) -> None:
    assert 1 <= form["capacity"] <= MAX_CAPACITY
    assert len(form["estimates"]) <= min(form["capacity"], form["length"])
    assert form["length"] <= MAX_LENGTH
    assert (form["kind"] == NO_LABEL) == (form["length"] == 0) == (not form["estimates"])
    labels_of(form, [label for label, _ in form["estimates"]])


def tracked(form: dict[str, Any]) -> None:
    cells, labels = form["sketch"], form["labels"]
    check(cells)
    parts(labels)
    given: dict[str, Any] = {"incomplete": False, "closed": cells["noise"] is not None, "length": None, "spent": []}
    assert cells["record"] == {"budget": cells["record"]["budget"], **given}
    assert form["candidates"] in (0, 1)
    assert form["tie"] in (0, 1)
    assert labels["record"] is None
    assert labels["type"] == (5 if form["candidates"] else 1)
    assert labels["capacity"] == form["capacity"]
    assert labels["max_label_bytes"] == cells["max_label_bytes"]
    if not form["candidates"]:
        assert (labels["partitions"], labels["tie"]) == (1, form["tie"])
    if not form["record"]["incomplete"]:
        length = labels["length"] if form["candidates"] else sum(count for _, count in labels["counters"][0])
        assert (labels["kind"], length) == (cells["kind"], cells["length"])
        if cells["type"] == 3 and cells["noise"] is None and cells["kind"] == INTEGERS:
            grown(form)
    if cells["noise"] is None:
        assert all(abs(estimate) <= labels["length"] for _, estimate in labels.get("estimates", []))
    else:
        assert form["record"]["budget"] is None


def grown(form: dict[str, Any]) -> None:
    """Check that Count-Min estimates no integer at less than what is known of it."""
    labels = form["labels"]
    known = labels["estimates"] if form["candidates"] else labels["counters"][0]
    is_full = len(known) == form["capacity"]
    minimum = 0 if form["candidates"] or not is_full else min(count for _, count in known)
    for label, count in known:
        estimate = min(signed_cells(label, form["sketch"]))
        assert estimate >= max(count - minimum, 1)
        assert count >= 1


def record(found: dict[str, Any] | None) -> None:
    assert found is not None
    if found["budget"] is not None:
        epsilon, delta = found["budget"]
        assert 2.0**-20 <= epsilon <= 64
        assert 0 < delta < 1
    assert found["length"] is None or 1 <= found["length"] <= MAX_LENGTH
    assert len({each["random"] for each in found["spent"]}) == len(found["spent"])
    for each in found["spent"]:
        assert 1 <= each["max_contributions"] <= MAX_LENGTH
        assert each["epsilon"] > 0
        assert 0 <= each["delta"] < 1
        assert not each["delta"].is_signed()
