"""Adds the manual page and the shells' completions to a wheel, made from the table of commands."""

import os
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HOMES = {
    "man": "share/man/man1/dragoman.1",
    "bash": "share/bash-completion/completions/dragoman",
    "zsh": "share/zsh/site-functions/_dragoman",
    "fish": "share/fish/vendor_completions.d/dragoman.fish",
}


class Papers(BuildHookInterface):
    """Runs before the wheel is packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, os.path.join(self.root, "src"))
        try:
            from dragoman.cli import table
            from dragoman.cli.manual import manual
            from dragoman.cli.verbs import completion
        finally:
            sys.path.pop(0)
        commands = table.commands()
        texts = {"man": manual(commands)}
        texts |= {name: getattr(completion, name)(commands) for name in ("bash", "zsh", "fish")}
        self.folder = tempfile.mkdtemp(prefix="dragoman-build-")
        for name, text in texts.items():
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text if text.endswith("\n") else text + "\n")
            build_data["shared_data"][path] = HOMES[name]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        for name in HOMES:
            path = os.path.join(getattr(self, "folder", ""), name)
            if os.path.isfile(path) and hasattr(self, "folder"):
                os.unlink(path)
        if hasattr(self, "folder"):
            os.rmdir(self.folder)
