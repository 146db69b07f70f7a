"""What was typed before in this folder: kept, walked through, searched."""

import hashlib
import os
import tempfile

import msgspec

from dragoman.settings.places import places

_MOST = 1_000
_LONGEST = 20_000


class Past:
    """The prompts of one folder, oldest first."""

    def __init__(self, folder: str, config_dir: str | None = None) -> None:
        name = hashlib.sha256(folder.encode(errors="surrogateescape")).hexdigest()[:20]
        where = places(os.environ, config_dir)
        self._file = os.path.join(where.data_dir, "history", f"{name}.jsonl")
        self.said = self._read()
        self._at = len(self.said)
        self._draft = ""

    def _read(self) -> list[str]:
        try:
            with open(self._file, "rb") as file:
                lines = file.read().splitlines()
        except OSError:
            return []  # nothing was said here yet
        found = []
        for line in lines[-_MOST:]:
            try:
                value = msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue  # a line that was cut by a crash
            if isinstance(value, str):
                found.append(value)
        if len(lines) > 2 * _MOST:
            self._write(found)
        return found

    def _write(self, said: list[str]) -> None:
        made = f"{self._file}.{os.getpid()}"
        with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.writelines(msgspec.json.encode(one) + b"\n" for one in said)
        os.replace(made, self._file)

    def add(self, text: str) -> str:
        """Remember a prompt; returns what went wrong with keeping it, or nothing."""
        self.reset()
        if not text.strip() or len(text) > _LONGEST or self.said[-1:] == [text]:
            return ""
        self.said.append(text)
        del self.said[:-_MOST]
        self.reset()
        line = msgspec.json.encode(text.encode(errors="replace").decode()) + b"\n"
        try:
            os.makedirs(os.path.dirname(self._file), mode=0o700, exist_ok=True)
            made = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(made, line)
            finally:
                os.close(made)
        except OSError as problem:
            return f"the prompt history cannot be kept: {problem.strerror}"
        return ""

    def draft(self) -> tuple[int, str]:
        """A new file for a prompt that is being written elsewhere, where no command can reach it.

        Raises OSError.
        """
        folder = os.path.dirname(self._file)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return tempfile.mkstemp(prefix="draft-", suffix=".md", dir=folder)

    def reset(self) -> None:
        self._at = len(self.said)
        self._draft = ""

    def older(self, now: str) -> str | None:
        """The prompt before; `now` is what stands in the editor."""
        if self._at == len(self.said):
            self._draft = now
        while self._at > 0:
            self._at -= 1
            if self.said[self._at] != now:
                return self.said[self._at]
        return None

    def newer(self) -> str | None:
        if self._at >= len(self.said):
            return None
        self._at += 1
        return self._draft if self._at == len(self.said) else self.said[self._at]

    def search(self, words: str, most: int = 50) -> list[str]:
        """The prompts that hold all these words, newest first, each once."""
        wanted = words.lower().split()
        found: dict[str, None] = {}
        for text in reversed(self.said):
            if all(word in text.lower() for word in wanted):
                found[text] = None
                if len(found) >= most:
                    break
        return list(found)
