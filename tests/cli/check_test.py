"""paceline check, end to end: what was measured beside what is expected, the part that explains a gap, and an exit
code.
"""

import json
import unittest

from nccl_tests_output import written
from paceline import EXAMPLES, SOURCE, CommandTest, run

IMPORTS = SOURCE / "tests" / "golden" / "imports"
JOB = ("--model", "llama-3-8b", "--cluster", "h100-ndr", "--ranks", "16", "--batch", "1", "--strategy", "fsdp")
TWO_CORES = str(EXAMPLES / "two-cores.yaml")
LITTLE = ("--model", "cnn-small", "--cluster", TWO_CORES, "--ranks", "2", "--batch", "16", "--precision", "fp32", "--strategy", "fused-ring")
SLOW = "paceline: cannot pass this check: the verdict says why\n"


def trace(steps, computes_us, exposed_us, loads_us=0, idle_us=0):
    """A trace of torch.profiler: a data loader, a kernel, an all-gather beside and behind it, and nothing."""
    events = []
    now = 1e12
    for step in range(steps):
        begin = now
        if loads_us:
            events.append({"ph": "X", "cat": "user_annotation", "name": "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "pid": 1, "tid": 1, "ts": now, "dur": loads_us})
        now += loads_us
        of = {"External id": step + 1, "Sequence number": step + 1}
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": now, "dur": 5, "args": of})
        events.append({"ph": "X", "cat": "kernel", "name": "sm90_gemm", "pid": 0, "tid": 7, "ts": now, "dur": computes_us, "args": {**of, "correlation": 2 * step + 1}})
        events.append({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", "pid": 0, "tid": 20, "ts": now + computes_us - 1000, "dur": 1000 + exposed_us, "args": {"correlation": 2 * step + 2}})
        now += computes_us + exposed_us + idle_us
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step + 2}", "pid": 1, "tid": 1, "ts": begin, "dur": now - begin})
    return json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events})


class Check(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        result = run("predict", *JOB, "--json")
        cls.expected = json.loads(result.stdout)["strategies"][0]["iteration_s"]

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def log(self, factor, name="train.log"):
        tps = 8192 / (factor * self.expected)
        return self.file(name, "".join(f"[titan] step: {step}  loss: 7.9  tps: {tps:,.2f}  mfu: 40.0%\n" for step in range(20)))

    def trace(self, *parts):
        return self.file("trace.json", trace(4, *(1e6 * self.expected * part for part in parts)))

    def perf(self, cluster="h100-ndr"):
        """What all_reduce_perf would print on a cluster that is as predicted."""
        sizes = [1 << 16, 1 << 22, 1 << 28]
        document = json.loads(self.done(run("time", "nccl", "--cluster", cluster, "--ranks", "16", "--size", ",".join(map(str, sizes)), "--json")))
        rows = [(size, 1e6 * row["times"][0]["time_s"]) for size, row in zip(sizes, document["sizes"])]
        return self.file("perf.txt", written(rows).replace("H200", "H100"))

    def slow(self, *words):
        result = run("check", *words)
        self.assertEqual((result.returncode, result.stderr), (1, SLOW))
        return result.stdout

    def test_a_log_as_expected_is_said_to_be_so(self):
        text = self.done(run("check", self.log(1), *JOB))
        self.assertRegex(text, r"llama-3-8b by fsdp on 16 ranks of h100-ndr\nexpected: \d+ tokens/s a rank, MFU [\d.]+ %\nmeasured: \d+ tokens/s a rank, MFU [\d.]+ %\n")
        self.assertRegex(text, r"(?m)^iteration .* 1\.00 x  inside")
        self.assertRegex(text, r"\nas expected: an iteration takes [\d.]+ m?s, 1 times the expected [\d.]+ m?s \([^)]+\)\n$")
        document = json.loads(self.done(run("check", self.log(1), *JOB, "--json")))
        self.assertEqual((document["is_slow"], document["iteration"]["verdict"]), (False, "inside"))
        self.assertAlmostEqual(document["gap_s"], 0, places=4)

    def test_a_slow_log_exits_with_1_and_says_what_to_measure_next(self):
        text = self.slow(self.log(3), *JOB)
        self.assertIn("slower than expected: an iteration takes", text)
        self.assertIn("a trace of torch.profiler of some iterations tells", text)
        self.assertIn("nccl-tests over the same ranks tells", text)
        result = run("check", self.log(3), *JOB, "--json")
        self.assertEqual(result.returncode, 1)
        self.assertTrue(json.loads(result.stdout)["is_slow"])

    def test_the_limit_is_the_interval_or_a_share(self):
        self.done(run("check", self.log(1.2), *JOB))
        self.done(run("check", self.log(1.2), *JOB, "--fail-slower", "interval"))
        self.done(run("check", self.log(1.2), *JOB, "--fail-slower", "25%"))
        self.slow(self.log(1.2), *JOB, "--fail-slower", "15%")

    def test_the_part_of_a_trace_that_explains_the_gap_is_named(self):
        for part, parts in (("computation", (3, 0.05)), ("exposed communication", (0.9, 2)), ("waiting for input", (0.9, 0.05, 2)), ("waiting for the host", (0.9, 0.05, 0, 2))):
            with self.subTest(part):
                text = self.slow(self.trace(*parts), *JOB)
                self.assertRegex(text, rf"slower than expected: .*; {part} explains \d+ % of the gap")
                self.assertIn("\nwhat explains the gap:\n", text)

    def test_nccl_tests_tell_one_nic_of_eight(self):
        perf = self.perf(self.file("one.yaml", "cluster: one\nsource: a test\nnodes: 2\nranks_per_node: 8\ndevice: h100\nintra: nvlink4\nnic: {base: infiniband-ndr, count: 1, distance: pix}\n"))
        text = self.slow(perf, "--cluster", "h100-ndr")
        self.assertIn("traffic leaves a node by 1 of its 8 NICs", text)
        self.assertRegex(text, r"as if links had 0\.1\d* of their bandwidth, and the smallest takes")
        both = self.slow(self.log(4), perf, *JOB)
        self.assertRegex(both, r"(?m)of .*: the pace of all-reduces \(predicted with links as they are, .*perf.txt\)")
        self.assertIn("traffic leaves a node by 1 of its 8 NICs", both.splitlines()[-1])

    def test_collectives_as_expected_pass(self):
        text = self.done(run("check", self.perf(), "--cluster", "h100-ndr"))
        self.assertIn("\nas expected: the slowest beside its expectation, all-reduce of ", text)

    def test_a_topology_without_nvlink_is_said(self):
        topology = str(IMPORTS / "nvidia_topo" / "550-pcie.txt")
        text = self.slow(topology, *JOB)
        self.assertIn("GPUs reach each other over PCI Express, not NVLink", text)
        self.assertIn("the state of the links (predicted with links as they are", text)
        self.done(run("check", str(IMPORTS / "nvidia_topo" / "570-h100-underlined.txt"), "--cluster", "h100-ndr"))

    def test_without_files_it_measures_here(self):
        result = run("check", *LITTLE, "--time", "1s")
        self.assertIn(result.returncode, (0, 1), result.stderr)  # on a busy machine it may be slow
        self.assertRegex(result.stdout, r"(?m)^computation ")
        self.assertRegex(result.stdout.splitlines()[-1], r"expected: an iteration takes ")

    def profile(self, name, factor):
        """A profile of cnn-small whose layers take this many milliseconds in each direction."""
        figure = {"value": factor * 1e-3, "low": factor * 0.99e-3, "high": factor * 1.01e-3, "provenance": "measured", "source": "a test"}
        layers = [{"network": "cnn-small", "precision": "fp32", "batch_per_rank": 16, "layer": layer["name"], "forward_s": figure, "backward_s": figure}
                  for layer in json.loads(run("show", "network", "cnn-small", "--json").stdout)["layers"]]
        return self.file(name, json.dumps({"schema": "paceline.profile/1", "name": "made-up", "cluster": "two-cores", "device": "one-core", "origin": "a test", "layers": layers}))

    def test_a_machine_slower_than_its_profile_is_told(self):
        before, now = self.profile("before.json", 1), self.profile("now.json", 20)
        text = self.slow(now, *LITTLE, "--profile", before)
        self.assertRegex(text.splitlines()[-1], r"slower than expected: .*; computation explains (9\d|100) % of the gap")
        self.done(run("check", now, *LITTLE, "--profile", now))

    def test_a_run_of_ours_is_checked_by_its_timeline(self):
        timeline = str(self.folder / "run.json")
        self.done(run("train", "--model", "cnn-small", "--data", "synthetic", "--ranks", "2", "--batch", "16", "--stop-after", "6", "--timeline", timeline))
        text = run("check", timeline, *LITTLE).stdout
        for part in ("iteration", "computation", "exposed communication", "waiting for input"):
            self.assertRegex(text, rf"(?m)^{part} ")

    def test_bad_input_is_one_line(self):
        log = self.log(1)
        self.refused(run("check", log), "paceline: --cluster is missing")
        self.refused(run("check", "--cluster", "h100-ndr"), "paceline: there is nothing to check; give files of what was measured")
        self.refused(run("check", log, "--cluster", "h100-ndr"), "paceline: --model is missing")
        self.refused(run("check", log, *JOB[:-2]), "paceline: --strategy: it is not said what the job runs; give one strategy")
        self.refused(run("check", log, *JOB, "--fail-slower", "fast"), "--fail-slower")
        self.refused(run("check", log, *JOB, "--collective", "sum"), "--collective")
        self.refused(run("check", "/nowhere.log", *JOB), "/nowhere.log: ")
        self.refused(run("check", self.file("empty.log", ""), *JOB), "empty.log: there is nothing in this file")
        self.refused(run("check", self.file("words.log", "nothing of note\n"), *JOB), "words.log: this is the output of no tool that is known here")
        self.refused(run("check", log, "--model", "resnet50", *JOB[2:]), "it counts tokens (tps), and resnet50 reads none; give the --model of the run")
        self.refused(run("check", self.perf(), "--cluster", "gb200-nvl72"), "16 ranks of gb200-nvl72 are on 4 hosts, and those of")
        osu = str(IMPORTS / "osu" / "7.3-allreduce-full.txt")
        self.refused(run("check", osu, "--cluster", TWO_CORES, "--ranks", "2"), "nothing says how long an all-reduce takes on two-cores, whose ranks do not run NCCL; give --profile")
        self.refused(run("check", self.file("cpu.json", trace(2, 1, 1).replace('"kernel"', '"cpu_op"')), *JOB), "cpu.json: it has no kernels of a GPU; trace with ProfilerActivity.CUDA, too")


if __name__ == "__main__":
    unittest.main()
