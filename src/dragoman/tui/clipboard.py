"""The picture in the desktop's clipboard, by the programs that desktops have for it."""

import os
import subprocess

from dragoman.client.attachments import LARGEST_IMAGE, image_kind
from dragoman.engine.faults import BadInput

_WAYS = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)
_WAIT = 5.0


def picture() -> bytes:
    """The picture as a file's bytes. Raises BadInput, which says what is missing."""
    missing = []
    for variable, words in _WAYS:
        if variable and not os.environ.get(variable):
            continue
        try:
            said = subprocess.run(words, capture_output=True, timeout=_WAIT, check=False).stdout
        except FileNotFoundError:
            missing.append(words[0])
            continue
        except (OSError, subprocess.TimeoutExpired):
            continue  # another way may do
        if len(said) > LARGEST_IMAGE:
            raise BadInput("The picture in the clipboard is larger than 10 MB.")
        if image_kind(said):
            return said
    hint = f"One of these programs is needed: {', '.join(missing)}." if missing else ""
    raise BadInput("There is no picture in a clipboard that can be read from here.", hint or
                   "Give a file: /image PATH, or drop it here.")  # fmt: skip
