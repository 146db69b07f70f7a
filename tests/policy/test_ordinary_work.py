"""Ordinary development in the default profile: real programs, in the real sandbox.

The judge may not refuse any of it, and asks only about what lies outside; then it must run.
"""

import os
import shutil
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.tools.making import Env

from dragoman.engine.content import ToolCall, text_of
from dragoman.engine.ports import Judgement, Reach
from dragoman.policy import caches
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.policy.profiles import PROFILES, STANDARD, Profile, strangers
from dragoman.sandbox.landlock import Landlock, abi
from dragoman.tools.registry import Registry

pytestmark = pytest.mark.skipif(abi() == 0, reason="no Landlock here")

PYTHON = os.path.realpath(sys.executable)
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")


def policy_of(profile: Profile, home: Path, **rules: Any) -> AutonomyPolicy:
    """The policy of an agent of this profile, as the host makes it."""
    return AutonomyPolicy(
        Rules(
            forbidden_paths=(*profile.forbidden, *strangers(str(home))),
            sealed_paths=profile.sealed,
            legible_paths=profile.legible,
            writable_paths=profile.writable,
            reads_outside=profile.reads_outside,
            **rules,
        ),
        protected=[str(home / ".local/share/dragoman")],
        home=str(home),
    )


class Desk:
    """A project, a home, and an agent whose commands need no approval for being commands."""

    def __init__(self, top: Path, home: Path, profile: Profile = STANDARD) -> None:
        self.top, self.home = top, home
        self.work = top / "project"
        self.work.mkdir()
        self.policy = policy_of(profile, home, auto_approve=("bash", "shell"))
        self.path = "/usr/local/bin:/usr/bin:/bin"

    def judge(self, command: str, mode: str = "supervised") -> Judgement:
        box = Registry(lambda env: None).toolbox()  # type: ignore[arg-type,return-value]
        tool = box.find("bash")
        assert tool is not None
        call = ToolCall("c", "bash", {"command": command})
        return self.policy.judge(call, tool.spec, mode=mode, cwd=str(self.work), roots=())  # type: ignore[arg-type]

    async def run(
        self, command: str, reach: tuple[Reach, ...] = (), mode: str = "supervised"
    ) -> tuple[bool, str]:
        scratch = self.top / "scratch"
        scratch.mkdir(exist_ok=True)
        environ = {"HOME": str(self.home), "PATH": self.path, "TMPDIR": str(scratch)}
        environ |= caches.variables(STANDARD.forbidden, str(self.home))
        registry = Registry(
            lambda env: self.policy.boundary(env.mode, env.cwd, env.roots, env.reach),
            confine=Landlock,
            extra_env=environ,
        )
        tool = registry.toolbox().find("bash")
        assert tool is not None
        env = Env(str(self.work))
        env.reach, env.mode = reach, mode
        done = await tool.run({"command": command, "timeout": 170}, env)  # type: ignore[arg-type]
        return not done.is_error, text_of(done.content)

    async def works(self, command: str, mode: str = "supervised") -> str:
        """The command is neither refused nor asked about, and does what it should."""
        judged = self.judge(command, mode)
        assert judged.verdict == "allow", judged.reason
        fine, said = await self.run(command, judged.reach, mode)
        assert fine, said
        return said


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Temporary folders are none here, so that what lies beside the project is outside."""
    home = tmp_path / "home"
    home.mkdir()
    writable = tuple(path for path in STANDARD.writable if path not in TEMPORARY)
    return Desk(tmp_path, home, msgspec.structs.replace(STANDARD, writable=writable))


@pytest.fixture
def real(tmp_path: Path) -> Desk:
    """The default profile to the letter, with the home and the PATH of whoever runs this."""
    found = Desk(tmp_path, Path(os.path.expanduser("~")))
    found.path = os.environ["PATH"]
    return found


def interpreter(prefix: Path) -> None:
    """Something that looks like an installation of Python and says who it is."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib/python3.9").mkdir(parents=True)
    (prefix / "lib/python3.9/os.py").write_text("name = 'library'\n")
    program = prefix / "bin/python3.9"
    program.write_text(
        '#!/bin/sh\ncat "${0%/*}/../../lib-of-it" 2>/dev/null\necho "python of" $0\n'
    )
    program.chmod(0o755)
    (prefix / "bin/python3").symlink_to("python3.9")


def environment(place: Path, prefix: Path) -> None:
    (place / "bin").mkdir(parents=True)
    (place / "pyvenv.cfg").write_text(f"home = {prefix}/bin\nversion = 3.9.0\n")
    (place / "bin/python").symlink_to(prefix / "bin/python3.9")


@pytest.mark.parametrize("mode", ["supervised", "full"])
async def test_the_python_of_the_project(desk: Desk, mode: str) -> None:
    venv.create(desk.work / ".venv", with_pip=False, symlinks=True)
    (desk.work / "x.py").write_text("import json, sys; print(json.dumps([sys.prefix]))")
    said = await desk.works(".venv/bin/python x.py", mode)
    assert str(desk.work / ".venv") in said


@pytest.mark.parametrize("name", ["strict", "open"])
async def test_the_python_of_the_project_in_other_profiles(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    desk = Desk(tmp_path, home, PROFILES[name])
    (desk.work / "bin").mkdir()
    (desk.work / "bin/tool").symlink_to("/usr/bin/printf")
    assert "it runs" in await desk.works("bin/tool 'it runs'")


async def test_an_environment_whose_interpreter_is_pyenvs(desk: Desk) -> None:
    prefix = desk.home / ".pyenv/versions/3.9.0"
    interpreter(prefix)
    environment(desk.work / ".venv", prefix)
    assert "python of" in await desk.works(".venv/bin/python x.py")


async def test_the_shims_of_pyenv(desk: Desk) -> None:
    interpreter(desk.home / ".pyenv/versions/3.9.0")
    shims = desk.home / ".pyenv/shims"
    shims.mkdir()
    (shims / "python").write_text(
        f'#!/bin/sh\nexec {desk.home}/.pyenv/versions/3.9.0/bin/python3 "$@"\n'
    )
    (shims / "python").chmod(0o755)
    desk.path = f"{shims}:{desk.path}"
    assert "python of" in await desk.works("python x.py")
    assert "python of" in await desk.works(f"{shims}/python x.py")


async def test_an_environment_outside_of_the_project(desk: Desk) -> None:
    interpreter(desk.top / "pythons/3.9")
    environment(desk.top / "environments/mine", desk.top / "pythons/3.9")
    assert "python of" in await desk.works(f"{desk.top}/environments/mine/bin/python x.py")
    assert "python of" in await desk.works("../environments/mine/bin/python x.py")


async def test_an_environment_does_not_open_any_folder(desk: Desk) -> None:
    """Whoever can write pyvenv.cfg cannot read what it names."""
    private = desk.top / "private"
    (private / "bin").mkdir(parents=True)
    (private / "secret").write_text("s3cr3t")
    environment(desk.work / ".venv", private)
    fine, said = await desk.run(f"cat {private}/secret")
    assert not fine and "s3cr3t" not in said


async def test_pip_installs_into_the_project(real: Desk) -> None:
    wheel = real.work / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("thing.py", "VALUE = 5\n")
        info = "thing-1.0.dist-info"
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    venv.create(real.work / ".venv", with_pip=False, symlinks=True)
    _add_pip(real.work / ".venv")
    command = f".venv/bin/python -m pip install --no-index --no-deps --target deps ./{wheel.name}"
    await real.works(command)
    assert (real.work / "deps/thing.py").exists()


def _add_pip(environment: Path) -> None:
    """The pip that runs these tests, in a fresh environment (making one with pip takes seconds)."""
    import pip

    packages = next(environment.glob("lib/python3*/site-packages"))
    shutil.copytree(
        os.path.dirname(pip.__file__),
        packages / "pip",
        ignore=shutil.ignore_patterns("__pycache__"),
    )


async def test_git_commits(desk: Desk) -> None:
    import subprocess

    (desk.home / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.org\n")
    subprocess.run(["git", "init", "-q", str(desk.work)], check=True)
    (desk.work / "x").write_text("x")
    await desk.works("git add x && git commit -m 'first one' && git status")
    assert "first one" in await desk.works("git log --oneline")


NPM = [name for name in ("npm",) if shutil.which(name)]
CARGO = [name for name in ("cargo",) if shutil.which(name)]
GO = [name for name in ("go",) if shutil.which(name)]


@pytest.mark.parametrize("npm", NPM)
async def test_npm_installs_with_its_cache(desk: Desk, npm: str) -> None:
    desk.path = os.environ["PATH"]
    (desk.work / "inner").mkdir()
    (desk.work / "inner/package.json").write_text('{"name": "inner", "version": "1.0.0"}')
    (desk.work / "package.json").write_text('{"name": "outer", "version": "1.0.0"}')
    await desk.works(f"{npm} install --offline --no-audit --no-fund ./inner")
    assert (desk.work / "node_modules/inner/package.json").exists()
    assert (desk.home / ".npm").is_dir()


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("cargo", CARGO)
async def test_cargo_builds(real: Desk, cargo: str) -> None:
    (real.work / "src").mkdir()
    (real.work / "Cargo.toml").write_text(
        '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n'
    )
    (real.work / "src/main.rs").write_text('fn main() { println!("from rust"); }\n')
    await real.works(f"{cargo} build --offline")
    assert "from rust" in await real.works("target/debug/x")


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("go", GO)
async def test_go_tests(real: Desk, go: str) -> None:
    (real.work / "go.mod").write_text("module example.org/x\n\ngo 1.20\n")
    (real.work / "x_test.go").write_text(
        'package x\n\nimport "testing"\n\nfunc TestX(t *testing.T) {}\n'
    )
    assert "ok" in await real.works(f"{go} test")


async def test_a_server_in_the_background(desk: Desk) -> None:
    (desk.work / "serve.py").write_text(
        "import http.server, threading, urllib.request, sys\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0),"
        " http.server.SimpleHTTPRequestHandler)\n"
        "print(server.server_address[1], flush=True)\n"
        "server.serve_forever()\n"
    )
    (desk.work / "fetch.py").write_text(
        "import sys, urllib.request\n"
        "port = sys.stdin.readline().strip()\n"
        "opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))\n"
        "print(opener.open(f'http://127.0.0.1:{port}/hello').read().decode())\n"
    )
    (desk.work / "hello").write_text("from the server")
    (desk.work / "both.sh").write_text(
        "mkfifo pipe\npython3 serve.py > pipe 2>/dev/null &\npython3 fetch.py < pipe\n"
    )
    desk.path = f"{os.path.dirname(PYTHON)}:{desk.path}"
    assert "from the server" in await desk.works("sh both.sh")


async def test_the_temporary_folder(real: Desk) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile(dir="/tmp", prefix="ordinary-") as file:
        assert "hello" in await real.works(f"echo hello > {file.name} && cat {file.name}")


@pytest.mark.parametrize(
    "command",
    ["cat /etc/os-release", "ls /usr/bin", "cat /etc/passwd", "cat /proc/self/status",
     "cat /proc/cpuinfo", "ls /usr/share/zoneinfo"],
)  # fmt: skip
async def test_what_every_program_may_see(desk: Desk, command: str) -> None:
    await desk.works(command)


async def test_a_sibling_checkout_after_one_question(desk: Desk) -> None:
    sibling = desk.top / "sibling"
    sibling.mkdir()
    (sibling / "notes").write_text("from the sibling")
    judged = desk.judge("cat ../sibling/notes")
    assert judged.verdict == "ask"
    assert judged.reach == (Reach(str(sibling / "notes"), False, str(sibling)),)
    assert f"Allow reading {sibling}?" in judged.reason
    assert not (await desk.run("cat ../sibling/notes"))[0]
    fine, said = await desk.run("cat ../sibling/notes", judged.reach)
    assert fine and "from the sibling" in said
    assert not (await desk.run("touch ../sibling/new", judged.reach))[0]
    written = desk.judge("cd ../sibling && make")
    assert written.verdict == "ask" and any(one.write for one in written.reach)
    redirected = desk.judge("echo x > ../sibling/new")
    assert (await desk.run("echo x > ../sibling/new", redirected.reach))[0]
    assert (sibling / "new").read_text() == "x\n"


async def test_full_reaches_outside(desk: Desk) -> None:
    (desk.top / "sibling").mkdir()
    (desk.top / "sibling/notes").write_text("from the sibling")
    assert "from the sibling" in await desk.works("cat ../sibling/notes", "full")
    await desk.works("echo x > ../sibling/new", "full")
    judged = desk.judge("echo x > /etc/dragoman-test", "full")
    assert judged.verdict == "deny" and "never written" in judged.reason


SECRETS = (
    ".ssh/id_ed25519", ".gnupg/private", ".aws/credentials", ".netrc", ".npmrc", ".pypirc",
    ".config/gcloud/x", ".config/gh/hosts.yml", ".docker/config.json", ".kube/config",
    ".mozilla/firefox/x", ".config/google-chrome/Default/Cookies", ".password-store/x",
    ".bash_history", ".zsh_history", ".python_history", ".git-credentials",
    ".cargo/credentials.toml", ".local/share/keyrings/x", ".local/share/dragoman/sessions.db",
    ".cache/huggingface/token", ".cache/mozilla/firefox/x", ".cache/chromium/Default/x",
    ".gradle/daemon/8.5/registry.bin", ".m2/mvnd/registry", ".cache/bazel/x/server/request_cookie",
    ".hex/hex.config", ".ivy2/.credentials",
)  # fmt: skip


@pytest.fixture
def keeper(desk: Desk) -> Iterator[Desk]:
    for name in SECRETS:
        (desk.home / name).parent.mkdir(parents=True, exist_ok=True)
        (desk.home / name).write_text("s3cr3t")
    yield desk


@pytest.mark.parametrize("mode", ["supervised", "full"])
async def test_secrets_are_kept_in_every_mode(keeper: Desk, mode: str) -> None:
    for name in SECRETS:
        for command in (f"cat ~/{name}", f"cat $HOME/{name}", f"cat {keeper.home}/{name}"):
            assert keeper.judge(command, mode).verdict == "deny", command
    names = "\n".join(f"cat '{keeper.home}/{name}'" for name in SECRETS)
    (keeper.work / "steal.sh").write_text(names)
    said = (await keeper.run("sh steal.sh", mode=mode))[1]
    assert "s3cr3t" not in said
    written = "\n".join(f"echo mine > '{keeper.home}/{name}'" for name in SECRETS)
    (keeper.work / "spoil.sh").write_text(written)
    await keeper.run("sh spoil.sh", mode=mode)
    assert all((keeper.home / name).read_text() == "s3cr3t" for name in SECRETS)


async def test_caches_are_written_and_programs_beside_them_are_not(desk: Desk) -> None:
    for name in (".cargo/bin", ".cargo/registry", "go/bin", ".m2", ".cache", ".npm"):
        (desk.home / name).mkdir(parents=True, exist_ok=True)
    (desk.home / ".cargo/bin/tool").write_text("mine")
    for name in (".cargo/registry/x", ".cache/x", ".m2/repository/x", ".cache/deep/er", "go/pkg/x",
                 ".npm/x", ".npm/_cacache/x"):  # fmt: skip
        path = desk.home / name
        fine, said = await desk.run(f"mkdir -p {path.parent} && echo x > {path}")
        assert fine and path.exists(), said
    for name in (".cargo/bin/tool", ".cargo/bin/new", "go/bin/new", ".bashrc", "new"):
        fine, _ = await desk.run(f"echo evil > {desk.home / name}")
        assert not fine, name
    assert (desk.home / ".cargo/bin/tool").read_text() == "mine"


async def test_what_says_what_runs_is_not_made_beside_caches(desk: Desk) -> None:
    """The folders are there and these are not: whoever makes one runs in the owner's next build."""
    for name in (".cargo", "go", ".m2", ".pub-cache", ".sbt", ".mix"):
        (desk.home / name).mkdir(exist_ok=True)
    evil = (".cargo/config.toml", ".cargo/config", ".cargo/env", ".cargo/bin/ls", "go/bin/ls",
            ".m2/settings.xml", ".m2/extensions.xml", ".pub-cache/bin/ls", ".mix/archives/x",
            ".sbt/1.0/plugins/x.sbt", "go/src/x", ".cargo/env.fish", ".m2/wrapper/x")  # fmt: skip
    (desk.work / "spoil.sh").write_text(
        "\n".join(
            f"mkdir -p {desk.home}/{os.path.dirname(name)}; echo x > {desk.home}/{name}"
            for name in evil
        )  # fmt: skip
    )
    await desk.run("sh spoil.sh")
    assert not [name for name in evil if (desk.home / name).exists()]
    for name in ("go/pkg/mod/x", ".cargo/git/x", ".m2/repository/x", ".pub-cache/hosted/x"):
        path = desk.home / name
        fine, said = await desk.run(f"mkdir -p {path.parent} && echo x > {path}")
        assert fine and path.exists(), said


async def test_where_caches_hold_programs_commands_have_their_own(desk: Desk) -> None:
    """No new name is made beside such a program, and still every program finds a cache."""
    for name in (".cache/pip/x", ".cache/pre-commit/hook", ".npm/_npx/1/tool"):
        (desk.home / name).parent.mkdir(parents=True, exist_ok=True)
        (desk.home / name).write_text("the owner's")
    told = caches.variables(STANDARD.forbidden, str(desk.home))
    assert told["XDG_CACHE_HOME"] == str(desk.home / caches.OWN)
    assert told["PRE_COMMIT_HOME"] == str(desk.home / ".cache/pre-commit")
    words = " ".join(f"{name}={place}" for name, place in told.items())
    (desk.work / "write.sh").write_text(
        f"export {words}\n"
        'for place in "$XDG_CACHE_HOME" "$npm_config_cache" "$GRADLE_USER_HOME"; do\n'
        'mkdir -p "$place/deep" && echo mine > "$place/deep/x" || exit 1; done\n'
        "echo mine > ~/.cache/pip/x && cat $PRE_COMMIT_HOME/hook"
    )
    assert "the owner's" in await desk.works("sh write.sh")
    assert (desk.home / caches.OWN / "gradle/deep/x").read_text() == "mine\n"


# What the owner, or a shell of theirs, later runs as it is; the folder, and what is in it.
RUN_LATER = (
    ".cargo/bin/tool", ".cargo/env", ".cargo/env.fish", ".cargo/config", ".cargo/config.toml",
    "go/bin/tool", "go/src/mine/x.go", ".m2/settings.xml", ".m2/extensions.xml",
    ".m2/wrapper/dists/mvn", ".gradle/wrapper/dists/gradle",
    ".gradle/init.d/x.gradle", ".pub-cache/bin/tool", ".pub-cache/global_packages/x",
    ".mix/archives/x", ".sbt/1.0/plugins/x.sbt", ".sbt/boot/x.jar", ".npm/_npx/1/tool",
    ".cache/pre-commit/repo/hook", ".cache/pypoetry/virtualenvs/x/bin/python",
    ".cache/p10k-instant-prompt-me.zsh", ".cache/gitstatus/gitstatusd", ".cache/zsh/zcompdump",
    ".cache/nvim/luac/x", ".cache/wal/colors.sh", ".cache/uv/archive-v0/x/tool.py",
    ".cache/node/corepack/yarn.js", ".cache/ms-playwright/chrome", ".cache/pnpm/dlx/tool",
    ".cache/huggingface/modules/x.py", ".cache/black/24/cache.pickle", ".cache/pipx/1/bin/x",
    ".cache/coursier/jvm/bin/java", ".cache/torch/hub/x.py", ".cache/gstreamer-1.0/registry.bin",
    ".local/share/pnpm/store/x", ".bun/install/cache/x", ".bashrc",
)  # fmt: skip


async def test_what_the_owner_runs_later_is_not_written(desk: Desk) -> None:
    for name in RUN_LATER:
        path = desk.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("the owner's")
    lines = [
        line
        for name in RUN_LATER
        for path in [f"{desk.home}/{name}"]
        for line in (f"mkdir -p {os.path.dirname(path)}", f"echo evil > {path}", f"rm -f {path}",
                     f"mv {os.path.dirname(path)} {desk.work}/away", f"ln {path} {desk.work}/link",
                     f"echo evil > {desk.work}/link; rm -f {desk.work}/link")
    ]  # fmt: skip
    (desk.work / "spoil.sh").write_text("\n".join(lines))
    await desk.run("sh spoil.sh")
    found = {name: (desk.home / name) for name in RUN_LATER if (desk.home / name).exists()}
    assert sorted(found) == sorted(RUN_LATER)
    assert all(path.read_text() == "the owner's" for path in found.values())


@pytest.mark.root  # others cannot read it anyway
async def test_root_reads_no_secrets_of_the_system(desk: Desk) -> None:
    for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers"):
        assert desk.judge(f"cat {path}", "full").verdict == "deny"
        (desk.work / "x.sh").write_text(f"cat {path}")
        for mode in ("supervised", "full"):
            assert not (await desk.run("sh x.sh", mode=mode))[0], (path, mode)
