#!/usr/bin/env python3
"""The loop, closed with real training: calibrate two hosts of the lab, predict, train, compare.

    training_loop.py --rate 100mbit --latency 1ms [--out FOLDER]

Two hosts, a rank and a core each. `paceline calibrate` measures the link and the forward and backward
time of each layer; `paceline predict` makes a timeline from that profile; `paceline train` records one
of real iterations; `paceline compare` prints where they differ. All commands are printed, and what
they wrote stays in the folder.
"""
import argparse
import functools
import pathlib
import subprocess
import sys

from labnet import commands
from labnet.commands import LAB, PROJECT

run = functools.partial(commands.run, is_printed=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="100mbit")
    parser.add_argument("--latency", default="1ms")
    parser.add_argument("--model", default="resnet-small")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--strategy", default="fused-ring")
    parser.add_argument("--theta", default="256KB")
    parser.add_argument("--wire", default="fp32")
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--wait-quiet", type=int, default=30)
    parser.add_argument("--build", type=pathlib.Path, default=PROJECT / "build/release")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("training-loop"))
    options = parser.parse_args()
    paceline = options.build.resolve() / "paceline"
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    place = ["--hosts", 2, "--rate", options.rate, "--latency", options.latency]

    def in_lab(name, *command):
        _, figures = commands.run_in_lab(out / f"{name}.report.json", [*place, "--wait-quiet", options.wait_quiet],
                                         [paceline, *command], is_printed=True)
        if figures["disturbed"]:
            print(f"{name} was disturbed: {'; '.join(figures['why'])}", file=sys.stderr)

    job = ["--model", options.model, "--batch", options.batch]
    plan = ["--strategy", options.strategy, "--theta", options.theta, "--wire", options.wire,
            "--precision", "fp32"]
    run([sys.executable, LAB, "cluster", *place, "--out", out / "cluster.yaml"])
    in_lab("calibrate", "calibrate", "--out", out / "profile.json", "--cluster", out / "cluster.yaml",
           "--time", "10 s", *job, "--threads", 1)
    run([paceline, "predict", *job, *plan, "--cluster", out / "cluster.yaml", "--profile",
         out / "profile.json", "--ranks", 2, "--timeline", out / "prediction.json"],
        stdout=subprocess.DEVNULL)
    in_lab("train", "train", *job, *plan, "--data", "fashion-mnist", "--threads", 1, "--stop-after",
           options.iterations, "--timeline", out / "run.json")
    run([paceline, "compare", out / "run.json", out / "prediction.json", "--merged",
         out / "both.json"])


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
