"""The manual page, made from the table of commands."""

import dragoman
from dragoman import TYPE_CHECKING

from .help import ABOUT
from .parse import Command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def manual(commands: "Sequence[Command]") -> str:
    """The page in the language of man."""
    rows = [
        f'.TH DRAGOMAN 1 "" "dragoman {dragoman.__version__}" "User Commands"',
        ".SH NAME",
        _text(ABOUT.replace(": ", r" \- ", 1), keep=True),
        ".SH SYNOPSIS",
        r".B dragoman",
        r"[\fICOMMAND\fR] [\fIARGUMENTS\fR]",
        ".SH DESCRIPTION",
        _text("In a terminal, without a command, dragoman opens the conversation in this folder."),
        _text("`dragoman COMMAND --help` has the same text as this page."),
    ]
    group = ""
    for command in commands:
        if command.group != group:
            group = command.group
            rows.append(f".SH {_text(group).upper()}")
        rows += _rows(command)
    return "\n".join(rows) + "\n"


def _rows(command: Command) -> "Iterator[str]":
    name = _text(f"dragoman {command.full_name}")
    shown = "".join(f" {arg.shown}" for arg in command.args)
    yield f".SS {name}{_text(shown)}"
    yield _text(command.help[:1].upper() + command.help[1:] + ".")
    if command.text:
        yield ".PP"
        yield _text(command.text)
    for flag in command.all_flags():
        short = f"-{flag.short}, " if flag.short else ""
        value = f" {flag.metavar}" if flag.takes_value else ""
        yield ".TP"
        yield rf"\fB{_text(f'{short}--{flag.name}')}\fR{_text(value)}"
        yield _text(flag.help)
    yield ".PP"
    yield rf"Example: \fB{_text(command.example)}\fR"
    for sub in command.subs:
        yield from _rows(sub)


def _text(text: str, keep: bool = False) -> str:
    """The text with what man would take for commands escaped."""
    if not keep:
        text = text.replace("\\", r"\e").replace("-", r"\-")
    return "\n".join(rf"\&{row}" if row[:1] in ".'" else row for row in text.splitlines())
