"""`ls`, `glob` and `grep`."""

import asyncio
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from tests.timed import promised
from tests.tools.making import Env, said

from dragoman.engine.faults import BadInput, Refused
from dragoman.policy.paths import Boundary
from dragoman.tools import ripgrep
from dragoman.tools.glob import alternatives, matches
from dragoman.tools.grep import Grep


@pytest.fixture
def tree(work: Path, tmp_path: Path) -> Path:
    for name, text in {
        "README.md": "Hello\nneedle here\n",
        "src/a.py": "import os\n\ndef needle():\n    pass\n",
        "src/deep/er/b.py": "x = 'Needle'\n",
        "src/c.ts": "needle\r\n",
        ".git/config": "needle\n",
        "data.bin": "nee\0dle needle\n",
        ".hidden": "needle\n",
    }.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(text.encode())
    (tmp_path / "secret").write_text("needle\n")
    (work / "away").symlink_to(tmp_path)
    (work / "src" / "run").write_text("")
    (work / "src" / "run").chmod(0o755)
    return work


async def test_ls(use: Any, tree: Path) -> None:
    names = said(await use("ls")).split("\n")
    assert names == [".git/", ".hidden", "README.md", "away@", "data.bin", "src/"]
    assert said(await use("ls", path="src")).split("\n") == ["a.py", "c.ts", "deep/", "run*"]
    assert said(await use("ls", path="src", limit=1)).startswith("a.py\n... [3 more of 4 entries")
    (tree / "none").mkdir()
    assert said(await use("ls", path="none")) == "[the directory is empty]"


@pytest.mark.parametrize(
    ("path", "kind"), [("nope", BadInput), ("README.md", BadInput), ("away", Refused)]
)
async def test_ls_of_what_is_no_directory(use: Any, tree: Path, path: str, kind: Any) -> None:
    with pytest.raises(kind):
        await use("ls", path=path)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.md", ["README.md"]),
        ("**/*.py", ["src/a.py", "src/deep/er/b.py"]),
        ("src/*.py", ["src/a.py"]),
        (
            "src/**",
            ["src/a.py", "src/c.ts", "src/deep/er/b.py", "src/run"],
        ),
        ("**/*.{py,ts}", ["src/a.py", "src/c.ts", "src/deep/er/b.py"]),
        ("**/er", ["src/deep/er/"]),
        ("src/**/", ["src/deep/", "src/deep/er/"]),
        ("**/*/", ["src/", "src/deep/", "src/deep/er/"]),
        ("**/config", ["[nothing matches]"]),
        ("away/*", None),
        ("/etc/*", None),
        ("../*", None),
    ],
)
async def test_glob(use: Any, tree: Path, pattern: str, found: list[str] | None) -> None:
    if found is None:
        with pytest.raises(Refused):
            await use("glob", pattern=pattern)
    else:
        assert sorted(said(await use("glob", pattern=pattern)).split("\n")) == found


async def test_glob_from_a_path(use: Any, tree: Path) -> None:
    assert said(await use("glob", pattern="*.py", path="src")) == "src/a.py"
    assert said(await use("glob", pattern=f"{tree}/src/*.py")) == "src/a.py"
    with pytest.raises(BadInput, match="pattern is required"):
        await use("glob", pattern=" ")


async def test_glob_is_bounded(use: Any, work: Path) -> None:
    for number in range(1100):
        (work / f"{number:04}").touch()
    lines = said(await use("glob", pattern="*")).split("\n")
    assert len(lines) == 1001
    assert lines[-1] == "... [100 more of 1100 matches]"


@pytest.mark.parametrize(
    ("path", "pattern", "matched"),
    [
        ("a/b", "**", True),
        ("a", "**/a", True),
        ("a/b/c", "a/**/c", True),
        ("a/c", "a/**/c", True),
        ("a/b/c", "a/*/c", True),
        ("a/b/c", "a/*", False),
        ("a" * 40, "*a*a*a*a*a*a*a*a*b", False),
        ("/".join("a" * 30), "/".join(["**", "a"] * 14 + ["b"]), False),
    ],
)
def test_patterns(path: str, pattern: str, matched: bool) -> None:
    began = time.process_time()
    assert matches(path, tuple(pattern.split("/"))) is matched
    assert time.process_time() - began < 1


def test_braces() -> None:
    assert alternatives("{a,b}{1,2}") == ["a1", "a2", "b1", "b2"]
    assert alternatives("a{b") == ["a{b"]
    with pytest.raises(BadInput):
        alternatives("{a,b}" * 10)


async def test_grep(use: Any, tree: Path) -> None:
    assert sorted(said(await use("grep", pattern="needle")).split("\n")) == [
        ".hidden:1: needle",
        "README.md:2: needle here",
        "src/a.py:3: def needle():",
        "src/c.ts:1: needle",
    ]
    found = said(await use("grep", pattern="NEEDLE", ignore_case=True, glob="*.py"))
    assert sorted(found.split("\n")) == [
        "src/a.py:3: def needle():",
        "src/deep/er/b.py:1: x = 'Needle'",
    ]
    assert said(await use("grep", pattern="nothing at all")) == "[nothing matches]"
    assert said(await use("grep", pattern="^needle$", path="src/c.ts")) == "src/c.ts:1: needle"
    assert said(await use("grep", pattern="needle", glob="src/**/*.{py,ts}")).count("\n") == 1


async def test_grep_with_context(use: Any, work: Path) -> None:
    (work / "f").write_text("".join(f"{n}\n" for n in range(1, 21)))
    assert said(await use("grep", pattern="^(5|6|15)$", context=1)).split("\n") == [
        *("f-4- 4", "f:5: 5", "f:6: 6", "f-7- 7"),
        "--",
        *("f-14- 14", "f:15: 15", "f-16- 16"),
    ]


async def test_grep_is_bounded(use: Any, work: Path) -> None:
    (work / "f").write_text("x\n" * 10_000 + "y" * 3000 + "\n")
    lines = said(await use("grep", pattern="x", limit=9999)).split("\n")
    assert (len(lines), lines[-1]) == (501, "... [stopped at 500 matches]")
    assert said(await use("grep", pattern="x", limit=1)).endswith("\n... [stopped at 1 match]")
    assert len(said(await use("grep", pattern="y"))) < 600
    (work / "f").write_text(("z" * 480 + "\n") * 400)
    text = said(await use("grep", pattern="z", limit=400))
    assert "truncated at 51200 bytes" in text and len(text) < 52_000


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({}, "pattern is required"),
        ({"pattern": "("}, "not a regular expression"),
        ({"pattern": "a", "context": 99}, "context must be between"),
        ({"pattern": "a", "limit": 0}, "limit"),
        ({"pattern": "a", "path": "none"}, "no such file"),
    ],
)
async def test_bad_searches(use: Any, args: Any, sentence: str) -> None:
    with pytest.raises(BadInput) as error:
        await use("grep", **args)
    assert sentence in str(error.value)


async def test_grep_stays_inside(use: Any, tree: Path, tmp_path: Path) -> None:
    for path in ("away", "/etc", "..", "/proc/self/environ"):
        with pytest.raises(Refused):
            await use("grep", pattern="x", path=path)


async def test_grep_leaves_out_what_is_forbidden_below(work: Path, env: Env) -> None:
    for name in ("ours", ".ssh", "free"):
        (work / name).mkdir()
        (work / name / "f").write_text("needle\n")
    os.link(work / ".ssh" / "f", work / "linked")
    home = str(work)
    grep = Grep(
        lambda env: Boundary(env.cwd, (), ("~/.ssh",), True, [str(work / "ours")], (), home)
    )
    outcome = await grep.run({"pattern": "needle"}, env)  # type: ignore[arg-type]
    assert said(outcome) == "free/f:1: needle"


async def test_names_that_are_no_utf8(use: Any, work: Path) -> None:
    (work / os.fsdecode(b"bad\xff")).write_text("needle\n")
    assert said(await use("grep", pattern="needle")) == r'"bad\377":1: needle'
    assert said(await use("glob", pattern="bad*")) == r'"bad\377"'
    assert said(await use("ls")) == r'"bad\377"'


@promised(0.5)
async def test_a_hostile_expression_stalls_nobody(work: Path, env: Env, within: float) -> None:
    (work / "f").write_text("a" * 60 + "!\n")
    grep = Grep(lambda env: Boundary(env.cwd), seconds=1)
    task = asyncio.ensure_future(grep.run({"pattern": "(?=a)(a+)+$"}, env))  # type: ignore[arg-type]
    turns, longest, before = 0, 0.0, time.monotonic()
    while not task.done():
        await asyncio.sleep(0.01)
        now = time.monotonic()
        turns, longest, before = turns + 1, max(longest, now - before), now
    with pytest.raises(BadInput, match="took longer than 1 s"):
        await task
    assert turns > 2 and longest < within


@promised(2)
async def test_a_cancelled_search_ends(
    work: Path, env: Env, monkeypatch: pytest.MonkeyPatch, within: float
) -> None:
    monkeypatch.setattr(ripgrep, "program", lambda: "")  # it would be done at once
    (work / "f").write_text("a" * 60 + "!\n")
    grep = Grep(lambda env: Boundary(env.cwd))
    for wait in (0.0, 0.05):
        task = asyncio.ensure_future(grep.run({"pattern": "(a+)+$"}, env))  # type: ignore[arg-type]
        await asyncio.sleep(wait)
        task.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < within


@pytest.fixture(params=["rg", "ours"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test that uses this must see the same with rg and without it."""
    if request.param == "rg" and not ripgrep.program():
        pytest.skip("rg is not here (make setup-tools)")
    if request.param == "ours":
        monkeypatch.setattr(ripgrep, "program", lambda: "")
    return str(request.param)


IGNORING = {
    ".git/HEAD": "ref: refs/heads/main",
    ".gitignore": "*.log\n/build\nsecret/\n!keep.log\na/**/z\n[xy].tmp\n\\#odd\n**/deep/*.o\n",
    "a.log": "needle",
    "keep.log": "needle",
    "build/b.txt": "needle",
    "src/build/b.txt": "needle",
    "src/secret/s.txt": "needle",
    "a/1/2/z": "needle",
    "a/z": "needle",
    "x.tmp": "needle",
    "z.tmp": "needle",
    "#odd": "needle",
    "q/deep/m.o": "needle",
    "q/deep/m.c": "needle",
    "src/.gitignore": "local.*\n!a.log\n",
    "src/local.txt": "needle",
    "src/a.log": "needle",
    "node_modules/m/index.js": "needle",
    "pkg/__pycache__/c.py": "needle",
    ".hidden/h.txt": "needle",
    "bin.dat": "needle\0",
    "other/.git/HEAD": "ref: needle",
    "other/.gitignore": "mine\n",
    "other/mine": "needle",
    "other/b.log": "needle",
}
SEEN = {
    "keep.log", "src/build/b.txt", "z.tmp", "q/deep/m.c", "src/a.log", ".hidden/h.txt",
    "other/b.log",
}  # fmt: skip


def plant(work: Path) -> None:
    for name, text in IGNORING.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)


async def test_ignored_files_are_not_searched(use: Any, work: Path, either: str) -> None:
    plant(work)
    lines = said(await use("grep", pattern="needle")).split("\n")
    assert {line.partition(":")[0] for line in lines} == SEEN
    found = said(await use("glob", pattern="**/*.*")).split("\n")
    assert set(found) >= SEEN - {"other/b.log"} and "a.log" not in found
    assert not any("node_modules" in name or "secret" in name for name in found)
    assert "src/local.txt" in said(await use("grep", pattern="needle", ignored=True))
    assert "node_modules/m/index.js" in said(await use("glob", pattern="**/*.js", ignored=True))
    inside = said(await use("grep", pattern="needle", path="src")).split("\n")
    assert {line.partition(":")[0] for line in inside} == {"src/build/b.txt", "src/a.log"}


async def test_outside_of_a_repository_the_rules_count_all_the_same(
    use: Any, work: Path, either: str
) -> None:
    plant(work)
    shutil.rmtree(work / ".git")
    lines = said(await use("grep", pattern="needle")).split("\n")
    # Nobody says where they end: not at a repository below, either.
    assert {line.partition(":")[0] for line in lines} == SEEN - {"other/b.log"}


async def test_paths_lead_there_from_the_working_directory(
    use: Any, work: Path, env: Env, either: str
) -> None:
    (work / "src" / "in").mkdir(parents=True)
    (work / "src" / "in" / "a.py").write_text("needle\n")
    (work / "src" / "in" / "b.txt").write_text("needle\n")
    for glob in (
        "*.py",
        "in/*.py",
        "**/*.py",
        "src/**/*.py",
        "src/in/a.*",
        "./in/a.py",
        "/in/*.py",
    ):
        found = said(await use("grep", pattern="needle", path="src", glob=glob))
        assert found == "src/in/a.py:1: needle", glob
    assert (
        said(await use("grep", pattern="needle", path="src", glob="*/b.py")) == "[nothing matches]"
    )
    (work / "..in").mkdir()  # a name that begins like the way out, and is none
    (work / "..in" / "c.py").write_text("needle\n")
    assert said(await use("grep", pattern="needle", path="..in")) == "..in/c.py:1: needle"
    shutil.rmtree(work / "..in")
    # A star stays within a name.
    assert said(await use("grep", pattern="needle", glob="src/*.py")) == "[nothing matches]"
    env.cwd = str(work / "src")
    env.roots = (str(work),)
    outside = said(await use("grep", pattern="needle", path=str(work), glob="*.py"))
    assert outside == f"{work}/src/in/a.py:1: needle"


async def test_the_newest_come_first(use: Any, work: Path, either: str) -> None:
    for number in range(20):
        (work / f"{number % 7}-{number}.py").write_text("x = 1\n")
        os.utime(work / f"{number % 7}-{number}.py", (1_000_000, 1_000_000 + number * 10))
    lines = said(await use("grep", pattern="x", limit=3)).split("\n")
    assert [line.partition(":")[0] for line in lines[:3]] == ["5-19.py", "4-18.py", "3-17.py"]
    assert said(await use("glob", pattern="*.py")).split("\n")[:2] == ["5-19.py", "4-18.py"]


@pytest.mark.parametrize(
    "pattern", [r"(?<=a)b", r"(a)\1", r"a{2,}", r"\bа\w+", "a|", "(?i)AAB", "é"]
)
async def test_expressions_find_the_same(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    (work / "one").write_text("aab\nабв\n\ncafé\n")
    (work / "two").write_bytes(b"caf\xe9 aa\r\nAAB\r\n")
    with_rg = said(await use("grep", pattern=pattern))
    monkeypatch.setattr(ripgrep, "program", lambda: "")
    assert said(await use("grep", pattern=pattern)) == with_rg


async def test_hostile_rules_cost_nothing(use: Any, work: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(ripgrep, "program", lambda: "")
    rules = ["*a" * 40 + "b", "**/a/" * 30 + "b", "[", "[!", "a" * 5000, "(" * 90, "\\", "!", "/"]
    (work / ".gitignore").write_text("\n".join(rules) + "\n*.x\n")
    (work / ("a" * 200)).write_text("needle")
    (work / "gone.x").write_text("needle")
    began = time.process_time()
    assert said(await use("grep", pattern="needle")) == "a" * 200 + ":1: needle"
    assert time.process_time() - began < 5


async def test_links_and_odd_files_are_passed_over(use: Any, work: Path, either: str) -> None:
    (work / "real").write_text("needle")
    (work / "link").symlink_to("real")
    (work / "loop").symlink_to(".")
    os.mkfifo(work / "pipe")
    (work / ".gitignore").mkdir()
    (work / os.fsdecode(b"b\xe9")).write_text("needle")
    lines = said(await use("grep", pattern="needle")).split("\n")
    assert sorted(lines) == [r'"b\351":1: needle', "real:1: needle"]


async def test_a_file_that_was_named_and_is_not_searched_is_told(use: Any, work: Path) -> None:
    with open(work / "large.txt", "wb") as file:
        file.write(b"needle\n")
        file.truncate(17 * 1024 * 1024)
    (work / "program").write_bytes(b"needle\0\n")
    (work / "many.txt").write_text("needle\n" * 300)
    large = said(await use("grep", pattern="needle", path="large.txt"))
    assert large == "[not searched: 17825792 bytes are too many to search here: use bash]"
    binary = said(await use("grep", pattern="needle", path="program"))
    assert binary == "[not searched: it looks binary: use bash]"
    assert said(await use("grep", pattern="other", path="many.txt")) == "[nothing matches]"
    many = said(await use("grep", pattern="needle", path="many.txt"))
    assert many.endswith("\n... [stopped at 200 matches]")


@pytest.mark.parametrize(("name", "levels"), [("d", 300), ("n" * 200, 30)])
async def test_however_deep_a_file_lies_it_is_found(
    use: Any, work: Path, either: str, name: str, levels: int
) -> None:
    """Deeper than directories are held open; by a way longer than the system takes in one piece."""
    (work / ".git").mkdir()
    here = os.open(work, os.O_RDONLY)
    for level in range(levels):
        for one in (name, "other"):  # to come back to, from far below
            os.mkdir(one, dir_fd=here)
        if level == levels - 2:
            _put_at(here, ".gitignore", "left.txt\n")
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    for file in ("deep.txt", "left.txt"):
        _put_at(here, file, "needle\n")
    os.close(here)
    way = f"{name}/" * levels + "deep.txt"
    assert said(await use("grep", pattern="needle")) == f"{way}:1: needle"
    assert said(await use("grep", pattern="needle", glob="**/*.txt")) == f"{way}:1: needle"
    assert said(await use("glob", pattern="**/*.txt")) == way
    folders = said(await use("glob", pattern=f"**/{name}/")).split("\n")
    assert len(folders) == levels


def _put_at(folder: int, name: str, text: str) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=folder)
    os.write(fd, text.encode())
    os.close(fd)


async def test_a_file_that_is_too_large_does_not_keep_rg_reading(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not ripgrep.program():
        pytest.skip("rg is not here (make setup-tools)")
    with open(work / "sparse", "wb") as file:
        file.truncate(1 << 40)  # hours of reading
    (work / "small").write_text("needle\n")
    monkeypatch.setattr(ripgrep, "_LOOK", 0.05)
    began = time.monotonic()
    for _ in range(2):  # the second time it is known
        assert said(await use("grep", pattern="needle")) == "small:1: needle"
    assert time.monotonic() - began < 60
    about = os.stat(work)
    assert (about.st_dev, about.st_ino) in ripgrep._heavy
    assert (about.st_dev, about.st_ino) not in ripgrep._stuck
