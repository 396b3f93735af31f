"""paceline train --device cuda, on the doubles of CUDA's libraries and on a machine without a GPU.

PACELINE_DOUBLES is the folder of the doubles (tests/support/cuda_on_host).
"""

import json
import os
import shutil
import subprocess
import unittest

from paceline import HANG_S, PACELINE, CommandTest, run

DOUBLES = os.environ["PACELINE_DOUBLES"]
JOB = ("train", "--model", "cnn-small", "--data", "synthetic", "--batch", "4", "--epochs", "1", "--threads", "1")


def run_on_doubles(*words, launcher=()):
    environment = {**os.environ, "LD_LIBRARY_PATH": DOUBLES}
    return subprocess.run([*launcher, PACELINE, *words], capture_output=True, text=True, env=environment, timeout=HANG_S)


class OnDoubles(CommandTest):
    def losses(self, *words, on_doubles=True, **others):
        """Loss by iteration, and the start line, of a short run."""
        metrics = self.folder / "metrics.jsonl"
        call = run_on_doubles if on_doubles else run
        self.done(call(*JOB, *words, "--metrics", str(metrics), **others))
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        return [line["loss"] for line in lines if line["event"] == "iteration"], lines[0]

    def test_trains_as_the_cpu_does(self):
        for words in ((), ("--precision", "mixed", "--storage", "fp16")):
            words = (*words, "--ranks", "2", "--stop-after", "3")
            expected, start = self.losses(*words, on_doubles=False)
            self.assertEqual((start["device"], start["transport"]), ("cpu", "threads"))
            for device, transport in (("cuda", "nccl"), ("cuda:1", "threads")):
                with self.subTest(words=words, device=device):
                    made, start = self.losses(*words, "--device", device)
                    self.assertIn("(double)", start["device"])
                    self.assertEqual(start["transport"], transport)
                    self.assertEqual(len(made), 3)
                    for a, b in zip(made, expected):
                        self.assertAlmostEqual(a, b, delta=2e-3)

    def test_graphs_change_no_bit(self):
        words = ("--device", "cuda", "--ranks", "2", "--precision", "mixed", "--stop-after", "4")
        replayed, _ = self.losses(*words)
        started, _ = self.losses(*words, "--cuda-graphs", "off")
        self.assertEqual((len(replayed), replayed), (4, started))

    def test_resumes_to_the_bit(self):
        checkpoint = str(self.folder / "checkpoint")
        whole, _ = self.losses("--device", "cuda", "--stop-after", "4")
        first, _ = self.losses("--device", "cuda", "--stop-after", "2", "--checkpoint", checkpoint)
        rest, _ = self.losses("--device", "cuda", "--stop-after", "2", "--resume", checkpoint)
        self.assertEqual(first + rest[-2:], whole)

    @unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun")
    def test_ranks_of_mpirun_share_a_gpu(self):
        mpirun = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", "-x", "LD_LIBRARY_PATH")
        made, start = self.losses("--device", "cuda:0", "--stop-after", "2", launcher=mpirun)
        expected, _ = self.losses("--ranks", "2", "--stop-after", "2", on_doubles=False)
        self.assertEqual((start["transport"], len(made)), ("open-mpi", 2))
        for a, b in zip(made, expected):
            self.assertAlmostEqual(a, b, delta=1e-4)

    def test_a_gpu_that_is_not_there_is_refused(self):
        self.refused(run_on_doubles(*JOB, "--device", "cuda:8"), "there is no cuda:8: this machine has 8 CUDA devices; use cuda:0 to cuda:7")


class WithoutGpu(CommandTest):
    def test_says_in_one_line_that_there_is_none(self):
        if os.path.exists("/dev/nvidia0"):
            self.skipTest("this machine has a GPU")
        self.refused(run(*JOB, "--device", "cuda"), "--device: no CUDA device was found; use --device cpu")

    def test_other_devices_are_refused(self):
        self.refused(run(*JOB, "--device", "gpu"), "there is no device 'gpu'; use cpu, cuda, or cuda:N")
        self.refused(run(*JOB, "--device", "cuda:x"), "'x' is not a whole number")
        self.refused(run(*JOB, "--device", "cuda:-1"), "--device")

    def test_graphs_are_on_or_off_and_of_a_gpu(self):
        self.refused(run(*JOB, "--cuda-graphs", "on"), "--cuda-graphs: a CPU has none; leave it out, or add --device cuda")
        self.refused(run(*JOB, "--device", "cuda", "--cuda-graphs", "yes"), "--cuda-graphs: 'yes' is neither; give on or off")

    def test_version_says_what_it_was_built_with(self):
        self.assertRegex(self.done(run("--version")), r"^paceline [\d.]+\nwith CUDA [\d.]+, with(out)? NCCL, ")


if __name__ == "__main__":
    unittest.main()
