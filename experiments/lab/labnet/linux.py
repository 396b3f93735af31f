"""System calls that Python 3.11 has no name for. All raise LabError."""
import ctypes
import os
import signal
import subprocess

from labnet.errors import UNAVAILABLE, LabError

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV = 0x4000, 0x40000, 0x2, 0x4
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


def checked(result, what):
    if result != 0:
        raise LabError(f"{what}: {os.strerror(ctypes.get_errno())}", UNAVAILABLE)


def unshare(flags):
    checked(libc.unshare(flags), "this machine lets the lab have no namespaces of its own: unshare")


def mount(source, target, kind, flags=0):
    encode = lambda text: text.encode() if text else None
    checked(libc.mount(encode(source), target.encode(), encode(kind), flags, None), f"mount {target}")


def set_host_name(name):
    checked(libc.sethostname(name.encode(), len(name)), "sethostname")


def die_with_parent():
    checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")


def works_in_namespaces(command=()):
    """Whether namespaces can be had, and a command succeeds in them; they vanish with it."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            unshare(CLONE_NEWNET | CLONE_NEWNS)
            code = subprocess.run(command, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL).returncode if command else 0
        except (LabError, OSError):
            pass
        finally:
            os._exit(code)
    return os.waitpid(process, 0)[1] == 0
