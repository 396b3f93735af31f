"""Brings a lab up, runs a command in it, and takes everything down again, however it ends.

Outside is the launcher, which only waits. Inside is the first process of a PID namespace, which
starts all others: when it ends, or the launcher does in any way, the kernel ends all of them.
Namespaces have no names, and devices and mounts vanish with the namespaces that they are in.
"""
import contextlib
import json
import os
import select
import signal

from labnet import linux
from labnet.awake import stay_awake
from labnet.errors import BROKEN, TIME_LIMIT, LabError
from labnet.files import write_whole
from labnet.hosts import DIRECTORY, SETTINGS, hold_namespace, write_scripts
from labnet.load import (GLANCE_S, Limits, Meters, busy_share, say_to_user, used_between,
                         wait_until_quiet, why_disturbed)
from labnet.mpi import mpirun
from labnet.networks import NETWORKS

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


# Outside.

def launch(options):
    """Starts the lab's first process in a PID namespace, and waits for it. Returns the exit code."""
    child = 0

    def stop(number, _frame):
        if child:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it has just ended
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        os._exit(TIME_LIMIT if number == signal.SIGALRM else 128 + number)

    for number in (*ENDINGS, signal.SIGALRM):
        signal.signal(number, stop)
    say = (lambda text: None) if options.quiet else say_to_user
    figures = look_at_machine(options, say)
    alive, keep = os.pipe()
    results, tell = os.pipe()
    linux.unshare(linux.CLONE_NEWPID)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)  # the child must not run stop()
    child = os.fork()
    if child == 0:
        os.close(keep)
        first_process(options, alive, tell)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    os.close(alive)
    os.close(tell)
    if options.time_limit:
        signal.alarm(options.time_limit)
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    child = 0
    with os.fdopen(results) as pipe:
        found = pipe.read()
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)  # the lab is down: what is left is a report
    if found:
        finish(options, figures | json.loads(found), say)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else BROKEN


def look_at_machine(options, say):
    """Figures of the machine before the run, for its report."""
    busy, waited = None, 0.0
    if options.wait_quiet is not None:
        busy, waited = wait_until_quiet(options.wait_quiet, options.quiet_below, say)
    elif options.report:
        busy = busy_share(GLANCE_S)
    return {"schema": "paceline.lab/1", "network": options.network, "hosts": options.hosts,
            "rate_bit_per_s": options.rate, "latency_us": options.latency, "racks": options.racks,
            "uplink_bit_per_s": options.uplink, "load_before": os.getloadavg()[0],
            "busy_before": busy if busy is None else round(busy, 4),
            "waited_for_quiet_s": round(waited, 1)}


def finish(options, figures, say):
    limits = Limits(options.max_foreign, options.max_steal, options.max_lateness,
                    options.max_held_up)
    why = why_disturbed(figures, limits)
    figures |= {"load_after": os.getloadavg()[0], "disturbed": bool(why), "why": why,
                "limits": {"cpu_foreign": limits.foreign, "cpu_steal": limits.steal,
                           "lateness_us": limits.lateness_us, "held_up": limits.held_up}}
    if options.report:
        try:
            write_whole(options.report, json.dumps(figures) + "\n")
        except OSError as error:
            raise LabError(f"{options.report}: {error.strerror}", 1) from None
    late = ""
    if "worst_lateness_us" in figures:
        late = (f", later than due by {figures['mean_lateness_us']:.0f} us, "
                f"p99 {figures['p99_lateness_us'] / 1e3:.1f} ms, "
                f"at worst {figures['worst_lateness_us'] / 1e3:.1f} ms")
    say(f"{figures['frames']} frames{late}; processors {figures['cpu_busy']:.0%} busy, "
        f"{figures['cpu_foreign']:.0%} with others")
    if why:
        say(f"disturbed: {'; '.join(why)}")


# Inside.

def first_process(options, alive, tell):
    """Does not return: the first process of a PID namespace must not go on."""
    code = 1
    try:
        for number in ENDINGS:
            signal.signal(number, signal.SIG_IGN)  # the launcher answers them
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
        linux.die_with_parent()
        if select.select([alive], [], [], 0)[0]:
            return  # the launcher was gone before the line above
        code, figures = inside(options)
        os.write(tell, json.dumps(figures).encode())
    except LabError as error:
        say_to_user(error)
        code = error.code
    except BaseException as error:
        say_to_user(f"{type(error).__name__}: {error}")
        code = BROKEN
    finally:
        os._exit(code)


def inside(options):
    """Runs the lab from its namespaces to what it carried. Returns the command's exit code, and figures."""
    os.nice(-10)  # hosts have processors of their own: they go ahead of what else is done here
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC)
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("proc", "/proc", "proc")
    for folder in ("/run", "/dev/shm"):
        if os.path.isdir(folder):
            linux.mount("lab", folder, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV)
    DIRECTORY.mkdir()
    kind = NETWORKS[options.network]
    hosts = [hold_namespace(f"lab{number}", SETTINGS | kind.host_settings)
             for number in range(1, options.hosts + 1)]
    network = kind(options, hosts)
    write_scripts(hosts)
    wire = network.processes()
    needed = wire | {process: f"host {number}" for number, process in enumerate(hosts, 1)}
    awake = stay_awake(options.awake)
    before = Meters.read(hosts, wire, awake)
    code = run_command(options, needed)
    used = used_between(before, Meters.read(hosts, wire, awake))
    return code, {"exit_code": code, "kept_awake": bool(awake)} | network.finish() | used


def run_command(options, needed):
    """Returns the command's exit code. `needed` are processes without which there is no lab."""
    command = [str(DIRECTORY / "lab-on"), "1"]
    if not options.no_mpi:
        command += mpirun(options)
    environment = dict(os.environ, LAB_DIRECTORY=str(DIRECTORY), LAB_HOSTS=str(options.hosts),
                       PATH=f"{os.environ.get('PATH', '/usr/bin')}:{DIRECTORY}")
    process = os.fork()
    if process == 0:
        for number in ENDINGS:
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execve(command[0], command + options.command, environment)
        finally:
            os._exit(127)
    while True:  # also reaps what others left behind, as a first process must
        ended, status = os.wait()
        if ended in needed:
            raise LabError(f"{needed[ended]} died, and the lab with it", BROKEN)
        if ended == process:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
