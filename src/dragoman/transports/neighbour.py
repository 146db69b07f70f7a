"""Which process of this machine is at the other end of a TCP connection over loopback.

A port has no owner that a peer is told, so the kernel's table is looked at: it names the user and
the number of the socket, and whoever has that socket among its descriptors holds it. On systems
without such a table nobody is known.
"""

import os
import struct
from collections.abc import Callable
from ipaddress import ip_address

_ESTABLISHED = b"01"
_TRIES = 3
_MAPPED = b"\0" * 10 + b"\xff\xff"  # before an address of IPv4 in a table of IPv6

Refuses = Callable[[int | None], bool]


def is_ours(peer: tuple[str, int], here: tuple[str, int], refuses: Refuses) -> bool:
    """Whether a program of our own user holds the other end, and none that `refuses` names.

    It looks at every process: call it in a thread.
    """
    found = _socket(peer, here)
    if found is None or found[0] != os.geteuid():
        return False
    if not _holders(found[1]) or _is_held_by(refuses, lambda: _holders(found[1])):
        return False
    # It still holds the same connection: what was looked at was no other process of that number.
    return _socket(peer, here) == found


def user_of(peer: tuple[str, int], here: tuple[str, int]) -> int:
    """The user whose program holds the other end; -1 where nobody knows, or on another machine."""
    found = _socket(peer, here)
    return -1 if found is None else found[0]


def is_refused(peer: tuple[str, int], here: tuple[str, int], refuses: Refuses) -> bool:
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
    return _is_held_by(refuses, lambda: _holders(found[1]) or _everybody())


def _is_held_by(refuses: Refuses, holders: Callable[[], list[int]]) -> bool:
    """Whether `refuses` names one of the holders.

    A program that just started another has its sockets twice for a moment. Who is gone cannot be
    judged and holds nothing any more, but may have left the socket to a child: look again.
    """
    for _ in range(_TRIES):
        named = {pid for pid in holders() if refuses(pid)}
        if not named:
            return False
        if named.intersection(holders()):
            return True
    return True


def _everybody() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _socket(peer: tuple[str, int], here: tuple[str, int]) -> tuple[int, int] | None:
    """The user and the number of the socket at the other end."""
    wanted, others = _written(peer), _written(here)
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{table}", "rb") as file:
                rows = file.read().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            words = row.split(None, 10)
            if len(words) < 10 or words[1] not in wanted:
                continue
            if words[2] in others and words[3] == _ESTABLISHED:
                return int(words[7]), int(words[9])
    return None


def _normal(address: tuple[str, int]) -> tuple[str, int]:
    found = ip_address(address[0].partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found), address[1]


def _written(address: tuple[str, int]) -> set[bytes]:
    """An address as the kernel writes it, of both families: words in the machine's own order."""
    host, port = _normal(address)
    plain = ip_address(host).packed
    forms = [plain, _MAPPED + plain] if len(plain) == 4 else [plain]
    words = [struct.unpack(f">{len(form) // 4}I", form) for form in forms]
    own = [struct.pack(f"={len(row)}I", *row).hex().upper() for row in words]
    return {f"{text}:{port:04X}".encode() for text in own}


def _holders(number: int) -> list[int]:
    """Processes that have this socket open, of those that we may look at."""
    name = f"socket:[{number}]"
    found = []
    for entry in _everybody():
        folder = f"/proc/{entry}/fd"
        try:
            descriptors = os.listdir(folder)
        except OSError:
            continue  # gone, or another user's
        for descriptor in descriptors:
            try:
                if os.readlink(f"{folder}/{descriptor}") == name:
                    found.append(entry)
                    break
            except OSError:
                continue  # closed meanwhile
    return found
