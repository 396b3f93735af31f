"""Writes the traces of tests/golden/imports/pytorch: real ones, of three training steps of docs/examples/tiny-net.yaml.

python3 make_pytorch_traces.py FOLDER, with Debian's python3-torch (1.13.1, built without Kineto). Times differ from run to run.
"""

import pathlib
import sys

import torch
from torch.autograd.profiler import record_function
from torch.nn import functional


class TinyNet(torch.nn.Module):
    def __init__(self, named):
        super().__init__()
        self.conv1, self.bn1 = torch.nn.Conv2d(3, 32, 3, padding=1, bias=False), torch.nn.BatchNorm2d(32)
        self.conv2, self.bn2 = torch.nn.Conv2d(32, 32, 3, padding=1, bias=False), torch.nn.BatchNorm2d(32)
        self.fc, self.named = torch.nn.Linear(32, 10), named

    def run(self, name, function, *values):
        if not self.named:
            return function(*values)
        with record_function(name):
            return function(*values)

    def forward(self, x, y):
        a = self.run("relu1", functional.relu, self.run("bn1", self.bn1, self.run("conv1", self.conv1, x)))
        b = self.run("bn2", self.bn2, self.run("conv2", self.conv2, a))
        c = self.run("relu2", functional.relu, self.run("sum", torch.add, b, a))
        d = self.run("pool", functional.adaptive_avg_pool2d, c, 1)
        return self.run("loss", functional.cross_entropy, self.run("fc", self.fc, torch.flatten(d, 1)), y)


class TinyEncoder(torch.nn.Module):
    """docs/examples/tiny-encoder.yaml: tokens with positions, one layer of an encoder, and a head."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(50, 32), torch.nn.Embedding(16, 32)
        self.encoder = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
        self.norm, self.head = torch.nn.LayerNorm(32), torch.nn.Linear(32, 50)

    def forward(self, x):
        return self.head(self.norm(self.encoder(self.tokens(x) + self.positions(torch.arange(16)))))


def trace_encoder(path):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = TinyEncoder()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, foreach=True)
    x, y = torch.randint(0, 50, (4, 16)), torch.randint(0, 50, (4 * 16,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(network(x).flatten(0, 1), y).backward()
        optimizer.step()

    for _ in range(5):
        step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                schedule=torch.profiler.schedule(wait=0, warmup=1, active=2),
                                on_trace_ready=lambda profile: profile.export_chrome_trace(path)) as profile:
        for _ in range(3):
            step()
            profile.step()


def trace(path, named=False, scheduled=False, legacy=False):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = TinyNet(named)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))

    def step():
        optimizer.zero_grad()
        network(x, y).backward()
        optimizer.step()

    for _ in range(5):
        step()
    if scheduled:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
                                    schedule=torch.profiler.schedule(wait=0, warmup=1, active=3),
                                    on_trace_ready=lambda profile: profile.export_chrome_trace(path)) as profile:
            for _ in range(4):
                step()
                profile.step()
        return
    with torch.autograd.profiler.profile(record_shapes=True, use_kineto=not legacy) as profile:
        for _ in range(3):
            step()
    profile.export_chrome_trace(path)


folder = pathlib.Path(sys.argv[1])
trace(str(folder / "1.13-profiler-schedule.json"), scheduled=True)
trace(str(folder / "1.13-autograd-profiler.json"))
trace(str(folder / "1.13-autograd-profiler-legacy-named.json"), named=True, legacy=True)
trace_encoder(str(folder / "1.13-transformer.json"))
