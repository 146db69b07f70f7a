"""Random clients of all protocols on shared sessions, with kills, stops and reconnections."""

import asyncio
import random
import signal
from pathlib import Path
from time import monotonic
from typing import Any

from tests.cross.fire.check import answered_id, request_id
from tests.cross.fire.clients import KINDS, Bridge, Client, Native, Piped, Relay, Rpc, Subscriber
from tests.cross.fire.trace import Ashes, Kept, Message, Trace
from tests.cross.house import House

_SESSIONS = 2
_CLIENTS = 7
_ACTIVE = ("running", "starting", "interrupting", "waiting_input")
_LAST = "ashes"  # the title that a session gets when all is over
_AWAY = 5.0  # seconds, more than a relay waits
_QUIET = 90.0  # seconds in which everything that was promised must have come to its end


def _is_last(message: Message) -> bool:
    """Whether a subscriber is told the last event of a session."""
    event = (message.get("result") or {}).get("event") or {}
    return bool((event.get("data") or {}).get("title") == _LAST)


class Fire:
    """One run: a daemon, its clients, and chance."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.house = House(folder)
        self.chance = random.Random(seed)
        self.trace = Trace()
        self.clients: list[Client] = []
        self.sessions: list[str] = []
        self._places: dict[tuple[str, str], int] = {}  # that clients had who left: dialect, session
        self._made = 0
        self._sockets = 0  # that the daemon had when it started
        self._marks = 0

    async def burn(self, seconds: float) -> Ashes:
        # In the file, not in the environment: programs that join the daemon read it as well.
        config = '[agents.default]\nmodel = "demo/demo"\n[gateway]\nport = 0\n'
        (self.house.config / "config.toml").write_text(config)
        commands = self.house.work / ".dragoman" / "commands"
        commands.mkdir(parents=True)
        (commands / "tell.md").write_text("say $ARGUMENTS is here")
        lasting = self.chance.choice((Relay, Bridge))
        self.house.gateway = lasting is Bridge
        await self._start()
        try:
            await self._open()
            await self._pipe(lasting)
            limit = monotonic() + seconds
            while monotonic() < limit:
                await self._act()
                await asyncio.sleep(self.chance.expovariate(60))  # the pace of the clients
            await self._quiet()
            ashes = await self._ashes()
            ashes.sockets = (self._sockets, await self._all_left())
            return ashes
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
                await self._part(leaving)
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
        if roll < 0.42:
            return client.noise()
        if roll < 0.46:
            return client.deed(self.chance.choice(("retract", "retract", "again", "undo", "close")))
        kind = self.chance.choice(("prompt", "prompt", "queue", "queue", "steer"))
        self._marks += 1
        mark = f"m{self._marks}x"
        texts = (
            f"say {mark} is here",
            f"say {mark} counts then count slowly to {self.chance.randint(2, 12)}",
            f"$ echo {mark} >> ran.txt",
            f'write "{mark}" to {mark}.txt',
            f"ask me about {mark}: red, green or blue",
            f"/tell {mark}",
        )
        return client.prompt(mark, self.chance.choice(texts), kind)

    async def _join(self, kind: type[Client]) -> None:
        self._made += 1
        session = self.chance.choice(self.sessions)
        client = kind(self.trace, self._made, session, str(self.house.work))
        client.eager = self.chance.random() < 0.2
        if client.returns and self.chance.random() < 0.6:
            client.since = self._places.get((client.dialect, session), client.since)
        client.wire.since = client.since
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
            await self._part(client)

    async def _part(self, client: Client) -> None:
        """Another one may come back with the place that this one had."""
        self.clients.remove(client)
        await client.close()
        if client.reached is not None:
            self._places[client.dialect, client.session] = client.reached

    async def _end(self, number: signal.Signals) -> None:
        process = self.house.process
        assert process is not None
        process.send_signal(number)
        async with asyncio.timeout(60):
            await process.wait()
        for client in [one for one in self.clients if not one.lasts]:
            await self._part(client)
        self.trace.lives += 1
        if self.chance.random() < 0.2:
            await self._away()
        await self._start()

    async def _away(self) -> None:
        """The daemon stays away for so long that relays go on with hosts of their own."""
        limit = monotonic() + _AWAY
        while monotonic() < limit:
            for client in [one for one in self.clients if one.open]:
                if message := self._message(client):
                    client.write(message)
            await asyncio.sleep(self.chance.expovariate(4))

    async def _start(self) -> None:
        await self.house.start()
        self._sockets = self._count_sockets()

    def _count_sockets(self) -> int:
        assert self.house.process is not None
        found = 0
        for one in Path(f"/proc/{self.house.process.pid}/fd").iterdir():
            try:
                found += str(one.readlink()).startswith("socket:")
            except FileNotFoundError:
                continue  # closed meanwhile
        return found

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
                verdict = {"verdict": "allow"}
                if row["ask"]["kind"] == "question":
                    verdict = {"verdict": "answer", "text": "green"}
                await judge.ask("dragoman/answer", {**seen, **verdict})
            busy = []
            for session in self.sessions:
                facts = (await judge.ask("dragoman/session", {"session_id": session}))["result"]
                status = facts["session"]["status"]
                if facts["busy"] or facts["queued"] or status in _ACTIVE:
                    busy.append((session, status, facts["busy"], facts["queued"], facts["live"]))
            if not pending and not busy and await self._all_here() and self._all_answered():
                return
            await asyncio.sleep(0.05)
        words = [one.words() for one in self.clients if isinstance(one, Piped)]
        raise AssertionError(f"something still runs: {busy}, {pending}, {words}")

    def _all_answered(self) -> bool:
        """Whether nothing is on its way: a program between a client and the daemon may be slow."""
        names = {one.name for one in self.clients if one.open}
        asked, given = set(), set()
        for frame in self.trace.frames:
            if frame.wire in names:
                asked |= {request_id(frame.message)} if frame.out else set()
                given |= set() if frame.out else {answered_id(frame.message)}
        return asked - {None} <= given

    async def _all_here(self) -> bool:
        """Whether the daemon has every session: a relay may still have one on a host of its own."""
        try:
            for session in self.sessions:
                await self.house.zot(session)
        except AssertionError:
            return False
        return True

    async def _ashes(self) -> Ashes:
        own = await self.house.zeroclaw()
        for session in self.sessions:  # the last event of each
            await own.call("dragoman/rename", {"session_id": session, "title": _LAST})
        await self._heard()
        path = self.house.work / "ran.txt"
        ran = path.read_text().split() if path.exists() else []
        found = {session: await self._kept(session) for session in self.sessions}
        return Ashes(found, ran)

    async def _all_left(self) -> int:
        """How many sockets the daemon has when nobody is there any more."""
        for client in self.clients:
            await client.close()
        await self.house.leave()
        limit = monotonic() + 60.0
        while True:
            found = self._count_sockets()
            if found <= self._sockets or monotonic() >= limit:
                return found
            await asyncio.sleep(0.02)

    async def _heard(self) -> None:
        """Wait for subscribers to be told the last event; who never is, is reported later."""
        limit = monotonic() + 60.0
        names = {one.name for one in self.clients if isinstance(one, Subscriber) and one.open}
        while names and monotonic() < limit:
            names -= {f.wire for f in self.trace.frames if not f.out and _is_last(f.message)}
            await asyncio.sleep(0.02)

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
        return Kept(events, said, facts["session"]["status"], await self._told(session))

    async def _told(self, session: str) -> list[Any]:
        """What a subscriber is told who comes at the end."""
        speaker = await self.house.humanlayer(session_id=session, since=0)
        await speaker.until(_is_last)
        told = [(message.get("result") or {}).get("event") or {} for message in speaker.seen]
        return [event for event in told if "seq" in event]
