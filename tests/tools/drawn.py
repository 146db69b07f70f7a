"""Small pictures whose outer form is right."""

import struct
import zlib


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int = 1, height: int = 1, between: bytes = b"") -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"\0\0"))
    return b"\x89PNG\r\n\x1a\n" + head + between + body + chunk(b"IEND", b"")


JPEG = (
    b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc0\x00\x0b\x08\x00\x02\x00\x03\x01\x01\x11\x00"
    b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\x7f\xff\xd9"
)
GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00,\0\0\0\0\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"


def _riff(kind: bytes, data: bytes) -> bytes:
    body = b"WEBP" + kind + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


WEBPS = (
    _riff(b"VP8X", b"\0\0\0\0" + b"\x07\0\0" + b"\x09\0\0"),
    _riff(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + b"\x05\0" + b"\x06\0"),
    _riff(b"VP8L", b"\x2f" + struct.pack("<I", 4 | 5 << 14) + b"\0" * 8),
)
