"""Where the IP header begins in a captured frame, by the type of the link, and the source address in it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LINKS", "source_address"]

NOWHERE: Final = sys.maxsize
"""Beyond the end of every frame."""
IP: Final = (b"\x08\x00", b"\x86\xdd")
"""EtherTypes of IPv4 and IPv6."""
TAGS: Final = (b"\x81\x00", b"\x88\xa8", b"\x91\x00")
"""EtherTypes of VLAN tags: 802.1Q, 802.1ad, and what was used for outer tags before that."""
FAMILIES: Final = (2, 10, 23, 24, 28, 30)
"""Address families of IPv4 everywhere, and of IPv6 on Linux, Windows, NetBSD and OpenBSD, FreeBSD, macOS."""


def source_address(frame: bytes, start: int) -> bytes | None:
    """Return the source address, 4 or 16 bytes, of the IP header that begins at `start`.

    None is returned where no such header begins, or the capture does not have all of the address.
    """
    try:
        first = frame[start]
    except IndexError:
        return None
    if 0x45 <= first <= 0x4F:  # version 4, and a header of at least 5 words
        address, size = frame[start + 12 : start + 16], 4
    elif first >> 4 == 6:
        address, size = frame[start + 8 : start + 24], 16
    else:
        return None
    return address if len(address) == size else None


def ethernet(frame: bytes) -> int:
    """Two addresses, then the EtherType."""
    return _beyond_tags(frame, 12, 14)


def cooked(frame: bytes) -> int:
    """Linux cooked capture: kind of packet and sender, then the EtherType."""
    return _beyond_tags(frame, 14, 16)


def cooked_2(frame: bytes) -> int:
    """Linux cooked capture, second form: the EtherType comes first."""
    return _beyond_tags(frame, 0, 20)


def raw(_frame: bytes) -> int:
    """No header of the link at all."""
    return 0


def loopback(frame: bytes) -> int:
    """BSD loopback: the address family in four bytes, in the order of the host that captured."""
    family = min(int.from_bytes(frame[:4], "little"), int.from_bytes(frame[:4], "big"))
    return 4 if family in FAMILIES else NOWHERE


def _beyond_tags(frame: bytes, kind: int, start: int) -> int:
    """Return where IP begins, given where the EtherType is and what follows it, with any number of VLAN tags."""
    while frame[kind : kind + 2] in TAGS:
        kind, start = start + 2, start + 4  # the tag itself, then the EtherType of what follows
    return start if frame[kind : kind + 2] in IP else NOWHERE


LINKS: Final[dict[int, Callable[[bytes], int]]] = {
    0: loopback,  # NULL
    1: ethernet,
    12: raw,  # as libpcap calls it on Linux and elsewhere
    14: raw,  # as libpcap calls it on OpenBSD
    101: raw,  # as files call it
    108: loopback,  # LOOP, in network order
    113: cooked,
    228: raw,  # IPv4 only
    229: raw,  # IPv6 only
    276: cooked_2,
}
"""From the number of a link type to the function that finds where IP begins in a frame."""
