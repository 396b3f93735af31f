"""Hosts: network namespaces without names, each held by one process that sleeps.

Host I (from 1) is 10.77.0.I, its device is `nic`, its name labI.
"""
import os
import pathlib
import signal
import subprocess
import sys

from labnet import linux
from labnet.errors import UNAVAILABLE, LabError

DIRECTORY = pathlib.Path("/run/lab")  # of the lab's own /run: what all hosts share
NETWORK = "10.77.0.0/16"

SETTINGS = {
    # Plain loss-based TCP that keeps its window when idle; bbr, a common default, paces.
    "ipv4/tcp_congestion_control": "reno",
    "ipv4/tcp_slow_start_after_idle": "0",
    "ipv4/tcp_no_metrics_save": "1",
    # Buffers are larger than rate x latency from the first byte on.
    "ipv4/tcp_wmem": "4096 1048576 4194304",
    "ipv4/tcp_rmem": "4096 2097152 16777216",
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
}


def address(host):
    return f"10.77.{host >> 8}.{host & 255}"


def ethernet_address(host):
    """As switch/tap.h numbers hosts, from 0."""
    return f"02:77:00:00:{(host - 1) >> 8:02x}:{(host - 1) & 255:02x}"


def hold_namespace(name, settings):
    """Starts a process that holds a network namespace and a host name; its number. Settings are
    those of /proc/sys/net, as far as the kernel has them."""
    ready, tell = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            linux.unshare(linux.CLONE_NEWNET | linux.CLONE_NEWUTS)
            linux.set_host_name(name)
            for key, value in settings.items():
                setting = pathlib.Path("/proc/sys/net", key)
                if setting.exists():
                    setting.write_text(value)
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            os.write(tell, b"1")
            os.close(tell)
            while True:
                signal.pause()
        except BaseException as error:
            print(f"lab: {name}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    os.close(tell)
    if os.read(ready, 1) != b"1":
        raise LabError(f"{name} did not come up", UNAVAILABLE)
    os.close(ready)
    return process


def batch(process, program, lines):
    """Lines for ip, bridge or tc, in the network namespace of a process."""
    done = subprocess.run(["nsenter", f"--net=/proc/{process}/ns/net", program, "-batch", "-"],
                          input="\n".join(lines) + "\n", text=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise LabError(f"this machine cannot set up a host: {program}: {why}", UNAVAILABLE)


def configure(hosts, number, largest_segment, drops=True):
    """Brings up the device that the network gave to host `number`. In a network that drops nothing,
    a segment that is not acknowledged is in a queue, which at the lab's rates can be seconds long:
    there hosts send nothing again before 3 s, and their own queues take what TCP gives them."""
    patience = [] if drops else [
        "link set dev nic txqueuelen 20000",
        f"route change {NETWORK} dev nic proto kernel scope link src {address(number)} rto_min 3s"]
    batch(hosts[number - 1], "ip", [
        f"link set dev nic gso_max_size {largest_segment}",
        f"addr add {address(number)}/16 dev nic",
        "link set dev nic up",
        *patience,
        # Hosts know each other's addresses: the first message waits for nothing.
        *(f"neigh replace {address(other)} lladdr {ethernet_address(other)} dev nic nud permanent"
          for other in range(1, len(hosts) + 1) if other != number)])


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
