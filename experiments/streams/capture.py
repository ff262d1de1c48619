"""Source addresses of a packet capture: pcap and pcapng, plain or in gzip.

libpcap reads the files, through cypcap. It refuses a pcapng whose interfaces differ in the type of their links, or
whose sections differ in byte order; python-pcapng reads such a one, a hundred times slower.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import sys
import tempfile
import zlib
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from experiments.streams.frames import LINKS, source_address
from experiments.streams.stream import MissingStream, Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["capture", "is_capture"]

PCAPNG: Final = bytes.fromhex("0a0d0d0a")
_PCAP: Final = (
    "a1b2c3d4",  # microseconds
    "a1b23c4d",  # nanoseconds
    "a1b2cd34",  # Kuznetzov's, with more in the header of a packet
)
MAGICS: Final = frozenset(order for magic in map(bytes.fromhex, _PCAP) for order in (magic, magic[::-1])) | {PCAPNG}
"""How the captures begin that are read: a pcap in the byte order of the host that captured."""
LONGEST: Final = 39
"""Characters of an IPv6 address."""
BLOCK: Final = 2**18


class _Cut(Exception):  # noqa: N818 - what comes before it counts
    """The capture ends in the middle of a packet, or of its packed form."""


class _Corrupt(Exception):  # noqa: N818 - said of the file
    """The capture cannot be read on; the message says why."""


@dataclass
class _Sources:
    """What has been counted so far.

    Attributes:
        numbers: of the addresses seen, by address.
        items: the number of the address of each packet.
        others: packets that are no IP, or captured without a whole source address.
        unknown: types of links that are not looked through.
    """

    numbers: dict[bytes, int] = field(default_factory=dict)
    items: array[int] = field(default_factory=lambda: array("i"))
    others: int = 0
    unknown: set[int] = field(default_factory=set)

    def extend(self, frames: Iterable[tuple[int, bytes]]) -> bool:
        """Count frames, each with the type of its link, and return whether they are cut short."""
        try:
            self._extend(frames)
        except _Cut:
            return True
        return False

    def _extend(self, frames: Iterable[tuple[int, bytes]]) -> None:
        numbers, append = self.numbers, self.items.append
        for link, frame in frames:
            find = LINKS.get(link)
            if find is None:
                self.unknown.add(link)
                self.others += 1
                continue
            address = source_address(frame, find(frame))
            if address is None:
                self.others += 1
            else:
                append(numbers.setdefault(address, len(numbers)))


def is_capture(path: Path) -> bool:
    """Return whether a file begins as a capture does, also when it is unpacked.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with gzip.open(path, "rb") if _is_packed(path) else path.open("rb") as file:
            return file.read(4) in MAGICS
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return False


def capture(path: Path) -> Stream:
    """Return the source address of every IPv4 and IPv6 packet of a capture, as text, in the order of the file.

    Ethernet, VLAN tags, Linux cooked captures, raw IP and the BSD loopback are looked through. Packets that are no IP,
    or captured too short to hold the address, are skipped and counted in `source`. A capture that was cut short counts
    up to the cut, which `source` and a line on stderr tell.

    Raises:
        MissingStream: cypcap or python-pcapng is not installed; the capture is corrupt, or has no IP packet.
        OSError: the file cannot be read.
    """
    try:
        found, cut = _counted(path)
    except ImportError as error:
        raise MissingStream(
            f"a packet capture needs cypcap and python-pcapng, and {error.name} is not installed. Run: pip install"
            " --group experiments"
        ) from None
    except _Corrupt as error:
        raise MissingStream(f"{path.name}: the capture is corrupt: {error}") from None
    total = f"{len(found.items):,} packets; {found.others:,} without an IP source are skipped"
    if cut:
        print(f"{path.name}: the capture is cut short and counts up to the cut: {total}", file=sys.stderr)
    if not found.items:
        links = f", on links of type {', '.join(map(str, sorted(found.unknown)))}" if found.unknown else ""
        raise MissingStream(f"{path.name}: the capture has no IP packet that can be read: {total}{links}")
    words = f"source addresses of a packet capture, {path.name}: {total}"
    return Stream("trace", _texts(found), words + "; it is cut short, and counts up to the cut" * cut)


def _texts(found: _Sources) -> pa.Array:
    kind = pa.string() if len(found.items) * LONGEST < 2**31 else pa.large_string()  # offsets of 32 bits, or of 64
    families = {4: socket.AF_INET, 16: socket.AF_INET6}
    labels = pa.array([socket.inet_ntop(families[len(address)], address) for address in found.numbers], kind)
    return labels.take(pa.Array.from_buffers(pa.int32(), len(found.items), [None, pa.py_buffer(found.items)]))


def _counted(path: Path) -> tuple[_Sources, bool]:
    """Return what a capture counts, and whether it is cut short."""
    with _unpacked(path) as (plain, cut):
        found = _Sources()
        try:
            objects = found.extend(_by_libpcap(plain))
        except _Corrupt:
            if not _is_pcapng(plain):
                raise
            objects = True
        if objects and _is_pcapng(plain):  # what libpcap objects to may be right: the other reader decides
            found = _Sources()
            objects = found.extend(_by_python_pcapng(plain))
        return found, cut or objects


def _by_libpcap(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield every packet and the type of its link, which is one for all."""
    from cypcap import Error, open_offline

    try:
        with open_offline(path.resolve()) as reader:  # not as it stands: "-" would be standard input
            link = int(reader.datalink())
            for _, frame in reader:
                yield link, frame
    except Error as error:
        reason = str(error.args[-1])
        raise (_Cut if reason.startswith("truncated") else _Corrupt)(reason) from None


def _by_python_pcapng(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield every packet and the type of the link of its interface."""
    from pcapng import FileScanner
    from pcapng.blocks import BasePacketBlock
    from pcapng.exceptions import TruncatedFile

    with path.open("rb") as file:
        end = 0
        try:
            for block in FileScanner(file):
                end = file.tell()
                if isinstance(block, BasePacketBlock):
                    yield block.interface.link_type, block.packet_data
        except TruncatedFile:
            raise _Cut from None
        except KeyError:
            raise _Corrupt("a packet is from an interface that was not described before") from None
        except Exception as error:  # whatever plain Python comes upon in bytes that break the format
            raise _Corrupt(f"{type(error).__name__} {error}") from None
        if file.tell() != end:  # it takes a block that stops where one of its fields would begin for the end
            raise _Cut


def _is_pcapng(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == PCAPNG


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextlib.contextmanager
def _unpacked(path: Path) -> Iterator[tuple[Path, bool]]:
    """Give a file that libpcap can open, unpacked as far as it goes, and whether it is cut short in its packed form.

    Raises:
        _Corrupt: its packed form is.
    """
    if not _is_packed(path):
        yield path, False
        return
    with tempfile.NamedTemporaryFile() as copy:
        cut = False
        try:
            with gzip.open(path, "rb") as file:
                while block := file.read1(BLOCK):  # `read` would keep back what is left before a cut
                    copy.write(block)
        except EOFError:
            cut = True
        except (gzip.BadGzipFile, zlib.error) as error:
            raise _Corrupt(str(error)) from None
        copy.flush()
        yield Path(copy.name), cut
