#!/usr/bin/env python3
"""Holds what kernels of transformers say of a training step against published steps.

    transformers.py build/release/paceline

Every row of llm-foundry and ibm-fsdp with a language model is predicted without calibration
(`reproduce SOURCE --points 0`). It prints the published throughput over the predicted one without the
share that devices.yaml ships (`reached` of `transformer`), by source and GPU, for sequences up to 4,096
tokens and for longer ones, whose attention is another question: the median and the middle 90 %. The
share of a GPU's generation is the median over rows, where a row weighs the inverse root of its
source's rows; each source is left out in turn.

The last line is of pairs of rows of one source and GPU with different networks, up to 4,096 tokens: the
ratio of their ratios, which is what calibrating one network says of another
(simulator/cost/compute_time.cc, least_of_transformers).
"""
import itertools
import json
import math
import pathlib
import re
import shlex
import subprocess
import sys

from roofline import TAIL, figure

SOURCES = ("llm-foundry", "ibm-fsdp")
GENERATION = {"a100": "Ampere", "a100-80g": "Ampere", "h100": "Hopper"}


def shipped(root):
    """The share by device that predictions were made with."""
    lines = (root / "models/cluster/catalog/devices.yaml").read_text().splitlines()
    found = (re.match(r"  ([\w-]+): .*reached: \{value: ([\d.]+)", line) for line in lines)
    return {match[1]: float(match[2]) for match in found if match}


def rows_of(paceline, root):
    shares = shipped(root)
    devices = {}
    for source in SOURCES:
        answer = subprocess.run([paceline, "reproduce", f"experiments/{source}", "--points", "0", "--json"],
                                capture_output=True, text=True, check=True, cwd=root)
        for row in json.loads(answer.stdout)["rows"]:
            words = shlex.split(row.get("command", ""))
            if row["provenance"] != "predicted" or not words:
                continue
            option = dict(zip(words, words[1:]))
            cluster = option["--cluster"]
            if cluster not in devices:
                shown = subprocess.run([paceline, "show", "cluster", cluster, "--json"],
                                       capture_output=True, text=True, check=True, cwd=root)
                devices[cluster] = json.loads(shown.stdout)["device"]
            device = devices[cluster]
            yield {"source": source, "device": device, "network": option["--model"],
                   "is_long": int(option["--sequence"]) > 4096,
                   "ratio": row["published"] / row["ours"] * shares[device]}


def line(what, rows):
    low, median, high = figure(rows)
    return f"{what:<44} {len(rows):4} rows  {median:.2f}  ({low:.2f} to {high:.2f})"


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    rows = list(rows_of(str(pathlib.Path(sys.argv[1]).resolve()), root))
    for is_long in (False, True):
        for source, device in sorted({(row["source"], row["device"]) for row in rows}):
            chosen = [row for row in rows if (row["source"], row["device"], row["is_long"])
                      == (source, device, is_long)]
            if chosen:
                print(line(f"{source}, {device}, {'longer' if is_long else 'to 4,096 tokens'}", chosen))
    short = [row for row in rows if not row["is_long"]]
    for generation in sorted(set(GENERATION.values())):
        of = [row for row in short if GENERATION[row["device"]] == generation]
        print(line(generation, of))
        for left_out in SOURCES:
            others = [row for row in of if row["source"] != left_out]
            low, _, high = figure(others)
            held = [row for row in of if row["source"] == left_out]
            inside = sum(low <= row["ratio"] <= high for row in held)
            print(line(f"  without {left_out}", others) + f"; holds {inside} of its {len(held)}")
    pairs = sorted(math.log(a["ratio"] / b["ratio"]) for a, b in itertools.permutations(short, 2)
                   if (a["source"], a["device"]) == (b["source"], b["device"])
                   and a["network"] != b["network"])
    low, high = (math.exp(pairs[int(share * (len(pairs) - 1))]) for share in (TAIL, 1 - TAIL))
    print(f"{len(pairs)} pairs of networks: {low:.2f} to {high:.2f}")


if __name__ == "__main__":
    main()
