"""Unix sockets: private from the first instant, and only for their owner."""

import asyncio
import errno
import os
import select
import socket
import struct
import sys
from collections.abc import Callable
from functools import partial

from dragoman.wire.link import Opener, Peer

from .directory import prepare_for
from .pump import BOUND, Pump, Terms

BACKLOG = 4096  # the kernel cuts it to net.core.somaxconn
Admit = Callable[[Peer], bool]


def same_user(peer: Peer) -> bool:
    """Admit only processes of our own user."""
    return peer.uid == os.geteuid()


class Listener:
    """A listening Unix socket; closing it removes the path if it is still ours.

    Keep it: a server that nobody refers to is collected, and refuses from then on.
    """

    def __init__(self, path: str, server: asyncio.AbstractServer, inode: tuple[int, int]) -> None:
        self.path = path
        self._server = server
        self._inode = inode
        self._open = True

    def is_lost(self) -> bool:
        """Whether nothing is at the path any more, so that nobody finds us."""
        try:
            os.lstat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # who cannot look cannot tell
            return False
        return False

    async def close(self) -> None:
        """Stop accepting; connections that exist go on."""
        if not self._open:
            return
        self._open = False
        # The path goes first: nobody shall find a socket that no longer answers.
        remove_if_same(self.path, self._inode)
        self._server.close()


async def listen(
    path: str, open: Opener, *, admit: Admit = same_user, bound: int = BOUND
) -> Listener:
    """Listen at a path that is free; its directory is made when it is missing.

    Raises OSError (EADDRINUSE when something is there already).
    """
    prepare_for(path)
    sock = bind(path)
    inode = (0, 0)
    try:
        found = os.lstat(path)
        inode = (found.st_dev, found.st_ino)

        def identify(transport: asyncio.BaseTransport) -> Peer | None:
            sock = transport.get_extra_info("socket")
            peer = identified(sock)
            return peer if admit(peer) and still_there(sock) else None

        terms = Terms(open, identify, bound=bound)
        server = await asyncio.get_running_loop().create_unix_server(
            partial(Pump, terms), sock=sock, backlog=BACKLOG
        )
    except BaseException:
        remove_if_same(path, inode)
        sock.close()
        raise
    return Listener(path, server, inode)


def bind(path: str) -> socket.socket:
    """A bound socket whose file has mode 0600 from the moment it exists."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            sock.bind(path)
        finally:
            os.umask(before)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def remove_if_same(path: str, inode: tuple[int, int]) -> bool:
    """Remove what we made there, unless it has become somebody else's; True when it is removed.

    In a folder that is not ours to change any more it stays, and is found stale.
    """
    try:
        found = os.lstat(path)
        if (found.st_dev, found.st_ino) != inode:
            return False
        os.unlink(path)
    except OSError:
        return False
    return True


_CREDENTIALS = struct.Struct("iII")  # struct ucred: pid, uid, gid
_XUCRED = struct.Struct("=II")  # struct xucred: version, uid, …
_UNIX, _STREAM = int(socket.AF_UNIX), int(socket.SOCK_STREAM)
_CREDENTIALS_OF: tuple[int, int, int] | None = None  # what to ask a socket for
if hasattr(socket, "SO_PEERCRED"):
    _CREDENTIALS_OF = (socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
elif hasattr(socket, "LOCAL_PEERCRED"):  # macOS and BSD; level 0 is SOL_LOCAL
    _CREDENTIALS_OF = (0, socket.LOCAL_PEERCRED, 76)
_KNOWN = 1024
_peers: dict[bytes, Peer] = {}  # by what the kernel says, so that many connections share one


def identified(sock: socket.socket) -> Peer:
    """Who is at the other end of a connected socket, by the kernel's word."""
    # A transport shows its socket through a `socket.socket` that it makes for each question; the
    # plain type does the same in a fraction of the time.
    plain = socket.SocketType(_UNIX, _STREAM, 0, sock.fileno())
    try:
        raw = plain.getsockopt(*_CREDENTIALS_OF) if _CREDENTIALS_OF else b""
    finally:
        plain.detach()
    peer = _peers.get(raw)
    if peer is None:
        if len(_peers) >= _KNOWN:
            _peers.clear()
        peer = _peers[raw] = _peer(raw)
    return peer


_SO_PEERPIDFD = 77  # Linux 6.5
_tells_process = sys.platform == "linux"


def still_there(sock: socket.socket) -> bool:
    """Whether the process that connected is alive, as far as this kernel can tell.

    What was looked up by its number just now was then about that process: a number is given to
    another one only when its owner is gone.
    """
    global _tells_process
    if not _tells_process:
        return True
    plain = socket.SocketType(_UNIX, _STREAM, 0, sock.fileno())
    try:
        fd = plain.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as problem:
        if problem.errno != errno.ENOPROTOOPT:
            return False  # gone, and collected
        _tells_process = False
        return True
    finally:
        plain.detach()
    try:
        watched = select.poll()
        watched.register(fd, select.POLLIN)  # readable once it has ended
        return not watched.poll(0)
    finally:
        os.close(fd)


def _peer(raw: bytes) -> Peer:
    if not raw:
        return Peer("unix:unknown", "unix")
    if not hasattr(socket, "SO_PEERCRED"):
        _, uid = _XUCRED.unpack_from(raw)
        return Peer(f"unix:uid={uid}", "unix", None, uid)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    if uid == 0xFFFFFFFF:
        return Peer("unix:unknown", "unix")
    return Peer(f"unix:pid={pid},uid={uid}", "unix", pid, uid)
