"""Packet captures become streams of source addresses: every form of file, every link, every cut."""

from __future__ import annotations

import gzip
import sys
from typing import TYPE_CHECKING

import pytest

from captures import (
    ARP,
    COOKED,
    COOKED_2,
    ETHERNET,
    IPV4,
    IPV6,
    LOOP,
    NULL,
    RAW,
    block,
    cooked,
    cooked_2,
    ethernet,
    interface,
    ipv4,
    ipv6,
    packet,
    pcap,
    section,
    simple_packet,
    tagged,
)
from experiments.streams.stream import MissingStream, Stream
from experiments.streams.trace import trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Reader = Callable[[bytes], Stream]

HOSTS = ["10.0.0.1", "10.0.0.2", "10.0.0.1", "192.0.2.77"]
FRAMES = [ipv4(host) for host in HOSTS]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    def stream(content: bytes) -> Stream:
        path = tmp_path / "capture"
        path.write_bytes(content)
        return trace(path, None)

    return stream


PCAPS = {
    "microseconds": (0xA1B2C3D4, b""),
    "nanoseconds": (0xA1B23C4D, b""),
    "Kuznetzov's": (0xA1B2CD34, bytes(8)),
}


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("form", PCAPS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_pcap_is_read(read: Reader, form: str, order: str, packed: bool) -> None:
    magic, beside = PCAPS[form]
    content = pcap(FRAMES, magic=magic, order=order, beside=beside)
    stream = read(gzip.compress(content) if packed else content)
    assert stream.items.to_pylist() == HOSTS
    assert stream.name == "trace"
    assert "capture: 4 packets; 0 without" in stream.source
    assert "CUT" not in stream.source


NEXT = {
    "one interface": section() + interface(RAW) + b"".join(packet(0, frame) for frame in FRAMES),
    "big-endian": section(">") + interface(RAW, ">") + b"".join(packet(0, frame, ">") for frame in FRAMES),
    "each interface has its own link": section()
    + interface(ETHERNET)
    + packet(0, ethernet(IPV4, FRAMES[0]))
    + interface(RAW)
    + packet(1, FRAMES[1])
    + packet(0, ethernet(IPV4, FRAMES[2]))
    + interface(COOKED_2)
    + packet(2, cooked_2(IPV4, FRAMES[3])),
    "interfaces of different lengths": section()
    + interface(RAW, longest=100)
    + interface(RAW, longest=200)
    + b"".join(packet(at % 2, frame) for at, frame in enumerate(FRAMES)),
    "sections of both byte orders": section()
    + interface(ETHERNET)
    + packet(0, ethernet(IPV4, FRAMES[0]))
    + packet(0, ethernet(IPV4, FRAMES[1]))
    + section(">")
    + interface(RAW, ">")
    + packet(0, FRAMES[2], ">")
    + packet(0, FRAMES[3], ">"),
    "simple packets": section() + interface(RAW) + b"".join(map(simple_packet, FRAMES)),
    "unknown blocks": section()
    + block(0x7ABCDEF0, b"whatever")
    + interface(RAW)
    + b"".join(packet(0, frame) + block(0x7ABCDEF0, b"?") for frame in FRAMES),
}


@pytest.mark.parametrize("form", NEXT)
@pytest.mark.parametrize("packed", [False, True])
def test_every_pcapng_is_read(read: Reader, form: str, packed: bool) -> None:
    stream = read(gzip.compress(NEXT[form]) if packed else NEXT[form])
    assert stream.items.to_pylist() == HOSTS
    assert "CUT" not in stream.source


Q, AD, OLD = b"\x81\x00", b"\x88\xa8", b"\x91\x00"
LINKS = {
    # link -> frames and the sources they have
    "Ethernet": (ETHERNET, ethernet(IPV4, FRAMES[0]), ethernet(IPV6, ipv6(1))),
    "VLAN": (
        ETHERNET,
        tagged(Q, kind=IPV4, content=FRAMES[0]),
        tagged(Q, kind=IPV6, content=ipv6(1)),
    ),
    "stacked VLAN": (
        ETHERNET,
        tagged(AD, Q, kind=IPV4, content=FRAMES[0]),
        tagged(OLD, Q, Q, kind=IPV6, content=ipv6(1)),
    ),
    "cooked": (COOKED, cooked(IPV4, FRAMES[0]), cooked(Q, b"\x00\x07" + IPV6 + ipv6(1))),
    "cooked, second form": (COOKED_2, cooked_2(IPV4, FRAMES[0]), cooked_2(Q, b"\x00\x07" + IPV6 + ipv6(1))),
    "raw": (RAW, FRAMES[0], ipv6(1)),
    "raw, as OpenBSD calls it": (14, FRAMES[0], ipv6(1)),
    "BSD loopback": (NULL, b"\x02\x00\x00\x00" + FRAMES[0], b"\x00\x00\x00\x1e" + ipv6(1)),
    "loopback in network order": (LOOP, b"\x00\x00\x00\x02" + FRAMES[0], b"\x00\x00\x00\x18" + ipv6(1)),
}


@pytest.mark.parametrize("link", LINKS)
def test_every_link_is_looked_through(read: Reader, link: str) -> None:
    kind, *frames = LINKS[link]
    assert read(pcap(frames, link=kind)).items.to_pylist() == ["10.0.0.1", "2001:db8::1"]
    several = section() + interface(kind) + interface(NULL if kind == RAW else RAW)
    mixed = several + b"".join(packet(0, frame) for frame in frames)
    assert read(mixed).items.to_pylist() == ["10.0.0.1", "2001:db8::1"]


def test_options_of_the_header_change_nothing(read: Reader) -> None:
    assert read(pcap([ipv4("10.0.0.1", words=15)])).items.to_pylist() == ["10.0.0.1"]


NO_IP = {
    "ARP": (ETHERNET, ethernet(ARP, FRAMES[0])),
    "ARP with a tag": (ETHERNET, tagged(Q, kind=ARP, content=FRAMES[0])),
    "tags up to the end": (ETHERNET, ethernet(Q, b"\x00\x07" + Q)),
    "no EtherType": (ETHERNET, bytes(12)),
    "an EtherType and no more": (ETHERNET, ethernet(IPV4, b"")),
    "cooked ARP": (COOKED, cooked(ARP, FRAMES[0])),
    "another address family": (NULL, b"\x10\x00\x00\x00" + FRAMES[0]),
    "version 5": (RAW, b"\x55" + FRAMES[0][1:]),
    "a header of 4 words": (RAW, b"\x44" + FRAMES[0][1:]),
    "a source cut by the capture": (RAW, FRAMES[0][:15]),
    "an IPv6 source cut by the capture": (RAW, ipv6(1)[:23]),
    "nothing": (RAW, b""),
}


@pytest.mark.parametrize("case", NO_IP)
def test_packets_without_an_ip_source_are_skipped_and_counted(read: Reader, case: str) -> None:
    link, frame = NO_IP[case]
    whole = {ETHERNET: ethernet(IPV4, FRAMES[1]), COOKED: cooked(IPV4, FRAMES[1]), RAW: FRAMES[1]}
    good = whole.get(link, b"\x02\x00\x00\x00" + FRAMES[1])
    stream = read(pcap([frame, good, frame], link=link))
    assert stream.items.to_pylist() == ["10.0.0.2"]
    assert "1 packets; 2 without an IP source are skipped" in stream.source


def test_a_capture_without_ip_tells_of_unknown_links(read: Reader) -> None:
    with pytest.raises(
        MissingStream, match=r"no IP packet .* 2 without an IP source are skipped, on links of type 105"
    ):
        read(pcap([b"802.11", b"frames"], link=105))


def ends(start: bytes, parts: list[bytes]) -> list[int]:
    """Return where each part ends."""
    return [len(start + b"".join(parts[:number])) for number in range(len(parts) + 1)]


RECORD = len(pcap(FRAMES[:1])) - len(pcap([]))
TWO_LINKS = section() + interface(RAW) + interface(NULL)
CUTS = {
    # content, and after which byte each of the packets is whole
    "pcap": (pcap(FRAMES), [24 + number * RECORD for number in range(5)]),
    "pcapng": (
        section() + interface(RAW) + b"".join(packet(0, frame) for frame in FRAMES),
        ends(section() + interface(RAW), [packet(0, frame) for frame in FRAMES]),
    ),
    "pcapng of two links": (
        TWO_LINKS + b"".join(packet(0, frame) for frame in FRAMES),
        ends(TWO_LINKS, [packet(0, frame) for frame in FRAMES]),
    ),
}


@pytest.mark.parametrize("form", CUTS)
def test_a_capture_cut_anywhere_counts_up_to_the_cut_and_says_so(
    read: Reader, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content, whole = CUTS[form]
    assert len(content) == whole[-1]
    for size in range(4, len(content)):  # fewer bytes could be the start of anything
        packets = sum(size >= end for end in whole[1:])
        if packets == 0:
            with pytest.raises(MissingStream):
                read(content[:size])
            capsys.readouterr()
            continue
        stream = read(content[:size])
        told = capsys.readouterr().err
        assert stream.items.to_pylist() == HOSTS[:packets]
        assert ("cut short" in stream.source) == (size not in whole)
        assert told.count("\n") == told.count("cut short") == (size not in whole)


@pytest.mark.parametrize("form", CUTS)
def test_a_packed_capture_cut_anywhere_counts_what_can_be_unpacked(
    read: Reader, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = gzip.compress(CUTS[form][0])
    longest = 0
    for size in range(2, len(packed)):  # fewer could be the start of anything
        try:
            stream = read(packed[:size])
        except MissingStream:
            assert longest == 0  # not even one packet could be unpacked
            continue
        assert stream.items.to_pylist() == HOSTS[: len(stream)]
        assert len(stream) >= longest
        assert "cut short" in stream.source
        longest = len(stream)
    assert longest == len(HOSTS)  # all is there but the end of the packed form
    assert "cut short" in capsys.readouterr().err


def test_a_capture_in_two_packed_members_is_whole(read: Reader) -> None:
    content = pcap(FRAMES)
    stream = read(gzip.compress(content[:100]) + gzip.compress(content[100:]))
    assert stream.items.to_pylist() == HOSTS
    assert "CUT" not in stream.source


CORRUPT = {
    "a packet of 4 GB": pcap(FRAMES) + b"\x01\x00\x00\x00" * 2 + b"\xff" * 8 + b"tail",
    "an interface that is not there": section() + interface(RAW) + packet(0, FRAMES[0]) + packet(3, FRAMES[1]),
    "two sizes of one block": section() + interface(RAW) + packet(0, FRAMES[0])[:-4] + b"\x00\x01\x00\x00",
    "a packed form that was changed": gzip.compress(pcap(FRAMES))[:-8] + bytes(8),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_a_corrupt_capture_is_no_stream(read: Reader, case: str) -> None:
    with pytest.raises(MissingStream, match=r"^capture: the capture is corrupt: [^\n]+$"):
        read(CORRUPT[case])


@pytest.mark.parametrize("library", ["cypcap", "pcapng"])
def test_without_its_libraries_a_capture_is_missing(
    read: Reader, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingStream, match=f"{library} is not installed"):
        read(NEXT["each interface has its own link"])


def test_a_capture_has_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcap(FRAMES))
    with pytest.raises(MissingStream, match="no columns"):
        trace(path, "source")
