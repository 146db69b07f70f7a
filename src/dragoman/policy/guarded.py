"""Files of a workspace that make other programs run something: written only after a question.

They are configuration: whoever writes them decides what runs later, outside of any sandbox, when
the owner opens an editor, enters the folder, logs in or uses git.
"""

import contextlib
import os
import re
from collections import deque
from collections.abc import Iterator, Sequence

_FOLDERS = frozenset(
    ".vscode .idea .zed .fleet .vs .cursor .devcontainer .husky .githooks .dragoman .agents "
    ".claude .codex .gemini .direnv .windsurf .clinerules .continue .roo .kiro .vim .nvim "
    ".emacs.d .sublime .nova .lefthook .bashrc.d .zshrc.d .oh-my-zsh .helix .mise .opencode .qwen "
    ".amazonq .augment .trae .junie .goose .kilocode .cline .factory .openhands .idx".split()
)
_FILES = frozenset(
    ".envrc .env-vars agents.md agents.toml dragoman.toml .mcp.json .gitmodules .gitconfig "
    ".gitattributes .exrc .vimrc .gvimrc .nvimrc .nvim.lua .lvimrc .dir-locals.el "
    ".pre-commit-config.yaml .pre-commit-config.yml lefthook.yml .lefthook.yml .overcommit.yml "
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv "
    ".zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout .xprofile .xsession .xinitrc "
    ".xsessionrc .pam_environment .inputrc .screenrc .tmux.conf .emacs .gdbinit .lldbinit .npmrc "
    ".yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc .tool-versions .mise.toml mise.toml .rtx.toml "
    ".autoenv .autoenv.zsh .sublime-workspace .claude.json claude.md gemini.md .cursorrules "
    ".windsurfrules .goosehints .aider.conf.yml .terraformrc .curlrc .wgetrc "
    ".pythonstartup.py .irbrc .pryrc .psqlrc .sqliterc .ghci .hgrc .bazelrc hgrc "
    "hgrc-not-shared .dir-locals-2.el .lazy.lua .ycm_extra_conf.py mise.local.toml "
    ".mise.local.toml .prototools opencode.json opencode.jsonc .crush.json crush.md qwen.md "
    ".devcontainer.json .rprofile .renviron .rdata .iex.exs .ocamlinit .octaverc .erlang .gnuplot "
    "agents.override.md agent.md claude.local.md copilot-instructions.md .rules "
    "warp.md .gitpod.yml .pdbrc .pdbrc.py "
    ".rvmrc .rbenv-vars .autoenv_leave.zsh .gdbearlyinit .vimrc.local .local.vimrc".split()
)
# By the folder and its name: settings of other version managers, and of tools that shells ask.
_HOOKS_OF_GIT = re.compile(r"\.?lefthook(-local)?\.(ya?ml|toml|jsonc?)")
_PAIRS = frozenset(
    "repo/config.toml .jj/config.toml .sl/config .pijul/config .config/mise.toml "
    "mise/config.toml".split()
)
_PAIRED = frozenset(pair.rpartition("/")[2] for pair in _PAIRS)
_ENDS = (".code-workspace", ".sublime-project")
# Of the home directory, when it is the workspace: what a login or a bare name runs.
_AT_HOME = tuple(
    """
    bin .local/bin .local/lib .local/share/bash-completion .local/share/dbus-1 .local/share/fish
    .local/share/nvim .local/share/gnome-shell .config/fish .config/environment.d .config/git
    .config/nvim .config/nushell .config/direnv .config/mise .config/kitty .config/tmux .config/zsh
    .config/bash .config/powershell .config/elvish .config/xonsh .config/emacs .config/vim
    .config/helix .config/zed .config/Code/User .config/VSCodium/User .config/Cursor/User
    .config/sublime-text .config/alacritty .config/wezterm .config/foot .config/ghostty
    .config/starship.toml .config/i3 .config/sway .config/hypr .config/river .config/awesome
    .config/openbox .config/bspwm .config/sxhkd .config/waybar .config/polybar .config/npm
    .config/yarn .config/jj .config/hg .config/pypoetry .config/mimeapps.list
    .config/plasma-workspace .config/lf .config/ranger .config/vifm .ipython .julia/config .zsh
    .bash_completion .tmux .xonshrc .pyenv .nvm .rustup .rbenv .rvm .asdf .sdkman .volta .bun .deno
    .fnm .gem .yarn .poetry
    """.split()
)
GIT = frozenset({"config", "config.worktree", "hooks", "info", "commondir", "gitdir"})
_LOCKED = ("config", "config.worktree", "hooks", "info", "commondir")
_HOOKS_PATH = rb'(?im)^\s*hookspath\s*=\s*"?([^"\n#;]+?)"?\s*$'
_CONFIGURATION = 65_536  # bytes of it that are read
MODULES = 128  # folders that are looked through for submodules


def is_guarded(name: str, folder: str = "") -> bool:
    """Whether an entry of a folder is one of these, by its name."""
    plain = name.casefold()
    if plain in _FILES or plain in _FOLDERS or plain.endswith(_ENDS):
        return True
    if "lefthook" in plain and _HOOKS_OF_GIT.fullmatch(plain):
        return True
    return plain in _PAIRED and f"{os.path.basename(folder)}/{name}".casefold() in _PAIRS


def at_home(root: str) -> Iterator[str]:
    """What of a workspace counts whatever its name is, when it is the home directory."""
    if root == os.path.realpath(os.path.expanduser("~")):
        yield from filter(os.path.lexists, (os.path.join(root, name) for name in _AT_HOME))


def led(root: str) -> Iterator[str]:
    """Files and folders of a workspace that stand for guarded ones.

    A link leads to them (a hook that is a script of the project), or git is told that its hooks
    are there.
    """
    hooks = os.path.join(root, ".git", "hooks")
    for folder in (root, os.path.dirname(hooks), hooks):
        with contextlib.suppress(OSError), os.scandir(folder) as entries:  # none
            for entry in entries:
                inside = folder == hooks or entry.path == hooks
                if (inside or is_guarded(entry.name, folder)) and entry.is_symlink():
                    yield from _in(root, entry.path)
    for path in filter(os.path.islink, at_home(root)):
        yield from _in(root, path)
    with contextlib.suppress(OSError), open(f"{root}/.git/config", "rb") as file:
        for said in re.findall(_HOOKS_PATH, file.read(_CONFIGURATION)):
            yield from _in(root, os.path.join(root, os.fsdecode(said)))


def _in(root: str, path: str) -> Iterator[str]:
    real = os.path.realpath(path)
    if real.startswith(root.rstrip("/") + "/") and os.path.exists(real):
        yield real


def guarded(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a canonical path inside of a workspace is one that needs a question to be written."""
    root = max((r for r in roots if path == r or path.startswith(r.rstrip("/") + "/")),
               key=len, default="")  # fmt: skip
    if not root:
        return False
    names = [name.casefold() for name in path[len(root) :].split("/") if name]
    if not names:
        return False
    above = names[-2] if len(names) > 1 else os.path.basename(root)
    if is_guarded(names[-1], above) or any(name in _FOLDERS for name in names):
        return True
    if names[-1] == ".git":  # a file there names another repository
        return True
    if ".git" in names:
        inside = names[names.index(".git") + 1 :]
        # Submodules and worktrees keep theirs below: .git/modules/x/config.
        return any(name in GIT for name in inside[:1] + inside[2:]) if inside else True
    below = "/".join(names) + "/"
    if root == os.path.realpath(os.path.expanduser("~")):
        if any(below.startswith(f"{place.casefold()}/") for place in _AT_HOME):
            return True
    return any(f"{path}/".startswith(f"{place}/") for place in led(root))


def repositories(root: str, left_out: set[str] | None = None, most: int = MODULES) -> Iterator[str]:
    """The folders of git in a workspace whose configuration counts: its own, and submodules'.

    What is a repository is found before what may hold one, so that plain folders hide none. No
    more than `most` of those are looked through, and none of `left_out`, which the rest is added
    to.
    """
    own = os.path.join(root, ".git")
    if os.path.islink(own) or not os.path.isdir(own):
        return
    yield own
    trees = list(_folders(os.path.join(own, "worktrees")))
    yield from trees
    waiting = deque(os.path.join(place, "modules") for place in (own, *trees))
    skipped = set() if left_out is None else left_out
    looked = 0
    while waiting and looked < most:
        folder = waiting.popleft()
        if folder in skipped or not os.path.isdir(folder):
            continue
        looked += 1
        for place in _folders(folder):
            if is_repository(place):
                yield place
                waiting.append(os.path.join(place, "modules"))  # submodules of submodules
            else:
                waiting.append(place)  # the submodule a/b lies in modules/a/b
    skipped.update(waiting)


def _folders(path: str) -> Iterator[str]:
    with contextlib.suppress(OSError):  # none
        for name in sorted(os.listdir(path)):
            place = os.path.join(path, name)
            if os.path.isdir(place) and not os.path.islink(place):
                yield place


def is_repository(folder: str) -> bool:
    """Whether git takes a folder for a repository, whatever its name is."""
    return all(os.path.lexists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs"))


def locked(roots: Sequence[str]) -> tuple[str, ...]:
    """What is to be read-only while a command runs: of git's own the folders come first.

    A folder (`.git` itself) is only kept in its place; what lies in it can be written, but for
    the configuration and the hooks, which come after it.
    """
    found = [path for root in roots for path in at_home(root) if not os.path.islink(path)]
    for root in roots:
        for place in repositories(root):
            inner = [os.path.join(place, name) for name in _LOCKED]
            found.append(place)
            found += [path for path in inner if os.path.exists(path) and not os.path.islink(path)]
        own = os.path.join(root, ".git")
        if os.path.isfile(own) and not os.path.islink(own):  # it names a repository elsewhere
            found.append(own)
    return tuple(path for path in found if not any(_opened(path, root) for root in roots))


def _opened(path: str, root: str) -> bool:
    """Whether a root that was agreed to lies in a locked place, or is around it."""
    if root == path:
        return True
    inner = "/.git" in root and path.startswith(f"{root}/")
    return inner or (root.startswith(f"{path}/") and os.path.basename(path) in GIT)
