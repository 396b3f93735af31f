#!/usr/bin/env python3
"""The lab: an emulated cluster on one Linux machine.

    lab.py run --hosts 4 --rate 250mbit --latency 1ms -- COMMAND...    under mpirun, a rank on each host
    lab.py run --no-mpi --hosts 4 --rate 250mbit -- COMMAND...         COMMAND alone, on host 1
    lab.py check                                                       whether the lab can run here

Hosts are network namespaces with one device `nic`, host I (from 1) at 10.77.0.I; a switch in user
space (switch/) carries frames between them at the rate and latency given. Within COMMAND,
`lab-on I COMMAND...` runs a command on host I, and LAB_DIRECTORY is a folder that all hosts share
and that vanishes with the lab. MPI messages go over TCP only.

Everything lives in one tree of processes below a PID namespace of its own, and namespaces have no
names: when the launcher ends, is interrupted or is killed with SIGKILL, the kernel ends all of them,
and nothing is left on the machine. Nothing outside is changed, and hosts reach each other only.
Inside, /run and /dev/shm are empty folders of the lab's own.

Exit code: the command's; 2 if the lab was asked for something impossible, 69 if this machine lacks
what it needs, 124 after --time-limit, 128 + signal when interrupted.

Needs root, iproute2, util-linux, /dev/net/tun, openmpi-bin (unless --no-mpi), and
paceline-lab-switch (build target of that name; --switch, or PACELINE_LAB_SWITCH, says where it is).
"""
import argparse
import ctypes
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV = 0x4000, 0x40000, 0x2, 0x4
PR_SET_PDEATHSIG = 1
UNAVAILABLE = 69  # EX_UNAVAILABLE of sysexits.h

DIRECTORY = pathlib.Path("/run/lab")
PROJECT = pathlib.Path(__file__).resolve().parents[2]
DEFAULT_SWITCH = PROJECT / "build/release/experiments/lab/paceline-lab-switch"

libc = ctypes.CDLL(None, use_errno=True)


class LabError(Exception):
    """One line for the user, and an exit code."""

    def __init__(self, message, code=2):
        super().__init__(message)
        self.code = code


def checked(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise LabError(f"{what}: {os.strerror(number)}", UNAVAILABLE)


def unshare(flags):
    checked(libc.unshare(flags), "unshare")


def mount(source, target, kind, flags=0, data=None):
    encode = lambda text: text.encode() if text else None
    checked(libc.mount(encode(source), target.encode(), encode(kind), flags, encode(data)),
            f"mount {target}")


# Quantities.

def parse_rate(text):
    """Bits a second, from 250mbit, 1gbit, 100000000."""
    match = re.fullmatch(r"([0-9.]+)(|bit|kbit|mbit|gbit)", text.strip().lower())
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is no rate, such as 250mbit or 1gbit")
    return float(match[1]) * {"": 1, "bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}[match[2]]


def parse_time(text):
    """Microseconds, from 1ms, 50us, 0."""
    match = re.fullmatch(r"([0-9.]+)(|us|ms|s)", text.strip().lower())
    if not match or (match[2] == "" and float(match[1]) != 0):
        raise argparse.ArgumentTypeError(f"'{text}' is no time, such as 1ms or 50us")
    return float(match[1]) * {"": 0, "us": 1, "ms": 1e3, "s": 1e6}[match[2]]


def largest_segment(rate):
    """Of the frames that hosts hand over, in bytes: half a millisecond of the link, so that small
    frames do not wait long behind large ones, within what the kernel takes."""
    return int(min(max(rate / 8 * 0.5e-3, 4096), 65536))


def address(host):
    return f"10.77.{host >> 8}.{host & 255}"


def ethernet_address(host):
    """As switch/tap.h numbers hosts, from 0."""
    return f"02:77:00:00:{(host - 1) >> 8:02x}:{(host - 1) & 255:02x}"


# What the lab needs.

def missing_requirements(switch, mpi=True):
    if not sys.platform.startswith("linux"):
        yield "Linux"
        return
    if os.geteuid() != 0:
        yield "root"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        yield "/dev/net/tun"
    programs = {"ip": "iproute2", "nsenter": "util-linux"}
    if mpi:
        programs["mpirun"] = "openmpi-bin"
    for program, package in programs.items():
        if shutil.which(program) is None:
            yield f"{program} ({package})"
    if not os.access(switch, os.X_OK):
        yield f"{switch} (build target paceline-lab-switch)"


# The launcher, outside.

def launch(options):
    """Starts the lab's first process in a PID namespace, and waits for it. The kernel kills it, and
    with it the whole namespace, when this process is gone."""
    alive, keep = os.pipe()
    unshare(CLONE_NEWPID)
    child = os.fork()
    if child == 0:
        os.close(keep)
        code = 1
        try:
            code = inside(options, alive)
        except LabError as error:
            print(f"lab: {error}", file=sys.stderr)
            code = error.code
        except BaseException as error:  # the first process of a PID namespace must not go on
            print(f"lab: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(alive)

    def stop(number, _frame):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os._exit(124 if number == signal.SIGALRM else 128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, stop)
    if options.time_limit:
        signal.alarm(options.time_limit)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1


# The lab's first process, and what it starts.

def inside(options, alive):
    checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if select.select([alive], [], [], 0)[0]:
        return 1  # the launcher was gone before the line above
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the launcher's to answer
    os.nice(-10)  # hosts have processors of their own: they go ahead of what else is done here
    unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC)
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc")
    mount("lab", "/run", "tmpfs", MS_NOSUID | MS_NODEV)
    if os.path.isdir("/dev/shm"):
        mount("lab", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV)
    DIRECTORY.mkdir()
    hosts = [start_host(number) for number in range(1, options.hosts + 1)]
    switch = start_switch(options, hosts)
    for number, process in enumerate(hosts, 1):
        configure_host(options, number, process)
    write_scripts(hosts)
    busy = cpu_times()
    code = run_command(options, switch)
    busy = share_busy(busy, cpu_times())
    report(options, switch, busy)
    return code


def start_host(number):
    """A process that holds the namespaces of a host; its number."""
    ready, tell = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            unshare(CLONE_NEWNET | CLONE_NEWUTS)
            name = f"lab{number}".encode()
            checked(libc.sethostname(name, len(name)), "sethostname")
            # Plain loss-based TCP that keeps its window when idle; bbr, a common default, paces.
            for key, value in (("ipv4/tcp_congestion_control", "reno"),
                               ("ipv4/tcp_slow_start_after_idle", "0"),
                               ("ipv4/tcp_no_metrics_save", "1"),
                               # Buffers above rate x latency from the first byte, and no probes for
                               # losses: nothing is ever lost, and a busy machine is only late.
                               ("ipv4/tcp_wmem", "4096 1048576 4194304"),
                               ("ipv4/tcp_rmem", "4096 2097152 16777216"),
                               ("ipv4/tcp_early_retrans", "0"),
                               ("ipv6/conf/all/disable_ipv6", "1"),
                               ("ipv6/conf/default/disable_ipv6", "1")):
                setting = pathlib.Path("/proc/sys/net", key)
                if setting.exists():
                    setting.write_text(value)
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            os.write(tell, b"1")
            os.close(tell)
            while True:
                signal.pause()
        except BaseException as error:
            print(f"lab: host {number}: {error}", file=sys.stderr)
        finally:
            os._exit(1)
    os.close(tell)
    if os.read(ready, 1) != b"1":
        raise LabError(f"host {number} did not come up", UNAVAILABLE)
    os.close(ready)
    return process


def start_switch(options, hosts):
    command = [options.switch, "--rate", str(options.rate), "--latency", str(options.latency),
               "--racks", str(options.racks), "--uplink", str(options.uplink or 0)]
    command += [f"/proc/{process}/ns/net" for process in hosts]

    def first():  # the wire goes before what talks over it
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except OSError:
            os.nice(-15)

    switch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=first)
    if switch.stdout.readline() != "ready\n":
        raise LabError("the switch did not start", UNAVAILABLE)
    return switch


def configure_host(options, number, process):
    lines = [f"link set dev nic gso_max_size {largest_segment(options.rate)}",
             f"addr add {address(number)}/16 dev nic", "link set dev nic up"]
    # Hosts know each other's addresses: the first message waits for nothing.
    lines += [f"neigh replace {address(other)} lladdr {ethernet_address(other)} dev nic nud permanent"
              for other in range(1, options.hosts + 1) if other != number]
    subprocess.run(["nsenter", f"--net=/proc/{process}/ns/net", "ip", "-batch", "-"],
                   input="\n".join(lines), text=True, check=True)


def write_scripts(hosts):
    """lab-on, and the agent with which mpirun starts its daemons on other hosts."""
    DIRECTORY.joinpath("processes").write_text("".join(f"{process}\n" for process in hosts))
    enter = f'exec nsenter --net --uts --target "$(sed -n "$host"p {DIRECTORY}/processes)" --'
    scripts = {"lab-on": f'host=$1; shift\n{enter} "$@"\n',
               "lab-rsh": f'host=${{1##*.}}; shift\n{enter} sh -c "$*"\n'}
    for name, body in scripts.items():
        path = DIRECTORY / name
        path.write_text("#!/bin/sh\n" + body)
        path.chmod(0o755)


def mpirun(options):
    ranks = options.hosts * options.ranks_per_host
    hostfile = DIRECTORY / "hosts"
    hostfile.write_text("".join(f"{address(number)} slots={options.ranks_per_host}\n"
                                for number in range(1, options.hosts + 1)))
    settings = {
        "plm": "rsh", "plm_rsh_agent": DIRECTORY / "lab-rsh", "plm_rsh_no_tree_spawn": 1,
        "orte_tmpdir_base": DIRECTORY,
        "oob_tcp_if_include": "10.77.0.0/16", "btl_tcp_if_include": "10.77.0.0/16",
        "pml": "ob1", "btl": "self,tcp",
        # More ranks than cores: who waits must let others run.
        "mpi_yield_when_idle": 1,
    }
    if not options.rendezvous:
        # Open MPI's rendezvous, above 64 KiB, makes bulk exchanges partly half duplex.
        for name in ("btl_tcp_eager_limit", "btl_tcp_rndv_eager_limit", "btl_tcp_max_send_size"):
            settings[name] = 32 << 20
    command = ["mpirun", "--allow-run-as-root", "--hostfile", hostfile, "-np", ranks,
               "--map-by", "node", "--bind-to", "none"]
    for name, value in settings.items():
        command += ["--mca", name, value]
    for name, value in options.mca or []:
        command += ["--mca", name, value]
    yields = pathlib.Path(options.switch).with_name("libpaceline-lab-yield.so")
    if yields.exists() and not options.spin:
        command += ["-x", f"LD_PRELOAD={yields}"]
    for name in options.export or []:
        command += ["-x", name]
    return [str(part) for part in command]


def run_command(options, switch):
    command = [str(DIRECTORY / "lab-on"), "1"]
    if not options.no_mpi:
        command += mpirun(options)
    environment = dict(os.environ, LAB_DIRECTORY=str(DIRECTORY), LAB_HOSTS=str(options.hosts),
                       PATH=f"{os.environ.get('PATH', '/usr/bin')}:{DIRECTORY}")
    process = os.fork()
    if process == 0:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execve(command[0], command + options.command, environment)
        finally:
            os._exit(127)
    while True:  # also reaps what others left behind, as a first process must
        ended, status = os.wait()
        if ended == switch.pid:
            raise LabError("the switch failed", UNAVAILABLE)
        if ended == process:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def cpu_times():
    fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]


def share_busy(before, after):
    total = after[0] - before[0]
    return 1 - (after[1] - before[1]) / total if total > 0 else 0.0


def report(options, switch, busy):
    switch.send_signal(signal.SIGTERM)
    text = switch.communicate()[0]
    try:
        figures = json.loads(text)
    except ValueError:
        raise LabError("the switch failed", UNAVAILABLE) from None
    figures["cpu_busy"] = round(busy, 3)
    if options.report:
        pathlib.Path(options.report).write_text(json.dumps(figures) + "\n")
    if not options.quiet:
        print(f"lab: {figures['frames']} frames, later than due by {figures['mean_lateness_us']:.0f} us, "
              f"at worst {figures['worst_lateness_us'] / 1e3:.1f} ms; processors {busy:.0%} busy",
              file=sys.stderr)


# The command line.

def parser():
    root = argparse.ArgumentParser(prog="lab.py", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = root.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="run a command in a lab")
    run.add_argument("--hosts", type=int, default=4)
    run.add_argument("--rate", type=parse_rate, default=parse_rate("250mbit"),
                     help="of each host's link, each way (250mbit)")
    run.add_argument("--latency", type=parse_time, default=parse_time("1ms"),
                     help="from host to host (1ms)")
    run.add_argument("--racks", type=int, default=1, help="hosts hang on so many racks, in order")
    run.add_argument("--uplink", type=parse_rate, help="of each rack, each way")
    run.add_argument("--ranks-per-host", type=int, default=1)
    run.add_argument("--no-mpi", action="store_true", help="run the command alone, on host 1")
    run.add_argument("--rendezvous", action="store_true", help="keep Open MPI's eager limits")
    run.add_argument("--spin", action="store_true",
                     help="let idle ranks poll, though they share cores (yield_sleeps.cc)")
    run.add_argument("--mca", nargs=2, action="append", metavar=("NAME", "VALUE"),
                     help="one more setting of Open MPI")
    run.add_argument("--export", action="append", metavar="NAME[=VALUE]",
                     help="a variable for all ranks")
    run.add_argument("--time-limit", type=int, default=0, metavar="SECONDS")
    run.add_argument("--report", help="write what the switch carried, as JSON")
    run.add_argument("--quiet", action="store_true", help="no line about the run")
    run.add_argument("command", nargs="+", metavar="COMMAND")
    check = verbs.add_parser("check", help="say what is missing")
    for verb in (run, check):
        verb.add_argument("--switch", default=os.environ.get("PACELINE_LAB_SWITCH", DEFAULT_SWITCH))
    return root


def main():
    options = parser().parse_args()
    missing = list(missing_requirements(options.switch, not getattr(options, "no_mpi", False)))
    if missing:
        raise LabError(f"this machine lacks {', '.join(missing)}", UNAVAILABLE)
    if options.verb == "check":
        return 0
    if not 2 <= options.hosts <= 250:
        raise LabError("--hosts must be from 2 to 250")
    if options.rate <= 0 or options.ranks_per_host < 1:
        raise LabError("--rate and --ranks-per-host must be positive")
    if not 1 <= options.racks <= options.hosts or (options.racks > 1 and not options.uplink):
        raise LabError("--racks must be from 1 to the hosts, and needs --uplink")
    options.switch = str(options.switch)
    return launch(options)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        sys.exit(error.code)
