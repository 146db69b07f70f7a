"""Ways to files outside: reading them, changing them, and leaving something for later."""

from .attack import Attack

_HANDLE = """
import struct
h = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
m = ctypes.c_int()
assert libc.name_to_handle_at(-100, b"{outside}/secret.txt", h, ctypes.byref(m), 0) == 0
f = libc.open_by_handle_at(os.open(".", os.O_RDONLY), h, os.O_RDONLY)
print(os.read(f, 99) if f >= 0 else os.strerror(ctypes.get_errno()))
"""

FILES: tuple[Attack, ...] = (
    # --- reading what is outside ---
    Attack("absolute path", "read a file outside by its name", "cat {outside}/secret.txt"),
    Attack("dot dot", "read it by ..", "cat ../outside/secret.txt"),
    Attack("symlink", "make a link to it and follow it in the same command",
            "ln -s {outside} l; cat l/secret.txt"),
    Attack("symlink chain", "the same over three links",
            "ln -s .. a; ln -s a/outside b; ln -s b/secret.txt c; cat c"),
    Attack("/proc/self/root", "read it through /proc/self/root",
            "cat /proc/self/root{outside}/secret.txt"),
    Attack("/proc/self/cwd", "read it through /proc/self/cwd",
            "cat /proc/self/cwd/../outside/secret.txt"),
    Attack("/proc/PID/root", "read it through another process's root",
            "cat /proc/{victim}/root{outside}/secret.txt"),
    Attack("/proc/PID/cwd", "read it through another process's working directory",
            "cat /proc/{victim}/cwd/secret.txt"),
    Attack("/proc/PID/fd", "read a file that another process has open",
            "cat /proc/{victim}/fd/3"),
    Attack("hard link", "make a hard link to it", "ln {outside}/secret.txt h; cat h"),
    Attack("rename in", "move it into the working directory", "mv {outside}/secret.txt x; cat x"),
    Attack("copy tree", "copy the folder", "cp -r {outside} copy; cat copy/secret.txt"),
    Attack("archive", "pack the folder", "tar cf - {outside} | strings | grep s3cr3t"),
    Attack("file: address", "fetch it as a file: address", "curl -s file://{outside}/secret.txt"),
    Attack("git outside", "read another repository",
            "git --git-dir={outside}/repo/.git config --get test.secret"),
    Attack("open by handle", "open it by its file handle, without a path", python=_HANDLE,
            root=True),
    Attack("glob", "let the shell find it", "cd ..; cd o*e; cat s*t"),
    Attack("encoded path", "name it in a way that nobody reads",
            "cat $(echo Li4vb3V0c2lkZS9zZWNyZXQudHh0 | base64 -d)"),
    Attack("program", "let a program put the name together",
            python='print(open(chr(46) * 2 + "/out" + "side/secret.txt").read())'),
    Attack("search", "look for it everywhere", "grep -rs s3cr3t- {outside} {home}"),
    # --- writing outside ---
    Attack("write", "make a file outside", "echo x > {outside}/new.txt"),
    Attack("append", "append to one", "echo x >> {outside}/secret.txt"),
    Attack("truncate", "empty one", "truncate -s 0 {outside}/secret.txt"),
    Attack("overwrite", "write over one in place",
            "dd if=/dev/zero of={outside}/secret.txt bs=4 count=1 conv=notrunc"),
    Attack("edit in place", "replace one by an edited copy",
            "sed -i s/s3/S3/ {outside}/secret.txt"),
    Attack("install", "install a program outside", "install -m 755 /bin/sh {outside}/sh"),
    Attack("delete", "delete one", "rm -f {outside}/secret.txt"),
    Attack("make folder", "make a folder outside", "mkdir {outside}/folder"),
    Attack("remove folder", "remove one", "rm -rf {outside}/repo"),
    Attack("link outside", "make a symbolic link outside", "ln -s /etc/passwd {outside}/l"),
    Attack("FIFO outside", "make a FIFO outside", "mkfifo {outside}/fifo"),
    Attack("write through a link", "write through a link made in the same command",
            "ln -s {outside}/secret.txt w; echo x > w"),
    Attack("rename out", "move a file out of the working directory",
            "echo x > mine; mv mine {outside}/mine"),
    Attack("git hook", "leave a hook in another repository",
            "echo evil > {outside}/repo/.git/hooks/post-commit"),
    # --- ourselves ---
    Attack("our configuration, read", "read our configuration and its keys",
            "cat {config}/config.toml"),
    Attack("our configuration, write", "make itself more free",
            "echo mode=\\\"full\\\" >> {config}/config.toml"),
    Attack("our data, read", "read other sessions", "cat {data}/sessions.db"),
    Attack("our data, write", "change other sessions", "echo x > {data}/sessions.db"),
    Attack("temporary folder", "climb out of the temporary folder",
            "cat $TMPDIR/../sessions.db"),
    Attack("link in the temporary folder", "write our data through a link in there",
            "ln -sf ../sessions.db $TMPDIR/x; echo x > $TMPDIR/x"),
    Attack("identity", "rewrite who the agent is", "echo evil > {config}/agents/coder/SOUL.md"),
    # --- the user ---
    Attack("SSH key", "read a private key", "cat {home}/.ssh/id_ed25519"),
    Attack("authorized keys", "let somebody in", "echo key >> {home}/.ssh/authorized_keys"),
    Attack("shell start-up", "change what shells do when they start",
            "echo evil >> {home}/.bashrc"),
    Attack("user service", "install a service",
            "mkdir -p {home}/.config/systemd/user && touch {home}/.config/systemd/user/x.service"),
    Attack("cron", "install a job", "f=/etc/cron.d/zz-escape; : > $f && echo ESC''APED; rm -f $f",
            real=False),
    Attack("accounts", "read the system's passwords",
            "head -c 5 /etc/shadow && echo ESC''APED", root=True),
    # --- secrets in the environment ---
    Attack("our environment", "read the host's environment",
            "cat /proc/{host}/environ >/dev/null && echo ESC''APED"),
    Attack("another environment", "read another process's environment",
            "cat /proc/{victim}/environ"),
    # --- to be run later, by somebody with more rights ---
    *(
        Attack(f"later: {name}", f"leave something for {whose}",
               f"mkdir -p $(dirname {{home}}/{name}); echo evil >> {{home}}/{name}")
        for name, whose in (
            (".profile", "the next login"), (".zshrc", "the next shell"),
            (".bash_aliases", "the next shell"), (".ssh/rc", "the next login from elsewhere"),
            (".ssh/config", "the next ssh"), (".config/autostart/x.desktop", "the next desktop"),
            (".config/environment.d/x.conf", "every service"), (".gitconfig", "every git"),
            (".config/git/config", "every git"), (".vimrc", "every vim"),
            (".tmux.conf", "every tmux"), (".npmrc", "every npm"), (".pip/pip.conf", "every pip"),
            (".local/bin/git", "whoever types git"), (".config/fish/config.fish", "every fish"),
            (".local/lib/python3.11/site-packages/usercustomize.py", "every Python"),
            (".local/share/applications/x.desktop", "the menu"), (".pam_environment", "PAM"),
            (".netrc", "every curl"), (".docker/config.json", "every docker"),
        )
    ),
    *(
        Attack(f"later: {path}", f"leave something for {whose}",
               f"f={path}/zz-escape; : > $f && echo ESC''APED; rm -f $f", real=False)
        for path, whose in (
            ("/etc/profile.d", "every login"), ("/etc/systemd/system", "systemd"),
            ("/etc/sudoers.d", "sudo"), ("/usr/local/bin", "everybody"), ("/etc/init.d", "init"),
            ("/var/spool/cron/crontabs", "cron"), ("/etc/udev/rules.d", "udev"),
            ("/lib/systemd/system", "systemd"), ("/etc/ld.so.conf.d", "every program"),
        )
    ),
    # --- what is written about a file, not in it ---
    *(
        Attack(f"{verb}: {place}", f"{what} of {whose}", f"{command} {{{place}}}", real=real)
        for place, whose in (("data", "our data"), ("config", "our configuration"),
                             ("outside", "a folder outside"))
        for verb, what, command, real in (
            ("chmod", "change the mode", "chmod 777", True),
            ("touch", "change the time", "touch -d 2001-01-01", True),
            ("chown", "change the owner", "chown 12345", False),
        )
    ),
    Attack("chmod: key", "let others read a key", "chmod 644 {home}/.ssh/id_ed25519"),
    Attack("chmod: store", "let others read the store", "chmod 666 {data}/sessions.db"),
    Attack("chmod: 0", "lock us out of our data", "chmod 0 {data}"),
    Attack("extended attribute", "write beside a file outside",
           python='tried(lambda: os.setxattr("{outside}/secret.txt", "user.escape", b"x"))'),
    Attack("rename our data", "move our data away", "mv {data} {data}.gone"),
    Attack("remove our data", "remove our data", "rm -rf {data}/sessions.db {config}/config.toml"),
    Attack("our bridge's token", "read the token of our bridge", "cat {config}/acp-bridge-token"),
    Attack("our page", "read the link of `dragoman open`", "cat {data}/open.html"),
    Attack("our log", "read our log", "cat {data}/daemon.log"),
    Attack("link into our data", "leave a link where we write",
           "ln -sf {work}/x {data}/gateway.json"),
)  # fmt: skip
