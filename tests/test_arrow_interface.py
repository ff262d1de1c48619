"""Arrow data that breaks the C data interface: an error of ours, never a crash or a panic, and nothing counted."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

import pytest

import dptop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Arrow C data interface, "Structure definitions"


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


def _release_schema(pointer: int) -> None:
    ctypes.cast(pointer, ctypes.POINTER(Schema)).contents.release = None


def _release_array(pointer: int) -> None:
    ctypes.cast(pointer, ctypes.POINTER(Array)).contents.release = None


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
release_schema, release_array = RELEASE(_release_schema), RELEASE(_release_array)


class Forged:
    """An object with `__arrow_c_array__` whose structures are as the test wants them. It keeps their memory."""

    def __init__(self) -> None:
        self.memory: list[Any] = []
        self.parts: tuple[Schema, Array]

    def schema(self, format_: bytes | None, children: Sequence[Schema] = (), **fields: Any) -> Schema:
        schema = Schema(format=format_, name=b"x", flags=2, n_children=len(children))
        schema.release = ctypes.cast(release_schema, ctypes.c_void_p)
        if children:
            schema.children = self._pointers(Schema, children)
        for name, value in fields.items():
            setattr(schema, name, value)
        self.memory.append(schema)
        return schema

    def array(
        self, length: int, memory: Sequence[bytes | None], children: Sequence[Array] = (), **fields: Any
    ) -> Array:
        array = Array(length=length, n_buffers=len(memory), n_children=len(children))
        array.release = ctypes.cast(release_array, ctypes.c_void_p)
        kept = [None if part is None else ctypes.create_string_buffer(part, len(part) + 64) for part in memory]
        addresses = (ctypes.c_void_p * max(1, len(kept)))(
            *(None if part is None else ctypes.addressof(part) for part in kept)
        )
        array.buffers = ctypes.cast(addresses, ctypes.POINTER(ctypes.c_void_p))
        if children:
            array.children = self._pointers(Array, children)
        for name, value in fields.items():
            setattr(array, name, value)
        self.memory += [kept, addresses, array]
        return array

    def _pointers(self, kind: type[Any], parts: Sequence[Any]) -> Any:
        pointers = (ctypes.POINTER(kind) * len(parts))(*map(ctypes.pointer, parts))
        self.memory.append(pointers)
        return pointers

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype = ctypes.py_object
        capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        schema, array = self.parts
        return (
            capsule(ctypes.addressof(schema), b"arrow_schema", None),
            capsule(ctypes.addressof(array), b"arrow_array", None),
        )


TWO = struct.pack("2q", 1, 2)
OFFSETS = struct.pack("3i", 0, 1, 3)
VIEW = struct.pack("i4sii", 20, b"aaaa", 0, 0)


def forged(build: Callable[[Forged], tuple[Schema, Array]]) -> Forged:
    forge = Forged()
    forge.parts = build(forge)
    return forge


def deep(forge: Forged) -> tuple[Schema, Array]:
    schema = forge.schema(b"l")
    for _ in range(100_000):
        schema = forge.schema(b"+s", [schema])
    return schema, forge.array(2, [None])


def dictionary(forge: Forged, format_: bytes, values: Array | None) -> tuple[Schema, Array]:
    codes = struct.pack("2i", 0, 1)
    schema = forge.schema(format_, dictionary=ctypes.pointer(forge.schema(b"u")))
    array = forge.array(2, [None, codes])
    if values is not None:
        array.dictionary = ctypes.pointer(values)
    return schema, array


GOOD: dict[str, Callable[[Forged], tuple[Schema, Array]]] = {
    "name not UTF-8": lambda f: (f.schema(b"l", name=b"\xff"), f.array(2, [None, TWO])),
    "integers": lambda f: (f.schema(b"l"), f.array(2, [None, TWO])),
    "strings": lambda f: (f.schema(b"u"), f.array(2, [None, OFFSETS, b"abc"])),
    "views": lambda f: (f.schema(b"vu"), f.array(1, [None, VIEW, b"a" * 20, struct.pack("q", 20)])),
    "column": lambda f: (f.schema(b"+s", [f.schema(b"l")]), f.array(2, [None], [f.array(2, [None, TWO])])),
    "dictionary": lambda f: dictionary(f, b"i", f.array(2, [None, OFFSETS, b"abc"])),
}

BROKEN: dict[str, Callable[[Forged], tuple[Schema, Array]]] = {
    "negative length": lambda f: (f.schema(b"l"), f.array(-1, [None, TWO])),
    "huge length": lambda f: (f.schema(b"l"), f.array(2**62, [None, TWO])),
    "negative offset": lambda f: (f.schema(b"l"), f.array(2, [None, TWO], offset=-1)),
    "offset past the range": lambda f: (f.schema(b"l"), f.array(2, [None, TWO], offset=2**63 - 1)),
    "no buffers": lambda f: (f.schema(b"l"), f.array(2, [])),
    "buffers NULL": lambda f: (f.schema(b"l"), f.array(2, [None, TWO], buffers=None)),
    "data NULL": lambda f: (f.schema(b"l"), f.array(2, [None, None])),
    "offsets NULL": lambda f: (f.schema(b"u"), f.array(2, [None, None, b"abc"])),
    "offsets falling": lambda f: (f.schema(b"z"), f.array(2, [None, struct.pack("3i", 0, 3, 1), b"abc"])),
    "text not UTF-8": lambda f: (f.schema(b"u"), f.array(2, [None, OFFSETS, b"a\xff\xff"])),
    "view sizes NULL": lambda f: (f.schema(b"vu"), f.array(1, [None, VIEW, b"a" * 20, None])),
    "view of two buffers": lambda f: (f.schema(b"vu"), f.array(1, [None, VIEW])),
    "view past its buffer": lambda f: (
        f.schema(b"vu"),
        f.array(1, [None, struct.pack("i4sii", 20, b"aaaa", 0, 9000), b"a" * 20, struct.pack("q", 20)]),
    ),
    "negative width": lambda f: (f.schema(b"w:-4"), f.array(2, [None, b"abcdefgh"])),
    "float codes": lambda f: dictionary(f, b"g", f.array(2, [None, OFFSETS, b"abc"])),
    "dictionary NULL": lambda f: dictionary(f, b"i", None),
    "code past the dictionary": lambda f: dictionary(f, b"i", f.array(1, [None, OFFSETS, b"abc"])),
    "child missing": lambda f: (f.schema(b"+s", [f.schema(b"l")]), f.array(2, [None])),
    "child short": lambda f: (f.schema(b"+s", [f.schema(b"l")]), f.array(5, [None], [f.array(2, [None, TWO])])),
    "children fewer than said": lambda f: (f.schema(b"+s", n_children=1), f.array(2, [None])),
    "children of a negative number": lambda f: (f.schema(b"+s", n_children=-1), f.array(2, [None])),
    "format NULL": lambda f: (f.schema(None), f.array(2, [None, TWO])),
    "format not UTF-8": lambda f: (f.schema(b"\xff"), f.array(2, [None, TWO])),
    "array released": lambda f: (f.schema(b"l"), f.array(2, [None, TWO], release=None)),
    "schema released": lambda f: (f.schema(b"l", release=None), f.array(2, [None, TWO])),
    "nested without end": deep,
}


@pytest.mark.parametrize("build", GOOD.values(), ids=GOOD.keys())
def test_what_follows_the_interface_is_counted(build: Callable[[Forged], tuple[Schema, Array]]) -> None:
    """The structures of these tests are good where nothing in them is broken."""
    summary = dptop.SpaceSaving(10)
    summary.extend(forged(build))
    assert sum(count for _, count in summary.private_counters()) in (1, 2)


@pytest.mark.parametrize("build", BROKEN.values(), ids=BROKEN.keys())
def test_what_breaks_the_interface_is_refused(build: Callable[[Forged], tuple[Schema, Array]]) -> None:
    """An error that an `except DptopError` catches; nothing is counted."""
    summary = dptop.SpaceSaving(10)
    with pytest.raises(dptop.DptopError):
        summary.extend(forged(build))
    assert not summary.private_counters()


def test_an_array_is_taken_once() -> None:
    """Capsules that were handed over before hold nothing: an error, not what is no longer there."""
    forge = forged(GOOD["integers"])
    capsules = forge.__arrow_c_array__()

    class Again:
        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return capsules

    summary = dptop.SpaceSaving(10)
    summary.extend(Again())
    with pytest.raises(dptop.SourceError):
        summary.extend(Again())


@pytest.mark.parametrize("handed_over", [None, (), 5, (1, 2), ("a", "b", "c")])
def test_what_is_no_pair_of_capsules_is_refused(handed_over: object) -> None:
    """The method exists and returns something else."""

    class Wrong:
        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return handed_over

    with pytest.raises(dptop.SourceError):
        dptop.SpaceSaving(10).extend(Wrong())
