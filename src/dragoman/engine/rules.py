"""Answers that are remembered: what each covers, for how long, and which of them allow a call.

A rule never covers more than its words say. It is compared with the call as it will run: commands
by their argv, and only where policy could read every program of the command; files by their
canonical path; everything else by the whole arguments. Rules are kept in the store, never in the
workspace, and are read anew for every question, so a withdrawn rule is gone at once.
"""

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from .ask import LASTS, Access, Ask, Lasts, Rule, Scope, Seen, Who
from .content import ToolCall
from .faults import BadInput, StoreFailed, TooMany, UnknownRule
from .ids import token
from .ports import Clock, Judgement, Reach, Store, row_of
from .state import State
from .traits import StartedBy
from .visible import on_a_line

Place = tuple[str, Access]  # a canonical path, and what is done there
_SPACE = "rules"
SHELLS = frozenset({"bash", "shell"})
_MOST = 2_000  # rules that are kept
_UNREADABLE = "what cannot be read: it is damaged, or a newer version wrote it"
_FRESH = 1.0  # seconds for which it is believed that no rule denies anything


def reaches(rule: Rule, state: State) -> bool:
    """Whether a rule holds in this session at all."""
    if rule.agent != state.agent:
        return False
    if rule.lasts == "session":
        # What a session may not do, its children may not do for it.
        above = StartedBy.of(state.extra).session if rule.deny else ""
        return rule.session in (state.id, above)
    return rule.lasts == "agent" or rule.project == project_of(state)


def project_of(state: State) -> str:
    return os.path.realpath(state.cwd)


def digest_of(call: ToolCall, cwd: str, seen: Sequence[Seen], reach: Sequence[Reach] = ()) -> str:
    """Stands for what runs, where, against which files, and what it may touch outside."""
    from hashlib import sha256

    place = os.path.realpath(cwd)
    parts = [call.name, hash_of(call.args), place, *(f"{one.path}\0{one.hash}" for one in seen)]
    parts += [f"{one.path}\0{one.write}" for one in reach]
    return sha256("\0\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def hash_of(args: dict[str, Any] | None) -> str:
    """Stands for arguments: the same for the same values, however their keys are ordered."""
    from hashlib import sha256
    from json import dumps  # unlike msgspec's it tells lone surrogates apart

    return sha256(dumps(args or {}, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def chosen(ask: Ask, scope: str, lasts: str) -> tuple[Scope, Lasts]:
    """The scope an answer names; without a name the narrowest one. Raises BadInput."""
    if ask.firm:
        raise BadInput(
            f"{ask.tool} is asked about every time (always_ask): nothing can be remembered.",
            "Allow it once.",
        )
    if not ask.scopes:
        raise BadInput("This answer cannot be remembered.", "Allow or deny it once.")
    found = next((one for one in ask.scopes if one.id == scope), None) if scope else ask.scopes[0]
    if found is None:
        known = ", ".join(one.id for one in ask.scopes)
        raise BadInput(f"'{scope}' is not a scope of this question.", f"Use one of: {known}.")
    if lasts and lasts not in LASTS:
        raise BadInput(f"'{lasts}' is no time to remember.", f"Use one of: {', '.join(LASTS)}.")
    kept: Lasts = lasts or found.lasts[0]
    if kept not in found.lasts:
        known = ", ".join(found.lasts)
        raise BadInput(f"This cannot be remembered for '{kept}'.", f"Use one of: {known}.")
    return found, kept


def refusing(ask: Ask, scope: str, lasts: str) -> tuple[Scope, Lasts]:
    """The scope of a refusal; without a name the whole tool, which is on the safe side."""
    tool = Scope("tool", "tool", f"this tool: {on_a_line(ask.tool)}")
    if not any(one.id == "tool" for one in ask.scopes):
        ask = msgspec.structs.replace(ask, scopes=(*ask.scopes, tool))
    return chosen(msgspec.structs.replace(ask, firm=False), scope or "tool", lasts)


class Rules:
    """The remembered answers of a host."""

    __slots__ = ("_clock", "_denies", "_looked", "_store")

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._denies = False  # whether one of them denies, when it was last looked
        self._looked = -_FRESH

    async def deny_any(self) -> bool:
        """Whether any rule denies something: most hosts have none, and then little is read.

        Other processes and nodes add rules, too, so what was found is not believed for long.
        """
        if self._clock.monotonic() - self._looked >= _FRESH:
            await self.all()
        return self._denies

    async def all(self) -> list[Rule]:
        """Every rule, oldest first; one that cannot be read is there to be withdrawn."""
        found = [_read(key, value) for key, value in await self._store.pairs(_SPACE)]
        self._denies = any(rule.deny for rule in found)
        self._looked = self._clock.monotonic()
        return sorted(found, key=lambda rule: (rule.at, rule.id))

    async def room(self) -> None:
        """Raises TooMany when no more can be remembered."""
        if len(await self._store.pairs(_SPACE)) >= _MOST:
            raise TooMany(
                f"{_MOST} answers are remembered already.",
                "Withdraw some: dragoman approvals rules remove ID.",
            )

    def made(
        self, ask: Ask, scope: Scope, lasts: Lasts, state: State, *, deny: bool, by: Who | None
    ) -> Rule:
        """The rule that an answer makes; `keep` stores it."""
        return Rule(
            id=f"rule_{token()}",
            kind=scope.kind,
            tool=ask.tool,
            words=scope.words,
            lasts=lasts,
            agent=state.agent,
            session=state.id if lasts == "session" else "",
            project=project_of(state) if lasts == "project" else "",
            deny=deny,
            argv=scope.argv,
            path=scope.path,
            access=scope.access,
            args=hash_of(ask.args) if scope.kind == "exact" else "",
            reach=scope.reach,
            at=self._clock.now_ms(),
            by=by,
            ask=ask.id,
        )

    async def keep(self, rule: Rule) -> None:
        await self._store.put(_SPACE, rule.id, msgspec.json.encode(rule))
        self._looked = -_FRESH

    async def remove(self, rule_id: str) -> Rule:
        """Withdraw a rule; it counts no more, from now on. Raises UnknownRule."""
        data = await self._store.get(_SPACE, rule_id)
        if data is None:
            raise UnknownRule(f"rule not found: {rule_id}", "List them: dragoman approvals rules.")
        await self._store.put(_SPACE, rule_id, None)
        return _read(rule_id, data)

    async def forget(self, session_id: str) -> None:
        """A session is gone, and with it what was remembered for it."""
        for key, value in await self._store.pairs(_SPACE):
            rule = _read(key, value)
            if rule.session == session_id:
                await self._store.put(_SPACE, rule.id, None)

    async def about(self, call: ToolCall, judgement: Judgement, state: State) -> Sequence[Rule]:
        """The rules that decide about a call: one that denies it, or those that allow all of it.

        Raises StoreFailed for one that cannot be read.
        """
        found = await self.all()
        for rule in found:
            if rule.words == _UNREADABLE:
                raise StoreFailed(
                    f"The remembered answer {rule.id} cannot be read, so nobody knows what it"
                    " denies.",
                    f"Withdraw it: dragoman approvals rules remove {rule.id}",
                )
        reaching = [rule for rule in found if reaches(rule, state)]
        if not reaching:
            return ()
        args = hash_of(call.args)
        for rule in reaching:
            if rule.deny and _covers_some(rule, call, judgement, args):
                return (rule,)
        if judgement.firm:
            return ()
        return _allowing([rule for rule in reaching if not rule.deny], call, judgement, args)


def _read(id: str, data: bytes) -> Rule:
    """A rule as it was kept; of one that cannot be read only the id is known."""
    return row_of(data, Rule) or Rule(id, "tool", "", _UNREADABLE, "agent", "", deny=True)


def _allowing(
    rules: Sequence[Rule], call: ToolCall, judgement: Judgement, args: str
) -> Sequence[Rule]:
    """The rules that together cover the call, and every place outside that it needs."""
    own = [rule for rule in rules if rule.tool == call.name]
    outside: list[Place] = [(one.path, access_of(one)) for one in judgement.reach]
    for rule in own:
        # The same words may lead elsewhere since: a link, a folder that has moved.
        if rule.kind == "exact" and rule.args == args and set(outside) <= set(rule.reach):
            return (rule,)
    beyond = _each(rules, outside, _holds)
    if outside and not beyond:
        return ()
    whole = next((rule for rule in own if rule.kind == "tool"), None)
    if whole is not None:
        return (whole, *beyond)
    if judgement.commands:
        found = _each(own, judgement.commands, _begins)
    elif call.name in SHELLS:
        return ()
    elif judgement.files:
        found = _each(rules, [(path, judgement.access) for path in judgement.files], _holds)
    else:
        return beyond
    return (*found, *beyond) if found else ()


def _each(rules: Sequence[Rule], things: Sequence[Any], covers: Any) -> Sequence[Rule]:
    """The rules that cover all things together; none when one of them is not covered."""
    found: dict[str, Rule] = {}
    for thing in things:
        rule = next((rule for rule in rules if covers(rule, thing)), None)
        if rule is None:
            return ()
        found[rule.id] = rule
    return tuple(found.values())


def _begins(rule: Rule, argv: tuple[str, ...]) -> bool:
    return rule.kind == "prefix" and bool(rule.argv) and argv[: len(rule.argv)] == rule.argv


def access_of(reach: Reach) -> Access:
    return "write" if reach.write else "read"


def _holds(rule: Rule, place: Place) -> bool:
    path, access = place
    if rule.access != access or not rule.path:
        return False
    if rule.kind == "file":
        return path == rule.path
    if rule.kind != "folder":
        return False
    itself = access == "read" and path == rule.path  # what is in a folder may be listed
    return itself or path.startswith(rule.path.rstrip("/") + "/")


def _covers_some(rule: Rule, call: ToolCall, judgement: Judgement, args: str) -> bool:
    """A refusal counts as soon as it covers a part of the call."""
    if rule.kind in ("file", "folder"):
        touched: list[Place] = [(path, judgement.access) for path in judgement.files]
        touched += [(one.path, access_of(one)) for one in judgement.reach]
        return any(_holds(rule, place) for place in touched)
    if rule.tool != call.name:
        return False
    if rule.kind == "prefix":
        return any(_begins(rule, argv) for argv in judgement.commands)
    return rule.kind == "tool" or rule.args == args
