"""Whether a picture can be sent: a provider that cannot read one refuses the whole conversation
with it, in this turn and in all that follow."""

import zlib

LARGEST = 8_000  # pixels of a side, as providers take them


def flaw(mime: str, data: bytes) -> str:
    """What is wrong with a picture; empty: nothing that its outer form shows."""
    look = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}[mime]
    try:
        width, height = look(data)
    except (ValueError, IndexError) as problem:
        return str(problem) or "it ends in the middle"
    if not width or not height:
        return "it has no size"
    return f"a side has more than {LARGEST} pixels" if max(width, height) > LARGEST else ""


def _number(data: bytes, at: int, size: int, order: str = "big") -> int:
    part = data[at : at + size]
    if len(part) < size:
        raise ValueError("it ends in the middle")
    return int.from_bytes(part, "little" if order == "little" else "big")


def _png(data: bytes) -> tuple[int, int]:
    at, kind, kinds = 8, b"", set[bytes]()
    while kind != b"IEND":
        size, kind = _number(data, at, 4), data[at + 4 : at + 8]
        if _number(data, at + 8 + size, 4) != zlib.crc32(memoryview(data)[at + 4 : at + 8 + size]):
            raise ValueError("a checksum is wrong")
        kinds.add(kind)
        at += 12 + size
    if data[12:16] != b"IHDR" or b"IDAT" not in kinds:
        raise ValueError("it has no picture in it")
    return _number(data, 16, 4), _number(data, 20, 4)


def _jpeg(data: bytes) -> tuple[int, int]:
    at, found = 2, (0, 0)
    while True:
        marker, size = _number(data, at, 2), _number(data, at + 2, 2)
        if marker == 0xFFFF:  # a filler
            at += 1
            continue
        if marker >> 8 != 0xFF or size < 2:
            raise ValueError("it is no chain of segments")
        if marker == 0xFFDA:
            break
        if 0xFFC0 <= marker <= 0xFFCF and marker not in (0xFFC4, 0xFFC8, 0xFFCC):
            found = _number(data, at + 7, 2), _number(data, at + 5, 2)
        at += 2 + size
    if data.rfind(b"\xff\xd9") < at:
        raise ValueError("it ends in the middle")
    return found


def _gif(data: bytes) -> tuple[int, int]:
    found = _number(data, 6, 2, "little"), _number(data, 8, 2, "little")
    if b"\x2c" not in data[13:] or not data.rstrip(b"\0").endswith(b";"):
        raise ValueError("it ends in the middle")
    return found


def _webp(data: bytes) -> tuple[int, int]:
    if _number(data, 4, 4, "little") + 8 > len(data) or len(data) < 30:
        raise ValueError("it ends in the middle")
    kind = data[12:16]
    if kind == b"VP8X":
        return _number(data, 24, 3, "little") + 1, _number(data, 27, 3, "little") + 1
    if kind == b"VP8 ":
        return _number(data, 26, 2, "little") & 0x3FFF, _number(data, 28, 2, "little") & 0x3FFF
    if kind == b"VP8L":
        bits = _number(data, 21, 4, "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    raise ValueError("it has no picture in it")
