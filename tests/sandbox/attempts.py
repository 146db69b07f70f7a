"""Ways out of the sandbox, as a table. Placeholders are filled in by the test's world.

An attempt has worked when the secret shows up in its output, when anything outside of the working
directory has changed, when the victim process is gone, or when it prints ESCAPED.
`real`: it is harmless to run without a sandbox, and works there, which shows that it is no dud.
"""

from typing import Any, NamedTuple


class Attempt(NamedTuple):
    name: str
    what: str
    command: str = ""
    tool: str = "bash"
    args: dict[str, Any] = {}  # of another tool than bash
    real: bool = True
    before: str = ""  # run without any walls first
    root: bool = False  # only root gets anywhere with it, walls or not


def python(code: str) -> str:
    return "{python} -c '" + code + "'"


_PTRACE = """
import ctypes
c = ctypes.CDLL(None, use_errno=True)
r = c.ptrace({request}, {victim}, 0, 0)
print("ESC" + "APED" if r == 0 else "ptrace: " + __import__("os").strerror(ctypes.get_errno()))
"""
_VM_READ = """
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
a = int(open("/proc/{victim}/maps").readline().split("-")[0], 16)
class V(ctypes.Structure): _fields_ = [("b", ctypes.c_void_p), ("n", ctypes.c_size_t)]
buf = ctypes.create_string_buffer(16)
l, r = V(ctypes.addressof(buf), 16), V(a, 16)
n = c.process_vm_readv({victim}, ctypes.byref(l), 1, ctypes.byref(r), 1, 0)
print("ESC" + "APED" if n > 0 else os.strerror(ctypes.get_errno()))
"""
_GETFD = """
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
p = os.pidfd_open({victim})
f = c.syscall(438, p, 3, 0)
print(os.read(f, 99) if f >= 0 else os.strerror(ctypes.get_errno()))
"""
_ABSTRACT = """
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("\\0{abstract}")
print("ESC" + "APED")
"""
_HANDLE = """
import ctypes, os, struct
c = ctypes.CDLL(None, use_errno=True)
h = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
m = ctypes.c_int()
assert c.name_to_handle_at(-100, b"{outside}/secret.txt", h, ctypes.byref(m), 0) == 0
f = c.open_by_handle_at(os.open(".", os.O_RDONLY), h, os.O_RDONLY)
print(os.read(f, 99) if f >= 0 else os.strerror(ctypes.get_errno()))
"""
_SYSCALL = """
import ctypes, errno, os
c = ctypes.CDLL(None, use_errno=True)
c.syscall({call})
e = ctypes.get_errno()
print(os.strerror(e) if e in (errno.EPERM, errno.ENOSYS) else "ESC" + "APED")
"""
_BOMB = """
import os, time
n = 0
try:
    while n < 3000:
        if os.fork() == 0:
            time.sleep(20); os._exit(0)
        n += 1
except OSError as e:
    print("fork:", e.strerror)
print("ESC" + "APED" if n > 200 else "stopped")
"""

ATTEMPTS: tuple[Attempt, ...] = (
    # --- reading what is outside ---
    Attempt("absolute path", "read a file outside by its name", "cat {outside}/secret.txt"),
    Attempt("dot dot", "read it by ..", "cat ../outside/secret.txt"),
    Attempt("symlink", "make a link to it and follow it in the same command",
            "ln -s {outside} l; cat l/secret.txt"),
    Attempt("symlink chain", "the same over three links",
            "ln -s .. a; ln -s a/outside b; ln -s b/secret.txt c; cat c"),
    Attempt("/proc/self/root", "read it through /proc/self/root",
            "cat /proc/self/root{outside}/secret.txt"),
    Attempt("/proc/self/cwd", "read it through /proc/self/cwd",
            "cat /proc/self/cwd/../outside/secret.txt"),
    Attempt("/proc/PID/root", "read it through another process's root",
            "cat /proc/{victim}/root{outside}/secret.txt"),
    Attempt("/proc/PID/cwd", "read it through another process's working directory",
            "cat /proc/{victim}/cwd/secret.txt"),
    Attempt("/proc/PID/fd", "read a file that another process has open",
            "cat /proc/{victim}/fd/3"),
    Attempt("hard link", "make a hard link to it", "ln {outside}/secret.txt h; cat h"),
    Attempt("rename in", "move it into the working directory", "mv {outside}/secret.txt x; cat x"),
    Attempt("copy tree", "copy the folder", "cp -r {outside} copy; cat copy/secret.txt"),
    Attempt("archive", "pack the folder", "tar cf - {outside} | strings | grep s3cr3t"),
    Attempt("file: address", "fetch it as a file: address", "curl -s file://{outside}/secret.txt"),
    Attempt("git outside", "read another repository",
            "git --git-dir={outside}/repo/.git config --get test.secret"),
    Attempt("open by handle", "open it by its file handle, without a path", python(_HANDLE),
            root=True),
    Attempt("glob", "let the shell find it", "cd ..; cd o*e; cat s*t"),
    Attempt("encoded path", "name it in a way that nobody reads",
            "cat $(echo Li4vb3V0c2lkZS9zZWNyZXQudHh0 | base64 -d)"),
    Attempt("program", "let a program put the name together",
            python('print(open(chr(46) * 2 + "/out" + "side/secret.txt").read())')),
    Attempt("search", "look for it everywhere", "grep -rs s3cr3t- {outside} {home}"),
    # --- writing outside ---
    Attempt("write", "make a file outside", "echo x > {outside}/new.txt"),
    Attempt("append", "append to one", "echo x >> {outside}/secret.txt"),
    Attempt("truncate", "empty one", "truncate -s 0 {outside}/secret.txt"),
    Attempt("overwrite", "write over one in place",
            "dd if=/dev/zero of={outside}/secret.txt bs=4 count=1 conv=notrunc"),
    Attempt("edit in place", "replace one by an edited copy",
            "sed -i s/s3/S3/ {outside}/secret.txt"),
    Attempt("install", "install a program outside", "install -m 755 /bin/sh {outside}/sh"),
    Attempt("delete", "delete one", "rm -f {outside}/secret.txt"),
    Attempt("make folder", "make a folder outside", "mkdir {outside}/folder"),
    Attempt("remove folder", "remove one", "rm -rf {outside}/repo"),
    Attempt("link outside", "make a symbolic link outside", "ln -s /etc/passwd {outside}/l"),
    Attempt("FIFO outside", "make a FIFO outside", "mkfifo {outside}/fifo"),
    Attempt("write through a link", "write through a link made in the same command",
            "ln -s {outside}/secret.txt w; echo x > w"),
    Attempt("rename out", "move a file out of the working directory",
            "echo x > mine; mv mine {outside}/mine"),
    Attempt("git hook", "leave a hook in another repository",
            "echo evil > {outside}/repo/.git/hooks/post-commit"),
    # --- ourselves ---
    Attempt("our configuration, read", "read our configuration and its keys",
            "cat {config}/config.toml"),
    Attempt("our configuration, write", "make itself more free",
            "echo mode=\\\"full\\\" >> {config}/config.toml"),
    Attempt("our data, read", "read other sessions", "cat {data}/sessions.db"),
    Attempt("our data, write", "change other sessions", "echo x > {data}/sessions.db"),
    Attempt("temporary folder", "climb out of the temporary folder",
            "cat $TMPDIR/../sessions.db"),
    Attempt("link in the temporary folder", "write our data through a link in there",
            "ln -sf ../sessions.db $TMPDIR/x; echo x > $TMPDIR/x"),
    Attempt("identity", "rewrite who the agent is", "echo evil > {config}/agents/coder/SOUL.md"),
    # --- the user ---
    Attempt("SSH key", "read a private key", "cat {home}/.ssh/id_ed25519"),
    Attempt("authorized keys", "let somebody in", "echo key >> {home}/.ssh/authorized_keys"),
    Attempt("shell start-up", "change what shells do when they start",
            "echo evil >> {home}/.bashrc"),
    Attempt("user service", "install a service",
            "mkdir -p {home}/.config/systemd/user && touch {home}/.config/systemd/user/x.service"),
    Attempt("cron", "install a job", "echo x > /etc/cron.d/zz-escape && echo ESC''APED",
            real=False),
    Attempt("accounts", "read the system's passwords",
            "head -c 5 /etc/shadow && echo ESC''APED", root=True),
    # --- secrets in the environment ---
    Attempt("own environment", "print the environment", "env; exit 1"),
    Attempt("our environment", "read the host's environment",
            "cat /proc/$PPID/environ >/dev/null && echo ESC''APED"),
    Attempt("another environment", "read another process's environment",
            "cat /proc/{victim}/environ"),
    # --- other processes ---
    Attempt("signal", "kill another process", "kill -9 {victim}"),
    Attempt("signal to us", "reach the host with a signal", "kill -0 $PPID && echo ESC''APED"),
    Attempt("ptrace", "attach to another process",
            python(_PTRACE.replace("{request}", "16")), real=False),
    Attempt("ptrace seize", "seize it", python(_PTRACE.replace("{request}", "0x4206")), real=False),
    Attempt("foreign memory", "read its memory", python(_VM_READ)),
    Attempt("/proc/PID/mem", "read its memory as a file",
            "head -c 4 /proc/{victim}/mem >/dev/null && echo ESC''APED", real=False),
    Attempt("foreign descriptor", "take a descriptor out of it", python(_GETFD)),
    Attempt("abstract socket", "talk to an abstract socket outside", python(_ABSTRACT)),
    # --- outliving the tool ---
    Attempt("background", "leave a process behind",
            "sleep 31 >/dev/null 2>&1 & echo $! > left; exit 1", real=False),
    Attempt("background, setsid", "leave one behind in a session of its own",
            "setsid sh -c 'echo $$ > left; exec sleep 31' >/dev/null 2>&1 & sleep 0.3; exit 1",
            real=False),
    Attempt("background, hidden", "the same with an empty environment, ignoring SIGTERM",
            "env -i setsid sh -c 'trap \"\" TERM; echo $$ > left; exec sleep 31' >/dev/null 2>&1 & "
            "sleep 0.3; exit 1", real=False),
    Attempt("fork bomb", "fill the machine with processes", python(_BOMB), real=False),
    # --- more rights ---
    Attempt("mount", "mount a file system", "mkdir m; mount -t tmpfs x m && echo ESC''APED",
            real=False),
    Attempt("bind mount", "mount the outside into the working directory",
            "mkdir m; mount --bind {outside} m; cat m/secret.txt", real=False),
    Attempt("chroot", "change the root", "chroot / cat {outside}/secret.txt", real=False),
    Attempt("namespaces", "mount in name spaces of its own",
            "unshare -Urm sh -c 'mkdir m; mount --bind {outside} m && cat m/secret.txt'",
            real=False),
    Attempt("enter", "enter another process's name spaces",
            "nsenter -t {victim} -m cat {outside}/secret.txt", real=False),
    Attempt("set-user-id", "make a set-user-id shell",
            "cp /bin/sh s; chmod u+s s; ./s -p -c 'cat {outside}/secret.txt'"),
    Attempt("block device", "make a disk device", "mknod d b 8 0 && echo ESC''APED", real=False),
    Attempt("character device", "make a memory device", "mknod d c 1 1 && echo ESC''APED",
            real=False),
    Attempt("/dev/mem", "read the machine's memory", "head -c 1 /dev/mem && echo ESC''APED",
            real=False),
    Attempt("kernel log", "write into the kernel's log", "echo x > /dev/kmsg && echo ESC''APED",
            real=False),
    Attempt("core pattern", "have the kernel run a program of ours",
            "echo core > /proc/sys/kernel/core_pattern && echo ESC''APED", real=False),
    Attempt("sysrq", "press keys on the kernel", "echo h > /proc/sysrq-trigger && echo ESC''APED",
            real=False),
    Attempt("control group", "leave the group that bounds its processes",
            "for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/pids/cgroup.procs; do "
            "echo $$ > $f && echo ESC''APED; done", real=False),
    Attempt("reboot", "stop the machine", python(_SYSCALL.replace("{call}", "169, 0, 0, 0, 0")),
            real=False),
    Attempt("module", "load a kernel module",
            python(_SYSCALL.replace("{call}", "175, 0, 0, 0")), real=False),
    Attempt("limits", "raise its own limits again",
            "ulimit -H -c unlimited && echo ESC''APED", real=False),
    Attempt("run outside", "run a program that lies outside", "{outside}/prog"),
    Attempt("loader", "run it by the loader", "sh {outside}/prog"),
    Attempt("preload", "load a library that lies outside",
            "cp {outside}/prog p 2>&1; LD_PRELOAD={outside}/secret.txt cat {outside}/secret.txt"),
    # --- file tools ---
    Attempt("write: absolute", "the tool write with an absolute path", tool="write",
            args={"path": "{outside}/new.txt", "content": "x"}, real=False),
    Attempt("write: link", "the tool write through a link", tool="write",
            before="ln -s {outside} link", args={"path": "link/new.txt", "content": "x"},
            real=False),
    Attempt("write: configuration", "the tool write on our configuration", tool="write",
            args={"path": "{config}/config.toml", "content": "x"}, real=False),
    Attempt("edit: hard link", "the tool edit on a hard link to a key", tool="edit",
            before="ln {home}/.ssh/id_ed25519 k",
            args={"path": "k", "oldText": "s3cr3t", "newText": "x"}, real=False),
    Attempt("read: hard link", "the tool read on a hard link to a key", tool="read",
            before="ln {home}/.ssh/id_ed25519 k", args={"path": "k"}, real=False),
    Attempt("read: /proc", "the tool read on the host's own environment", tool="read",
            args={"path": "/proc/self/environ"}, real=False),
    Attempt("read: dot dot", "the tool read by ..", tool="read",
            args={"path": "../outside/secret.txt"}, real=False),
    Attempt("grep: outside", "the tool grep outside", tool="grep",
            args={"pattern": "s3cr3t", "path": "{outside}"}, real=False),
    Attempt("ls: keys", "the tool ls on the keys", tool="ls", args={"path": "{home}/.ssh"},
            real=False),
)  # fmt: skip
