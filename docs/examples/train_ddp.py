#!/usr/bin/env python3
"""Trains a small network in PyTorch's DistributedDataParallel with the buckets of a plan.

    PYTHONPATH=runtime/ddp /usr/bin/python3 docs/examples/train_ddp.py plan.json

The ranks are two processes of this machine, and gradients travel by Gloo over the loopback interface.
The network is that of experiments/ddp/network.yaml. Exit code 1 if DDP made other buckets than the plan has.
"""

import os
import sys
import tempfile

import torch

import paceline_ddp

RANKS = 2


def make_model():
    layers = torch.nn
    torch.manual_seed(1)
    return layers.Sequential(layers.Linear(784, 2048), layers.ReLU(), layers.Linear(2048, 2048), layers.ReLU(), layers.Linear(2048, 768),
                             layers.ReLU(), layers.Linear(768, 512), layers.ReLU(), layers.Linear(512, 10))


def on_rank(rank, path, folder):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    plan = paceline_ddp.read_plan(path)
    ddp = paceline_ddp.wrap(make_model(), plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    draw = torch.Generator().manual_seed(rank)
    images, labels = torch.randn(4, 784, generator=draw), torch.randint(0, 10, (4,), generator=draw)
    for _ in range(4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(ddp(images), labels).backward()
        optimizer.step()
    different = paceline_ddp.differences(ddp, plan)
    if rank == 0:
        print(f"{len(plan.buckets)} buckets in the plan; {len(different)} differences in DDP")
        print("\n".join(different), end="")
    torch.distributed.barrier()
    if different:
        sys.exit(1)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(on_rank, args=(sys.argv[1], folder), nprocs=RANKS)
