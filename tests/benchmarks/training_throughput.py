#!/usr/bin/python3
"""Training throughput of paceline's runtime beside PyTorch's, on this machine, in one run.

    /usr/bin/python3 tests/benchmarks/training_throughput.py build/release/tests/benchmarks/training_throughput

A step is the forward pass, the loss and the backward pass of one batch of the same network; ours
also casts the FP32 master weights to its working copies. There is no optimizer, no input and no
communication on either side. Steps of all sides take turns; the figures are medians. A sample of gpt2-tiny
is a sequence of 64 tokens.

PyTorch gets what serves it best, and the best of its ways counts:
  memory     malloc keeps its pages (MALLOC_... below), as a ResNet-50 step takes 400,000 page faults
             without; this script starts itself again so
  BLAS       OpenBLAS (libopenblas0-pthread), as Debian's PyTorch takes the reference BLAS otherwise
  layout     NCHW, and channels-last
  BF16       autocast, and a network and images cast to bfloat16, which spares it the FP32 weights

Without PyTorch (python3-torch) only ours is printed. The ratio of CPU time is what a busy machine
distorts least, with one thread: threads that wait for each other count as busy.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

MALLOC = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184", "MALLOC_TOP_PAD_": "268435456"}
OPENBLAS = pathlib.Path("/usr/lib/x86_64-linux-gnu/openblas-pthread")
CASES = [("resnet50", 16), ("resnet-small", 64), ("gpt2-tiny", 12)]
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


def gpt2(torch, features, heads, blocks, vocabulary, elements):
    """As nanoGPT has it for a PyTorch without scaled_dot_product_attention."""
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.proj = nn.Linear(features, 3 * features), nn.Linear(features, features)
            self.register_buffer("earlier", torch.tril(torch.ones(elements, elements, dtype=torch.bool)))

        def forward(self, x):
            count = x.shape[0]
            q, k, v = (part.view(count, elements, heads, -1).transpose(1, 2) for part in self.qkv(x).split(features, 2))
            scores = (q @ k.transpose(-2, -1)) * (features // heads) ** -0.5
            shares = functional.softmax(scores.masked_fill(~self.earlier, float("-inf")), dim=-1)
            return self.proj((shares @ v).transpose(1, 2).reshape(count, elements, features))

    class Residual(nn.Module):
        def __init__(self, branch):
            super().__init__()
            self.branch = branch

        def forward(self, x):
            return x + self.branch(x)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, features), nn.Embedding(elements, features)
            layers = []
            for _ in range(blocks):
                layers.append(Residual(nn.Sequential(nn.LayerNorm(features), Attention())))
                layers.append(Residual(nn.Sequential(nn.LayerNorm(features), nn.Linear(features, 4 * features), nn.GELU(),
                                                     nn.Linear(4 * features, features))))
            self.layers = nn.Sequential(*layers, nn.LayerNorm(features))

        def forward(self, tokens):
            return functional.linear(self.layers(self.wte(tokens) + self.wpe.weight), self.wte.weight).flatten(0, 1)

    return Model().train()


class Peer:
    """PyTorch in this process, in one of its ways."""

    def __init__(self, torch, name, batch, channels_last, bf16):
        torch.manual_seed(0)
        self.torch = torch
        self.way = "channels-last" if channels_last else "NCHW"
        self.way += {"none": "", "autocast": " autocast", "cast": " cast"}[bf16]
        if name == "gpt2-tiny":
            elements, classes = 64, 256
            self.net = gpt2(torch, 128, 4, 4, classes, elements)
            self.images = torch.randint(classes, (batch, elements))
            batch *= elements
        else:
            self.net, classes, shape = resnet(torch, name)
            self.images = torch.randn(batch, *shape)
        if bf16 == "cast":
            self.net = self.net.to(torch.bfloat16)
            if self.images.is_floating_point():
                self.images = self.images.to(torch.bfloat16)
        if channels_last:
            self.net = self.net.to(memory_format=torch.channels_last)
            self.images = self.images.contiguous(memory_format=torch.channels_last)
        self.labels = torch.arange(batch) % classes
        self.autocast = bf16 == "autocast"
        self.loss = torch.nn.CrossEntropyLoss()

    def step(self):
        start, cpu = time.perf_counter(), time.process_time()
        self.net.zero_grad(set_to_none=True)
        with self.torch.autocast("cpu", self.torch.bfloat16, enabled=self.autocast):
            logits = self.net(self.images)
        self.loss(logits.float(), self.labels).backward()
        return time.perf_counter() - start, time.process_time() - cpu


class Ours:
    """The C++ program, which takes a step for each line."""

    def __init__(self, program, name, batch, threads, number_type):
        environment = {name: value for name, value in os.environ.items() if name not in MALLOC}
        self.process = subprocess.Popen([program, name, str(batch), str(threads), number_type], text=True, env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def step(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        return tuple(float(field) for field in self.process.stdout.readline().split())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(torch, options, name, batch, number_type):
    """(name, samples/s, samples per CPU second) of ours, then of PyTorch's ways."""
    ours = Ours(options.program, name, batch, options.threads, number_type)
    ways = ["none"] if number_type == "fp32" else ["autocast", "cast"]
    peers = [Peer(torch, name, batch, last, bf16) for last in ((False,) if name == "gpt2-tiny" else (False, True)) for bf16 in ways] if torch else []
    sides = [ours] + peers
    for side in sides:
        side.step()
        side.step()
    times = [[] for _ in sides]
    for _ in range(options.repetitions * (1 if name == "resnet50" else 4)):
        for side, taken in zip(sides, times):
            taken.append(side.step())
    ours.end()
    return [(getattr(side, "way", "paceline"), *(batch / statistics.median(clock) for clock in zip(*taken)))
            for side, taken in zip(sides, times)]


def serve_the_peer():
    """Starts this script again with what PyTorch needs from its environment."""
    if not OPENBLAS.is_dir():
        sys.exit("OpenBLAS is missing, without which PyTorch is slow: apt-get install libopenblas0-pthread")
    wanted = dict(MALLOC, LD_LIBRARY_PATH=str(OPENBLAS))
    if all(os.environ.get(name) == value for name, value in wanted.items()):
        return
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})


def check_blas(torch):
    torch.randn(64, 64) @ torch.randn(64, 64)
    libraries = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
    if not any("openblas" in library for library in libraries):
        sys.exit("PyTorch runs without OpenBLAS, though it is installed: is this Debian's python3-torch?")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--networks", nargs="*", default=[name for name, _ in CASES])
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        torch = None
        print("PyTorch is not installed (python3-torch): no ratios")
    if torch is not None:
        serve_the_peer()
        check_blas(torch)
        torch.set_num_threads(options.threads)
    print(f"samples/s of forward, loss and backward (no optimizer, no input), {options.threads} threads; medians of steps that take turns")
    print("paceline: FP32 master weights cast to working copies in each step; PyTorch: the best of its ways, each in brackets")
    print(f"{'network':14}{'batch':>6}{'type':>6}{'paceline':>10}{'PyTorch':>10}{'ratio':>7}{'CPU ratio':>11}")
    for name, batch in CASES:
        for number_type in TYPES if name in options.networks else []:
            (_, speed, cpu_speed), *peers = measure(torch, options, name, batch, number_type)
            line = f"{name:14}{batch:6}{number_type:>6}{speed:10.1f}"
            if peers:
                best = max(peer[1] for peer in peers)
                best_cpu = max(peer[2] for peer in peers)
                detail = ", ".join(f"{way} {each:.1f}" for way, each, _ in peers)
                line += f"{best:10.1f}{speed / best:7.2f}{cpu_speed / best_cpu:11.2f}   ({detail})"
            print(line, flush=True)


if __name__ == "__main__":
    main()
