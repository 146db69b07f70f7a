"""Every conversation under `transcripts/`, over every transport that carries its dialect."""

from pathlib import Path

import pytest
from tests.transcripts import starters

from dragoman.testing.play import play
from dragoman.testing.talk import collect, read

FOLDER = Path(__file__).parent / "transcripts"


def cases():
    for path in collect(FOLDER):
        dialect = path.relative_to(FOLDER).parts[0]
        talk = read(path)
        chosen = [word for direct in talk.directions("only") for word in direct.rest.split()]
        for transport in starters.of(dialect)[1]:
            if not chosen or transport in chosen:
                name = f"{dialect}/{path.stem}-{transport}"
                yield pytest.param(dialect, talk, transport, id=name)


@pytest.mark.parametrize(("dialect", "talk", "transport"), list(cases()))
async def test_the_conversation_goes_as_written(dialect, talk, transport, tmp_path):
    start, _ = starters.of(dialect)
    await play(talk, start, transport, tmp_path)
