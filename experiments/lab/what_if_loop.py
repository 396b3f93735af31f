#!/usr/bin/env python3
"""What-if answers held against the run that they are about, in the lab.

    what_if_loop.py --hosts 4 --rate 250mbit --latency 1ms [--slow-rank 2=1.5] [--out FOLDER]

A replay with a slow rank is recorded. `paceline compare --what-if` is asked how long its iterations
would take without that rank, with twice the bandwidth, with half the latency, with faster devices and
with another strategy, before any of these is run. Then each is run in the lab, and its measured
iteration stands beside the answer. All commands are printed, and what they wrote stays in the folder.
"""
import argparse
import functools
import json
import pathlib
import subprocess
import sys

from labnet import commands
from labnet.commands import LAB, PROJECT

run = functools.partial(commands.run, is_printed=True)


def times(text, factor):
    """"250mbit" times 2 is "500mbit"."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    return f"{float(digits) * factor:g}{text[len(digits):]}"


class Loop:
    def __init__(self, options):
        self.options = options
        self.paceline = options.build.resolve() / "paceline"
        self.out = options.out
        self.out.mkdir(parents=True, exist_ok=True)

    def place(self, bandwidth=1, latency=1):
        return ["--hosts", self.options.hosts, "--rate", times(self.options.rate, bandwidth), "--latency",
                times(self.options.latency, latency)]

    def in_lab(self, name, place, *command, **options):
        """Runs a command on all hosts; whether other processes disturbed it."""
        _, figures = commands.run_in_lab(self.out / f"{name}.report.json", [*place, "--wait-quiet", self.options.wait_quiet],
                                         [self.paceline, *command], is_printed=True, **options)
        return figures["disturbed"]

    def replay(self, name, place, job, *words):
        """The measured iteration of a replay, in seconds, and whether it was disturbed."""
        with (self.out / f"{name}.json").open("w") as file:
            disturbed = self.in_lab(name, place, "replay", *job, "--iterations", self.options.iterations, *words, "--json",
                                    stdout=file)
        document = json.loads((self.out / f"{name}.json").read_text())
        return document["strategies"][0]["measured"]["iteration_s"], disturbed

    def main(self):
        options, out = self.options, self.out
        cluster, profile = out / "cluster.yaml", out / "profile.json"
        run([sys.executable, LAB, "cluster", *self.place(), "--out", cluster])
        self.in_lab("calibrate", self.place(), "calibrate", "--out", profile, "--cluster", cluster, "--time", "10 s")
        plan = ["--strategy", options.strategy, "--theta", options.theta]
        slow = ["--slow-rank", options.slow_rank]

        def job(speed=1):
            return ["--model", options.model, "--batch", options.batch, "--cluster", cluster, "--profile", profile,
                    "--precision", "fp32", "--throughput", options.throughput * speed]

        _, disturbed = self.replay("run", self.place(), [*job(), *plan], *slow, "--timeline", out / "timeline.json")
        cases = [("without-slowest", self.place(), [*job(), *plan], []),
                 ("bandwidth=2", self.place(bandwidth=2), [*job(), *plan], slow),
                 ("latency=0.5", self.place(latency=0.5), [*job(), *plan], slow),
                 ("without-slowest+bandwidth=2", self.place(bandwidth=2), [*job(), *plan], []),
                 ("compute=2", self.place(), [*job(2), *plan], slow),
                 (f"strategy={options.other}", self.place(), [*job(), "--strategy", options.other], slow)]
        result = run([self.paceline, "compare", out / "timeline.json", "--what-if", ",".join(case[0] for case in cases),
                      "--cluster", cluster, "--profile", profile, "--json"], capture_output=True, text=True)
        document = json.loads(result.stdout)
        (out / "answers.json").write_text(result.stdout)
        print(f"\nas it ran: {1e3 * document['measured_iteration_s']:.1f} ms measured, the DAG with measured durations "
              f"{100 * document['residual']:+.1f} %, slowest rank {document['slowest_rank']}{' (disturbed)' if disturbed else ''}\n")
        print(f"{'what if':<32}{'answer':>12}{'measured':>12}{'error':>9}")
        for (name, place, words, more), answer in zip(cases, document["answers"]):
            measured, disturbed = self.replay(name.replace("=", "-"), place, words, *more)
            error = answer["iteration_s"] / measured - 1
            print(f"{name:<32}{1e3 * answer['iteration_s']:>9.1f} ms{1e3 * measured:>9.1f} ms{100 * error:>+7.1f} %"
                  f"{'  disturbed' if disturbed else ''}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rate", default="250mbit")
    parser.add_argument("--latency", default="1ms")
    parser.add_argument("--slow-rank", default="2=1.5")
    parser.add_argument("--model", default="resnet-small")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--throughput", type=int, default=1000, help="samples/s of a rank, at which its layers sleep")
    parser.add_argument("--strategy", default="fused-ring")
    parser.add_argument("--theta", default="256KB")
    parser.add_argument("--other", default="halving-doubling")
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--wait-quiet", type=int, default=30)
    parser.add_argument("--build", type=pathlib.Path, default=PROJECT / "build/release")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("what-if-loop"))
    Loop(parser.parse_args()).main()


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
