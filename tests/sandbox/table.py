"""The table of docs/guides/sandbox.md, made from the attempts: `python -m tests.sandbox.table`."""

import tempfile
from pathlib import Path

from tests.sandbox.attempts import ATTEMPTS
from tests.sandbox.world import World

DOCUMENT = Path(__file__).parents[2] / "docs" / "guides" / "sandbox.md"
BEGIN, END = "<!-- attempts: begin -->", "<!-- attempts: end -->"
_WORDS = {"deny": "stopped", "ask": "a human is asked", "allow": "**not stopped**"}


def render(world: World) -> str:
    """One row per attempt: what Landlock does, and what policy alone does."""
    head = ("attempt", "what it tries", "Landlock", "policy, supervised", "policy, full")
    lines = [f"| {' | '.join(head)} |", "|---|---|---|---|---|"]
    for attempt in ATTEMPTS:
        supervised, full = (world.judged(attempt, mode) for mode in ("supervised", "full"))
        kept = attempt.name == "own environment"  # secrets are never in a command's environment
        row = [attempt.name, attempt.what, "stopped", _WORDS[supervised],
               "stopped" if kept else _WORDS[full]]  # fmt: skip
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        with world.people():
            table = render(world)
    text = DOCUMENT.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    DOCUMENT.write_text(f"{head}{BEGIN}\n{table}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
