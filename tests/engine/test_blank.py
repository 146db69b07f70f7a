"""A prompt of blanks is refused before a model is asked."""

import pytest
from tests.engine.tape import ME

from dragoman.engine.content import Image, Text
from dragoman.engine.faults import BadInput
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted


@pytest.mark.parametrize("text", [" ", "\n\n", "\t \r\n", "\u3000", "\u00a0", "\x0b\x0c"])
async def test_it_is_refused(text: str) -> None:
    model = Scripted(["never"])
    door = memory_door(model)
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    for content in ((Text(text),), (Text(text), Text(text))):
        with pytest.raises(BadInput, match="empty"):
            await door.prompt(sid, content, ME)
    assert not model.requests and not await door.messages(sid)


async def test_a_picture_alone_is_something() -> None:
    door = memory_door(Scripted(["seen"]))
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    image = Image("image/png", "aGk=")
    assert (await (await door.prompt(sid, (Text(" "), image), ME)).done).text == "seen"
