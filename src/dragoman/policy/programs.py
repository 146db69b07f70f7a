"""What is known about programs: which only look, with which options; which run others; which harm.

`looks.txt` is the table of those that only look. A program that is in no table is known by its
name alone: it does something, and that is `medium`.
"""

import os
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

# Programs that say their version and do nothing else. Those that ask the folder first which of
# them is meant (yarn, cargo, dotnet), or load what lies in it (pytest, poetry), are not among them.
VERSIONS = frozenset(
    """
    python python3 pip pip3 node npm ruby gem java javac gcc g++
    clang cc make cmake git tsc deno bun uv ruff mypy black php perl
    """.split()
)
_SHORT_VERSIONS = frozenset("python python3 pip pip3 deno uv ruff mypy perl".split())  # -V
# Programs that only look, or say their version, by starting another one that PATH leads to.
STARTS = {"egrep": "grep", "fgrep": "grep", "npm": "node", "tsc": "node", "gem": "ruby"}

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
    killall5 fuser rclone aws az gcloud gsutil terraform tofu pulumi helm ansible ansible-playbook
    heroku fly flyctl twine docker-compose podman-compose vagrant chsh chfn hwclock timedatectl
    hostnamectl localectl loginctl ldconfig xdotool ydotool wtype wall
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
    valgrind callgrind_control perf rr heaptrack hyperfine multitime bpftrace stap
    chronic ifne pee mispipe lckdo zrun vipe sem xe rush gtime setarch linux32 linux64 uname26 i386
    x86_64 runcon sg newgrp gosu su-exec setuidgid envdir envuidgid softlimit tini dumb-init
    execlineb daemonize daemon cgexec schedtool eatmydata faketime fakechroot catchsegv
    systemd-inhibit systemd-cat systemd-nspawn machinectl dbus-launch xvfb-run xinit startx
    ssh-agent gnome-terminal konsole alacritty kitty urxvt rxvt terminator tilix foot wezterm
    x-terminal-emulator byobu dtach abduco reptyr watchexec nodemon reflex
    sqlite3 sqlite psql mysql mariadb duckdb mongo mongosh redis-cli isql gnuplot octave R
    julia ghc ghci runghc runhaskell scala groovy elixir iex erl escript clojure clj sbcl clisp ecl
    guile racket gsi csi ocaml swift kotlin jshell jrunscript jjs wish dc m4 ipython ipython3
    bpython ptpython jupyter luajit ts-node tsx coffee qjs gjs d8 irb pry jruby raku rakudo perl6
    osh ysh elvish nu xonsh pwsh powershell rc es yash posh oksh loksh lksh sash ksh93 rvim gvim
    vimdiff nvimdiff emacsclient joe micro hx kak mutt mail mailx xdg-open sensible-browser
    gio open nix-shell guix direnv fakeroot-ng rlwrap socksify tsocks torify
    original-awk goawk busctl nmap cvs fossil tcpdump zless zmore bzless bzmore xzless xzmore lzless
    lzmore lynx w3m links links2 elinks cscope mc ranger nnn lf vifm tig lazygit gitui fzf sk peco
    ldd act mt rmt rails hexedit
    fdfind logsave choom pipesz enosys uclampset coresched sotruss memusage ccache distcc sccache
    icecc bear scan-build intercept-build compiledb debconf editor pager sensible-pager
    sensible-editor select-editor run-mailcap lesspipe lftp cross-env dotenv dotenvx env-cmd
    concurrently npm-run-all run-s run-p onchange foreman honcho py-spy austin gdbserver trace-cmd
    uftrace gprofng retry nocache trickle timelimit tsp nq schroot arch-chroot lxc-execute runc crun
    sandbox-exec xcrun run0 sudoedit exiftool tshark wine mono steam-run envchain aws-vault chamber
    rename prename file-rename perl-rename vidir sftp ftp tftp telnet mosh autossh sshfs dbclient
    plink slogin mlr spatch watchman chokidar cargo-watch modd wgo gow zellij zx electron
    mpirun mpiexec orterun prterun srun salloc sbatch qsub bsub torchrun bzr brz darcs jj sl pijul
    qdbus varlinkctl systemd-socket-activate systemd-vmspawn nsjail minijail0 apptainer singularity
    ch-run buildah limactl multipass colima logrotate sysprof-cli kcov coz nsys ncu operf
    coreutils cmd wsl wslview cygstart wscript cscript rundll32 mshta box64 box86 FEXInterpreter
    """.split()
)
# One program has many names: of a version, a variant, the machine that it compiles for.
_VARIANT = re.compile(
    r"[-.]?\d[\d.]*|[-.](basic|tiny|nox|gtk\d?|lucid|multiarch|openbsd|traditional|exe)"
)
_COMPILES_FOR = re.compile(r"(?:[a-z0-9_]+-)+(?=(?:gcc|g\+\+|cc|c\+\+|cpp|ld|ar|nm|gfortran)\b)")
# The interpreters of a debugging, static or other build, and the loader, whatever their folder.
_BUILDS = re.compile(
    r"(python|pypy|perl|ruby|php|lua|node|bash|dash|zsh|ksh|busybox)[\d.]*[-_][\w.-]+"
    r"|ld(-[\w.-]+)?\.so(\.\d+)?|(original-|gnu)?awk[\d.-]*|qemu-[\w-]+"
)
_TOOLS = re.compile(r"(.*-)?(config|doc|pip\d*|format|lint|diff|ls)")  # python3-config
# Programs with a verb that runs the program behind it: `uv run pytest`.
WRAPPERS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi"), frozenset({"run"})),
    **dict.fromkeys(("bundle", "pyenv", "rbenv", "asdf", "fnm", "volta"), frozenset({"exec"})),
}
# Further verbs by which managers run something that is not on the line, or not here yet.
_VERBS: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        "rustup conda mamba micromamba flatpak snap volta bazel bazelisk op doppler".split(),
        frozenset({"run"}),
    ),
    **dict.fromkeys(("lerna", "nx", "tox"), frozenset({"exec"})),
    **dict.fromkeys(("pip", "pip3"), frozenset({"config"})),
    "npm": frozenset("exec x run-script explore init create innit edit config c set".split()),
    "yarn": frozenset("exec dlx create node npm plugin set config".split()),
    "pnpm": frozenset("exec dlx create init env node config c set".split()),
    "corepack": frozenset("yarn pnpm npm".split()),
    "uv": frozenset("tool".split()),
    "cargo": frozenset("watch rustc".split()),
    "go": frozenset("generate tool".split()),
    "gh": frozenset("alias extension extensions ext codespace cs".split()),
    "nix": frozenset("run shell develop eval repl".split()),
    "mise": frozenset("exec x run r watch".split()),
    "rtx": frozenset("exec x run".split()),
    "dotnet": frozenset("exec script".split()),
    "ip": frozenset("exec netns".split()),
    "openssl": frozenset("engine".split()),
    "composer": frozenset("exec run run-script global config".split()),
    "mix": frozenset("run cmd do eval".split()),
    "rebar3": frozenset("shell".split()),
    "deno": frozenset("eval run task repl".split()),
    "sops": frozenset("exec-env exec-file edit".split()),
    "devbox": frozenset("run shell".split()),
    "distrobox": frozenset("enter".split()),
    "toolbox": frozenset("run enter".split()),
}
# What the names of options say that name a program, of whatever program they are.
_NAMES = re.compile(
    r"--?[a-z0-9:-]*(exec|command|cmd|eval|shell|pager|editor|program|plugin|hook|wrapper|linker|"
    r"engine|rsh|preload|interpreter|launcher|runner|run-as|agent|provider|outofmemory|onerror|"
    r"askpass|viewer|helper|callback|on-download|on-bt)"
    r"[a-z0-9:./-]*",
    re.IGNORECASE,
)
# And those that name a file which says what is loaded or run.
_SAYS_WHAT = re.compile(
    r"--?(config|conf|config-?file|rc-?file|init-?file|homedir|require|import|loader|script)",
    re.IGNORECASE,
)
SHELLS = frozenset("sh bash dash".split())

# Options by which a program that is no runner runs another one all the same.
HIDING: dict[str, tuple[str, ...]] = {
    "tar": ("--checkpoint-action", "--to-command", "--use-compress-program", "-I", "-F",
            "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command"),
    "bsdtar": ("--use-compress-program", "--exec"),
    "cpio": ("--rsh-command",),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "zip": ("-TT", "--unzip-command", "-T"),
    "make": ("--eval", "-E", "-f", "--file", "--makefile"),
    "split": ("--filter",),
    "csplit": ("--filter",),
    "install": ("--strip-program",),
    "sdiff": ("--diff-program",),
    "diff3": ("--diff-program",),
    "cmake": ("-P", "-E"),
    "gcc": ("-wrapper", "-B", "-fplugin", "-specs", "--specs", "-fuse-ld", "-Xlinker"),
    "ld": ("-plugin", "--plugin"),
    "cargo": ("--config", "--manifest-path", "-C", "-Z"),
    "go": ("-exec", "-toolexec", "-vettool", "-C", "-modfile", "-overlay", "-w"),
    "ip": ("-b", "-batch"),
    "dpkg": ("--pre-invoke", "--post-invoke"),
    "openssl": ("-engine", "-provider", "-provider-path"),
    "pip": ("--python", "--editor"),
    "pandoc": ("-F", "--filter", "-L", "--lua-filter", "--pdf-engine"),
    "pdflatex": ("-shell-escape", "--shell-escape", "-enable-write18"),
    "ssh-keygen": ("-D", "-w"),
    "java": ("-agentlib", "-agentpath", "-javaagent"),
    "javac": ("-processor", "-processorpath", "--processor-path"),
    "gs": ("-dNOSAFER", "-c"),
    "nix-build": ("--run",),
    # Another file, or another folder, says what is built, tested or loaded.
    "apt": ("-o", "--option", "-c", "--config-file"),
    "rustc": ("-C", "--codegen", "-Z", "--sysroot"),
    "mvn": ("-f", "--file", "-s", "--settings", "-gs"),
    "gradle": ("-b", "--build-file", "-I", "--init-script", "-c", "--settings-file", "-p",
               "--project-dir"),
    "ant": ("-f", "-file", "-buildfile", "-lib", "-listener", "-logger", "-inputhandler"),
    "rake": ("-f", "--rakefile", "-r", "--require", "-e", "--execute", "-E", "-p", "-I"),
    "ninja": ("-f", "-C"),
    "latexmk": ("-e", "-r", "-pdflatex", "-latex", "-lualatex", "-xelatex"),
    "rpm": ("--pipe", "-E", "--eval", "-D", "--define", "--rcfile", "--macros"),
    "ssh-add": ("-s",),
    "ctags": ("--options", "--options-maybe"),
    "pytest": ("-p", "-c", "--config-file", "--rootdir", "--pdbcls", "--confcutdir", "-o"),
    "mypy": ("--config-file", "--custom-typeshed-dir"),
    "npm": ("--prefix", "-C", "--globalconfig", "--userconfig"),
    "eslint": ("-c", "--config", "--rulesdir", "--format", "-f", "--parser"),
    "prettier": ("--config",),
    "patch": ("--get", "-g"),
    "meson": ("--native-file", "--cross-file"),
    "mix": ("-e", "-r", "--require"),
    "scp": ("-o", "-S", "-F", "-D", "-J"),
    "ssh-copy-id": ("-o", "-F", "-i"),
    "wget": ("-e", "--execute", "--use-askpass"),
    "curl": ("-K",),
    "dnsmasq": ("--dhcp-script", "-C"),
    "flex": ("--m4",),
    "bison": ("-S", "--skeleton"),
}  # fmt: skip
for _like, _names in {
    "gcc": "g++ cc c++ clang clang++ gfortran cpp", "ld": "ld.bfd ld.gold ld.lld ar nm ranlib",
    "make": "gmake bmake just", "pip": "pip3", "tar": "gtar",
    "pdflatex": "latex tex pdftex xelatex lualatex luatex xetex",
    "apt": "apt-get apt-cache aptitude", "npm": "yarn pnpm", "pytest": "py.test",
    "ctags": "etags uctags", "gradle": "gradlew",
}.items():  # fmt: skip
    HIDING |= dict.fromkeys(_names.split(), HIDING[_like])
_FARAWAY = frozenset("rsync tar gtar bsdtar cpio".split())
_WORDY = frozenset("go mvn gradle gradlew ant latexmk java javac".split())  # -words, not letters
_MAKERS = frozenset({"make", "gmake", "bmake", "just"})
# Those that read further options out of a file that a word names: gcc @options.
_ANSWERS = frozenset("java javac rustc".split()) | {
    name for name, options in HIDING.items() if options in (HIDING["gcc"], HIDING["ld"])
}

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
_SETS = re.compile(r"%[^A-Za-z%]*[hjlLqtzZ]*n")
_VALUE = re.compile(r"[A-Za-z0-9_./:,@%+ -]*")  # of both sides of a comparison
_SIGNED = re.compile(r"%[-+ ]?G|%\(\*?signature|(--sort=)?[-*]*signature(:[a-z]+)?$")
_COUNT = re.compile(r"-(\d+[A-Za-z]*)?")  # head -n -5; a dash alone


class Shape(NamedTuple):
    """How a program may be called so that it only looks."""

    most: int  # operands; -1: any number
    flags: frozenset[str]
    valued: frozenset[str]
    longs: frozenset[str]
    long_valued: frozenset[str]
    long_maybe: frozenset[str]
    numbers: bool
    alone: bool = False  # it reads options by itself: each is a word, and stands before operands


@cache
def shapes() -> dict[str, Shape]:
    """The table of programs that only look; git's verbs as `git-<verb>`."""
    with open(_TABLE, encoding="ascii") as file:
        text = "".join(line for line in file if line.strip() and not line.startswith("#"))
    return {
        name.rstrip("!"): _shape(most, options, name.endswith("!"))
        for name, most, *options in map(str.split, re.split(r"\n(?! )", text.strip()))
    }


def _shape(most: str, options: list[str], alone: bool) -> Shape:
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
        alone,
    )


def only_looks(name: str, words: tuple[str, ...]) -> bool:
    """Whether a program called with these words (its name left out) changes and runs nothing."""
    if name in VERSIONS and len(words) == 1:
        said = words[0]
        if said == "--version" or (said == "-V" and name in _SHORT_VERSIONS):
            return True
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words)
    if name == "git":
        if any(map(_is_signed, words)):
            return False  # whether a signature is good says another program
        return bool(words) and _fits_known(f"git-{words[0]}", words[1:])
    return _fits_known(name, words)


def _is_signed(word: str) -> bool:
    return bool(_SIGNED.search(word) if "%" in word else _SIGNED.match(word))


def _fits_known(name: str, words: tuple[str, ...]) -> bool:
    shape = shapes().get(name)
    return shape is not None and fits(shape, words)


def fits(shape: Shape, words: tuple[str, ...]) -> bool:
    """Whether words behind a program's name are options of the table and operands."""
    if shape.alone:
        return _stands_alone(shape, words)
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
                at += 0 if equals else _taken(words, at)
            elif not (name in shape.long_maybe or (name in shape.longs and not equals)):
                return False
        elif word.startswith("-") and len(word) > 1:
            if shape.numbers and word[1:].isdigit():
                continue
            for index, letter in enumerate(word[1:], 2):
                if letter in shape.valued:
                    at += _taken(words, at) if index == len(word) else 0
                    break
                if letter not in shape.flags:
                    return False
        else:
            operands += 1
    return at <= len(words) and (shape.most < 0 or operands <= shape.most)


def _taken(words: tuple[str, ...], at: int) -> int:
    """How many words the value of an option takes; too many when it may be an option itself.

    Programs differ in whether an option must have its value: `git log --pretty --output=x`.
    """
    return len(words) + 1 if words[at : at + 1] and not _is_value(words[at]) else 1


def _is_value(word: str) -> bool:
    return not word.startswith("-") or bool(_COUNT.fullmatch(word))


def _stands_alone(shape: Shape, words: tuple[str, ...]) -> bool:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        name, equals, _ = word.partition("=")
        if word[1:] in shape.valued and len(word) == 2:
            at += _taken(words, at + 1)
        elif not (
            (len(word) == 2 and word[1] in shape.flags)
            or (name in shape.longs and not equals)
            or (name in shape.long_valued and equals)
        ):
            return False
        at += 1
    operands = words[at:]
    if any(word.startswith(("-", "+")) for word in operands) or at > len(words):
        return False
    return shape.most < 0 or len(operands) <= shape.most


def _find(words: tuple[str, ...]) -> bool:
    at = 0
    while at < len(words):
        word = words[at]
        if word.startswith("-"):
            if word not in _FIND:
                return False
            at += _FIND[word]
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
    return not any(word.startswith(("-", "/inet")) for word in words[1:])


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
    **dict.fromkeys(("echo", "true", "false", ":"), lambda words: True),
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


@cache
def common(name: str) -> str:
    """A program as the tables call it: gcc for x86_64-linux-gnu-gcc-12, vim for vim.basic."""
    if name in RUNNERS or name in DANGEROUS or name in HIDING or name in _VERBS:
        return name
    short = _COMPILES_FOR.sub("", name)
    variant = re.search(rf"(?:{_VARIANT.pattern})+$", short)
    return short[: variant.start()] or name if variant else short


def runs(name: str) -> bool:
    """Whether a program is one that runs others, by its name."""
    build = _BUILDS.fullmatch(name) and not _TOOLS.fullmatch(name)
    return bool(build) or common(name) in RUNNERS


def hides(name: str, words: tuple[str, ...]) -> bool:
    """Whether a program that usually runs nothing else is told to."""
    name = common(name)
    verb = next((word for word in words if not word.startswith(("-", "+"))), "")
    options = [word.partition("=")[0] for word in words]
    if verb in _VERBS.get(name, ()) or any(map(_NAMES.fullmatch, options)):
        return True
    if name != "cmake" and any(map(_SAYS_WHAT.fullmatch, options)):
        return True  # to cmake it is the name of a kind of build
    if any(word.startswith("|") or word.endswith("|") for word in words):
        return True  # where a file is expected, some take it for a program: sox, perl's open
    if name in _ANSWERS and any(word.startswith("@") for word in words):
        return True
    if name in _FARAWAY and any(":" in word for word in words):
        return True  # another machine's, by ssh
    if name in ("mvn", "mvnw") and any(re.match(r"exec[:@]|.*:exec:", word) for word in words):
        return True
    if name in _MAKERS and any(map(_steers, words)):
        return True
    if any(re.match(r"-Wl,.*(plugin|@)|.*-extld", word) for word in words):
        return True
    if name in ("tar", "gtar") and words and words[0].isalpha():
        words = (f"-{words[0]}", *words[1:])  # the old way to say options
    joined = name not in _WORDY
    return any(_said(option, word, joined) for option in HIDING.get(name, ()) for word in words)


def _steers(word: str) -> bool:
    """A variable can be a program, or run one; another folder has other recipes."""
    variable = "=" in word and not re.fullmatch(r"\w+=\d*", word)
    return variable or bool(re.match(r"(-C|--directory=)?(/|.*\.\.(/|$))", word))


def _said(option: str, word: str, joined: bool = True) -> bool:
    """Whether a word says an option; `joined`: letters may share one dash (tar -cIf)."""
    said = word.partition("=")[0]
    if said == option or (option.startswith("-") and said == f"-{option}"):
        return True
    if option.startswith("--") and len(said) > 3 and option.startswith(said):
        return True  # abbreviated
    short = len(option) == 2 and option[0] == "-" and re.match(r"-\w", word)
    return bool(short) and (option[1] in word[1:] if joined else word[1] == option[1])
