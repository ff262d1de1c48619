"""Texts from the files of Debian packages: SWORD modules, dictd dictionaries, and the data of R packages."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["dictionary", "r_strings", "sword"]

MARKUP: Final = re.compile(r"<note\b.*?</note>|<[^>]*>", re.DOTALL)
"""Footnotes stand in the middle of sentences, so they go with the markup."""
CHARACTER_VECTOR: Final = 16
"""STRSXP in R's serialisation."""


def sword(folder: Path) -> str:
    """Return the text of the Bible in a package, without markup and footnotes.

    The format is SWORD's zText in blocks of whole books: `.bzs` has the place, the size and the unpacked size of each
    block of `.bzz`, which zlib unpacks.
    """
    books = []
    for part in ("ot", "nt"):
        blocks = _only(folder, f"usr/share/sword/modules/texts/ztext/*/{part}.bzz")
        packed = blocks.read_bytes()
        for place, size, _ in struct.iter_unpack("<III", blocks.with_suffix(".bzs").read_bytes()):
            books.append(zlib.decompress(packed[place : place + size]).decode())
    return MARKUP.sub(" ", "\n".join(books))


def dictionary(folder: Path) -> str:
    """Return all articles of a dictionary in a package, its preface first."""
    with gzip.open(_only(folder, "usr/share/dictd/*.dict.dz"), "rt", encoding="utf-8") as file:
        return file.read()


def r_strings(folder: Path) -> str:
    """Return the lines of all character vectors in an R package's data, in the order of the file.

    Each object of `Rdata.rdb` is its unpacked size in four bytes, then R's serialisation packed by zlib.
    """
    packed = _only(folder, "usr/lib/R/site-library/*/data/Rdata.rdb").read_bytes()
    lines: list[str] = []
    while packed:
        unpacker = zlib.decompressobj()
        lines += _character_vector(unpacker.decompress(packed[4:]))
        packed = unpacker.unused_data
    return "\n".join(lines)


def _character_vector(serialised: bytes) -> Iterator[str]:
    """Yield the strings of a character vector, from R's serialisation of version 3 in XDR."""
    mark, version, _, _, encoding_size = struct.unpack_from(">2sIIII", serialised)
    place = struct.calcsize(">2sIIII") + encoding_size
    kind, count = struct.unpack_from(">II", serialised, place)
    if mark != b"X\n" or version != 3 or kind & 0xFF != CHARACTER_VECTOR:
        raise ValueError("no character vector")
    place += 8
    for _ in range(count):
        _, size = struct.unpack_from(">Ii", serialised, place)  # a missing string has the size -1
        place += 8
        yield serialised[place : place + max(size, 0)].decode()
        place += max(size, 0)


def _only(folder: Path, pattern: str) -> Path:
    """Return the one file that fits; a package that has been laid out anew has none."""
    (path,) = folder.glob(pattern)
    return path
