#!/usr/bin/env python3
"""Fits what no effect explains (models/cluster/catalog/effects.yaml) to published rows.

    unexplained.py build/release/paceline

Predicts every source by `paceline reproduce SOURCE --json`, and fits the standard deviation

    sd^2 = known^2 + base^2 + doubling^2 log2(ranks / calibrated ranks) + exposed^2 share^2

of the logarithm of predicted over published speed, by maximum likelihood over a grid. `known` is what
the row's interval holds of figures and effects; errors are Student's t with 3 degrees of freedom,
since some rows are far off; a row weighs the inverse root of its source's rows. It prints the
values for effects.yaml, which are those of the 90 % interval of that distribution over those of a
normal one, and how many rows of each source are inside when the other sources alone are fitted.
"""
import collections
import itertools
import json
import math
import pathlib
import shlex
import subprocess
import sys

NORMAL_REACH = 1.6449
STUDENT_REACH = 2.3534  # 95 % quantile of Student's t with 3 degrees of freedom
BASES = (0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08)
DOUBLINGS = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1)
EXPOSED = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
# Sources of single all-reduces.
NOT_TRAINING = {"nccl-tests", "deepbench", "osu-10gbe"}


def option(words, name):
    return words[words.index(name) + 1]


def shipped(folder):
    """The values that the intervals were made with, from effects.yaml."""
    values = []
    for line in (folder.parent / "models/cluster/catalog/effects.yaml").read_text().splitlines():
        if line.startswith("  unexplained"):
            values.append(float(line.split("value: ")[1].split(",")[0]))
    return values


def rows_of(paceline, folder):
    base, doubling, exposed = shipped(folder)
    rows = []
    for path in sorted(folder.glob("*/expected.csv")):
        source = path.parent.name
        if source in NOT_TRAINING:
            continue
        answer = subprocess.run([paceline, "reproduce", source, "--json"], capture_output=True,
                                text=True, check=True)
        training = [r for r in json.loads(answer.stdout)["rows"] if r["kind"] == "training"]
        calibrated = collections.defaultdict(int)
        for row in training:
            row["ranks"] = int(option(shlex.split(row["command"]), "--ranks"))
            if row["provenance"] == "calibrated":
                calibrated[row["series"]] = max(calibrated[row["series"]], row["ranks"])
        for row in training:
            if row["provenance"] != "predicted":
                continue
            words = shlex.split(row["command"])
            one = subprocess.run([paceline, *words[1:], "--json"], capture_output=True, text=True,
                                 check=True, cwd=folder.parent)
            strategy = json.loads(one.stdout)["strategies"][0]
            share = strategy["exposed_communication_s"] / strategy["iteration_s"]
            doublings = math.log2(max(1, row["ranks"] / (calibrated[row["series"]] or 1)))
            low, high = sorted((row["low"], row["high"]))
            # Figures that are better when larger are too fast when ours is above what was published.
            is_below = row["published"] < row["ours"]
            end = low if is_below else high
            reach = abs(math.log(max(end, 1e-12) / row["ours"])) / NORMAL_REACH
            unexplained = base**2 + doubling**2 * doublings + (exposed * share) ** 2
            rows.append({"source": source, "error": math.log1p(row["speed_error"]),
                         "known": max(0.0, reach**2 - unexplained), "doublings": doublings,
                         "share": share})
    return rows


def deviation(row, values):
    base, doubling, exposed = values
    return math.sqrt(row["known"] + base**2 + doubling**2 * row["doublings"] +
                     (exposed * row["share"]) ** 2)


def likelihood(rows, values, weights):
    total = 0.0
    for row in rows:
        s = deviation(row, values)
        z = row["error"] / s
        total += weights[row["source"]] * (-math.log(s) - 2 * math.log(1 + z * z / 3))
    return total


def fitted(rows, weights):
    return max(itertools.product(BASES, DOUBLINGS, EXPOSED),
               key=lambda values: likelihood(rows, values, weights))


def inside(rows, values):
    scaled = [STUDENT_REACH / NORMAL_REACH * v for v in values]
    return sum(abs(r["error"]) <= NORMAL_REACH * deviation(r, scaled) for r in rows)


def main():
    folder = pathlib.Path(__file__).resolve().parent
    rows = rows_of(str(pathlib.Path(sys.argv[1]).resolve()), folder)
    counts = collections.Counter(row["source"] for row in rows)
    weights = {source: 1 / math.sqrt(count) for source, count in counts.items()}
    held = 0
    print(f"{'left out':26} {'rows':>5} {'inside':>7}  fitted to the others")
    for source in sorted(counts):
        others = [r for r in rows if r["source"] != source]
        own = [r for r in rows if r["source"] == source]
        values = fitted(others, weights)
        held += inside(own, values)
        print(f"{source:26} {len(own):5} {inside(own, values):7}  {values}")
    print(f"inside, each source by a fit to the others: {100 * held / len(rows):.0f} %")
    values = fitted(rows, weights)
    scale = STUDENT_REACH / NORMAL_REACH
    print("all rows: " + ", ".join(f"{v} x {scale:.2f} = {v * scale:.3f}" for v in values) +
          f"; inside {100 * inside(rows, values) / len(rows):.0f} %")


if __name__ == "__main__":
    main()
