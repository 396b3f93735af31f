#!/usr/bin/env python3
"""Holds the roofline of the device catalogue against one-rank throughputs that were published.

    roofline.py build/release/paceline

Every row of experiments/*/expected.csv that calibrates on one rank of a GPU is predicted without its
calibration, so that computation is the roofline and the fixed time of each layer. It prints the
published throughput over the predicted one, without the share that devices.yaml ships
(`roofline_efficiency`, `roofline_efficiency_mixed`), by cluster, network and precision; and for each
precision the median and the middle 90 %, where a row weighs the inverse root of its source's rows.
That is the share's figure. Each source is then left out in turn: what the others say, and how many
of its rows that interval holds. experiments/published/fitted.h says how the three fits that leave a
source out differ.

The last lines are of pairs of networks of one source, cluster and precision: the ratio of their two
ratios, which is what calibrating one network says of another (simulator/cost/compute_time.h, 3).
"""
import collections
import itertools
import json
import math
import pathlib
import shlex
import subprocess
import sys

TAIL = 0.05
CALIBRATION = ("--throughput", "--node-throughput", "--slowdown", "--profile")


def shipped(root):
    """The share of each precision that predictions were made with."""
    keys = {"fp32": "  roofline_efficiency:", "mixed": "  roofline_efficiency_mixed:"}
    lines = (root / "models/cluster/catalog/devices.yaml").read_text().splitlines()
    return {precision: float(line.split("value: ")[1].split(",")[0])
            for precision, key in keys.items() for line in lines if line.startswith(key)}


def without_calibration(words):
    kept = []
    words = iter(words)
    for word in words:
        if word in CALIBRATION:
            next(words)
        else:
            kept.append(word)
    return kept + ["--profile", "none"]


def option(words, name):
    return words[words.index(name) + 1]


def rows_of(paceline, root):
    shares = shipped(root)
    rows = []
    for path in sorted((root / "experiments").glob("*/expected.csv")):
        answer = subprocess.run([paceline, "reproduce", str(path.parent.relative_to(root)), "--json"],
                                capture_output=True, text=True, check=True, cwd=root)
        for row in json.loads(answer.stdout)["rows"]:
            words = shlex.split(row.get("command", ""))
            if row["kind"] != "training" or row["provenance"] != "calibrated":
                continue
            if option(words, "--ranks") != "1":
                continue
            words = without_calibration(words)
            one = subprocess.run([paceline, *words[1:], "--json"], capture_output=True, text=True,
                                 check=True, cwd=root)
            answer = json.loads(one.stdout)
            samples = int(option(words, "--batch"))
            if "--accumulate" in words:
                samples *= int(option(words, "--accumulate"))
            iteration = row["published"] / 1000 if row["unit"] == "ms" else samples / row["published"]
            precision = option(words, "--precision")
            rows.append({
                "source": path.parent.name,
                "cluster": pathlib.Path(option(words, "--cluster")).stem,
                "network": pathlib.Path(option(words, "--model")).stem,
                "precision": precision,
                "ratio": answer["strategies"][0]["iteration_s"] * shares[precision] / iteration})
    return rows


def weighted(rows):
    counts = collections.Counter(row["source"] for row in rows)
    return sorted((row["ratio"], 1 / math.sqrt(counts[row["source"]])) for row in rows)


def quantile(pairs, share):
    """The value up to which `share` of the weight lies."""
    whole = sum(weight for _, weight in pairs)
    sum_so_far = 0.0
    for value, weight in pairs:
        sum_so_far += weight
        if sum_so_far >= share * whole:
            return value
    return pairs[-1][0]


def figure(rows):
    pairs = weighted(rows)
    return [quantile(pairs, share) for share in (TAIL, 0.5, 1 - TAIL)]


def print_groups(rows, title, key):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[key(row)].append(row["ratio"])
    print(f"\n{title:34} {'rows':>5} {'least':>7} {'median':>7} {'most':>7}")
    for name, ratios in sorted(groups.items()):
        ratios.sort()
        print(f"{name:34} {len(ratios):5} {ratios[0]:7.2f} {ratios[len(ratios) // 2]:7.2f} "
              f"{ratios[-1]:7.2f}")


def print_pairs(rows):
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        groups[row["source"], row["cluster"], row["precision"]][row["network"]].append(row["ratio"])
    ratios = []
    for (source, _, _), networks in groups.items():
        for one, other in itertools.permutations(networks.values(), 2):
            ratios.append({"source": source, "ratio": one[0] / other[0]})
    low, _, high = figure(ratios)
    print(f"\none network by another: {len(ratios) // 2} pairs, the middle 90 % {low:.2f} to {high:.2f}")


def print_left_out(rows, precision):
    print(f"\n{precision + ', left out':34} {'rows':>5} {'inside':>7}  the others: median (middle 90 %)")
    held = 0
    for source in sorted({row["source"] for row in rows}):
        own = [row for row in rows if row["source"] == source]
        low, middle, high = figure([row for row in rows if row["source"] != source])
        inside = sum(low <= row["ratio"] <= high for row in own)
        held += inside
        print(f"{source:34} {len(own):5} {inside:7}  {middle:.2f} ({low:.2f} to {high:.2f})")
    low, middle, high = figure(rows)
    print(f"all {len(rows)} rows: median {middle:.2f}, the middle 90 % {low:.2f} to {high:.2f}; each "
          f"source by the others: {100 * held / len(rows):.0f} % inside")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    rows = rows_of(str(pathlib.Path(sys.argv[1]).resolve()), root)
    print_groups(rows, "cluster and precision", lambda r: f"{r['cluster']}, {r['precision']}")
    print_groups(rows, "network and precision", lambda r: f"{r['network']}, {r['precision']}")
    for precision in ("fp32", "mixed"):
        print_left_out([row for row in rows if row["precision"] == precision], precision)
    print_pairs(rows)


if __name__ == "__main__":
    main()
