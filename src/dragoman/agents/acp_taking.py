"""One turn of a hosted agent: what it says becomes our turn, what it asks is answered."""

import asyncio
from typing import Any

import msgspec

from dragoman.engine.content import Prompt, Text, Thinking, ToolCall, Usage
from dragoman.engine.events import Stop
from dragoman.engine.ports import TurnPort, TurnResult
from dragoman.wire.jsonrpc import METHOD_NOT_FOUND

from . import acp_words as words
from .acp_child import Asked
from .acp_serving import SERVED, ChildSeat, Ground, Serving
from .acp_words import Fields, HostedCall

_CANCEL_SECONDS = 3.0
_GONE = "The agent process ended while this call was running; it may have taken effect."
_SILENT = "(the agent said nothing more about this call)"
_STOPS: dict[str, tuple[Stop, str]] = {
    "end_turn": ("end_turn", ""),
    "max_tokens": ("length", ""),
    "refusal": ("refusal", ""),
    "max_turn_requests": ("max_steps", "The agent reached its own limit of steps in one turn."),
    "cancelled": ("aborted", "The agent cancelled the turn by itself."),
}


class Taking(Serving):
    """Takes prompts of one turn."""

    def __init__(self, turn: TurnPort, seat: ChildSeat, ground: Ground) -> None:
        super().__init__(turn, seat, ground)
        self.step = 0
        self._pieces: list[tuple[str, list[str]]] = []
        self._cost = 0.0

    async def prompt(self, content: Prompt) -> TurnResult:
        """Send a prompt and follow it to its end."""
        child = self.child
        images = child.can("promptCapabilities", "image")
        params = {"sessionId": child.session, "prompt": words.prompt_blocks(content, images)}
        self._next_step()
        child.forget_waiting()
        child.listening = True
        prompt = asyncio.ensure_future(child.call("session/prompt", params))
        prompt.add_done_callback(lambda _: child.waiting.put_nowait(None))
        try:
            while True:
                asked = await child.next()
                if asked is not None:
                    await self._take(asked)
                elif prompt.done() or not child.alive:
                    break
            answer = await prompt
            await self._end_requests()
        except asyncio.CancelledError:
            await self._cancel(prompt)
            raise
        except Exception as error:
            await self._fail(prompt, error)
            raise
        finally:
            child.listening = False
            child.forget_waiting()
        stop, problem = _STOPS.get(str(answer.get("stopReason")), ("end_turn", ""))
        await self._close_calls()
        await self._speak(stop, problem)
        return TurnResult(stop, problem)

    # --- what it says ---

    async def _take(self, asked: Asked) -> None:
        method, params = asked.method, asked.params
        if method == "session/update":
            update = params.get("update")
            if isinstance(update, dict):
                await self._update(update)
        elif method == "session/request_permission":
            await self._permission(asked)
        elif method in SERVED:
            self._spawn(asked, SERVED[method](self, asked))
        else:
            self.child.refuse(asked, METHOD_NOT_FOUND, f"Method not found: {method}")

    async def _update(self, update: Fields) -> None:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._piece("text", words.block_text(update.get("content")))
            case "agent_thought_chunk":
                self._piece("thought", words.block_text(update.get("content")))
            case "tool_call" | "tool_call_update":
                await self._call(update)
            case "plan":
                await self.turn.plan(words.plan_of(update))
            case "usage_update":
                match update.get("cost"):
                    case {"amount": int() | float() as amount} if amount > self.seat.cost:
                        self._cost += amount - self.seat.cost
                        self.seat.cost = float(amount)

    def _piece(self, kind: str, text: str) -> None:
        if not text:
            return
        if not self._pieces or self._pieces[-1][0] != kind:
            self._pieces.append((kind, []))
        self._pieces[-1][1].append(text)
        (self.turn.text if kind == "text" else self.turn.thought)(text)

    async def _call(self, update: Fields) -> None:
        call_id = update.get("toolCallId")
        if not isinstance(call_id, str) or not call_id:
            return
        call = self.calls.get(call_id)
        new = call is None
        if call is None:
            call = self.calls[call_id] = HostedCall(call_id)
        if call.ended:
            return
        call.take(update)
        status = str(update.get("status") or "")
        if new:
            await self.announce(call)
        else:
            await self._refine(call, status)
        await self._advance(call, status)

    async def _refine(self, call: HostedCall, status: str) -> None:
        """Keep what the agent says of a call after its first sight: the first time, and its last.

        Agents may send their input word by word; not every word is worth a fact.
        """
        made, known = call.tool_call(), call.known
        if known is None or (made.name, made.args) == (known.name, known.args):
            return
        first = not known.args or known.args.keys() == {"title"}
        if first or status in ("in_progress", "completed", "failed"):
            call.known = made
            await self.turn.hosted.refined(made)

    async def announce(self, call: HostedCall) -> None:
        """The agent's message so far ends with this call."""
        made, turn = call.tool_call(), self.turn
        call.known = made
        turn.call_drafted(made.id, made.name)
        turn.call_args(made.id, msgspec.json.encode(made.args).decode())
        turn.call_ready(made.id)
        await self._speak("tool_use", "", made)
        self._next_step()

    async def _advance(self, call: HostedCall, status: str) -> None:
        running = status in ("in_progress", "completed", "failed")
        if running and not call.started and not call.refused:
            call.started = True
            await self.turn.hosted.began(call.tool_call(), call.kind)
        if status == "in_progress":
            text = call.text()
            if text.startswith(call.said):
                self.turn.hosted.progress(call.id, text[len(call.said) :])
            call.said = text
        elif status in ("completed", "failed"):
            await self._end(call, "done" if status == "completed" else "failed")

    async def _end(self, call: HostedCall, outcome: Any) -> None:
        if call.ended:
            return
        await self._refine(call, "completed")
        call.ended = True
        if call.refused and outcome != "done":
            outcome = "denied"
        self._show_terminals(call)
        content, detail = call.result()
        if outcome == "denied" and not call.text():
            content = (Text(call.refused),)
        await self.turn.hosted.ended(call.tool_call(), outcome, content, detail)

    def _show_terminals(self, call: HostedCall) -> None:
        if call.text():
            return
        for one in call.content:
            match one:
                case {"type": "terminal", "terminalId": str(name)} if name in self.seat.terminals:
                    call.output = self.seat.terminals[name].output()[0]

    async def _close_calls(self) -> None:
        """The turn is over; calls that were left open are closed as well as we know."""
        for call in self.calls.values():
            if not call.ended and not call.text() and not call.refused:
                call.output = _SILENT
            await self._end(call, "denied" if call.refused else "done")

    def _next_step(self) -> None:
        self.step += 1
        self.turn.step_began(self.step)
        self.turn.stream_opened(self.step)

    async def _speak(self, stop: Stop, error: str, *calls: ToolCall) -> None:
        blocks: list[Any] = [
            Text("".join(texts)) if kind == "text" else Thinking("".join(texts))
            for kind, texts in self._pieces
        ]
        self._pieces = []
        cost, self._cost = self._cost, 0.0
        await self.turn.spoke(self.step, (*blocks, *calls), stop, Usage(), cost, error=error)

    # --- the end ---

    async def _cancel(self, prompt: "asyncio.Future[Fields]") -> None:
        """Tell the child, give it a moment, and keep what was said."""
        child = self.child
        child.notify("session/cancel", {"sessionId": child.session})
        await self._end_requests()
        await asyncio.wait({prompt}, timeout=_CANCEL_SECONDS)
        if not prompt.done():  # it does not listen: the next prompt gets a new one
            prompt.cancel()
            await child.close()
        elif not prompt.cancelled():
            prompt.exception()
        for call in self.calls.values():
            call.output = call.output or "aborted: the turn was cancelled"
            await self._end(call, "cancelled")
        if self._pieces:
            await self._speak("aborted", "cancelled")

    async def _fail(self, prompt: "asyncio.Future[Fields]", error: Exception) -> None:
        child = self.child
        await self._end_requests()
        if not prompt.done():
            child.notify("session/cancel", {"sessionId": child.session})
            await asyncio.wait({prompt}, timeout=_CANCEL_SECONDS)
            if not prompt.done():
                prompt.cancel()
                await child.close()
        for call in self.calls.values():
            if not call.ended:
                call.output = call.output or _GONE
                await self._end(call, "unknown" if call.started else "cancelled")
        if self._pieces:
            await self._speak("error", str(error))
