"""Signatures of terminals' names: a name that was signed is given again to its owner only."""

import os

from .desk import log

FILE = "terminals.key"
_SIZE = 32


class Signer:
    """Signs with a key that is kept in a folder, so that names outlive the process.

    Without a folder, or where it cannot be written, nothing is signed and every name is taken.
    """

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, FILE) if folder else ""
        self._key: bytes | None = None

    def sign(self, name: str) -> str:
        """The name's signature in hex digits; empty when nothing is signed."""
        if self._key is None:
            self._key = self._load() if self._path else b""
        if not self._key:
            return ""
        import hmac

        return hmac.new(self._key, name.encode("utf-8", "replace"), "sha256").hexdigest()

    def fits(self, name: str, signature: str) -> bool:
        """Whether this is the name's signature."""
        wanted = self.sign(name)
        if not wanted:
            return True
        import hmac

        given = signature.strip().lower().encode("utf-8", "replace")
        return hmac.compare_digest(wanted.encode(), given)

    def _load(self) -> bytes:
        try:
            return self._read() or self._make()
        except OSError as problem:
            log.warning("names of terminals are not signed", problem=str(problem))
            return b""

    def _read(self) -> bytes:
        """The key that is kept; empty when there is none, or what is there is none."""
        try:
            with open(
                os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb"
            ) as file:
                key = bytes.fromhex(file.read(1024).decode("ascii"))
        except (FileNotFoundError, ValueError):
            return b""
        return key if len(key) == _SIZE else b""

    def _make(self) -> bytes:
        """A new key, whole in its place at once, or the one of another process that was first."""
        fresh = f"{self._path}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(fresh, flags, 0o600), "wb") as file:
            file.write(os.urandom(_SIZE).hex().encode())
        try:
            os.link(fresh, self._path)
        except FileExistsError:
            key = self._read()
            if not key:  # damaged: names that it signed have to be given anew
                os.replace(fresh, self._path)
            return key or self._read()
        finally:
            if os.path.exists(fresh):
                os.unlink(fresh)
        return self._read()
