#!/usr/bin/env python3
"""Cells a second of paceline sweep, and its peak memory, as the sweep grows.

    sweep_benchmark.py build/release/paceline

Not a test: run it on a quiet machine. Each row is one process (or one job of mpirun), with what it takes to read the
sweep and to start. The first has one cell. Beside cells a second stand those a second of processor time, which
other work on the machine moves less. Memory is the most that a process of the job had (ru_maxrss).
"""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

PLANS = "strategy: [ring, fused-ring, hierarchical, halving-doubling]\n"
SWEEPS = (
    ("one cell", "model: resnet50\ncluster: jizhi-p40\nranks: 8\nstrategy: ring\n"),
    ("thresholds named", "model: resnet50\ncluster: [jizhi-p40, h200-ndr]\nranks: [64]\nbatch: [%s]\nstrategy: [fused-ring, halving-doubling]\n"
                         "theta: [1 MiB, 2 MiB, 4 MiB, 8 MiB, 16 MiB, 32 MiB, 64 MiB, 128 MiB]\n"),
    ("thresholds chosen", "model: resnet50\ncluster: [jizhi-p40, h200-ndr]\nranks: [64]\nbatch: [%s]\n" + PLANS),
    ("8 to 1024 ranks", "model: [resnet50, bert-large]\ncluster: [jizhi-p40, h200-ndr]\nranks: [8-1024]\nbatch: [%s]\n" + PLANS
                        + "theta: [auto, 4 MiB, 64 MiB]\n"),
)


def measured(command):
    """The cells that a command says it has computed, the seconds that it took, those of processors, and the MB that its
    largest process had.
    In a child of its own, for the kernel keeps the most of all children."""
    out, at = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(out)
        start = time.monotonic()
        result = subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        took = time.monotonic() - start
        cells = re.findall(r"^(\d+) cells in ", result.stderr, re.MULTILINE)[-1]
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(at, f"{cells} {took} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss / 1e3}".encode())
        os._exit(0)
    os.close(at)
    os.waitpid(process, 0)
    with os.fdopen(out) as file:
        cells, *figures = file.read().split()
    return int(cells), *map(float, figures)


def main():
    paceline = pathlib.Path(sys.argv[1]).resolve()
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    print(f"{'sweep':<20}{'on':<26}{'cells':>9}{'seconds':>9}{'cells/s':>10}{'a CPU s':>10}{'MB':>7}")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "sweep.yaml")
        for name, text in SWEEPS:
            for batches in (20, 200) if "%s" in text else (1,):
                file.write_text(text % ", ".join(str(i) for i in range(1, batches + 1)) if "%s" in text else text)
                places = [("1 thread", [paceline, "sweep", file, "--threads", "1"])]
                if batches == 200:
                    places += [("2 threads", [paceline, "sweep", file, "--threads", "2"]),
                               ("mpirun -n 2", ["mpirun", "--oversubscribe", "-n", "2", paceline, "sweep", file, "--threads", "1"])]
                for place, command in places:
                    cells, seconds, cpu, mb = measured([str(word) for word in command])
                    print(f"{name:<20}{place:<26}{cells:>9}{seconds:>9.2f}{cells / seconds:>10.0f}{cells / cpu:>10.0f}{mb:>7.0f}", flush=True)


if __name__ == "__main__":
    main()
