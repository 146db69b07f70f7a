"""The table of docs/guides/sandbox.md, made of the attacks: `python -m tests.sandbox.table`."""

from pathlib import Path

from dragoman.sandbox.attacks import ATTACKS

DOCUMENT = Path(__file__).parents[2] / "docs" / "guides" / "sandbox.md"
BEGIN, END = "<!-- attacks: begin -->", "<!-- attacks: end -->"


def render() -> str:
    """One row per attack, and those that an ordinary user under Landlock cannot be kept from."""
    lines = ["| attack | what it tries | |", "|---|---|---|"]
    for attack in ATTACKS:
        name = attack.name.replace("|", "\\|")
        gap = f"not for ordinary users under Landlock: {attack.gap}" if attack.gap else "stopped"
        lines.append(f"| {name} | {attack.what} | {gap} |")
    return "\n".join(lines)


def main() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    DOCUMENT.write_text(f"{head}{BEGIN}\n{render()}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
