"""Ways to other processes, to terminals, and to more rights."""

from .attack import Attack, opens

_VM_READ = """
a = int(open("/proc/{victim}/maps").readline().split("-")[0], 16)
class V(ctypes.Structure): _fields_ = [("b", ctypes.c_void_p), ("n", ctypes.c_size_t)]
buf = ctypes.create_string_buffer(16)
l, r = V(ctypes.addressof(buf), 16), V(a, 16)
n = libc.process_vm_readv({victim}, ctypes.byref(l), 1, ctypes.byref(r), 1, 0)
print("ESC" + "APED" if n > 0 else os.strerror(ctypes.get_errno()))
"""

PROCESSES: tuple[Attack, ...] = (
    # --- other processes ---
    Attack("signal", "kill another process", "kill -9 {victim}"),
    Attack("signal to us", "reach the host with a signal", "kill -0 {host} && echo ESC''APED"),
    Attack("ptrace", "attach to another process",
            python="libc.ptrace(16, {victim}, 0, 0) == 0 and escaped()", real=False),
    Attack("ptrace seize", "seize it",
            python="libc.ptrace(0x4206, {victim}, 0, 0) == 0 and escaped()", real=False),
    Attack("foreign memory", "read its memory", python=_VM_READ),
    Attack("/proc/PID/mem", "read its memory as a file",
            "head -c 4 /proc/{victim}/mem >/dev/null && echo ESC''APED", real=False),
    Attack("foreign descriptor", "take a descriptor out of it",
            python="f, why = call(438, call(434, {victim}, 0)[0], 3, 0)\n"
                   "print(os.read(f, 99) if f >= 0 else why)"),
    Attack("abstract socket", "talk to an abstract socket outside",
            python='socket.socket(1).connect("\\0{abstract}"); escaped()'),
    # --- more rights ---
    Attack("mount", "mount a file system", "mkdir m; mount -t tmpfs x m && echo ESC''APED",
            real=False),
    Attack("bind mount", "mount the outside into the working directory",
            "mkdir m; mount --bind {outside} m; cat m/secret.txt", real=False),
    Attack("chroot", "change the root", "chroot / cat {outside}/secret.txt", real=False),
    Attack("namespaces", "mount in name spaces of its own",
            "unshare -Urm sh -c 'mkdir m; mount --bind {outside} m && cat m/secret.txt'",
            real=False),
    Attack("enter", "enter another process's name spaces",
            "nsenter -t {victim} -m cat {outside}/secret.txt", real=False),
    Attack("set-user-id", "make a set-user-id shell",
            "cp /bin/sh s; chmod u+s s; ./s -p -c 'cat {outside}/secret.txt'"),
    Attack("block device", "make a disk device", "mknod d b 8 0 && echo ESC''APED", real=False),
    Attack("character device", "make a memory device", "mknod d c 1 1 && echo ESC''APED",
            real=False),
    Attack("/dev/mem", "read the machine's memory", "head -c 1 /dev/mem && echo ESC''APED",
            real=False),
    Attack("kernel log", "write into the kernel's log", opens("/dev/kmsg"),
            real=False),
    Attack("core pattern", "have the kernel run a program of ours",
            opens("/proc/sys/kernel/core_pattern"), real=False),
    Attack("sysrq", "press keys on the kernel", opens("/proc/sysrq-trigger"),
            real=False),
    Attack("control group", "leave the group that bounds its processes",
            "for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/pids/cgroup.procs; do "
            "echo $$ > $f && echo ESC''APED; done", real=False),
    Attack("reboot", "stop the machine", python='refused("reboot", 0, 0, 0, 0)',
            real=False),
    Attack("module", "load a kernel module",
            python='refused("init_module", 0, 0, 0)', real=False),
    Attack("limits", "raise its own limits again",
            "ulimit -H -c unlimited && echo ESC''APED", real=False),
    Attack("run outside", "run a program that lies outside", "{outside}/prog"),
    Attack("loader", "run it by the loader", "sh {outside}/prog"),
    Attack("preload", "load a library that lies outside",
            "cp {outside}/prog p 2>&1; LD_PRELOAD={outside}/secret.txt cat {outside}/secret.txt"),
)  # fmt: skip
