"""What a provider's refusal means: HTTP status and error body → ProviderFailed."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.engine.faults import ProviderFailed

_FULL = (  # compiled when something fails
    r"(?i)prompt is too long|context[_ ]length|context[_ ]window|maximum context"
    r"|exceed_context_size|input token count|maximum number of tokens|too many tokens"
    r"|input is too long|reduce the length|exceeds? the (?:model's )?(?:available )?context"
    # By its words: many servers have a sentence of their own for it.
    r"|context (?:limit|size)|(?:prompt|model|input) (?:token )?(?:length|limit)|token limit"
    r"|(?:prompt|inputs?|request|messages?|payload)\b[^.]{0,60}\b(?:too (?:long|large)|longer than)"
    r"|(?:prompt|inputs?|payload)\b[^.]{0,60}\bexceed|\binputs?\b[^.]{0,40}\btokens\b[^.]{0,40}<="
    r"|number of input tokens|total tokens limit|range of input length"
    # Not of a name or an id: less to read does not make those shorter.
    r"|(?:content|text|input|output|instructions)'?: string too long"
)
_AUTH = r"(?i)api key not valid|invalid api key|api_key_invalid|incorrect api key"
_SHOWN = 500
_BY_TYPE = {
    "overloaded_error": "overloaded",
    "overloaded": "overloaded",
    "server_is_overloaded": "overloaded",
    "unavailable": "overloaded",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "resource_exhausted": "rate_limit",
    "authentication_error": "auth",
    "permission_error": "auth",
    "billing_error": "auth",
    "insufficient_quota": "auth",
    "invalid_api_key": "auth",
    "unauthenticated": "auth",
    "permission_denied": "auth",
    "invalid_request_error": "bad_request",
    "invalid_argument": "bad_request",
    "not_found_error": "bad_request",
    "request_too_large": "context_full",
    "context_length_exceeded": "context_full",
    "exceed_context_size_error": "context_full",
    "model_max_prompt_tokens_exceeded": "context_full",
    "content_policy_violation": "refused",
    "cyber_policy_violation": "refused",
}


class ErrorBody(msgspec.Struct, gc=False):
    """The error object as Anthropic, OpenAI and Google send it, all fields optional."""

    message: str = ""
    type: str | None = None
    code: str | int | None = None
    status: str | None = None
    details: Any = None


def from_response(
    provider: str, status: int, headers: Mapping[str, str], body: bytes, secret: str = ""
) -> ProviderFailed:
    """The failure behind an answer that is not 200."""
    error = _error_in(body)
    text = error.message or body.decode("utf-8", "replace").strip() or "no reason given"
    kind = _kind_of_status(status, error, text)
    return _failed(provider, kind, text, status, _retry_after(headers, error), secret)


def from_event(provider: str, error: ErrorBody | str, secret: str = "") -> ProviderFailed:
    """The failure behind an error inside a stream."""
    if isinstance(error, str):
        error = ErrorBody(message=error)
    text = error.message or "no reason given"
    kind = _kind_of_type(error)
    if isinstance(error.code, int) and error.code >= 400:
        kind = _kind_of_status(error.code, error, text)
    elif kind in (None, "bad_request") and re.search(_FULL, text):
        kind = "context_full"
    return _failed(provider, kind or "server", text, None, _retry_after({}, error), secret)


def _failed(
    provider: str, kind: str, text: str, status: int | None, retry_after: float | None, secret: str
) -> ProviderFailed:
    if len(secret) >= 4:
        text = text.replace(secret, "***")
    text = " ".join(text.split())
    if len(text) > _SHOWN:
        text = text[:_SHOWN] + "…"
    where = f" ({status})" if status else ""
    return ProviderFailed(
        f"{provider} {_SAYS[kind]}{where}: {text}",
        kind,
        status=status,
        retry_after=retry_after,
        hint=_HINTS.get(kind, ""),
    )


_SAYS = {
    "auth": "refused the credential",
    "rate_limit": "limits the rate of requests",
    "overloaded": "is overloaded",
    "server": "failed",
    "network": "cannot be reached",
    "bad_request": "did not accept the request",
    "context_full": "cannot take a context of this length",
    "refused": "refused to answer",
}
_HINTS = {
    "auth": "Check the key and the account.",
    "context_full": "Compact or clear the session.",
}


def _kind_of_type(error: ErrorBody) -> str | None:
    for word in (error.type, error.code, error.status):
        if isinstance(word, str) and word.lower() in _BY_TYPE:
            kind = _BY_TYPE[word.lower()]
            if kind != "bad_request":
                return kind
    return "bad_request" if error.type == "invalid_request_error" else None


def _kind_of_status(status: int, error: ErrorBody, text: str) -> str:
    named = _kind_of_type(error)
    if status in (401, 402, 403) or named == "auth" or (status == 400 and re.search(_AUTH, text)):
        return "auth"
    if named == "context_full" or (status in (400, 413, 422, 500) and re.search(_FULL, text)):
        return "context_full"
    if status == 413:
        return "context_full"
    if status in (503, 529) or named == "overloaded":
        return "overloaded"
    if status == 429:
        return "rate_limit"
    if status >= 500 or status in (408, 409, 425):
        return "server"
    return "refused" if named == "refused" else "bad_request"


def _error_in(body: bytes) -> ErrorBody:
    """The error object inside a body, whatever wraps it; empty when there is none."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ErrorBody()
    if isinstance(value, list):
        value = value[0] if value else {}
    if isinstance(value, dict):
        inner = value.get("error", value.get("detail", value))
        if isinstance(inner, str):
            return ErrorBody(message=inner)
        try:
            return msgspec.convert(inner, ErrorBody, strict=False)
        except msgspec.ValidationError:
            return ErrorBody()
    return ErrorBody()


def _retry_after(headers: Mapping[str, str], error: ErrorBody) -> float | None:
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) * scale)
        except ValueError:
            return _until(value)
    if isinstance(error.details, list):
        for detail in error.details:
            delay = detail.get("retryDelay") if isinstance(detail, dict) else None
            if isinstance(delay, str) and re.fullmatch(r"\d+(\.\d+)?s", delay):
                return float(delay[:-1])
    return None


def _until(date: str) -> float | None:
    import time
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except ValueError:
        return None
