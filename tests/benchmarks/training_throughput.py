#!/usr/bin/python3
"""Training throughput of paceline's runtime beside PyTorch's, on this machine, in one run.

    /usr/bin/python3 tests/benchmarks/training_throughput.py build/release/tests/benchmarks/training_throughput

A step is a forward and a backward pass (ours with set_weights) of one batch of the same network.
Steps of both sides take turns; the figures are medians. PyTorch runs as it is and channels-last,
and the better counts; its BF16 is autocast. Without PyTorch (python3-torch) only ours is printed.
The ratio of CPU time is what a busy machine distorts least, with one thread: threads that wait for
each other count as busy.
"""
import argparse
import statistics
import subprocess
import time

CASES = [("resnet50", 16), ("resnet-small", 64)]
TYPES = ["fp32", "bf16"]


def resnet(torch, name):
    nn = torch.nn

    def convolution(inputs, channels, kernel, stride):
        return [nn.Conv2d(inputs, channels, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(channels)]

    class Block(nn.Module):
        def __init__(self, inputs, outputs, branch, stride, projects):
            super().__init__()
            self.branch = nn.Sequential(*branch)
            self.shortcut = nn.Sequential(*convolution(inputs, outputs, 1, stride)) if projects else nn.Identity()

        def forward(self, x):
            return nn.functional.relu(self.branch(x) + self.shortcut(x), inplace=True)

    relu = lambda: nn.ReLU(inplace=True)
    if name == "resnet50":
        layers = convolution(3, 64, 7, 2) + [relu(), nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            width = 64 << stage
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                branch = (convolution(channels, width, 1, 1) + [relu()] + convolution(width, width, 3, stride)
                          + [relu()] + convolution(width, 4 * width, 1, 1))
                layers.append(Block(channels, 4 * width, branch, stride, block == 0))
                channels = 4 * width
        classes, shape = 1000, (3, 224, 224)
    else:
        layers = convolution(1, 16, 3, 1) + [relu()]
        channels = 16
        for stage in range(3):
            width = 16 << stage
            for block in range(2):
                projects = stage > 0 and block == 0
                stride = 2 if projects else 1
                branch = convolution(channels, width, 3, stride) + [relu()] + convolution(width, width, 3, 1)
                layers.append(Block(channels, width, branch, stride, projects))
                channels = width
        classes, shape = 10, (1, 28, 28)
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
    return nn.Sequential(*layers).train(), classes, shape


class Peer:
    """PyTorch in this process."""

    def __init__(self, torch, name, batch, number_type, channels_last):
        torch.manual_seed(0)
        self.torch = torch
        self.net, classes, shape = resnet(torch, name)
        self.images = torch.randn(batch, *shape)
        if channels_last:
            self.net = self.net.to(memory_format=torch.channels_last)
            self.images = self.images.contiguous(memory_format=torch.channels_last)
        self.labels = torch.arange(batch) % classes
        self.bf16 = number_type == "bf16"
        self.loss = torch.nn.CrossEntropyLoss()

    def step(self):
        start, cpu = time.perf_counter(), time.process_time()
        self.net.zero_grad(set_to_none=True)
        with self.torch.autocast("cpu", self.torch.bfloat16, enabled=self.bf16):
            logits = self.net(self.images)
        self.loss(logits.float(), self.labels).backward()
        return time.perf_counter() - start, time.process_time() - cpu


class Ours:
    """The C++ program, which takes a step for each line."""

    def __init__(self, program, name, batch, threads, number_type):
        self.process = subprocess.Popen([program, name, str(batch), str(threads), number_type], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def step(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        return tuple(float(field) for field in self.process.stdout.readline().split())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(torch, options, name, batch, number_type):
    """(images/s, images per CPU second) of ours, then of PyTorch's ways."""
    ours = Ours(options.program, name, batch, options.threads, number_type)
    peers = [] if torch is None else [Peer(torch, name, batch, number_type, last) for last in (False, True)]
    sides = [ours] + peers
    for side in sides:
        side.step()
        side.step()
    times = [[] for _ in sides]
    for _ in range(options.repetitions * (4 if name == "resnet-small" else 1)):
        for side, taken in zip(sides, times):
            taken.append(side.step())
    ours.end()
    return [tuple(batch / statistics.median(clock) for clock in zip(*taken)) for taken in times]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--networks", nargs="*", default=[name for name, _ in CASES])
    options = parser.parse_args()
    try:
        import torch
        torch.set_num_threads(options.threads)
    except ImportError:
        torch = None
        print("PyTorch is not installed (python3-torch): no ratios")
    print(f"images/s of forward and backward, {options.threads} threads, medians of steps that take turns")
    print(f"{'network':14}{'batch':>6}{'type':>6}{'paceline':>10}{'PyTorch':>10}{'ratio':>7}{'CPU ratio':>11}   (PyTorch NCHW, channels-last)")
    for name, batch in CASES:
        for number_type in TYPES if name in options.networks else []:
            ours, *peers = measure(torch, options, name, batch, number_type)
            line = f"{name:14}{batch:6}{number_type:>6}{ours[0]:10.1f}"
            if peers:
                wall, cpu = (max(speed) for speed in zip(*peers))
                detail = ", ".join(f"{peer[0]:.1f}" for peer in peers)
                line += f"{wall:10.1f}{ours[0] / wall:7.2f}{ours[1] / cpu:11.2f}   ({detail})"
            print(line, flush=True)


main()
