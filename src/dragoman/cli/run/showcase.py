"""`make run`: the main job, end to end, with no key and no configuration.

A turn of the embedded demo model in a folder of its own: it streams, uses tools, and asks for one
approval, which is answered by itself where there is no terminal.
"""

import os
import sys
import tempfile

from dragoman.engine.content import Text
from dragoman.transports.loop import ended_by_signals, run

_PROMPT = (
    'list the files, then read colours.txt, then write "red and blue make violet" to violet.txt'
)
_NEXT = """
That was one turn of an agent session: streamed text, tools, one approval.

Next:
  {command}                               live in it: a conversation in this folder
  {command} run "what is dragoman"        ask it something
  {command} daemon --background           serve the session host to every client
  {command} login                         with a real model (docs/models.md has all ways)\
"""


def show() -> int:
    """Run the demonstration; returns the exit code."""
    from dragoman.cli.run.terminal import one_turn
    from dragoman.cli.run.turns import Wish

    with tempfile.TemporaryDirectory(prefix="dragoman-demo-") as folder:
        home = os.path.join(folder, "home")
        work = os.path.join(folder, "project")
        os.mkdir(home)
        os.mkdir(work)
        with open(os.path.join(work, "colours.txt"), "w", encoding="utf-8") as file:
            file.write("red\nblue\n")
        print(f"you: {_PROMPT}\n", flush=True)
        rule = "ask" if sys.stdin.isatty() else "all"
        os.environ["DRAGOMAN_agents__default__model"] = "demo/demo"
        turn = one_turn(Wish((Text(_PROMPT),), home, cwd=work), as_json=False, rule=rule)
        code = run(ended_by_signals(turn))
    if code > 128:
        return code
    command = sys.argv[0] if os.sep not in sys.argv[0] else os.path.relpath(sys.argv[0])
    print(_NEXT.format(command=command))
    return code
