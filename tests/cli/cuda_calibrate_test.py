"""paceline calibrate --device cuda, end to end, on the doubles of CUDA's libraries: a device that the
double's clock describes is calibrated, and predictions use the profile.

PACELINE_DOUBLES is the folder of the doubles (tests/support/cuda_on_host).
"""

import json
import os
import pathlib
import subprocess
import unittest

from paceline import ENVIRONMENT, HANG_S, PACELINE, CommandTest, run

DOUBLES = os.environ["PACELINE_DOUBLES"]
# 20 and 22 GB/s to the device and back, 1 TB/s within it, kernels of 5 us and 1 TB/s.
CLOCK = ("host=1e-6; event=0.5e-6; bodies=0; copy host to device=10e-6+20e9; copy device to host=12e-6+22e9; copy=2e-6+1e12; "
         "all-reduce=30e-6+40e9; send=12e-6+25e9; receive=12e-6+25e9; *=5e-6+1e12")
QUICK = ("--largest", "1 MiB", "--largest-all-reduce", "1 MiB", "--time", "2 s")


def run_on_doubles(*words, devices=1, clock=CLOCK, fail=None):
    environment = {**ENVIRONMENT, "LD_LIBRARY_PATH": DOUBLES, "CUDA_ON_HOST_DEVICES": str(devices), "CUDA_ON_HOST_CLOCK": clock}
    if fail:
        environment["CUDA_ON_HOST_FAIL"] = fail
    return subprocess.run([PACELINE, *words], capture_output=True, text=True, env=environment, timeout=HANG_S)


class OnDoubles(CommandTest):
    def calibrate(self, *words, device="cuda", **how):
        out = self.folder / "p.json"
        text = self.done(run_on_doubles("calibrate", "--device", device, "--out", str(out), *QUICK, *words, **how))
        return text, json.loads(out.read_text())

    def predicted(self, *words, ranks="1"):
        said = self.done(run("predict", "--cluster", "jizhi-p40", "--ranks", ranks, "--profile", str(self.folder / "p.json"), "--json", *words))
        return json.loads(said)

    def test_the_profile_is_the_device_and_predictions_use_it(self):
        text, profile = self.calibrate("--model", "cnn-small,resnet-small", "--batch", "2,4", "--precision", "fp32,mixed",
                                       "--cluster", "jizhi-p40")
        for words in ("paceline calibrate --device cuda --model cnn-small,resnet-small --batch 2,4 --precision fp32,mixed",
                      "NVIDIA H100 80GB HBM3 (double), sm_90", "driver ", "CUDA 1", "NCCL 2", "layers by "):
            self.assertIn(words, profile["origin"])
        self.assertIn(profile["origin"] + "\n", text)
        self.assertEqual((profile["cluster"], profile["device"]), ("jizhi-p40", "p40"))
        costs = profile["device_costs"]
        self.assertAlmostEqual(costs["launch_s"]["value"] * 1e6, 5, delta=0.02)
        lines = {curve["work"] + " " + curve["type"]: curve["pieces"] for curve in costs["curves"]}
        for name, alpha_us, gb_per_s in (("host-to-device fp32", 10, 20), ("device-to-host fp32", 12, 22), ("copy fp32", 2, 1000)):
            self.assertEqual(len(lines[name]), 1)
            self.assertAlmostEqual(lines[name][0]["alpha_s"]["value"] * 1e6, alpha_us, delta=0.01 * alpha_us)
            self.assertAlmostEqual(1e-9 / lines[name][0]["beta_s_per_byte"]["value"], gb_per_s, delta=0.01 * gb_per_s)
        self.assertEqual(len(profile["checks"]), 8)
        self.assertEqual(len(profile["updates"]), 4)
        self.assertNotIn("curves", profile)
        self.assertIn("copies of 4 MiB to the host and to the device and their sums, as there is one GPU", text)
        for check in profile["checks"]:
            iteration = check["iteration_s"]
            self.assertEqual(iteration["provenance"], "measured")
            self.assertLessEqual(iteration["low"], iteration["value"])
            made = self.predicted("--model", check["network"], "--batch", str(check["batch_per_rank"]), "--precision", check["precision"],
                                  "--strategy", "fused-ring")
            row = made["strategies"][0]
            self.assertAlmostEqual(row["iteration_s"] / iteration["value"], 1, delta=0.05)
            self.assertRegex(row["compute_source"], r"^(\d+) of \1 layers and the update as calibrated in profile calibrated, alone and beside traffic$")
            self.assertEqual(made["warnings"], [])

    def test_several_gpus_have_curves_of_nccl(self):
        text, profile = self.calibrate("--model", "cnn-small", "--batch", "2", "--cluster", "jizhi-p40", devices=3)
        curves = [(curve["kind"], curve.get("library"), curve.get("wire_type"), curve["ranks"]) for curve in profile["curves"]]
        self.assertEqual(curves, [("all-reduce", "nccl", "fp32", 2), ("all-reduce", "nccl", "fp16", 2), ("point-to-point", None, None, 2),
                                  ("all-reduce", "nccl", "fp32", 3), ("all-reduce", "nccl", "fp16", 3), ("exchange", None, None, 3)])
        self.assertFalse(any(curve["between_nodes"] for curve in profile["curves"]))
        self.assertIn("NCCL's all-reduce of 4 MiB between 3 GPUs", text)
        row = self.predicted("--model", "cnn-small", "--batch", "2", "--precision", "fp32", "--strategy", "nccl", ranks="3")["strategies"][0]
        self.assertIn("its calibrated curve", row["timed_by"])
        _, alone = self.calibrate(device="cuda:1", devices=3)
        self.assertNotIn("curves", alone)
        self.assertEqual(alone["device"], "NVIDIA H100 80GB HBM3 (double)")

    def test_json_is_the_profile(self):
        out = self.folder / "p.json"
        said = self.done(run_on_doubles("calibrate", "--device", "cuda", "--out", str(out), *QUICK, "--json"))
        self.assertEqual(said, out.read_text())
        self.assertEqual(json.loads(said)["layers"], [])

    def test_what_cannot_be_is_one_line(self):
        out = ("--out", str(self.folder / "p.json"))
        for words, problem in ((("--device", "gpu"), "there is no device 'gpu'; use cpu, cuda, or cuda:N"),
                               (("--device", "cuda:1"), "there is no cuda:1: this machine has 1 CUDA device; use cuda:0 to cuda:0, or cuda"),
                               (("--precision", "fp32,half"), "--precision: unknown precision 'half'"),
                               (("--precision", "fp32,fp32"), "--precision: 'fp32' is there twice"),
                               (("--batch", "2,none"), "--batch: 'none' is not a whole number"),
                               (("--batch", "0"), "--batch: '0' is not a whole number from 1"),
                               (("--batch", "2,2"), "--batch: '2' is there twice"),
                               (("--batch", "2,"), "--batch"),
                               (("--model", "cnn-small,cnn-smal"), "cnn-smal"),
                               (("--model", "cnn-small,cnn-small"), "--model: 'cnn-small' is there twice"),
                               (("--model", "bert-large"), "--model"),
                               (("--largest", "2 KiB"), "--largest: 2 KiB is no size to calibrate a GPU with; give 1 MiB to 1 GiB"),
                               (("--time", "0 s"), "--time"),
                               (("--layers", "best"), "nothing called 'best' computes layers"),
                               (("--ranks", "2"), "--ranks: it says nothing of a GPU; leave it out"),
                               (("--threads", "2"), "--threads: it says nothing of a GPU"),
                               (("--plot", "fit"), "--plot: it says nothing of a GPU")):
            given = words if "--device" in words else ("--device", "cuda", *words)
            if "--batch" in words or "--precision" in words:
                given = (*given, "--model", "cnn-small")
            if "--threads" in words:
                given = (*given, "--model", "cnn-small")
            with self.subTest(words=words):
                self.refused(run_on_doubles("calibrate", *out, *given), problem)
        self.refused(run_on_doubles("calibrate", "--device", "cuda"), "--out is missing")
        self.refused(run_on_doubles("calibrate", "--device", "cuda", "--out", str(self.folder / "none" / "p.json")), "--out: there is no folder")
        self.assertFalse((self.folder / "p.json").exists())

    def test_a_device_that_fails_is_one_line_and_no_profile(self):
        out = self.folder / "p.json"
        for fail, problem in (("cudaMalloc:3:2", "out of memory"), ("cudaLaunchKernelExC:100:999", "unknown error"),
                              ("cudaEventElapsedTime:5:999", "cannot read the time between two CUDA events"),
                              ("ncclAllReduce:2:2", "all-reduce by NCCL")):
            result = run_on_doubles("calibrate", "--device", "cuda", "--out", str(out), *QUICK, "--model", "cnn-small", "--batch", "1",
                                    devices=2, fail=fail)
            lines = [line for line in result.stderr.splitlines() if line.startswith("paceline: ")]
            self.assertEqual((result.returncode, result.stdout, len(lines)), (1, "", 1), result.stderr)
            self.assertIn(problem, lines[0])
            self.assertFalse(out.exists())


class WithoutGpu(CommandTest):
    def test_says_in_one_line_that_there_is_none(self):
        out = ("--out", str(self.folder / "p.json"))
        self.refused(run_on_doubles("calibrate", "--device", "cuda", *out, devices=0), "--device: no CUDA device was found; use --device cpu")
        if not os.path.exists("/dev/nvidia0"):
            self.refused(run("calibrate", "--device", "cuda", *out), "--device: no CUDA device was found; use --device cpu")

    def test_the_command_alone_says_that_cuda_is_not_there(self):
        alone = self.folder / "paceline"
        os.link(PACELINE, alone) if pathlib.Path(PACELINE).stat().st_dev == self.folder.stat().st_dev else alone.write_bytes(pathlib.Path(PACELINE).read_bytes())
        alone.chmod(0o755)
        said = {}
        for words in (("calibrate", "--device", "cuda", "--out", str(self.folder / "p.json")),
                      ("train", "--model", "cnn-small", "--data", "synthetic", "--device", "cuda")):
            result = subprocess.run([str(alone), *words], capture_output=True, text=True, env=ENVIRONMENT, timeout=HANG_S)
            said[words[0]] = (result.returncode, result.stderr)
        self.assertEqual(said["calibrate"], said["train"])
        self.assertIn("the CUDA backend is not installed", said["calibrate"][1])


if __name__ == "__main__":
    unittest.main()
