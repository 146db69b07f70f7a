"""vi keys for the editor: enough of them to write prompts with."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.widgets import TextArea

_MOTIONS = {
    "h": "cursor_left",
    "l": "cursor_right",
    "j": "cursor_down",
    "k": "cursor_up",
    "w": "cursor_word_right",
    "e": "cursor_word_right",
    "b": "cursor_word_left",
    "0": "cursor_line_start",
    "^": "cursor_line_start",
    "$": "cursor_line_end",
}
_DELETES = {
    "w": "delete_word_right",
    "e": "delete_word_right",
    "b": "delete_word_left",
    "$": "delete_to_end_of_line",
    "0": "delete_to_start_of_line",
}


class Vi:
    """The state of the keys: inserting, or commanding with a command half typed."""

    def __init__(self) -> None:
        self.inserting = True
        self.pending = ""
        self.count = ""
        self.yanked = ""

    @property
    def shown(self) -> str:
        return "insert" if self.inserting else f"normal {self.count}{self.pending}".strip()

    def take(self, area: "TextArea", key: str, character: str | None) -> bool:
        """Act on a key; returns whether it was ours."""
        if self.inserting:
            if key == "escape":
                self.inserting = False
                if area.cursor_location[1]:  # never onto the line before
                    area.action_cursor_left()
                return True
            return False
        char = character or ""
        if key == "escape":
            took = bool(self.pending or self.count)
            self.pending = self.count = ""
            return took
        if len(key) > 1 and not char.isprintable() or not char:
            return False
        if char in "0123456789" and (char != "0" or self.count):
            self.count = (self.count + char)[-3:]
            return True
        times = int(self.count or 1)
        self._act(area, char, times)
        return True

    def _act(self, area: "TextArea", char: str, times: int) -> None:
        if self.pending:
            pending, self.pending = self.pending, ""
            self.count = ""
            self._operate(area, pending, char, times)
            return
        if char in "dcyg":
            self.pending = char
            return
        self.count = ""
        if char in _MOTIONS:
            for _ in range(times):
                getattr(area, f"action_{_MOTIONS[char]}")()
        elif char in "iIaAoO":
            self._insert(area, char)
        elif char == "x":
            for _ in range(times):
                area.action_delete_right()
        elif char in "DC":
            area.action_delete_to_end_of_line()
            self.inserting = char == "C"
        elif char == "u":
            area.undo()
        elif char == "G":
            area.move_cursor(area.document.end)
        elif char in "pP" and self.yanked:
            self._paste(area, below=char == "p")

    def _paste(self, area: "TextArea", below: bool) -> None:
        row = area.cursor_location[0] + below
        if row < area.document.line_count:
            area.insert(self.yanked, (row, 0))
        else:
            area.insert("\n" + self.yanked.rstrip("\n"), area.document.end)

    def _operate(self, area: "TextArea", pending: str, char: str, times: int) -> None:
        if pending == "g":
            if char == "g":
                area.move_cursor((0, 0))
            return
        if char == pending:
            row, _ = area.cursor_location
            last = min(row + times, area.document.line_count)
            self.yanked = "\n".join(area.document.get_line(one) for one in range(row, last)) + "\n"
            if pending == "d":
                for _ in range(times):
                    area.action_delete_line()
            elif pending == "c":
                area.move_cursor((row, 0))
                area.action_delete_to_end_of_line()
        elif char in _DELETES and pending in "dc":
            for _ in range(times):
                getattr(area, f"action_{_DELETES[char]}")()
                if char == "w" and pending == "d":
                    self._swallow_spaces(area)
        else:
            return
        self.inserting = pending == "c"

    def _swallow_spaces(self, area: "TextArea") -> None:
        row, column = area.cursor_location
        rest = area.document.get_line(row)[column:]
        area.delete((row, column), (row, column + len(rest) - len(rest.lstrip(" "))))

    def _insert(self, area: "TextArea", char: str) -> None:
        if char == "I":
            area.action_cursor_line_start()
        elif char == "a":
            area.action_cursor_right()
        elif char == "A":
            area.action_cursor_line_end()
        elif char == "o":
            area.action_cursor_line_end()
            area.insert("\n")
        elif char == "O":
            row, _ = area.cursor_location
            area.insert("\n", (row, 0))
            area.move_cursor((row, 0))
        self.inserting = True
