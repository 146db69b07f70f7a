"""What becomes of words: `commands`, `saying`, `asking`, `shell`, in a terminal that notes."""

import asyncio
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.client.answers import AgentRow, Checkpoint, CommandRow, TouchedFile
from dragoman.engine.ask import Ask
from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput, UnknownSession
from dragoman.tui import commands, saying
from dragoman.tui.asking import Asking
from dragoman.tui.begin import Wish
from dragoman.tui.commands import OWN
from dragoman.tui.piece import Piece
from dragoman.tui.saying import run
from dragoman.tui.story import Story
from dragoman.tui.unknown import command
from dragoman.tui.writing import Bag


class Noting:
    """Notes every call as (name, words); what is to be returned stands in `answers`."""

    session: Any
    cwd: Any
    story: Any
    link: Any
    wish: Any
    agent: Any
    leave: Any
    bag: Any
    take_bag: Any
    give_back_bag: Any
    text: Any

    def __init__(self, log: list[Any], answers: dict[str, Any]) -> None:
        self._log = log
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        def call(*words: Any, **more: Any) -> Any:
            self._log.append((name, *words, *more.values()))
            return self._answers.get(name)

        return call


class Awaiting(Noting):
    def __getattr__(self, name: str) -> Any:
        noted = super().__getattr__(name)

        async def call(*words: Any, **more: Any) -> Any:
            found = noted(*words, **more)
            if isinstance(found, Exception):
                raise found
            return found

        return call


async def _same(thing: Any) -> Any:
    return thing


class App(Noting):
    """As much of the terminal as words can reach."""

    def __init__(self, session: str = "s1", cwd: str = "/", **answers: Any) -> None:
        self.log: list[Any] = []
        super().__init__(self.log, answers)
        self.desk = Awaiting(self.log, answers)
        self.desk.session, self.desk.cwd, self.desk.story = session, cwd, Story()
        self.desk.leave = lambda: self.log.append(("leave",))
        host = Awaiting(self.log, answers)
        self.link = self.desk.link = SimpleNamespace(
            host=host, want=lambda: None, ready=lambda: _same(host), answered=lambda work: work
        )
        self.desk.wish, self.desk.agent = Wish(cwd), "builtin"
        self.writing = Noting(self.log, answers)
        self.writing.bag = Bag()
        self.writing.take_bag = self.writing.bag.take
        self.writing.give_back_bag = self.writing.bag.give_back
        self.inbox = SimpleNamespace(
            asks={}, names={}, count=lambda besides: 0, others=lambda session: []
        )
        self.status = SimpleNamespace(asking=False, inbox=0)
        self.shells: list[Any] = []
        self.editor = Noting(self.log, answers)
        self.editor.text = ""
        self.set_wish = Awaiting(self.log, answers).set_wish
        self.open_session = Awaiting(self.log, answers).open_session
        self.jobs: list[Any] = []
        self.job = self.jobs.append

    async def do(self, name: str, words: str = "") -> None:
        if (doing := OWN[name].act(self, words)) is not None:
            await doing


# --- commands ---


@pytest.mark.parametrize("name", ["effort", "rename", "fork", "compact", "clear", "undo", "redo"])
async def test_commands_that_need_a_session_say_so(name: str) -> None:
    with pytest.raises(BadInput, match="no session yet"):
        await App(session="").do(name, "high")


async def test_commands_change_the_session_or_the_next_one() -> None:
    here, before = App(), App(session="")
    await here.do("model", "p/m")
    await before.do("model", "p/m")
    await here.do("mode", "plan")
    await before.do("mode", "plan")
    assert here.log == [("set_model", "s1", "p/m"), ("set_mode", "s1", "plan")]
    assert before.log == [("set_wish", "p/m"), ("set_wish", "plan")]


async def test_commands_without_words_offer_a_choice() -> None:
    app = App()
    await app.do("effort")
    await app.do("mode")
    offered = {words[1]: [choice.value for choice in words[2]] for words in app.log}
    assert offered["effort"] == ["off", "low", "medium", "high", "max"]
    assert offered["mode"] == ["readonly", "plan", "supervised", "full"]


async def test_commands_agent_begins_anew_where_there_is_a_session() -> None:
    app = App()
    await app.do("agent", "other")
    assert [words[0] for words in app.log] == ["set_wish", "leave", "show_session", "notice"]


async def test_commands_undo_names_files_and_lists_turns() -> None:
    files = [TouchedFile(f"f{n}", "changed") for n in range(7)]
    app = App(undo=SimpleNamespace(files=files), redo=SimpleNamespace(files=[]))
    await app.do("undo")
    assert app.log[-1][1].endswith("f4 (changed) and 2 more")
    await app.do("redo")
    assert app.log[-1] == ("notice", "redone: nothing")
    rows = [
        Checkpoint(turn="t1", at=1, undone=True, files=files),
        Checkpoint(turn="t2", at=2, undone=False, files=files[:1]),
    ]
    listed = App(checkpoints=rows)
    await listed.do("undo", "list")
    assert [choice.value for choice in listed.log[-1][2]] == ["t2"]  # t1 is undone
    nothing = App(checkpoints=[])
    await nothing.do("undo", "list")
    assert nothing.log[-1] == ("notice", "no turn changed a file that was kept")


async def test_commands_rules_are_shown_and_withdrawn() -> None:
    rule = SimpleNamespace(id="r1", deny=True, sentence="bash rm")
    app = App(rules=[rule], remove_rule=rule)
    await app.do("rules")
    assert app.log[-1][2][0] == ("r1", "never bash rm")
    await app.do("rules", "r1 and more")
    assert ("remove_rule", "r1") in app.log and app.log[-1] == ("say", "withdrawn: bash rm")
    empty = App(rules=[])
    await empty.do("rules")
    assert empty.log[-1] == ("notice", "no answer is remembered")


@pytest.mark.parametrize(
    ("name", "why"), [("rename", "title"), ("image", "file"), ("copy", "copy")]
)
async def test_commands_that_lack_something_say_what(name: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        await App(last_answer="").do(name)


def test_commands_of_the_help_are_all_there() -> None:
    assert all(own.about for own in OWN.values()) and "help" in OWN
    assert "ctrl+r" in commands.KEYS


# --- saying ---


async def test_saying_tells_commands_shell_and_prompts_apart(tmp_path: Path) -> None:
    app = App(cwd=str(tmp_path))
    await saying.taken(app, "/mode plan", False)
    assert app.log == [("set_mode", "s1", "plan")]
    await saying.taken(app, "/etc/hosts what is this", False)
    assert app.log[1][0] == "send" and app.log[1][1] == (Text("/etc/hosts what is this"),)
    await saying.taken(app, "!echo $((1 + 1)); exit 3", False)
    piece = app.desk.story.pieces[-1]
    assert (piece.text, piece.outcome) == ("2\n", "exit 3")
    assert app.log[-1][0] == "carry" and "$ echo" in app.log[-1][2].text


def offering(backend: str = "builtin") -> App:
    """A terminal where the folder has one command, and one agent."""
    row = AgentRow("builtin", "demo/demo", "full", "", backend)
    return App(commands=[CommandRow("greet", "says hello")], agents=[row])


@pytest.mark.parametrize(
    ("text", "near"),
    [("/modle", "/model?"), ("/gret Ada", "/greet?"), ("/qqq\nmore", "/qqq."), ("/Undo", "/undo?")],
)
async def test_a_command_that_there_is_not_is_no_prompt_and_is_kept(text: str, near: str) -> None:
    app = offering()
    with pytest.raises(BadInput) as found:
        await saying.taken(app, text, False)
    assert text.split()[0] in found.value.message and found.value.message.endswith(near)
    assert app.log[-1] == ("give_back", text) and "send" not in {name for name, *_ in app.log}


@pytest.mark.parametrize(
    "text",
    ["/greet Ada", "/home/x/file is broken", "/etc/hosts what is this", "/tmp is full", "/",
     "/ is full", "// a remark", " /modle", "/notes.txt is missing", "/a+b/ matches", "no /modle"],
)  # fmt: skip
async def test_what_begins_with_a_path_or_a_command_of_the_folder_is_a_prompt(text: str) -> None:
    app = offering()
    await saying.taken(app, text, False)
    assert ("send", (Text(text),)) in app.log


def test_a_path_is_no_command() -> None:
    found = [
        command(text) for text in ("/a:b-c_d words", "/étude", "/tmp", "/a/b", "/a.b", "a", "")
    ]
    assert found == ["a:b-c_d", "étude", "", "", "", "", ""]
    assert command(f"/{'x' * 65}") == ""


async def test_an_agent_of_another_program_knows_its_commands_itself() -> None:
    app = offering("acp")
    await saying.taken(app, "/review", False)
    assert ("send", (Text("/review"),)) in app.log


async def test_saying_goes_into_the_running_turn_unless_it_is_queued() -> None:
    app = App(steer=True)
    app.desk.story.turn = "t1"
    await saying.taken(app, "faster", False)
    assert [words[0] for words in app.log] == ["steer", "notice"]
    await saying.taken(app, "later", True)
    assert ("send", (Text("later"),)) in app.log
    ended = App(steer=False)
    ended.desk.story.turn = "t1"
    await saying.taken(ended, "too late", False)
    assert ("send", (Text("too late"),)) in ended.log


async def test_saying_what_failed_stands_in_the_editor_again() -> None:
    app = App(send=UnknownSession("s1"))
    app.writing.bag.add("x", Text("y"))
    with pytest.raises(UnknownSession):
        await saying.taken(app, "hello", False)
    assert app.log[-1] == ("give_back", "hello") and app.writing.bag.things  # nothing is lost


# --- asking ---


class Panel(Noting):
    def __init__(self, log: list[Any]) -> None:
        super().__init__(log, {})
        self.ask: Ask | None = None
        self.display = self.has_focus = False

    def put(self, ask: Ask | None, where: str = "", waiting: int = 1) -> None:
        self.ask, self.display = ask, ask is not None
        self._log.append(("put", ask.id if ask else None, where, waiting))


ONE = Ask("1", "s1", "tool", "bash", 1, digest="d1")
TWO = Ask("2", "s2", "question", "Which?", 2)


def test_asking_shows_what_is_asked_and_takes_the_keys_of_nobody_who_types() -> None:
    app = App()
    asking = Asking(app, Panel(app.log))
    app.desk.story.asks = {"1": ONE}
    asking.show()
    assert app.log == [("put", "1", "", 1), ("focus",)] and app.status.asking
    app.log.clear()
    app.editor.text = "half a prompt"
    app.desk.story.asks = {}
    asking.show()  # answered elsewhere: it goes away
    assert app.log[0] == ("put", None, "", 1) and not app.status.asking
    app.desk.story.asks = {"1": ONE}
    app.log.clear()
    asking.show()
    assert app.log == [("put", "1", "", 1)]


def test_asking_goes_round_the_questions_of_all_sessions() -> None:
    app = App()
    panel = Panel(app.log)
    asking = Asking(app, panel)
    assert asking.next() is False
    app.desk.story.asks = {"1": ONE}
    app.inbox.others = lambda session: [TWO]
    app.inbox.names = {"s2": "the other"}
    assert asking.next() and panel.ask is ONE
    panel.has_focus = True
    assert asking.next() and app.log[-2] == ("put", "2", "the other", 2)
    assert asking.next() and panel.ask is ONE


async def test_asking_words_are_an_answer_or_a_reason() -> None:
    app = App(answer=None)
    asking = Asking(app, Panel(app.log))
    assert asking.takes("words") is False and asking.back() is False
    asking.in_words(TWO)
    assert asking.takes("blue") is True
    asking.in_words(ONE)
    assert asking.takes("too dangerous") is True
    for job in app.jobs:
        await job
    given = [words for words in app.log if words[0] == "answer"]
    assert given == [
        ("answer", "2", "answer", "", "blue"),
        ("answer", "1", "deny", "d1", "too dangerous"),
    ]
    asking.in_words(ONE)
    assert asking.back() is True and asking.takes("x") is False


# --- shell ---


async def test_shell_shows_output_as_it_comes_and_how_it_ended(tmp_path: Path) -> None:
    seen: list[str] = []
    piece = Piece("shell")
    await run("echo one; echo two >&2", str(tmp_path), piece, lambda: seen.append(piece.text))
    assert piece.text == "one\ntwo\n" and piece.outcome == "done" and seen[-1] == piece.text


async def test_shell_that_cannot_begin_says_why(tmp_path: Path) -> None:
    piece = Piece("shell")
    await run("true", str(tmp_path / "nowhere"), piece, lambda: None)
    assert piece.outcome == "failed" and "nowhere" in piece.text


async def test_shell_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = Piece("shell")
    begun = asyncio.Event()
    task = asyncio.create_task(run("echo on; sleep 360", str(tmp_path), piece, begun.set))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert piece.outcome == "stopped"
    monkeypatch.setattr("dragoman.tui.saying._LIMIT", 0.05)
    await run("sleep 360", str(tmp_path), piece, lambda: None)
    assert piece.outcome == "stopped after 0.05 s"


async def test_shell_is_let_go_of_though_something_it_left_holds_its_output(tmp_path: Path) -> None:
    """A server that was put into the background has the pipe, and a group of its own."""
    piece = Piece("shell")
    left = tmp_path / "left"
    said = asyncio.Event()
    command = f"setsid sh -c 'echo $$ > {left}; echo up; exec sleep 360' &"
    task = asyncio.create_task(run(command, str(tmp_path), piece, said.set))
    try:
        await said.wait()
        task.cancel()
        async with asyncio.timeout(60):
            with pytest.raises(asyncio.CancelledError):
                await task
        assert piece.outcome == "stopped" and piece.text == "up\n"
        os.kill(int(left.read_text()), 0)  # it is somebody else's by now
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)
