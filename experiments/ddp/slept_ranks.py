#!/usr/bin/python3
"""A rank of plans_in_lab.py: PyTorch's DDP over Gloo, with layers that sleep as long as a device would compute.

    slept_ranks.py measure CONFIG     the all-reduces of some sizes
    slept_ranks.py train CONFIG       iterations of several ways to make buckets

mpirun starts it on each host of a lab, and its variables say the rank; MPI itself is not used. CONFIG is
a JSON file, whose keys plans_in_lab.py writes. Rank 0 prints one JSON document.
"""
import json
import os
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "runtime" / "ddp"))

import torch  # noqa: E402
import torch.distributed as distributed  # noqa: E402

import paceline_ddp  # noqa: E402

WARM_TURNS = 1


def sleep_until(moment):
    while (left := moment - time.perf_counter()) > 0:
        time.sleep(left)


class Clock:
    """The device: it computes on by itself, whatever the host does meanwhile."""
    start = 0.0


class Layer(torch.autograd.Function):
    """Computes nothing. Its gradient is there at a moment of the iteration."""

    @staticmethod
    def forward(context, signal, weights, ready_s):
        context.ready_s, context.shape = ready_s, weights.shape
        return signal + 0.0

    @staticmethod
    def backward(context, signal):
        sleep_until(Clock.start + context.ready_s)
        return signal, torch.ones(context.shape), None


class Network(torch.nn.Module):
    """A parameter for each gradient, in forward order."""

    def __init__(self, config):
        super().__init__()
        self.forward_s = config["forward_s"]
        backward = list(zip(config["elements"], config["ready_s"]))
        self.ready_s = [ready for _, ready in reversed(backward)]
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(elements)) for elements, _ in reversed(backward))

    def forward(self, signal):
        for weights, ready_s in zip(self.weights, self.ready_s):
            signal = Layer.apply(signal, weights, ready_s)
        sleep_until(Clock.start + self.forward_s)
        return signal


def measure(config):
    """Seconds from one's end to the next one's on rank 0, the median of each size. Sizes take turns."""
    buffers = {size: torch.ones(size // 4) for size in config["sizes"]}
    times = {size: [] for size in buffers}
    for turn in range(config["turns"]):
        for size, buffer in buffers.items():
            distributed.all_reduce(buffer)
            for _ in range(config["in_a_row"]):
                start = time.perf_counter()
                distributed.all_reduce(buffer)
                times[size].append(time.perf_counter() - start)
            buffer.fill_(1)
    return {"medians_s": {size: statistics.median(of_size) for size, of_size in times.items()}}


def wrapped(config, way):
    plan = paceline_ddp.read_plan(way["plan"])
    if way["by"] == "hook":
        return plan, paceline_ddp.wrap(Network(config), plan, record=True)
    return plan, paceline_ddp._construct(Network(config), {"bucket_cap_mb": way["cap"] / paceline_ddp.MEBIBYTE}, way["first"])


def iterate(config, ddp):
    """One iteration from the end of the one before it on this rank."""
    signal = torch.ones(1, requires_grad=True)
    ddp(signal).backward()
    sleep_until(Clock.start + config["computed_s"])
    time.sleep(config["update_s"])
    end = time.perf_counter()
    ddp.zero_grad(set_to_none=True)
    return end


def train(config):
    ways = {way["name"]: wrapped(config, way) for way in config["ways"]}
    iterations = {name: [] for name in ways}
    travels = {name: {} for name in ways}
    names = list(ways)
    for turn in range(WARM_TURNS + config["turns"]):
        random.Random(turn).shuffle(names)  # alike on all ranks
        for name in names:
            _, ddp = ways[name]
            distributed.barrier()
            Clock.start = time.perf_counter()
            # DDP makes its buckets anew after the first iteration, and tells from the third on.
            for i in range(3 if turn < WARM_TURNS else 1 + config["in_a_row"]):
                begin = Clock.start
                Clock.start = iterate(config, ddp)
                if turn < WARM_TURNS or i == 0:
                    continue
                iterations[name].append(Clock.start - begin)
                for travel in getattr(ddp, "paceline_hook", None) and ddp.paceline_hook.travels or ():
                    travels[name].setdefault(travel.bucket, []).append((travel.ready - begin, travel.done - begin))
    return {"iterations_s": iterations,
            "buckets": {name: [[statistics.median(times) for times in zip(*of_bucket)] for _, of_bucket in sorted(buckets.items())]
                        for name, buckets in travels.items() if buckets},
            "differences": {name: paceline_ddp.differences(ddp, plan) for name, (plan, ddp) in ways.items()}}


def main():
    verb, config = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    rank, ranks = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    os.environ["GLOO_SOCKET_IFNAME"] = "nic"
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{os.environ['LAB_DIRECTORY']}/store", rank=rank, world_size=ranks)
    result = {"measure": measure, "train": train}[verb](config)
    if rank == 0:
        print(json.dumps(result | {"pytorch": torch.__version__}), flush=True)
    distributed.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
