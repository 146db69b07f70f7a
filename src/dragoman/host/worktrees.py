"""Git worktrees for sessions: made beside nothing but the repository, ended by the user's word.

Git is called with the repository's hooks, file system monitors and signing switched off, and only
where a repository's configuration runs nothing: what an agent could write must not run here.
"""

import os
import re
import subprocess

from dragoman.engine.faults import BadInput, in_words
from dragoman.engine.visible import brief
from dragoman.engine.worktrees import Worktree
from dragoman.observe.programs import find
from dragoman.policy.repository import tame, worktree_tame

from .git import STILL, checkout_of, plain_env

_FOLDER = os.path.join(".agents", "worktrees")
_SECONDS = 120
_SILENT = "no reason given"


class GitWorktrees:
    """Implements `engine.worktrees.Worktrees`."""

    def make(self, cwd: str, name: str, mark: str) -> tuple[str, Worktree]:
        root = _root(cwd)
        base = _newest(root)
        slug = slug_of(name) or "session"
        branch = _free(root, slug, mark)
        folder = os.path.join(root, _FOLDER)
        if os.path.realpath(folder) != folder:
            raise BadInput(f"{folder} is a link.", "Remove it; worktrees are made there.")
        os.makedirs(folder, exist_ok=True)
        note = os.path.join(folder, ".gitignore")
        if not os.path.lexists(note):  # none of them is part of the repository
            with open(note, "x", encoding="utf-8") as file:
                file.write("*\n")
        path = os.path.join(folder, f"{slug}-{mark}")
        _git(root, "worktree", "add", "-q", "-b", branch, path, base)
        below = os.path.relpath(os.path.realpath(cwd), root)
        inside = os.path.normpath(os.path.join(path, below))
        os.makedirs(inside, exist_ok=True)  # a folder that no commit has
        return inside, Worktree(root, path, branch, base, unnamed=not slug_of(name))

    def name(self, tree: Worktree, title: str) -> str:
        slug = slug_of(title)
        if not slug:
            return tree.branch
        try:
            root = _root(tree.repository)
            branch = _free(root, slug, os.path.basename(tree.path).rpartition("-")[2])
            _git(root, "branch", "-q", "-m", tree.branch, branch)
        except BadInput:  # it keeps the name that it has
            return tree.branch
        return branch

    def end(self, tree: Worktree, how: str, title: str) -> str:
        root = _root(tree.repository)
        if os.path.realpath(tree.path) != tree.path or not tree.path.startswith(
            f"{root}/{_FOLDER}/"
        ):
            raise BadInput(f"{tree.path} is not any more what it was.", "Look at it by hand.")
        said = ""
        if how == "merge":
            said = self._merge(root, tree, title)
        if os.path.lexists(tree.path):
            _git(root, "worktree", "remove", "--force", tree.path)
        else:  # removed by hand: git may still know of it, which keeps the branch
            _git(root, "worktree", "prune")
        if _has(root, tree.branch):
            _git(root, "branch", "-q", "-D", tree.branch)
        return said or f"dropped {tree.branch}"

    def _merge(self, root: str, tree: Worktree, title: str) -> str:
        message = title.strip() or tree.branch
        _is_own(root, tree)
        under_way = os.path.join(root, ".git", "MERGE_HEAD")
        if os.path.lexists(under_way):  # the user's own, which is not ours to take back
            raise BadInput(
                f"A merge is under way in {root}.",
                "End it (git commit, or git merge --abort), then try again.",
            )
        if _git(tree.path, "status", "--porcelain").strip():
            _git(tree.path, "add", "-A")
            _git(tree.path, "commit", "-q", "-m", message, why="Set user.name and user.email.")
        if _git(root, "rev-parse", tree.branch).strip() == _git(root, "rev-parse", "HEAD").strip():
            return f"{tree.branch} changed nothing"
        try:
            _git(root, "merge", "-q", "--no-ff", "-m", f"Merge {message}", tree.branch)
        except BadInput as problem:
            said = problem.message
            if os.path.lexists(under_way):
                torn = _git(root, "diff", "--name-only", "--diff-filter=U", "-z").split("\0")[:-1]
                _git(root, "merge", "--abort")
                if torn:  # git's own words ask to mend what is taken back here
                    said = f"Both have changed {brief(', '.join(torn), 400)}."
            hint = f"Merge the branch by hand (git merge {tree.branch}), then drop it."
            if "would be overwritten by merge" in said:  # by hand it would be refused as well
                hint = "Put them away (git commit or git stash), then try again."
            hint = f"Nothing was merged. {hint}"
            raise BadInput(said, hint) from problem
        return f"merged {tree.branch}"


def slug_of(title: str) -> str:
    """A title as a part of a branch's name."""
    import unicodedata

    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].rstrip("-")


def _root(cwd: str) -> str:
    """The checkout around a folder. Raises BadInput when there is none that is safe to use."""
    if not find("git", [cwd]):
        raise BadInput("git is not installed.", "A worktree needs it.")
    place = checkout_of(cwd)
    if not place:
        raise BadInput(f"{cwd} is in no git repository.", "A worktree needs one: git init.")
    if not os.path.isdir(os.path.join(place, ".git")):
        raise BadInput(f"{place} is a worktree or a submodule itself.", "Use the repository.")
    if not tame(place):
        raise BadInput(
            f"The configuration of {place} may make git run other programs.",
            "Make the worktree by hand, and open the session there.",
        )
    return place


def _newest(root: str) -> str:
    """The commit that a new branch begins at. Raises BadInput when there is none."""
    try:
        return _git(root, "rev-parse", "-q", "--verify", "HEAD").strip()
    except BadInput as problem:
        if not problem.message.endswith(_SILENT):
            raise
    raise BadInput(
        f"The repository {root} has no commit yet.",
        "A worktree begins at one. Make it: git commit.",
    )


def _is_own(root: str, tree: Worktree) -> None:
    """What leads from a worktree to its repository, and to submodules, the session could write."""
    try:
        with open(os.path.join(tree.path, ".git"), encoding="utf-8", errors="replace") as file:
            leads = file.read(4_096).strip().removeprefix("gitdir: ")
    except OSError as problem:
        there = os.path.lexists(tree.path)
        what = f"cannot be read ({in_words(problem)})" if there else "was removed"
        raise BadInput(
            f"The worktree {tree.path} {what}: only what was committed there is left.",
            f"Merge the branch by hand (git merge {tree.branch}), then drop it.",
        ) from None
    inside = os.path.realpath(leads)
    if os.path.dirname(inside) != os.path.join(root, ".git", "worktrees"):
        raise BadInput(f"{tree.path}/.git leads elsewhere.", "Look at it by hand, then drop it.")
    if not worktree_tame(inside, tree.path):
        raise BadInput(
            f"What {tree.path} says to git, or a submodule in it, may make git run other programs.",
            f"Nothing was merged. Merge the branch {tree.branch} by hand, then drop it.",
        )


def _free(root: str, slug: str, mark: str) -> str:
    """A name for a branch that no other one has."""
    branch = f"agent/{slug}"
    return f"{branch}-{mark}" if _has(root, branch) else branch


def _has(root: str, branch: str) -> bool:
    given = [find("git", [root]), *STILL, "show-ref", "--verify", "--quiet"]
    given.append(f"refs/heads/{branch}")
    return subprocess.run(given, cwd=root, env=plain_env(), timeout=_SECONDS).returncode == 0


def _git(cwd: str, *words: str, why: str = "") -> str:
    try:
        done = subprocess.run(
            [find("git", [cwd]), *STILL, *words],
            cwd=cwd,
            env=plain_env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadInput(f"git {words[0]} could not be run: {in_words(error)}.") from error
    if done.returncode:
        # The reason comes first, and what it means for the whole last.
        told = " ".join((done.stderr.strip() or done.stdout.strip() or _SILENT).split())
        raise BadInput(f"git {words[0]}: {brief(told, 400)}", why)
    return done.stdout
