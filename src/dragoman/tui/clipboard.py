"""What is in the desktop's clipboard, by the programs that desktops have for it."""

import os
import subprocess

from dragoman.client.attachments import LARGEST_IMAGE
from dragoman.engine.content import picture_type
from dragoman.engine.faults import BadInput

# Where: the picture, the text.
_WAYS = (
    (
        "WAYLAND_DISPLAY",
        ("wl-paste", "--no-newline", "--type", "image/png"),
        ("wl-paste", "--no-newline", "--type", "text"),
    ),
    (
        "DISPLAY",
        ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
        ("xclip", "-selection", "clipboard", "-out"),
    ),
    ("", ("pngpaste", "-"), ("pbpaste",)),
)
_WAIT = 5.0


def content() -> bytes | str:
    """The picture as a file's bytes, else the text. Raises BadInput, which says what is missing."""
    missing = []
    text = ""
    for variable, *ways in _WAYS:
        if variable and not os.environ.get(variable):
            continue
        for words in ways:
            try:
                said = subprocess.run(words, capture_output=True, timeout=_WAIT, check=False).stdout
            except FileNotFoundError:
                missing.append(words[0])
                continue
            except (OSError, subprocess.TimeoutExpired):
                continue  # another way may do
            if picture_type(said):
                if len(said) > LARGEST_IMAGE:
                    raise BadInput("The picture in the clipboard is larger than 10 MB.")
                return said
            if words is ways[-1]:
                text = text or said.decode(errors="replace")
    if text:
        return text
    named = ", ".join(dict.fromkeys(missing))
    raise BadInput(
        "There is neither a picture nor a text in a clipboard that can be read from here.",
        f"One of these programs is needed: {named}." if named
        else "Give a file: /image PATH, or drop it here.",
    )  # fmt: skip
