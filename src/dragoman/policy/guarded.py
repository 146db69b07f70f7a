"""Files of a workspace that make other programs run something: written only after a question.

They are configuration: whoever writes them decides what runs later, outside of any sandbox, when
the owner opens an editor, enters the folder or uses git.
"""

_FOLDERS = frozenset(
    ".vscode .idea .zed .fleet .vs .cursor .devcontainer .husky .githooks .dragoman .agents "
    ".claude .codex .gemini .direnv".split()
)
_FILES = frozenset(
    ".envrc .env-vars agents.md agents.toml dragoman.toml .mcp.json .gitmodules .gitconfig "
    ".gitattributes .exrc .vimrc .nvimrc .nvim.lua .lvimrc .dir-locals.el .pre-commit-config.yaml "
    ".bashrc .bash_profile .bash_login .profile .zshrc .zshenv .zprofile .npmrc .yarnrc "
    ".yarnrc.yml .pypirc .tool-versions .mise.toml .autoenv .autoenv.zsh .sublime-workspace".split()
)
_GIT = frozenset({"config", "config.worktree", "hooks", "info", "commondir", "gitdir"})


def guarded(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a canonical path inside of a workspace is one that needs a question to be written."""
    root = max((r for r in roots if path == r or path.startswith(r.rstrip("/") + "/")),
               key=len, default="")  # fmt: skip
    if not root:
        return False
    names = [name.casefold() for name in path[len(root) :].split("/") if name]
    if not names:
        return False
    if names[-1] in _FILES or any(name in _FOLDERS for name in names):
        return True
    if names[-1] == ".git":  # a file there names another repository
        return True
    if ".git" in names:
        inside = names[names.index(".git") + 1 :]
        # Submodules and worktrees keep theirs below: .git/modules/x/config.
        return any(name in _GIT for name in inside[:1] + inside[2:]) if inside else True
    return False
