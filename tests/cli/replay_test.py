"""paceline replay, end to end, on threads: what it prints and writes, and what it refuses."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from paceline import EXAMPLES, HANG_S, MPI_ENVIRONMENT, PACELINE, run


class Replay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cluster = self.folder / "two-cores.yaml"
        shutil.copy(EXAMPLES / "two-cores.yaml", self.cluster)

    def replay(self, *words, **changes):
        options = {"model": "cnn-small", "cluster": str(self.cluster), "ranks": "2", "batch": "2", "precision": "fp32",
                   "strategy": "ring", "iterations": "2"}
        options.update(changes)
        return run("replay", *(word for name, value in options.items() for word in (f"--{name}", value)), *words)

    def test_what_ran_stands_beside_its_prediction(self):
        timeline = self.folder / "run.json"
        result = self.replay("--json", "--timeline", str(timeline))
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual((document["schema"], document["ranks"], document["transport"]), ("paceline.replay/1", 2, "threads"))
        strategy = document["strategies"][0]
        self.assertEqual((strategy["name"], len(strategy["measured"]["iterations_s"])), ("ring", 2))
        error = strategy["predicted"]["iteration_s"] / strategy["measured"]["iteration_s"] - 1
        self.assertAlmostEqual(strategy["relative_error"], error, delta=1e-9)
        self.assertEqual(json.loads(timeline.read_text())["otherData"]["provenance"], "measured")

    def test_the_table_says_what_is_measured_and_what_is_predicted(self):
        result = self.replay()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("\nMeasured on rank 0: ", result.stdout)
        self.assertIn("\nPredicted before the run: ", result.stdout)

    def test_input_is_checked(self):
        network = self.folder / "net.yaml"
        shutil.copy(EXAMPLES / "tiny-net.yaml", network)
        for words, changes, problem in (
                ((), {"iterations": "0"}, "--iterations: '0' is not a whole number from 1 to 100000"),
                (("--warm-up", "-1"), {}, "--warm-up: '-1' is not a whole number"), ((), {"batch": "1048577"}, "--batch: "),
                ((), {"ranks": "3"}, "--ranks: 3 ranks do not fit cluster two-cores"), ((), {"model": "nosuch"}, "unknown network 'nosuch'"),
                ((), {"model": "cnn-small,resnet-small"}, "--model: 2 networks; replay one"),
                (("--overlap", "priority"), {}, "--overlap: priority cannot be run"),
                (("--timeline", "t.json"), {"strategy": "ring,fused-ring"}, "--timeline: several runs and one timeline"),
                (("--timeline", str(self.cluster)), {}, f"--timeline: {self.cluster} is --cluster too"),
                (("--timeline", str(network)), {"model": str(network)}, f"--timeline: {network} is --model too"),
                (("--timeline", "/nowhere/t.json"), {}, "--timeline: there is no folder /nowhere")):
            with self.subTest(words=words, changes=changes):
                result = self.replay(*words, **changes)
                self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), result.stderr)
                self.assertIn(problem, result.stderr)
        for path in (self.cluster, network):
            self.assertNotIn("traceEvents", path.read_text())

    def test_what_cannot_run_is_refused_before_anything_runs(self):
        # The first strategy would run for an hour.
        hour = {"strategy": "ring,open-mpi", "iterations": "100000", "batch": "4096"}
        result = self.replay(**hour)
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (2, "", "paceline: --strategy: open-mpi is a library's own all-reduce, which a job of threads does not have; "
                                 "choose a strategy with a schedule, such as fused-ring\n"))
        words = ("replay", "--model", "cnn-small", "--cluster", str(self.cluster), "--batch", "4096", "--strategy", "ring,open-mpi",
                 "--iterations", "100000", "--wire", "fp16", "--json")
        result = subprocess.run(["mpirun", "--oversubscribe", "-n", "2", PACELINE, *words], capture_output=True, text=True, timeout=HANG_S,
                                env=MPI_ENVIRONMENT)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stdout, "")
        self.assertIn("paceline: --wire: open-mpi adds no fp16; choose --wire fp32, or a strategy with a schedule\n", result.stderr)


if __name__ == "__main__":
    unittest.main()
