"""paceline train of a transformer on a text, and the same steps by PyTorch in float64."""

import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

from paceline import HANG_S, run

LICENCE = pathlib.Path("/usr/share/common-licenses/GPL-3")
ELEMENTS = 64
BATCH = 12
RECIPE = """recipe: steps
epochs: 6
batch_per_rank: 12
optimizer: {adamw: {beta1: 0.9, beta2: 0.99}, weight_decay: 0.1, clip_norm: 0.5}
learning_rate: {base: 0.001, linear_scaling: false, decay: {cosine: {to: 0.1}}}
"""


def checkpoint_arrays(path):
    """The arrays of a checkpoint by name (docs/formats.md)."""
    data = path.read_bytes()
    length = struct.unpack_from("<I", data, 12)[0]
    at = 32 + length
    arrays = {}
    for entry in json.loads(data[32:at])["arrays"]:
        count = entry["elements"]
        arrays[entry["name"]] = struct.unpack_from(f"<{count}f", data, at)
        at += 4 * count
    return arrays


class Text(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train(self, *words, model="gpt2-tiny", text=LICENCE):
        return run("train", "--model", model, "--data", f"text:{text}", *words, cwd=self.folder)

    def losses(self, path):
        events = [json.loads(line) for line in path.read_text().splitlines()]
        return [event["loss"] for event in events if event["event"] == "iteration"]

    def test_the_loss_falls(self):
        metrics = self.folder / "m.jsonl"
        result = self.train("--ranks", "2", "--stop-after", "58", "--epochs", "3", "--metrics", metrics)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("recipe text-tiny", result.stdout)
        self.assertRegex(result.stdout, r"loss [\d.]+, accuracy [\d.]+%, \d+ tokens/s")
        losses = self.losses(metrics)
        self.assertAlmostEqual(losses[0], math.log(256), delta=0.2)  # nothing is known of 256 bytes
        self.assertLess(losses[-1], 3.2)

    def test_ranks_and_shards_train_the_same(self):
        finals = []
        for words in (["--strategy", "fused-ring"], ["--strategy", "zero1"]):
            metrics = self.folder / f"{words[1]}.jsonl"
            result = self.train("--ranks", "2", "--threads", "1", "--stop-after", "5", "--metrics", metrics, *words)
            self.assertEqual(result.returncode, 0, result.stderr)
            finals.append(self.losses(metrics))
        for ours, other in zip(*finals):
            self.assertAlmostEqual(ours, other, delta=1e-5)

    def test_mixed_precision_trains(self):
        for storage in ("bf16", "fp16"):
            result = self.train("--ranks", "1", "--stop-after", "20", "--precision", "mixed", "--storage", storage, "--json")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_layers_are_measured(self):
        result = run("calibrate", "--model", "gpt2-tiny", "--batch", "2", "--time", "1s", "--out", "p.json", cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"layers of gpt2-tiny at batch 2: forward [\d.]+ ms, backward [\d.]+ ms in 46 layers")

    def test_what_does_not_fit_is_refused(self):
        short = self.folder / "short"
        short.write_text("too short")
        long = self.folder / "long"
        long.write_bytes(bytes(100_000))
        cases = [
            (self.train(text=short), "has 9 bytes, and sequences take 64"),
            (self.train(text=self.folder / "missing"), "missing"),
            (self.train(model="resnet-small"), "is text, but the network takes an image"),
            (self.train("--device", "cuda"), "--device"),
            (self.train(model="bert-base"), "not trained yet"),
            (self.train(model="mistral-7b"), "layer 'h0.attn' has a sliding window, which is not trained yet"),
            (self.train(model="llama-3.1-405b", text=long), "training llama-3.1-405b takes at least 6.494 TB on each rank, and the machine has"),
            (run("train", "--model", "gpt2-tiny", "--data", "fashion-mnist", cwd=self.folder), "the network takes"),
        ]
        for result, message in cases:
            self.assertEqual(result.returncode, 2, message + result.stdout)
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        recipe = self.folder / "r.yaml"
        recipe.write_text(RECIPE.replace("clip_norm", "nesterov: true, clip_norm"))
        result = self.train("--recipe", recipe)
        self.assertEqual(result.returncode, 2)
        self.assertIn("r.yaml:4", result.stderr)
        self.assertIn("nesterov stands beside adamw", result.stderr)

    def test_pytorch_takes_the_same_steps(self):
        """A training part of one batch: every step has all of it, in whatever order."""
        if subprocess.run(["/usr/bin/python3", "-c", "import torch"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no PyTorch")
        text = self.folder / "text"
        text.write_bytes(LICENCE.read_bytes()[: (BATCH * ELEMENTS + 1) * 10 // 9 + 1])
        recipe = self.folder / "r.yaml"
        recipe.write_text(RECIPE)
        for model in MODELS:
            with self.subTest(model):
                self.check_steps(model, recipe, text)

    def check_steps(self, model, recipe, text):
        for steps in (1, 6):
            result = self.train("--recipe", recipe, "--stop-after", str(steps), "--checkpoint", f"{model}-{steps}.checkpoint", "--metrics", f"{model}-{steps}.jsonl", "--ranks", "1", model=model, text=text)
            self.assertEqual(result.returncode, 0, result.stderr)
        start = self.folder / "start.json"
        start.write_text(json.dumps(checkpoint_arrays(self.folder / f"{model}-1.checkpoint")))
        done = subprocess.run(["/usr/bin/python3", __file__, model, str(start), str(text)], capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = json.loads(done.stdout)
        ours = self.losses(self.folder / f"{model}-6.jsonl")[1:]
        self.assertEqual(len(ours), len(theirs["losses"]))
        for a, b in zip(ours, theirs["losses"]):
            self.assertAlmostEqual(a, b, delta=2e-5)
        weights = checkpoint_arrays(self.folder / f"{model}-6.checkpoint")["weights"]
        self.assertEqual(len(weights), len(theirs["weights"]))
        worst = max(abs(a - b) for a, b in zip(weights, theirs["weights"]))
        self.assertLess(worst, 2e-5)  # a step changes a weight by up to 1e-3


def gpt2_tiny(torch):
    """The network as PyTorch's layers in float64, and its parameters in the order of our arrays."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(128), nn.LayerNorm(128)
            self.attention = nn.MultiheadAttention(128, 4, batch_first=True)
            self.fc, self.proj = nn.Linear(128, 512), nn.Linear(512, 128)

        def forward(self, x):
            later = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
            y = self.ln1(x)
            x = x + self.attention(y, y, y, attn_mask=later, need_weights=False)[0]
            return x + self.proj(nn.functional.gelu(self.fc(self.ln2(x))))

        def in_order(self):
            a = self.attention
            return [self.ln1.weight, self.ln1.bias, a.in_proj_weight, a.in_proj_bias, a.out_proj.weight, a.out_proj.bias,
                    self.ln2.weight, self.ln2.bias, self.fc.weight, self.fc.bias, self.proj.weight, self.proj.bias]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(256, 128), nn.Embedding(ELEMENTS, 128)
            self.blocks = nn.ModuleList(Block() for _ in range(4))
            self.norm = nn.LayerNorm(128)

        def forward(self, tokens):
            x = self.wte(tokens) + self.wpe.weight
            for block in self.blocks:
                x = block(x)
            return self.norm(x) @ self.wte.weight.T

        def in_order(self):
            tensors = [self.wte.weight, self.wpe.weight]
            for block in self.blocks:
                tensors += block.in_order()
            return [*tensors, self.norm.weight, self.norm.bias]

    return Model().double()


def llama_tiny(torch):
    """The same of llama-tiny, whose norms and rotations are written out: pairs of features are complex numbers."""
    nn = torch.nn
    heads, groups, width = 4, 2, 32

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(128))

        def forward(self, x):
            return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)

    def turned(x):
        pairs = width // 2
        angles = torch.outer(torch.arange(x.shape[-2]).double(), 10000.0 ** (-torch.arange(pairs).double() / pairs))
        made = torch.complex(x[..., :pairs], x[..., pairs:]) * torch.polar(torch.ones_like(angles), angles)
        return torch.cat((made.real, made.imag), -1)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = Norm(), Norm()
            self.qkv, self.out = nn.Linear(128, (heads + 2 * groups) * width, bias=False), nn.Linear(128, 128, bias=False)
            self.gate, self.up, self.down = nn.Linear(128, 344, bias=False), nn.Linear(128, 344, bias=False), nn.Linear(344, 128, bias=False)

        def forward(self, x):
            batch, elements, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).split((heads * width, groups * width, groups * width), -1)
            q, k, v = (part.view(batch, elements, -1, width).transpose(1, 2) for part in (q, k, v))
            k, v = (part.repeat_interleave(heads // groups, 1) for part in (k, v))
            later = torch.triu(torch.full((elements, elements), -math.inf, dtype=torch.float64), 1)
            shares = (turned(q) @ turned(k).transpose(-1, -2) / math.sqrt(width) + later).softmax(-1)
            x = x + self.out((shares @ v).transpose(1, 2).reshape(batch, elements, -1))
            y = self.norm2(x)
            return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))

        def in_order(self):
            return [part.weight for part in (self.norm1, self.qkv, self.out, self.norm2, self.gate, self.up, self.down)]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.logits = nn.Embedding(256, 128), nn.Linear(128, 256, bias=False)
            self.blocks = nn.ModuleList(Block() for _ in range(4))
            self.norm = Norm()

        def forward(self, tokens):
            x = self.tokens(tokens)
            for block in self.blocks:
                x = block(x)
            return self.logits(self.norm(x))

        def in_order(self):
            return [self.tokens.weight, *(t for block in self.blocks for t in block.in_order()), self.norm.weight, self.logits.weight]

    return Model().double()


MODELS = {"gpt2-tiny": gpt2_tiny, "llama-tiny": llama_tiny}


def steps_of_pytorch(model, start, text):
    """Goes on from a checkpoint after one step, and prints the losses and the last weights."""
    import torch

    model = MODELS[model](torch)
    tensors = model.in_order()[::-1]  # as gradients come

    def spread(name):
        flat = torch.tensor(start[name], dtype=torch.float64)
        return [part.view_as(t) for part, t in zip(flat.split([t.numel() for t in tensors]), tensors)]

    optimizer = torch.optim.AdamW(
        [{"params": [t for t in tensors if t.dim() > 1], "weight_decay": 0.1}, {"params": [t for t in tensors if t.dim() == 1], "weight_decay": 0.0}], betas=(0.9, 0.99))
    with torch.no_grad():
        for t, value in zip(tensors, spread("weights")):
            t.copy_(value)
    for t, mean, square in zip(tensors, spread("momentum"), spread("mean_square")):
        optimizer.state[t] = {"step": torch.tensor(1.0), "exp_avg": mean.clone(), "exp_avg_sq": square.clone()}
    data = torch.tensor(list(text[: BATCH * ELEMENTS + 1]))
    tokens, labels = data[:-1].view(BATCH, ELEMENTS), data[1:].view(BATCH, ELEMENTS)
    losses = []
    for step in range(1, 6):
        for group in optimizer.param_groups:
            group["lr"] = 0.001 * (0.1 + 0.9 * (1 + math.cos(math.pi * step / 6)) / 2)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tensors, 0.5)
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps({"losses": losses, "weights": torch.cat([t.detach().flatten() for t in tensors]).tolist()}))


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in MODELS:
        steps_of_pytorch(sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text()), pathlib.Path(sys.argv[3]).read_bytes())
    else:
        unittest.main()
