#!/usr/bin/env python3
"""The table of ResNet-50 on 1,024 P40 and its scaling curve, from Python.

    scaling.py [--out FOLDER]

Prints the table, and plots the curve and the fastest strategy's iteration to scaling.png.
"""

import argparse
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import paceline

NETWORK, CLUSTER, RANKS = "resnet50", "jizhi-p40", 1024
CURVES = ["ring", "fused-ring", "hierarchical", "hybrid", "halving-doubling"]


def print_table(prediction):
    print(f"{'strategy':<20} {'wire':<4} {'iteration':>10} {'throughput':>18} {'efficiency':>10} {'exposed':>9}")
    for row in prediction.table:
        print(f"{row['name']:<20} {row['wire_type']:<4} {paceline.seconds_text(row['iteration_s']):>10} "
              f"{row['throughput_per_s']:>8.0f} samples/s {100 * row['efficiency']:>8.1f} % "
              f"{paceline.seconds_text(row['exposed_communication_s']):>9}")
    best = prediction.best
    print(f"the shortest iteration: {best.name}, {paceline.seconds_text(best.iteration_s)} "
          f"({paceline.seconds_text(best.iteration_low_s)} to {paceline.seconds_text(best.iteration_high_s)})")


def plot_curves(axes, scaling):
    for strategy in CURVES:
        curve = scaling.curve(strategy)
        axes.plot(curve["ranks"], 100 * curve["efficiency"], marker="o", markersize=3, label=strategy)
    axes.set_xscale("log", base=2)
    axes.set_xticks(scaling.ranks, [str(ranks) for ranks in scaling.ranks])
    axes.set(xlabel="ranks", ylabel="scaling efficiency (%)", ylim=(0, 105),
             title=f"{NETWORK} on {CLUSTER}, predicted")
    axes.legend()


def plot_timeline(axes, timeline):
    events = timeline.events
    tracks = sorted(set(zip(events["resource"], events["stream"])))
    for number, task in enumerate(dict.fromkeys(events["task"])):
        for height, (resource, stream) in enumerate(tracks):
            track = events[(events["task"] == task) & (events["resource"] == resource) & (events["stream"] == stream)]
            if len(track):
                axes.broken_barh(list(zip(1e3 * track["start_s"], 1e3 * track["duration_s"])), (height - 0.4, 0.8),
                                 color=f"C{number}", label=task)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=4)
    axes.set_yticks(range(len(tracks)), [f"{resource} {stream}" for resource, stream in tracks])
    axes.set(xlabel="time (ms)", title=f"two iterations of {timeline.strategy}, predicted")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    out = parser.parse_args().out
    prediction = paceline.predict(NETWORK, CLUSTER, RANKS)
    print_table(prediction)
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 9), layout="constrained")
    plot_curves(above, paceline.scale(NETWORK, CLUSTER, "8-1024", strategy=CURVES))
    plot_timeline(below, prediction["hybrid"].timeline())
    figure.savefig(out / "scaling.png", dpi=120)


if __name__ == "__main__":
    main()
