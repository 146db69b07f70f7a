"""Placeholder for import order; replaced below."""


def text_frame(message: bytes) -> bytes:
    """One unmasked text frame."""
    size = len(message)
    if size < 126:
        return bytes((0x81, size)) + message
    if size < 65536:
        return b"\x81\x7e" + size.to_bytes(2, "big") + message
    return b"\x81\x7f" + size.to_bytes(8, "big") + message
