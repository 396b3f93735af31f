#!/usr/bin/env python3
"""Runs plans in PyTorch's DDP over Gloo on this host, and sets the times of buckets beside their predictions.

    /usr/bin/python3 experiments/ddp/ddp_buckets.py --paceline build/release/paceline --ranks 2

Two all-reduces, of 64 KiB and 16 MiB, are measured and calibrate what Gloo's ring takes
(`paceline time ring --measured`); the sizes of all buckets are predicted from them. Beside that stand
the buckets alone (all ranks ready, nothing else in flight; the least of several, as for the two) and in
training, where they share the cores with the backward pass. Then iterations: DDP's defaults, the caps
nearest to the plan, and the plan's buckets by the hook, in turns. Medians. Needs python3-torch.
"""

import argparse
import csv
import io
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "runtime" / "ddp"))

import torch  # noqa: E402
import torch.distributed as distributed  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import paceline_ddp  # noqa: E402

CALIBRATING = (64 * 1024, 16 * 1024 * 1024)
HANG_S = 240


def make_model():
    nn = torch.nn
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 768), nn.ReLU(), nn.Linear(768, 512), nn.ReLU(),
                         nn.Linear(512, 10))


def time_all_reduces(sizes, repeats):
    """The least over repeats of the slowest rank's time of each size in bytes, seconds. Sizes take turns,
    so that what else the machine does meets all of them."""
    buffers = [torch.ones(size // 4) for size in sizes]
    times = [[] for _ in sizes]
    for repeat in range(repeats + 2):
        for buffer, of_size in zip(buffers, times):
            buffer.fill_(1)
            distributed.barrier()
            start = time.perf_counter()
            distributed.all_reduce(buffer)
            taken = torch.tensor([time.perf_counter() - start])
            distributed.all_reduce(taken, op=distributed.ReduceOp.MAX)
            if repeat >= 2:
                of_size.append(taken.item())
    return [min(of_size) for of_size in times]


def step(ddp, optimizer, images, labels):
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(ddp(images), labels).backward()
    optimizer.step()


def on_rank(rank, options, folder, results):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=options.ranks)
    if rank == 0:
        make_plan(options, folder)
    distributed.barrier()
    plan = paceline_ddp.read_plan(folder / "plan.json")
    sizes = [4 * sum(gradient.elements for gradient in bucket) for bucket in plan.buckets]
    alone = time_all_reduces([*CALIBRATING, *sizes], options.repeats)
    measured, alone = dict(zip(CALIBRATING, alone)), alone[len(CALIBRATING):]

    draw = torch.Generator().manual_seed(rank)
    images = torch.randn(options.batch, 784, generator=draw)
    labels = torch.randint(0, 10, (options.batch,), generator=draw)
    ways = {"DDP's defaults": DistributedDataParallel(make_model()), "nearest caps": paceline_ddp.wrap_with_caps(make_model(), plan),
            "the plan, by the hook": paceline_ddp.wrap(make_model(), plan, record=True)}
    optimizers = {name: torch.optim.SGD(ddp.parameters(), lr=0.01) for name, ddp in ways.items()}
    iterations = {name: [] for name in ways}
    travels = [[] for _ in plan.buckets]
    for turn in range(options.iterations + 4):
        for name, ddp in ways.items():
            distributed.barrier()
            start = time.perf_counter()
            step(ddp, optimizers[name], images, labels)
            if turn < 4:
                continue
            iterations[name].append(time.perf_counter() - start)
            if hasattr(ddp, "paceline_hook"):
                for travel in ddp.paceline_hook.travels:
                    travels[travel.bucket].append(travel.done - travel.ready)
    made = {name: ddp for name, ddp in ways.items() if not hasattr(ddp, "paceline_hook")}
    if rank == 0:
        results.put({"measured": measured, "predicted": predicted(options, folder, sizes, measured), "alone": alone, "in_training": [statistics.median(of) for of in travels],
                     "iterations": {name: statistics.median(times) for name, times in iterations.items()},
                     "buckets": {name: len(paceline_ddp.buckets_of(ddp)) for name, ddp in made.items()},
                     "differences": paceline_ddp.differences(ways["nearest caps"], plan), "plan": plan})
    distributed.barrier()
    results.close()
    results.join_thread()
    os._exit(0)


def cluster_words(options, folder):
    """Writes the cluster, a guess that what is measured corrects; returns the options that name it."""
    path = folder / "cluster.yaml"
    text = (HERE.parents[1] / "docs" / "examples" / "two-cores.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("ranks_per_node: 2", f"ranks_per_node: {options.ranks}"), encoding="utf-8")
    return ["--cluster", str(path), "--ranks", str(options.ranks)]


def make_plan(options, folder):
    subprocess.run([options.paceline, "predict", "--model", str(HERE / "network.yaml"), *cluster_words(options, folder), "--batch", str(options.batch),
                    "--precision", "fp32", "--strategy", "fused-ring", "--theta", options.theta, "--plan-out", str(folder / "plan.json")],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def predicted(options, folder, sizes, measured):
    """Time, low and high of an all-reduce of each size, seconds, at the pace of those that were measured."""
    told = ",".join(f"{size}B={1e6 * seconds:.3f}us" for size, seconds in measured.items())
    output = subprocess.run([options.paceline, "time", "ring", *cluster_words(options, folder), "--size", ",".join(f"{size}B" for size in sorted(set(sizes))),
                             "--measured", told, "--csv"], check=True, capture_output=True, text=True).stdout
    times = {int(row["size_bytes"]): [1e-6 * float(row[key]) for key in ("time_us", "time_low_us", "time_high_us")] for row in csv.DictReader(io.StringIO(output))}
    return [times[size] for size in sizes]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paceline", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--theta", default="4 MiB")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--iterations", type=int, default=12)
    options = parser.parse_args()
    options.paceline = str(pathlib.Path(options.paceline).resolve())
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=on_rank, args=(rank, options, pathlib.Path(folder), results)) for rank in range(options.ranks)]
        for rank in ranks:
            rank.start()
        found = results.get(timeout=HANG_S)
        for rank in ranks:
            rank.join(10)
            rank.kill()
    print(f"PyTorch {torch.__version__}, Gloo on loopback, {options.ranks} ranks, batch {options.batch} each, theta {options.theta}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    print("calibrated by " + ", ".join(f"{size} B: {1e3 * seconds:.3f} ms" for size, seconds in found["measured"].items()) + "\n")
    print("bucket  gradients     bytes   predicted ms (interval)     alone ms   off  in training ms")
    for number, (bucket, (value, low, high), alone, training) in enumerate(zip(found["plan"].buckets, found["predicted"], found["alone"], found["in_training"])):
        size = 4 * sum(gradient.elements for gradient in bucket)
        print(f"{number:6}  {len(bucket):9}  {size:8}  {1e3 * value:8.3f} ({1e3 * low:.3f} - {1e3 * high:.3f})  {1e3 * alone:11.3f}  {100 * (value / alone - 1):+4.0f} %  {1e3 * training:12.3f}")
    print("\niteration, median of", options.iterations)
    for name, seconds in found["iterations"].items():
        buckets = found["buckets"].get(name, len(found["plan"].buckets))
        print(f"  {name:22} {1e3 * seconds:8.2f} ms  {buckets} buckets")
    print("\nDDP's buckets with the nearest caps: " + ("those of the plan" if not found["differences"] else "; ".join(found["differences"])))


if __name__ == "__main__":
    main()
