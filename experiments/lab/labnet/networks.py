"""What joins hosts. Each network gives every host its device `nic`, and can say what it carried.

TapSwitch, the main one: a switch in user space (switch/) at an exact rate and latency, with racks.
ShapedBridge, the second opinion: the kernel's own bridge, with tbf on both ends of every link. It
has no latency, and its token buckets let small messages pass at any speed.
"""
import json
import os
import shutil
import signal
import subprocess

from labnet import linux
from labnet.errors import BROKEN, UNAVAILABLE, LabError
from labnet.hosts import batch, configure, ethernet_address, hold_namespace


class TapSwitch:
    name, title = "switch", "the TAP switch"
    # Nothing is ever lost and a busy machine is only late, so TCP need not probe for losses.
    host_settings = {"ipv4/tcp_early_retrans": "0"}
    payload_share = 1448 / 1538
    payload_source = "TCP with timestamps at an MTU of 1500: 1448 of 1538 bytes on the wire"

    @staticmethod
    def missing(options):
        if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
            yield "/dev/net/tun"
        if not os.access(options.switch, os.X_OK):
            yield f"{options.switch} (build target paceline-lab-switch)"

    @staticmethod
    def refuse(options):
        """Raises LabError for what this network cannot be."""
        if options.racks > 1 and not options.uplink:
            raise LabError("--racks needs --uplink, such as --uplink 250mbit")
        if options.racks == 1 and options.uplink:
            raise LabError("--uplink is of racks, and there is one: give --racks, or leave it out")

    @staticmethod
    def largest_segment(rate):
        """Of the frames that hosts hand over, in bytes: half a millisecond of the link, so that
        small frames do not wait long behind large ones, within what the kernel takes."""
        return int(min(max(rate / 8 * 0.5e-3, 4096), 65536))

    def __init__(self, options, hosts):
        command = [options.switch, "--rate", str(options.rate), "--latency", str(options.latency),
                   "--racks", str(options.racks), "--uplink", str(options.uplink or 0),
                   "--late-after", str(options.max_lateness)]
        command += [f"/proc/{process}/ns/net" for process in hosts]

        def first():  # the wire goes before what talks over it
            try:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            except OSError:
                os.nice(-15)

        # A session of its own keeps a terminal's Ctrl-C away from it.
        self.switch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=first,
                                       start_new_session=True)
        if self.switch.stdout.readline() != "ready\n":
            raise LabError("the switch did not start", UNAVAILABLE)
        for number in range(1, options.hosts + 1):
            configure(hosts, number, self.largest_segment(options.rate), drops=False)

    def processes(self):
        """The processes without which hosts are not joined: number to name."""
        return {self.switch.pid: "the switch"}

    def finish(self):
        """Ends the network. Returns what it carried."""
        self.switch.send_signal(signal.SIGTERM)
        try:
            return json.loads(self.switch.communicate()[0])
        except ValueError:
            raise LabError("the switch failed", BROKEN) from None


class ShapedBridge:
    name, title = "tbf", "the bridge with tbf"
    host_settings = {}
    payload_share = 1448 / 1514
    payload_source = "TCP with timestamps at an MTU of 1500: 1448 of the 1514 bytes that tbf counts"
    queue_bytes = 4 << 20        # of each shaper; what is beyond is dropped

    @staticmethod
    def missing(_options):
        absent = [f"{program} (iproute2)" for program in ("tc", "bridge")
                  if not shutil.which(program)]
        yield from absent
        if absent or not shutil.which("ip") or not linux.works_in_namespaces():
            return
        for what, command in (
                ("bridges (CONFIG_BRIDGE)", "ip link add lab0 type bridge"),
                ("veth (CONFIG_VETH)", "ip link add lab1 type veth peer name lab2"),
                ("tbf (CONFIG_NET_SCH_TBF)",
                 "tc qdisc add dev lo root tbf rate 1mbit burst 4096 limit 4096")):
            if not linux.works_in_namespaces(command.split()):
                yield what

    @staticmethod
    def refuse(options):
        if options.latency:
            raise LabError("--network tbf has no latency: leave --latency out, "
                           "or use --network switch")
        if options.racks > 1 or options.uplink:
            raise LabError("--network tbf has no racks: leave --racks and --uplink out, "
                           "or use --network switch")

    @staticmethod
    def largest_segment(rate):
        """A token bucket must hold the largest packet, and what it holds passes an idle link at
        once: small packets keep the rate honest, large ones spare the processors."""
        for most, segment in ((150e6, 4096), (300e6, 8192), (500e6, 16384)):
            if rate <= most:
                return segment
        return 65536

    @staticmethod
    def burst(segment):
        """tbf counts a segmentation offload packet with the headers of each of its parts, and cuts
        up in software what is larger than its bucket."""
        return segment + segment // 16 + 2048

    def __init__(self, options, hosts):
        segment = self.largest_segment(options.rate)
        shape = (f"root tbf rate {options.rate:.0f}bit burst {self.burst(segment)} "
                 f"limit {self.queue_bytes}")
        self.hosts = hosts
        self.wire = hold_namespace("labwire", {"ipv6/conf/all/disable_ipv6": "1",
                                               "ipv6/conf/default/disable_ipv6": "1"})
        numbers = range(1, options.hosts + 1)
        lines = ["link add bridge type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
                 "link set dev bridge up"]
        for number in numbers:
            lines += [
                f"link add port{number} type veth peer name nic "
                f"address {ethernet_address(number)} netns {hosts[number - 1]}",
                f"link set dev port{number} gso_max_size {segment} master bridge up"]
        batch(self.wire, "ip", lines)
        batch(self.wire, "tc", [f"qdisc add dev port{number} {shape}" for number in numbers])
        # Addresses are known from the start, so that no frame is sent to all.
        batch(self.wire, "bridge", [
            f"fdb replace {ethernet_address(number)} dev port{number} master static"
            for number in numbers])
        for number in numbers:
            batch(hosts[number - 1], "tc", [f"qdisc add dev nic {shape}"])
            configure(hosts, number, segment)

    def processes(self):
        return {self.wire: "the bridge"}

    def finish(self):
        sent = [self.shaper(process, "nic")[0] for process in self.hosts]
        queues = sent + self.shaper(self.wire)
        return {"frames": sum(queue["packets"] for queue in sent),
                "wire_bytes": sum(queue["bytes"] for queue in sent),
                "refused": sum(queue["drops"] for queue in queues)}

    @staticmethod
    def shaper(process, device=None):
        shown = subprocess.run(["nsenter", f"--net=/proc/{process}/ns/net", "tc", "-s", "-json",
                                "qdisc", "show", *(["dev", device] if device else [])],
                               capture_output=True, text=True)
        try:
            return [queue for queue in json.loads(shown.stdout) if queue["kind"] == "tbf"]
        except ValueError:
            raise LabError("the shapers are gone", BROKEN) from None


NETWORKS = {network.name: network for network in (TapSwitch, ShapedBridge)}
