"""Which names and values are secrets, and how they are hidden."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re

HIDDEN = "***"

# Whole words inside a name (split at _ - and .): `max_tokens` is no secret, `auth_token` is.
_SECRET_WORDS = frozenset(
    "key apikey secret secrets password passwd passphrase token authorization auth cookie "
    "credential credentials bearer private signature pat pgpassword".split()
)
_PLAIN_NAMES = frozenset({"key", "idempotency_key", "public_key", "tls_key", "require_token"})

_NAMED = (
    r"token|secret|passw(?:or)?d|passphrase|(?:api|access|secret|account|private)_?key|credentials"
)
_PATTERNS = (
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{12,}",  # the usual shape of provider keys
    r"\bAIza[A-Za-z0-9_-]{20,}",
    r"\b(?:ghp|gho|ghs|ghu|ghr)_[A-Za-z0-9]{20,}",
    r"\b(?:gsk|hf|npm|r8)_[A-Za-z0-9]{30,}",
    r"\b(?:whsec|dop_v1|sntrys)_[A-Za-z0-9+/=_-]{20,}",
    r"\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{12,}",
    # Words have no capitals or no digits. What is looked for in them is near: else a long row of
    # such beginnings would take the square of its length.
    r"\b(?:glpat|xai|pypi|xapp|lin_api|tvly|pplx|nvapi|fw)[-_]"
    r"(?=[A-Za-z_-]{0,80}[0-9])(?=[a-z0-9_-]{0,80}[A-Z])[A-Za-z0-9_-]{20,}",
    r"\bdapi[0-9a-f]{32}\b",
    r"\bAGE-SECRET-KEY-1[A-Z0-9]{20,}",
    r"(?<=hooks\.slack\.com/)[^\s\"']{20,}",
    r"(?<=/api/webhooks/)\d+/[A-Za-z0-9_-]{20,}",
    # Our own: tokens, links that let a browser in, links that answer a question.
    r"\btok_[0-9a-f]{8}_[A-Za-z0-9_-]{20,}",
    r"\blink_[A-Za-z0-9_-]{30,}",
    r"\bask_\w{1,64}\.\d{9,12}\.[A-Za-z0-9_-]{8,64}\.[0-9a-f]{64}\b",
    r"\bya29\.[A-Za-z0-9_-]{20,}",
    r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"(?<!\d)\d{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",  # of a Telegram bot
    # A private key, whatever its lines begin with: numbers of a listing, marks of a quotation.
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-(?!----)[^-]*)*-----END [A-Z ]*PRIVATE KEY-----",
    # Also one that is cut; its ends of lines may be written as in JSON.
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:\s|\\[nr])*(?:[A-Z][A-Za-z-]+: [^\n\\]*(?:\s|\\[nr])+)*"
    r"(?:[A-Za-z0-9+/=]{16,}(?:\s|\\[nr])*)*",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{8,}",
    # JSON web tokens. Where one may begin inside of another, each is looked at for so long only.
    r"\beyJ[A-Za-z0-9_-]{10,2000}+\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",
    # user:password in an address (the password may hold an @), and a long name, which is a key
    r"(?<=://)[^/\s:@?#\"']*:[^/\s?#\"']+(?=@)",
    r"(?<=://)[^/\s:@?#\"']{16,}(?=@)",
    # A header, and a variable of the environment, by their names; of curl also -u.
    r"(?i)\b(?:proxy-)?authorization\\?[\"']?\s*[:=]\s*\\?[\"']?(?:\w+\s+)?[A-Za-z0-9._~+/=:-]{6,}",
    r"(?i)(?<![\w-])(?:x-[\w-]+-(?:key|token|secret)|(?:x-)?api[-_]?key|x-(?:auth|token)|(?:set-)?cookie)"
    r"[\"']?:\s*[^\s\"']{6,}",
    r"\b[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|_PAT)="
    r"(?:[\"'][^\"'\n]{1,400}+(?=[\"'])|[\"']?[^\s\"']+)",
    # A value by its name, in JSON (also inside of a string) and its kind, TOML and programs, in a
    # form, in an assignment: the name stays. What stands in quotes may have blanks.
    rf"(?i)(?P<name>(?:{_NAMED})(?:\\?[\"']?[ \t]{{0,9}}[:=][ \t]{{0,9}}\\?[\"']|=))"
    r"(?:(?<=[\"'])[^\"'\\\n]{6,400}+(?=\\?[\"'])|[^\s\"'&\\]{6,})",
    r"(?<![\w-])(?:-u|--user)[= ]\s*[^\s:]{1,200}+:\S+",
    # A parameter of an address, and a flag of a command line, by their names.
    r"(?i)(?<=[?&])[\w.-]*(?:key|token|secret|passw(?:or)?d|auth|code|sig(?:nature)?)=[^&#\s\"']+",
    r"(?i)(?<![\w-])--(?:\w+-)*"
    r"(?:api-?key|access-?key|token|secret|passw(?:or)?d|passphrase|pat|credentials?)(?:=|\s+)[^\s-]\S*",
)
_compiled = None


def is_secret(name: str) -> bool:
    """Whether a value of this name must not be shown."""
    plain = _snake(name).replace("-", "_").replace(".", "_")
    if plain in _PLAIN_NAMES or plain.endswith("_path") or plain.endswith("_file"):
        return False
    return not _SECRET_WORDS.isdisjoint(plain.split("_"))


def _snake(name: str) -> str:
    """`botToken` as `bot_token`; a name in capitals is one word."""
    if name.islower() or name.isupper():
        return name.lower()
    return "".join(
        f"_{one.lower()}" if one.isupper() and before.islower() else one.lower()
        for before, one in zip(f"_{name}", name, strict=False)
    )


def scrub(text: str) -> str:
    """The text with everything that looks like a key or token hidden."""
    global _compiled
    if len(text) < 12:
        return text
    if _compiled is None:
        import re

        _compiled = re.compile("|".join(f"(?:{one})" for one in _flagless(_PATTERNS)))
    return _compiled.sub(_hide, text)


def _hide(match: "re.Match[str]") -> str:
    return f"{match['name'] or ''}{HIDDEN}"


def _flagless(patterns: tuple[str, ...]) -> list[str]:
    # An inline flag may stand only at the start of a whole expression; scope it instead.
    return [one.replace("(?i)", "(?i:", 1) + ")" if "(?i)" in one else one for one in patterns]


def redact(value: object, name: str = "") -> object:
    """A copy of plain data in which secrets are hidden, by name and by shape."""
    if name and is_secret(name) and value not in (None, "", False, True):
        return HIDDEN if not isinstance(value, Mapping) else dict.fromkeys(value, HIDDEN)
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        if name in ("headers", "env"):  # often a secret, whatever its name is
            return {key: HIDDEN if item else item for key, item in value.items()}
        return {key: redact(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return _list(list(value))
    return value


def _list(items: list[object]) -> list[object]:
    """The items of a list; of a command line also what follows a flag whose name is a secret's."""
    made: list[object] = []
    follows = False
    for item in items:
        flag, equals, given = item.partition("=") if isinstance(item, str) else ("", "", "")
        named = flag.startswith("-") or flag.isidentifier() and equals  # a flag, or a variable
        secret = bool(named) and " " not in flag and is_secret(flag.lstrip("-"))
        if follows and not flag.startswith("-"):
            made.append(HIDDEN)
        else:
            made.append(f"{flag}={HIDDEN}" if secret and given else redact(item))
        follows = secret and not equals
    return made
