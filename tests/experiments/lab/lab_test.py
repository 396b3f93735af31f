"""The lab, end to end: hosts reach each other, no faster than their links, and nothing is left.

Exits with 77, which ctest reads as skipped, where the lab cannot run.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

SOURCE = pathlib.Path(os.environ["PACELINE_SOURCE"])
LAB = SOURCE / "experiments/lab/lab.py"
PROBE = SOURCE / "experiments/lab/probe.py"


def lab(*arguments, **options):
    return subprocess.run([sys.executable, LAB, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, **options)


def marked(marker):
    """The processes that inherited a variable, in whatever namespace."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in process.joinpath("environ").read_bytes():
                found.append(process.name)
        except OSError:
            pass
    return found


class Lab(unittest.TestCase):
    def test_hosts_are_no_faster_than_their_links(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "report.json")
            result = lab("run", "--no-mpi", "--hosts", 3, "--rate", "200mbit", "--latency", "2ms",
                         "--report", report, "--", sys.executable, PROBE, "--megabytes", 2)
            self.assertEqual(result.returncode, 0, result.stderr)
            figures = json.loads(result.stdout)
            # Only bounds that the emulation enforces: how much slower a busy machine is, is no test.
            self.assertGreaterEqual(figures["best_half_round_trip_us"], 2000)
            self.assertLessEqual(figures["pair_mbit"], 200)
            self.assertLessEqual(figures["ring_mbit"], 200)
            carried = json.loads(report.read_text())
            self.assertGreater(carried["wire_bytes"], 4 * 2 << 20)
            self.assertEqual(carried["refused"], 0)

    def test_an_uplink_is_shared_by_a_rack(self):
        result = lab("run", "--no-mpi", "--hosts", 4, "--racks", 2, "--rate", "200mbit",
                     "--uplink", "50mbit", "--latency", "0", "--", sys.executable, PROBE,
                     "--megabytes", 1)
        self.assertEqual(result.returncode, 0, result.stderr)
        # The ring crosses each uplink once each way, and the pair stays in its rack.
        figures = json.loads(result.stdout)
        self.assertLessEqual(figures["ring_mbit"], 125)

    def test_mpirun_starts_a_rank_on_each_host(self):
        result = lab("run", "--hosts", 3, "--ranks-per-host", 2, "--", "hostname")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(result.stdout.split()), ["lab1", "lab1", "lab2", "lab2", "lab3", "lab3"])

    def test_contenders_sum_right_across_hosts(self):
        programs = pathlib.Path(os.environ["PACELINE_LAB_SWITCH"]).parent
        arguments = [str(1 << 18), str(1 << 19), "2"]
        for program, options, first in (
                ("paceline-lab-all-reduce", [], ["ring", "0"]),
                ("paceline-lab-all-reduce", [], ["halving-doubling", "4096"]),
                ("paceline-lab-mpi-all-reduce", [], []),
                ("paceline-lab-gloo-all-reduce", ["--export", "GLOO_FOLDER=/run/lab"], [])):
            if not programs.joinpath(program).exists():
                continue
            with self.subTest(program, arguments=first):
                # They check their sums. Programs with sanitizers take no LD_PRELOAD.
                result = lab("run", "--hosts", 3, "--spin", *options, "--", programs / program, *first,
                             *arguments)
                self.assertEqual(result.returncode, 0, result.stderr)
                figures = [json.loads(line) for line in result.stdout.splitlines()]
                self.assertEqual([line["bytes"] for line in figures], [1 << 18, 1 << 19])
                self.assertEqual([len(line["seconds"]) for line in figures], [2, 2])

    def test_the_exit_code_is_the_commands(self):
        self.assertEqual(lab("run", "--no-mpi", "--hosts", 2, "--", "sh", "-c", "exit 5").returncode, 5)
        self.assertNotEqual(lab("run", "--hosts", 2, "--", "false").returncode, 0)

    def test_bad_input_is_one_line(self):
        for arguments in (["--hosts", 1], ["--hosts", 4, "--racks", 2], ["--rate", 0]):
            result = lab("run", *arguments, "--", "true")
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertEqual(lab("run", "--latency", "fast", "--", "true").returncode, 2)
        missing = lab("run", "--switch", "/nowhere/switch", "--", "true")
        self.assertEqual(missing.returncode, 69)
        self.assertIn("paceline-lab-switch", missing.stderr)

    def start_marked(self, *arguments):
        marker = f"LAB_TEST={uuid.uuid4()}"
        name, value = marker.split("=")
        process = subprocess.Popen(
            [sys.executable, LAB, "run", "--hosts", "3", *arguments, "--", "sh", "-c",
             "echo started; sleep 600"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=dict(os.environ, **{name: value}))
        self.assertEqual(process.stdout.readline(), "started\n")
        self.assertGreater(len(marked(marker)), 6)
        return process, marker

    def assert_nothing_left(self, marker):
        deadline = time.monotonic() + 30
        while marked(marker) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(marked(marker), [])

    def test_nothing_is_left_after_any_end(self):
        mounts = pathlib.Path("/proc/mounts").read_text()
        names = os.listdir("/run/netns") if os.path.isdir("/run/netns") else []
        for number, code in ((signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
            for mode in ([], ["--no-mpi"]):
                with self.subTest(signal=number, mode=mode):
                    process, marker = self.start_marked(*mode)
                    process.send_signal(number)
                    self.assertEqual(process.wait(30), code)
                    process.stdout.close()
                    self.assert_nothing_left(marker)
        with self.subTest("time limit"):
            process, marker = self.start_marked("--time-limit", "3")
            self.assertEqual(process.wait(60), 124)
            process.stdout.close()
            self.assert_nothing_left(marker)
        self.assertEqual(pathlib.Path("/proc/mounts").read_text(), mounts)
        self.assertEqual(os.listdir("/run/netns") if os.path.isdir("/run/netns") else [], names)


if __name__ == "__main__":
    checked = lab("check")
    if checked.returncode != 0:
        print(checked.stderr.strip())
        sys.exit(77)
    # A sandbox may look as if it had all, and refuse namespaces.
    tried = lab("run", "--no-mpi", "--hosts", 2, "--", "true")
    if tried.returncode == 69:
        print(tried.stderr.strip())
        sys.exit(77)
    unittest.main()
