"""What an edit may have meant: the same words with other white space, or the most similar lines."""

from difflib import SequenceMatcher, get_close_matches

_LINES = 20_000  # of a file that are compared
_SHOWN = 12  # lines that are shown
_LONG = 400  # characters of a line
_PLAIN = "It must match exactly, white space and indentation included. Read the file again."


def nearest(text: str, wanted: str) -> str:
    """A hint for the model: how the text it wanted differs from the nearest there is."""
    lines = text.split("\n")[:_LINES]
    old = wanted.strip("\n").split("\n")
    if not any(line.strip() for line in old):
        return _PLAIN
    at = _found(lines, old, str.strip)
    if at is not None:
        here = lines[at : at + len(old)]
        same = [a.rstrip() == b.rstrip() for a, b in zip(here, old, strict=False)]
        what = "white space at line ends or blank lines" if all(same) else "indentation"
        return f"It is there with other {what}, {_shown(lines, at, len(old))}"
    at = _found(lines, old, lambda line: "".join(line.split()))
    if at is not None:
        return f"It is there with other spaces within lines, {_shown(lines, at, len(old))}"
    at = _similar(lines, old)
    if at is None:
        return f"Nothing similar is there. {_PLAIN}"
    return f"The nearest text is in {_shown(lines, at, len(old))}"


def _found(lines: list[str], old: list[str], made: object) -> int | None:
    """Where the lines are when all are made alike."""
    alike = made if callable(made) else str
    wanted = [alike(line) for line in old]
    have = [alike(line) for line in lines]
    first = wanted[0]
    for at in range(len(have) - len(wanted) + 1):
        if have[at] == first and have[at : at + len(wanted)] == wanted:
            return at
    return None


def _similar(lines: list[str], old: list[str]) -> int | None:
    """Where the lines are that resemble these most."""
    key = max(old, key=lambda line: len(line.strip()))
    stripped = key.strip()[:_LONG]
    pool = {line.strip()[:_LONG] for line in lines if line.strip()}
    found = get_close_matches(stripped, sorted(pool)[:5_000], n=1, cutoff=0.6)
    if not found:
        return None
    places = [at for at, line in enumerate(lines) if line.strip()[:_LONG] == found[0]][:20]
    before = old.index(key)
    around = [max(0, at - before) for at in places]
    text = "\n".join(old)[:4_000]
    return max(
        around,
        key=lambda at: SequenceMatcher(
            None, text, "\n".join(lines[at : at + len(old)])[:4_000], autojunk=False
        ).quick_ratio(),
    )


def _shown(lines: list[str], at: int, count: int) -> str:
    here = lines[at : at + count]
    end = f"-{at + len(here)}" if len(here) > 1 else ""
    shown = "\n".join(line[:_LONG] for line in here[:_SHOWN])
    more = "" if len(here) <= _SHOWN else f"\n[{len(here) - _SHOWN} more lines]"
    return f"line{'s' if end else ''} {at + 1}{end}:\n{shown}{more}"
