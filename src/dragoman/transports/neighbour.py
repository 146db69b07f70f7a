"""Which process of this machine is at the other end of a TCP connection over loopback.

A port has no owner that a peer is told, so the kernel's table is looked at: it names the user and
the number of the socket, and whoever has that socket among its descriptors holds it. On systems
without such a table nobody is known.
"""

import os
import struct
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address

_ESTABLISHED = b"01"


def is_ours(
    peer: tuple[str, int], here: tuple[str, int], refuses: Callable[[int | None], bool]
) -> bool:
    """Whether a program of our own user holds the other end, and none that `refuses` names.

    It looks at every process: call it in a thread.
    """
    found = _socket(peer, here)
    if found is None or found[0] != os.geteuid():
        return False
    holders = _holders(found[1])
    if not holders or any(refuses(pid) for pid in holders):
        return False
    # It still holds the same connection: what was looked at was no other process of that number.
    return _socket(peer, here) == found


def is_refused(
    peer: tuple[str, int], here: tuple[str, int], refuses: Callable[[int | None], bool]
) -> bool:
    """Whether a program that `refuses` names holds the other end, or may hold it.

    Where nobody of our own user can be seen to hold it, everybody may. An end that is gone already
    was held by somebody who does not wait for an answer, as no browser does.
    """
    if not os.path.exists("/proc/net/tcp"):
        return False  # not this system: nobody is known
    found = _socket(peer, here)
    if found is None:
        return ip_address(_normal(peer)[0]).is_loopback  # else it is another machine's
    if found[0] != os.geteuid():
        return False  # another user's: a proxy, say
    holders = _holders(found[1]) or [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return any(refuses(pid) for pid in holders)


def _socket(peer: tuple[str, int], here: tuple[str, int]) -> tuple[int, int] | None:
    """The user and the number of the socket at the other end."""
    want, other = _normal(peer), _normal(here)
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{table}", "rb") as file:
                rows = file.read().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            words = row.split()
            if len(words) < 10 or words[3] != _ESTABLISHED:
                continue
            if _read(words[1]) == want and _read(words[2]) == other:
                return int(words[7]), int(words[9])
    return None


def _normal(address: tuple[str, int]) -> tuple[str, int]:
    found = ip_address(address[0].partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found), address[1]


def _read(text: bytes) -> tuple[str, int]:
    """An address as the kernel writes it: words in the machine's own order."""
    host, _, port = text.partition(b":")
    raw = bytes.fromhex(host.decode())
    words = struct.unpack(f"={len(raw) // 4}I", raw)
    plain = struct.pack(f">{len(words)}I", *words)
    found = IPv4Address(plain) if len(plain) == 4 else IPv6Address(plain)
    return _normal((str(found), int(port, 16)))


def _holders(number: int) -> list[int]:
    """Processes that have this socket open, of those that we may look at."""
    name = f"socket:[{number}]"
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        folder = f"/proc/{entry}/fd"
        try:
            descriptors = os.listdir(folder)
        except OSError:
            continue  # gone, or another user's
        for descriptor in descriptors:
            try:
                if os.readlink(f"{folder}/{descriptor}") == name:
                    found.append(int(entry))
                    break
            except OSError:
                continue  # closed meanwhile
    return found
