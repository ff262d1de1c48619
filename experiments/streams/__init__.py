"""The streams of the experiments, by name, and a cache that processes share."""

from __future__ import annotations

import hashlib
import json
from functools import cache as once
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from dptop.atomic import replacing
from experiments.streams import dependencies, flights, trace, words
from experiments.streams.stream import MissingStream, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["REAL", "MissingStream", "Stream", "cached", "real", "trace_key", "user_trace"]

REAL: Final[dict[str, Callable[[Path], Stream]]] = {
    "words": words.words,
    "word-pairs": words.word_pairs,
    "dependencies": dependencies.dependencies,
    "flights": flights.flights,
}
"""Streams that anyone can get, by name; each is given the folder for what it fetches."""
ABOUT: Final = b"dptop.stream"
"""The key of the cached file's metadata that has the name and the source of the stream, as JSON."""


def real(name: str, cache: Path) -> Stream:
    """Return a stream of REAL, from the cache if it has it.

    Raises:
        MissingStream: it cannot be had here.
    """
    return cached(cache, name, lambda: REAL[name](cache))


def user_trace(cache: Path, path: str, column: str | None) -> Stream:
    """Return the user's own trace, from the cache if it was read before and has not changed; else as `trace.trace`."""
    return cached(cache, trace_key(path, column), lambda: trace.trace(Path(path), column))


def trace_key(path: str, column: str | None) -> str:
    """Return a name for a trace as it is now: another file, or one that was written again, has another.

    Raises:
        MissingStream: there is no such file.
    """
    file = Path(path)
    try:
        about = file.stat()
    except OSError as error:
        raise MissingStream(f"{path}: the trace cannot be read: {error.strerror}") from None
    identity = repr((str(file.resolve()), about.st_size, about.st_mtime_ns, column)).encode()
    return f"trace-{hashlib.sha256(identity).hexdigest()[:12]}"


def cached(cache: Path, key: str, make: Callable[[], Stream]) -> Stream:
    """Return a stream whose items are mapped into memory from the cache; made first if they are not there.

    Processes that read the same stream share the memory. What was made by other code is made again.
    """
    path = cache / f"{key}-{_recipe()}.arrow"
    if not path.exists():
        _write(path, make())
    with pa.memory_map(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    about = json.loads(table.schema.metadata[ABOUT])
    return Stream(about["name"], table.column(0).chunk(0), about["source"])


def _write(path: Path, stream: Stream) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    about = json.dumps({"name": stream.name, "source": stream.source})
    schema = pa.schema([("item", stream.items.type)], {ABOUT: about})
    batch = pa.record_batch([stream.items], schema=schema)
    with replacing(path, private=True) as file, pa.ipc.new_file(file, schema) as writer:  # a trace is its user's
        writer.write_batch(batch)


@once
def _recipe() -> str:
    """Return a digest of the code that makes streams."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]
