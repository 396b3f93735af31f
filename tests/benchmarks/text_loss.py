#!/usr/bin/python3
"""The loss that gpt2-tiny reaches on a text, by paceline and by PyTorch, with one recipe and the same sequences.

    /usr/bin/python3 tests/benchmarks/text_loss.py build/release/paceline kjv.txt --epochs 0.2

Both train on the same windows of the text, in orders of their own, from weights of their own, and are tested on the same
windows. PyTorch computes in FP32 on one thread, which is its fastest on small matrices.
"""
import argparse
import json
import math
import pathlib
import subprocess

import torch
from training_throughput import gpt2

ELEMENTS, BATCH = 64, 12


def of_paceline(program, text, epochs):
    words = ["train", "--model", "gpt2-tiny", "--data", f"text:{text}", "--recipe", "text-tiny", "--epochs", str(epochs), "--json"]
    report = json.loads(subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout)
    return report["iterations"], report["epochs"][-1]["test_loss"]


def windows(data):
    count = (len(data) - 1) // ELEMENTS
    return data[: count * ELEMENTS].view(count, ELEMENTS), data[1 : count * ELEMENTS + 1].view(count, ELEMENTS)


def loss_of(net, tokens, labels):
    return torch.nn.functional.cross_entropy(net(tokens), labels.flatten())


def of_pytorch(text, epochs, steps):
    """The recipe text-tiny, from the weights that GPT-2 begins with."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    data = torch.tensor(list(text))
    tokens, labels = windows(data[: len(data) - len(data) // 10])
    net = gpt2(torch, 128, 4, 4, 256, ELEMENTS)
    for name, value in net.named_parameters():
        if value.dim() > 1:
            is_end = name.endswith(("proj.weight", "branch.3.weight"))
            torch.nn.init.normal_(value, std=0.02 / math.sqrt(8) if is_end else 0.02)
        elif name.endswith("bias"):
            torch.nn.init.zeros_(value)
    decayed = [value for value in net.parameters() if value.dim() > 1]
    others = [value for value in net.parameters() if value.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], betas=(0.9, 0.99))
    order = torch.randperm(len(tokens))
    whole = len(tokens) // BATCH
    for step in range(steps):
        epoch = step / whole
        fallen = 0.1 + 0.9 * (1 + math.cos(math.pi * (epoch - 0.05) / (epochs - 0.05))) / 2
        for group in optimizer.param_groups:
            group["lr"] = 0.001 * (0.01 + 0.99 * epoch / 0.05 if epoch < 0.05 else fallen)
        chosen = order[step * BATCH : (step + 1) * BATCH]
        optimizer.zero_grad(set_to_none=True)
        loss_of(net, tokens[chosen], labels[chosen]).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimizer.step()
    tokens, labels = windows(data[len(data) - len(data) // 10 :])
    with torch.no_grad():
        losses = [loss_of(net, a, b).item() * len(a) for a, b in zip(tokens.split(64), labels.split(64))]
    return sum(losses) / len(tokens)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("text")
    parser.add_argument("--epochs", type=float, default=0.2)
    options = parser.parse_args()
    steps, ours = of_paceline(options.program, options.text, options.epochs)
    theirs = of_pytorch(pathlib.Path(options.text).read_bytes(), options.epochs, steps)
    print(f"gpt2-tiny after {steps} steps of {BATCH} x {ELEMENTS} bytes: test loss {ours:.4f} by paceline, {theirs:.4f} by PyTorch {torch.__version__} (nats of a byte)")


if __name__ == "__main__":
    main()
