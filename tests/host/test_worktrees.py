"""Sessions in worktrees of their own: where, on which branch, and how they end."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput
from dragoman.engine.host import OpenSpec
from dragoman.engine.worktrees import Worktree
from dragoman.host.compose import Composed, compose
from dragoman.host.worktrees import GitWorktrees, slug_of
from dragoman.testing.script import Scripted, call, say, turn

ME = Who("test", id="c")
_NAMED = ("-c", "user.name=T", "-c", "user.email=t@example.org")


def git(folder: Path, *words: str) -> str:
    given = ["git", *_NAMED, *words]
    done = subprocess.run(given, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = (tmp_path / "repo").resolve()
    (place / "src").mkdir(parents=True)
    (place / "src" / "a.txt").write_text("one\n")
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    git(place, "config", "user.name", "T")
    git(place, "config", "user.email", "t@example.org")
    return place


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Composed]:
    composed = await compose(config_dir=str(tmp_path / "c"), store="memory")
    yield composed
    await composed.close()


async def opened(host: Composed, folder: Path, title: str = "Mend the äpples!") -> tuple[str, Path]:
    script = Scripted([turn(call("write", path="new.txt", content="new\n")), say("done")])
    host.models.offer("scripted", script, [script.model])
    spec = OpenSpec(
        cwd=str(folder), title=title, worktree=True, model=script.model.ref, mode="full"
    )
    info = await host.door.open(spec, ME)
    return info.id, Path(info.cwd)


async def test_it_works_there_and_is_merged_by_a_word(host: Composed, repository: Path) -> None:
    session, place = await opened(host, repository / "src")
    tree = Worktree.of((await host.door.info(session)).extra)
    assert tree.branch == "agent/mend-the-apples" and tree.repository == str(repository)
    assert place == Path(tree.path) / "src" and (place / "a.txt").read_text() == "one\n"
    await (await host.door.prompt(session, (Text("go"),), ME)).done
    assert (place / "new.txt").exists() and not (repository / "src" / "new.txt").exists()
    assert git(repository, "status", "--porcelain") == ""  # the worktrees are no part of it
    assert await host.door.end_worktree(session, "merge", ME) == "merged agent/mend-the-apples"
    assert (repository / "src" / "new.txt").read_text() == "new\n"
    assert not place.exists() and "agent/" not in git(repository, "branch", "--list")
    assert "Mend the äpples!" in git(repository, "log", "-1", "--format=%s")
    with pytest.raises(BadInput, match="merged"):
        await host.door.end_worktree(session, "drop", ME)


async def test_it_is_dropped_with_all_that_is_in_it(host: Composed, repository: Path) -> None:
    session, place = await opened(host, repository)
    (place / "x").write_text("x")
    assert "dropped" in await host.door.end_worktree(session, "drop", ME)
    assert not place.exists() and git(repository, "branch", "--format=%(refname:short)") == "main"


async def test_a_conflict_changes_nothing(host: Composed, repository: Path) -> None:
    session, place = await opened(host, repository)
    (place / "src" / "a.txt").write_text("theirs\n")
    (repository / "src" / "a.txt").write_text("ours\n")
    git(repository, "commit", "-qam", "ours")
    with pytest.raises(BadInput, match=r"Both have changed src/a\.txt\. Nothing") as raised:
        await host.door.end_worktree(session, "merge", ME)
    assert "by hand (git merge agent/" in raised.value.hint
    assert git(repository, "status", "--porcelain") == ""
    assert (repository / "src" / "a.txt").read_text() == "ours\n" and place.exists()
    with pytest.raises(BadInput, match="merge or drop"):
        await host.door.end_worktree(session, "keep", ME)


async def test_a_merge_of_the_users_own_stays_as_it_is(host: Composed, repository: Path) -> None:
    session, place = await opened(host, repository)
    (place / "new.txt").write_text("new\n")
    git(repository, "checkout", "-q", "-b", "side")
    (repository / "src" / "a.txt").write_text("side\n")
    git(repository, "commit", "-qam", "side")
    git(repository, "checkout", "-q", "main")
    (repository / "src" / "a.txt").write_text("ours\n")
    git(repository, "commit", "-qam", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "merge", "-q", "side")
    (repository / "src" / "a.txt").write_text("both, by hand\n")
    with pytest.raises(BadInput, match="merge is under way"):
        await host.door.end_worktree(session, "merge", ME)
    assert (repository / "src" / "a.txt").read_text() == "both, by hand\n"
    git(repository, "commit", "-qam", "side, too")
    assert "merged" in await host.door.end_worktree(session, "merge", ME)
    assert (repository / "new.txt").exists()


async def test_work_that_a_merge_would_overwrite_is_named(host: Composed, repository: Path) -> None:
    session, place = await opened(host, repository)
    (place / "src" / "a.txt").write_text("theirs\n")
    (repository / "src" / "a.txt").write_text("not committed\n")
    with pytest.raises(BadInput, match=r"local changes .* src/a\.txt") as found:
        await host.door.end_worktree(session, "merge", ME)
    assert "git stash" in found.value.hint  # by hand git would refuse it, too
    assert (repository / "src" / "a.txt").read_text() == "not committed\n" and place.exists()


async def test_two_of_one_title_have_two_branches(host: Composed, repository: Path) -> None:
    first, _ = await opened(host, repository, "same")
    second, _ = await opened(host, repository, "same")
    branches = [Worktree.of((await host.door.info(one)).extra).branch for one in (first, second)]
    assert branches[0] == "agent/same" and branches[1].startswith("agent/same-")


async def test_a_branch_is_named_by_the_first_prompt_when_there_was_no_title(
    host: Composed, repository: Path
) -> None:
    git(repository, "branch", "agent/mend-the-gate")
    script = Scripted([turn(call("bash", command="git commit -qm x --allow-empty")), *"abc"])
    host.models.offer("scripted", script, [script.model])
    spec = OpenSpec(cwd=str(repository), worktree=True, model=script.model.ref, mode="full")
    info = await host.door.open(spec, ME)
    assert Worktree.of(info.extra).branch == "agent/session"
    for text in ("Mend the gate!\nand more", "Something else"):
        await (await host.door.prompt(info.id, (Text(text),), ME)).done
    tree = Worktree.of((await host.door.info(info.id)).extra)
    assert tree.branch.startswith("agent/mend-the-gate-") and not tree.unnamed
    assert git(Path(info.cwd), "branch", "--show-current") == tree.branch
    assert f"branch {tree.branch}" in script.requests[0].system
    assert await host.door.end_worktree(info.id, "merge", ME) == f"merged {tree.branch}"


@pytest.mark.parametrize("gone", ["branch", "repository"])
async def test_a_branch_that_cannot_be_named_keeps_its_name(
    host: Composed, repository: Path, gone: str
) -> None:
    script = Scripted(["ok"])
    host.models.offer("scripted", script, [script.model])
    spec = OpenSpec(cwd=str(repository), worktree=True, model=script.model.ref, mode="full")
    info = await host.door.open(spec, ME)
    if gone == "branch":
        git(repository, "branch", "-m", "agent/session", "mine")
    else:
        (repository / ".git").rename(repository / "away")
    done = await (await host.door.prompt(info.id, (Text("Mend it"),), ME)).done
    assert done.outcome == "completed"
    assert Worktree.of((await host.door.info(info.id)).extra).branch == "agent/session"


async def test_what_an_agent_could_have_written_does_not_run(
    host: Composed, repository: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    for name in ("post-checkout", "pre-commit", "post-merge", "commit-msg", "prepare-commit-msg"):
        hook = repository / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
        hook.chmod(0o755)
    session, place = await opened(host, repository)
    (place / "x").write_text("x")
    await host.door.end_worktree(session, "merge", ME)
    assert not mark.exists() and (repository / "x").exists()
    git(repository, "config", "filter.evil.smudge", f"touch {mark}")
    with pytest.raises(BadInput, match="run other programs"):
        await opened(host, repository)


async def test_a_worktree_that_leads_elsewhere_is_not_merged(
    host: Composed, repository: Path, tmp_path: Path
) -> None:
    session, place = await opened(host, repository)
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (place / ".git").write_text(f"gitdir: {other}/.git\n")
    with pytest.raises(BadInput, match="leads elsewhere"):
        await host.door.end_worktree(session, "merge", ME)


@pytest.mark.parametrize("way", ["submodule", "own configuration", "another repository"])
async def test_what_a_worktree_says_to_git_does_not_run(
    host: Composed, repository: Path, tmp_path: Path, way: str
) -> None:
    """A filter runs when git looks: in a submodule, however deep, or by the worktree's own file."""
    session, place = await opened(host, repository)
    mark = tmp_path / "ran"
    evil = f'[filter "x"]\n\tclean = touch {mark}; cat\n'
    inside = repository / ".git/worktrees" / place.name
    if way == "submodule":
        sub = place / "a/b/c/d"
        sub.mkdir(parents=True)
        git(sub, "init", "-q")
        (sub / "f").write_text("x")
        (sub / ".gitattributes").write_text("* filter=x\n")
        git(sub, "add", "-A")
        git(sub, "commit", "-qm", "x")
        git(place, "add", "a/b/c/d")
        (sub / ".git/config").write_text((sub / ".git/config").read_text() + evil)
        (sub / "f").write_text("y")
    else:
        (place / ".gitattributes").write_text("* filter=x\n")
        (place / "src/a.txt").write_text("two\n")
        if way == "own configuration":
            git(repository, "config", "extensions.worktreeConfig", "true")
            (inside / "config.worktree").write_text(evil)
        else:
            git(tmp_path, "clone", "-q", "--bare", str(repository), "other")
            config = tmp_path / "other/config"
            config.write_text(config.read_text() + evil)
            (inside / "commondir").write_text(f"{tmp_path}/other\n")
    with pytest.raises(BadInput, match="run other programs"):
        await host.door.end_worktree(session, "merge", ME)
    assert not mark.exists()
    await host.door.end_worktree(session, "drop", ME)
    assert not mark.exists()


async def test_where_there_can_be_none(host: Composed, repository: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(BadInput, match="no git repository"):
        await opened(host, plain)
    git(plain, "init", "-q")
    with pytest.raises(BadInput, match="has no commit yet") as refused:
        await opened(host, plain)
    assert "revision" not in refused.value.message and "git commit" in refused.value.hint
    session = (await host.door.open(OpenSpec(cwd=str(plain)), ME)).id
    with pytest.raises(BadInput, match="has no worktree"):
        await host.door.end_worktree(session, "merge", ME)
    link = repository / ".agents"
    os.symlink(tmp_path, link)
    with pytest.raises(BadInput, match="link"):
        await opened(host, repository)


def test_titles_as_branches() -> None:
    assert slug_of("Fix: the   Büg/../x --evil") == "fix-the-bug-x-evil"
    assert slug_of("日本語") == "" and len(slug_of("x" * 300)) == 40
    assert GitWorktrees is not None


@pytest.mark.parametrize(("how", "fate"), [("merge", "merged"), ("drop", "dropped")])
async def test_a_session_whose_worktree_ended_takes_no_prompts(
    host: Composed, repository: Path, how: str, fate: str
) -> None:
    session, place = await opened(host, repository / "src")
    work = await host.door.prompt(session, (Text("go"),), ME)
    await work.done
    await host.door.end_worktree(session, how)
    with pytest.raises(BadInput, match=f"its worktree was {fate}") as refused:
        await host.door.prompt(session, (Text("go on"),), ME)
    assert str(place.parent) in refused.value.message and "new session" in refused.value.hint
    assert await host.door.read(session, 0, 100)  # what was said is still there


@pytest.mark.parametrize("pruned", [False, True])
async def test_a_worktree_that_was_removed_by_hand_is_ended_all_the_same(
    host: Composed, repository: Path, pruned: bool
) -> None:
    session, place = await opened(host, repository)
    branch = git(place, "branch", "--show-current")
    shutil.rmtree(place)
    if pruned:
        git(repository, "worktree", "prune")
        git(repository, "branch", "-D", branch)
    with pytest.raises(BadInput, match="was removed") as refused:
        await host.door.end_worktree(session, "merge", ME)
    assert f"git merge {branch}" in refused.value.hint
    assert await host.door.end_worktree(session, "drop", ME) == f"dropped {branch}"
    assert not git(repository, "branch", "--list", "agent/*")
    assert len(git(repository, "worktree", "list").splitlines()) == 1
