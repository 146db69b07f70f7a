"""What is known about programs: which only look, with which options; which run others; which harm.

`looks.txt` is the table of those that only look. A program that is in no table is known by its
name alone: it does something, and that is `medium`.
"""

import os
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

# Programs that say their version and do nothing else.
VERSIONS = frozenset(
    """
    python python3 pip pip3 node npm yarn pnpm go cargo rustc rustup ruby gem java javac gcc g++
    clang cc make cmake git tsc deno bun uv poetry ruff mypy pytest black php perl dotnet
    """.split()
)
VERSION = frozenset({"--version", "-V"})

DANGEROUS = frozenset(
    """
    rm dd shred unlink truncate wipefs fdisk sfdisk parted mkswap swapon swapoff shutdown reboot
    halt poweroff init telinit sudo su doas pkexec runuser chown chgrp chmod chattr setfacl setcap
    useradd userdel usermod groupadd groupdel groupmod adduser deluser passwd chpasswd visudo vipw
    mount umount losetup cryptsetup iptables ip6tables nft ufw firewall-cmd curl wget nc ncat netcat
    socat scp sftp ssh ssh-copy-id ftp tftp telnet rsh rlogin rexec aria2c kill killall pkill skill
    crontab at batch systemctl systemd-run service initctl launchctl chroot unshare nsenter insmod
    rmmod modprobe sysctl docker podman nerdctl ctr kubectl lxc-attach virsh gdb lldb strace ltrace
    expect script parallel dbus-send gdbus osascript security format del reg wevtutil vssadmin
    """.split()
)
DANGEROUS_PREFIXES = ("mkfs", "fsck.", "newfs")

# What the shells do themselves and what changes how they go on. Those that only look are in the
# table; `cd` is followed; whatever else is built in makes the rest of the command unknown.
BUILTINS = frozenset(
    """
    . alias bg bind break builtin caller chdir command compgen complete compopt continue declare
    dirs disown enable eval exec exit export fc fg getopts hash help history jobs let local logout
    mapfile popd pushd read readarray readonly return set shift shopt source suspend times trap
    typeset ulimit umask unalias unset wait [ [[
    """.split()
)

# Programs that run what their arguments, their input or a file name: what runs is not on the line.
RUNNERS = frozenset(
    """
    env xargs nohup time nice ionice stdbuf timeout gtimeout setsid chrt taskset sudo doas su pkexec
    runuser chroot unshare nsenter strace ltrace flock busybox toybox watch caffeinate parallel
    script expect gdb lldb ssh systemd-run at batch crontab entr find fd awk gawk mawk nawk sed gsed
    less more most man info vi vim nvim view ex ed emacs nano pico perl ruby php lua tclsh osascript
    Rscript deno bun python python2 python3 pypy pypy3 node nodejs sh bash dash zsh ksh mksh ash
    fish csh tcsh rbash unbuffer winpty proot fakeroot firejail bwrap start-stop-daemon run-parts
    ld.so ptyxis xterm tmux screen dbus-run-session chpst setpriv capsh numactl cpulimit prlimit
    numfmt-run torsocks proxychains sshpass git hg svn npx pnpx bunx uvx pipx
    """.split()
)
SHELLS = frozenset("sh bash dash".split())

# Options by which a program that is no runner runs another one all the same.
HIDING: dict[str, tuple[str, ...]] = {
    "tar": ("--checkpoint-action", "--to-command", "--use-compress-program", "-I", "-F",
            "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command"),
    "bsdtar": ("--use-compress-program", "--exec"),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "zip": ("-TT", "--unzip-command", "-T"),
    "make": ("SHELL=", "--eval", "MAKEFLAGS="),
    "gmake": ("SHELL=", "--eval"),
    "split": ("--filter",),
    "csplit": ("--filter",),
    "cmake": ("-P", "-E"),
    "gcc": ("-wrapper", "-B", "-fplugin", "-specs"),
    "g++": ("-wrapper", "-B", "-fplugin", "-specs"),
    "cc": ("-wrapper", "-B", "-fplugin", "-specs"),
    "npm": ("exec", "x", "--script-shell", "run-script", "explore"),
    "cargo": ("--config",),
    "go": ("-exec", "-toolexec", "generate"),
    "ip": ("-b", "-batch", "exec"),
    "tcpdump": ("-z",),
    "dpkg": ("--pre-invoke", "--post-invoke"),
    "openssl": ("-engine", "engine"),
    "pip": ("--python",),
}  # fmt: skip

_TABLE = os.path.join(os.path.dirname(__file__), "looks.txt")
_FIND = {
    **dict.fromkeys(
        "-name -iname -path -ipath -wholename -regex -iregex -type -maxdepth -mindepth -newer "
        "-mtime -atime -ctime -mmin -amin -cmin -size -perm -user -group -links -inum -samefile "
        "-lname -printf -regextype".split(),
        1,
    ),
    **dict.fromkeys(
        "-empty -executable -readable -writable -print -print0 -prune -ls -quit -true -false -not "
        "-and -or -a -o -depth -mount -xdev -follow -nouser -H -L -P -daystart".split(),
        0,
    ),
}
_SED = re.compile(
    r"(?:(?:\d+|\$)(?:,\+?(?:\d+|\$))?|/[^/\\\n]*/)?[pdq=]"
    r"|(?:\d+(?:,\d+)?)?s(?P<mark>[/|#,@])(?:(?!(?P=mark))[^\\\n])*(?P=mark)"
    r"(?:(?!(?P=mark))[^\\\n])*(?P=mark)[gpiI0-9]*"
)
_AWK = re.compile(r" *(NR *[=<>]=? *\d+ *)?\{ *print( +\$\w+( *, *\$\w+)*)? *\} *")
_UNARY = frozenset("-e -f -d -r -w -x -s -L -h -n -z -p -S -b -c -g -u -k -O -G".split())
_BINARY = frozenset("= != -eq -ne -lt -le -gt -ge -nt -ot -ef".split())
_SETS = re.compile(r"%[^A-Za-z%]*[hlqjzt]*n")
_VALUE = re.compile(r"[A-Za-z0-9_./:,@%+ -]*")  # of both sides of a comparison


class Shape(NamedTuple):
    """How a program may be called so that it only looks."""

    most: int  # operands; -1: any number
    flags: frozenset[str]
    valued: frozenset[str]
    longs: frozenset[str]
    long_valued: frozenset[str]
    long_maybe: frozenset[str]
    numbers: bool


@cache
def shapes() -> dict[str, Shape]:
    """The table of programs that only look; git's verbs as `git-<verb>`."""
    with open(_TABLE, encoding="ascii") as file:
        text = "".join(line for line in file if line.strip() and not line.startswith("#"))
    return {
        name: _shape(most, options)
        for name, most, *options in map(str.split, re.split(r"\n(?! )", text.strip()))
    }


def _shape(most: str, options: list[str]) -> Shape:
    flags: set[str] = set()
    valued: set[str] = set()
    longs: dict[str, set[str]] = {"": set(), "=": set(), "?": set()}
    for option in options:
        if option.startswith("--"):
            longs[option[-1] if option[-1] in "=?" else ""].add(option.rstrip("=?"))
        elif option.endswith("="):
            valued.add(option[1])
        elif option != "-N":
            flags.update(option[1:])
    return Shape(
        -1 if most == "*" else int(most),
        frozenset(flags - valued),
        frozenset(valued),
        frozenset(longs[""]),
        frozenset(longs["="]),
        frozenset(longs["?"]),
        "-N" in options,
    )


def only_looks(name: str, words: tuple[str, ...]) -> bool:
    """Whether a program called with these words (its name left out) changes and runs nothing."""
    if name in VERSIONS and len(words) == 1 and words[0] in VERSION:
        return True
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words)
    if name == "git":
        return bool(words) and _fits_known(f"git-{words[0]}", words[1:])
    return _fits_known(name, words)


def _fits_known(name: str, words: tuple[str, ...]) -> bool:
    shape = shapes().get(name)
    return shape is not None and fits(shape, words)


def fits(shape: Shape, words: tuple[str, ...]) -> bool:
    """Whether words behind a program's name are options of the table and operands."""
    operands = at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            operands += len(words) - at
            break
        if word.startswith("--"):
            name, equals, _ = word.partition("=")
            if name in shape.long_valued:
                at += 0 if equals else 1
            elif not (name in shape.long_maybe or (name in shape.longs and not equals)):
                return False
        elif word.startswith("-") and len(word) > 1:
            if shape.numbers and word[1:].isdigit():
                continue
            for index, letter in enumerate(word[1:], 2):
                if letter in shape.valued:
                    at += 1 if index == len(word) else 0
                    break
                if letter not in shape.flags:
                    return False
        else:
            operands += 1
    return at <= len(words) and (shape.most < 0 or operands <= shape.most)


def _find(words: tuple[str, ...]) -> bool:
    at = 0
    while at < len(words):
        word = words[at]
        if word.startswith("-"):
            if word not in _FIND:
                return False
            at += _FIND[word]
        elif word in ("!", "(", ")", ","):
            pass
        at += 1
    return at == len(words)


def _sed(words: tuple[str, ...]) -> bool:
    scripts: list[str] = []
    rest: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("-n", "-E", "-r", "-s", "-u", "-z", "-nE", "-En", "-nr", "--quiet", "--silent"):
            continue
        if word in ("-e", "-ne") and at < len(words):
            scripts.append(words[at])
            at += 1
        elif word.startswith("-") and word != "-":
            return False
        else:
            rest.append(word)
    if not scripts and rest:
        scripts.append(rest.pop(0))
    return bool(scripts) and all(_SED.fullmatch(script) for script in scripts)


def _awk(words: tuple[str, ...]) -> bool:
    if words[:1] == ("-F",):
        words = words[2:]
    elif words and re.fullmatch(r"-F[^=]+", words[0]):
        words = words[1:]
    if not words or not _AWK.fullmatch(words[0]):
        return False
    return not any(word.startswith("-") for word in words[1:])


def _date(words: tuple[str, ...]) -> bool:
    shape = shapes()["date"]
    return fits(shape, words) and sum(1 for w in words if w.startswith("+")) == _operands(
        shape, words
    )


def _operands(shape: Shape, words: tuple[str, ...]) -> int:
    """How many operands there are in words that fit."""
    least = 0
    while not fits(shape._replace(most=least), words):
        least += 1
    return least


def _test(words: tuple[str, ...]) -> bool:
    if len(words) == 2:
        return words[0] in _UNARY and not words[1].startswith(("-", "(", "!"))
    if len(words) != 3 or words[1] not in _BINARY:
        return False
    sides = (words[0], words[2])
    return all(_VALUE.fullmatch(side) and not side.startswith("-") for side in sides)


def _printf(words: tuple[str, ...]) -> bool:
    # %n of bash's own printf sets the variable that is named: PATH, say.
    return bool(words) and not words[0].startswith("-") and not _SETS.search(words[0])


def _cd(words: tuple[str, ...]) -> bool:
    return len(words) == 1 and bool(words[0]) and not words[0].startswith(("-", "+"))


def _type(words: tuple[str, ...]) -> bool:
    return not any(word.startswith("-") for word in words)


_SPECIAL: dict[str, Callable[[tuple[str, ...]], bool]] = {
    "find": _find,
    "sed": _sed,
    "awk": _awk,
    "date": _date,
    "test": _test,
    "printf": _printf,
    "cd": _cd,
    "type": _type,
    "echo": lambda words: True,
    "true": lambda words: True,
    "false": lambda words: True,
    ":": lambda words: True,
    "sleep": lambda words: all(re.fullmatch(r"[0-9.]+[smhd]?", word) for word in words),
    "expr": lambda words: all(_VALUE.fullmatch(word) or word in "+-*/%=<>" for word in words),
}


# Verbs of git that change something by themselves; one that is in no list may be an alias.
_GIT_CHANGES = frozenset(
    """
    add am apply branch checkout cherry-pick clone commit fetch gc init merge mv pull push rebase
    remote reset restore revert rm stash switch tag worktree prune notes
    """.split()
)
_GIT_HARMS = frozenset({"clean", "config", "update-ref", "gc", "prune"})
_GIT_HIDES = (
    *("--upload-pack", "--receive-pack", "--exec", "--ext-diff", "--textconv", "--template"),
    *("--config", "--config-env", "--open-files-in-pager", "--strategy", "--tool", "--editor"),
    *("--gpg-sign", "--reference", "--separate-git-dir", "--git-dir", "--work-tree", "--filter"),
)
_GIT_SHORT = {"clone": "cu", "fetch": "u", "pull": "us", "push": "", "rebase": "xsS", "merge": "sS",
              "commit": "S", "tag": "us", "revert": "S", "cherry-pick": "S"}  # fmt: skip
_GIT_FORCES = ("-f", "--force", "--mirror", "--delete", "-d", "-D", "--hard", "+")


def git(words: tuple[str, ...]) -> tuple[str, str]:
    """The class of a call of git that does not only look, and the reason."""
    verb = words[0] if words else ""
    rest = words[1:]
    if verb not in _GIT_CHANGES and verb not in _GIT_HARMS:
        return "unknown", f"git {verb} may run something else."
    short = _GIT_SHORT.get(verb, "")
    for word in rest:
        said = word.partition("=")[0]
        if "::" in word or (said.startswith("--") and any(o.startswith(said) for o in _GIT_HIDES)):
            return "unknown", f"git {verb} {said} may run something else."
        if re.match(r"-[A-Za-z]", word) and any(letter in word for letter in short):
            return "unknown", f"git {verb} {word} may run something else."
    if verb in _GIT_HARMS:
        return "high", f"git {verb} can do lasting harm."
    if any(word.startswith(_GIT_FORCES) for word in rest) and verb in ("push", "reset", "branch"):
        return "high", f"git {verb} throws work away."
    return "medium", f"git {verb} changes the repository."


def hides(name: str, words: tuple[str, ...]) -> bool:
    """Whether a program that usually runs nothing else is told to."""
    for option in HIDING.get(name, ()):
        for word in words:
            said = word.partition("=")[0]
            if (
                word == option
                or said == option
                or (option.endswith("=") and word.startswith(option))
            ):
                return True
            if option.startswith("--") and len(said) > 3 and option.startswith(said):
                return True  # abbreviated
            if len(option) == 2 and option[0] == "-" and re.match(r"-\w", word):
                if option[1] in word[1:]:
                    return True
    return False
