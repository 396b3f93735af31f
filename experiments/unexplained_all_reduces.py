#!/usr/bin/env python3
"""Fits what no figure explains of single all-reduces (all_reduce_spread() in
simulator/iteration/all_reduce_time.cc) to published rows.

    unexplained_all_reduces.py build/release/paceline

Times every published all-reduce by its command, once with the all-reduces that its source was
calibrated on (--measured) and once without, and fits each time the standard deviation

    sd^2 = known^2 + (transfer share_of_bytes)^2 + (latency share_of_latency)^2

with, for rows on other ranks than were measured, as much again for each doubling of ranks between
them: transfer^2 = at the same ranks^2 + doublings (of a doubling)^2, and so for latency. It is that
of the logarithm of predicted over published time, by maximum likelihood over a grid. `known` is what
the row's interval holds of figures; errors are Student's t with 3 degrees of freedom, since some rows
are far off; a row weighs the inverse root of its source's rows. It prints the values, which are
those of the 90 % interval of that distribution over those of a normal one, and how many rows of each
source are inside when the other sources alone are fitted. experiments/published/fitted.h says how the
three fits that leave a source out differ.
"""
import collections
import itertools
import json
import math
import pathlib
import re
import shlex
import subprocess
import sys

NORMAL_REACH = 1.6449
STUDENT_REACH = 2.3534  # 95 % quantile of Student's t with 3 degrees of freedom
TRANSFERS = (0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.35)
LATENCIES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6)


def shipped(folder):
    """The values that the intervals were made with: measured, what a doubling of ranks adds, not measured."""
    text = (folder.parent / "simulator/iteration/all_reduce_time.cc").read_text()
    pairs = re.findall(r"AllReduceSpread (\w+)\{\.transfer = ([\d.]+), \.latency = ([\d.]+)\}", text)
    return {name: (float(transfer), float(latency)) for name, transfer, latency in pairs}


def grown(near, doubling, doublings):
    return tuple(math.sqrt(a**2 + doublings * b**2) for a, b in zip(near, doubling))


def deviation(known, shares, values):
    return math.sqrt(known + sum((share * value) ** 2 for share, value in zip(shares, values)))


def timed(paceline, words, folder):
    answer = subprocess.run([paceline, *words[1:], "--json"], capture_output=True, text=True,
                            check=True, cwd=folder.parent)
    return json.loads(answer.stdout)["sizes"][0]["times"][0]


def doublings_of(words):
    """Between the ranks of a row and the nearest that were measured."""
    ranks = int(words[words.index("--ranks") + 1])
    told = [int(one.split("@")[1]) for one in words[words.index("--measured") + 1].split(",")]
    return min(abs(math.log2(one / ranks)) for one in told)


def row_of(source, published_s, time, spread, doublings=0.0):
    latency = time["latency_s"] / time["time_s"]
    shares = (1 - latency, latency)
    end = time["time_low_s"] if published_s < time["time_s"] else time["time_high_s"]
    reach = abs(math.log(end / time["time_s"])) / NORMAL_REACH
    known = max(0.0, reach**2 - deviation(0, shares, spread) ** 2)
    return {"source": source, "error": math.log(time["time_s"] / published_s), "known": known,
            "shares": shares, "doublings": doublings}


def rows_of(paceline, folder):
    """Rows with what was measured, and without."""
    with_measured, without = [], []
    spreads = shipped(folder)
    for source in sorted(path.parent.name for path in folder.glob("*/all_reduce.csv")):
        answer = subprocess.run([paceline, "reproduce", source, "--json"], capture_output=True,
                                text=True, check=True, cwd=folder.parent)
        for row in json.loads(answer.stdout)["rows"]:
            if row["provenance"] != "predicted":
                continue
            words = shlex.split(row["command"])
            published_s = row["published"] * 1e-6
            if "--measured" in words:
                time = timed(paceline, words, folder)
                doublings = doublings_of(words)
                spread = grown(spreads["measured"], spreads["doubling"], doublings)
                with_measured.append(row_of(source, published_s, time, spread, doublings))
                at = words.index("--measured")
                words = words[:at] + words[at + 2:]
            without.append(row_of(source, published_s, timed(paceline, words, folder), spreads["unmeasured"]))
    return with_measured, without


def likelihood(rows, values, weights):
    """`values` gives those of a row."""
    total = 0.0
    for row in rows:
        s = deviation(row["known"], row["shares"], values(row))
        z = row["error"] / s
        total += weights[row["source"]] * (-math.log(s) - 2 * math.log(1 + z * z / 3))
    return total


def fitted(rows, weights, near=None):
    """The values of all rows; or what a doubling adds to those `near` the ranks that were measured."""
    def values_by(of_grid):
        return (lambda row: of_grid) if near is None else (lambda row: grown(near, of_grid, row["doublings"]))
    return max(itertools.product(TRANSFERS if near is None else LATENCIES, LATENCIES),
               key=lambda of_grid: likelihood(rows, values_by(of_grid), weights))


def inside(rows, values):
    scale = STUDENT_REACH / NORMAL_REACH
    return sum(abs(r["error"]) <= NORMAL_REACH * deviation(r["known"], r["shares"], [scale * v for v in values(r)])
               for r in rows)


def report(name, rows, near=None):
    """Prints the fit, and returns it."""
    counts = collections.Counter(row["source"] for row in rows)
    weights = {source: 1 / math.sqrt(count) for source, count in counts.items()}

    def values_by(fit):
        return lambda row: fit if near is None else grown(near, fit, row["doublings"])
    print(f"{name}\n{'left out':14} {'rows':>5} {'inside':>7}  fitted to the others")
    held = 0
    for source in sorted(counts):
        values = fitted([r for r in rows if r["source"] != source], weights, near)
        own = [r for r in rows if r["source"] == source]
        held += inside(own, values_by(values))
        print(f"{source:14} {len(own):5} {inside(own, values_by(values)):7}  {values}")
    print(f"inside, each source by a fit to the others: {100 * held / len(rows):.0f} %")
    values = fitted(rows, weights, near)
    scale = STUDENT_REACH / NORMAL_REACH
    print("all rows: " + ", ".join(f"{v} x {scale:.2f} = {v * scale:.3f}" for v in values) +
          f"; inside {100 * inside(rows, values_by(values)) / len(rows):.0f} %")
    errors = sorted(abs(math.expm1(-r["error"])) for r in rows)
    print(f"error of the speed: median {100 * errors[len(errors) // 2]:.1f} %\n")
    return values


def main():
    folder = pathlib.Path(__file__).resolve().parent
    with_measured, without = rows_of(str(pathlib.Path(sys.argv[1]).resolve()), folder)
    # Near ones are fitted to all rows, because the sources differ most there: two of the three would tell
    # values of which the third has 55 % inside.
    near = report("with all-reduces of its cluster that were measured", with_measured)
    report("on other ranks: what a doubling of ranks adds", [row for row in with_measured if row["doublings"] > 0], near)
    report("without", without)


if __name__ == "__main__":
    main()
