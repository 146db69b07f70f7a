"""What goes with a prompt: files, pictures, text from elsewhere, as blocks of the prompt.

A picture goes as a picture, a text file with its content, anything else by its name only.
"""

import os
import re

from dragoman.engine.content import Image, Text, picture_type
from dragoman.engine.faults import BadInput

LARGEST_TEXT = 256 * 1024
LARGEST_IMAGE = 10 * 1024 * 1024
_ENDING = re.compile(r"[^/.]\.\w{1,5}$")
_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|([^\s"]+))')


def image(path: str) -> Image:
    """A picture from a file. Raises BadInput."""
    data = _read(path, LARGEST_IMAGE)
    kind = picture_type(data)
    if not kind:
        raise BadInput(f"{path} is no picture.", "PNG, JPEG, GIF and WebP can be given.")
    return Image(kind, data)


def file(path: str, name: str = "") -> Text | Image:
    """A file as a block: a picture, or its text under its name. Raises BadInput."""
    data = _read(path, LARGEST_IMAGE)
    if kind := picture_type(data):
        return Image(kind, data)
    if len(data) > LARGEST_TEXT:
        raise BadInput(
            f"{path} has {len(data)} bytes, more than {LARGEST_TEXT}.",
            "Name it without the @ and let the agent read what it needs.",
        )
    if b"\0" in data[:8192]:
        raise BadInput(f"{path} is neither text nor a picture.", "Name it without the @.")
    return context(name or path, data.decode(errors="replace"))


def context(name: str, text: str) -> Text:
    """Text that is given along, under a name."""
    return Text(f'\n\n<context name="{name}">\n{text.rstrip()}\n</context>')


def mentions(text: str, folder: str) -> list[tuple[str, str]]:
    """The files that a prompt names with `@`, as (what was written, path); others are words."""
    found: dict[str, str] = {}
    for match in _MENTION.finditer(text):
        said = match[1] or match[2]
        for name in (said, said.rstrip(".,;:!?)]")):
            path = os.path.join(folder, os.path.expanduser(name))
            if name and os.path.isfile(path):
                found.setdefault(name, path)
                break
    return list(found.items())


def missed(text: str, folder: str) -> str:
    """What to say of names with `@` that are meant as files and lead to nothing; else nothing.

    Many other words begin so (`@me/weather`, `@property`): a name is meant as a file when it ends
    like one, or begins with a folder that is there.
    """
    gone = []
    for match in _MENTION.finditer(text):
        said = match[1] or match[2].rstrip(".,;:!?)]")
        path = os.path.join(folder, os.path.expanduser(said))
        within = os.path.dirname(said) and os.path.isdir(os.path.dirname(path))
        if said and (within or _ENDING.search(said)) and not os.path.lexists(path):
            gone.append(said)
    names = ", ".join(dict.fromkeys(gone))
    return f"there is no file {names} in {folder}; the agent gets the name alone" if gone else ""


def prompt(text: str, folder: str, *more: Text | Image) -> tuple[Text | Image, ...]:
    """A prompt with all that it names. Raises BadInput for a file that cannot be given."""
    blocks = [file(path, name) for name, path in mentions(text, folder)]
    return (Text(text), *blocks, *more)


def _read(path: str, most: int) -> bytes:
    try:
        with open(os.path.expanduser(path), "rb") as opened:
            data = opened.read(most + 1)
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}.") from None
    if len(data) > most:
        raise BadInput(f"{path} is larger than {most // 1024 // 1024} MB.")
    return data
