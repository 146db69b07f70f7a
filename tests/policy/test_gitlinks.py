"""Our reader of git's index finds the submodules that git itself finds."""

import random
import subprocess
from pathlib import Path

import pytest

from dragoman.policy.gitlinks import linked, links


def git(place: Path, *words: str, said: str = "") -> str:
    done = subprocess.run(
        ["git", *words], cwd=place, check=True, capture_output=True, text=True, input=said
    )
    return done.stdout


def by_git(place: Path) -> list[str]:
    rows = git(place, "ls-files", "--stage", "-z").split("\0")
    return sorted(row.partition("\t")[2] for row in rows if row.startswith("160000"))


@pytest.mark.parametrize("form", ["sha1", "sha256"])
@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("split", [False, True])
def test_they_are_those_that_git_finds(
    tmp_path: Path, form: str, version: int, split: bool
) -> None:
    rng = random.Random(f"{form}{version}{split}")
    git(tmp_path, "init", "-q", f"--object-format={form}")
    blob = git(tmp_path, "hash-object", "-w", "--stdin", said="x").strip()
    rows = []
    for n in range(300):
        deep = "/".join("abcdefgh"[: rng.randrange(1, 8)] for _ in range(rng.randrange(1, 6)))
        mode = "160000" if rng.random() < 0.3 else "100644"
        rows.append(f"{mode} {blob}\t{deep}-{n}/{'x' * rng.randrange(1, 200)}\n")
    git(tmp_path, "update-index", f"--index-version={version}", "--index-info", said="".join(rows))
    if version == 3:  # an entry that has further flags
        git(tmp_path, "update-index", "--skip-worktree", by_git(tmp_path)[0])
    if split:
        git(tmp_path, "update-index", "--split-index")
    assert len(by_git(tmp_path)) > 50
    assert sorted(linked(str(tmp_path / ".git"))) == by_git(tmp_path)
    more = f"160000 {blob}\tlater\n"
    git(tmp_path, "update-index", "--index-info", said=more)
    assert "later" in linked(str(tmp_path / ".git"))


def test_what_is_no_index_is_said_to_be_none(tmp_path: Path) -> None:
    assert linked(str(tmp_path)) == ()
    for data in (b"", b"DIRC", b"DIRC\0\0\0\5\0\0\0\1", b"DIRC\0\0\0\4\0\0\0\1" + b"\xff" * 80):
        with pytest.raises(ValueError, match="."):
            list(links(data))
