"""Random clients of all protocols on shared sessions, with kills, stops and reconnections."""

import asyncio
import random
import signal
from pathlib import Path
from time import monotonic
from typing import Any

from tests.cross.fire.clients import KINDS, Client, Native, Piped, Relay, Rpc
from tests.cross.fire.trace import Ashes, Kept, Trace
from tests.cross.house import House

_SESSIONS = 2
_CLIENTS = 7
_ACTIVE = ("running", "starting", "interrupting", "waiting_input")
_QUIET = 90.0  # seconds in which everything that was promised must have come to its end


class Fire:
    """One run: a daemon, its clients, and chance."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.house = House(folder)
        self.chance = random.Random(seed)
        self.trace = Trace()
        self.clients: list[Client] = []
        self.sessions: list[str] = []
        self._made = 0
        self._marks = 0

    async def burn(self, seconds: float) -> Ashes:
        # In the file, not in the environment: programs that join the daemon read it as well.
        (self.house.config / "config.toml").write_text('[agents.default]\nmodel = "demo/demo"\n')
        await self.house.start()
        try:
            await self._open()
            await self._pipe(Relay)
            limit = monotonic() + seconds
            while monotonic() < limit:
                await self._act()
                await asyncio.sleep(self.chance.expovariate(60))  # the pace of the clients
            await self._quiet()
            return await self._ashes()
        finally:
            for client in self.clients:
                await client.close()
            await self.house.close()

    async def _open(self) -> None:
        speaker = await self.house.zeroclaw()
        for _ in range(_SESSIONS):
            params = {"cwd": str(self.house.work), "mode": "supervised"}
            self.sessions.append((await speaker.call("dragoman/open", params))["session"]["id"])

    async def _act(self) -> None:
        await self._tidy()
        roll = self.chance.random()
        if roll < 0.004:
            await self._end(signal.SIGKILL)
        elif roll < 0.008:
            await self._end(signal.SIGTERM)
        elif roll < 0.011:
            await self._pipe(Rpc)
        elif len(self.clients) < 3 or (roll < 0.06 and len(self.clients) < _CLIENTS):
            await self._join(self.chance.choice(KINDS))
        elif roll < 0.09:
            leaving = self.chance.choice(self.clients)
            if not leaving.lasts:
                self.clients.remove(leaving)
                await leaving.close()
        else:
            client = self.chance.choice(self.clients)
            many = 3 if self.chance.random() < 0.15 else 1
            found = [message for _ in range(many) if (message := self._message(client))]
            client.write(*found)

    def _message(self, client: Client) -> Any:
        roll = self.chance.random()
        if client.asks and roll < 0.5:
            ask = client.asks.pop(self.chance.randrange(len(client.asks)))
            return client.answer(ask, self.chance.random() < 0.7)
        if roll < 0.12:
            return client.cancel()
        if roll < 0.45:
            return client.noise()
        kind = self.chance.choice(("prompt", "prompt", "queue", "queue", "steer"))
        self._marks += 1
        mark = f"m{self._marks}x"
        texts = (
            f"say {mark} is here",
            f"say {mark} counts then count slowly to {self.chance.randint(2, 12)}",
            f"$ echo {mark} >> ran.txt",
            f'write "{mark}" to {mark}.txt',
        )
        return client.prompt(mark, self.chance.choice(texts), kind)

    async def _join(self, kind: type[Client]) -> None:
        self._made += 1
        session = self.chance.choice(self.sessions)
        client = kind(self.trace, self._made, session, str(self.house.work))
        await client.connect(self.house.socket(client.socket))
        self.clients.append(client)

    async def _pipe(self, kind: type[Piped]) -> None:
        self._made += 1
        session = self.chance.choice(self.sessions)
        client = kind(self.trace, self._made, session, str(self.house.work))
        try:
            await client.connect(str(self.house.config))
        except EOFError:  # a relay has the session on a host of its own just now
            await client.close()
            return
        self.clients.append(client)

    async def _tidy(self) -> None:
        for client in [one for one in self.clients if not one.open]:
            self.clients.remove(client)
            await client.close()

    async def _end(self, number: signal.Signals) -> None:
        process = self.house.process
        assert process is not None
        process.send_signal(number)
        async with asyncio.timeout(30):
            await process.wait()
        for client in [one for one in self.clients if not one.lasts]:
            self.clients.remove(client)
            await client.close()
        self.trace.lives += 1
        await self.house.start()

    # --- the end ---

    async def _quiet(self) -> None:
        """Answer every question until nothing runs and nothing waits."""
        self._made += 1
        judge = Native(self.trace, self._made, self.sessions[0], str(self.house.work))
        await judge.connect(self.house.socket("daemon"))
        self.clients.append(judge)
        limit = monotonic() + _QUIET
        while monotonic() < limit:
            pending = (await judge.ask("dragoman/approvals", {}))["result"]["approvals"]
            for row in pending:
                seen = {"id": row["ask"]["id"], "digest": row["ask"].get("digest", "")}
                await judge.ask("dragoman/answer", {**seen, "verdict": "allow"})
            busy = []
            for session in self.sessions:
                facts = (await judge.ask("dragoman/session", {"session_id": session}))["result"]
                status = facts["session"]["status"]
                if facts["busy"] or facts["queued"] or status in _ACTIVE:
                    busy.append((session, status, facts["busy"], facts["queued"], facts["live"]))
            if not pending and not busy and await self._all_here():
                return
            await asyncio.sleep(0.05)
        said = [one.words() for one in self.clients if isinstance(one, Piped)]
        raise AssertionError(f"something still runs: {busy}, {pending}, {said}")

    async def _all_here(self) -> bool:
        """Whether the daemon has every session: a relay may still have one on a host of its own."""
        try:
            for session in self.sessions:
                await self.house.zot(session)
        except AssertionError:
            return False
        return True

    async def _ashes(self) -> Ashes:
        path = self.house.work / "ran.txt"
        ran = path.read_text().split() if path.exists() else []
        found = {session: await self._kept(session) for session in self.sessions}
        return Ashes(found, ran)

    async def _kept(self, session: str) -> Kept:
        own = await self.house.zeroclaw()
        events: list[Any] = []
        while True:
            after = events[-1]["seq"] if events else 0
            page = await own.call("dragoman/history", {"session_id": session, "after": after})
            events += page["events"]
            if not page["more"]:
                break
        facts = await own.call("dragoman/session", {"session_id": session})
        said = {"native": [], "zot": [], "humanlayer": []} | {"acp": []}
        for told in events:
            event = told["event"]
            if event["type"] == "spoke":
                said["native"] += [b["text"] for b in event["content"] if b["type"] == "text"]
        zot = await self.house.zot(session)
        for message in (await zot.command("get_messages"))["messages"]:
            if message["role"] == "assistant":
                said["zot"] += [b["text"] for b in message["content"] if b["type"] == "text"]
        human = await self.house.speaker("humanlayer")
        told = (await human.call("getConversation", {"session_id": session}))["events"]
        said["humanlayer"] = [
            one["content"]
            for one in told
            if one["event_type"] == "message" and one["role"] == "assistant"
        ]
        acp = await self.house.acp()
        of = {"sessionId": session, "cwd": str(self.house.work), "mcpServers": []}
        await acp.call("session/load", of)
        for message in acp.seen:
            update = (message.get("params") or {}).get("update") or {}
            if update.get("sessionUpdate") == "agent_message_chunk":
                said["acp"].append(update["content"]["text"])
        return Kept(events, said, facts["session"]["status"])
