"""The judge of our lines: without the official schema it is missing, and that is said."""

from typing import Any

import pytest

from .oracle import SCHEMA, check, check_strictly

ASKED = {1: "session/new"}


def answer(**result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


@pytest.mark.interop
@pytest.mark.skipif(not SCHEMA.exists(), reason="needs make setup-node: lines are not judged")
def test_the_official_schema_judges_lines() -> None:
    for judge in (check, check_strictly):
        judge(answer(sessionId="s"), ASKED)
        for wrong in (answer(), answer(sessionId=5), answer(sessionId="s", other=1)):
            with pytest.raises(AssertionError):
                judge(wrong, ASKED)
