"""paceline train --device cuda, on the doubles of CUDA's libraries and on a machine without a GPU.

PACELINE_DOUBLES is the folder of the doubles (tests/support/cuda_on_host).
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

from paceline import HANG_S, PACELINE, CommandTest, free_port, run

DOUBLES = os.environ["PACELINE_DOUBLES"]
JOB = ("train", "--model", "cnn-small", "--data", "synthetic", "--batch", "4", "--epochs", "1", "--threads", "1")


MEETS = ", without libsodium" not in run("--version").stdout  # ranks as processes
HAS_CUDNN = os.path.exists(os.path.join(DOUBLES, "libcudnn.so.9"))
CACHE = tempfile.TemporaryDirectory(prefix="paceline-cache-")  # of cuDNN's plans, in place of the user's


def run_on_doubles(*words, launcher=(), doubles=DOUBLES, **variables):
    environment = {**os.environ, "LD_LIBRARY_PATH": doubles, "XDG_CACHE_HOME": CACHE.name, **variables}
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

    @unittest.skipUnless(HAS_CUDNN, "built without cuDNN")
    def test_layers_are_computed_by_what_is_asked_for(self):
        losses = {}
        for layers, by in (("auto", "cuDNN 9"), ("cudnn", "cuDNN 9"), ("own", "own kernels")):
            made, start = self.losses("--device", "cuda", "--layers", layers, "--stop-after", "2")
            self.assertIn("layers by " + by, start["device"])
            losses[layers] = made
        self.assertEqual(losses["auto"], losses["cudnn"])
        self.assertNotEqual(losses["auto"], losses["own"])
        for a, b in zip(losses["auto"], losses["own"]):
            self.assertAlmostEqual(a, b, delta=2e-3)

    @unittest.skipUnless(HAS_CUDNN, "built without cuDNN")
    def test_plans_are_kept_in_the_file_that_is_given(self):
        plans = self.folder / "plans.json"
        words = (*JOB, "--device", "cuda", "--layer-plans", str(plans), "--stop-after", "1")
        self.assertEqual(run_on_doubles(*words).stderr, "")
        sound = plans.read_text()
        self.assertIn("paceline.cudnn-plans/1", sound)
        plans.write_text(sound[:1000])
        done = run_on_doubles(*words)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^paceline: warning: [^\n]*plans.json[^\n]*made anew\n$")
        self.assertEqual(plans.read_text(), sound)

    @unittest.skipUnless(HAS_CUDNN, "built without cuDNN")
    def test_own_kernels_stand_in_for_a_cudnn_that_is_not_there(self):
        doubles = self.folder / "doubles"
        doubles.mkdir()
        for name in ("libcudart.so.13", "libnccl.so.2"):
            (doubles / name).symlink_to(os.path.join(DOUBLES, name))
        (doubles / "libcudnn.so.9").symlink_to(os.path.join(DOUBLES, "libcudart.so.13"))  # of other functions
        words = (*JOB, "--device", "cuda", "--stop-after", "1")
        done = run_on_doubles(*words, doubles=str(doubles))
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^paceline: warning: layers are computed by kernels of our own[^\n]*: cuDNN cannot be loaded: [^\n]*\n$")
        self.assertIn("layers by own kernels", done.stdout)
        self.refused(run_on_doubles(*words, "--layers", "cudnn", doubles=str(doubles)), "cuDNN cannot be loaded")

    @unittest.skipUnless(HAS_CUDNN, "built without cuDNN")
    def test_own_kernels_stand_in_where_cudnn_has_no_plan(self):
        words = (*JOB, "--device", "cuda", "--stop-after", "1", "--layer-plans", str(self.folder / "plans.json"))
        fails = {"CUDA_ON_HOST_FAIL": "cudnnBackendCreateDescriptor:5:4000"}  # of the first graph
        done = run_on_doubles(*words, **fails)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^paceline: warning: layers are computed by kernels of our own, which are slow: cannot [^\n]*\n$")
        self.assertIn("layers by own kernels", done.stdout)
        done = run_on_doubles(*words, "--layers", "cudnn", **fails)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^paceline: cannot [^\n]*\n$")

    def test_resumes_to_the_bit(self):
        checkpoint = str(self.folder / "checkpoint")
        whole, _ = self.losses("--device", "cuda", "--stop-after", "4")
        first, _ = self.losses("--device", "cuda", "--stop-after", "2", "--checkpoint", checkpoint)
        rest, _ = self.losses("--device", "cuda", "--stop-after", "2", "--resume", checkpoint)
        self.assertEqual(first + rest[-2:], whole)

    def start_rank(self, rank, ranks, port, *words):
        environment = {**os.environ, "LD_LIBRARY_PATH": DOUBLES, "CUDA_ON_HOST_RANKS": str(self.folder / "boards")}
        place = ("--rendezvous", f"127.0.0.1:{port}", "--ranks", str(ranks), "--rank", str(rank), "--device", "cuda")
        metrics = ("--metrics", str(self.folder / "ranks.jsonl")) if rank == 0 else ()
        return subprocess.Popen([PACELINE, *JOB, *place, *metrics, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment)

    @unittest.skipUnless(MEETS, "built without libsodium")
    def test_ranks_as_processes_have_the_bits_of_threads(self):
        for ranks, words in ((2, ()), (3, ("--strategy", "hierarchical", "--precision", "mixed")), (4, ("--strategy", "nccl", "--wire", "fp16"))):
            with self.subTest(ranks=ranks, words=words):
                words = (*words, "--stop-after", "3")
                expected, _ = self.losses("--device", "cuda", "--ranks", str(ranks), *words)
                port = free_port()
                for process in [self.start_rank(rank, ranks, port, *words) for rank in range(ranks)]:
                    out, err = process.communicate(timeout=HANG_S)
                    self.assertEqual((process.returncode, err), (0, ""))
                start, *lines = [json.loads(line) for line in (self.folder / "ranks.jsonl").read_text().splitlines()]
                self.assertEqual(start["transport"], "nccl")
                self.assertEqual([line["loss"] for line in lines if line["event"] == "iteration"], expected)
                self.assertEqual(len(expected), 3)

    @unittest.skipUnless(MEETS, "built without libsodium")
    def test_a_killed_rank_ends_the_others_with_its_number(self):
        port = free_port()
        processes = [self.start_rank(rank, 3, port, "--patience", "60 s") for rank in range(3)]
        metrics = self.folder / "ranks.jsonl"
        while not metrics.exists() or metrics.read_text().count("\n") < 3:
            self.assertEqual([process.poll() for process in processes], [None, None, None])
            time.sleep(0.01)
        processes[1].kill()  # its child, which trains, dies with it
        results = [(process.communicate(timeout=HANG_S)[1], process.returncode) for process in processes]
        for rank in (0, 2):
            err, code = results[rank]
            self.assertEqual((code, err.count("\n")), (1, 1), err)
        said = results[0][0] + results[2][0]
        self.assertTrue("rank 1 is gone" in said or "rank 1: it is gone" in said or "rank 1 has died" in said, said)

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

    def test_layers_of_other_devices_are_refused(self):
        self.refused(run(*JOB, "--layers", "own"), "--layers: layers are computed by the CPU; add --device cuda")
        self.refused(run(*JOB, "--layer-plans", "plans.json"), "--layer-plans: layers are computed by the CPU")
        self.refused(run(*JOB, "--device", "cuda", "--layers", "cublas"), "use auto, cudnn or own")
        self.refused(run(*JOB, "--device", "cuda", "--layers", "own", "--layer-plans", "f"), "own kernels have no plans")

    def test_version_says_what_it_was_built_with(self):
        self.assertRegex(self.done(run("--version")), r"^paceline [\d.]+\nwith CUDA [\d.]+, with(out)? NCCL, ")


if __name__ == "__main__":
    unittest.main()
