"""`dragoman acp-bridge`: lines of an editor on stdio become frames of the gateway and back."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import Fault
from dragoman.host import tokens
from dragoman.stdio import dial
from dragoman.stdio.relay import Relay, Way
from dragoman.transports import stdio
from dragoman.transports.loop import Stopping, run
from dragoman.wire.link import Link, Opener

if TYPE_CHECKING:
    from dragoman.cli.parse import Args

_PATIENCE = 60.0  # seconds that a gateway which was there may be away


class GatewayWay(Way):
    """The gateway's WebSocket."""

    label = "the gateway"

    def __init__(self, find: Callable[[], str], token: str, context: Any, agent: str) -> None:
        self._find = find  # where the gateway listens: a host that comes back may have moved
        self._token = token
        self._context = context
        self._agent = agent

    async def connect(self, open: Opener, name: str) -> Link:
        query = {"agent": self._agent, "connection": name}
        return await dial.connect(
            self._find(), self._token, open, context=self._context, query=query
        )


def main(args: "Args") -> int:
    """Run until the editor has left and has all its answers."""
    wire = stdio.claim_stdout()
    try:
        where, loaded = tokens.read(args.config_dir)
        for warning in loaded.warnings:
            print(f"dragoman acp-bridge: {warning}", file=sys.stderr)
        settings = loaded.settings
        dial.check_there(tokens.address(where, settings))  # before a token is made for nobody
        token = dial.find_token(where, settings, args.pair_code or "")
        context = dial.tls(tokens.address(where, settings), where, settings)
        way = GatewayWay(lambda: tokens.address(where, settings), token, context, args.agent or "")
        return run(_serve(wire, way))
    except Fault as fault:
        print(f"dragoman acp-bridge: {fault}", file=sys.stderr)
        return 1


async def _serve(wire: int, way: GatewayWay) -> int:
    relay = Relay("dragoman acp-bridge", way, patience=_PATIENCE)
    Stopping(relay.leave)
    await relay.start(wire)
    code = await relay.over
    await relay.flushed()
    return code
