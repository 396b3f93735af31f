#!/usr/bin/env python3
"""Tuned plans in PyTorch's DDP over Gloo, on 2 to 4 hosts of the lab, against DDP's defaults and others.

    plans_in_lab.py run [--only PATTERN] [--minutes N]    calibrate, tune, train; goes on where it stopped
    plans_in_lab.py plans [--only PATTERN]                what would run, on clusters that are calibrated
    plans_in_lab.py report [--buckets]                    gains, measured beside predicted
    plans_in_lab.py list                                  the cells

A cell is a cluster of the lab and a network, scaled down as in the lab's studies. Layers sleep as long as
a device of the catalogue would compute; gradients travel by Gloo. On each cluster Gloo's all-reduce is
measured, `paceline calibrate import` fits it, and the links of the profile are those with which a ring is
this line. `paceline tune --robust --default` DDP's own plan `--all-reduce ring` makes the plan from
that, with as many streams as Gloo's process group has threads, and these run in turns:

  tuned         that plan; by DDP's caps where they make its buckets, else by the communication hook
  ddp           DDP's own buckets: 25 MiB, the first of 1 MiB, both scaled as the network is
  mg-wfbp       the plan of MG-WFBP, by the hook
  one-bucket    all gradients together, by DDP

A line of results.jsonl is a cell, with the lab's report of its run. Needs python3-torch of Debian
(/usr/bin/python3), and what the lab needs.
"""
import argparse
import fnmatch
import json
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lab" / "study"), str(HERE.parents[1] / "runtime" / "ddp")]

import study  # noqa: E402  (of the lab, whose helpers are taken)
from labnet import commands  # noqa: E402

import paceline_ddp  # noqa: E402

PYTHON = "/usr/bin/python3"  # Debian's, which has PyTorch
PLACES = [study.Place(hosts, mbit, latency) for hosts, mbit, latency in
          ((2, 50, 2), (2, 100, 1), (2, 250, 0.5), (3, 50, 1), (3, 100, 2), (3, 200, 0.2), (4, 50, 0.5), (4, 100, 1))]
SIZES = [1 << power for power in range(12, 22)]  # of all-reduces that calibrate, bytes
FIRST_CAP, OTHER_CAP = 1 << 20, 25 << 20         # DDP's
MEASURE_TURNS, MEASURE_IN_A_ROW = 5, 4
TURNS, IN_A_ROW = 7, 2  # of each way, which take turns; an iteration before those in a row is not counted
STREAMS = 2  # all-reduces that Gloo's process group has on their way at once (ProcessGroupGloo.hpp, Options::threads)
BATCHES = 3  # of the lab's studies in one, so that computation takes about as long as the gradients
WITHIN = 0.02
OTHERS = ("ddp", "mg-wfbp", "one-bucket")


def all_cells():
    models = sorted(study.BATCH)
    for number, place in enumerate(PLACES):
        for model in (models[number % 4], models[(number + 1 + number // 4) % 4]):
            yield f"{place.name}/{model}", place, model


class Cell:
    def __init__(self, options, place, model, folder):
        self.options, self.place, self.model, self.folder = options, place, model, folder
        self.paceline = str(options.build.resolve() / "paceline")
        self.scale = study.scale(place, model)
        self.profile = HERE / "profiles" / f"{place.name}.json"
        self.cluster = self.profile.with_suffix(".yaml")

    def on_ranks(self, verb, config):
        """What rank 0 printed, and the lab's report."""
        path = self.folder / f"{verb}.json"
        path.write_text(json.dumps(config))
        ended, figures = commands.run_in_lab(
            self.folder / "report.json",
            ["--quiet", "--time-limit", 300, "--wait-quiet", self.options.wait_quiet, "--export", "LAB_DIRECTORY", *self.place.options()],
            [PYTHON, HERE / "slept_ranks.py", verb, path], **study.TEXT)
        return json.loads(ended.stdout.strip().splitlines()[-1]), figures

    def calibrate(self):
        """Writes the cluster and its profile, with Gloo's all-reduce as it is measured here."""
        self.profile.parent.mkdir(exist_ok=True)
        study.run([sys.executable, study.LAB, "cluster", *self.place.options(), "--device", study.DEVICE, "--out", self.cluster])
        found, figures = self.on_ranks("measure", {"sizes": SIZES, "turns": MEASURE_TURNS, "in_a_row": MEASURE_IN_A_ROW})
        table = self.profile.with_suffix(".txt")
        table.write_text("# OSU MPI Allreduce Latency Test v7.3\n# Datatype: MPI_FLOAT.\n# Size   Avg Latency(us)\n" +
                         "".join(f"{size:<20} {1e6 * seconds:.2f}\n" for size, seconds in found["medians_s"].items() for size in [int(size)]))
        study.run([self.paceline, "calibrate", "import", table, "--format", "osu", "--ranks", self.place.hosts, "--cluster", self.cluster,
                   "--out", self.profile])
        profile = json.loads(self.profile.read_text())
        told = f"Gloo of PyTorch {found['pytorch']} on {platform.node()}, {study.now()}: medians of {MEASURE_TURNS * MEASURE_IN_A_ROW}"
        profile["name"], profile["origin"] = self.place.name, told
        profile["links"] = {"intra": {}, "nic": ring_links(profile["curves"], self.place.hosts, told)}
        self.profile.write_text(json.dumps(profile, indent=2) + "\n")
        self.profile.with_suffix(".report.json").write_text(json.dumps(figures) + "\n")

    def command(self, name, *words, scale=True):
        job = ["--model", self.model, "--cluster", self.cluster, "--profile", self.profile, "--precision", "fp32",
               "--batch", BATCHES * study.BATCH[self.model], "--ranks", self.place.hosts, "--exact-compute"]
        return study.run([self.paceline, name, *job, *(["--scale-gradients", self.scale] if scale else []), *words])

    def predicted(self, plan, streams=STREAMS, *words):
        """The row of the plan's buckets, with so many on their way at once."""
        document = json.loads(pathlib.Path(plan).read_text())
        plan = self.folder / "predicted.json"
        plan.write_text(json.dumps(document | {"streams": streams}))
        return json.loads(self.command("predict", "--plan", plan, "--json", *words))["strategies"][0]

    def predictions(self, plan):
        """Of an iteration: as stated, its interval, and with one bucket after the other."""
        row = self.predicted(plan)
        return {"value": row["iteration_s"], "low": row["iteration_low_s"], "high": row["iteration_high_s"],
                "in_order": self.predicted(plan, 1)["iteration_s"]}

    def bucket_times(self, plan, device):
        """Bytes of each bucket, and when it is ready and done."""
        timeline = self.folder / "buckets.json"
        self.predicted(plan, STREAMS, "--timeline", timeline)
        ends = {event["args"]["bucket"]: 1e-6 * (event["ts"] + event["dur"]) for event in json.loads(timeline.read_text())["traceEvents"]
                if event["ph"] == "X" and event["cat"] == "all-reduce" and event["args"]["iteration"] == 0}
        times, last = [], 0
        for number, bucket in enumerate(json.loads(pathlib.Path(plan).read_text())["buckets"]):
            last += len(bucket["gradients"])
            times.append({"bytes": 4 * sum(gradient["elements"] for gradient in bucket["gradients"]),
                          "predicted_ready_s": device["ready_s"][last - 1], "predicted_end_s": ends[number]})
        return times

    def device(self):
        """When the device has what, from the timeline of a prediction: keys of slept_ranks.py."""
        timeline, plan = self.folder / "timeline.json", self.folder / "each.json"
        self.command("predict", "--strategy", "ring", "--timeline", timeline, "--plan-out", plan)
        trace = json.loads(timeline.read_text())
        times = {}
        for event in trace["traceEvents"]:
            if event["ph"] == "X" and event["cat"] in ("forward", "backward", "update"):
                times.setdefault((event["cat"], event["args"]["index"]), event["dur"] * 1e-6)
        forward_s = sum(seconds for (kind, _), seconds in times.items() if kind == "forward")
        update_s = sum(seconds for (kind, _), seconds in times.items() if kind == "update")
        done, now = {}, forward_s
        for layer in sorted((index for kind, index in times if kind == "backward"), reverse=True):
            now += times["backward", layer]
            done[layer] = now
        about = trace["otherData"]["timelines"][0]
        gradients = [gradient for bucket in json.loads(plan.read_text())["buckets"] for gradient in bucket["gradients"]]
        return {"forward_s": forward_s, "computed_s": now, "update_s": update_s,
                "ready_s": [done[bucket["ready_after"]] for bucket in about["buckets"]],
                "elements": [gradient["elements"] for gradient in gradients]}

    def plan_with(self, name, counts):
        """A plan document whose buckets have so many gradients each, by a ring."""
        plan = json.loads((self.folder / "each.json").read_text())
        gradients = [gradient for bucket in plan["buckets"] for gradient in bucket["gradients"]]
        plan["strategy"], plan["streams"], plan["buckets"] = "tuned", STREAMS, []
        for count in counts:
            plan["buckets"].append({"all_reduce": 0, "gradients": gradients[:count]})
            gradients = gradients[count:]
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(plan))
        return path

    def ways(self, device):
        tuned, merged = self.folder / "tuned.json", self.folder / "mg-wfbp.json"
        self.command("predict", "--strategy", "mg-wfbp", "--plan-out", merged)
        sizes = [4 * elements for elements in device["elements"]]
        first, cap = FIRST_CAP * self.scale, OTHER_CAP * self.scale
        whole = sum(sizes)
        by_ddp = {"ddp": (int(first), int(cap)), "one-bucket": (whole, whole)}
        capped = [{"name": name, "by": "caps", "first": caps[0], "cap": caps[1], "plan": str(self.plan_with(name, paceline_ddp.assigned(sizes, caps)))}
                  for name, caps in by_ddp.items()]
        self.tuning = json.loads(self.command("tune", "--robust", "--default", capped[0]["plan"], "--all-reduce", "ring", "--streams", STREAMS,
                                              "--strategy", "ring,fused-ring", "--json", "--plan-out", tuned))
        way = {"name": "tuned", "by": "hook", "plan": str(tuned)}
        caps = paceline_ddp.nearest_caps(paceline_ddp.read_plan(tuned))
        if self.tuning["robust"]["keeps_default"]:
            way |= {"by": "caps", "first": capped[0]["first"], "cap": capped[0]["cap"]}
        elif caps.is_exact:
            way |= {"by": "caps", "first": caps.first, "cap": caps.others}
        return [way, {"name": "mg-wfbp", "by": "hook", "plan": str(merged)}] + capped

    def entry(self):
        device = self.device()
        ways = self.ways(device)
        predicted = {way["name"]: self.predictions(way["plan"]) for way in ways}
        found, figures = self.on_ranks("train", device | {"ways": ways, "turns": TURNS, "in_a_row": IN_A_ROW})
        # Only the hook tells when buckets travel.
        buckets = [bucket | {"measured_ready_s": ready, "measured_end_s": end}
                   for bucket, (ready, end) in zip(self.bucket_times(ways[0]["plan"], device), found["buckets"].get("tuned", []))]
        return {"gradient_scale": self.scale, "when": study.now(), "host": platform.node(), "pytorch": found["pytorch"], "in_a_row": IN_A_ROW,
                "predicted_s": predicted, "robust": self.tuning["robust"], "tuned_by": ways[0]["by"],
                "iterations_s": found["iterations_s"], "tuned_buckets": buckets,
                "differences": {name: lines for name, lines in found["differences"].items() if lines}, "lab": figures}


def ring_links(curves, ranks, told):
    """The latency and bandwidth of links with which the ring of `ranks` takes what the curve says.

    A ring takes 2 (p - 1) alpha + 2 (p - 1) / p n beta: the alpha of the first piece and the beta of the last.
    """
    pieces = next(curve for curve in curves if curve["kind"] == "all-reduce")["pieces"]
    alpha, beta = pieces[0]["alpha_s"], pieces[-1]["beta_s_per_byte"]
    steps = 2 * (ranks - 1)
    told = {"provenance": "calibrated", "source": f"the ring that is the fitted line of {told}"}
    return {"latency_s": {key: alpha[key] / steps for key in ("value", "low", "high")} | told,
            "bandwidth_bytes_per_s": {key: steps / ranks / beta[of] for key, of in (("value", "value"), ("low", "high"), ("high", "low"))} | told}


def median_s(entry, way):
    return statistics.median(entry["iterations_s"][way])


def measured_gain(entry, other):
    """By how much another way takes longer, in the median of the turns: in a turn all of them met about the same load."""
    row = entry["in_a_row"]
    turns = [[statistics.mean(times[begin:begin + row]) for begin in range(0, len(times), row)] for times in (entry["iterations_s"][way] for way in (other, "tuned"))]
    return statistics.median(times / tuned for times, tuned in zip(*turns)) - 1


def predicted_gain(entry, other):
    return predicted_s(entry, other) / predicted_s(entry, "tuned") - 1


def predicted_s(entry, way):
    return entry["predicted_s"][way]["value"]


def unhidden(entry, way):
    """The share of the latency that two buckets on their way hide from each other, and did not: 0 where an iteration
    took what is predicted, and 1 where it took as long as one bucket after the other would. None where that is no longer."""
    predicted = entry["predicted_s"][way]
    more_s = predicted["in_order"] - predicted["value"]
    return (median_s(entry, way) - predicted["value"]) / more_s if more_s > 1e-6 * predicted["value"] else None


def kept_or_taken(entry):
    by = {"caps": "by caps", "hook": "by the hook"}[entry["tuned_by"]]
    robust = entry["robust"]
    if robust is None:
        return f"as stated, {by}"
    return f"DDP's kept, {by}" if robust["keeps_default"] else "{} of {} buckets, {}, gains {:.1%} ({:.1%} to {:.1%})".format(
        robust["robust"]["name"], robust["robust"]["buckets"], by, *(robust["gain"][key] for key in ("value", "low", "high")))


def best_other(entry):
    return min(OTHERS, key=lambda way: measured_gain(entry, way))


def line_of(entry):
    other = best_other(entry)
    off = predicted_s(entry, "tuned") / median_s(entry, "tuned") - 1
    return (f"{entry['cell']:<28} tuned {1e3 * median_s(entry, 'tuned'):7.1f} ms ({off:+.1%} predicted), best other {other} {measured_gain(entry, other):+.1%} ({predicted_gain(entry, other):+.1%} predicted), "
            f"ddp {measured_gain(entry, 'ddp'):+.1%} ({predicted_gain(entry, 'ddp'):+.1%} predicted){' disturbed' if entry['lab']['disturbed'] else ''}; {kept_or_taken(entry)}")


def run(options):
    results = study.read_results(options.results)
    end = time.monotonic() + 60 * options.minutes
    for name, place, model in all_cells():
        known = results.get(name)
        if not fnmatch.fnmatch(name, options.only) or (known and not (known["lab"]["disturbed"] and known["tries"] <= options.again)):
            continue
        if time.monotonic() > end:
            return study.say("stopped by --minutes; the same command goes on")
        with tempfile.TemporaryDirectory() as folder:
            cell = Cell(options, place, model, pathlib.Path(folder))
            try:
                if not cell.profile.exists():
                    cell.calibrate()
                entry = cell.entry()
            except subprocess.CalledProcessError as error:
                study.say(f"{name}: exit code {error.returncode}")
                continue
            except (ValueError, IndexError, KeyError) as error:  # of what a rank printed that was ended
                study.say(f"{name}: {type(error).__name__} {error}")
                continue
        results[name] = {"cell": name, "tries": (known["tries"] if known else 0) + 1} | entry
        study.write_results(options.results, results)
        study.say(line_of(results[name]))


def plans(options):
    """What `run` would train, without a lab."""
    for name, place, model in all_cells():
        if not fnmatch.fnmatch(name, options.only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            cell = Cell(options, place, model, pathlib.Path(folder))
            if not cell.profile.exists():
                print(f"{name:<28} is not calibrated")
                continue
            ways = cell.ways(cell.device())
            entry = {"tuned_by": ways[0]["by"], "robust": cell.tuning["robust"]}
            times = {way["name"]: cell.predictions(way["plan"]) for way in ways}
            print(f"{name:<28} {kept_or_taken(entry)}; " + ", ".join(
                f"{way} {1e3 * its['value']:.1f} to {1e3 * its['in_order']:.1f} ms" for way, its in times.items()), flush=True)


def report(options):
    entries = sorted(study.read_results(options.results).values(), key=lambda entry: entry["cell"])
    if not entries:
        return print("no cell has run")
    for entry in entries:
        print(line_of(entry))
        for bucket in entry["tuned_buckets"] if options.buckets else ():
            print("    {bytes:9.0f} B  ready {0:7.1f} ms predicted, {1:7.1f} measured; done {2:7.1f} predicted, {3:7.1f} measured".format(
                *(1e3 * bucket[key] for key in ("predicted_ready_s", "measured_ready_s", "predicted_end_s", "measured_end_s")), bytes=bucket["bytes"]))
        shares = {way: unhidden(entry, way) for way in ("tuned", *OTHERS)} if options.buckets else {}
        if any(share is not None for share in shares.values()):
            print("    latency that was not hidden: " + ", ".join(f"{way} {share:.0%}" for way, share in shares.items() if share is not None))
        for way, lines in entry["differences"].items():
            print(f"    {way}: " + "; ".join(lines))
    against = [measured_gain(entry, best_other(entry)) for entry in entries]
    mean = lambda other, gain: statistics.mean(gain(entry, other) for entry in entries)
    errors = [abs(predicted_s(entry, "tuned") / median_s(entry, "tuned") - 1) for entry in entries]
    ends = [abs(bucket["predicted_end_s"] / bucket["measured_end_s"] - 1) for entry in entries for bucket in entry["tuned_buckets"]]
    print(f"\n{len(entries)} cells, {sum(entry['lab']['disturbed'] for entry in entries)} disturbed; in {sum(value >= -WITHIN for value in against)} the tuned plan "
          f"is not slower by more than {WITHIN:.0%} than the best other, worst {min(against):+.1%}")
    inside = [entry["predicted_s"][way]["low"] <= median_s(entry, way) <= entry["predicted_s"][way]["high"] for entry in entries for way in ("tuned", *OTHERS)]
    print(f"in {sum(inside)} of {len(inside)} ways the median is in the predicted interval; DDP's buckets were kept in "
          f"{sum(bool(entry['robust'] and entry['robust']['keeps_default']) for entry in entries)} cells")
    for other in OTHERS:
        print(f"mean gain over {other}: {mean(other, measured_gain):+.1%} measured, {mean(other, predicted_gain):+.1%} predicted")
    print(f"iterations of tuned plans: predicted against measured, median {statistics.median(errors):.1%}, worst {max(errors):.1%}")
    if ends:
        print(f"ends of their {len(ends)} buckets: median {statistics.median(ends):.1%}, worst {max(ends):.1%}")


def main():
    root = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root.add_argument("verb", choices=["run", "plans", "report", "list"])
    study.add_running_options(root, "cells")
    root.add_argument("--results", type=pathlib.Path, default=HERE / "results.jsonl")
    root.add_argument("--buckets", action="store_true", help="with report: the buckets of the tuned plans")
    options = root.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # ends the lab, too
    if options.verb == "list":
        print("\n".join(name for name, *_ in all_cells()))
    else:
        {"run": run, "plans": plans, "report": report}[options.verb](options)


if __name__ == "__main__":
    main()
