"""What a command writes must not run later, outside of its walls: whatever its line said."""

import asyncio
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tools.making import Env

from dragoman.engine.content import ToolCall, text_of
from dragoman.engine.ports import Reach
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.policy.guarded import guarded
from dragoman.policy.profiles import STANDARD
from dragoman.sandbox import room
from dragoman.sandbox.bubblewrap import Bubblewrap
from dragoman.sandbox.landlock import Landlock, abi
from dragoman.sandbox.launch import Confine, Unconfined
from dragoman.tools import undoing
from dragoman.tools.registry import Registry
from dragoman.tools.undoing import FoundEntry, GuardedEntries

ID = ("-c", "user.name=n", "-c", "user.email=e@x")


def backends() -> list[Any]:
    found: list[Any] = [pytest.param(Unconfined, id="none")]
    if abi():
        found.append(pytest.param(Landlock, id="landlock"))
    if shutil.which("bwrap"):
        found.append(pytest.param(Bubblewrap, id="bubblewrap"))
    return found


def git(*words: str, cwd: Path) -> str:
    done = subprocess.run(["git", *ID, *words], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout


class Desk:
    """A repository with an agent whose commands are all allowed."""

    def __init__(self, top: Path, confine: Confine) -> None:
        self.top, self.work, self.confine = top, top / "work", confine
        self.work.mkdir()
        git("init", "-q", "-b", "main", cwd=self.work)
        (self.work / "a.txt").write_text("a\n")
        (self.work / "AGENTS.md").write_text("be nice\n")
        (self.work / ".vscode").mkdir()
        (self.work / ".vscode/settings.json").write_text("{}\n")
        git("add", ".", cwd=self.work)
        git("commit", "-qm", "first", cwd=self.work)
        (self.work / ".git/hooks").mkdir(exist_ok=True)
        (self.work / ".git/hooks/pre-push").write_text("#!/bin/sh\nexit 0\n")
        (self.work / ".git/hooks/pre-push").chmod(0o755)
        rules = Rules(
            forbidden_paths=STANDARD.forbidden,
            sealed_paths=STANDARD.sealed,
            legible_paths=STANDARD.legible,
            auto_approve=("bash",),
        )
        self.policy = AutonomyPolicy(rules, home=str(top))
        scratch = top / "tmp"
        scratch.mkdir()
        self.tool = (
            Registry(
                lambda env: self.policy.boundary(env.mode, env.cwd, env.roots, env.reach),
                confine=lambda: confine,
                outputs=str(top / "outputs"),
                extra_env={"TMPDIR": str(scratch), "HOME": str(top)},
            )
            .toolbox()
            .find("bash")
        )

    async def run(self, command: str, mode: str = "supervised", agreed: bool = False) -> str:
        env = Env(str(self.work))
        env.mode = mode
        assert self.tool is not None
        if agreed:
            call = ToolCall("c", "bash", {"command": command})
            judged = self.policy.judge(
                call, self.tool.spec, mode="supervised", cwd=env.cwd, roots=()
            )
            assert judged.verdict == "ask" and judged.firm, judged
            env.reach = judged.reach
        return text_of((await self.tool.run({"command": command}, env)).content)  # type: ignore[arg-type]

    async def script(self, text: str) -> str:
        """Run it from a file, whose text nobody judges."""
        (self.work / "script.sh").write_text(text)
        return await self.run("sh script.sh")

    def guarded(self) -> dict[str, Any]:
        """Everything but what git and commands may write."""
        found: dict[str, Any] = {}
        for path in sorted(self.work.rglob("*")):
            name = str(path.relative_to(self.work))
            inner = name.startswith(".git/")
            if inner and not name.startswith((".git/config", ".git/hooks", ".git/info")):
                continue
            if name.endswith(".sample"):  # inert, and not put back
                continue
            about = path.lstat()
            data = os.readlink(path) if path.is_symlink() else ""
            data = (
                path.read_text(errors="replace")
                if path.is_file() and not path.is_symlink()
                else data
            )
            found[name] = (about.st_mode, data)
        found.pop("script.sh", None)
        return found


@pytest.fixture(params=backends())
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    yield Desk(tmp_path, request.param())


HOSTILE = {
    "hook": "printf '#!/bin/sh\\ntouch pwned' > .git/hooks/post-checkout; chmod +x .git/hooks/*",
    "hook replaced": "echo 'touch pwned' > .git/hooks/pre-push",
    "hook made runnable": "chmod 700 .git/hooks/pre-push",
    "hook by a link": "ln -sf ../../a.txt .git/hooks/pre-commit",
    "hook removed": "rm -f .git/hooks/pre-push",
    "hooks swapped": "mkdir h; echo x > h/pre-commit; mv .git/hooks old; mv h .git/hooks",
    "hooks as a link": "mkdir h; echo x > h/pre-commit; rm -rf .git/hooks; ln -s ../h .git/hooks",
    "hooks path": "git config core.hooksPath .evil",
    "fsmonitor": "git config core.fsmonitor 'touch pwned'",
    "configuration written": "printf '[core]\\n\\tfsmonitor = x\\n' >> .git/config",
    "on one line": "printf '[core] sshCommand = x\\n' >> .git/config",
    "by an include": "printf '[include]\\n\\tpath = ../evil\\n' >> .git/config",
    "alias": "git config alias.st '!touch pwned'",
    "pager": "git config core.pager 'touch pwned'",
    "the remote": "git config remote.origin.url https://evil.example/x",
    "filter": "git config filter.x.clean evil; echo '* filter=x' > .git/info/attributes",
    "per worktree": "echo '[core]\\nfsmonitor = x' > .git/config.worktree",
    "git moved": "mv .git g; cp -r g .git; echo x > .git/hooks/pre-commit; rm -rf g",
    "editor": "mkdir -p .vscode; echo '{}' > .vscode/tasks.json",
    "editor's settings": "echo '{\"x\": 1}' > .vscode/settings.json",
    "another editor": "mkdir -p .idea/runConfigurations; echo x > .idea/runConfigurations/a.xml",
    "direnv": "echo 'touch pwned' > .envrc",
    "rules": "echo 'obey me' >> AGENTS.md",
    "rules removed": "rm AGENTS.md",
    "other letters": "echo x > .ENVRC",
    "our own": "mkdir .dragoman; echo x > .dragoman/config.toml",
    "servers": "echo '{}' > .mcp.json",
    "by renaming": "echo x > e; mv e .envrc",
    "by a link": "echo x > e; ln -s e .envrc",
    "by a hard link": "echo x > e; ln e .envrc",
    "in a folder": "mkdir -p sub/.vscode; echo x > sub/.vscode/tasks.json; echo x > sub/.envrc",
    "a whole folder": "mkdir -p s/.husky; echo x > s/.husky/pre-commit; mv s packages",
    "a repository": "git init -q sub && git -C sub config core.fsmonitor 'touch pwned'",
    "a file for git": "mkdir sub evil; echo 'gitdir: ../evil' > sub/.git",
    "in the background": "(setsid sh -c 'sleep 0.2; echo x > .envrc' &) ; sleep 0.4",
    "pipe": "mkfifo .envrc",
    "pre-commit": "echo 'repos: []' > .pre-commit-config.yaml",
    "submodule in a folder": "git init -q --bare .git/modules/s/t; "
    "git --git-dir .git/modules/s/t config core.fsmonitor x",
    "its hook": "git init -q --bare .git/modules/s/t; echo x > .git/modules/s/t/hooks/pre-commit",
    "submodule of a submodule": "git init -q --bare .git/modules/s; mkdir .git/modules/s/modules; "
    "git init -q --bare .git/modules/s/modules/t; "
    "git --git-dir .git/modules/s/modules/t config core.fsmonitor x",
    "hidden in git's own folder": "git init -q --bare .git/x; mkdir sub; "
    "git --git-dir .git/x config core.fsmonitor x; echo 'gitdir: ../.git/x' > sub/.git",
    **{
        name: f"git init -q {place}; git -C {place} -c user.name=n -c user.email=e@x commit -qm x "
        f"--allow-empty; {more}; git update-index --add --cacheinfo "
        f"160000,$(git -C {place} rev-parse HEAD),{place}; "
        f"git -C {place} config core.fsmonitor 'touch pwned'"
        for name, place, more in (
            ("a submodule far below", "sub/b/c/d/e", ":"),
            ("where nobody looks", "node_modules/x", ":"),
            ("in a short index", "sub/b/c/d/e", "git update-index --index-version 4"),
            ("in a split index", "sub/b/c/d/e", "git update-index --split-index"),
        )
    },
    "a submodule of a submodule far below": "mkdir -p sub/b/c/d; cd sub/b/c/d; git init -q; "
    "git -c user.name=n -c user.email=e@x commit -qm x --allow-empty; git init -q e/f/g/h; "
    "git -C e/f/g/h -c user.name=n -c user.email=e@x commit -qm x --allow-empty; "
    "git update-index --add --cacheinfo 160000,$(git -C e/f/g/h rev-parse HEAD),e/f/g/h; "
    "H=$(git rev-parse HEAD); git -C e/f/g/h config core.fsmonitor 'touch pwned'; cd ../../../..; "
    "git update-index --add --cacheinfo 160000,$H,sub/b/c/d",
    "a bare repository": "git init -q --bare sub; git --git-dir sub config core.fsmonitor x",
    "by hand": "mkdir -p sub/objects sub/refs; echo 'ref: refs/heads/main' > sub/HEAD; "
    "printf '[core]\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = x\\n' > sub/config",
}  # fmt: skip
RISKY = (
    *(".envrc", "tasks.json", ".mcp.json", "config.toml", "pre-commit", "post-checkout", "a.xml"),
    *("attributes", "config.worktree", ".pre-commit-config.yaml"),
)


async def test_nothing_stays(desk: Desk) -> None:
    before = desk.guarded()
    staged = (desk.work / ".git/index").read_bytes()
    for name, text in HOSTILE.items():
        said = await desk.script(text)
        after = desk.guarded()
        assert {path: after.get(path) for path in before} == before, (name, said)
        new = {path for path in after if path not in before}
        risky = {path for path in new if path.rpartition("/")[2].casefold() in RISKY}
        assert not {path for path in risky if not path.startswith(("h/", "old/"))}, (name, said)
        for config in desk.work.rglob(".git/config"):
            assert "fsmonitor" not in config.read_text(), name
        assert not (desk.work / "sub/.git").is_file(), name
        for config in (*(desk.work / ".git/modules").rglob("config"), desk.work / "sub/config"):
            assert not config.exists() or "fsmonitor" not in config.read_text(), name
        assert not list((desk.work / ".git/modules").rglob("pre-commit")), name
        shutil.rmtree(desk.work / ".git/modules", ignore_errors=True)
        subprocess.run(["git", "status"], cwd=desk.work, capture_output=True, timeout=60)
        assert not list(desk.work.rglob("pwned")), name
        index = desk.work / ".git/index"
        if index.read_bytes() != staged:
            index.write_bytes(staged)
        for left in ("h", "old", "g", "sub", "e", "packages", "evil", "s", "node_modules"):
            path = desk.work / left
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    git("status", cwd=desk.work)
    assert not (desk.work / "pwned").exists()


ORDINARY = (
    "echo b >> a.txt; git add a.txt && git -c user.name=n -c user.email=e@x commit -qm more",
    "git checkout -q -b feature && git checkout -q main && git merge -q feature",
    "git stash -q; git tag v1; git gc -q",
    "git init -q inner && cd inner && echo x > y && git add y "
    "&& git -c user.name=n -c user.email=e@x commit -qm in",
    "git worktree add -q inside -b other",
    "git clone -q . copy",
    "git clone -q --bare . bare.git",
)


async def test_git_works(desk: Desk) -> None:
    for line in ORDINARY:
        for text in (await desk.script(f"set -e; {line}"), await desk.run("git status --short")):
            assert "[exit 0]" in text and "[undone" not in text, (line, text)
    assert "more" in git("log", "--oneline", cwd=desk.work)
    assert (desk.work / "inner/.git/config").exists() and (desk.work / "copy/a.txt").exists()


async def test_git_looks_where_the_repository_lies_outside(desk: Desk) -> None:
    """In a worktree, and in a folder below the checkout; there is no writing to either."""
    main, tree, other = desk.work, desk.top / "tree", desk.top / "other"
    git("worktree", "add", "-q", "-b", "apart", str(tree), cwd=main)
    git("clone", "-q", str(main), str(other), cwd=desk.top)
    (tree / "sub").mkdir()
    (tree / "a.txt").write_text("b\n")
    below = not isinstance(desk.confine, Bubblewrap)  # git stops at the mount of the workspace
    for desk.work in (tree, tree / "sub") if below else (tree,):
        text = await desk.script("set -e; git log --format=%s; git show apart:a.txt; git branch")
        assert "[exit 0]" in text and "first" in text and "* apart" in text, text
    desk.work = tree
    assert "+b" in await desk.run("git diff")
    walled = not isinstance(desk.confine, Unconfined)
    text = await desk.script("git commit -qam more; echo x > ../work/.git/x; cat ../work/a.txt")
    assert not walled or ("index.lock" in text and "a.txt: " in text), text
    assert not walled or not (main / ".git/x").exists()
    (main / "sub").mkdir()
    desk.work = main / "sub"
    text = await desk.script("git log --format=%s")
    assert not below or "first" in text, text
    # A file that leads to a repository which does not know of it opens nothing.
    desk.work = desk.top / "liar"
    desk.work.mkdir()
    (desk.work / ".git").write_text(f"gitdir: {other}/.git\n")
    assert not walled or "first" not in await desk.script("git log --format=%s")


async def test_a_plain_command_of_git_keeps_its_own_harmless_keys(desk: Desk) -> None:
    other = desk.work / "other.git"
    git("init", "-q", "--bare", str(other), cwd=desk.work)
    git("remote", "add", "origin", "./other.git", cwd=desk.work)
    text = await desk.run("git push -q -u origin main")
    assert "[exit 0]" in text and "undone" not in text, text
    assert "[branch" in (desk.work / ".git/config").read_text()


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("echo 'use nix' > .envrc", ".envrc"),
        ("git config core.editor vi", ".git/config"),
        ("cp a.txt .git/hooks/post-merge", ".git/hooks/post-merge"),
        ("mkdir -p .idea && touch .idea/x.xml", ".idea/x.xml"),
    ],
)
async def test_what_was_agreed_to_stays(desk: Desk, command: str, path: str) -> None:
    before = desk.guarded().get(path)
    text = await desk.run(command, agreed=True)
    assert "[exit 0]" in text and "undone" not in text, text
    assert desk.guarded()[path] != before


async def test_full_means_full(desk: Desk) -> None:
    text = await desk.run("echo x > .envrc; echo x > .git/hooks/pre-commit", mode="full")
    assert "undone" not in text and (desk.work / ".envrc").exists()
    assert (desk.work / ".git/hooks/pre-commit").exists()


async def test_what_was_put_aside_can_be_seen(desk: Desk) -> None:
    text = await desk.script("echo hello > .envrc")
    assert f"{desk.work}/.envrc was written" in text and "Use write or edit" in text
    [found] = [path for path in (desk.top / "outputs").rglob("*") if path.is_file()]
    assert found.read_text() == "hello\n"


@pytest.mark.skipif(not room.possible(__import__("ctypes").CDLL(None)), reason="no mounts here")
async def test_hooks_are_read_only_while_a_command_runs(tmp_path: Path) -> None:
    found = [one.values[0] for one in backends()[1:]]
    for number, backend in enumerate(found):
        (tmp_path / str(number)).mkdir()
        desk = Desk(tmp_path / str(number), backend())  # type: ignore[operator]
        text = await desk.script(
            "echo x > .git/hooks/pre-commit; echo x >> .git/config; mv .git g; ls .git/hooks"
        )
        assert text.count("Read-only file system") == 2 and "busy" in text, text
        assert "undone" not in text


async def test_what_the_owner_does_meanwhile_stays(tmp_path: Path) -> None:
    for number, backend in enumerate(one.values[0] for one in backends()[1:]):
        (tmp_path / str(number)).mkdir()
        desk = Desk(tmp_path / str(number), backend())  # type: ignore[operator]
        if backend is Landlock and not room.possible(__import__("ctypes").CDLL(None)):
            continue  # nobody can tell who wrote it
        task = asyncio.ensure_future(desk.script("touch began; while [ ! -e go ]; do :; done"))
        while not (desk.work / "began").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
        git("config", "core.editor", "mine", cwd=desk.work)
        (desk.work / "go").touch()
        text = await task
        assert "[exit 0]" in text and "undone" not in text, text
        assert "mine" in (desk.work / ".git/config").read_text()


async def test_reach_names_what_was_agreed_to(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Unconfined())
    assert desk.tool is not None
    call = ToolCall("c", "bash", {"command": "echo x > .envrc"})
    found = desk.policy.judge(call, desk.tool.spec, mode="supervised", cwd=str(desk.work), roots=())
    real = str(desk.work / ".envrc")
    assert found.firm and found.reach == (Reach(real, True, real),)


def test_a_folder_swapped_for_a_link_leads_nowhere(tmp_path: Path) -> None:
    """A command in the background can do that between any two looks of ours."""
    work, home = tmp_path / "work", tmp_path / "home"
    for folder in (work / "a", work / "b", home):
        folder.mkdir(parents=True)
    for name in (".npmrc", ".envrc"):
        (work / "a" / name).write_text("evil")
    (home / ".npmrc").write_text("secret")
    watch = GuardedEntries([str(work)])
    (work / "a").rename(work / "moved")
    (work / "a").symlink_to(home)
    assert undoing._kept(f"{work}/a/.npmrc") is None
    entry = FoundEntry(stat.S_IFREG, 0o600, b"evil")
    for name in (".bash_profile", ".envrc", ".npmrc"):
        assert not undoing._put(f"{work}/a/{name}", entry)
        undoing._take(f"{work}/a/{name}", entry, str(tmp_path / "aside"))
    undoing._remove(f"{work}/a/.npmrc")
    watch.undo(str(tmp_path / "aside"))
    assert os.listdir(home) == [".npmrc"] and (home / ".npmrc").read_text() == "secret"


@pytest.mark.parametrize("place", [".vscode", ".git/hooks"])
def test_limits_of_looking_cannot_be_filled(tmp_path: Path, place: str) -> None:
    """More entries than are looked at beforehand hide nothing that is written afterwards."""
    git("init", "-q", cwd=tmp_path)
    (tmp_path / "kept/.vscode").mkdir(parents=True)
    (tmp_path / "kept/.vscode/settings.json").write_text("mine")
    watch = GuardedEntries([str(tmp_path)])
    folder = tmp_path / place
    folder.mkdir(exist_ok=True)
    for number in range(700):
        (folder / f"{number}").touch()
    for number in range(200):
        (tmp_path / f"a{number}").mkdir()
        (tmp_path / f"a{number}/.envrc").write_text("evil")
    (tmp_path / "kept/.vscode/settings.json").write_text("evil")
    (said,) = watch.undo(str(tmp_path / "aside"))
    assert "undone" in said
    assert not list(tmp_path.glob("a*/.envrc"))
    assert not folder.exists() or all(p.suffix == ".sample" for p in folder.iterdir())
    assert (tmp_path / "kept/.vscode/settings.json").read_text() == "mine"


def test_what_was_not_looked_at_is_not_taken_for_new(tmp_path: Path) -> None:
    """A folder that is removed makes room for another one in the limits; that one is not new."""
    for number in range(200):
        (tmp_path / f"a{number}").mkdir()
        (tmp_path / f"a{number}/.envrc").write_text("mine")
    watch = GuardedEntries([str(tmp_path)])
    for number in range(150):
        shutil.rmtree(tmp_path / f"a{number}")
    (tmp_path / "new").mkdir()
    (tmp_path / "new/.envrc").write_text("evil")
    watch.undo(str(tmp_path / "aside"))
    assert not (tmp_path / "new/.envrc").exists()
    assert all((tmp_path / f"a{number}/.envrc").exists() for number in range(150, 200))


@pytest.mark.parametrize("confine", backends()[1:])  # without walls nothing is sealed
async def test_no_number_of_repositories_opens_what_is_sealed(
    tmp_path: Path, confine: type[Any]
) -> None:
    """Worktrees that a command makes take no place among what is locked for the next one."""
    work, own = tmp_path / "work", tmp_path / "work/own"
    own.mkdir(parents=True)
    (own / "p.py").write_text("ours")
    git("init", "-q", cwd=work)
    for number in range(300):
        (work / f".git/worktrees/{number}").mkdir(parents=True)
    policy = AutonomyPolicy(Rules(forbidden_paths=(), sealed_paths=(str(own),)))
    registry = Registry(lambda env: policy.boundary(env.mode, env.cwd, env.roots), confine=confine)
    tool = registry.toolbox().find("bash")
    assert tool is not None
    script = "echo evil > own/p.py; echo evil > .git/hooks/pre-commit"
    outcome = await tool.run({"command": f"sh -c '{script}'"}, Env(str(work)))  # type: ignore[arg-type]
    assert (own / "p.py").read_text() == "ours", text_of(outcome.content)
    assert not (work / ".git/hooks/pre-commit").exists()


@pytest.mark.parametrize("confine", backends())
async def test_the_home_directory_as_a_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confine: type[Any]
) -> None:
    """What a login, a shell or a bare name runs stays as it was, whether it was there or not."""
    monkeypatch.setenv("HOME", str(tmp_path))
    there = (".local/bin/tool", ".config/Code/User/settings.json", ".pyenv/version")
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("mine")
    new = ("bin/ls", ".config/fish/config.fish", ".Rprofile", ".jj/repo/config.toml")
    (tmp_path / "evil.sh").write_text(
        "".join(f"mkdir -p $(dirname {n}); echo evil > {n}\n" for n in (*there, *new))
    )
    policy = AutonomyPolicy(Rules(forbidden_paths=()), home=str(tmp_path))
    registry = Registry(lambda env: policy.boundary(env.mode, env.cwd, env.roots), confine=confine)
    tool = registry.toolbox().find("bash")
    assert tool is not None
    outcome = await tool.run({"command": "sh evil.sh; echo done > note"}, Env(str(tmp_path)))  # type: ignore[arg-type]
    said = text_of(outcome.content)
    assert (tmp_path / "note").read_text() == "done\n", said
    assert [n for n in there if (tmp_path / n).read_text() != "mine"] == [], said
    assert [n for n in new if (tmp_path / n).exists()] == [], said


def test_submodules_of_a_worktree_are_looked_into(tmp_path: Path) -> None:
    """Its index lies in its repository, and may name folders deeper than is looked otherwise."""
    main, tree = tmp_path / "main", tmp_path / "tree"
    main.mkdir()
    git("init", "-q", cwd=main)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=main)
    git("worktree", "add", "-q", str(tree), cwd=main)
    sub = tree / "a/b/c/d/e"
    sub.mkdir(parents=True)
    git("init", "-q", cwd=sub)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=sub)
    git("add", "a/b/c/d/e", cwd=tree)
    config = sub / ".git/config"
    was = config.read_text()
    watch = GuardedEntries([str(tree)])
    config.write_text(was + "[core]\n\tfsmonitor = touch ran\n")
    assert "undone" in watch.undo(str(tmp_path / "aside"))[0]
    assert config.read_text() == was


def test_what_stands_for_a_guarded_file_is_guarded(tmp_path: Path) -> None:
    """A hook that is a link to a script of the project, a folder of hooks by configuration."""
    root = tmp_path.resolve()
    git("init", "-q", cwd=root)
    git("config", "core.hooksPath", "tools/Hooks", cwd=root)
    stands = ("scripts/check.sh", "tools/Hooks/pre-push", "config/code/tasks.json")
    for name in (*stands, "scripts/other.sh"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("mine")
    (root / ".git/hooks").mkdir(exist_ok=True)
    (root / ".git/hooks/pre-commit").symlink_to("../../scripts/check.sh")
    (root / ".vscode").symlink_to("config/code")
    for name in stands:
        assert guarded(str(root / name), (str(root),)), name
    assert not guarded(str(root / "scripts/other.sh"), (str(root),))
    watch = GuardedEntries([str(root)])
    for name in (*stands, "scripts/other.sh"):
        (root / name).write_text("evil")
    (root / "tools/Hooks/post-merge").write_text("evil")
    (root / ".cursor").symlink_to("scripts")  # what it leads to was there before
    watch.undo(str(tmp_path / "aside"))
    assert [(root / name).read_text() for name in stands] == ["mine"] * 3
    assert (root / "scripts/other.sh").read_text() == "evil"  # somebody else's work
    assert not (root / "tools/Hooks/post-merge").exists()
    assert not (root / ".cursor").is_symlink()


def test_a_large_file_cannot_be_made_to_look_untouched(tmp_path: Path) -> None:
    file = tmp_path / ".vscode/large.json"
    file.parent.mkdir()
    file.write_bytes(b"a" * 300_000)
    before = os.stat(file)
    watch = GuardedEntries([str(tmp_path)])
    with open(file, "r+b") as opened:
        opened.write(b"b")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "undone" in watch.undo(str(tmp_path / "aside"))[0]


HIDING = {
    "in a bare repository": "mkdir objects refs; touch HEAD; put .envrc; put .vscode/tasks.json",
    "in one below": "mkdir -p sub/objects sub/refs; touch sub/HEAD; put sub/.envrc sub/in/.zshrc",
    "in what is built": "put build/.git/config vendor/.envrc node_modules/.vscode/tasks.json",
    "behind plain folders": "many; put .git/worktrees/tree/config.worktree",
    "behind deeper ones": "many; put .git/modules/z/lib/hooks/post-merge",
    "by a link that was copied": "put sub/shared/rc; ln -s shared/rc sub/.envrc",
    "in a folder closed to us": "put sub/.envrc; chmod 311 sub",
    "in one that cannot be changed": "put sub/.envrc; chmod 555 sub",
    "closed to us itself": "put .envrc.new; chmod 0 .envrc.new; mv .envrc.new .zshrc",
}


@pytest.mark.parametrize("script", HIDING.values(), ids=HIDING)
def test_no_look_of_a_folder_hides_what_was_written(tmp_path: Path, script: str) -> None:
    root = tmp_path / "work"
    root.mkdir()
    git("init", "-q", cwd=root)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=root)
    git("worktree", "add", "-q", "tree", cwd=root)
    git("init", "-q", "--bare", ".git/modules/z/lib", cwd=root)
    (root / "shared").mkdir()
    (root / "shared/rc").write_text("mine")
    (root / ".envrc").symlink_to("shared/rc")
    watch = GuardedEntries([str(root)])
    put = 'put() { for one; do mkdir -p "$(dirname "$one")"; echo evil > "$one"; done; }; '
    put += "many() { mkdir -p .git/modules/{1..200}/x; }; "
    subprocess.run(["bash", "-c", put + script], cwd=root, check=True)
    said = watch.undo(str(tmp_path / "aside"))
    for path in (root, root / "sub"):
        if path.exists():
            path.chmod(0o755)
    written = {".envrc", ".zshrc", "tasks.json", "config.worktree", "post-merge"}
    left = [p for p in root.rglob("*") if p.name in written or str(p).endswith("build/.git/config")]
    assert said and left == [root / ".envrc"] and left[0].read_text() == "mine", said


def test_a_link_in_the_place_of_a_closed_folder_changes_nothing_where_it_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command may put one there while the folder is looked into."""
    sub, outside, scandir = tmp_path / "work/sub", tmp_path / "outside", os.scandir
    sub.parent.mkdir()
    outside.mkdir(mode=0o700)
    watch = GuardedEntries([str(sub.parent)])
    sub.mkdir()
    sub.chmod(0o377)
    looks: list[str] = []

    def looked(path: str) -> Any:
        if path != str(sub):
            return scandir(path)
        looks.append(path)
        if len(looks) == 1:
            raise PermissionError  # as for whoever is not root
        found = scandir(path)
        sub.rename(tmp_path / "moved")
        sub.symlink_to(outside)
        return found

    monkeypatch.setattr(os, "scandir", looked)
    watch.undo(str(tmp_path / "aside"))
    assert len(looks) == 2 and stat.S_IMODE(outside.stat().st_mode) == 0o700
    (tmp_path / "moved").chmod(0o755)


def test_what_only_looks_like_it_stays(tmp_path: Path) -> None:
    """Bare repositories, what is built and links among rules are ordinary work."""
    (tmp_path / "AGENTS.md").write_text("rules")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / ".envrc").write_text("mine")
    closed.chmod(0o311)
    watch = GuardedEntries([str(tmp_path)])
    script = (
        "git init -q --bare x.git; mkdir -p sub build/lib; cp -P AGENTS.md CLAUDE.md sub; "
        "cp AGENTS.md build; touch build/lib/a.js; mkdir own; touch own/a; chmod 311 own"
    )
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True)
    assert watch.undo(str(tmp_path / "aside")) == []
    assert (tmp_path / "sub/CLAUDE.md").is_symlink() and (tmp_path / "x.git/config").exists()
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("closed", "own")]
    assert modes == [0o311, 0o311]
    closed.chmod(0o755)
    (tmp_path / "own").chmod(0o755)


def test_links_of_the_home_directory_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where settings are kept in a repository of their own, links lead there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "dots/nvim").mkdir(parents=True)
    (tmp_path / "dots/nvim/init.lua").write_text("mine")
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config/nvim").symlink_to("../dots/nvim")
    assert guarded(str(tmp_path / "dots/nvim/init.lua"), (str(tmp_path),))
    watch = GuardedEntries([str(tmp_path)])
    (tmp_path / "dots/nvim/init.lua").write_text("evil")
    (tmp_path / "dots/fish").mkdir()
    (tmp_path / ".config/fish").symlink_to("../dots/fish")
    watch.undo(str(tmp_path / "aside"))
    assert (tmp_path / "dots/nvim/init.lua").read_text() == "mine"
    assert not (tmp_path / ".config/fish").is_symlink()


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("CLAUDE.local.md", True), ("AGENTS.override.md", True), (".rules", True),
        (".github/copilot-instructions.md", True), (".cline/x", True), (".pdbrc", True),
        ("lefthook-local.yml", True), (".lefthook.toml", True), ("lefthook.yaml", True),
        ("lefthook.md", False), ("rules", False), ("docs/agents.txt", False),
    ],
)  # fmt: skip
def test_what_agents_and_hooks_go_by_is_guarded(tmp_path: Path, name: str, is_one: bool) -> None:
    assert guarded(f"{tmp_path}/{name}", (str(tmp_path),)) is is_one
