"""paceline train with ranks that share the tensors of a transformer out, beside training of the whole network."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from paceline import MPI_ENVIRONMENT, PACELINE, free_port, run

LICENCE = pathlib.Path("/usr/share/common-licenses/GPL-3")


class Tensor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def words(self, *words):
        return ["train", "--model", "gpt2-tiny", "--data", f"text:{LICENCE}", "--threads", "1", *words]

    def train(self, *words):
        return run(*self.words(*words), cwd=self.folder)

    def losses(self, name):
        events = [json.loads(line) for line in (self.folder / name).read_text().splitlines()]
        return [event["loss"] for event in events if event["event"] == "iteration"]

    def check_losses(self, name, expected):
        losses = self.losses(name)
        self.assertEqual(len(losses), len(expected))
        for ours, other in zip(losses, expected):
            self.assertAlmostEqual(ours, other, delta=1e-4)

    def test_ranks_train_the_whole_network_together(self):
        whole = self.train("--ranks", "2", "--batch", "4", "--stop-after", "6", "--metrics", "whole")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        expected = self.losses("whole")
        of_threads = self.train("--ranks", "4", "--tensor", "2", "--batch", "4", "--stop-after", "6", "--metrics", "threads")
        self.assertEqual(of_threads.returncode, 0, of_threads.stderr)
        self.assertIn("4 ranks (threads), 1 thread each, batch 4 per 2 ranks that share tensors", of_threads.stdout)
        self.check_losses("threads", expected)
        of_mpi = subprocess.run(
            ["mpirun", "--oversubscribe", "-n", "4", PACELINE,
             *self.words("--tensor", "2", "--batch", "4", "--strategy", "zero1", "--stop-after", "6", "--metrics", "mpi")],
            cwd=self.folder, capture_output=True, text=True, env=MPI_ENVIRONMENT, check=False)
        self.assertEqual(of_mpi.returncode, 0, of_mpi.stderr)
        self.check_losses("mpi", expected)
        port = free_port()
        ranks = [subprocess.Popen(
            [PACELINE, *self.words("--tensor", "2", "--batch", "8", "--stop-after", "6", "--metrics", f"tcp{rank}",
                                   "--rendezvous", f"127.0.0.1:{port}", "--ranks", "2", "--rank", str(rank))],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(2)]
        for rank in ranks:
            self.assertEqual(rank.wait(), 0, rank.communicate()[1])
        self.check_losses("tcp0", self.losses_of_one_rank())

    def losses_of_one_rank(self):
        self.train("--ranks", "1", "--batch", "8", "--stop-after", "6", "--metrics", "one")
        return self.losses("one")

    def test_a_run_goes_on_in_another_layout(self):
        one = self.train("--ranks", "1", "--batch", "8", "--stop-after", "6", "--metrics", "one")
        self.assertEqual(one.returncode, 0, one.stderr)
        first = self.train("--ranks", "4", "--tensor", "4", "--batch", "8", "--stop-after", "3", "--checkpoint", "c")
        self.assertEqual(first.returncode, 0, first.stderr)
        second = self.train("--ranks", "4", "--tensor", "2", "--batch", "4", "--strategy", "fsdp", "--resume", "c",
                            "--stop-after", "3", "--checkpoint", "d")
        self.assertEqual(second.returncode, 0, second.stderr)
        third = self.train("--ranks", "1", "--batch", "8", "--resume", "d", "--stop-after", "1", "--metrics", "third")
        self.assertEqual(third.returncode, 0, third.stderr)
        other = self.train("--ranks", "4", "--tensor", "2", "--batch", "8", "--resume", "d")
        self.assertEqual(other.returncode, 2)
        self.assertIn("its steps take 2 x 4 samples, and those of this job 2 x 8", other.stderr)

    def test_a_predicted_plan_is_run(self):
        """The plan that a prediction writes, and the timeline of its run beside it."""
        predicted = run("predict", "--model", "gpt2-tiny", "--cluster", "jizhi-p40", "--ranks", "2", "--tensor", "2",
                        "--no-sequence-parallel", "--strategy", "fused-ring", "--wire", "fp32", "--batch", "4", "--plan-out", "plan.json",
                        cwd=self.folder)
        self.assertEqual(predicted.returncode, 0, predicted.stderr)
        result = self.train("--ranks", "2", "--plan", "plan.json", "--batch", "4", "--stop-after", "8", "--timeline", "t.json")
        self.assertEqual(result.returncode, 0, result.stderr)
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        exchanges = [event for event in events if event.get("cat") == "exchange"]
        self.assertGreater(len(exchanges), 0)
        document = json.loads(run(*self.words("--ranks", "2", "--tensor", "2", "--batch", "4", "--stop-after", "1", "--json"),
                                  cwd=self.folder).stdout)
        self.assertEqual((document["ranks"], document["tensor"]), (2, 2))

    def test_what_cannot_be_shared_is_refused(self):
        run("predict", "--model", "gpt2-tiny", "--cluster", "h100-ndr", "--ranks", "2", "--tensor", "2", "--strategy", "fused-ring",
            "--plan-out", "plan.json", cwd=self.folder)
        images = ["train", "--model", "resnet-small", "--data", "synthetic", "--ranks", "2", "--tensor", "2"]
        cases = [
            (self.train("--ranks", "3", "--tensor", "2"), "--tensor: 2 ranks of a sample"),
            (self.train("--ranks", "2", "--tensor", "0"), "--tensor: '0' is not a whole number from 1 to 1024"),
            (self.train("--ranks", "8", "--tensor", "8"), "8 parts of the 4 heads"),
            (run(*images, cwd=self.folder), "--tensor: resnet-small has no attention"),
            (self.train("--ranks", "2", "--plan", "plan.json"),
             "plan.json: its layout (tensor 2 with sequence parallelism, data 1) can be predicted, not run"),
            (self.train("--ranks", "2", "--plan", "plan.json", "--tensor", "2"), "--tensor: the plan of --plan says this already"),
        ]
        for result, message in cases:
            self.assertEqual(result.returncode, 2, message + result.stdout)
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


if __name__ == "__main__":
    unittest.main()
