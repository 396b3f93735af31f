#!/usr/bin/env python3
"""The study: predictions of lab clusters held against what the lab measures.

    study.py run  [--only PATTERN] [--minutes N]     calibrate, predict, replay; goes on where it stopped
    study.py calibrate [--only PATTERN]              profiles and predictions anew; measured cells stay
    study.py repredict                               predictions anew, from the profiles
    study.py report                                  tables of the errors, from what was measured
    study.py coverage                                covered cells by the width of the profiles' intervals
    study.py list                                    the cells

With --seed S, all of these are of another study: --clusters N clusters, and what runs on them, drawn from
a range by the seed, with profiles and results of their own. Nobody has chosen its cells, and so it is
the one to ask whether intervals cover.

Each cluster is calibrated by microbenchmarks only (paceline calibrate; again by the next `run` if
the lab calls it disturbed) and its profile kept in profiles/. Then paceline replay runs each cell's
plan with synthetic compute, and prints its prediction, made from that profile before the run, beside
it. A cell is a line of results.jsonl, with the lab's report of the run: a cell that the lab calls
disturbed is measured again by the next `run`, --again times at most, and left out of the report's
figures, which says how many were.

Nothing is fitted to a cell: change a model, and `repredict` predicts all cells anew from the
profiles, in seconds, and leaves the measurements as they are, but for those of plans that the
planner would not choose any more: `run` then measures those anew.
"""
import argparse
import dataclasses
import datetime
import fnmatch
import json
import math
import pathlib
import random as randomness
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from labnet import commands  # noqa: E402
from labnet.commands import LAB, PROJECT  # noqa: E402

DEVICE = "v100"  # whose computation is replayed
TEXT = {"stdout": subprocess.PIPE, "text": True}


@dataclasses.dataclass(frozen=True)
class Place:
    """A lab cluster."""
    hosts: int
    mbit: int
    latency_ms: float
    racks: int = 1

    @property
    def name(self):
        racks = f"-{self.racks}racks" if self.racks > 1 else ""
        return f"{self.hosts}x{self.mbit}mbit-{self.latency_ms:g}ms{racks}"

    def options(self):
        options = ["--hosts", self.hosts, "--rate", f"{self.mbit}mbit", "--latency",
                   f"{self.latency_ms:g}ms" if self.latency_ms else "0"]
        if self.racks > 1:
            # The hosts of a rack together are four times as fast as its uplink.
            uplink = self.mbit * -(-self.hosts // self.racks) / 4
            options += ["--racks", self.racks, "--uplink", f"{uplink:g}mbit"]
        return [str(option) for option in options]


@dataclasses.dataclass(frozen=True)
class Job:
    """What is replayed in one go: a network, a wire type, and strategies that share a group size."""
    model: str
    wire: str
    strategies: tuple
    group: int = 0

    @property
    def name(self):
        return f"{self.model}-{self.wire}" + (f"-k{self.group}" if self.group else "")


# Samples per rank such that computation and communication are of one order, and megabytes of
# FP32 gradients, by which networks are scaled down.
BATCH = {"alexnet": 128, "vgg16": 8, "inception-v3": 16, "resnet50": 16, "gpt2-small": 2}
MEGABYTES = {"alexnet": 244.4, "vgg16": 553.4, "inception-v3": 95.3, "resnet50": 102.2, "gpt2-small": 497.8}
NETWORKS = ("alexnet", "inception-v3", "resnet50", "vgg16")  # of studies that are drawn
ITERATIONS = 6  # timed in pairs, which makes five samples
CALMING_SECONDS = 20  # to wait after a calibration that was disturbed; twice as long after the next
# About how many seconds a fused ring may take for all gradients of a network. This sets their scale.
TRANSFER_S = 0.35

FUSED = ("fused-ring", "bidirectional-ring", "hybrid", "open-mpi")
FEW = ("alexnet", "vgg16")  # networks of few gradients
SHARDED = ("zero1", "zero2", "fsdp")
WIDE = ("ring", "halving-doubling", "parameter-server")


def scale(place, model):
    """The factor for a network's gradients: the largest power of two that fits the link."""
    bytes_per_s = place.mbit * 1e6 / 8 / (4 / 2 if place.racks > 1 else 1)
    budget = bytes_per_s * TRANSFER_S / 2
    share = 1.0
    while MEGABYTES[model] * 1e6 * share > budget:
        share /= 2
    return share


def designed_jobs(place):
    """The designed subset: each cluster gets two of the networks in turn, one of them with FP16 on
    the wire, fused strategies and those for each tensor, and hierarchies of each k that fits."""
    turn = (place.hosts // 2 + place.mbit // 50 + place.latency_ms) % 4
    models = ("alexnet", "resnet50", "vgg16", "inception-v3")
    first, second = models[turn], models[(turn + 1) % 4]
    # Where steps are many and slow, a collective for each of 160 tensors would take seconds.
    slow = place.hosts * max(place.latency_ms, 0.3) > 5
    jobs = [Job(first, "fp32", FUSED), Job(second, "fp16", ("fused-ring", "no-overlap"))]
    wide = first if first in FEW or not slow else second if second in FEW else "alexnet"
    jobs.append(Job(wide, "fp32", WIDE))
    if place.hosts in (6, 12):
        jobs.append(Job(second, "fp32", ("binary-blocks",)))
    for k in (2, 4):
        if place.hosts % k == 0 and k < place.hosts:
            names = ("hierarchical", "torus-2d") if k == 2 else ("hierarchical",)
            jobs.append(Job("vgg16" if slow else second, "fp32", names, k))
    return jobs


def designed_places():
    for hosts in (2, 4, 8):
        for mbit in (50, 100, 250):
            for latency in (0, 1, 2):
                yield Place(hosts, mbit, latency)
    yield Place(6, 100, 1)
    yield Place(12, 50, 1)
    yield Place(16, 50, 1)
    yield Place(16, 50, 2)
    for mbit in (100, 250):
        yield Place(8, mbit, 1, racks=2)
    yield Place(4, 100, 1, racks=2)


def cells(place, job):
    return [f"{place.name}/{job.name}/{strategy}" for strategy in job.strategies]


@dataclasses.dataclass(frozen=True)
class Study:
    """What is calibrated, predicted and measured, and where it is kept."""
    jobs: dict  # of each place
    results: pathlib.Path
    profiles: pathlib.Path

    def cells(self):
        return [cell for place, jobs in self.jobs.items() for job in jobs for cell in cells(place, job)]

    def cluster_file(self, place):
        return self.profiles / f"{place.name}.yaml"

    def profile_files(self, place):
        """The profile, and the lab's report of the run that made it."""
        profile = self.profiles / f"{place.name}.json"
        return profile, profile.with_suffix(".report.json")

    def is_calibrated(self, place):
        profile, report = self.profile_files(place)
        return profile.exists() and report.exists() and not json.loads(report.read_text())["disturbed"]


def read_results(path):
    """The last line of each cell in a file of results; none if there is no file."""
    found = {}
    if path.exists():
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            found[entry["cell"]] = entry
    return found


def write_results(path, results):
    """Writes the whole file or nothing."""
    temporary = path.with_suffix(".new")
    temporary.write_text("".join(json.dumps(entry) + "\n" for entry in results.values()))
    temporary.rename(path)


def designed_study():
    return Study({place: designed_jobs(place) for place in designed_places()}, HERE / "results.jsonl",
                 HERE / "profiles")


def drawn_place(random):
    """A cluster that the lab's machine can carry: at most 1200 Mbit/s over all hosts."""
    while True:
        hosts = random.randint(2, 12)
        mbit = round(math.exp(random.uniform(math.log(40), math.log(250))))
        racks = 2 if hosts % 2 == 0 and hosts >= 4 and random.random() < 0.2 else 1
        if hosts * mbit <= 1200:
            return Place(hosts, mbit, round(random.uniform(0, 2), 1), racks)


def drawn_job(random, place):
    """A network, a wire type, and three strategies; k is a divisor where one of them takes it."""
    model = random.choice(NETWORKS)
    is_slow = place.hosts * max(place.latency_ms, 0.3) > 5
    # A collective for each of 160 tensors would take seconds where steps are many and slow.
    wide = () if is_slow and model not in FEW else WIDE
    divisors = [k for k in range(2, place.hosts) if place.hosts % k == 0]
    grouped = ("hierarchical", "torus-2d", "hierarchical-scatter") if divisors else ()
    pool = FUSED + wide + grouped + ("no-overlap", "binary-blocks", "double-binary-tree")
    strategies = tuple(random.sample(pool, 3))
    group = random.choice(divisors) if set(strategies) & set(grouped) else 0
    wire = random.choice(("fp32", "fp16"))
    # Open MPI adds no FP16.
    return Job(model, "fp32" if "open-mpi" in strategies else wire, strategies, group)


def drawn_study(seed, clusters):
    """The first clusters of the seed: those of a smaller number are the same."""
    random = randomness.Random(seed)
    jobs = {}
    while len(jobs) < clusters:
        place = drawn_place(random)
        of_place = {job.name: job for job in (drawn_job(random, place) for _ in range(2))}
        jobs.setdefault(place, list(of_place.values()))
    return Study(jobs, HERE / f"results-seed{seed}.jsonl", HERE / f"profiles-seed{seed}")


def sharded_study():
    """Sharded plans: of networks with blocks and without, with and without overlap of what is gathered."""
    def jobs(place):
        turn = (place.hosts // 2 + place.mbit // 50) % 2
        first, second = ("resnet50", "gpt2-small") if turn else ("alexnet", "gpt2-small")
        return [Job(first, "fp32", SHARDED), Job(second, "fp32", SHARDED)]
    places = [Place(hosts, mbit, latency) for hosts, mbit, latency in
              ((2, 50, 1), (2, 100, 0), (2, 250, 2), (4, 50, 0), (4, 100, 1), (4, 250, 1), (8, 50, 2), (8, 100, 1))]
    return Study({place: jobs(place) for place in places}, HERE / "results-sharded.jsonl", HERE / "profiles-sharded")


class Lab:
    def __init__(self, options):
        self.study = options.study
        self.paceline = str(options.build.resolve() / "paceline")
        self.wait_quiet = options.wait_quiet

    def cluster_file(self, place):
        path = self.study.cluster_file(place)
        if not path.exists():
            run([sys.executable, LAB, "cluster", *place.options(), "--device", DEVICE, "--out", path])
        return path

    def run(self, place, command, limit=300):
        """Runs a command in the lab. Returns standard output and the lab's report, or raises CalledProcessError."""
        report = HERE / "report.tmp"
        ended, figures = commands.run_in_lab(
            report, ["--quiet", "--time-limit", limit, "--wait-quiet", self.wait_quiet, *place.options()],
            [self.paceline, *command], **TEXT)
        report.unlink()
        return ended.stdout, figures

    def calibrate(self, place, seconds):
        """Calibrates a cluster in three tries at most. The profile of a disturbed run never replaces one of a quiet run.

        Returns whether the command ended well, and says so if not.
        """
        try:
            self._calibrate(place, seconds)
        except subprocess.CalledProcessError as error:
            say(f"calibration of {place.name}: exit code {error.returncode}")
            return False
        return True

    def _calibrate(self, place, seconds):
        profile, report = self.study.profile_files(place)
        fresh = profile.with_suffix(".tmp")
        for attempt in range(3):
            time.sleep(CALMING_SECONDS * attempt)
            _, figures = self.run(place, ["calibrate", "--out", fresh, "--name", place.name,
                                          "--cluster", self.cluster_file(place),
                                          "--time", f"{seconds} s"])
            if not figures["disturbed"]:
                break
            say(f"calibration of {place.name} was disturbed: {'; '.join(figures['why'])}")
        if figures["disturbed"] and self.study.is_calibrated(place):
            fresh.unlink()
            say(f"{place.name} keeps the profile that it has")
            return
        fresh.rename(profile)
        report.write_text(json.dumps(figures) + "\n")

    def arguments(self, place, job, profile=None):
        arguments = ["--model", job.model, "--cluster", self.cluster_file(place), "--profile",
                     profile or self.study.profile_files(place)[0], "--precision", "fp32", "--wire", job.wire,
                     "--batch", BATCH[job.model], "--scale-gradients", scale(place, job.model),
                     "--strategy", ",".join(job.strategies)]
        return arguments + (["--group", job.group] if job.group else [])


def run(command):
    """Returns standard output, or raises CalledProcessError."""
    return commands.run(command, **TEXT).stdout


def say(text):
    print(text, file=sys.stderr, flush=True)


def entries(place, job, document, figures):
    about = {"hosts": place.hosts, "mbit": place.mbit, "latency_ms": place.latency_ms,
             "racks": place.racks, "model": job.model, "wire": job.wire, "group": job.group,
             "gradient_scale": document["gradient_scale"], "batch": document["batch_per_rank"]}
    for cell, row in zip(cells(place, job), document["strategies"]):
        yield {"cell": cell, **about, "strategy": row["name"], "buckets": row["buckets"],
               "measured": row["measured"], "predicted": predicted(row["predicted"]),
               "lab": figures, "when": now()}


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def predicted(row):
    keys = ("iteration_s", "iteration_low_s", "iteration_high_s", "compute_s",
            "exposed_communication_s", "timed_by", "thresholds", "provenance")
    return {key: row[key] for key in keys}


def measure(options):
    lab = Lab(options)
    study = options.study
    study.profiles.mkdir(exist_ok=True)
    results = read_results(study.results)
    end = time.monotonic() + 60 * options.minutes

    def wanted(place, job):
        return any(cell not in results or (results[cell]["lab"]["disturbed"]
                                           and results[cell].get("tries", 1) <= options.again)
                   for cell in cells(place, job))

    def is_over():
        if time.monotonic() > end:
            say("stopped by --minutes; the same command goes on")
            return True
        return False

    for place, jobs in study.jobs.items():
        if not fnmatch.fnmatch(place.name, options.only):
            continue
        if not any(wanted(place, job) for job in jobs):
            continue
        if is_over():
            return
        if not study.is_calibrated(place) and not calibrate(lab, place, results, options):
            continue
        for job in jobs:
            if not wanted(place, job):
                continue
            if is_over():
                return
            try:
                output, figures = lab.run(place, ["replay", *lab.arguments(place, job), "--iterations",
                                                  ITERATIONS, "--json"])
            except subprocess.CalledProcessError as error:
                say(f"{place.name}/{job.name}: exit code {error.returncode}")
                continue
            for entry in entries(place, job, json.loads(output), figures):
                entry["tries"] = results.get(entry["cell"], {}).get("tries", 0) + 1
                results[entry["cell"]] = entry
                ratio = entry["predicted"]["iteration_s"] / entry["measured"]["iteration_s"]
                say(f"{entry['cell']:<55} {entry['measured']['iteration_s'] * 1e3:8.1f} ms measured, "
                    f"{100 * (ratio - 1):+6.1f} %{' disturbed' if figures['disturbed'] else ''}")
            write_results(study.results, results)


def calibrate(lab, place, results, options):
    """Calibrates the place and predicts its cells from the new profile. Returns whether it has one."""
    if not lab.calibrate(place, options.calibrate_seconds):
        return False
    predict_anew(lab, place, results)
    write_results(lab.study.results, results)
    return True


def calibrate_all(options):
    lab = Lab(options)
    options.study.profiles.mkdir(exist_ok=True)
    results = read_results(options.study.results)
    for place in options.study.jobs:
        if fnmatch.fnmatch(place.name, options.only) and calibrate(lab, place, results, options):
            say(f"{place.name}: a new profile")


def predict_rows(lab, place, job, profile, *words):
    output = run([lab.paceline, "predict", *lab.arguments(place, job, profile), "--ranks", place.hosts,
                  "--exact-compute", "--json", *words])
    return json.loads(output)["strategies"]


def predict_anew(lab, place, results, profile=None):
    """Predicts the measured cells of the place, from its profile or from the file that is given."""
    for job in lab.study.jobs[place]:
        if not any(cell in results for cell in cells(place, job)):
            continue
        rows = predict_rows(lab, place, job, profile)
        # Layers slept as long as the prediction before the run said. What the catalogue says of the device now
        # may differ.
        slept = [results[cell]["predicted"]["compute_s"] / row["compute_s"]
                 for cell, row in zip(cells(place, job), rows) if cell in results]
        if abs(slept[0] - 1) > 1e-9:
            rows = predict_rows(lab, place, job, profile, "--slowdown", slept[0])
        for cell, row in zip(cells(place, job), rows):
            if cell not in results:
                continue
            if row["thresholds"] == results[cell]["predicted"]["thresholds"]:
                results[cell]["predicted"] = predicted(row)
            else:
                say(f"{cell}: the planner chooses another plan now; run measures it anew")
                del results[cell]


def repredict(options):
    lab = Lab(options)
    results = read_results(options.study.results)
    for place in options.study.jobs:
        if fnmatch.fnmatch(place.name, options.only):
            predict_anew(lab, place, results)
    write_results(options.study.results, results)


def report_coverage(options):
    from coverage import coverage
    from report import covered
    lab = Lab(options)
    study = options.study

    def predict(profiles):
        results = read_results(study.results)
        with tempfile.TemporaryDirectory() as folder:
            for place in study.jobs:
                file = pathlib.Path(folder) / f"{place.name}.json"
                file.write_text(json.dumps(profiles[place]))
                predict_anew(lab, place, results, file)
        return [entry for entry in results.values() if not entry["lab"]["disturbed"]]

    coverage(predict, {place: json.loads(study.profile_files(place)[0].read_text()) for place in study.jobs},
             covered)


def add_running_options(root, chosen):
    root.add_argument("--only", default="*", help=f"{chosen}, as in '4x*' (all)")
    root.add_argument("--minutes", type=float, default=600, help="stop after so long")
    root.add_argument("--again", type=int, default=1, help="tries of a disturbed cell, beyond one")
    root.add_argument("--wait-quiet", type=int, default=30, metavar="SECONDS")
    root.add_argument("--build", type=pathlib.Path, default=PROJECT / "build/release")


def parser():
    root = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    root.add_argument("verb", choices=["run", "calibrate", "repredict", "report", "coverage", "list"])
    root.add_argument("--seed", type=int, help="the study of clusters that are drawn by this seed")
    root.add_argument("--sharded", action="store_true", help="the study of sharded plans")
    root.add_argument("--clusters", type=int, default=12, help="how many of them are drawn (12)")
    add_running_options(root, "clusters")
    root.add_argument("--calibrate-seconds", type=int, default=20)
    root.add_argument("--plot", type=pathlib.Path, help="with report: predicted against measured")
    return root


def main():
    options = parser().parse_args()
    options.study = (sharded_study() if options.sharded else designed_study() if options.seed is None
                     else drawn_study(options.seed, options.clusters))
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # ends the lab, too
    if options.verb == "list":
        print("\n".join(options.study.cells()))
    elif options.verb == "run":
        measure(options)
    elif options.verb == "calibrate":
        calibrate_all(options)
    elif options.verb == "repredict":
        repredict(options)
    elif options.verb == "coverage":
        report_coverage(options)
    else:
        from report import report
        report(read_results(options.study.results), len(options.study.cells()), options.plot)


if __name__ == "__main__":
    sys.exit(main())
