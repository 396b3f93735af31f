"""A lab as a cluster file of Paceline (docs/formats.md, Cluster): what `predict` has to know of it.

Rates and racks are as the lab enforces them. What hosts and processors add is not known before it is
measured: those figures are assumed, with wide intervals, for `paceline calibrate` to narrow.
"""
import math

from labnet.errors import LabError
from labnet.networks import NETWORKS
from labnet.quantities import rate_text, time_text

MOST_OVERSUBSCRIPTION = 1000  # that a cluster file may have

# What a message takes beyond the lab's latency, microseconds: TCP, and waking up a rank on cores that
# hosts share. 22 to 45 between 4 hosts on two quiet cores with tbf, up to 400 on busy ones.
HOST_LATENCY_US = {"least": 20, "usual": 40, "most": 400}

TEMPLATE = """\
# A lab as a cluster: lab.py {command}
cluster: {name}
description: {description}
nodes: {hosts}
ranks_per_node: {ranks_per_host}
{device}intra:
  description: "TCP over the loopback device of a host"
  provenance: assumed
  source: "MPI over loopback, 0.1 to 2 GB/s with the cores shared; calibrate to know it"
  line_rate: 2 GB/s
  bandwidth: {{value: 1 GB/s, low: 0.1 GB/s, high: 2 GB/s}}
  latency: {{value: 40 us, low: 10 us, high: 400 us}}
nic:
  description: "{network} of the lab"
  source: "{source}"
  line_rate: {line_rate}
  bandwidth: {bandwidth}
  latency: {latency}
"""

LAB_CORE = """\
device:
  name: lab-core
  description: "one core of the machine that the lab runs on, if no other rank wants it"
  provenance: assumed
  source: "a server's core of recent years; calibrate to know it"
  fp32: {value: 100 GFLOP/s, low: 20 GFLOP/s, high: 200 GFLOP/s}
  memory_bandwidth: {value: 8 GB/s, low: 2 GB/s, high: 20 GB/s}
  memory: 4 GB
"""

FABRIC = """\
fabric:
  kind: fat-tree
  levels: [{{nodes: {nodes}, oversubscription: {oversubscription}}}]
"""


def unit_text(rate):
    """As cluster files write rates: 250 Mbit/s."""
    for factor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if rate >= factor:
            return f"{rate / factor:.6g} {unit}"
    return f"{rate:.6g} bit/s"


def fabric_yaml(options):
    """The fabric of racks. Nothing for one rack, which is the flat fabric that clusters have by default."""
    if options.racks == 1:
        return ""
    nodes = math.ceil(options.hosts / options.racks)
    if nodes * options.racks != options.hosts:
        raise LabError(f"{options.racks} racks of {options.hosts} hosts are uneven, and a cluster file "
                       "has equal ones: choose --hosts as a multiple of --racks")
    # An uplink that carries more than the hosts below it send is never what limits them.
    oversubscription = max(1.0, nodes * options.rate / options.uplink)
    if oversubscription > MOST_OVERSUBSCRIPTION:
        raise LabError(f"the uplink is {oversubscription:.0f} times slower than the hosts below it, and "
                       f"a cluster file allows {MOST_OVERSUBSCRIPTION}: raise --uplink")
    return FABRIC.format(nodes=nodes, oversubscription=f"{oversubscription:.6g}")


def latency_yaml(latency):
    """What the network enforces is the value, for calibration to add to; or else what hosts take."""
    least, usual, most = HOST_LATENCY_US.values()
    if latency:
        value, low, high = latency, latency, latency + most
        basis = f"source: \"the lab's; hosts add {least} to {most} us, which calibrate measures\""
    else:
        value, low, high = usual, least, most
        basis = "provenance: assumed, source: \"what hosts take, which calibrate measures\""
    return f"{{value: {value:.6g} us, low: {low:.6g} us, high: {high:.6g} us, {basis}}}"


def cluster_yaml(options):
    network = NETWORKS[options.network]
    fabric = fabric_yaml(options)
    command = (f"cluster --network {options.network} --hosts {options.hosts} "
               f"--rate {rate_text(options.rate)}")
    name = f"lab-{options.hosts}x{rate_text(options.rate)}"
    description = f"{options.hosts} hosts at {unit_text(options.rate)}"
    if options.latency:
        command += f" --latency {time_text(options.latency)}"
        name += f"-{time_text(options.latency)}"
        description += f", {time_text(options.latency)} apart"
    if options.racks > 1:
        command += f" --racks {options.racks} --uplink {rate_text(options.uplink)}"
        name += f"-{options.racks}racks"
        description += f", in {options.racks} racks with {unit_text(options.uplink)} up"
    if options.device:
        command += f" --device {options.device}"
    if options.ranks_per_host > 1:
        command += f" --ranks-per-host {options.ranks_per_host}"
    return TEMPLATE.format(
        command=command, name=name, description=description, hosts=options.hosts,
        ranks_per_host=options.ranks_per_host,
        device=f"device: {options.device}\n" if options.device else LAB_CORE, network=network.title, source=network.payload_source,
        line_rate=unit_text(options.rate), bandwidth=unit_text(options.rate * network.payload_share),
        latency=latency_yaml(options.latency)) + fabric
