"""What is known about programs: which are harmless, which are not, and which run others.

Everything that is in no table is `medium`: it does something that nobody here knows.
"""

SAFE = frozenset(
    """
    ls cat head tail wc grep egrep fgrep rg echo printf pwd date df du uname uptime hostname whoami
    id groups which type hash stat file basename dirname realpath readlink sort uniq cut tr nl tac
    rev comm diff cmp md5sum sha1sum sha224sum sha256sum sha384sum sha512sum cksum b2sum sum true
    false test [ [[ : seq expr tree find printenv sleep jq column paste join fold fmt od xxd hexdump
    strings free ps pgrep lscpu nproc tty cd pushd popd dirs read wait exit return break continue
    shift local unset getopts umask ulimit times jobs locale factor tsort expand unexpand arch
    getconf more less zcat bzcat xzcat zgrep look cal who w users logname pathchk numfmt base64
    base32 for select function in sed awk gawk mawk nawk export readonly declare typeset set let
    """.split()
)

DANGEROUS = frozenset(
    """
    rm dd shred unlink truncate wipefs fdisk sfdisk parted mkswap swapon swapoff shutdown reboot
    halt poweroff init telinit sudo su doas pkexec runuser chown chgrp chmod chattr setfacl setcap
    useradd userdel usermod groupadd groupdel groupmod adduser deluser passwd chpasswd visudo vipw
    mount umount losetup cryptsetup iptables ip6tables nft ufw firewall-cmd curl wget nc ncat netcat
    socat scp sftp ssh ssh-copy-id ftp tftp telnet rsh rlogin rexec aria2c kill killall pkill skill
    crontab at batch systemctl systemd-run service initctl launchctl chroot unshare nsenter insmod
    rmmod modprobe sysctl docker podman nerdctl ctr kubectl lxc-attach virsh gdb lldb strace ltrace
    expect script parallel eval dbus-send gdbus osascript security format del reg wevtutil vssadmin
    """.split()
)

DANGEROUS_PREFIXES = ("mkfs", "fsck.", "newfs")

# Programs that run the program named behind their own options:
# the options that take a value, and how many operands come before the program.
WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    "env": (frozenset({"-u", "--unset", "-C", "--chdir", "-a", "--argv0"}), 0),
    "nohup": (frozenset(), 0),
    "time": (frozenset({"-o", "--output", "-f", "--format"}), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "ionice": (frozenset({"-c", "-n", "-p", "--class", "--classdata"}), 0),
    "stdbuf": (frozenset({"-i", "-o", "-e", "--input", "--output", "--error"}), 0),
    "timeout": (frozenset({"-s", "--signal", "-k", "--kill-after"}), 1),
    "gtimeout": (frozenset({"-s", "--signal", "-k", "--kill-after"}), 1),
    "setsid": (frozenset(), 0),
    "command": (frozenset(), 0),
    "builtin": (frozenset(), 0),
    "exec": (frozenset({"-a"}), 0),
    "chrt": (frozenset({"-T", "-P", "-D"}), 1),
    "taskset": (frozenset(), 1),
    "sudo": (
        frozenset({"-u", "-g", "-p", "-C", "-h", "-r", "-t", "-T", "-U", "-D", "-R", "--user"}),
        0,
    ),
    "doas": (frozenset({"-u", "-C", "-a"}), 0),
    "pkexec": (frozenset({"--user"}), 0),
    "runuser": (frozenset({"-u", "-g", "-G"}), 0),
    "chroot": (frozenset({"--userspec", "--groups"}), 1),
    "unshare": (frozenset({"-S", "-G", "-R", "-w", "--map-user", "--map-group"}), 0),
    "strace": (frozenset({"-o", "-e", "-p", "-s", "-a", "-E", "-u", "-O", "-S"}), 0),
    "ltrace": (frozenset({"-o", "-e", "-p", "-s", "-a", "-u", "-l", "-n"}), 0),
    "flock": (frozenset({"-w", "--timeout", "-E"}), 1),
    "xargs": (
        frozenset(
            {"-a", "-d", "-E", "-I", "-i", "-L", "-n", "-P", "-s", "-J", "-R"}
            | {"--arg-file", "--delimiter", "--max-args", "--max-procs", "--replace", "--max-lines"}
        ),
        0,
    ),
    "busybox": (frozenset(), 0),
    "toybox": (frozenset(), 0),
    "watch": (frozenset({"-n", "--interval"}), 0),
    "caffeinate": (frozenset({"-t", "-w"}), 0),
}

SHELLS = frozenset("sh bash dash zsh ksh mksh ash fish csh tcsh rbash".split())
INTERPRETERS: dict[str, tuple[str, ...]] = {  # program → options that are followed by code
    "python": ("-c",),
    "pypy": ("-c",),
    "perl": ("-e", "-E"),
    "ruby": ("-e",),
    "node": ("-e", "-p", "--eval", "--print"),
    "nodejs": ("-e", "-p", "--eval", "--print"),
    "deno": ("eval",),
    "bun": ("-e", "--eval"),
    "php": ("-r", "-B", "-R", "-E"),
    "lua": ("-e",),
    "Rscript": ("-e",),
    "tclsh": (),
    "osascript": ("-e",),
}

GIT_SAFE = frozenset(
    """
    status log diff show rev-parse ls-files ls-tree blame annotate grep describe shortlog reflog
    cat-file rev-list name-rev merge-base for-each-ref show-ref count-objects check-ignore version
    help whatchanged range-diff cherry show-branch var
    """.split()
)

# Options by which an otherwise harmless program writes or runs something else.
TELLTALES: dict[str, tuple[tuple[str, str, str], ...]] = {
    # program → (option, risk, reason); an option that ends with `=` matches as a prefix
    "sort": (
        ("-o", "medium", "writes a file"),
        ("--output", "medium", "writes a file"),
        ("--compress-program", "high", "runs another program"),
    ),
    "rg": (("--pre", "high", "runs another program"), ("--hostname-bin", "high", "runs a program")),
    "tree": (("-o", "medium", "writes a file"),),
    "date": (("-s", "high", "sets the clock"), ("--set", "high", "sets the clock")),
    "sed": (("-i", "medium", "changes files"), ("--in-place", "medium", "changes files")),
    "awk": (("-i", "medium", "loads a program"), ("-f", "medium", "runs a program file")),
    "tar": (
        ("--checkpoint-action", "high", "runs another program"),
        ("--to-command", "high", "runs another program"),
        ("--use-compress-program", "high", "runs another program"),
        ("-I", "high", "runs another program"),
        ("--rsh-command", "high", "runs another program"),
    ),
    "find": (
        ("-delete", "high", "deletes files"),
        ("-fprint", "medium", "writes a file"),
        ("-fprintf", "medium", "writes a file"),
        ("-fprint0", "medium", "writes a file"),
        ("-fls", "medium", "writes a file"),
    ),
    "git": (
        ("-c", "high", "sets git options that can run programs"),
        ("--config-env", "high", "sets git options that can run programs"),
        ("--exec-path=", "high", "changes which programs git runs"),
        ("--ext-diff", "high", "runs another program"),
        ("--upload-pack", "high", "runs another program"),
        ("--receive-pack", "high", "runs another program"),
        ("--open-files-in-pager", "high", "runs another program"),
        ("-O", "high", "runs another program"),
        ("--output", "medium", "writes a file"),
        ("--force", "high", "overwrites what others have"),
    ),
    "vim": (("-c", "high", "runs editor commands"),),
    "vi": (("-c", "high", "runs editor commands"),),
    "nvim": (("-c", "high", "runs editor commands"),),
    "rsync": (("-e", "high", "runs another program"), ("--rsh", "high", "runs another program")),
    "zip": (("-TT", "high", "runs another program"),),
    "man": (("-P", "high", "runs another program"), ("-H", "high", "runs another program")),
    "less": (("-o", "medium", "writes a file"),),
    "xxd": (("-r", "medium", "writes a file"),),
}

# Variables that change which code a later program loads or runs.
LOADERS = frozenset(
    """
    PATH IFS ENV BASH_ENV SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND CDPATH LD_PRELOAD LD_LIBRARY_PATH
    LD_AUDIT DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH PYTHONPATH PYTHONSTARTUP PYTHONHOME
    PERL5LIB PERL5OPT RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH JAVA_TOOL_OPTIONS CLASSPATH
    GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR GIT_CONFIG GIT_CONFIG_GLOBAL
    GIT_CONFIG_COUNT GIT_EXEC_PATH GIT_PROXY_COMMAND GIT_ASKPASS SSH_ASKPASS PAGER EDITOR VISUAL
    LESSOPEN LESSCLOSE MANPAGER BROWSER SHELL RIPGREP_CONFIG_PATH TAR_OPTIONS MAKEFLAGS
    """.split()
)
