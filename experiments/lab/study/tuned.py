#!/usr/bin/env python3
"""The tuned plan in the lab, against the best strategies and against the defaults of Horovod and DDP.

    tuned.py run  [--only PATTERN] [--minutes N]     tune, predict, replay; goes on where it stopped
    tuned.py report                                  gains, measured beside predicted
    tuned.py list                                    the cells

A cell is a cluster, a network and a wire type. Half of the clusters are of the designed study, whose
profiles are taken; the other half are drawn by a seed, and calibrated here. In each cell these are run, each
by paceline replay with synthetic compute:

  tuned                the plan of paceline tune
  best-N               the strategies that predict puts first, of all that the runtime runs
  horovod              its buckets, every 5 ms, without what its ranks agree on before
  ddp                  PyTorch's buckets of 25 MiB, the first of 1 MiB, around a ring

Networks are scaled down as in the study, and so are the thresholds of Horovod and DDP, with which they
make the buckets of the whole network. A line of results-tuned.jsonl is a run of a cell, with the lab's report; those
that the lab calls disturbed are measured again, --again times at most, and left out of the report.
"""
import argparse
import collections
import fnmatch
import json
import pathlib
import random as randomness
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import study
from report import measured

ITERATIONS = 5
BEST = 3  # strategies of predict's table that are run
SEED = 19
WITHIN = 0.02  # a tuned plan this close to the best of the others is as good
HOROVOD_THETA = 64 * 2**20
PLACES = 10  # of each half
CALIBRATION_SECONDS = 20


def cells_of_study():
    """Clusters of the designed study, drawn by the seed, each with two of the networks."""
    random = randomness.Random(SEED)
    places = [place for place in study.designed_places() if place.hosts in (4, 6, 8)]
    for place in sorted(random.sample(places, PLACES), key=lambda place: place.name):
        yield place, study.HERE / "profiles", jobs(random)


def cells_of_seed():
    random = randomness.Random(SEED)
    known = {place.name for place in study.designed_places()}
    places = {}
    while len(places) < PLACES:
        place = study.drawn_place(random)
        if 3 <= place.hosts <= 8 and place.name not in known:
            places.setdefault(place, jobs(random))
    for place, of_place in places.items():
        yield place, study.HERE / f"profiles-seed{SEED}", of_place


def jobs(random):
    return [(model, random.choice(("fp32", "fp16"))) for model in random.sample(sorted(study.BATCH), 2)]


def all_cells():
    for kind, cells in (("study", cells_of_study()), ("seed", cells_of_seed())):
        for place, profiles, of_place in cells:
            for model, wire in of_place:
                yield f"{place.name}/{model}-{wire}", kind, place, profiles, model, wire


class Cell:
    """The commands of a cell. Files are written to `folder`."""

    def __init__(self, options, place, profiles, model, wire, folder):
        self.lab = study.Lab(options)
        self.lab.study = study.Study({place: []}, options.results, profiles)
        self.place, self.model, self.wire, self.folder = place, model, wire, folder
        self.scale = study.scale(place, model)

    def job(self, scale=True):
        words = ["--model", self.model, "--cluster", self.lab.cluster_file(self.place), "--profile",
                 self.lab.study.profile_files(self.place)[0], "--precision", "fp32", "--batch", study.BATCH[self.model]]
        return words + (["--scale-gradients", self.scale] if scale else [])

    def command(self, name, *words, scale=True):
        return study.run([self.lab.paceline, name, *self.job(scale), "--wire", self.wire, "--ranks",
                          self.place.hosts, *words])

    def tuned_plan(self):
        plan = self.folder / "tuned.json"
        start = time.monotonic()
        self.command("tune", "--exact-compute", "--plan-out", plan)
        return plan, time.monotonic() - start

    def best_strategies(self):
        table = json.loads(self.command("predict", "--exact-compute", "--json"))["strategies"]
        rows = [row for row in table if row["name"] not in ("nccl", "open-mpi")]
        return [row["name"] for row in sorted(rows, key=lambda row: row["iteration_s"])[:BEST]]

    def ddp_plan(self):
        """DDP's buckets of the whole network, with the elements of the scaled one."""
        whole, scaled = self.folder / "whole.json", self.folder / "ddp.json"
        self.command("predict", "--strategy", "ddp-ring", "--plan-out", whole, scale=False)
        self.command("predict", "--strategy", "ring", "--plan-out", scaled)
        plan = json.loads(scaled.read_text())
        gradients = [gradient for bucket in plan["buckets"] for gradient in bucket["gradients"]]
        plan["strategy"] = "ddp-ring"
        plan["buckets"] = []
        for bucket in json.loads(whole.read_text())["buckets"]:
            count = len(bucket["gradients"])
            plan["buckets"].append({"all_reduce": 0, "gradients": gradients[:count]})
            gradients = gradients[count:]
        scaled.write_text(json.dumps(plan))
        return scaled

    def replay(self, *words):
        """The rows of a replay, and the lab's report."""
        output, figures = self.lab.run(self.place, ["replay", *self.job(), *words, "--iterations", ITERATIONS, "--json"])
        return json.loads(output)["strategies"], figures

    def entries(self):
        """Measures everything that a cell compares. A name, a row and the lab's report of each."""
        plan, seconds = self.tuned_plan()
        (row,), figures = self.replay("--plan", plan)
        yield "tuned", {**row, "tune_s": seconds}, figures
        wire = ("--wire", self.wire)
        theta = HOROVOD_THETA * self.scale * (0.5 if self.wire == "fp16" else 1)
        (row,), figures = self.replay(*wire, "--strategy", "horovod", "--theta", f"{theta:.0f} B")
        yield "horovod", row, figures
        (row,), figures = self.replay("--plan", self.ddp_plan())
        yield "ddp", row, figures
        rows, figures = self.replay(*wire, "--strategy", ",".join(self.best_strategies()))
        for place, row in enumerate(rows, 1):
            yield f"best-{place}", row, figures


def is_disturbed(entry):
    return any(run["lab"]["disturbed"] for run in entry["runs"].values())


def run(options):
    results = study.read_results(options.results)
    end = time.monotonic() + 60 * options.minutes
    for name, kind, place, profiles, model, wire in all_cells():
        known = results.get(name)
        if not fnmatch.fnmatch(name, options.only) or (known and not (is_disturbed(known) and known["tries"] <= options.again)):
            continue
        if time.monotonic() > end:
            return study.say("stopped by --minutes; the same command goes on")
        profiles.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            cell = Cell(options, place, profiles, model, wire, pathlib.Path(folder))
            if not (cell.lab.study.is_calibrated(place) or cell.lab.calibrate(place, CALIBRATION_SECONDS)):
                continue
            try:
                runs = {key: {"strategy": row["name"], "measured": row["measured"], "predicted": study.predicted(row["predicted"]),
                              "buckets": row["buckets"], "lab": figures, **({"tune_s": row["tune_s"]} if "tune_s" in row else {})}
                        for key, row, figures in cell.entries()}
            except subprocess.CalledProcessError as error:
                study.say(f"{name}: exit code {error.returncode}")
                continue
        results[name] = {"cell": name, "kind": kind, "gradient_scale": cell.scale, "runs": runs,
                         "tries": (known["tries"] if known else 0) + 1,
                         "when": study.now()}
        study.write_results(options.results, results)
        study.say(line_of(results[name]))


def best_other(entry):
    return min((run for key, run in entry["runs"].items() if key != "tuned"), key=measured)


def gain(entry, other, time_of):
    """How many times as fast the tuned plan is as another."""
    return time_of(entry["runs"][other]) / time_of(entry["runs"]["tuned"])


def predicted_time(run):
    return run["predicted"]["iteration_s"]


def line_of(entry):
    tuned = entry["runs"]["tuned"]
    other = best_other(entry)
    return (f"{entry['cell']:<40} tuned {measured(tuned) * 1e3:7.1f} ms ({predicted_time(tuned) / measured(tuned) - 1:+.1%}), "
            f"best other {other['strategy']} {measured(other) / measured(tuned) - 1:+.1%}, "
            f"horovod {gain(entry, 'horovod', measured) - 1:+.1%}, ddp {gain(entry, 'ddp', measured) - 1:+.1%}"
            f"{' disturbed' if is_disturbed(entry) else ''}")


def report(options):
    results = study.read_results(options.results)
    entries = [entry for entry in results.values() if not is_disturbed(entry)]
    print(f"{len(entries)} cells of {len(list(all_cells()))}; {len(results) - len(entries)} were disturbed and are left out")
    if not entries:
        return
    print("\n| clusters | cells | never slower by more than 2 % | worst | gain over the best other | over horovod | predicted | over ddp | predicted |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    groups = collections.OrderedDict([("of the study", "study"), ("drawn by a seed", "seed"), ("all", None)])
    for title, kind in groups.items():
        group = [entry for entry in entries if kind in (None, entry["kind"])]
        if not group:
            continue
        against = [measured(best_other(entry)) / measured(entry["runs"]["tuned"]) - 1 for entry in group]
        mean = lambda other, time_of: statistics.mean(gain(entry, other, time_of) - 1 for entry in group)
        as_good = sum(value >= -WITHIN for value in against)
        print(f"| {title} | {len(group)} | {as_good} | {min(against):+.1%} | {statistics.mean(against):+.1%} | "
              f"{mean('horovod', measured):+.1%} | {mean('horovod', predicted_time):+.1%} | "
              f"{mean('ddp', measured):+.1%} | {mean('ddp', predicted_time):+.1%} |")
    errors = [abs(predicted_time(entry["runs"]["tuned"]) / measured(entry["runs"]["tuned"]) - 1) for entry in entries]
    print(f"\ntuned plans: predicted against measured, median {statistics.median(errors):.1%}, worst {max(errors):.1%}\n")
    for entry in sorted(entries, key=lambda entry: entry["cell"]):
        print(line_of(entry))


def parser():
    root = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root.add_argument("verb", choices=["run", "report", "list"])
    study.add_running_options(root, "cells")
    root.add_argument("--results", type=pathlib.Path, default=study.HERE / "results-tuned.jsonl")
    return root


def main():
    options = parser().parse_args()
    options.study = study.designed_study()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # ends the lab, too
    if options.verb == "list":
        print("\n".join(name for name, *_ in all_cells()))
    else:
        {"run": run, "report": report}[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
