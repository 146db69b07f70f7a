"""What `/` does: the terminal's own commands; others are the session's."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dragoman.engine.faults import BadInput

from .choices import Choice

if TYPE_CHECKING:
    from dragoman.client.answers import TouchedFile

    from .app import Terminal


class OwnCommand(NamedTuple):
    """`act` does it at once, or gives what is to be waited for."""

    about: str
    act: "Callable[[Terminal, str], Awaitable[None] | None]"
    hint: str = ""


def _new(app: "Terminal", words: str) -> None:
    app.desk.leave()
    app.show_session()


async def _resume(app: "Terminal", words: str) -> None:
    if words:
        await app.open_session(await app.desk.find(words))
    else:
        app.action_board()


async def _model(app: "Terminal", words: str) -> None:
    host = app.link.host
    if not words:
        rows = await host.models()
        found = [Choice(row.ref, str(row.model.get("name", ""))) for row in rows]
        app.writing.offer("model", found)
        return
    if app.desk.session:
        await host.set_model(app.desk.session, words)
    else:
        await app.set_wish(model=words)


async def _mode(app: "Terminal", words: str) -> None:
    if not words:
        app.writing.offer("mode", [Choice(name, about) for name, about in _MODES])
        return
    if app.desk.session:
        await app.link.host.set_mode(app.desk.session, words)
    else:
        await app.set_wish(mode=words)


async def _effort(app: "Terminal", words: str) -> None:
    if not words:
        app.writing.offer("effort", [Choice(name) for name in _EFFORTS])
        return
    await app.link.host.set_reasoning(_session(app), words)


async def _agent(app: "Terminal", words: str) -> None:
    if not words:
        rows = await app.link.host.agents()
        app.writing.offer("agent", [Choice(row.alias, row.problem or row.model) for row in rows])
        return
    await app.set_wish(agent=words)
    if app.desk.session:
        app.desk.leave()
        app.show_session()
        app.notice(f"a new session with {words} begins with your next prompt")


async def _rename(app: "Terminal", words: str) -> None:
    if not words:
        raise BadInput("A title is missing.", "Write: /rename TITLE")
    await app.link.host.rename(_session(app), words)
    app.notice("renamed")


async def _fork(app: "Terminal", words: str) -> None:
    made = await app.link.host.fork(_session(app))
    await app.open_session(made.id)


async def _compact(app: "Terminal", words: str) -> None:
    await app.link.host.compact(_session(app))


async def _clear(app: "Terminal", words: str) -> None:
    await app.link.host.clear(_session(app))


async def _undo(app: "Terminal", words: str) -> None:
    host, session = app.link.host, _session(app)
    if words == "list":
        kept = await host.checkpoints(session)
        found = [one for one in kept if not one.undone]
        if not found:
            none = "no turn changed a file that was kept"
            app.notice("all is undone; /redo does it again" if kept else none)
            return
        offered = [Choice(one.turn, _files(one.files)) for one in reversed(found)]
        words = "enter goes back to before that turn, esc leaves all as it is"
        app.writing.offer("undo", offered, words)
        return
    done = await host.undo(session, words)
    app.notice(f"undone: {_files(done.files)}")


async def _redo(app: "Terminal", words: str) -> None:
    done = await app.link.host.redo(_session(app))
    app.notice(f"redone: {_files(done.files)}")


def _files(files: "Sequence[TouchedFile]") -> str:
    named = ", ".join(f"{one.path} ({one.fate})" for one in files[:5])
    return f"{named} and {len(files) - 5} more" if len(files) > 5 else named or "nothing"


def _copy(app: "Terminal", words: str) -> None:
    text = app.last_answer()
    if not text:
        raise BadInput("There is no answer to copy yet.")
    app.copy_to_clipboard(text)
    app.notice("the last answer is in the clipboard")


def _image(app: "Terminal", words: str) -> None:
    if not words:
        raise BadInput("A file is missing.", "Write: /image PATH")
    app.writing.attach_file(words.strip().strip("'\""))


async def _rules(app: "Terminal", words: str) -> None:
    if words:
        gone = await app.link.host.remove_rule(words.split()[0])
        app.say(f"withdrawn: {gone.sentence}")
        return
    rows = await app.link.host.rules()
    if not rows:
        app.notice("no answer is remembered")
        return
    offered = [
        Choice(row.id, f"{'never' if row.deny else 'always'} {row.sentence}") for row in rows
    ]
    app.writing.offer("rules", offered, "enter withdraws a rule, esc leaves them")


def _vi(app: "Terminal", words: str) -> None:
    app.notice("vi keys" if app.writing.toggle_vi() else "plain keys")


def _session(app: "Terminal") -> str:
    if not app.desk.session:
        raise BadInput("There is no session yet.", "It begins with your first prompt.")
    return app.desk.session


_EFFORTS = ("off", "low", "medium", "high", "max")
_MODES = (
    ("readonly", "looks, changes nothing"),
    ("plan", "looks, writes a plan, asks whether to go on"),
    ("supervised", "asks before it changes something"),
    ("full", "asks only where a rule says so"),
)
OWN: dict[str, OwnCommand] = {
    "help": OwnCommand("keys and commands", lambda app, words: app.say(KEYS)),
    "new": OwnCommand("begin another session", _new),
    "resume": OwnCommand("go on with another session", _resume, "ID"),
    "board": OwnCommand("all sessions, of every client", lambda app, words: app.action_board()),
    "inbox": OwnCommand(
        "what waits for an answer, in every session", lambda app, words: app.action_next_asked()
    ),
    "rules": OwnCommand("answers for always: look, withdraw", _rules, "ID"),
    "model": OwnCommand("use another model", _model, "REF"),
    "mode": OwnCommand("how far the agent may go alone", _mode, "MODE"),
    "effort": OwnCommand("how hard the model thinks", _effort, "EFFORT"),
    "agent": OwnCommand("another agent, in a new session", _agent, "ALIAS"),
    "rename": OwnCommand("give the session a title", _rename, "TITLE"),
    "fork": OwnCommand("a new session with this one's history", _fork),
    "compact": OwnCommand("summarise the history to make room", _compact),
    "clear": OwnCommand("let the agent forget what was said", _clear),
    "undo": OwnCommand("put files back to before the last turn", _undo, "TURN | list"),
    "redo": OwnCommand("take the last undo back", _redo),
    "copy": OwnCommand("copy the last answer", _copy),
    "image": OwnCommand("give a picture along", _image, "PATH"),
    "thinking": OwnCommand(
        "show or fold the model's thinking", lambda app, words: app.action_thoughts()
    ),
    "editor": OwnCommand("write in $EDITOR", lambda app, words: app.action_edit()),
    "vi": OwnCommand("vi keys on or off", _vi),
    "quit": OwnCommand("leave; what runs goes on", lambda app, words: app.exit()),
}
KEYS = """\
enter        send; while a turn runs, tell it at once
tab          while a turn runs: queue it for after
shift+enter  a new line (also alt+enter, ctrl+j, or \\ before enter)
up, down     what you said before        ctrl+r  search in it
@            files                       /       commands
!command     run a command of your own; its output goes with your next prompt
esc          stop the turn               ctrl+c twice, ctrl+d  leave
ctrl+s       the board of all sessions   ctrl+n  the next that needs you
ctrl+t       thinking                    ctrl+o  whole outputs
ctrl+g       $EDITOR                     ctrl+v  paste a picture or text
ctrl+z       to the shell, fg comes back ctrl+_  undo what was typed
pageup, pagedown, wheel                  ctrl+home, ctrl+end
mouse        select text, ctrl+c copies it"""
