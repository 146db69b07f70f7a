"""A model that plans, hands work to a sub-agent, writes Markdown and fails, in a real browser."""

import json
from pathlib import Path

import pytest
from tests.browser.test_dashboard import CHROMIUM, SCREENS, Browser
from tests.browser.test_dashboard import pytestmark as marks
from tests.browser.test_rooms import all_clean
from tests.daemon.running import Daemon, script

pytestmark = [*marks[:2], pytest.mark.timeout(1200), pytest.mark.slow]
STEPS = ("Read the notes", "Write a summary")
MARKDOWN = """# A heading

Some *text*, ~~gone~~, README.md and https://example.org/x.

```python
def add(a: int) -> int:
    return a + 1
```

1. one
   - nested
     - deeper
2. two

- [x] done
- [ ] open

| name | count |
|:--|--:|
| a | 12 |
| b | 3 |
"""


def plan(*states: str) -> dict[str, object]:
    steps = [{"content": text, "status": state} for text, state in zip(STEPS, states, strict=True)]
    return {"type": "call", "name": "plan", "args": {"entries": steps}}


def test_a_plan_a_sub_agent_markdown_and_a_failure(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    SCREENS.mkdir(parents=True, exist_ok=True)
    task = {"role": "explore", "prompt": "look at the notes", "title": "Look at the notes"}
    turns = [
        {"parts": [plan("in_progress", "pending")]},
        {"parts": [{"type": "call", "name": "task", "args": task}]},
        {"parts": [plan("completed", "completed")]},
        {"parts": [{"type": "say", "text": MARKDOWN, "delay": 0.005}]},
        {"parts": [{"type": "fail", "kind": "auth", "message": "the key was not taken"}]},
    ]
    config = script(tmp_path, turns) + "[gateway]\nport = 0\n"
    with Daemon(tmp_path, config=config, gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]
        code = daemon.said.decode().split("pair with the code ")[1].split()[0]
        words = (address, code, CHROMIUM, str(work), str(SCREENS))
        with Browser(*words, script="tour.mjs") as browser:
            seen = browser.step("toured")
            for shape in (seen["streamed"], seen["again"]):
                assert shape["nested"] == 1 and shape["cells"] == [["a", "12"], ["b", "3"]]
                assert shape["tasks"] == [True, False] and shape["beside"]
                assert shape["struck"] == "gone" and shape["words"] >= 2
                assert shape["links"] == ["https://example.org/x"]
            # What was streamed block by block is what is there when the page is opened again.
            assert seen["streamed"]["html"] == seen["again"]["html"]
            assert seen["plan"] == seen["beside"] == [[text, "completed"] for text in STEPS]
            assert len(seen["tree"]) == 1 and "notes" in seen["tree"][0].lower()
            all_clean(seen["pages"])
            failed = browser.step("failed turn")
            assert len(failed["errors"]) == 1 and "key was not taken" in failed["errors"][0]
            assert "failed" in failed["row"]
            assert browser.step("over")["troubles"] == []
