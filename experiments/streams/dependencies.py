"""Names in the Depends fields of a release's packages: what the packages of Debian rest on."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from experiments.streams.debian import index
from experiments.streams.stream import Stream

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["dependencies", "names_in"]


def dependencies(cache: Path) -> Stream:
    """Return every name in every Depends field, in the order of the index; each of several alternatives counts.

    Raises:
        MissingStream: the index cannot be fetched.
    """
    path, source = index(cache)
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Stream("dependencies", names_in(content), f"names in the Depends fields of {source} (SHA-256 {digest}...)")


def names_in(content: bytes) -> pa.Array:
    """Return the names in the Depends fields of an index, without versions and architectures.

    A field is `Depends: libc6 (>= 2.36), python3:any | python3-minimal`; a line that begins with a space goes on
    with the field before it.
    """
    lines = pc.split_pattern(pa.array([content.decode().replace("\n ", " ")]), "\n").flatten()
    fields = lines.filter(pc.starts_with(lines, "Depends:"))
    alternatives = pc.split_pattern_regex(pc.utf8_slice_codeunits(fields, len("Depends:")), r"[,|]").flatten()
    names = pc.utf8_trim_whitespace(pc.replace_substring_regex(alternatives, pattern=r"[(\[<:].*", replacement=""))
    return names.filter(pc.not_equal(names, ""))  # a comma at the end is allowed
