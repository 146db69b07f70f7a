"""Pictures that a provider would refuse are refused before they are in the conversation."""

import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.tools.drawn import GIF, JPEG, WEBPS, chunk, png

from dragoman.engine.content import picture_type
from dragoman.engine.faults import BadInput
from dragoman.tools.pictures import LARGEST, flaw

WHOLE = (png(), JPEG, GIF, *WEBPS)


@pytest.mark.parametrize("data", WHOLE)
def test_whole_pictures_have_no_flaw_and_cut_ones_have(data: bytes) -> None:
    mime = picture_type(data)
    assert mime is not None and flaw(mime, data) == ""
    for end in range(16, len(data)):
        assert flaw(mime, data[:end]), end


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (png(LARGEST + 1, 5), "pixels"),
        (png(5, LARGEST + 1), "pixels"),
        (png(0, 5), "no size"),
        (png()[:-20] + b"x" + png()[-19:], "checksum"),
        (png()[:8] + chunk(b"IHDR", b"\0\0\0\1" * 2) + chunk(b"IEND", b""), "no picture"),
        (b"\x89PNG\r\n\x1a\n" + b"\xff" * 40, "ends in the middle"),
        (b"\xff\xd8\xff\xe0\x00\x00" + b"\0" * 40, "chain"),
        (b"\xff\xd8\xff\xda\x00\x02\xff\xd9", "no size"),
        (b"GIF89a\0\0\0\0" + GIF[10:], "no size"),
        (WEBPS[0][:12] + b"ANIM" + WEBPS[0][16:], "no picture"),
    ],
)  # fmt: skip
def test_flaws_are_named(data: bytes, why: str) -> None:
    assert why in flaw(picture_type(data) or "", data)


def test_hostile_ones_cost_little_and_break_nothing() -> None:
    began = time.monotonic()
    assert flaw("image/png", png(between=chunk(b"abcd", b"") * 50_000)) == ""
    assert flaw("image/jpeg", b"\xff" * 200_000)
    chance = random.Random(5)
    for _ in range(3_000):
        data = bytearray(chance.choice(WHOLE))
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
        flaw(picture_type(bytes(data)) or "", bytes(data))
    assert time.monotonic() - began < 20


async def test_reading_a_broken_one_says_so(use: Any, work: Path) -> None:
    (work / "a.png").write_bytes(png()[:-5])
    with pytest.raises(BadInput, match="cannot be shown as image/png: it ends in the middle"):
        await use("read", path="a.png")
