"""An answer for always covers what it says, as long as it says, and not a thing more."""

from pathlib import Path
from typing import Any

import pytest
from tests.questions.asking import Asking

from dragoman.engine import events as ev
from dragoman.engine.faults import BadInput, UnknownRule
from dragoman.engine.traits import Waiver
from dragoman.store.sqlite import open_store
from dragoman.testing.host import host_of

TOUCH = [("bash", {"command": "touch x1"})]


async def test_a_plain_always_is_this_exact_command(tmp_path: Path) -> None:
    at = await Asking(tmp_path).open()
    settled = await at.always(TOUCH)
    assert settled.scope == "this exact command: touch x1 in this session" and settled.rule
    assert await at.passes("bash", command="touch x1")
    for other in (
        "touch x2",
        "touch  x1",
        "touch x1 ",
        "touch x1\n",
        "touch 'x1'",
        "rm -rf x1",
        "touch x1; rm x1",
        "TOUCH x1",
        "touch x1 #",
    ):
        assert not await at.passes("bash", command=other), other
    assert not await at.passes("bash", command="touch x1", timeout=5)


async def test_each_later_use_names_its_rule(tmp_path: Path) -> None:
    at = await Asking(tmp_path).open()
    settled = await at.always(TOUCH)
    assert at.started()[0].rules == ()  # the first time a human said yes
    assert await at.passes("bash", command="touch x1")
    started = at.started()[0]
    assert started.rules == (settled.rule,) and settled.scope in started.why
    allowed = [e for e in await at.door.history(at.session) if isinstance(e.body, ev.Allowed)]
    assert allowed[0].body.rule == settled.rule  # type: ignore[union-attr]


async def test_first_words_are_words_not_text(tmp_path: Path) -> None:
    at = await Asking(tmp_path).open()
    ask_calls = [("bash", {"command": "git add one"})]
    settled = await at.always(ask_calls, scope="prefix")
    assert "git add" in settled.scope
    for covered in (
        "git add two",
        "git add",
        "'git' \"add\" x",
        "git  add\tx",
        "git add a && git add b",
        "git add a; git add b",
        "git add a | git add b",
        "git add 2>/dev/null",
    ):
        assert await at.passes("bash", command=covered), covered
    for other in (
        "git addx",
        "git-add x",
        "git 'add x'",
        "gitadd x",
        "git commit",
        "git",
        "git -C . add x",
        "git -c core.editor=x add y",
        "./git add x",
        "/usr/bin/git add x",
        "GIT add x",
        "git Add x",
        "git add x; rm y",
        "git add x && rm y",
        "git add x || rm y",
        "git add x | rm y",
        "git add x\nrm y",
        "git add x & rm y",
        "git add $(rm y)",
        "git add `rm y`",
        "git add <(rm y)",
        "git add x > y",
        "git add x >> y",
        "git add x 2> y",
        "A=1 git add x",
        "GIT_DIR=/x git add x",
        "env git add x",
        "command git add x",
        "git add ${x:-'}'}",
        "git add x\rrm y",
        "git\u00a0add x",
        "git add\u2028rm y",
        "git add $'x\\n'",
        "(git add x)",
        "{ git add x; }",
        "! git add x",
        "git add x <<EOF\nEOF",
        "git add \\\nx; rm y",
        "if true; then git add x; fi",
        "alias git=rm; git add x",
        "git(){ rm y; }; git add x",
        "time git add x",
        "eval git add x",
    ):
        assert not await at.passes("bash", command=other), other


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build",
        "bash -c 'ls'",
        "env ls",
        "sudo ls",
        "xargs rm",
        "find . -delete",
        "curl x",
        "python -c 'x'",
        "python",
        "awk '{}' x",
        "sed -i s/a/b/ x",
        "ssh host ls",
        "git -C . add x",
        "npm run",
        "echo a > b",
        "echo $(ls)",
        "touch a & ls",
        "git add a && npm test",
        "A=1 make",
    ],
)
async def test_some_commands_offer_no_first_words(tmp_path: Path, command: str) -> None:
    at = await Asking(tmp_path).open()
    work = await at.go(("bash", {"command": command}))
    ask = await at.asked()
    assert "prefix" not in [scope.id for scope in ask.scopes]
    with pytest.raises(BadInput, match="not a scope"):
        await at.answer(ask, "allow_always", scope="prefix")
    await at.answer(ask, "deny")
    await work.done


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("git add x", ("git", "add")),
        ("npm run build --x", ("npm", "run", "build")),
        ("python tests/x.py a", ("python", "tests/x.py")),
        ("python -m pytest -x", ("python", "-m", "pytest")),
        ("ls -la", ("ls",)),
        ("cargo build", ("cargo", "build")),
    ],
)
async def test_the_words_offered_are_the_calls_own(
    tmp_path: Path, command: str, words: tuple[str, ...]
) -> None:
    at = await Asking(tmp_path, always_ask=()).open()
    work = await at.go(("bash", {"command": command}))
    ask = await at.asked()
    (scope,) = [one for one in ask.scopes if one.id == "prefix"]
    assert scope.argv == words
    await at.answer(ask, "deny")
    await work.done


async def test_this_file_is_this_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    at = await Asking(tmp_path).open()
    settled = await at.always([("write", {"path": "sub/a", "content": "1"})])
    assert settled.scope.startswith(f"writing this file: {tmp_path}/sub/a")
    assert await at.passes("write", path="sub/a", content="2")
    assert await at.passes("write", path="link/a", content="3")  # the same file
    assert await at.passes("edit", path="./sub/../sub/a", oldText="3", newText="4")
    for other in ("sub/b", "sub/A", "a", "sub/a.txt", "sub/aa"):
        assert not await at.passes("write", path=other, content="x"), other


async def test_a_folder_holds_what_is_below_it_and_nothing_else(tmp_path: Path) -> None:
    for name in ("sub", "sub/deep", "subway", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "sub" / "out").symlink_to(tmp_path / "other")
    (tmp_path / "sub" / "file").symlink_to(tmp_path / "other" / "target")
    at = await Asking(tmp_path).open()
    settled = await at.always([("write", {"path": "sub/a", "content": "1"})], scope="folder")
    assert settled.scope == f"writing files below {tmp_path}/sub in this session"
    for inside in (
        "sub/b",
        "sub/deep/c",
        "sub/deep/new/d",
        "sub/./e",
        "sub/deep/../f",
        "other/../sub/g",
    ):
        assert await at.passes("write", path=inside, content="x"), inside
    for outside in ("subway/a", "sub/../a", "sub/out/a", "sub/file", "other/a", "SUB/a"):
        assert not await at.passes("write", path=outside, content="x"), outside
    assert not await at.passes("bash", command="touch sub/a")


async def test_a_folder_swapped_for_a_link_leaves_the_rule(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "other").mkdir()
    at = await Asking(tmp_path).open()
    await at.always([("write", {"path": "sub/a", "content": "1"})], scope="folder")
    (tmp_path / "sub" / "a").unlink()
    (tmp_path / "sub").rmdir()
    (tmp_path / "sub").symlink_to(tmp_path / "other")
    assert not await at.passes("write", path="sub/a", content="x")
    assert not list((tmp_path / "other").iterdir())


async def test_this_tool_is_this_tool(tmp_path: Path) -> None:
    at = await Asking(tmp_path).open()
    settled = await at.always([("echo", {"text": "1"})])
    assert settled.scope == "this tool: echo in this session"
    assert await at.passes("echo", text="2")
    assert not await at.passes("bash", command="echo 2")
    assert not await at.passes("write", path="a", content="x")


async def test_always_ask_wins_over_every_rule(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    store = open_store(path)[0]
    at = await Asking(tmp_path, store=store).open()
    commands = {"exact": "touch x1", "prefix": "git add x", "tool": "mkdir d"}
    for scope, command in commands.items():
        await at.always([("bash", {"command": command})], scope=scope, lasts="agent")
        assert await at.passes("bash", command=command)
    await host_of(at.door).stop()
    strict = await Asking(tmp_path, store=store, always_ask=("bash",)).open()
    for command in commands.values():
        assert not await strict.passes("bash", command=command)
    work = await strict.go(*TOUCH)
    ask = await strict.asked()
    assert ask.firm and not ask.scopes
    with pytest.raises(BadInput, match="every time"):
        await strict.answer(ask, "allow_always", scope="tool")
    settled = await strict.answer(ask, "allow_always")  # a client that knows nothing of scopes
    await work.done
    assert settled.verdict == "allow" and "only this time" in settled.scope and not settled.rule
    assert not await strict.passes("bash", command="touch x1")
    await host_of(strict.door).stop()
    await store.close()


@pytest.mark.parametrize("waived", [{"everything": True}, {"tools": ("write",)}])
async def test_always_ask_wins_over_settings_of_a_session(tmp_path: Path, waived: Any) -> None:
    at = await Asking(tmp_path, always_ask=("write",)).open()
    await at.door.keep(at.session, Waiver, **waived)
    assert not await at.passes("write", path="a", content="x")


async def test_what_is_forbidden_cannot_be_remembered(tmp_path: Path) -> None:
    at = await Asking(tmp_path, forbidden_commands=("shutdown",)).open()
    await at.always([("bash", {"command": "echo hi"})], scope="tool", lasts="agent")
    assert await at.passes("bash", command="echo ho")
    assert not await at.passes("bash", command="shutdown -h")
    assert at.ended()[0].outcome == "denied" and not at.asks()


@pytest.mark.parametrize(
    ("lasts", "other_session", "other_project", "other_agent"),
    [
        ("session", False, False, False),
        ("project", True, False, False),
        ("agent", True, True, False),
    ],
)
async def test_a_rule_lasts_as_long_as_was_chosen(
    tmp_path: Path, lasts: str, other_session: bool, other_project: bool, other_agent: bool
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    path = str(tmp_path / "s.db")
    store = open_store(path)[0]
    at = await Asking(tmp_path / "here", store=store).open()
    first = at.session
    await at.always(TOUCH, lasts=lasts)
    assert await at.passes("bash", command="touch x1")
    await at.open()
    assert await at.passes("bash", command="touch x1") is other_session
    await at.open(cwd=str(tmp_path / "there"))
    assert await at.passes("bash", command="touch x1") is other_project
    await at.open(agent="other")
    assert await at.passes("bash", command="touch x1") is other_agent
    await host_of(at.door).stop()
    await store.close()

    store = open_store(path)[0]  # after a restart
    at = Asking(tmp_path / "here", store=store)
    at.session = first
    await at.door.load(first)
    await at.door.watch(first, ev.Who("test"), at.tape, lambda said: None, exact=True)
    assert await at.passes("bash", command="touch x1")
    assert not await at.passes("bash", command="touch x2")
    await at.open()
    assert await at.passes("bash", command="touch x1") is other_session
    await host_of(at.door).stop()
    await store.close()


async def test_a_withdrawn_rule_is_gone_at_once(tmp_path: Path) -> None:
    at = await Asking(tmp_path).open()
    settled = await at.always(TOUCH)
    (rule,) = await at.door.rules()
    assert rule.id == settled.rule and rule.by is not None and rule.by.dialect == "test"
    work = await at.go(
        ("bash", {"command": "touch x1"}),
        ("echo", {"text": "wait"}),
        ("bash", {"command": "touch x1"}),
    )
    ask = await at.asked()
    assert ask.tool == "echo"
    await at.door.remove_rule(rule.id)  # in the middle of a turn
    await at.answer(ask)
    ask = await at.asked(2)
    assert ask.tool == "bash"
    await at.answer(ask, "deny")
    await work.done
    assert list(await at.door.rules()) == []
    with pytest.raises(UnknownRule, match=rule.id):
        await at.door.remove_rule(rule.id)


async def test_rules_of_a_session_go_with_it(tmp_path: Path) -> None:
    at = await Asking(tmp_path).open()
    await at.always(TOUCH, lasts="session")
    await at.always([("bash", {"command": "touch y"})], lasts="project")
    await at.door.delete(at.session)
    assert [rule.lasts for rule in await at.door.rules()] == ["project"]


async def test_a_refusal_is_remembered_too(tmp_path: Path) -> None:
    at = await Asking(tmp_path).open()
    work = await at.go(*TOUCH)
    settled = await at.answer(await at.asked(), "deny_always", scope="exact")
    await work.done
    assert settled.scope.startswith("this exact command")
    assert not await at.passes("bash", command="touch x1") and not at.asks()
    assert settled.rule in at.said()
    await at.door.set_mode(at.session, "full")
    assert not await at.passes("bash", command="touch x1")
    assert await at.passes("bash", command="touch x2")


async def test_a_plain_refusal_is_of_the_whole_tool(tmp_path: Path) -> None:
    at = await Asking(tmp_path).open()
    work = await at.go(*TOUCH)
    await at.answer(await at.asked(), "deny_always")
    await work.done
    assert not await at.passes("bash", command="ls") and not at.asks()


@pytest.mark.parametrize(
    ("verdict", "more", "said"),
    [
        ("allow", {"scope": "exact"}, "no scope"),
        ("allow", {"lasts": "agent"}, "no scope"),
        ("allow_always", {"scope": "everything"}, "not a scope"),
        ("allow_always", {"scope": "folder"}, "not a scope"),
        ("allow_always", {"lasts": "for ever"}, "no time"),
        ("deny", {"scope": "tool"}, "no scope"),
    ],
)
async def test_what_was_not_offered_is_refused(
    tmp_path: Path, verdict: Any, more: dict[str, Any], said: str
) -> None:
    at = await Asking(tmp_path).open()
    work = await at.go(*TOUCH)
    ask = await at.asked()
    with pytest.raises(BadInput, match=said):
        await at.answer(ask, verdict, **more)
    await at.answer(ask, "deny")
    await work.done
    assert list(await at.door.rules()) == []


async def test_rules_of_before_do_not_count_any_more(tmp_path: Path) -> None:
    """An old "always" was for a whole tool, and did not say so."""
    at = await Asking(tmp_path).open()
    session = await host_of(at.door).get(at.session)
    await session.ledger.put(ev.Allowed("bash"))
    assert not await at.passes("bash", command="touch x1")


async def test_two_rules_may_cover_a_composed_command(tmp_path: Path) -> None:
    at = await Asking(tmp_path).open()
    one = await at.always([("bash", {"command": "git add x"})], scope="prefix")
    assert not await at.passes("bash", command="git add x && touch y")
    two = await at.always([("bash", {"command": "touch y"})], scope="prefix")
    assert await at.passes("bash", command="git add x && touch y")
    assert at.started()[0].rules == (one.rule, two.rule)


async def test_the_same_words_that_lead_elsewhere_are_asked_about(tmp_path: Path) -> None:
    """A link that is moved after the answer takes nothing along that was not agreed to."""
    for name in ("work", "agreed", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes").write_text(name)
    work = tmp_path / "work"
    link = work / "link"
    at = await Asking(work).open()
    call = ("bash", {"command": "cat link"})
    link.write_text("inside")
    await at.always([call])
    assert await at.passes("bash", **call[1])
    link.unlink()
    link.symlink_to(tmp_path / "agreed" / "notes")
    assert not await at.passes("bash", **call[1])
    settled = await at.always([call])
    assert settled.scope.endswith(f"cat link, reading {tmp_path}/agreed/notes in this session")
    assert await at.passes("bash", **call[1])
    link.unlink()
    link.symlink_to(tmp_path / "other" / "notes")
    assert not await at.passes("bash", **call[1])
    link.unlink()
    link.write_text("inside again")
    assert await at.passes("bash", **call[1])
