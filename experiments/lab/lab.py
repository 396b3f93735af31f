#!/usr/bin/env python3
"""The lab: an emulated cluster on one Linux machine.

    lab.py run --hosts 4 --rate 250mbit --latency 1ms -- COMMAND...    under mpirun, a rank on each host
    lab.py run --no-mpi --hosts 4 --rate 250mbit -- COMMAND...         COMMAND alone, on host 1
    lab.py cluster --hosts 4 --rate 250mbit --latency 1ms              the same as a cluster file
    lab.py check                                                       whether the lab can run here

Hosts are network namespaces with one device `nic`, host I (from 1) at 10.77.0.I. What joins them is
a switch in user space (--network switch, the default), which carries frames at the rate and latency
given, also between racks; or the kernel's bridge with tbf on both ends of each host's link (--network
tbf), a second opinion on rates that has neither latency nor racks. Within COMMAND, `lab-on I
COMMAND...` runs a command on host I, and LAB_DIRECTORY is a folder that all hosts share and that
vanishes with the lab. MPI messages go over TCP only.

Everything lives in one tree of processes below a PID namespace of its own, and namespaces have no
names: when the launcher ends, is interrupted or is killed with SIGKILL, the kernel ends all of them,
and nothing is left on the machine. Nothing outside is changed: the lab uses 10.77.0.0/16, inside its
own namespaces only, which have no way out. Inside, /run and /dev/shm are empty folders of the lab's.

A run says whether to trust it. --wait-quiet waits until others leave the processors alone; a run is
disturbed where others used more than --max-foreign of the processors, other virtual machines took
more than --max-steal, or the switch held frames up, for more than --max-lateness each, for more than
--max-held-up of the time. It says so, and so does --report.

Exit code: the command's; 2 if the lab was asked for something impossible, 69 if this machine lacks
what it needs, 70 if a part of the lab died, 124 after --time-limit, 128 + signal when interrupted.

Needs root, iproute2, util-linux, openmpi-bin (unless --no-mpi); for --network switch /dev/net/tun and
paceline-lab-switch (build target of that name; --switch, or PACELINE_LAB_SWITCH, says where it is);
for --network tbf bridge, veth and tbf in the kernel.
"""
import argparse
import os
import pathlib
import shutil
import sys

from labnet.awake import awake_program
from labnet.cluster import cluster_yaml
from labnet.errors import UNAVAILABLE, LabError
from labnet.files import write_whole
from labnet.launcher import launch
from labnet.load import Limits, say_to_user
from labnet.linux import works_in_namespaces
from labnet.networks import NETWORKS
from labnet.quantities import parse_name, parse_rate, parse_share, parse_time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
LONGEST_WAIT_S = 31_536_000  # a year
DEFAULT_SWITCH = PROJECT / "build/release/experiments/lab/paceline-lab-switch"


class OneLineParser(argparse.ArgumentParser):
    def error(self, message):
        raise LabError(f"{message} (see {self.prog} --help)")


def parser():
    root = OneLineParser(prog="lab.py", description=__doc__,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = root.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="run a command in a lab")
    cluster = verbs.add_parser("cluster", help="print a lab as a cluster file, for paceline --cluster")
    check = verbs.add_parser("check", help="say what is missing")
    for verb in (run, cluster):
        verb.add_argument("--hosts", type=int, default=4)
        verb.add_argument("--rate", type=parse_rate, default=parse_rate("250mbit"),
                          help="of each host's link, each way (250mbit)")
        verb.add_argument("--latency", type=parse_time, help="from host to host (1ms; tbf: 0)")
        verb.add_argument("--racks", type=int, default=1,
                          help="hosts hang on so many racks, in order")
        verb.add_argument("--uplink", type=parse_rate, help="of each rack, each way")
        verb.add_argument("--ranks-per-host", type=int, default=1)
    cluster.add_argument("--device", type=parse_name, metavar="NAME", help="of the catalogue, for a replay's synthetic "
                         "compute; by default a core of this machine")
    cluster.add_argument("--out", type=pathlib.Path, metavar="FILE", help="instead of standard output")
    for verb in (run, cluster, check):
        verb.add_argument("--network", choices=NETWORKS, default="switch",
                          help="what joins hosts (switch)")
    for verb in (run, check):
        verb.add_argument("--switch", default=os.environ.get("PACELINE_LAB_SWITCH", DEFAULT_SWITCH))
    run.add_argument("--no-mpi", action="store_true", help="run the command alone, on host 1")
    run.add_argument("--rendezvous", action="store_true", help="keep Open MPI's eager limits")
    run.add_argument("--spin", action="store_true",
                     help="let idle ranks poll, though they share cores (yield_sleeps.cc)")
    run.add_argument("--awake", choices=["auto", "yes", "no"], default="auto",
                     help="keep processors from halting, which a hypervisor would lend to other "
                     "machines (stay_awake.cc); by default on virtual machines")
    run.add_argument("--mca", nargs=2, action="append", metavar=("NAME", "VALUE"),
                     help="one more setting of Open MPI")
    run.add_argument("--export", action="append", metavar="NAME[=VALUE]",
                     help="a variable for all ranks")
    run.add_argument("--time-limit", type=int, default=0, metavar="SECONDS",
                     help="from when the machine was quiet")
    run.add_argument("--report", metavar="FILE",
                     help="write what was carried and who used the processors, as JSON")
    run.add_argument("--quiet", action="store_true", help="no line about the run")
    add_thresholds(run)
    run.add_argument("command", nargs="+", metavar="COMMAND")
    return root


def add_thresholds(run):
    limits = Limits()
    run.add_argument("--wait-quiet", type=float, metavar="SECONDS",
                     help="wait up to so long for a quiet machine, and run then in any case")
    run.add_argument("--quiet-below", type=parse_share, default=parse_share("8%"), metavar="SHARE",
                     help="of the processors in use, over a second: what is quiet (8%%)")
    run.add_argument("--max-foreign", type=parse_share, default=limits.foreign, metavar="SHARE",
                     help=f"of the processors in use by others ({limits.foreign:.0%}%)")
    run.add_argument("--max-steal", type=parse_share, default=limits.steal, metavar="SHARE",
                     help=f"of the processors taken by other machines ({limits.steal:.0%}%)")
    run.add_argument("--max-lateness", type=parse_time, default=limits.lateness_us, metavar="TIME",
                     help=f"of a frame, beyond which it is held up ({limits.lateness_us / 1e3:g}ms)")
    run.add_argument("--max-held-up", type=parse_share, default=limits.held_up, metavar="SHARE",
                     help=f"of the time for which frames were held up ({limits.held_up:.0%}%)")


def missing_requirements(network, options, mpi):
    if not sys.platform.startswith("linux"):
        yield "Linux"
        return
    if os.geteuid() != 0:
        yield "root"
    elif not works_in_namespaces():
        yield "the right to have namespaces (CAP_SYS_ADMIN)"
    programs = {"ip": "iproute2", "nsenter": "util-linux"}
    if mpi:
        programs["mpirun"] = "openmpi-bin"
    for program, package in programs.items():
        if shutil.which(program) is None:
            yield f"{program} ({package})"
    yield from NETWORKS[network].missing(options)


def check(options):
    """Prints a line for each network. The exit code is about the one that was asked for."""
    code = 0
    for network in NETWORKS:
        missing = list(missing_requirements(network, options, mpi=True))
        lacks = f"this machine lacks {', '.join(missing)}" if missing else "ready"
        say_to_user(f"{network}: {lacks}")
        if missing and network == options.network:
            code = UNAVAILABLE
    return code


def check_lab(options):
    """Raises LabError if no such lab can be; fills in what was left open."""
    if not 2 <= options.hosts <= 250:
        raise LabError("--hosts must be from 2 to 250")
    if not 1 <= options.ranks_per_host <= 64:
        raise LabError("--ranks-per-host must be from 1 to 64")
    if not 1 <= options.racks <= options.hosts:
        raise LabError("--racks must be from 1 to the hosts")
    NETWORKS[options.network].refuse(options)
    if options.latency is None:
        options.latency = parse_time("1ms" if options.network == "switch" else "0")


def check_run(options):
    for name, seconds in (("--time-limit", options.time_limit), ("--wait-quiet", options.wait_quiet)):
        if seconds is not None and not 0 <= seconds <= LONGEST_WAIT_S:  # also false for nan
            raise LabError(f"{name} must be from 0 to {LONGEST_WAIT_S} seconds")
    if options.report:
        check_writable("--report", options.report)


def check_writable(name, path):
    """Before any work: that `path` can be a file, or what it links to."""
    target = pathlib.Path(os.path.realpath(path))
    needed = target if target.exists() else target.parent
    if target.is_dir() or target.is_symlink() or not os.access(needed, os.W_OK):
        raise LabError(f"{name}: no file can be written to {path}")


def write_cluster(options):
    text = cluster_yaml(options)
    if options.out is None:
        print(text, end="")
        return
    try:
        write_whole(options.out, text)
    except OSError as error:
        raise LabError(f"--out: {options.out}: {error.strerror}") from None


def main():
    options = parser().parse_args()
    if options.verb == "check":
        return check(options)
    check_lab(options)
    if options.verb == "cluster":
        write_cluster(options)
        return 0
    check_run(options)
    missing = list(missing_requirements(options.network, options, not options.no_mpi))
    if missing:
        raise LabError(f"this machine lacks {', '.join(missing)}", UNAVAILABLE)
    options.switch = str(options.switch)
    options.awake = awake_program(options.awake, options.switch)
    return launch(options)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        say_to_user(error)
        sys.exit(error.code)
