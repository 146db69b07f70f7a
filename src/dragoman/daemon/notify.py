"""Tells the service manager how we are (systemd's sd_notify)."""

import os
import socket


def notify(state: str) -> bool:
    """Send e.g. "READY=1"; False when nobody wants to know."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address or address[0] not in "/@":
        return False
    if address[0] == "@":
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            sock.connect(address)
            sock.sendall(state.encode())
        except OSError:
            return False  # the manager went away; nothing depends on it
    return True
