"""Ways through the kernel: sockets, system calls on others, the clock, namespaces, devices, limits.

Each is a line or two of Python after the helpers of `driver`.
"""

from .attack import Attack, opens


def _calls(text: str) -> tuple[Attack, ...]:
    """Attacks that are one system call each: `name: what | arguments`."""
    made = []
    for line in text.strip().splitlines():
        head, _, rest = line.strip().partition(": ")
        what, _, args = rest.partition(" | ")
        made.append(Attack(f"call: {head}", what, python=f"refused({args})", real=False))
    return tuple(made)


def _code(name: str, what: str, code: str, real: bool = True, gap: str = "") -> Attack:
    return Attack(name, what, python=code, real=real, gap=gap)


_SOCKETS = (
    _code("socket of a program", "talk to a program outside by its socket",
          's = socket.socket(1); s.connect(near("{outside}") + "/program.sock")\n'
          "print(s.recv(99))"),
    _code("datagram to a program", "send it a datagram",
          's = socket.socket(1, 2); s.sendto(b"x", near("{outside}") + "/datagram.sock")\n'
          "escaped()"),
    _code("pair, pointed elsewhere", "point one of a pair at it",
          'a, b = socket.socketpair(1, 2); a.connect(near("{outside}") + "/datagram.sock")\n'
          'a.send(b"x"); escaped()'),
    _code("raw pair, pointed elsewhere", "point one of a raw pair at it",
          'a, b = socket.socketpair(1, 3); a.connect(near("{outside}") + "/datagram.sock")\n'
          'a.send(b"x"); escaped()'),
    _code("packets to a program", "talk to it in packets",
          "s = socket.socket(1, 5); escaped()"),
    _code("socket by another number", "make the socket by the number of x32",
          'found, _ = call(0x40000000 | 41, 1, 1, 0); found >= 0 and escaped()', False),
    _code("socket by the old way", "make it by the system calls of 32 bits",
          "import mmap\n"
          "m = mmap.mmap(-1, 4096, prot=7)\n"
          "m.write(bytes.fromhex('53b867010000bb01000000b90100000031d2cd805bc3'))\n"
          "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\n"
          "f() >= 0 and escaped()", False),
    _code("abstract datagram", "send to an abstract socket",
          's = socket.socket(1, 2); s.sendto(b"x", "\\0{abstract}.d"); escaped()'),
    *(
        _code(f"network: {name}", f"open {what}",
              f"tried(lambda: socket.socket({args}))", False)
        for name, what, args in (
            ("packets", "all packets of all interfaces", "17, 3, 0x0300"),
            ("packets, cooked", "the same without their heads", "17, 2, 0x0300"),
            ("raw TCP", "a raw socket, which sees others' TCP", "2, 3, 6"),
            ("raw ICMP", "a raw socket of ICMP", "2, 3, 1"),
            ("raw", "a raw socket of everything", "2, 3, 255"),
            ("raw IPv6", "a raw socket of IPv6", "10, 3, 58"),
            ("netlink: sockets", "the list of everybody's sockets", "16, 3, 4"),
            ("netlink: audit", "the audit", "16, 3, 9"),
            ("netlink: events", "the kernel's events", "16, 3, 15"),
            ("netlink: connector", "the news of processes", "16, 3, 11"),
            ("netlink: filter", "the packet filter", "16, 3, 12"),
            ("virtual machine", "the way to the machine below", "40, 1, 0"),
            ("kernel crypto", "the kernel's ciphers", "38, 5, 0"),
            ("key management", "the keys of IPsec", "15, 3, 2"),
            ("Bluetooth", "Bluetooth", "31, 3, 1"),
            ("TIPC", "TIPC", "30, 1, 0"),
            ("RDS", "RDS", "21, 5, 0"),
            ("CAN", "a car's wires", "29, 3, 1"),
            ("XDP", "packets before the kernel sees them", "44, 3, 0"),
            ("phone", "a modem", "35, 2, 0"),
            ("several paths", "a connection that no table shows", "2, 1, 262"),
            ("several paths, IPv6", "the same over IPv6", "10, 1, 262"),
            ("SCTP", "another kind of connection", "2, 1, 132"),
            ("SMC", "memory shared with other machines", "43, 1, 0"),
            ("multiplexed", "the kernel's multiplexer", "41, 5, 0"),
        )
    ),
)  # fmt: skip

_OTHERS = (
    *(
        _code(f"limit of another: {name}", "change a limit of another process",
              f"import resource; resource.prlimit({{victim}}, {number}, {value}); escaped()")
        for name, number, value in (
            ("CPU", 0, "(0, 0)"), ("files", 7, "(3, 3)"), ("memory", 9, "(1 << 40, 1 << 40)"),
            ("core", 4, "(0, 0)"), ("real time", 15, "(9, 9)"),
        )
    ),
    _code("limits of another", "read the limits of another process",
          "import resource; resource.prlimit({victim}, 7); escaped()"),
    _code("priority of another", "put another process last",
          "os.setpriority(0, {victim}, 19); escaped()"),
    _code("priority of a group", "put a group of processes last",
          "os.setpriority(1, {victim}, 19); escaped()"),
    _code("priority of everybody", "put all processes of the user last",
          # Of a user who has none: let through, it finds nobody, and nothing changes.
          "try: os.setpriority(2, 2147483646, 19)\nexcept ProcessLookupError: pass\nescaped()"),
    _code("renice", "the same by the program", "", True)._replace(
        python="", shell="renice -n 19 -p {victim} && echo ESC''APED"),
    _code("processors of another", "take processors from another process",
          "os.sched_setaffinity({victim}, os.sched_getaffinity(0)); escaped()"),
    _code("scheduling of another", "make another process idle",
          "os.sched_setscheduler({victim}, 5, os.sched_param(0)); escaped()"),
    _code("disk priority of another", "put its reading and writing last",
          'found, _ = call("ioprio_set", 1, {victim}, 3 << 13); found == 0 and escaped()'),
    _code("signal by its queue", "signal it with a value",
          'import struct; found, _ = call({sigqueue}, {victim}, 0, '
          'struct.pack("=iii", 0, 0, -1) + bytes(116)); found == 0 and escaped()'),
    _code("signal by its thread", "signal one of its threads",
          "found, _ = call({tgkill}, {victim}, {victim}, 0); found == 0 and escaped()"),
    _code("signal by its descriptor", "signal it by a descriptor",
          "found, _ = call(424, call(434, {victim}, 0)[0], 0, 0, 0); found == 0 and escaped()"),
    _code("signal to all", "stop every process", "os.kill({victim}, signal.SIGSTOP); escaped()",
          False),
    _code("signal by a pipe", "have the kernel signal it when a pipe is written",
          "import fcntl; r, w = os.pipe(); fcntl.fcntl(r, 8, {victim}); "
          "fcntl.fcntl(r, 4, fcntl.fcntl(r, 3) | 0o20000); os.write(w, b'x'); time.sleep(0.1)"),
    _code("write its memory", "write into another process",
          'refused("process_vm_writev", {victim}, 0, 0, 0, 0, 0)', False),
    _code("compare", "compare its resources with ours",
          'refused("kcmp", os.getpid(), {victim}, 2, 0, 0)', False),
    _code("its pages", "move its pages",
          'refused("move_pages", {victim}, 0, 0, 0, 0, 0)', False),
    _code("its shared memory", "read shared memory of another program",
          'print(open("/dev/shm/{shared}").read())',
          gap="Shared memory is one folder for all programs of a user."),
    _code("its shared memory, write", "write into it",
          'open("/dev/shm/{shared}", "r+b").write(b"x"); escaped()',
          gap="Shared memory is one folder for all programs of a user."),
    _code("its segment", "attach to System V memory of another program",
          "libc.shmat.restype = ctypes.c_void_p; a = libc.shmat({segment}, None, 0)\n"
          "a not in (None, 2**64 - 1) and print(ctypes.string_at(a, 64))"),
    _code("its segment, remove", "remove it", "libc.shmctl({segment}, 2, None) == 2 or "
          'call("shmctl", {segment}, 2, 0)[1] not in ("EPERM", "ENOSYS", "EINVAL", "EACCES") '
          "and escaped()", False),
    _code("arguments", "read the arguments of another process",
          'print(open("/proc/{victim}/cmdline").read())',
          gap="Everybody on a machine can read the arguments of all programs."),
    _code("its status", "read the state of another process",
          'open("/proc/{victim}/status").read(); escaped()',
          gap="Everybody on a machine can read the state of all programs."),
    _code("its maps", "read where its memory is", 'open("/proc/{victim}/maps").read(); escaped()'),
    _code("its system call", "read what it does",
          'open("/proc/{victim}/syscall").read(); escaped()'),
    _code("its descriptors", "list what it has open",
          'os.listdir("/proc/{victim}/fd"); escaped()',
          gap="Everybody on a machine can see how many files a program has open."),
    _code("its end", "make it the first to be killed",
          'open("/proc/{victim}/oom_score_adj", "w").write("1000"); escaped()'),
    _code("its keys", "look into the keys of the session",
          'refused("keyctl", 0, -3, 0, 0, 0)', False),
)  # fmt: skip

_OWN = (
    _code("mark: off", "take the mark off",
          "import resource; resource.setrlimit(15, (0, 0)); escaped()"),
    _code("mark: lower", "change the mark",
          "import resource; resource.setrlimit(15, (7, 7)); escaped()"),
    _code("mark: by its number", "change it by another call",
          "import resource; resource.prlimit(os.getpid(), 15, (0, 0)); escaped()"),
    _code("mark: soft", "change a half of it",
          "import resource; h = resource.getrlimit(15)[1]; "
          "resource.setrlimit(15, (5, h)); escaped()"),
    _code("real time: FIFO", "come before everybody",
          "os.sched_setscheduler(0, 1, os.sched_param(1)); escaped()", False),
    _code("real time: RR", "come before everybody",
          "os.sched_setscheduler(0, 2, os.sched_param(1)); escaped()", False),
    _code("real time: reset on fork", "come before everybody for a while",
          "os.sched_setscheduler(0, 1 | 0x40000000, os.sched_param(1)); escaped()", False),
    _code("real time: deadline", "come at a certain time",
          'import struct; refused("sched_setattr", 0, struct.pack("=IIQiIQQQ", 48, 6, 0, 0, 0, '
          "10**6, 10**7, 10**7), 0)", False),
    _code("nicer than others", "come before others",
          "os.setpriority(0, 0, 10); os.setpriority(0, 0, 5); escaped()", False),
    _code("never killed", "never be the one to be killed",
          'open("/proc/self/oom_score_adj", "w").write("-1000"); escaped()', False),
    _code("another user", "become another user", "os.setuid(os.getuid() + 1); escaped()", False),
    _code("user 0", "become root",
          "os.getuid() == 0 and os._exit(0)\nos.setresuid(0, 0, 0); escaped()", False),
    _code("another group", "join another group", "os.setgroups([0, 4]); escaped()", False),
    _code("powers", "take powers",
          'import struct; found = libc.capset(struct.pack("=Ii", 0x20080522, 0), '
          "b'\\xff' * 24); found == 0 and escaped()", False),
    _code("powers: any", "have any power at all",
          'rows = dict(l.split(":\\t") for l in open("/proc/self/status") if l[:3] == "Cap")\n'
          "any(int(rows[k], 16) for k in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb')) and escaped()",
          False),
    _code("new privileges", "get more by a program", "libc.prctl(38, 0, 0, 0, 0) == 0 and "
          "escaped()", False),
    _code("filter: off", "take the filter off", "libc.prctl(22, 0, 0, 0, 0) == 0 and escaped()",
          False),
    _code("files: hard limit", "raise a limit",
          "import resource; h = resource.getrlimit(4)[1]; "
          "resource.setrlimit(4, (h + 1, h + 1)); escaped()", False),
    _code("type into a terminal", "type into a terminal of its own",
          "import fcntl, pty, termios; m, s = pty.openpty(); "
          "fcntl.ioctl(s, termios.TIOCSTI, b'x'); escaped()", False),
    _code("paste into a console", "paste into a console",
          "import fcntl, pty; m, s = pty.openpty()\n"
          "try: fcntl.ioctl(s, 0x541C, b'\\x02')\n"
          "except OSError as e: e.errno in (1, 38) or escaped()\n"
          "else: escaped()", False),
    _code("another terminal, read", "read what is typed in another terminal",
          'f = os.open("{tty}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY); escaped()'),
    _code("another terminal, write", "write into another terminal",
          'f = os.open("{tty}", os.O_WRONLY | os.O_NOCTTY); os.write(f, b"x"); escaped()'),
    _code("all terminals", "open any terminal that is there",
          'import glob\nfor p in glob.glob("/dev/pts/[0-9]*") + glob.glob("/dev/tty[0-9S]*"):\n'
          "    try: os.open(p, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)\n"
          "    except OSError: continue\n"
          "    escaped()"),
    _code("fork into a name space", "start a child in name spaces of its own",
          'found, p = call("clone", 0x10000011, 0, 0, 0, 0); found == 0 and os._exit(0); '
          "found > 0 and escaped()", False),
    _code("a ring", "make calls that no filter sees",
          'refused("io_uring_setup", 8, bytes(120))', False),
)  # fmt: skip

_CALLS = _calls("""
mount: mount a file system | "mount", b"x", b".", b"tmpfs", 0, 0
umount: take a mount away | "umount2", b"/proc", 2
pivot root: change the root | "pivot_root", b".", b"."
chroot: change the root | "chroot", b"."
new mounts: a mount table of its own | "unshare", 0x00020000
new users: a table of users of its own | "unshare", 0x10000000
new processes: processes of its own | "unshare", 0x20000000
new network: a network of its own | "unshare", 0x40000000
new names: a host name of its own | "unshare", 0x04000000
new queues: queues of its own | "unshare", 0x08000000
new groups: control groups of its own | "unshare", 0x02000000
new clock: a clock of its own | "unshare", 0x80
enter: enter a name space | "setns", 0, 0
file system: open a file system | "fsopen", b"tmpfs", 0
mount tree: take a copy of a mount | "open_tree", -100, b".", 1
move mount: move one | "move_mount", -100, b".", -100, b".", 0
configure: configure one | "fsconfig", 0, 0, 0, 0, 0
pick: pick one | "fspick", -100, b".", 0
mount flags: make one writable | "mount_setattr", -100, b".", 0, 0, 0
clock: set the clock (to what it is) | "clock_settime", 0, 0
clock, adjust: bend the clock | "clock_adjtime", 0, 0
time of day: set the time | "settimeofday", 0, 0
adjust: bend the time | "adjtimex", 0
BPF: load a program into the kernel | "bpf", 0, 0, 0
performance: count what others do | "perf_event_open", 0, 0, -1, -1, 0
key: add a key | "add_key", b"user", b"x", b"x", 1, -2
request key: ask for a key | "request_key", b"user", b"x", 0, -2
kernel: load another kernel | "kexec_load", 0, 0, 0, 0
kernel, file: load it from a file | "kexec_file_load", -1, -1, 0, 0, 0
module, file: load a module | "finit_module", -1, b"", 0
module, remove: remove one | "delete_module", b"no-such-module", 0
faults: handle page faults | "userfaultfd", 0
swap on: use a file as memory | "swapon", b"none", 0
swap off: take memory away | "swapoff", b"none"
host name: rename the machine | "sethostname", 0, -1
domain name: rename its domain | "setdomainname", 0, -1
ports: use the machine's ports | "iopl", 0
some ports: use some of them | "ioperm", 0, 0, 0
accounting: account for processes | "acct", b"none"
quota: change quotas | "quotactl", 0, 0, 0, 0
log: read the kernel's log | "syslog", 3, 0, 0
hang up: hang up the terminal | "vhangup",
watch: watch all files | "fanotify_init", 0, 0
advise: give another's memory away | "process_madvise", -1, 0, 0, 0, 0
release: release another's memory | "process_mrelease", -1, 0
new call: a child by a call that cannot be looked at | "clone3", 0, 0
ring, enter: calls through a ring | "io_uring_enter", -1, 0, 0, 0, 0, 0
ring, register: files through a ring | "io_uring_register", -1, 0, 0, 0
""")

_DEVICES = tuple(
    Attack(f"device: {path}", f"open {what}", opens(path), real=False)
    for path, what in (
        ("/dev/console", "the console"), ("/dev/tty0", "the console"), ("/dev/tty1", "a console"),
        ("/dev/vcs", "what a console shows"), ("/dev/port", "the ports"),
        ("/dev/kvm", "virtual machines"), ("/dev/fuse", "file systems"),
        ("/dev/net/tun", "network interfaces"), ("/dev/sda", "a disk"), ("/dev/vda", "a disk"),
        ("/dev/nvme0n1", "a disk"), ("/dev/loop-control", "loop devices"),
        ("/dev/uinput", "a keyboard"), ("/dev/input/event0", "a keyboard"),
        ("/dev/snapshot", "the sleeping machine"), ("/dev/cpu/0/msr", "the processor"),
        ("/dev/userfaultfd", "page faults"), ("/dev/vsock", "the machine below"),
        ("/proc/sys/kernel/hostname", "the host name"), ("/proc/sys/vm/drop_caches", "caches"),
        ("/proc/sys/kernel/modprobe", "the loader of modules"),
        ("/proc/sys/net/ipv4/ip_forward", "the router"), ("/proc/kcore", "memory"),
        ("/proc/1/mem", "the memory of the first process"), ("/sys/power/state", "sleep"),
        ("/sys/kernel/uevent_helper", "a helper of the kernel"),
        ("/sys/fs/cgroup/cgroup.subtree_control", "control groups"),
    )
)  # fmt: skip

_HELPERS = tuple(
    Attack(f"helper: {name}", f"have {name} run something outside",
           f"command -v {command.split()[0]} >/dev/null && timeout 4 {command} && "
           "cat {outside}/secret.txt", real=False)
    for name, command in (
        ("systemd-run", "systemd-run --user --wait true"), ("sudo", "sudo -n true"),
        ("su", "su nobody -s /bin/sh -c true"), ("pkexec", "pkexec true"),
        ("docker", "docker ps"), ("tmux", "tmux -S {outside}/program.sock list-sessions"),
        ("ssh", "ssh -o BatchMode=yes -o StrictHostKeyChecking=no localhost true"),
        ("crontab", "crontab -l"), ("dbus", "dbus-send --session --print-reply "
         "--dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames"),
        ("setpriv", "setpriv --reuid 1 true"), ("runuser", "runuser -u nobody true"),
        ("gdb", "gdb -p {victim} -batch"), ("strace", "strace -p {victim}"),
    )
)  # fmt: skip

KERNEL: tuple[Attack, ...] = (*_SOCKETS, *_OTHERS, *_OWN, *_CALLS, *_DEVICES, *_HELPERS)
