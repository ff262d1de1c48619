"""Packet captures, byte by byte: frames of every link, and the files that hold them."""

from __future__ import annotations

import struct

ETHERNET, RAW, COOKED, COOKED_2, NULL, LOOP = 1, 101, 113, 276, 0, 108
"""Types of links, as files call them."""
ADDRESSES = bytes(12)
IPV4, IPV6, ARP = b"\x08\x00", b"\x86\xdd", b"\x08\x06"


def ipv4(source: str, *, words: int = 5) -> bytes:
    """Return a datagram with a header of `words` * 4 bytes and eight bytes in it."""
    address = bytes(map(int, source.split(".")))
    start = struct.pack(">BBHHHBBH", 0x40 + words, 0, words * 4 + 8, 0, 0, 64, 17, 0)
    return start + address + b"\x09\x09\x09\x09" + bytes(words * 4 - 20) + b"datagram"


def ipv6(last: int) -> bytes:
    """Return a datagram from 2001:db8::`last`."""
    source = bytes.fromhex("20010db8") + bytes(11) + bytes([last])
    return struct.pack(">IHBB", 6 << 28, 8, 17, 64) + source + bytes(15) + b"\x01" + b"datagram"


def ethernet(kind: bytes, content: bytes) -> bytes:
    return ADDRESSES + kind + content


def tagged(*tags: bytes, kind: bytes, content: bytes) -> bytes:
    """Return an Ethernet frame with VLAN tags, each of the EtherType given, on network 7."""
    return ADDRESSES + b"".join(tag + b"\x00\x07" for tag in tags) + kind + content


def cooked(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">HHH", 0, 1, 6) + bytes(8) + kind + content


def cooked_2(kind: bytes, content: bytes) -> bytes:
    return kind + bytes(2) + struct.pack(">IHBB", 3, 1, 0, 6) + bytes(8) + content


def pcap(
    frames: list[bytes], *, link: int = RAW, magic: int = 0xA1B2C3D4, order: str = "<", beside: bytes = b""
) -> bytes:
    """Return a pcap; `beside` is what modified forms have in addition in the header of a packet."""
    start = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65_535, link)
    return start + b"".join(
        struct.pack(f"{order}IIII", 1_500_000_000, 5, len(frame), len(frame)) + beside + frame for frame in frames
    )


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int, order: str = "<", *, longest: int = 65_535) -> bytes:
    return block(1, struct.pack(f"{order}HHI", link, 0, longest), order)


def packet(of: int, frame: bytes, order: str = "<") -> bytes:
    """Return an enhanced packet block of an interface."""
    return block(6, struct.pack(f"{order}IIIII", of, 0, 5, len(frame), len(frame)) + frame, order)


def simple_packet(frame: bytes, order: str = "<") -> bytes:
    """Return a packet of the first interface."""
    return block(3, struct.pack(f"{order}I", len(frame)) + frame, order)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return struct.pack(f"{order}II", kind, size) + body + struct.pack(f"{order}I", size)
