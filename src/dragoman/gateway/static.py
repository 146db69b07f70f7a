"""The dashboard's files, straight from the package: plain modules and styles, no build step."""

import json
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
    "png": "image/png",
}
# Pages of the dashboard: the same document, the script looks at the path.
_PAGES = frozenset(
    {"", "sessions", "approvals", "approve", "config", "clients", "wire", "fleet", "login"}
)
WORKER = "sw.js"
_FILLED = ("index.html", "manifest.webmanifest", WORKER)
_PROGRAMS = ("api", "hooks", "static")  # what is below is not for people
_LOST = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Nothing here · Dragoman</title>
</head>
<body>
<h1>There is nothing at this address.</h1>
<p><a href="{{base}}">Go to the dashboard</a></p>
</body>
</html>
"""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)


class Static:
    """All files, read once; only these names exist, so no path can lead elsewhere."""

    def __init__(self, prefix: str) -> None:
        self._files: dict[str, tuple[bytes, str, str]] = {}
        self._lost = _LOST.replace("{{base}}", f"{prefix}/").encode()
        root = files("dragoman.gateway").joinpath("static")
        for entry in root.iterdir():
            kind = _TYPES.get(entry.name.rpartition(".")[2])
            if kind is None or not entry.is_file():
                continue
            data = entry.read_bytes()
            if entry.name in _FILLED:
                data = data.replace(b"{{base}}", f"{prefix}/".encode())
            self._put(entry.name, data, kind)
        self._fill_worker()

    def _put(self, name: str, data: bytes, kind: str) -> None:
        self._files[name] = (data, kind, f'"{sha256(data).hexdigest()[:16]}"')

    def _fill_worker(self) -> None:
        """The service worker knows all files; another version of any of them is another worker."""
        data, kind, _ = self._files.pop(WORKER)
        tags = "".join(tag for name, (_, _, tag) in sorted(self._files.items()))
        names = ["", *(f"static/{name}" for name in sorted(self._files) if name != "index.html")]
        data = data.replace(b"{{version}}", sha256(tags.encode()).hexdigest()[:16].encode())
        self._put(WORKER, data.replace(b"{{files}}", json.dumps(names).encode()), kind)

    def has(self, parts: tuple[str, ...]) -> bool:
        if parts == (WORKER,):  # its path says what it may look after: everything below
            return True
        if len(parts) == 2 and parts[0] == "static":
            return parts[1] in self._files
        return parts[0] in _PAGES

    def asked_by_browser(self, request: Request) -> bool:
        """Whether somebody looks for a page, so that a page says that there is none."""
        wants = "text/html" in request.header("accept") and request.method in ("GET", "HEAD")
        return wants and request.parts[0] not in _PROGRAMS

    def answer(self, request: Request, parts: tuple[str, ...]) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise Refusal(405, "bad_method", "Use GET here.", headers={"allow": "GET, HEAD"})
        if not self.has(parts):
            return Response(404, self._lost, _TYPES["html"], {"content-security-policy": POLICY})
        name = parts[1] if parts[0] == "static" else "index.html"
        if parts == (WORKER,):
            name = WORKER
        data, kind, tag = self._files[name]
        headers = {"etag": tag, "cache-control": "no-cache", "content-security-policy": POLICY}
        if request.header("if-none-match") == tag:
            return Response(304, headers=headers)
        return Response(200, data, kind, headers)
