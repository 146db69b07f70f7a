"""What changed in a text, shown by lines with some context around."""

from collections.abc import Sequence

from dragoman.engine.visible import many

MAX_SHOWN = 1_000_000  # characters of a file that clients get in full
CONTEXT = 3
_COMPARED = 400  # lines of one change that are compared line by line
_LONG = 2_000  # characters of a line that are rendered
_MOST = 51_200  # characters of all of it

Change = tuple[int, int, list[str]]  # old lines [start, end) become these


def render(old: list[str], changes: Sequence[Change], context: int = CONTEXT) -> str:
    """Lines with ' ', '-' or '+' in front; `...` where lines were left out.

    It is for the one who made the change: very long lines and changes are cut.
    """
    out: list[str] = []
    total = len(old) - (old[-1:] == [""])  # a last line feed makes no line of its own
    at = 0  # old lines before this one are shown or left out
    for number, (start, end, new) in enumerate(changes):
        begin = max(at, start - context)
        if begin > at:
            out.append("...")
        out += [" " + line for line in old[begin:start]]
        out += _compare(old[start:end], new)
        following = changes[number + 1][0] if number + 1 < len(changes) else total
        at = max(end, min(end + context, following))
        out += [" " + line for line in old[end:at]]
    if at < total:
        out.append("...")
    return _bounded(out)


def _bounded(lines: list[str]) -> str:
    kept: list[str] = []
    room = _MOST
    for number, line in enumerate(lines):
        kept.append(
            line if len(line) <= _LONG else f"{line[:_LONG]}… [{many(len(line), 'character')}]"
        )
        room -= len(kept[-1]) + 1
        if room < 0:
            kept[-1] = f"... [{many(len(lines) - number, 'more line')} of the change]"
            break
    return "\n".join(kept)


def _compare(old: Sequence[str], new: Sequence[str]) -> list[str]:
    if len(old) > _COMPARED or len(new) > _COMPARED:
        return ["-" + line for line in old] + ["+" + line for line in new]
    out: list[str] = []
    import difflib

    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            out += [" " + line for line in old[old_start:old_end]]
        else:
            out += ["-" + line for line in old[old_start:old_end]]
            out += ["+" + line for line in new[new_start:new_end]]
    return out


def trim(start: int, old: Sequence[str], new: list[str]) -> Change:
    """A change without the lines at its ends that stay the same."""
    head = 0
    while head < len(old) and head < len(new) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return start + head, start + len(old) - tail, new[head : len(new) - tail]
