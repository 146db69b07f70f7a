"""The dashboard's files, straight from the package: plain modules and styles, no build step."""

from hashlib import sha256
from importlib.resources import files

from .http import Refusal, Request, Response

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
    "webmanifest": "application/manifest+json",
}
# Pages of the dashboard: the same document, the script looks at the path.
_PAGES = frozenset({"", "sessions", "approvals", "config", "clients", "wire", "login"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)


class Static:
    """All files, read once; only these names exist, so no path can lead elsewhere."""

    def __init__(self, prefix: str) -> None:
        self._files: dict[str, tuple[bytes, str, str]] = {}
        root = files("dragoman.gateway").joinpath("static")
        for entry in root.iterdir():
            kind = _TYPES.get(entry.name.rpartition(".")[2])
            if kind is None or not entry.is_file():
                continue
            data = entry.read_bytes()
            if entry.name == "index.html":
                data = data.replace(b"{{base}}", f"{prefix}/".encode())
            self._files[entry.name] = (data, kind, f'"{sha256(data).hexdigest()[:16]}"')

    def has(self, parts: tuple[str, ...]) -> bool:
        if len(parts) == 2 and parts[0] == "static":
            return parts[1] in self._files
        return parts[0] in _PAGES

    def answer(self, request: Request, parts: tuple[str, ...]) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise Refusal(405, "bad_method", "Use GET here.", headers={"allow": "GET, HEAD"})
        name = parts[1] if parts[0] == "static" else "index.html"
        data, kind, tag = self._files[name]
        headers = {"etag": tag, "cache-control": "no-cache", "content-security-policy": POLICY}
        if request.header("if-none-match") == tag:
            return Response(304, headers=headers)
        return Response(200, data, kind, headers)
