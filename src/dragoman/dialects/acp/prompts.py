"""Prompts as clients send them: one string, or parts of several kinds."""

import binascii
import re
from base64 import b64decode
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from dragoman.engine.content import Image, Prompt, Text, picture_type
from dragoman.engine.faults import BadInput

_decode = msgspec.json.Decoder().decode
_LINES = re.compile(r"L?(\d{1,9})(?:C\d+)?(?:[:-]L?(\d{1,9})(?:C\d+)?)?")  # #L10, #L10:20, #L10-L20
_BLOB_LIMIT = 10 * 1024 * 1024


def read_prompt(raw: msgspec.Raw, *, vision: bool, strict: bool = False) -> Prompt:
    """The prompt for the engine. Raises BadInput for what cannot be used.

    `strict`: every part says of what type it is, as version 2 wants it.
    """
    if not raw:
        raise BadInput("Missing required parameter: prompt")
    given = _decode(raw)
    if isinstance(given, str) and not strict:
        return (Text(given),)
    if not isinstance(given, list):
        raise BadInput("Parameter 'prompt' must be a string or an array of content parts")
    read: list[str | Image] = []
    for place, part in enumerate(given):
        if strict and not (isinstance(part, dict) and isinstance(part.get("type"), str)):
            raise BadInput(f"prompt[{place}] must be an object with a type")
        read.append(_read_part(part, f"prompt[{place}]", vision))
    if not read:
        raise BadInput("Parameter 'prompt' array must contain at least one text part")
    texts = [one for one in read if isinstance(one, str)]
    said: Prompt = (Text("\n\n".join(texts)),) if texts else ()
    return (*said, *(one for one in read if isinstance(one, Image)))


def _read_part(part: object, at: str, vision: bool) -> str | Image:
    if not isinstance(part, dict):
        raise BadInput(f"{at} must be an object", 'For example {"type":"text","text":"hello"}.')
    kind = part.get("type")
    if kind is None:
        kind = "resource" if "resource" in part and "text" not in part else "text"
    match kind:
        case "text":
            return _string(part, "text", at)
        case "resource":
            return _read_resource(part.get("resource"), f"{at}.resource", vision)
        case "resource_link":
            return _link(part, at)
        case "image":
            if not vision:
                raise BadInput(
                    f"{at}: the model of this session cannot see images",
                    "Choose another model, or leave the image out.",
                )
            return _picture(_bytes(part.get("data"), f"{at}.data"), f"{at}.data")
        case _:
            raise BadInput(
                f"{at}: content of type {kind!r} is not supported",
                "Use text, resource or resource_link.",
            )


def _read_resource(resource: object, at: str, vision: bool) -> str | Image:
    if not isinstance(resource, dict):
        raise BadInput(f"{at} must be an object")
    uri = resource.get("uri")
    name = f"{_place(uri)}:\n" if isinstance(uri, str) and uri else ""
    text = resource.get("text")
    if isinstance(text, str):
        return name + text
    if "blob" not in resource:
        raise BadInput(f"{at} has neither text nor blob")
    data = _bytes(resource["blob"], f"{at}.blob")
    mime = str(resource.get("mimeType") or "")
    if mime.startswith("image/") and vision:
        return _picture(data, f"{at}.blob")
    try:
        return name + data.decode()
    except UnicodeDecodeError:
        raise BadInput(
            f"{at}: a file of type {mime or 'unknown'} cannot be read as text",
            "Send a resource_link, so that the agent can open the file itself.",
        ) from None


def _picture(data: bytes, at: str) -> Image:
    """A picture, by what it is and not by what it is called.

    Models refuse a conversation with a broken one in it, now and in every later turn.
    """
    kind = picture_type(data)
    if not kind:
        raise BadInput(f"{at} is no picture that models see", "Send PNG, JPEG, GIF or WebP.")
    return Image(kind, data)


def _link(part: dict[str, Any], at: str) -> str:
    uri = _string(part, "uri", at)
    name = part.get("title") or part.get("name")
    place = _place(uri)
    return f"[{name}]({place})" if isinstance(name, str) and name and name != place else place


def _place(uri: str) -> str:
    """What a URI points at, as a path where it is a file: `/app/page.tsx:10-20 (symbol Page)`."""
    scheme, _, rest = uri.partition("://")
    if scheme.lower() != "file":
        return uri
    rest, _, fragment = rest.partition("#")
    path, _, query = rest.partition("?")
    if path.lower().startswith("localhost/"):
        path = path[len("localhost") :]
    place = unquote(path)
    if lines := _LINES.fullmatch(fragment):
        first, last = lines.groups()
        place += f":{first}-{last}" if last and last != first else f":{first}"
    symbol = next((value for key, value in parse_qsl(query) if key == "symbol"), "")
    return f"{place} (symbol {symbol})" if symbol else place


def _string(part: dict[str, Any], key: str, at: str) -> str:
    value = part.get(key)
    if not isinstance(value, str):
        raise BadInput(f"{at}.{key} must be a string")
    return value


def _bytes(value: object, at: str) -> bytes:
    if not isinstance(value, str):
        raise BadInput(f"{at} must be base64 text")
    try:
        data = b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise BadInput(f"{at} is not base64") from None
    if len(data) > _BLOB_LIMIT:
        raise BadInput(f"{at} is larger than 10 MiB", "Send a resource_link instead.")
    return data
