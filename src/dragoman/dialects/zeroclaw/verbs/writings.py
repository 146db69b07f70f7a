"""`personality/*`, `skills/*`, `locales/*`: texts that people write for agents, and languages."""

import asyncio
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput

from ..faults import available
from ..shapes import Params
from ..spelling import verb

if TYPE_CHECKING:
    from dragoman.engine.facts import Writings

    from ..hear import ZeroclawHearer

_BUNDLE = "default"  # we have one folder of skills, so one bundle
_LANGUAGES = {"en": "English"}  # the clients of this family bring its texts themselves
_MAX_CHARS = 20_000


class About(Params, frozen=True):
    agent: str
    filename: str | None = None
    content: str | None = None


class Skill(Params, frozen=True):
    bundle: str | None = None
    name: str | None = None
    frontmatter: dict[str, Any] | None = None
    body: str | None = None


class Locale(Params, frozen=True):
    locale: str
    catalog: tuple[str, ...] | None = None


def _writings(conn: "ZeroclawHearer") -> "Writings":
    return available(conn.door.facts.writings, "Files of agents are")


def _agent(conn: "ZeroclawHearer", params: About) -> str:
    conn.door.profile(params.agent)  # raises UnknownAgent
    return params.agent


def _needed(value: str | None, name: str) -> str:
    if value is None:
        raise BadInput(f"Invalid params: missing field `{name}`")
    return value


async def about(conn: "ZeroclawHearer", params: About) -> Any:
    rows = await asyncio.to_thread(_writings(conn).about, _agent(conn, params))
    files = [
        {"filename": name, "exists": size is not None, "size": size or 0} for name, size in rows
    ]
    return {"agent": params.agent, "files": files, "max_chars": _MAX_CHARS}


async def read_about(conn: "ZeroclawHearer", params: About) -> dict[str, Any]:
    name = _needed(params.filename, "filename")
    text = await asyncio.to_thread(_writings(conn).read_about, _agent(conn, params), name)
    return {"agent": params.agent, "filename": name, "content": text, "exists": text is not None}


async def write_about(conn: "ZeroclawHearer", params: About) -> dict[str, Any]:
    name, text = _needed(params.filename, "filename"), _needed(params.content, "content")
    await asyncio.to_thread(_writings(conn).write_about, _agent(conn, params), name, text)
    return {"agent": params.agent, "filename": name, "saved": True}


async def templates(conn: "ZeroclawHearer", params: About) -> dict[str, Any]:
    _agent(conn, params)
    rows = _writings(conn).templates()
    return {"files": [{"filename": name, "content": text} for name, text in rows]}


def bundles(conn: "ZeroclawHearer", _: None) -> dict[str, Any]:
    return {"bundles": [{"name": _BUNDLE, "skills": len(_writings(conn).skills())}]}


def _bundle(params: Skill) -> str:
    if params.bundle not in (None, "", _BUNDLE):
        raise BadInput(f"There is no bundle {params.bundle}.", f"There is one: {_BUNDLE}.")
    return _BUNDLE


async def skills(conn: "ZeroclawHearer", params: Skill) -> dict[str, Any]:
    bundle = _bundle(params)
    found = await asyncio.to_thread(_writings(conn).skills)
    return {"bundle": bundle, "skills": [{"name": name, "bundle": bundle} for name in found]}


async def read_skill(conn: "ZeroclawHearer", params: Skill) -> dict[str, Any]:
    bundle, name = _bundle(params), _needed(params.name, "name")
    facts, body = await asyncio.to_thread(_writings(conn).read_skill, name)
    told: dict[str, Any] = {
        "name": facts.get("name") or name,
        "description": facts.get("description", ""),
    }
    if "always" in facts:
        told["always"] = facts["always"].lower() in ("true", "yes")
    return {"bundle": bundle, "name": name, "frontmatter": told, "body": body}


async def write_skill(conn: "ZeroclawHearer", params: Skill) -> dict[str, Any]:
    bundle, name = _bundle(params), _needed(params.name, "name")
    given = params.frontmatter or {}
    facts = {"name": name}
    for key, value in given.items():
        if isinstance(value, bool):
            facts[key] = str(value).lower()
        elif isinstance(value, str):
            facts[key] = value
        elif value is not None:
            raise BadInput(f"Invalid params: `frontmatter.{key}` is no text, true or false.")
    await asyncio.to_thread(
        _writings(conn).write_skill, name, {**facts, "name": name}, _needed(params.body, "body")
    )
    return {"bundle": bundle, "name": name, "saved": True}


async def delete_skill(conn: "ZeroclawHearer", params: Skill) -> dict[str, Any]:
    bundle, name = _bundle(params), _needed(params.name, "name")
    await asyncio.to_thread(_writings(conn).delete_skill, name)
    return {"bundle": bundle, "name": name, "deleted": True}


def locales(conn: "ZeroclawHearer", _: None) -> dict[str, Any]:
    return {"locales": [{"code": code, "label": label} for code, label in _LANGUAGES.items()]}


def fetch_locale(conn: "ZeroclawHearer", params: Locale) -> dict[str, Any]:
    """No texts: nothing is fetched from anywhere, and English is what clients bring."""
    if params.locale not in _LANGUAGES:
        known = ", ".join(_LANGUAGES)
        raise BadInput(f"There are no texts in {params.locale!r} here.", f"Known: {known}.")
    return {"locale": params.locale, "catalogs": [], "skipped": list(params.catalog or ())}


VERBS = {
    "personality/list": verb(about, About),
    "personality/get": verb(read_about, About),
    "personality/put": verb(write_about, About),
    "personality/templates": verb(templates, About),
    "skills/bundles": verb(bundles),
    "skills/list": verb(skills, Skill),
    "skills/read": verb(read_skill, Skill),
    "skills/write": verb(write_skill, Skill),
    "skills/delete": verb(delete_skill, Skill),
    "locales/list": verb(locales),
    "locales/fetch": verb(fetch_locale, Locale),
}
