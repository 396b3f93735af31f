#!/usr/bin/env python3
"""All-reduce of Paceline, Open MPI and Gloo in the lab: one table, and the figures as JSON.

    all_reduce_peers.py --hosts 4 8 --rate 100mbit 250mbit --latency 1ms --out peers.json

Every algorithm of every library is tried at each size (--screen times), but for those that were
hopeless at a smaller one. The best few of each library (--keep) are then timed in rounds, one after
the other, so that what else the machine does falls on all alike. A time is the median over all
repetitions of all rounds, of the slowest rank, and a ratio is that of the best peer to ours: above
1, ours is faster. `spread` is how far half of ours lie apart (the quartiles) in per cent of their
median: a ratio within it of 1 is a draw. `disturbed` says how many of the runs of the rounds the
lab does not trust (lab.py, --max-foreign and the like).

Ours and MPI_Allreduce sum in place; buckets are FP32. All messages go over the same wires, those of
Open MPI with its eager limits raised (lab.py), which it gains from. --rendezvous-too also tries
Open MPI with its own limits.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LAB = HERE / "lab.py"
DEFAULT_BUILD = HERE.parents[1] / "build/release/experiments/lab"

OPEN_MPI = {0: "default", 1: "linear", 2: "nonoverlapping", 3: "recursive-doubling", 4: "ring",
            5: "segmented-ring", 6: "rabenseifner"}
GLOO = ("ring", "bcube", "ring-old", "ring-chunked", "halving-doubling")
# An algorithm that is so many times slower than its library's best at one size is not tried at
# larger ones, where the bytes that it sends matter more still.
HOPELESS = 1.7
OURS = ("ring", "halving-doubling", "direct-exchange", "bidirectional-ring")


class Contender:
    """A library with one of its algorithms: how to run it."""

    def __init__(self, library, algorithm, program, arguments=(), lab=()):
        self.library, self.algorithm = library, algorithm
        self.program, self.arguments, self.lab = program, list(arguments), list(lab)

    def times(self, place, size, repetitions, trust=None):
        """Seconds of each repetition; none if it failed, which is said. `trust` counts "runs", and
        those of them that the lab calls "disturbed"."""
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "report.json")
            command = [sys.executable, LAB, "run", "--quiet", "--time-limit", 120, "--report", report,
                       *place, *self.lab, "--", self.program, *self.arguments, size, size, repetitions]
            result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
            if trust is not None and report.exists():
                trust["runs"] += 1
                trust["disturbed"] += json.loads(report.read_text())["disturbed"]
        for line in result.stdout.splitlines():
            if line.startswith("{"):
                return json.loads(line)["seconds"]
        why = (result.stderr.strip().splitlines() or ["no output"])[-1]
        print(f"{self.library} {self.algorithm}, {size} bytes: exit code {result.returncode}: {why}",
              file=sys.stderr)
        return []


def contenders(build, options):
    found = []
    ours = build / "paceline-lab-all-reduce"
    if ours.exists():
        for algorithm in options.schedules:
            for size in options.messages:
                name = algorithm if size == 0 else f"{algorithm}/{size >> 10}KiB"
                found.append(Contender("paceline", name, ours, [algorithm, size]))
    for number, name in OPEN_MPI.items():
        chosen = ["--mca", "coll_tuned_use_dynamic_rules", 1,
                  "--mca", "coll_tuned_allreduce_algorithm", number] if number else []
        program = build / "paceline-lab-mpi-all-reduce"
        found.append(Contender("open-mpi", name, program, lab=chosen))
        if options.rendezvous_too:
            found.append(Contender("open-mpi", name + "/rendezvous", program,
                                   lab=chosen + ["--rendezvous"]))
    gloo = build / "paceline-lab-gloo-all-reduce"
    if gloo.exists():
        for name in GLOO:
            found.append(Contender("gloo", name, gloo, lab=[
                "--export", f"GLOO_ALGORITHM={name}", "--export", "GLOO_FOLDER=/run/lab"]))
    return found


def finalists(all_contenders, screened, keep):
    """The best `keep` of each library."""
    chosen = []
    for library in dict.fromkeys(contender.library for contender in all_contenders):
        ranked = sorted((screened[contender], index, contender)
                        for index, contender in enumerate(all_contenders)
                        if contender.library == library and screened[contender] is not None)
        chosen += [contender for _, _, contender in ranked[:keep]]
    return chosen


def hopeful(screened):
    """Those within HOPELESS times the best of their library."""
    best = {}
    for contender, seconds in screened.items():
        if seconds is not None:
            best[contender.library] = min(seconds, best.get(contender.library, seconds))
    return [contender for contender, seconds in screened.items()
            if seconds is not None and seconds <= HOPELESS * best[contender.library]]


def compare(place, size, all_contenders, options):
    """The best time of each in the screening; all times of the finalists, and how far to trust them."""
    screened = {}
    for contender in all_contenders:
        times = contender.times(place, size, options.screen)
        screened[contender] = min(times) if times else None
    chosen = finalists(all_contenders, screened, options.keep)
    times = {contender: [] for contender in chosen}
    trust = {"runs": 0, "disturbed": 0}
    place = [*place, "--wait-quiet", options.wait_quiet] if options.wait_quiet else place
    for _ in range(options.rounds):
        for contender in chosen:
            times[contender] += contender.times(place, size, options.repetitions, trust)
    return screened, {contender: seconds for contender, seconds in times.items() if seconds}, trust


def best_of(times, library):
    return min(((statistics.median(seconds), contender.algorithm, seconds)
                for contender, seconds in times.items() if contender.library == library), default=None)


def spread(seconds):
    if len(seconds) < 2:
        return None
    quartiles = statistics.quantiles(seconds, n=4, method="inclusive")
    return (quartiles[2] - quartiles[0]) / statistics.median(seconds)


def row(hosts, rate, latency, size, screened, times, trust):
    figures = {"hosts": hosts, "rate": rate, "latency": latency, "bytes": size, "trust": trust,
               "screened": [{"library": contender.library, "algorithm": contender.algorithm,
                             "seconds": seconds} for contender, seconds in screened.items()],
               "times": [{"library": contender.library, "algorithm": contender.algorithm,
                          "seconds": seconds} for contender, seconds in times.items()]}
    best = {library: best_of(times, library) for library in ("paceline", "open-mpi", "gloo")}
    for library, entry in best.items():
        if entry:
            figures[library] = {"algorithm": entry[1], "median_seconds": entry[0],
                                "best_seconds": min(entry[2]), "spread": spread(entry[2])}
    peers = [best[library] for library in ("open-mpi", "gloo") if best[library]]
    if best["paceline"] and peers:
        figures["ratio"] = min(peer[0] for peer in peers) / best["paceline"][0]
        figures["ratio_of_best"] = min(min(peer[2]) for peer in peers) / min(best["paceline"][2])
    return figures


def print_heading():
    print(f"{'hosts':>5} {'rate':>8} {'MiB':>4}   {'ours, ms':<34} {'Open MPI, ms':<28} "
          f"{'Gloo, ms':<28} {'ratio':>5} {'of bests':>8} {'spread':>6} {'disturbed':>9}")


def print_row(figures):
    def cell(library, width):
        entry = figures.get(library)
        text = f"{entry['median_seconds'] * 1e3:7.1f} {entry['algorithm']}" if entry else "-"
        return f"{text:<{width}}"

    number = lambda key: f"{figures[key]:.3f}" if key in figures else "-"
    apart = (figures.get("paceline") or {}).get("spread")
    print(f"{figures['hosts']:>5} {figures['rate']:>8} {figures['bytes'] / 2**20:>4g}   "
          f"{cell('paceline', 34)} {cell('open-mpi', 28)} {cell('gloo', 28)} {number('ratio'):>5} "
          f"{number('ratio_of_best'):>8} {'-' if apart is None else f'{apart:.0%}':>6} "
          f"{'{disturbed} of {runs}'.format_map(figures['trust']):>9}", flush=True)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--rate", nargs="+", default=["100mbit", "250mbit"])
    parser.add_argument("--latency", default="1ms")
    parser.add_argument("--mebibytes", type=float, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--screen", type=int, default=2, help="repetitions that choose the finalists")
    parser.add_argument("--keep", type=int, default=2, help="finalists of each library")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=5, help="in each round")
    parser.add_argument("--wait-quiet", type=float, default=0, metavar="SECONDS",
                        help="before each run of the rounds, for a quiet machine")
    parser.add_argument("--schedules", nargs="+", default=OURS)
    parser.add_argument("--messages", type=int, nargs="+", default=[0], metavar="BYTES",
                        help="largest messages of ours; 0: as the executor chooses")
    parser.add_argument("--rendezvous-too", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=DEFAULT_BUILD)
    parser.add_argument("--out", type=pathlib.Path, help="the figures as JSON")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    subprocess.run([sys.executable, str(LAB), "check"], check=True)
    everyone = contenders(options.build.resolve(), options)
    rows = []
    print_heading()
    for rate in options.rate:
        for hosts in options.hosts:
            place = ["--hosts", hosts, "--rate", rate, "--latency", options.latency]
            tried = everyone
            for size in sorted(options.mebibytes):
                measured = compare(place, int(size * 2**20), tried, options)
                tried = hopeful(measured[0])
                rows.append(row(hosts, rate, options.latency, int(size * 2**20), *measured))
                print_row(rows[-1])
                if options.out:
                    about = {"when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                             "load": os.getloadavg()[0], "processors": os.cpu_count()}
                    options.out.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
