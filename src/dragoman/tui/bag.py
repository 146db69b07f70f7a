"""What goes with the next prompt."""

from rich.text import Text

from dragoman.engine.content import Image
from dragoman.engine.content import Text as TextBlock

from .rows import cut, safe

_MOST = 20


class Bag:
    """Attachments, each with a name that the user sees."""

    def __init__(self) -> None:
        self.things: list[tuple[str, TextBlock | Image]] = []

    def add(self, name: str, block: TextBlock | Image) -> None:
        self.things.append((name, block))
        del self.things[:-_MOST]

    def drop(self) -> bool:
        """Take the last one out; False when there is none."""
        return bool(self.things) and self.things.pop() is not None

    def take(self) -> list[tuple[str, TextBlock | Image]]:
        """Take everything out."""
        found, self.things = self.things, []
        return found

    def give_back(self, things: list[tuple[str, TextBlock | Image]]) -> None:
        """What was taken out goes before what was added since."""
        self.things = [*things, *self.things][-_MOST:]

    def shown(self) -> Text:
        found = Text("  ")
        for name, block in self.things:
            mark = "▣" if isinstance(block, Image) else "≡"
            found.append(f"{mark} {cut(' '.join(safe(name).split()), 40)}  ", "cyan")
        found.append("goes along; backspace drops it", "dim")
        return found
