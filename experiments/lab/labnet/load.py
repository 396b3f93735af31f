"""Who used the processors: the lab, the switch, or others; and whether that disturbed a run.

Shares are of all processors together, from 0 to 1. They rest on ticks of 10 ms, so that those of a
run of less than about half a second say little.

The lab's own time is that of all processes of its PID namespace, as its own /proc shows them, with
those that ended. What the processors did besides is foreign: other programs, and the little that
the kernel's own threads did for the lab.
"""
import dataclasses
import os
import pathlib
import sys
import time

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
WINDOW_S = 1.0        # over which a machine is looked at before a run
GLANCE_S = 0.25       # the same, where nobody waits for a quiet one


@dataclasses.dataclass(frozen=True)
class Processors:
    """Ticks of all processors since the machine started."""
    total: int
    idle: int
    steal: int  # taken by the hypervisor for other machines

    @staticmethod
    def now():
        fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
        ticks = [int(field) for field in fields[1:9]]
        return Processors(sum(ticks), ticks[3] + ticks[4], ticks[7])

    def since(self, before):
        return Processors(self.total - before.total, self.idle - before.idle,
                          self.steal - before.steal)

    @property
    def busy(self):
        return self.total - self.idle - self.steal


def share(ticks, processors):
    return max(0.0, min(1.0, ticks / processors.total)) if processors.total > 0 else 0.0


# Before a run.

def busy_share(seconds):
    before = Processors.now()
    time.sleep(seconds)
    passed = Processors.now().since(before)
    return share(passed.busy, passed)


def wait_until_quiet(patience_s, quiet_share, say):
    """Waits up to so long until the machine is quiet. Returns the share that was busy at last, and
    how long it took."""
    start = time.monotonic()
    busy = busy_share(WINDOW_S)
    if busy > quiet_share:
        say(f"waiting up to {patience_s:g} s for a quiet machine: {busy:.0%} of the processors are "
            f"busy (quiet: {quiet_share:.0%}), load {os.getloadavg()[0]:.2f}")
    while busy > quiet_share and time.monotonic() - start < patience_s:
        busy = busy_share(WINDOW_S)
    waited = time.monotonic() - start
    if busy <= quiet_share:
        say(f"the machine is quiet: {busy:.0%} busy, after {waited:.0f} s")
    else:
        say(f"the machine is not quiet after {waited:.0f} s: {busy:.0%} busy; running nevertheless")
    return busy, waited


# During a run. These read the lab's own /proc.

def times_of(process):
    """The ticks of a process, and those of it and all its children that ended."""
    try:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # ended just now
        return 0, 0
    own = int(fields[11]) + int(fields[12])
    return own, own + int(fields[13]) + int(fields[14])


def waited(process):
    """Seconds in which a process of one thread could have run, and others were running."""
    try:
        return int(pathlib.Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):  # ended just now, or a kernel without CONFIG_SCHED_INFO
        return 0.0


def retransmits(process):
    """Segments that TCP sent again in the network namespace of a process."""
    try:
        lines = pathlib.Path(f"/proc/{process}/net/snmp").read_text().splitlines()
    except OSError:
        return 0
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


@dataclasses.dataclass(frozen=True)
class Meters:
    """What has been used so far."""
    clock_s: float
    processors: Processors
    lab: int     # ticks of all processes of the lab, but for those that keep processors awake
    awake: int   # ticks of those
    wire: int    # ticks of the network's processes, which are part of the lab's
    wire_waited_s: float
    retransmits: int

    @staticmethod
    def read(hosts, wire, awake):
        processes = {int(entry) for entry in os.listdir("/proc") if entry.isdigit()}
        return Meters(time.monotonic(), Processors.now(),
                      sum(times_of(process)[1] for process in processes - awake),
                      sum(times_of(process)[0] for process in awake),
                      sum(times_of(process)[0] for process in wire),
                      sum(waited(process) for process in wire),
                      sum(retransmits(process) for process in hosts))


def used_between(before, after):
    """Figures of a run for its report."""
    passed = after.processors.since(before.processors)
    lab = after.lab - before.lab
    busy = passed.busy - (after.awake - before.awake)
    return {"command_s": round(after.clock_s - before.clock_s, 3),
            "cpu_busy": round(share(busy, passed), 4),
            "cpu_lab": round(share(lab, passed), 4),
            "cpu_network": round(share(after.wire - before.wire, passed), 4),
            "network_waited_s": round(after.wire_waited_s - before.wire_waited_s, 4),
            "cpu_foreign": round(share(busy - lab, passed), 4),
            "cpu_steal": round(share(passed.steal, passed), 4),
            "retransmits": after.retransmits - before.retransmits}


# After it.

@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits beyond which a run counts as disturbed."""
    foreign: float = 0.10      # share of the processors
    steal: float = 0.02        # share of the processors
    lateness_us: float = 5000  # of a frame, beyond which it is held up
    held_up: float = 0.02      # share of the run's time for which frames were


def why_disturbed(figures, limits):
    """A phrase for each limit that a run was beyond; none if the run may be trusted."""
    why = []
    if figures["cpu_foreign"] > limits.foreign:
        why.append(f"others used {figures['cpu_foreign']:.0%} of the processors "
                   f"(limit {limits.foreign:.0%})")
    if figures["cpu_steal"] > limits.steal:
        why.append(f"other machines took {figures['cpu_steal']:.1%} of the processors "
                   f"(limit {limits.steal:.1%})")
    held_up = figures.get("held_up_s", 0.0) / max(figures["command_s"], 1e-9)
    if held_up > limits.held_up:
        why.append(f"frames were held up for {held_up:.1%} of the time (limit {limits.held_up:.1%})")
    return why


def say_to_user(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)
