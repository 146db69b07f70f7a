"""Text that somebody must judge shows all it holds."""

import unicodedata

import pytest

from dragoman.engine.ask import Ask, Change
from dragoman.engine.shown import line, parts, whole
from dragoman.engine.visible import brief, on_a_line, visible


def test_no_character_hides() -> None:
    """Control, format, separator, private and surrogate characters, one by one."""
    for code in range(0x110000):
        char = chr(code)
        kind = unicodedata.category(char)
        if kind in ("Cc", "Cf", "Zs", "Zl", "Zp", "Co", "Cs") and char not in " \n\t":
            assert char not in visible(f"a{char}b"), hex(code)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b[31mred\x1b[0m", "<ESC>[31mred<ESC>[0m"),
        ("a\rb", "a<CR>b"),
        ("a\x08b\x7f", "a<BS>b<DEL>"),
        ("x\x9b1m", "x<U+009B>1m"),
        ("\u202egpj.exe", "<U+202E>gpj.exe"),
        ("a\u2066b\u2069", "a<U+2066>b<U+2069>"),
        ("a\u200bb\u200cc\u200dd\ufeff", "a<U+200B>b<U+200C>c<U+200D>d<U+FEFF>"),
        ("rm\u00a0-rf", "rm<U+00A0>-rf"),
        ("a\u3000b\u2003c\u2800d\u3164e", "a<U+3000>b<U+2003>c<U+2800>d<U+3164>e"),
        ("\U000e0072\U000e006d", "<U+E0072><U+E006D>"),
        ("a\u2028b\u2029c\x85d", "a<U+2028>b<U+2029>c<U+0085>d"),
        ("a\ufe0f\U000e0100", "a<U+FE0F><U+E0100>"),
        ("a\ud800b", "a<U+D800>b"),
        ("a\u0338b", "a<U+0338>b"),
        ("plain, élan, 日本語, naïve — “quoted” 👍", "plain, élan, 日本語, naïve — “quoted” 👍"),
        ("lines\n\tand tabs", "lines\n\tand tabs"),
    ],
)
def test_what_hides_is_written_out(text: str, seen: str) -> None:
    assert visible(text) == seen


@pytest.mark.parametrize("sign", list("／∕⁄；\u037e｜∣＆＞＜＄‘’“”‐−＊？～．：，＃（）＝！＼｀"))
def test_signs_that_look_like_a_shells_are_named_in_commands(sign: str) -> None:
    assert visible(f"a{sign}b", strict=True) == f"a{sign}<U+{ord(sign):04X}>b"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("cat א > ב", "cat א<RTL> > ב"),
        ("cp א/../ב ג", "cp א<RTL>/../ב ג"),
        ("chown א 0 1", "chown א<RTL> 0 1"),
        ("echo ا && ب; ج", "echo ا<RTL> && ب<RTL>; ج"),
        ("cat 'שלום עולם' > out", "cat 'שלום עולם' > out"),
        ("cat דוח.txt | wc", "cat דוח.txt | wc"),
        ("echo א\n> ב", "echo א\n> ב"),
    ],
)
def test_letters_that_turn_what_follows_are_named_in_commands(text: str, seen: str) -> None:
    assert visible(text, strict=True) == seen and visible(text) == text


def test_blanks_cannot_push_the_rest_out_of_sight() -> None:
    assert visible("ls" + " " * 5000 + "; rm x") == "ls <5000 spaces> ; rm x"
    assert visible("ls" + " \t" * 30 + "; rm x") == "ls <60 spaces, 30 of them tabs> ; rm x"
    assert visible("\t" * 8 + "deep") == "\t" * 8 + "deep"
    assert visible("ls" + "\n" * 5000 + "rm x") == "ls\n<4999 empty lines>\nrm x"
    assert visible("ls\n" + " \t\n" * 5000 + "rm x").count("\n") < 5


@pytest.mark.parametrize("room", [40, 60, 120, 200])
def test_what_a_notification_leaves_out_is_counted(room: int) -> None:
    assert brief("short \u202e", room) == "short <U+202E>"
    for size in (room - 1, room, room + 1, 1_000, 40_000):
        text = "x" * (size - 1) + "\n"
        said = brief(text, room)
        assert len(said) <= room and "\n" not in said
        if size + 3 > room:  # the line feed is written out
            kept, _, rest = said.partition("…")
            assert int(rest.split()[0].strip("(").replace(",", "")) == size + 3 - len(kept)
        else:
            assert said == "x" * (size - 1) + "<LF>"


def test_one_line_is_one_line() -> None:
    assert on_a_line("a\nb\tc\r\n") == "a<LF>b<TAB>c<CR><LF>"


def _ask(**values: object) -> Ask:
    given: dict[str, object] = {"id": "a", "session": "s", "kind": "tool", "title": "Approve x?"}
    return Ask(at=0, **(given | values))  # type: ignore[arg-type]


def test_every_argument_is_shown_whole() -> None:
    args = {"command": "c" * 40_000, "n": 5, "deep": {"a": ["b" * 10_000]}, "\u202ekey": "v"}
    text = whole(_ask(args=args))
    assert "c" * 40_000 in text and "b" * 10_000 in text and "n: 5" in text
    assert "<U+202E>key" in text and "\u202e" not in text


def test_a_summary_never_stands_for_the_arguments() -> None:
    text = whole(_ask(args={"command": "rm -rf /", "q": 1}, summary="lists files"))
    assert "lists files" in text and "$ rm -rf /" in text


@pytest.mark.parametrize("room", [40, 80, 160, 500])
def test_a_cut_line_says_how_much_it_leaves_out(room: int) -> None:
    ask = _ask(args={"command": "x" * 40_000})
    full = line(ask, 1_000_000)[0]
    cut, left = line(ask, room)
    assert len(cut) <= room + 2 and f"{left:,} more characters" in cut
    assert left + len(cut.partition("…")[0]) == len(full)


def test_a_line_that_fits_leaves_nothing_out() -> None:
    assert line(_ask(args={"command": "ls"})) == ("Approve x? $ ls", 0)


def test_edits_of_other_agents_are_shown_as_differences() -> None:
    args = {"file_path": "/a", "edits": [{"old_string": "a", "new_string": "b"}]}
    shown = whole(_ask(args=args))
    assert "-a" in shown and "+b" in shown and "/a" in shown


def test_a_change_says_what_stays() -> None:
    old = "".join(f"{n}\n" for n in range(100))
    (part,) = parts(_ask(changes=(Change("/f", old, old.replace("50\n", "fifty\n")),)))
    assert part.kind == "diff"
    assert part.text.split("\n") == [
        "  (47 lines stay)", " 47", " 48", " 49", "-50", "+fifty", " 51", " 52", " 53",
        "  (46 lines stay)",
    ]  # fmt: skip
