"""Words, and pairs of consecutive words, of English texts that Debian packages and nobody owns."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from experiments.streams.debian import package
from experiments.streams.stream import MissingStream, Stream
from experiments.streams.texts import dictionary, r_strings, sword

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["TEXTS", "pairs_in", "word_pairs", "words", "words_in"]


class Text(NamedTuple):
    """One package.

    Attributes:
        package: its name.
        title: of the text.
        licence: as the package's copyright file has it.
        read: from the files of the package to the text.
    """

    package: str
    title: str
    licence: str
    read: Callable[[Path], str]


TEXTS: Final = (
    Text("sword-text-kjv", "the King James Bible", "public domain", sword),
    Text("sword-text-web", "the World English Bible", "public domain", sword),
    # the novels are of 1811 to 1818; their edition as an R package is under the MIT licence
    Text("r-cran-janeaustenr", "Jane Austen's novels", "public domain, packaged under MIT", r_strings),
    Text("dict-devil", "The Devil's Dictionary", "public domain", dictionary),
    Text("dict-jargon", "the Jargon File", "public domain", dictionary),
)
"""In the order of the stream."""


def words(cache: Path) -> Stream:
    """Return all words, lower-cased, letters only, in the order of the texts.

    Raises:
        MissingStream: a text cannot be fetched.
    """
    texts, source = _texts(cache)
    return Stream("words", pa.concat_arrays([words_in(text) for text in texts]), f"words of {source}")


def word_pairs(cache: Path) -> Stream:
    """Return all pairs of consecutive words of one text, with a space between them; else as `words`."""
    texts, source = _texts(cache)
    pairs = pa.concat_arrays([pairs_in(words_in(text)) for text in texts])
    return Stream("word-pairs", pairs, f"pairs of consecutive words of {source}")


def words_in(text: str) -> pa.Array:
    """Return the words of a text, lower-cased: whatever is no letter is between words."""
    lower = pc.utf8_lower(pa.array([text], pa.string()))
    spaced = pc.utf8_trim_whitespace(pc.replace_substring_regex(lower, pattern=r"\PL+", replacement=" "))
    found = pc.split_pattern(spaced, " ").flatten()
    return found.filter(pc.not_equal(found, ""))  # a text without any word is split into one empty word


def pairs_in(found: pa.Array) -> pa.Array:
    """Return every word but the last, joined to the one after it."""
    return pc.binary_join_element_wise(found[:-1], found[1:], " ")


def _texts(cache: Path) -> tuple[list[str], str]:
    """Return the texts, and in words where they come from."""
    texts, sources = [], []
    for text in TEXTS:
        name, version, folder = package(text.package, cache)
        try:
            texts.append(text.read(folder))
        except (OSError, ValueError, struct.error, zlib.error):
            raise MissingStream(
                f"the package {name} {version} is not laid out as it was when this was written"
            ) from None
        sources.append(f"{text.title} ({name} {version}, {text.licence})")
    return texts, ", ".join(sources)
