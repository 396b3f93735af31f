"""The command, end to end, as a user runs it: what it prints, where, and with which exit code.

README.md is a test too: every console block that starts with "$ paceline" is run and compared.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

PACELINE = os.environ["PACELINE"]
SOURCE = pathlib.Path(os.environ["PACELINE_SOURCE"])
EXAMPLES = SOURCE / "docs" / "examples"


def run(*words, cwd=None, stdout=subprocess.PIPE):
    return subprocess.run([PACELINE, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=cwd, timeout=60)


# Strategies of all kinds, but for those whose flows take seconds to follow over 1,024 ranks.
QUICK = "ring,fused-ring,halving-doubling,hierarchical,hybrid,torus-2d,no-overlap"


def predict(*words, model="resnet50", cluster="jizhi-p40", ranks="1024"):
    if "--strategy" not in words:
        words = (*words, "--strategy", QUICK)
    return run("predict", "--model", model, "--cluster", cluster, "--ranks", ranks, *words)


class Prediction(unittest.TestCase):
    def test_json_is_one_document_with_the_promised_keys(self):
        result = predict("--json", "--strategy", "all")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        document = json.loads(result.stdout)
        self.assertEqual(document["schema"], "paceline.prediction/1")
        for key in ("model", "cluster", "ranks", "batch_per_rank", "precision", "engine", "strategies"):
            self.assertIn(key, document)
        names = [row["name"] for row in document["strategies"]]
        self.assertEqual(names[:5], ["ring", "fused-ring", "halving-doubling", "hierarchical", "hybrid"])
        catalogue = json.loads(run("show", "catalog", "--json").stdout)["strategies"]
        # Open MPI's own all-reduce is known from a calibrated curve only.
        self.assertEqual(names, [entry["name"] for entry in catalogue if entry["name"] != "open-mpi"])
        for row in document["strategies"]:
            for key in ("iteration_s", "iteration_low_s", "iteration_high_s", "throughput_per_s", "efficiency", "efficiency_baseline_ranks",
                        "compute_s", "exposed_communication_s", "communication_s", "buckets", "wire_type", "compute_source"):
                self.assertIn(key, row)
            self.assertLessEqual(row["iteration_low_s"], row["iteration_s"])
            self.assertLessEqual(row["iteration_s"], row["iteration_high_s"])
            parts = row["compute_s"] + row["exposed_communication_s"] + row["input_wait_s"]
            self.assertAlmostEqual(parts, row["iteration_s"], delta=1e-9)
            self.assertAlmostEqual(row["throughput_per_s"], 1024 * 64 / row["iteration_s"], delta=1e-3)
        ring = document["strategies"][0]
        self.assertEqual(ring["buckets"], 161)
        self.assertEqual(ring["wire_type"], "fp16")

    def test_a_calibrated_prediction_says_so(self):
        self.assertIn("calibrated throughput 218 samples/s of profile jizhi-p40", predict().stdout)
        self.assertIn("roofline of p40", predict("--profile", "none").stdout)

    def test_wire_types_and_strategies_can_be_chosen(self):
        rows = json.loads(predict("--json", "--strategy", "ring,hybrid", "--wire", "fp32,fp16").stdout)["strategies"]
        self.assertEqual([(r["name"], r["wire_type"]) for r in rows], [("ring", "fp32"), ("hybrid", "fp32"), ("ring", "fp16"), ("hybrid", "fp16")])
        self.assertLess(rows[2]["iteration_s"], rows[0]["iteration_s"])

    def test_thresholds_are_taken(self):
        rows = json.loads(predict("--json", "--strategy", "hybrid", "--theta", "4MiB", "--eta", "1 MB", "--group", "32").stdout)["strategies"]
        self.assertEqual(rows[0]["thresholds"], {"theta_bytes": 4194304.0, "eta_bytes": 1e6, "group": 32})

    def test_several_networks_are_one_document(self):
        document = json.loads(predict("--json", model="resnet50,alexnet").stdout)
        self.assertEqual([p["model"] for p in document["predictions"]], ["resnet50", "alexnet"])

    def test_files_of_ones_own(self):
        result = predict("--json", model=str(EXAMPLES / "tiny-net.yaml"), cluster=str(EXAMPLES / "lab.yaml"), ranks="128")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual((document["model"], document["cluster"], document["profile"]), ("tiny-net", "lab", None))

    def test_two_runs_print_the_same(self):
        self.assertEqual(predict("--json").stdout, predict("--json").stdout)


class Stragglers(unittest.TestCase):
    JOB = ("--strategy", "fused-ring,hybrid", "--theta", "8MiB")

    def document(self, *words, ranks="64"):
        result = predict("--json", *self.JOB, *words, ranks=ranks)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def test_without_options_there_are_no_columns(self):
        document = self.document()
        self.assertNotIn("stragglers", document)
        self.assertNotIn("iteration_mean_s", document["strategies"][0])
        self.assertNotIn("p99", predict(*self.JOB, ranks="64").stdout)

    def test_a_constant_spread_is_the_prediction_without(self):
        for words in (("--spread", "constant"), ("--spread", "normal:0"), ("--backup", "3"), ("--slow-node", "1=1")):
            for row, before in zip(self.document(*words)["strategies"], self.document()["strategies"]):
                for key in ("iteration_mean_s", "iteration_p50_s", "iteration_p99_s"):
                    self.assertAlmostEqual(row[key], before["iteration_s"], delta=1e-12)
                self.assertEqual(row["iteration_stderr_s"], 0)
                self.assertEqual(row["iteration_s"], before["iteration_s"])

    def test_json_has_the_promised_keys(self):
        document = self.document("--spread", "log-normal:0.1", "--slow-rank", "5=1.5,7=2", "--slow-node", "2=0.5", "--backup", "4",
                                 "--iterations", "200", "--seed", "7")
        self.assertEqual(document["stragglers"], {"spread": "log-normal:0.1", "slow_ranks": {"5": 1.5, "7": 2}, "slow_nodes": {"2": 0.5},
                                                  "backup": 4, "monte_carlo_iterations": 200, "seed": 7})
        for row in document["strategies"]:
            self.assertLess(row["iteration_s"], row["iteration_p50_s"])
            ordered = [row[f"iteration_{key}_s"] for key in ("p50_low", "p50", "p50_high", "p99_low", "p99", "p99_high")]
            self.assertEqual(ordered, sorted(ordered))
            self.assertGreater(row["iteration_stderr_s"], 0)
            self.assertEqual(row["counted_ranks"], 60)
            self.assertAlmostEqual(row["throughput_mean_per_s"], 60 * 64 / row["iteration_mean_s"], delta=1e-6)

    def test_seeds_reproduce(self):
        words = ("--spread", "log-normal:0.1", "--iterations", "100")
        self.assertEqual(self.document(*words), self.document(*words))
        self.assertEqual(self.document(*words), self.document(*words, "--seed", "1"))
        means = [self.document(*words, "--seed", seed)["strategies"][0]["iteration_mean_s"] for seed in ("1", "2")]
        self.assertNotEqual(*means)

    def test_slow_ranks_are_waited_for_unless_they_are_backup(self):
        def mean(*words):
            return self.document(*words)["strategies"][0]["iteration_mean_s"]
        alone, slow = mean("--spread", "constant"), mean("--slow-rank", "9=2")
        self.assertAlmostEqual(slow / alone, 2, delta=0.02)
        self.assertAlmostEqual(mean("--slow-rank", "9=2", "--backup", "1"), alone, delta=1e-12)

    def test_backup_workers_trade_gradients_for_time(self):
        """The guide's 96 + 4: of 100 ranks, an update waits for 96."""
        rows = [self.document("--spread", "log-normal:0.1", "--backup", backup, ranks="100")["strategies"][0] for backup in ("0", "4", "50")]
        self.assertGreater(rows[0]["iteration_mean_s"], rows[1]["iteration_mean_s"])
        self.assertGreater(rows[1]["iteration_mean_s"], rows[2]["iteration_mean_s"])
        self.assertEqual(max(rows, key=lambda row: row["throughput_mean_per_s"]), rows[1])

    def test_a_file_of_times_is_drawn_from(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "times.txt"
            path.write_text("# ms of one rank's iterations\n300\n300\n300\n500\n")
            row = self.document("--spread", f"file:{path}", ranks="64")["strategies"][0]
            self.assertAlmostEqual(row["iteration_mean_s"] / row["iteration_s"], 500 / 350, delta=0.01)
            self.assertIn("(4 samples)", predict(*self.JOB, "--spread", f"file:{path}", ranks="64").stdout)
            path.write_text("300\n-1\n")
            result = predict(*self.JOB, "--spread", f"file:{path}", ranks="64")
            self.assertEqual((result.returncode, result.stderr), (2, f"paceline: {path}:2: '-1' is not a number from 1e-12 to 1000000000000\n"))

    def test_the_table_says_what_it_shows(self):
        text = predict("--strategy", "fused-ring,nccl", "--spread", "log-normal:0.1", "--slow-rank", "5=1.5", "--slow-node", "2=0.5", "--backup", "4",
                       ranks="100").stdout
        self.assertRegex(text, r"mean ± stderr +p50 +p99 +mean throughput")
        for line in ("mean, p50, p99: 1000 simulated iterations (seed 1), compute times log-normal:0.1, slow ranks 5=1.5; all other columns are without them\n",
                     "slow nodes, in every column of ours: 2=0.5 of the NICs' bandwidth\n",
                     "backup workers: an update waits for the first 96 of 100 gradients; all-reduces run over all 100 ranks\n",
                     "mean throughput: 6144 samples in the mean iteration\n"):
            self.assertIn(line, text)

    def test_what_is_wrong_is_one_line(self):
        for words, message in (
                (("--spread", "lognormal:1"), "--spread: unknown spread 'lognormal'; did you mean 'log-normal'?"),
                (("--spread", "normal:2"), "--spread: '2' is not a number from 0 to 1"),
                (("--spread", "file:none.txt"), "none.txt: no such file; give the path of a file that exists"),
                (("--slow-rank", "3"), "--slow-rank: '3' has no =; write it as in --slow-rank 3=2"),
                (("--slow-rank", "3=0.5"), "--slow-rank: '0.5' is not a number from 1 to 1000"),
                (("--slow-rank", "64=2"), "--slow-rank: '64' is not a whole number from 0 to 63"),
                (("--slow-rank", "3=2,3=4"), "--slow-rank: 3 is named twice; name each once"),
                (("--slow-node", "8=0.5"), "--slow-node: '8' is not a whole number from 0 to 7"),
                (("--slow-node", "1=0"), "--slow-node: '0' is not a number from 0.001 to 1"),
                (("--backup", "64"), "--backup: 64 backup ranks among 64 leave none to wait for; choose 0 to 63: --ranks counts the backup ranks, too"),
                (("--iterations", "10"), "--iterations: nothing varies from iteration to iteration; give --spread, --slow-rank, --slow-node or --backup, too"),
                (("--spread", "constant", "--iterations", "1"), "--iterations: '1' is not a whole number from 2 to 1000000"),
                (("--spread", "constant", "--seed", "x"), "--seed: 'x' is not a whole number from 0 to 9007199254740992")):
            result = predict(*self.JOB, *words, ranks="64")
            self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", f"paceline: {message}\n"))


class Timeline(unittest.TestCase):
    def test_it_is_a_chrome_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "timeline.json"
            result = predict("--timeline", str(path), "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            json.loads(result.stdout)
            trace = json.loads(path.read_text())
            tracks = {e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
            self.assertLessEqual({"copy engine", "compute stream", "communication stream"}, tracks)
            self.assertEqual(os.listdir(folder), ["timeline.json"])

    def test_what_cannot_be_written_fails_with_nothing_left(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (folder, folder + "/no/such/folder/t.json"):
                result = predict("--timeline", path)
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stderr.count("\n"), 1)
                self.assertRegex(result.stderr, r"^paceline: cannot write ")
            self.assertEqual(os.listdir(folder), [])

    def test_a_link_stays_a_link(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink("target.json", folder + "/link.json")
            pathlib.Path(folder, "target.json").write_text("old")
            self.assertEqual(predict("--timeline", folder + "/link.json").returncode, 0)
            self.assertTrue(os.path.islink(folder + "/link.json"))
            json.loads(pathlib.Path(folder, "target.json").read_text())

    def test_a_full_disk_is_a_failure(self):
        self.assertEqual(predict("--timeline", "/dev/full").returncode, 1)
        with open("/dev/full", "w") as full:
            result = run("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "8", stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write to standard output", result.stderr)


class Documentation(unittest.TestCase):
    def test_the_algorithms_are_those_of_the_catalogue(self):
        self.assertEqual((SOURCE / "docs" / "algorithms.md").read_text(), run("show", "schedules").stdout,
                         "write it anew: paceline show schedules > docs/algorithms.md")
class Topology(unittest.TestCase):
    def times(self, *words, **where):
        rows = json.loads(predict("--json", "--strategy", "ring,halving-doubling", *words, **where).stdout)
        return [row["communication_s"] for row in rows["strategies"]]

    def test_placement_is_told_by_name_list_and_file(self):
        node_major = self.times(ranks="32")
        dealt = self.times("--placement", "round-robin", ranks="32")
        self.assertGreater(dealt[0], 1.5 * node_major[0], "eight messages of a ring leave each node")
        slots = [rank % 4 * 8 + rank // 4 for rank in range(32)]
        self.assertEqual(self.times("--placement", ",".join(map(str, slots)), ranks="32"), dealt)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "slots.txt"
            path.write_text("# slot of each rank\n" + "\n".join(map(str, slots)) + "\n")
            self.assertEqual(self.times("--placement", str(path), ranks="32"), dealt)

    def test_placements_that_are_wrong_are_one_line(self):
        for placement, message in (("round", "paceline: --placement: unknown placement 'round'; did you mean 'round-robin'?"),
                                   ("0,0", "paceline: --placement: slot 0 stands twice; a slot holds one rank"),
                                   ("0,99999", "paceline: --placement: '99999' is not a whole number from 0 to 2047"),
                                   ("0,1", "paceline: --ranks: 32 ranks, and the placement lists slots for 2; choose 1 to 2, or list more slots")):
            result = predict("--placement", placement, ranks="32")
            self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", message + "\n"))

    def test_strategies_that_cannot_be_timed_are_left_out_with_a_warning(self):
        result = predict("--json", "--strategy", "ring,direct-exchange", "--placement", "round-robin", ranks="2048")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual([row["name"] for row in document["strategies"]], ["ring"])
        self.assertEqual([row["name"] for row in document["left_out"]], ["direct-exchange"])
        self.assertEqual(result.stderr, "paceline: warning: direct-exchange is left out: 2048 ranks have too little in common to be timed as a few; "
                                        "choose fewer ranks, or equal nodes and a placement node by node\n")
        alone = predict("--strategy", "direct-exchange", "--placement", "round-robin", ranks="2048")
        self.assertEqual((alone.returncode, alone.stdout), (2, ""))
        curve = run("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "1024,2048", "--placement", "round-robin", "--strategy", "ring,direct-exchange")
        self.assertRegex(curve.stdout, r"2048 .* -\n")

    def test_a_fabric_is_shown_and_slows_what_crosses_it(self):
        pod = str(EXAMPLES / "pod.yaml")
        shown = run("show", "cluster", pod).stdout
        self.assertIn("three-level fat tree, 4 nodes a leaf at 2:1, 2 leaves a pod at 4:1 fabric", shown)
        self.assertIn("hop latency", shown)
        self.assertIn("fabric             three-level fat tree", predict(cluster=pod, ranks="128").stdout)
        with tempfile.TemporaryDirectory() as folder:
            flat = pathlib.Path(folder) / "flat.yaml"
            text = pathlib.Path(pod).read_text()
            flat.write_text(text[:text.index("fabric:")])
            ours, flat_times = self.times(cluster=pod, ranks="128"), self.times(cluster=str(flat), ranks="128")
            self.assertGreater(ours[1], 1.1 * flat_times[1], "halving-doubling crosses pods")

    def test_a_platform_is_written_shown_and_read(self):
        with tempfile.TemporaryDirectory() as folder:
            xml = pathlib.Path(folder) / "pod.xml"
            result = run("platform", "--cluster", str(EXAMPLES / "pod.yaml"), "--ranks", "32", "--output", str(xml))
            self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
            self.assertRegex(result.stderr, r"^platform example-pod written to .*: 32 hosts, \d+ links\n$")
            self.assertEqual(run("platform", "--cluster", str(xml)).stdout, xml.read_text())
            self.assertIn("example-pod: a platform of 32 hosts", run("show", "cluster", str(xml)).stdout)
            around = pathlib.Path(folder) / "around.yaml"
            around.write_text("cluster: around\ndevice: a100\nhost_link: pcie4-x16\nranks_per_node: 8\nfabric: {platform: pod.xml}\n")
            for a, b in zip(self.times(cluster=str(around), ranks="32"), self.times(cluster=str(EXAMPLES / "pod.yaml"), ranks="32")):
                self.assertAlmostEqual(a, b, delta=1e-9 * b)
            self.assertIn("platform example-pod", run("show", "cluster", str(around)).stdout)
            self.assertIn("platform           example-pod: 32 hosts", predict(cluster=str(around), ranks="32").stdout)
            alone = predict(cluster=str(xml), ranks="32")
            self.assertEqual(alone.returncode, 2)
            self.assertIn("a platform says nothing of its devices; write a cluster file around it", alone.stderr)
            around.write_text("cluster: around\ndevice: a100\nhost_link: pcie4-x16\nfabric: {platform: none.xml}\n")
            self.assertEqual(predict(cluster=str(around), ranks="32").stderr,
                             f"paceline: {folder}/none.xml: no such file; give the path of a file that exists\n")

    def test_platforms_are_bounded(self):
        result = run("platform", "--cluster", "jizhi-p40", "--ranks", "513")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(result.stderr, "paceline: --ranks: 513 ranks are 262656 routes; choose at most 512 ranks\n")
        self.assertEqual(run("platform", "--cluster", "jizhi-p40").returncode, 2)


class BadInput(unittest.TestCase):
    def check(self, result, message, code=2):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr, f"paceline: {message}\n")

    def test_each_fault_is_one_line(self):
        self.check(predict(model="resnet5"), "--model: unknown network 'resnet5'; did you mean 'resnet50'?")
        self.check(predict(cluster="jizhi-p4"), "--cluster: unknown cluster 'jizhi-p4'; did you mean 'jizhi-p40'?")
        self.check(predict(ranks="4096"), "--ranks: 4096 ranks do not fit cluster jizhi-p40; choose 1 to 2048 (256 nodes x 8 ranks)")
        self.check(predict(ranks="0"), "--ranks: '0' is not a whole number from 1 to 1048576")
        self.check(predict("--group", "7"), "group size 7 does not divide 1024 ranks; choose one of 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024")
        self.check(predict("--theta", "64"), "--theta: '64' has no unit; write one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, as in 64 MiB")
        self.check(predict("--batch", "0"), "--batch: '0' is not a whole number from 1 to 1048576")
        self.check(predict("--precision", "fp8"), "--precision: unknown precision 'fp8'; known: fp32, mixed")
        self.check(predict("--strategy", "rign"), "--strategy: unknown strategy 'rign'; did you mean 'ring'?")
        nccl = ("show", "nccl", "--cluster", "h200-ndr", "--ranks", "8")
        self.check(run(*nccl, "--nccl", "2.21"), "--nccl: unknown NCCL version '2.21'; did you mean '2.20'?")
        self.check(run(*nccl, "--sizes", "1MiB-1KiB"), "--sizes: '1MiB-1KiB' goes down; write 1KiB-1MiB")
        self.check(run(*nccl, "--sizes", "0 B"), "--sizes: a message of 0 B; choose 1 B to 1 PB")
        self.check(run(*nccl, "--cpu", "arm"), "--cpu: unknown processor 'arm'; known: intel, amd")
        self.check(predict("--engine", "flaw"), "--engine: unknown engine 'flaw'; did you mean 'flow'?")
        self.check(predict("--engine", "step", "--streams", "4"),
                   "the step engine does not see that buckets in flight share links; choose --engine flow, or --streams 1")
        self.check(predict("--profile", "jizhi-p4"), "--profile: unknown profile 'jizhi-p4'; did you mean 'jizhi-p40'?")
        self.check(predict(model="no-such.yaml"), "no-such.yaml: no such file; give the path of a file that exists")
        self.check(predict(model=str(EXAMPLES) + "/"), f"{EXAMPLES}/: this is a directory; give the path of a file")
        self.check(run("predic"), "unknown command 'predic'; did you mean 'predict'?")
        self.check(run("predict"), "--model is missing; give it, as in --model resnet50")
        self.check(run("verify", "--schedule", "hierarchical", "--ranks", "24", "--group", "5"),
                   "--group: group size 5 does not divide 24 ranks; choose one of 1, 2, 3, 4, 6, 8, 12, 24")
        self.check(run("show", "schedule", "rings", "--ranks", "4"), "unknown schedule 'rings'; did you mean 'ring'?")
        self.check(run("export", "ring", "--ranks", "4"),
                   "--format is missing; give goal (LogGOPSim, ATLAHS), msccl (MSCCL XML) or svg (a picture)")
        self.check(run("export", "ring", "--ranks", "4", "--format", "gaol"), "--format: unknown format 'gaol'; did you mean 'goal'?")
        self.check(run("export", "rign", "--ranks", "4", "--format", "goal"), "unknown schedule 'rign'; did you mean 'ring'?")
        self.check(run("export", "ring", "--format", "goal"), "--ranks is missing; give it, as in --ranks 24")
        self.check(run("export", "ring", "--ranks", "4", "--format", "goal", "--size", "10B"),
                   "--size: 10B are no whole elements of 4 bytes; give a multiple of 4 B, as in 64 MiB")
        self.check(run("export", "ring", "--ranks", "4", "--format", "svg", "--size", "8B"),
                   "--size: a file of format svg holds neither bytes nor times; leave it out")
        self.check(run("export", "ring", "--ranks", "65", "--format", "svg"), "a picture of 65 ranks is not legible; draw at most 64")
        self.check(run("export", "ring", "--ranks", "1", "--format", "msccl"), "one rank exchanges nothing; give --ranks 2 or more")
        self.check(run("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "64-8"), "--ranks: '64-8' goes down; write 8-64")

    def test_a_yaml_fault_names_file_line_and_column(self):
        with tempfile.TemporaryDirectory() as folder:
            faults = {
                "cluster: a\nnodes: 2\nranks_per_node: 8\ndevice: v100\nintra: nvlink2\nnic: {base: roce-25g, bandwidth: -25 Gbit/s}\n":
                    "c.yaml:6:34: bandwidth: '-25 Gbit/s' is negative; a bandwidth is at least 0",
                "cluster: a\nnodes: 2\nranks_per_node: 8\ndevice: v100\nintra: nvlink2\nnic: {base: roce-25g, bandwidth: 25}\n":
                    "c.yaml:6:34: bandwidth: '25' has no unit; write one of B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, bit/s, kbit/s, "
                    "Mbit/s, Gbit/s, Tbit/s, as in 100 Gbit/s",
                "": "c.yaml:1:1: the file is empty; write a description (docs/formats.md)",
            }
            for text, message in faults.items():
                pathlib.Path(folder, "c.yaml").write_text(text)
                self.check(run("predict", "--model", "resnet50", "--cluster", "c.yaml", "--ranks", "8", cwd=folder), message)
            pathlib.Path(folder, "n.yaml").write_text(
                "network: n\ninput: [3, 8, 8]\nlayers:\n  - {name: a, kind: relu, input: b}\n  - {name: b, kind: relu, input: a}\n")
            self.check(run("show", "network", "n.yaml", cwd=folder),
                       "n.yaml:4:5: layers read each other in a circle: a reads b reads a; a network has no loops")
            pathlib.Path(folder, "n.yaml").write_text("network: n\ninput: [3, 8, 8]\nlayers: []\n")
            self.check(run("show", "network", "n.yaml", cwd=folder), "n.yaml:3:9: network 'n' is empty; give it at least one layer")

    def test_random_bytes_do_no_harm(self):
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(20):
                data = bytes((seed * 7919 + i * i * 31) % 256 for i in range(500))
                pathlib.Path(folder, "x.yaml").write_bytes(data)
                for words in (("show", "network", "x.yaml"), ("show", "cluster", "x.yaml")):
                    result = subprocess.run([PACELINE, *words], capture_output=True, cwd=folder, timeout=60)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertEqual(result.stderr.count(b"\n"), 1)


class Show(unittest.TestCase):
    def test_network_json(self):
        document = json.loads(run("show", "network", "resnet50", "--json").stdout)
        self.assertEqual(document["parameters"], 25557032)
        self.assertEqual(document["parameter_tensors"], 161)
        self.assertEqual(document["forward_flops"], 2 * 4089184256)
        self.assertEqual(document["parameters"], sum(layer["parameters"] for layer in document["layers"]))
        self.assertEqual(document["backward_flops"],
                         sum(layer["data_gradient_flops"] + layer["weight_gradient_flops"] for layer in document["layers"]))

    def test_every_name_of_the_catalogue_can_be_shown(self):
        catalog = json.loads(run("show", "catalog", "--json").stdout)
        for entry in catalog["networks"]:
            self.assertEqual(run("show", "network", entry["name"]).returncode, 0)
        for entry in catalog["clusters"]:
            text = run("show", "cluster", entry["name"], "--json")
            self.assertTrue(all(f["source"] for f in json.loads(text.stdout)["figures"]))
        for entry in catalog["schedules"]:
            self.assertEqual(run("show", "schedule", entry["name"], "--ranks", "12").returncode, 0)
        for entry in catalog["profiles"]:
            json.loads(run("show", "profile", entry["name"]).stdout)

    def test_verify_json(self):
        document = json.loads(run("verify", "--schedule", "hierarchical", "--ranks", "24", "--group", "8", "--json").stdout)
        self.assertIs(document["proved"], True)
        self.assertEqual(document["steps"], 32)

    def test_plan_lists_every_bucket(self):
        words = ("--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "1024", "--strategy", "hybrid")
        buckets = json.loads(run("predict", *words, "--json").stdout)["strategies"][0]["buckets"]
        lines = run("show", "plan", *words).stdout.splitlines()
        self.assertIn(f"{buckets} buckets", lines[0])
        self.assertEqual(len([line for line in lines if re.match(r"^ *\d+ +\d+ ", line)]), buckets)

    def test_nccl_marks_its_choice(self):
        words = ("show", "nccl", "--cluster", "h200-ndr", "--ranks", "64", "--sizes", "1KiB,64 KiB,1GiB")
        document = json.loads(run(*words, "--json").stdout)
        self.assertEqual(document["schema"], "paceline.nccl/1")
        self.assertEqual(document["timed_by"], "NCCL 2.28.3-1's own tuning model (tuning.cc)")
        self.assertEqual([row["bytes"] for row in document["sizes"]], [1024, 65536, 1 << 30])
        for row in document["sizes"]:
            self.assertEqual(len(row["times"]), 6)
            self.assertEqual(row["choice"]["time_s"], min(entry["time_s"] for entry in row["times"]))
        self.assertEqual(document["sizes"][0]["choice"]["algorithm"], "tree")
        self.assertEqual(document["sizes"][2]["choice"]["protocol"], "Simple")
        text = run(*words).stdout
        self.assertEqual(len(re.findall(r"\* \d", text)), 3)
        self.assertIn("by NCCL 2.28.3-1's own tuning model (tuning.cc)", text)
        one = run("show", "nccl", "--cluster", "h200-ndr", "--ranks", "1")
        self.assertIn("one rank: nothing to do", one.stdout)
        self.assertIsNone(json.loads(run("show", "nccl", "--cluster", "h200-ndr", "--ranks", "1", "--json").stdout)["sizes"][0]["choice"])

    def test_nccl_takes_versions_processors_and_ranges(self):
        words = ("show", "nccl", "--cluster", "h200-ndr", "--ranks", "16", "--json")
        old = json.loads(run(*words, "--nccl", "2.20").stdout)
        self.assertEqual(old["tables"]["version"], "2.20.3-1")
        amd = json.loads(run(*words, "--cpu", "amd").stdout)
        self.assertNotEqual(amd["algorithms"], json.loads(run(*words).stdout)["algorithms"])
        sizes = json.loads(run(*words, "--sizes", "1KiB-20KiB").stdout)["sizes"]
        self.assertEqual([row["bytes"] for row in sizes], [1024, 4096, 16384, 20480])

    def test_nccl_is_not_ranked_with_our_strategies(self):
        row = json.loads(predict("--json", "--strategy", "nccl").stdout)["strategies"][0]
        self.assertEqual(row["timed_by"], "NCCL 2.28.3-1's own tuning model (tuning.cc)")
        self.assertEqual(json.loads(predict("--json", "--strategy", "ring").stdout)["strategies"][0]["timed_by"], "step engine")
        text = predict("--strategy", "ring,nccl").stdout
        self.assertRegex(text, r"(?m)^\* ring ")
        self.assertIn("nccl: all-reduces timed by NCCL 2.28.3-1's own tuning model (tuning.cc)", text)
        plan = run("show", "plan", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "64", "--strategy", "nccl").stdout
        self.assertIn("nccl (timed by its own model)", plan)
        self.assertIn("not by an engine of ours", plan)
        scale = run("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "8-64", "--strategy", "ring,nccl").stdout
        self.assertIn("nccl: all-reduces timed by", scale)

    def test_nccl_is_for_gpus(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cpus.yaml"
            path.write_text("cluster: cpus\nnodes: 4\nranks_per_node: 2\ndevice: xeon-8160\nintra: pcie3-x16\nnic: tcp-10g\n")
            words = ("predict", "--model", "resnet50", "--cluster", str(path), "--ranks", "8", "--json")
            self.assertNotIn("nccl", [row["name"] for row in json.loads(run(*words).stdout)["strategies"]])
            refused = run(*words, "--strategy", "nccl")
            self.assertEqual(refused.returncode, 2)
            self.assertIn("NCCL does not run on xeon-8160; choose a cluster of GPUs, or another strategy", refused.stderr)

    def test_help_everywhere(self):
        for words in ((), ("predict",), ("scale",), ("show",), ("show", "network"), ("show", "nccl"), ("verify",), ("export",), ("reproduce",), ("agree",), ("completion",)):
            result = run(*words, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("Usage", result.stdout)
        self.assertRegex(run("--version").stdout, r"^paceline \d+\.\d+\.\d+\n$")


class Export(unittest.TestCase):
    def export(self, algorithm, format, *words, ranks="8"):
        result = run("export", algorithm, "--ranks", ranks, "--format", format, *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def test_every_schedule_has_every_format(self):
        for entry in json.loads(run("show", "catalog", "--json").stdout)["schedules"]:
            goal = self.export(entry["name"], "goal", "--size", "4 kB")
            self.assertEqual(re.findall(r"^rank (\d+) \{$", goal, re.M), [str(rank) for rank in range(8)])
            self.assertEqual(len(re.findall(r": send \d+b to \d+ tag \d+$", goal, re.M)),
                             len(re.findall(r": recv \d+b from \d+ tag \d+$", goal, re.M)))
            algo = xml.etree.ElementTree.fromstring(self.export(entry["name"], "msccl"))
            self.assertEqual((algo.tag, algo.get("ngpus"), len(algo.findall("gpu"))), ("algo", "8", 8))
            self.assertTrue(algo.get("name").startswith(entry["name"]))
            picture = xml.etree.ElementTree.fromstring(self.export(entry["name"], "svg"))
            self.assertEqual(picture.tag, "{http://www.w3.org/2000/svg}svg")

    def test_the_size_is_of_the_bucket(self):
        self.assertIn("send 131072b to 1 tag 0\n", self.export("ring", "goal", "--size", "1 MiB"))
        self.assertIn("send 8388608b to 1 tag 0\n", self.export("ring", "goal"))

    def test_a_cluster_says_what_reductions_cost(self):
        self.assertNotIn("calc", self.export("ring", "goal"))
        text = self.export("ring", "goal", "--size", "1 MiB", "--cluster", "jizhi-p40")
        self.assertEqual(text.count(": calc 1515\n"), 7 * 8)  # 3 x 131072 B at 0.75 x 346 GB/s

    def test_a_file_is_what_is_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            for format in ("goal", "msccl", "svg"):
                path = pathlib.Path(folder, "out")
                self.assertEqual(self.export("torus-2d", format, "--output", str(path)), "")
                self.assertEqual(path.read_text(), self.export("torus-2d", format))
                self.assertEqual(os.listdir(folder), ["out"])

    def test_what_cannot_be_written_fails_with_nothing_left(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (folder, folder + "/no/such/folder/f", "/dev/full"):
                result = run("export", "ring", "--ranks", "4", "--format", "goal", "--output", path)
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr, r"^paceline: cannot write [^\n]*\n$")
            kept = pathlib.Path(folder, "kept")
            kept.write_text("old")
            self.assertEqual(run("export", "ring", "--ranks", "65", "--format", "svg", "--output", str(kept)).returncode, 2)
            self.assertEqual(kept.read_text(), "old")
        with open("/dev/full", "w") as full:
            result = run("export", "ring", "--ranks", "4", "--format", "svg", stdout=full)
        self.assertEqual((result.returncode, result.stderr), (1, "paceline: cannot write to standard output\n"))


class Completion(unittest.TestCase):
    def test_bash_completes_commands_options_and_names(self):
        script = run("completion", "bash").stdout
        def complete(*words):
            quoted = " ".join(f"'{w}'" for w in words)
            text = script + f'\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _paceline; echo "${{COMPREPLY[@]}}"\n'
            return subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=20).stdout.split()

        self.assertEqual(complete("paceline", "pre"), ["predict"])
        self.assertEqual(complete("paceline", "predict", "--th"), ["--theta"])
        self.assertIn("jizhi-p40", complete("paceline", "predict", "--cluster", "ji"))
        self.assertEqual(complete("paceline", "show", "net"), ["network"])


class Agreement(unittest.TestCase):
    def agree(self, *words):
        result = run("agree", *words)
        if result.returncode == 2 and "SimGrid" in result.stderr:
            self.assertRegex(result.stderr, r"^paceline: .*\n$")
            self.skipTest(result.stderr)
        return result

    def test_every_engine_is_in_the_table(self):
        result = self.agree("--ranks", "4,8", "--sizes", "1MiB", "--schedule", "ring,direct-exchange", "--topology", "flat,nic-8")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0].split(), ["schedule", "topology", "ranks", "size", "links", "step", "flow", "SimGrid", "flow", "vs", "SimGrid"])
        self.assertEqual([line.split()[:3] for line in lines[1:9]],
                         [[s, t, p] for s in ("ring", "direct-exchange") for t in ("flat", "nic-8") for p in ("4", "8")])
        self.assertIn("  nic-8         8 ranks behind one NIC", result.stdout)
        self.assertRegex(result.stdout, r"\n8 cells, 0 apart; worst .*\nSimGrid 3\.32\.\d+, \d+\.\d s\n$")

    def test_json_has_what_the_table_has(self):
        document = json.loads(self.agree("--json", "--ranks", "16", "--sizes", "64KiB,1MiB", "--schedule", "ring,hierarchical").stdout)
        self.assertEqual(document["schema"], "paceline.agreement/1")
        topologies = [line.split()[0] for line in run("agree", "--topology", "help").stdout.splitlines()]
        self.assertEqual(list(document["topologies"]), topologies)
        self.assertEqual(len(document["cells"]), 2 * len(topologies) * 2)
        for cell in document["cells"]:
            self.assertTrue(cell["agrees"], cell)
            self.assertLessEqual(cell["flow_difference"], cell["tolerance"])
            self.assertAlmostEqual(cell["flow_s"], cell["simgrid_s"], delta=5e-3 * cell["simgrid_s"])
        shared = {cell["shares_links"] for cell in document["cells"]}
        self.assertEqual(shared, {False, True})
        self.assertEqual(document["cells_apart"], 0)

    def test_input_is_checked(self):
        for words, message in ((("--topology", "flit"), "--topology: unknown topology 'flit'; did you mean 'flat'?"),
                               (("--schedule", "rin"), "--schedule: unknown schedule 'rin'; did you mean 'ring'?"),
                               (("--ranks", "1"), "--ranks: "), (("--ranks", "257"), "--ranks: "), (("--sizes", "4"), "--sizes: ")):
            result = run("agree", *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)

    def test_without_simgrid_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(PACELINE, folder)
            result = subprocess.run([alone, "agree", "--ranks", "4"], capture_output=True, text=True, timeout=60)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertRegex(result.stderr, r"^paceline: the SimGrid engine is not installed: [^\n]*\n$")


class Reproduction(unittest.TestCase):
    def test_json_has_the_rows(self):
        document = json.loads(run("reproduce", "jizhi", "--json").stdout)
        self.assertEqual(len(document["rows"]), 15)
        for row in document["rows"]:
            for key in ("source", "what", "provenance", "published", "ours", "relative_error"):
                self.assertIn(key, row)
            self.assertAlmostEqual(row["relative_error"], row["ours"] / row["published"] - 1, places=12)
            large = abs(row["relative_error"]) > 0.1
            self.assertFalse(large and not row["note"], f"{row['what']} is off by more than 10 % without a word why")


class CalibrationImport(unittest.TestCase):
    GOLDEN = SOURCE / "tests" / "golden" / "imports"

    def test_every_golden_file_is_read_and_its_format_found(self):
        for path, words in ((self.GOLDEN / "nccl_tests", ()), (self.GOLDEN / "osu", ("--ranks", "4")),
                            (self.GOLDEN / "horovod", ()), (self.GOLDEN / "kineto", ("--model", str(EXAMPLES / "tiny-net.yaml")))):
            files = sorted(path.iterdir())
            self.assertGreaterEqual(len(files), 3, path)
            for file in files:
                result = run("calibrate", "import", str(file), *(() if "latency" in file.name or "bw" in file.name else words))
                self.assertEqual(result.returncode, 0, f"{file}: {result.stderr}")
                self.assertEqual(result.stderr, "")
                self.assertTrue("residual" in result.stdout or "iterations" in result.stdout, file)

    def test_a_curve_is_fitted_plotted_and_written(self):
        with tempfile.TemporaryDirectory() as folder:
            profile, plot = os.path.join(folder, "p.json"), os.path.join(folder, "fit.svg")
            result = run("calibrate", "import", str(self.GOLDEN / "nccl_tests" / "2.13-half-two-nodes.txt"), "--cluster", "jizhi-p40",
                         "--name", "lab", "--out", profile, "--plot", plot)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("all_reduce_perf, in place, half sum: 25 samples of 25 sizes", result.stdout)
            self.assertIn("beware: at 2.828 MiB the fit jumps by -37 %", result.stdout)
            self.assertEqual(xml.etree.ElementTree.parse(plot).getroot().tag, "{http://www.w3.org/2000/svg}svg")
            document = json.loads(pathlib.Path(profile).read_text())
            self.assertEqual((document["schema"], document["name"], document["cluster"]), ("paceline.profile/1", "lab", "jizhi-p40"))
            curve = document["curves"][0]
            self.assertEqual((curve["kind"], curve["library"], curve["wire_type"], curve["ranks"]), ("all-reduce", "nccl", "fp16", 16))
            self.assertEqual(curve["pieces"][0]["alpha_s"]["provenance"], "calibrated")
            self.assertIn("2.13-half-two-nodes.txt (nccl-tests", curve["source"])
            shown = run("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "16", "--strategy", "ring", "--profile", profile)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))

    def test_layers_of_a_trace_are_what_predict_takes(self):
        network = str(EXAMPLES / "tiny-net.yaml")
        with tempfile.TemporaryDirectory() as folder:
            profile = os.path.join(folder, "p.json")
            trace = str(self.GOLDEN / "kineto" / "2.5-named.json")
            result = run("calibrate", "import", trace, "--model", network, "--batch", "16", "--precision", "fp32", "--out", profile)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"together +565 us +1.023 ms")
            layers = json.loads(pathlib.Path(profile).read_text())["layers"]
            self.assertEqual(len(layers), 10)
            self.assertEqual((layers[0]["layer"], layers[0]["forward_s"]["provenance"]), ("conv1", "measured"))
            shown = run("predict", "--model", network, "--cluster", str(EXAMPLES / "lab.yaml"), "--ranks", "2", "--batch", "16", "--precision", "fp32",
                        "--strategy", "ring", "--profile", profile, "--json")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            row = json.loads(shown.stdout)["strategies"][0]
            self.assertIn("10 of 10 layers as calibrated in profile 2.5-named", row["compute_source"])
            self.assertAlmostEqual(row["compute_s"], 565e-6 + 1023e-6, delta=50e-6)

    def test_another_network_than_the_traced_one_is_said(self):
        trace = str(self.GOLDEN / "kineto" / "2.5-named.json")
        self.assertIn("note: layers that no record_function of the trace names: 19 of 24", run("calibrate", "import", trace, "--model", "alexnet").stdout)
        unnamed = str(self.GOLDEN / "kineto" / "1.8-operators.json")
        self.assertIn("note: layers of kind convolution are left out: the network has 13, an iteration of the trace 2",
                      run("calibrate", "import", unnamed, "--model", "vgg16").stdout)

    def test_messages_give_predict_its_link(self):
        with tempfile.TemporaryDirectory() as folder:
            profile = os.path.join(folder, "p.json")
            run("calibrate", "import", str(self.GOLDEN / "osu" / "5.6.2-bw.txt"), "--out", profile)
            link = json.loads(pathlib.Path(profile).read_text())["links"]["nic"]["bandwidth_bytes_per_s"]
            self.assertAlmostEqual(link["value"], 1.17e9, delta=0.02e9)

    def test_input_is_checked(self):
        nccl = str(self.GOLDEN / "nccl_tests" / "2.13-half-two-nodes.txt")
        kineto = str(self.GOLDEN / "kineto" / "2.5-named.json")
        for words, message in (((), "FILE is missing"), (("nowhere.txt",), "nowhere.txt: no such file"),
                               ((nccl, "--format", "nccl"), "--format: unknown format 'nccl'; did you mean 'nccl-tests'?"),
                               ((nccl, "--format", "osu"), "there is no table of OSU micro-benchmarks"),
                               ((nccl, "--ranks", "8"), "--ranks: 8, and 2.13-half-two-nodes.txt says 16; leave it out"),
                               ((nccl, "--out", nccl), "--out: this is the file to import"),
                               ((nccl, "--out", "/nowhere/p.json"), "--out: there is no folder /nowhere"),
                               ((kineto,), "give --model"),
                               ((kineto, "--model", str(EXAMPLES / "tiny-net.yaml"), "--plot", "/tmp/x.svg"), "--plot: there is no curve"),
                               ((str(self.GOLDEN / "osu" / "5.6.2-allreduce.txt"),), "give --ranks"),
                               ((str(SOURCE / "README.md"),), "this is the output of no tool that is known here")):
            result = run("calibrate", "import", *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""), words)
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)


class Readme(unittest.TestCase):
    def test_every_console_block_is_what_the_command_prints(self):
        text = (SOURCE / "README.md").read_text()
        blocks = re.findall(r"```console\n\$ paceline ([^\n]*)\n(.*?)```", text, re.S)
        self.assertGreaterEqual(len(blocks), 2)
        for words, expected in blocks:
            self.assertEqual(run(*words.split()).stdout, expected, f"README: paceline {words}")


if __name__ == "__main__":
    unittest.main()
