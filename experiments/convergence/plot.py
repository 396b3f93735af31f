#!/usr/bin/env python3
"""Draws the runs of `paceline reproduce convergence --results FILE`: test accuracy of each arm, every
seed a dot, mean and deviation beside it.

usage: plot.py RESULTS.jsonl PICTURE.png
"""

import json
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def main(results, picture):
    arms = {}
    with open(results) as file:
        for line in file:
            run = json.loads(line)
            arms.setdefault(run["arm"], []).append(100 * run["test_accuracy"])
    figure, axes = pyplot.subplots(figsize=(9, 0.5 * len(arms) + 1.5))
    for row, (arm, accuracies) in enumerate(arms.items()):
        axes.plot(accuracies, [row] * len(accuracies), "o", color="tab:blue", alpha=0.5, markersize=5)
        deviation = statistics.stdev(accuracies) if len(accuracies) > 1 else 0
        axes.errorbar(statistics.mean(accuracies), row + 0.2, xerr=deviation, fmt="s", color="black", markersize=4, capsize=3)
    axes.set_yticks(range(len(arms)), arms)
    axes.invert_yaxis()
    axes.set_xlabel("test accuracy after the last epoch, % (measured; dots: seeds; square: mean ± deviation)")
    axes.set_title("resnet-small on Fashion-MNIST, 2 ranks")
    axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
