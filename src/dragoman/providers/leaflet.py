"""What the demo provider can tell about Dragoman and about itself."""

import re

CONNECT = (
    "To connect a real model: run `dragoman login`, or start Ollama. Or set ANTHROPIC_API_KEY, "
    "OPENAI_API_KEY or GEMINI_API_KEY; a running daemon sees that only when it is started again "
    "(`dragoman stop`)."
)

ABILITIES = """\
I am the demo model of Dragoman. I am no language model: I know a few plain requests and turn \
them into real tool calls.

Try one of these, or several joined by "then":
- list the files
- read README.md
- write "hello" to notes.txt
- edit notes.txt replace hello with goodbye
- run echo hi   (or: $ echo hi)
- search TODO in src
- find *.py
- plan: read the notes, write a summary
- ask me which colour: red, green or blue
- think about the weather
- count slowly to 20
- say something
- fail

You can also ask what Dragoman is, which protocols it speaks, how approvals work, which commands \
there are, and how to connect a model."""

_ANSWERS: tuple[tuple[str, str], ...] = (
    (
        r"\b(connect|configure|use|set ?up|add|choose|switch)\b"
        r".*\b(model|provider|key|llm|ollama|claude|gpt)\b"
        r"|\b(api key|real model)\b",
        "A model is named provider/model, for example anthropic/claude-sonnet-4-5, openai/gpt-5 or "
        "ollama/llama3.2. `dragoman login` keeps a key. Or put it into the environment "
        "(ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY), or "
        "write it into config.toml, and set `model` of the agent. Any server that speaks "
        "OpenAI's chat format works with a base_url. With nothing "
        "set, a local Ollama that answers is used. `dragoman models` lists what can be used.",
    ),
    (
        r"\b(protocols?|dialects?|acp|zeroclaw|zot|openclawos|humanlayer|languages?)\b",
        "Dragoman speaks five protocols over one engine: ACP (for editors), zeroclaw, zot, "
        "openclawos and humanlayer. A session begun in one is seen, driven and approved from any "
        "other. `dragoman acp` and `dragoman rpc` (zot) speak on stdio, `dragoman daemon` listens "
        "on sockets for all of them.",
    ),
    (
        r"\b(approv\w*|permissions?|allow|deny|supervis\w*|autonomy|readonly)\b",
        "An agent is readonly, supervised (the default) or full. A supervised agent asks before it "
        "changes files or runs commands. The question is stored: any connected client may answer "
        "it, the first answer wins. In the terminal `dragoman approvals` shows what waits.",
    ),
    (
        r"\b(which|what|list|show)\b.*\bcommands?\b|\bcommand line\b"
        r"|\bhow (do|can) i (start|run)\b",
        'There are: `dragoman run "PROMPT"` for one turn in the terminal, `dragoman daemon` '
        "for the host, `dragoman acp` and `dragoman rpc` on stdio, and `dragoman status`, "
        "`doctor`, `sessions`, `approvals`, `agents`, `models` and `config` for a running host.",
    ),
    (
        r"\b(tools?)\b",
        "The built-in tools are read, write, edit, bash, ls, glob, grep, ask_user and plan. MCP "
        "servers and connected apps may add more.",
    ),
    (
        r"\b(sessions?|history|restart|surviv\w*|stor(e|ed|age))\b",
        "A session is one conversation with one agent in one working directory. It is kept in "
        "SQLite after every step, so it survives a restart, and every client sees the same one.",
    ),
    (
        r"\bdragoman\b|\bwhat is this\b",
        "Dragoman is one local agent host. It runs AI agents' sessions and serves them in five "
        "wire protocols, so that editors, terminals, chat apps and approvers see the same ones.",
    ),
)
_QUESTIONS = tuple((re.compile(pattern, re.IGNORECASE), answer) for pattern, answer in _ANSWERS)


def answer(question: str) -> str | None:
    """The built-in answer to a question about Dragoman, or None."""
    if len(question) > 400:
        return None
    for pattern, text in _QUESTIONS:
        if pattern.search(question):
            return text
    return None
