"""One HTTP/1.1 connection on asyncio.Protocol; the grammar is h11's.

Everything has a bound: the head in bytes and seconds, the body in bytes and seconds, a silent
connection in seconds, what is read ahead in bytes. A client that breaks a bound is told once and
cut off.
"""

import asyncio
from typing import Any

import h11

from .http import (
    REASONS,
    Answer,
    Refusal,
    Request,
    Response,
    Stream,
    Takeover,
    joined,
    problem,
)
from .outlet import Doorkeeper, Outlet, ServerNeeds

MAX_HEAD = 32 * 1024
HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
IDLE_SECONDS = 75.0
STALL_SECONDS = 60.0  # for a client that takes nothing of a finished answer
LINGER_SECONDS = 2.0  # for a client that still sends what we have refused
READ_AHEAD = 64 * 1024


class Connection(asyncio.Protocol):
    """One client's connection."""

    __slots__ = (
        "_ahead", "_body", "_ended", "_h11", "_held", "_idle", "_limit", "_linger",
        "_method", "_outlet", "_owner", "_peers_user", "_request", "_rules", "_task", "_timer",
        "_tools", "keeper", "lost", "paused", "peer", "secure", "token_id", "transport", "welcome",
    )  # fmt: skip

    def __init__(self, rules: ServerNeeds, secure: bool, keeper: Doorkeeper | None = None) -> None:
        self._rules = rules
        self.keeper: Doorkeeper = keeper or rules
        self.secure = secure
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._request: Request | None = None
        self._method = ""  # of the head that is answered next, whether it becomes a request or not
        self._body = bytearray()
        self._limit = 0
        self._idle = False  # waits for the first byte of a further request
        self._ended = False  # the client will send nothing more
        self._linger = False  # has said its last word and only reads on
        self._task: Any = None
        self._outlet: Outlet | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ahead = 0
        self._held = False
        self._owner: bool | None = None  # whether it comes from a program of the owner's, if known
        self._tools: bool | None = None  # whether it comes from one that a tool started, if known
        self._peers_user: int | None = None
        self.lost = False
        self.paused = False
        self.token_id = ""
        self.welcome = False  # somebody we know
        self.peer = ""
        self.transport: Any = None

    # --- asyncio's side ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        name = transport.get_extra_info("peername") or ("unknown", 0)
        self.peer = f"{name[0]}:{name[1]}"
        if not self._rules.joined(self):
            self._refuse(503, "too_many", "Too many connections are open.")
            return
        self._wait(HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        if self.lost or self._linger:
            return
        if self._idle:  # the patience for a silent client is not that for a slow one
            self._idle = False
            self._wait(HEAD_SECONDS)
        if self._task is not None or self._outlet is not None:
            # Busy: the next request waits, and only so much of it.
            self._ahead += len(data)
            if self._ahead > READ_AHEAD and not self._held:
                self._held = True
                self.transport.pause_reading()
        self._h11.receive_data(data)
        if self._task is None and self._outlet is None:
            self._read()

    def eof_received(self) -> bool:
        if self._outlet is not None:  # nobody listens to the stream any more
            self.transport.close()
            return False
        if self._task is None or self._linger:
            return False
        self._ended = True
        return True  # answer what was asked, then close

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._quiet()
        if self._task is not None and self._request is not None and not self._request.mutates:
            self._task.cancel()  # what changes something is done to its end, heard or not
        if self._outlet is not None:
            self._outlet.lost()
            self._outlet = None
        self._rules.left(self)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        if self._outlet is not None:
            self._outlet.resumed()

    # --- reading ---

    def _read(self) -> None:
        try:
            while not self.lost:
                event = self._h11.next_event()
                if event is h11.NEED_DATA:
                    if self._h11.they_are_waiting_for_100_continue and self._request is not None:
                        self._send(h11.InformationalResponse(status_code=100, headers=[]))
                    return
                if event is h11.PAUSED:
                    return
                if isinstance(event, h11.Request):
                    if not self._begin(event):
                        return
                elif isinstance(event, h11.Data):
                    self._body += event.data
                    if len(self._body) > self._limit:
                        text = f"The body may have {self._limit} bytes."
                        self._refuse(413, "too_large", text)
                        return
                elif isinstance(event, h11.EndOfMessage):
                    self._finish()
                    return
                elif isinstance(event, h11.ConnectionClosed):
                    self.transport.close()
                    return
        except h11.RemoteProtocolError as trouble:
            status = trouble.error_status_hint or 400
            self._refuse(status, "bad_request", f"This is not HTTP we understand: {trouble}")
        except Refusal as refusal:
            self._answer_now(refusal.response(), close=True)

    def _begin(self, event: h11.Request) -> bool:
        """The head is there: look whether this client may do that before reading on."""
        self._method = event.method.decode("ascii")
        if event.http_version not in (b"1.1", b"1.0"):
            raise Refusal(505, "bad_version", "HTTP/1.1 is spoken here.")
        if sum(len(name) + len(value) for name, value in event.headers) > MAX_HEAD:
            raise Refusal(431, "too_large", f"The head may have {MAX_HEAD} bytes.")
        fields = [(name.decode("ascii"), value.decode("latin-1")) for name, value in event.headers]
        self._request = None
        host = self.peer.rpartition(":")[0]
        request = Request(
            self._method,
            event.target.decode("ascii"),
            joined(fields),
            self.peer,
            host.startswith("127.") or host in ("::1", "::ffff:127.0.0.1"),
            self.secure,
            self._is_owner,
            self._is_tools,
            self._user,
        )
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            # Two ends of one body: whoever stands between may see another one than we do.
            raise Refusal(400, "bad_request", "A body has a length or chunks, not both.")
        self._body.clear()
        self._limit = self.keeper.limit(request)
        length = request.header("content-length")
        if length.isdigit() and int(length) > self._limit:
            raise Refusal(413, "too_large", f"The body may have {self._limit} bytes.")
        self._request = request
        self._wait(BODY_SECONDS)
        self._task = self._rules.spawn(self._admit(request))
        return False

    async def _is_owner(self) -> bool:
        """Whether a program of the host's owner is at the other end; looked up once."""
        if self._owner is None:
            self._owner = await asyncio.to_thread(self._rules.is_owner, *self._ends())
        return self._owner

    async def _is_tools(self) -> bool:
        """Whether a program that a tool started is at the other end; looked up once."""
        if self._tools is None:
            self._tools = await asyncio.to_thread(self._rules.is_tools, *self._ends())
        return self._tools

    async def _user(self) -> int:
        """Whose program is at the other end, of the users of this machine; -1: not known."""
        if self._peers_user is None:
            from dragoman.transports.neighbour import user_of

            self._peers_user = await asyncio.to_thread(user_of, *self._ends())
        return self._peers_user

    def _ends(self) -> list[tuple[str, int]]:
        return [self.transport.get_extra_info(name)[:2] for name in ("peername", "sockname")]

    async def _admit(self, request: Request) -> None:
        try:
            await self.keeper.admit(request)
        except Exception as trouble:
            self._task = None
            # What follows may be the body of something we will not do.
            if (
                "content-length" not in request.headers
                and "transfer-encoding" not in request.headers
            ):
                self._h11.next_event()  # the end of a request without a body
            said = self._rules.failure(request, trouble)
            self._answer_now(said, close=self._h11.their_state is not h11.DONE)
            return
        self.token_id = request.token_id
        self.welcome = self.welcome or request.authed
        self._task = None
        self._release()
        if not self.lost:
            self._read()

    def _finish(self) -> None:
        request = self._request
        assert request is not None
        self._quiet()
        request.body = bytes(self._body)
        self._body.clear()
        self._task = self._rules.spawn(self._serve(request))

    # --- answering ---

    async def _serve(self, request: Request) -> None:
        try:
            answer = await self._rules.answer(request)
        except Exception as trouble:  # one broken route must not leave its client waiting
            answer = self._rules.failure(request, trouble)
        self._task = None
        try:
            self._begin_answer(request, answer)
        except Exception as trouble:  # nobody waits for the rest of what was begun
            self._rules.failure(request, trouble)
            self.transport.abort()

    def _begin_answer(self, request: Request, answer: Answer) -> None:
        if self.lost:
            if isinstance(answer, Stream):
                outlet = Outlet(self)
                answer.begin(outlet)
                outlet.lost()
            return
        if isinstance(answer, Response):
            self._answer_now(answer)
        elif isinstance(answer, Stream):
            self._start_stream(request, answer)
        else:
            self._hand_over(answer)

    def _answer_now(self, response: Response, *, close: bool = False) -> None:
        if self.lost:
            return
        self._rules.dress(self._request, response)
        bare = response.status in (204, 304)
        body = b"" if bare or self._method == "HEAD" else response.body
        headers = dict(response.headers)
        if not bare:
            headers["content-length"] = str(len(response.body))
        if close:
            headers["connection"] = "close"
        try:
            self._send_head(response.status, headers)
            if body:
                self._send(h11.Data(data=body))
            self._send(h11.EndOfMessage())
        except h11.LocalProtocolError:  # the client broke off in the middle of the grammar
            self.transport.close()
            return
        self._over(close)

    def _start_stream(self, request: Request, stream: Stream) -> None:
        self._rules.dress(request, stream)
        self._send_head(stream.status, stream.headers)
        if request.method == "HEAD":
            self._send(h11.EndOfMessage())
            self._over(False)
            return
        self._outlet = outlet = Outlet(self)
        stream.begin(outlet)

    def _hand_over(self, takeover: Takeover) -> None:
        headers = [(name.encode(), value.encode()) for name, value in takeover.headers.items()]
        self._send(h11.InformationalResponse(status_code=101, headers=headers,
                                             reason=REASONS[101].encode()))  # fmt: skip
        self._rules.answered(self._method, 101)
        rest, _ = self._h11.trailing_data
        self._quiet()
        self.lost = True  # for us; the transport lives on
        self._rules.left(self)
        if self._held:
            self.transport.resume_reading()
        takeover.begin(self.transport, rest)

    def write_chunk(self, data: bytes) -> None:
        if not self.lost:
            self._send(h11.Data(data=data))

    def end_stream(self, outlet: Outlet) -> None:
        if self._outlet is outlet:
            self._outlet = None
            outlet.lost()
            if not self.lost:
                self._send(h11.EndOfMessage())
                self._over(False)

    def _over(self, close: bool) -> None:
        """An answer is complete: take the next request or leave."""
        self._request, self._method = None, ""
        self._release()
        if (
            close
            or self._ended
            or self._h11.our_state is h11.MUST_CLOSE
            or self._h11.our_state is h11.ERROR
        ):
            self._leave()
            return
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            self._idle = not self._h11.trailing_data[0]
            self._wait(IDLE_SECONDS if self._idle else HEAD_SECONDS)
            self._read()
        else:
            self._leave()

    def _leave(self) -> None:
        if self.lost:
            return
        if self._h11.their_state is h11.DONE or not self.transport.can_write_eof():
            self._wait(STALL_SECONDS)
            self.transport.close()
            return
        # Closing now, with bytes unread, would make the kernel take our last word back.
        self._linger = True
        self.transport.write_eof()
        self._wait(LINGER_SECONDS)

    def _release(self) -> None:
        self._ahead = 0
        if self._held and not self.lost:
            self._held = False
            self.transport.resume_reading()

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Say one last thing and leave, whatever state the grammar is in."""
        if self.lost:
            return
        if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._answer_now(problem(status, code, message), close=True)
        else:
            self.transport.close()

    def _send_head(self, status: int, headers: dict[str, str]) -> None:
        """Begin an answer; whatever it is, it is counted here."""
        fields = [(name.encode(), value.encode("latin-1", "replace"))
                  for name, value in headers.items()]  # fmt: skip
        reason = REASONS.get(status, "").encode()
        self._send(h11.Response(status_code=status, headers=fields, reason=reason))
        self._rules.answered(self._method, status)

    def _send(self, event: Any) -> None:
        data = self._h11.send(event)
        if data and not self.lost:
            self.transport.write(data)

    # --- time ---

    def _wait(self, seconds: float) -> None:
        self._quiet()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._late)

    def _quiet(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self.lost:
            return
        if self._linger or self.transport.is_closing():
            self.transport.abort()
        elif self._request is not None or self._h11.trailing_data[0]:
            self._refuse(408, "timeout", "The request did not arrive in time.")
        else:
            self.transport.close()

    @property
    def streams(self) -> bool:
        """Whether an answer goes on and on."""
        return self._outlet is not None

    def close(self) -> None:
        """The server goes down."""
        if self._outlet is not None:
            self._outlet.close()
        elif self._task is None and not self.lost:
            self.transport.close()

    def abort(self) -> None:
        if not self.lost:
            self.transport.abort()
