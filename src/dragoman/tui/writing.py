"""The part of the screen where prompts are written: editor, completions, what goes along."""

import asyncio
import os
import shlex
import subprocess
import time
from dataclasses import dataclass

from rich.text import Text as RichText
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Paste
from textual.message import Message
from textual.widgets import Static

from dragoman.client import attachments
from dragoman.engine.content import Image, Text, picture_type
from dragoman.engine.faults import Fault
from dragoman.engine.visible import many

from . import clipboard, commands, files
from .choices import Choice, Choices
from .editor import Editor
from .past import Past
from .rows import cut, safe
from .vi import Vi

_MOST_WAITING = 3  # of what was sent and not heard yet that are shown
_MOST_ALONG = 20  # things that go with one prompt
_FILES_STAND = 5.0  # seconds in which a list of files is good enough


class Bag:
    """What goes with the next prompt, each with a name that the user sees."""

    def __init__(self) -> None:
        self.things: list[tuple[str, Text | Image]] = []

    def add(self, name: str, block: Text | Image) -> None:
        self.things.append((name, block))
        del self.things[:-_MOST_ALONG]

    def drop(self) -> bool:
        """Take the last one out; False when there is none."""
        return bool(self.things) and self.things.pop() is not None

    def take(self) -> list[tuple[str, Text | Image]]:
        """Take everything out."""
        found, self.things = self.things, []
        return found

    def give_back(self, things: list[tuple[str, Text | Image]]) -> None:
        """What was taken out goes before what was added since."""
        self.things = [*things, *self.things][-_MOST_ALONG:]

    def shown(self) -> RichText:
        found = RichText("  ")
        for name, block in self.things:
            mark = "▣" if isinstance(block, Image) else "≡"
            found.append(f"{mark} {cut(' '.join(safe(name).split()), 40)}  ", "cyan")
        found.append("goes along; backspace drops it", "dim")
        return found


class Writing(Vertical):
    """Tells the terminal what was said; everything before that is done here."""

    DEFAULT_CSS = """
    Writing { height: auto; width: 1fr; }
    Writing #write { height: auto; max-height: 14; border-top: solid ansi_bright_black;
                     border-bottom: solid ansi_bright_black; }
    Writing #mark { width: 2; height: 1; color: ansi_cyan; }
    Writing #beside { height: auto; display: none; }
    Writing #waits { height: auto; display: none; }
    """

    @dataclass
    class Said(Message):
        """A prompt, a command, or words for a question; `queued`: after the running turn."""

        text: str
        queued: bool

    @dataclass
    class Trouble(Message):
        text: str

    def __init__(self, folder: str, config_dir: str | None, *, vi: bool = False) -> None:
        super().__init__()
        self.editor = Editor(vi=vi, id="editor")
        self.choices = Choices(id="choices")
        self.bag = Bag()
        self._known: list[Choice] = []  # slash commands of the folder, beside our own
        self._beside = Static(id="beside")
        self._waits = Static(id="waits")
        self._waiting: list[tuple[str, str]] = []  # words that were sent, and when they are heard
        self._mark = Static("›", id="mark")
        self._folder = folder
        self._files: list[str] = []
        self._files_at = ""
        self._listed = 0.0
        self._offer = ""  # the command whose argument is being chosen; "past" while searching
        self._draft = ""  # what stood in the editor before the search
        self._fits = ""  # the text of the editor that the list was made for
        self.editor.past = Past(folder, config_dir)
        self.editor.choose = self._chose
        self.editor.catch_up = self._catch_up

    def compose(self) -> ComposeResult:
        yield self.choices
        yield self._waits
        yield self._beside
        with Horizontal(id="write"):
            yield self._mark
            yield self.editor

    def place(self, folder: str) -> None:
        """Files are those of this folder from now on."""
        if folder != self._folder:
            self._folder = folder
            self._files_at = ""

    def know(self, commands: list[Choice]) -> None:
        """The slash commands of the folder; a list that is open shows them at once."""
        self._known = commands
        self._catch_up()

    def words_for(self, what: str) -> None:
        """Show what the next words are for; nothing: a prompt."""
        self._mark.update("?" if what else "›")
        self.editor.placeholder = safe(what)

    # --- what is typed ---

    def on_editor_sent(self, event: Editor.Sent) -> None:
        event.stop()
        text = event.text
        if not text.strip() and not self.bag.things:
            return
        past = self.editor.past
        if past is not None and (problem := past.add(text)):
            self.post_message(self.Trouble(problem))
        self.post_message(self.Said(text, event.queued))

    def give_back(self, text: str) -> None:
        """What could not be sent stands in the editor again."""
        if not self.editor.text:
            self.editor.put(text)

    # --- completing ---

    async def on_editor_completing(self, event: Editor.Completing) -> None:
        event.stop()
        if event.mark == "@":
            await self._list_files()
        self._catch_up()

    async def _list_files(self) -> None:
        """Know the files of the folder; agents make new ones, so not for ever."""
        now = time.monotonic()
        if self._files_at != self._folder:
            self._files_at, self._files = self._folder, []
        elif now - self._listed < _FILES_STAND:
            return
        self._listed = now
        self._files = await files.listed(self._folder)

    def _catch_up(self) -> None:
        """Make the list fit what stands in the editor now: keys may be ahead of it."""
        text, (mark, word) = self.editor.text, self.editor.word()
        if self._offer == "past":
            if text != self._fits or not self.editor.choosing:
                self._find_past()
        elif self._offer and text == self._fits:
            return  # a list that was asked for
        elif mark == "/":
            self._show(self._slash(word), mark)
        elif mark == "@":
            self._show([Choice(name) for name in files.matching(self._files, word)], mark)
        else:
            self._close()

    def _slash(self, word: str) -> list[Choice]:
        own = [
            Choice(name, f"{one.about}{f'  {one.hint}' if one.hint else ''}")
            for name, one in commands.OWN.items()
        ]
        known = {choice.value for choice in own}
        every = own + [one for one in self._known if one.value not in known]
        begin = sorted(
            (one for one in every if one.value.startswith(word)), key=lambda one: one.value != word
        )
        return begin + [one for one in every if word and word in one.value and one not in begin]

    def _show(self, found: list[Choice], mark: str) -> None:
        found = found[:100]
        if found != self.choices.found or mark != self.choices.mark:
            self.choices.put(found, mark)
        self._offer = ""
        self._fits = self.editor.text
        self.editor.choosing = bool(found)

    def offer(self, command: str, found: list[Choice], words: str = "") -> None:
        """Let the user choose what a command is to be given; not over what is being typed."""
        if self.editor.text:
            return
        self.words_for(words)
        self._show(found, "")
        self._offer = command

    def _chose(self, act: str) -> None:
        if act in ("up", "down"):
            self.choices.move(-1 if act == "up" else 1)
        elif act == "enter" and self._typed_whole():
            self._close()
            self.editor.send()
        elif act in ("accept", "enter"):
            self._accept(self.choices.chosen)
        else:
            if self._offer == "past":
                self.editor.put(self._draft)
            self._close()

    def _typed_whole(self) -> bool:
        """Whether a command stands there as it is: enter sends it."""
        mark, word = self.editor.word()
        return not self._offer and mark == "/" and word == self.choices.chosen

    def on_choices_picked(self, event: Choices.Picked) -> None:
        event.stop()
        self._accept(event.value)
        self.editor.focus()

    def _close(self) -> None:
        if self._offer:
            self.words_for("")
        self._show([], "")

    def _accept(self, chosen: str) -> None:
        offer = self._offer
        mark, word = self.editor.word()
        self._close()
        if offer == "past":
            self.editor.put(chosen)
        elif offer:
            self.post_message(self.Said(f"/{offer} {chosen}", False))
        elif mark == "/" and (known := commands.OWN.get(chosen)) is not None and not known.hint:
            self.editor.put("")
            self.post_message(self.Said(f"/{chosen}", False))
        else:
            self.editor.complete(mark, word, chosen)

    # --- what was said before ---

    def search(self) -> None:
        """Search in what was said before, by what is typed now."""
        if self._offer == "past":
            self.choices.move(1)
            return
        self._draft = self.editor.text
        self.editor.put("")
        self._offer = "past"
        self.words_for("search in what you said here before")
        self._find_past()

    def _find_past(self) -> None:
        past = self.editor.past
        found = past.search(self.editor.text) if past is not None else []
        self.choices.put([Choice(text) for text in found])
        self._fits = self.editor.text
        self.editor.choosing = True

    # --- what goes along ---

    def on_editor_pasted(self, event: Editor.Pasted) -> None:
        event.stop()
        path = event.text.strip().strip("'\"").removeprefix("file://")
        if "\n" not in path and os.path.isfile(os.path.expanduser(path)):
            self.attach_file(path)
            return
        lines = event.text.count("\n") + 1
        self.carry(many(lines, "pasted line"), attachments.context("pasted", event.text))

    def attach_file(self, path: str) -> None:
        """Give a file along with the next prompt."""
        try:
            block = attachments.file(os.path.join(self._folder, os.path.expanduser(path)), path)
        except Fault as fault:
            self.post_message(self.Trouble(str(fault)))
            return
        self.carry(os.path.basename(path), block)

    def carry(self, name: str, block: Text | Image) -> None:
        self.bag.add(name, block)
        self.show_bag()

    def on_editor_emptied(self, event: Editor.Emptied) -> None:
        event.stop()
        if self.bag.drop():
            self.show_bag()

    def take_bag(self) -> list[tuple[str, Text | Image]]:
        """What goes with the prompt that is sent now."""
        found = self.bag.take()
        self.show_bag()
        return found

    def give_back_bag(self, things: list[tuple[str, Text | Image]]) -> None:
        self.bag.give_back(things)
        self.show_bag()

    def show_bag(self) -> None:
        self._beside.update(self.bag.shown())
        self._beside.display = bool(self.bag.things)

    def show_waiting(self, waiting: list[tuple[str, str]]) -> None:
        """Show what was sent and not heard yet."""
        if waiting == self._waiting:
            return
        self._waiting = waiting
        shown = RichText(no_wrap=True, overflow="ellipsis")
        for at, (words, when) in enumerate(waiting[:_MOST_WAITING]):
            shown.append("\n" if at else "")
            shown.append(f"  ⋯ {when}: ", "dim").append(" ".join(safe(words).split())[:1000])
        if (more := len(waiting) - _MOST_WAITING) > 0:
            shown.append(f"\n  ⋯ and {more} more", "dim")
        self._waits.update(shown)
        self._waits.display = bool(waiting)

    async def paste_clipboard(self) -> None:
        """The picture in the desktop's clipboard, else its text as if it were pasted."""
        try:
            found = await asyncio.to_thread(clipboard.content)
        except Fault as fault:
            self.post_message(self.Trouble(str(fault)))
            return
        if isinstance(found, str):
            self.editor.post_message(Paste(found))
        else:
            self.carry("picture", Image(picture_type(found), found))

    # --- elsewhere ---

    def edit_outside(self) -> None:
        """Write in $EDITOR; the terminal waits."""
        said = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        try:
            words = shlex.split(said) or ["vi"]
        except ValueError as problem:
            self.post_message(self.Trouble(f"$EDITOR is {said}, which is no command: {problem}"))
            return
        assert self.editor.past is not None
        path = ""
        try:
            made, path = self.editor.past.draft()
            with open(made, "w", encoding="utf-8", errors="replace") as file:
                file.write(self.editor.text)
            with self.app.suspend():
                code = subprocess.run([*words, path], check=False).returncode
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read().rstrip("\n")
        except OSError as problem:
            said = f"{words[0]} cannot be run: {problem.strerror}; set $EDITOR"
            self.post_message(self.Trouble(said))
            return
        finally:
            if path:
                os.unlink(path)
        if code:
            self.post_message(self.Trouble(f"{safe(words[0])} ended with {code}"))
        else:
            self.editor.put(text)

    def toggle_vi(self) -> bool:
        self.editor.vi = None if self.editor.vi is not None else Vi()
        return self.editor.vi is not None
