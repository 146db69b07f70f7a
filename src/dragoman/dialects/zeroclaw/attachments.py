"""Files that come with a prompt: kept below the session's folder, named to the agent."""

import asyncio
import os
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.content import Image, Text
from dragoman.engine.faults import BadInput

from .shapes import File

if TYPE_CHECKING:
    from .hear import ZeroclawHearer

PER_FILE = 10 * 1024 * 1024
PER_CALL = 20 * 1024 * 1024
MOST = 32
_FOLDER = "uploads"
_SEEN = ("image/png", "image/jpeg", "image/gif", "image/webp")  # what models take as pictures
LOCAL = ("unix", "pipe", "stdio", "memory")


class KeptFile(msgspec.Struct, frozen=True):
    """A file that was taken."""

    ref_id: str
    marker: str
    workspace_path: str
    size_bytes: int
    deduplicated: bool
    mime_type: str
    data: bytes


async def take(conn: "ZeroclawHearer", cwd: str, files: Sequence[File]) -> list[KeptFile]:
    """Read and keep files; all of them or none. Raises BadInput."""
    if len(files) > MOST:
        raise BadInput(f"Invalid params: {len(files)} files; {MOST} are allowed at once.")
    local = conn.link.peer.transport in LOCAL
    return await asyncio.to_thread(_take, cwd, files, local)


async def contents(
    conn: "ZeroclawHearer", session_id: str, cwd: str, prompt: str, files: Sequence[File]
) -> tuple[Any, ...]:
    """A prompt with its files: markers after the text, and pictures the model can see."""
    kept = await take(conn, cwd, files)
    text = "\n".join([*([prompt] if prompt.strip() else []), *(one.marker for one in kept)])
    live = conn.door.live(session_id)
    pictures: list[Image] = []
    if live is not None and live.vision:
        pictures = [Image(k.mime_type, k.data) for k in kept if k.mime_type in _SEEN]
    return (Text(text), *pictures)


def _take(cwd: str, files: Sequence[File], local: bool) -> list[KeptFile]:
    read = [_read(file, f"files[{place}]", local) for place, file in enumerate(files)]
    if sum(len(data) for data, _, _ in read) > PER_CALL:
        raise BadInput(f"Invalid params: the files have more than {PER_CALL} bytes together.")
    return [_keep(cwd, *one) for one in read]


def _read(file: File, at: str, local: bool) -> tuple[bytes, str, str]:
    """The bytes, name and type of one file."""
    name = os.path.basename(file.filename or file.path or "") or "attachment"
    if file.data_b64 is not None:
        if len(file.data_b64) > PER_FILE * 4 // 3 + 4:
            raise BadInput(f"Invalid params: {at} is larger than {PER_FILE} bytes.")
        try:
            data = b64decode(file.data_b64, validate=True)
        except (NotBase64, ValueError):
            raise BadInput(f"Invalid params: {at}.`data_b64` is not base64.") from None
    elif file.path is not None:
        if not local:
            raise BadInput(f"Invalid params: {at}: paths are for clients on this machine.")
        if not os.path.isabs(file.path) or "\0" in file.path:
            raise BadInput(f"Invalid params: {at}.`path` must be absolute.")
        data = _load(file.path, at)
    else:
        raise BadInput(f"Invalid params: {at} has neither `path` nor `data_b64`.")
    if len(data) > PER_FILE:
        raise BadInput(f"Invalid params: {at} is larger than {PER_FILE} bytes.")
    return data, name, file.mime_type or _type_of(name)


def _load(path: str, at: str) -> bytes:
    try:
        if not os.path.isfile(path):
            raise BadInput(f"Invalid params: {at}: {path} is no file.")
        with open(path, "rb") as source:
            return source.read(PER_FILE + 1)
    except OSError as trouble:
        raise BadInput(f"Invalid params: {at}: {path}: {trouble.strerror}.") from None


def _type_of(name: str) -> str:
    from mimetypes import guess_type

    return guess_type(name)[0] or "application/octet-stream"


def _keep(cwd: str, data: bytes, name: str, mime_type: str) -> KeptFile:
    digest = sha256(data).hexdigest()
    ending = os.path.splitext(name)[1]
    safe = ending[1:].isalnum() and ending.isascii() and len(ending) <= 16
    folder = os.path.join(cwd, _FOLDER)
    path = os.path.join(folder, digest + (ending.lower() if safe else ""))
    there = os.path.exists(path)
    if not there:
        beside = f"{path}.{os.getpid()}.new"
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "wb") as out:
                out.write(data)
            os.replace(beside, path)
        except OSError as trouble:
            raise BadInput(f"The file cannot be kept in {folder}: {trouble.strerror}.") from None
    shown = name.replace("]", "_").replace("\n", " ")
    picture = mime_type.startswith("image/")
    marker = f"[IMAGE:{path}]" if picture else f"[Document: {shown}] {path}"
    return KeptFile(f"sha256:{digest}", marker, path, len(data), there, mime_type, data)
