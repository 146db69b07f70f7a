"""Which agent and model a client's words mean, and what is said when they cannot be had."""

import re

from dragoman.engine.door import Door
from dragoman.engine.faults import Fault, UnknownAgent
from dragoman.engine.ports import AgentProfile

from .faults import Wrong
from .rows import FAMILIES

_NUMBERS = r"\d+"


def agent_of(door: Door, agent: str | None, model: str | None) -> tuple[str, str]:
    """The agent and the word for a model. A model that is called like an agent chooses that agent:

    the protocol's own command has an option for the model only.
    """
    word = (model or "").strip()
    if agent:
        try:
            return door.profile(agent).alias, word
        except UnknownAgent as fault:
            raise Wrong(str(fault)) from None
    if word and word not in FAMILIES and word in door.agents():
        return word, ""
    return door.default_agent() or "", word


def model_of(door: Door, agent: str, word: str) -> tuple[str, str]:
    """The model's reference (empty: the agent's own), and what the client is to be told about it.

    A whole reference that cannot be had is refused. Other words are wishes: commands of this
    protocol send `sonnet` when nobody chose anything, so the agent's own model stands in for it,
    and the client is told.
    """
    if not word:
        return "", ""
    profile = _profile(door, agent)
    if "/" in word:
        try:
            return door.model(word, agent).ref, ""
        except Fault as fault:
            own = f" The agent's own is {profile.model}." if profile is not None else ""
            raise Wrong(
                f"model not available: {fault}", f"Leave it out, or use another.{own}"
            ) from None
    own = profile.model.partition("/")[0] if profile is not None else ""
    for ref in _candidates(door, own, word):
        try:
            found = door.model(ref, agent).ref
        except Fault:
            continue  # no key, or it cannot be asked
        elsewhere = own and ref.partition("/")[0] != own
        return found, f"{word} is {found}: {own} has no such model." if elsewhere else ""
    used = profile.model if profile is not None else "the agent's own"
    return "", f"The model {word} is not available; {used} is used instead."


def _profile(door: Door, agent: str) -> AgentProfile | None:
    try:
        return door.profile(agent)
    except Fault:
        return None  # opening the session says what is wrong with it


def _candidates(door: Door, own: str, word: str) -> list[str]:
    """References that a word may mean: those of the agent's own provider first, newest first."""
    found: list[str] = []
    for provider in dict.fromkeys(name for name in (own, "anthropic", None) if name != ""):
        try:
            models = door.models(provider)
        except Fault:
            continue  # not configured
        if word in FAMILIES:
            fitting = [model for model in models if word in model.id]
            fitting.sort(key=lambda model: _version(model.id), reverse=True)
        else:
            fitting = [model for model in models if model.id == word]
        found += [model.ref for model in fitting]
    return list(dict.fromkeys(found))


def _version(model: str) -> tuple[int, ...]:
    """The version in a model's name; dates in it do not count."""
    return tuple(int(number) for number in re.findall(_NUMBERS, model) if len(number) < 4)
