"""A slash command that there is not is told, before it goes to the model as a prompt."""

import os
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from dragoman.engine.faults import BadInput

if TYPE_CHECKING:
    from dragoman.client.host import HostClient

    from .desk import ShownSession

_COMMAND = re.compile(r"/([^\W_][\w:-]{0,63})(?:\s|$)")  # a path has another slash, or a dot


def command(text: str) -> str:
    """The name of the command that a text begins with; nothing where it begins with a path."""
    found = _COMMAND.match(text)
    return found[1] if found is not None and not os.path.lexists(f"/{found[1]}") else ""


async def check(text: str, own: Collection[str], desk: "ShownSession") -> None:
    """Raise BadInput for a command that is neither the terminal's own nor the session's."""
    if not (name := command(text)) or name in own:
        return
    desk.link.want()
    host = await desk.link.ready()
    known = [row.name for row in await desk.link.answered(host.commands(desk.cwd))]
    if name in known or await _has_others(desk, host):
        return
    from dragoman.settings.nearest import nearest

    near = nearest(name, [*own, *known])
    meant = f"; did you mean /{near}?" if near else "."
    raise BadInput(f"There is no command /{name}{meant}", "With a space before it, it is a prompt.")


async def _has_others(desk: "ShownSession", host: "HostClient") -> bool:
    """Whether the agent is a program with commands of its own, which only it knows."""
    rows = await desk.link.answered(host.agents())
    alias = desk.agent or desk.wish.agent
    return any(row.backend != "builtin" for row in rows if row.alias == (alias or rows[0].alias))
