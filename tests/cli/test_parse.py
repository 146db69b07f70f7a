"""The argument parser, on a table of its own and on the real one."""

import shlex

import pytest

from dragoman.cli import elsewhere, table
from dragoman.cli.parse import Arg, Command, Flag, Usage, parse, suggest
from dragoman.settings.nearest import nearest


def make() -> Command:
    return Command(
        "tool",
        "a tool",
        example="dragoman tool list",
        default="list",
        flags=(Flag("config-dir", "where", metavar="DIR"), Flag("json", "JSON", kind=bool)),
        subs=(
            Command(
                "list",
                "lists",
                example="x",
                flags=(
                    Flag("limit", "how many", kind=int, default=50, short="n"),
                    Flag("colour", "which", choices=("red", "blue")),
                    Flag("tag", "labels", many=True),
                ),
            ),
            Command(
                "send",
                "sends",
                example="x",
                args=(Arg("session", "the id"), Arg("prompt", "words", many=True)),
            ),
            Command("pick", "picks", example="x", args=(Arg("one", "it", choices=("a", "b")),)),
            Command("maybe", "may", example="x", args=(Arg("key", "it", optional=True),)),
        ),
    )


@pytest.mark.parametrize(
    ("words", "path", "values"),
    [
        ([], "tool list", {"limit": 50, "json": False, "tag": [], "config_dir": None}),
        (["list", "--limit", "3"], "tool list", {"limit": 3}),
        (["list", "--limit=3", "--json"], "tool list", {"limit": 3, "json": True}),
        (["--json", "list", "-n", "3"], "tool list", {"limit": 3, "json": True}),
        (["--config-dir", "list", "send", "s", "x"], "tool send", {"config_dir": "list"}),
        (["--config-dir=/d", "list"], "tool list", {"config_dir": "/d"}),
        (["--limit", "4"], "tool list", {"limit": 4}),
        (["list", "--tag", "a", "--tag=b"], "tool list", {"tag": ["a", "b"]}),
        (["list", "--json=false"], "tool list", {"json": False}),
        (["list", "--limit", "-3"], "tool list", {"limit": -3}),
        (["send", "s", "two", "words"], "tool send", {"session": "s", "prompt": ["two", "words"]}),
        (["send", "s", "--", "--json"], "tool send", {"prompt": ["--json"], "json": False}),
        (["send", "s", "-"], "tool send", {"prompt": ["-"]}),
        (["send", "s", "-5"], "tool send", {"prompt": ["-5"]}),
        (["pick", "a"], "tool pick", {"one": "a"}),
        (["maybe"], "tool maybe", {"key": None}),
    ],
)
def test_command_lines_are_understood(
    words: list[str], path: str, values: dict[str, object]
) -> None:
    args = parse(make(), words)
    assert " ".join(args.path) == path
    assert {name: args.values[name] for name in values} == values
    assert args.sub == path.split()[1] and args.verb == "tool"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lst"], "unknown sub-command 'lst' of tool; did you mean list?"),
        (["list", "--limt", "3"], "unknown flag --limt; did you mean --limit?"),
        (["list", "--zzzz"], "unknown flag --zzzz"),
        (["list", "--limit"], "--limit needs a value: --limit N"),
        (["list", "--limit", "many"], "--limit: must be a whole number (got 'many')"),
        (["list", "--colour", "rad"], "must be one of red, blue (got 'rad'); did you mean red?"),
        (["list", "--json=maybe"], "--json is a switch and takes no value"),
        (["list", "more"], "unexpected argument 'more'"),
        (["send"], "tool send needs SESSION: the id"),
        (["send", "s"], "tool send needs PROMPT...: words"),
        (["pick"], "tool pick needs ONE: it (a, b)"),
        (["pick", "c"], "ONE must be one of a, b (got 'c')"),
    ],
)
def test_mistakes_are_named(words: list[str], said: str) -> None:
    with pytest.raises(Usage) as caught:
        parse(make(), words)
    assert said in caught.value.message
    assert caught.value.command is not None


def test_a_command_without_default_names_its_sub_commands() -> None:
    command = Command("c", "c", example="x", subs=make().subs)
    with pytest.raises(Usage, match="c needs one of: list, send, pick, maybe"):
        parse(command, [])


def test_an_attribute_that_was_not_declared_is_an_error() -> None:
    with pytest.raises(AttributeError):
        _ = parse(make(), []).nothing


@pytest.mark.parametrize(
    ("word", "hint"), [("sesions", "; did you mean sessions?"), ("qqqq", ""), ("", "")]
)
def test_suggestions(word: str, hint: str) -> None:
    assert suggest(word, ["sessions", "status"]) == hint


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("modle", ["mode", "model"], "model"),
        ("mdoe", ["mode", "model"], "mode"),
        ("mod", ["mode", "model"], "mode"),
        ("MODLE", ["mode", "model"], "model"),
        ("zzz", ["mode", "model"], ""),
    ],
)
def test_the_same_letters_in_another_order_are_meant_before_others(
    word: str, known: list[str], meant: str
) -> None:
    assert nearest(word, known) == meant


def test_a_flag_is_suggested_by_its_letters() -> None:
    assert suggest("--modle", ["--mode", "--model"]) == "; did you mean --model?"


def test_a_sentence_that_begins_with_a_dash_is_no_flag() -> None:
    said = Command("say", "say it", args=(Arg("prompt", "what", many=True),))
    assert parse(said, ["- list the files"]).prompt == ["- list the files"]
    assert parse(said, ["--verbose is what?", "-"]).prompt == ["--verbose is what?", "-"]
    with pytest.raises(Usage, match=r"unknown flag -hi \(.* after two: dragoman say -- -hi\)"):
        parse(said, ["-hi"])
    assert parse(said, ["--", "-hi"]).prompt == ["-hi"]
    flagged = Command("do", "do it", flags=(Flag("model", "which"),))
    assert parse(flagged, ["--model=a b"]).model == "a b"
    with pytest.raises(Usage, match=r"^unknown flag -hi$"):
        parse(flagged, ["-hi"])


def test_an_unknown_sub_command_is_told_with_those_that_there_are() -> None:
    with pytest.raises(Usage, match=r"unknown sub-command 'qqqq' of approvals \(there are: list"):
        parse(found("approvals"), ["qqqq"])
    with pytest.raises(Usage, match="; did you mean the command approve\\?"):
        parse(found("approvals"), ["approve", "x"])


def found(name: str) -> Command:
    command = table.find(name)
    assert command is not None
    return command


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("version", "dragoman --version"),
        ("start", "dragoman daemon --background"),
        ("export", "dragoman sessions export"),
        ("Export", "dragoman sessions export"),
        ("uninstall", "dragoman service uninstall"),
        ("nonsense", ""),
        ("list", ""),
    ],
)
def test_words_of_other_programs_lead_to_ours(word: str, hint: str) -> None:
    said = elsewhere.hint(word)
    assert said.partition(": ")[2].split(" or ")[0] == hint


def test_every_word_of_other_programs_leads_to_a_command_that_there_is() -> None:
    for word, line in elsewhere.OURS.items():
        assert table.find(word) is None, f"{word} is a command of ours"
        for one in line.split(" && "):
            words = shlex.split(one)[1:]
            if words and not words[0].startswith("-"):
                parse(found(words[0]), words[1:])
