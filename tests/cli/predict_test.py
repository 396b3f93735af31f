"""paceline predict, end to end: its documents and tables, stragglers, timelines, placements and
fabrics.
"""

import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from paceline import EXAMPLES, IS_THOROUGH, CommandTest, predict, run, run_as_both


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
        left_out = [row["name"] for row in document["left_out"]]
        self.assertEqual(names, [entry["name"] for entry in catalogue if entry["name"] not in ["open-mpi", *left_out]])
        for row in document["strategies"]:
            for key in ("iteration_s", "throughput_per_s", "efficiency", "efficiency_baseline_ranks",
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

    def test_full_nodes_are_named_in_place_of_ranks(self):
        words = ("--model", "alexnet", "--cluster", "jizhi-p40", "--strategy", "fused-ring")
        for command, more in (("predict", ()), ("tune", ("--time-limit", "0 s")), ("cost", ("--iterations", "100")), ("show plan", ())):
            with self.subTest(command=command):
                by_nodes, by_ranks = (run(*command.split(), *words, *more, *size) for size in (("--nodes", "2"), ("--ranks", "16")))
                self.assertEqual((by_nodes.returncode, by_nodes.stdout), (0, by_ranks.stdout), by_nodes.stderr)
        for size, problem in ((("--nodes", "2", "--ranks", "16"), "paceline: --nodes: there is --ranks, too; leave one of the two out\n"),
                              (("--nodes", "257"), "paceline: --nodes: 2056 ranks do not fit cluster jizhi-p40; choose 1 to 2048 (256 nodes x 8 ranks)\n"),
                              (("--nodes", "0"), "paceline: --nodes: '0' is not a whole number from 1 to 1048576\n")):
            refused = run("predict", *words, *size)
            self.assertEqual((refused.returncode, refused.stdout, refused.stderr), (2, "", problem))

    def test_an_optimizer_with_more_states_needs_more_memory(self):
        words = ("--model", "gpt2-xl", "--cluster", "h200-ndr", "--ranks", "64", "--strategy", "nccl")
        of_states = {}
        for states in (0, 1, 2):
            row = json.loads(run("predict", *words, "--batch", "1", "--optimizer-states", str(states), "--json").stdout)["strategies"][0]
            of_states[states] = row["memory"]["optimizer_bytes"]
        self.assertEqual(of_states, {states: states * of_states[1] for states in (0, 1, 2)})
        largest = max(batch for batch in range(1, 20) if run("predict", *words, "--batch", str(batch), "--optimizer-states", "1").returncode == 0)
        for command, more in (("predict", ()), ("tune", ("--time-limit", "0 s")), ("cost", ("--iterations", "100")), ("show plan", ())):
            with self.subTest(command=command):
                refused = run(*command.split(), *words, *more, "--batch", str(largest), "--optimizer-states", "16")
                self.assertEqual((refused.returncode, refused.stdout), (2, ""))
                self.assertIn(f"--batch: a batch of {largest} does not fit the 141 GB of a h200", refused.stderr)

    def test_what_figures_rest_on_is_a_line_or_all_of_them(self):
        for command, size in (("predict", "64"), ("scale", "8,16")):
            words = (command, "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", size, "--strategy", "ring")
            brief = run(*words).stdout.split("They rest on:\n")[1].splitlines()
            lines = run(*words, "--provenance").stdout.split("They rest on:\n")[1].splitlines()
            self.assertEqual((len(brief), brief[0]), (2, lines[0]))
            figures, parts = re.fullmatch(r"  (\d+) figures +(.*); --provenance lists them with their intervals and sources", brief[1]).groups()
            self.assertEqual(int(figures), len(lines) - 1)
            counts = {name: int(count) for count, name in re.findall(r"(\d+) (\w+)", parts)}
            self.assertEqual(counts, {name: sum(f", {name}: " in line for line in lines[1:]) for name in counts})
            self.assertEqual(sum(counts.values()), int(figures))

    def test_wire_types_and_strategies_can_be_chosen(self):
        rows = json.loads(predict("--json", "--strategy", "ring,hybrid", "--wire", "fp32,fp16").stdout)["strategies"]
        self.assertEqual([(r["name"], r["wire_type"]) for r in rows], [("ring", "fp32"), ("hybrid", "fp32"), ("ring", "fp16"), ("hybrid", "fp16")])
        self.assertLess(rows[2]["iteration_s"], rows[0]["iteration_s"])

    def test_thresholds_are_taken(self):
        rows = json.loads(predict("--json", "--strategy", "hybrid", "--theta", "4MiB", "--eta", "1 MB", "--group", "32").stdout)["strategies"]
        self.assertEqual(rows[0]["thresholds"], {"theta_bytes": 4194304.0, "eta_bytes": 1e6, "group": 32})

    def test_the_sequence_is_in_the_document_of_networks_that_have_one(self):
        self.assertNotIn("sequence", json.loads(predict("--json", "--strategy", "ring").stdout))
        documents = [json.loads(predict("--json", "--strategy", "ring", "--batch", "8", *words, model="bert-base").stdout) for words in ((), ("--sequence", "128"))]
        self.assertEqual([d["sequence"] for d in documents], [512, 128])
        self.assertLess(documents[1]["strategies"][0]["compute_s"], documents[0]["strategies"][0]["compute_s"] / 3)
        self.assertEqual(documents[0]["strategies"][0]["buckets"], 206)
        self.assertIn("batch 64 of 128 tokens per rank", predict("--sequence", "128", "--strategy", "ring", model="bert-base").stdout)
        curve = run("scale", "--model", "gpt2-small", "--cluster", "jizhi-p40", "--ranks", "8,16", "--strategy", "ring", "--sequence", "256", "--json")
        self.assertEqual(json.loads(curve.stdout)["sequence"], 256, curve.stderr)

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
                       "--wide", ranks="100").stdout
        self.assertRegex(text, r"mean ± stderr +p50 +p99 +mean throughput")
        for line in ("mean, p50, p99: 1000 simulated iterations (seed 1), compute times log-normal:0.1, slow ranks 5=1.5; all other columns are without them\n",
                     "slow nodes, in every column: 2=0.5 of the NICs' bandwidth\n",
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

    def test_what_cannot_be_written_is_refused_with_nothing_left(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (folder, folder + "/no/such/folder/t.json"):
                result = predict("--timeline", path)
                self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1))
                self.assertRegex(result.stderr, r"^paceline: --timeline: ")
            self.assertEqual(os.listdir(folder), [])

    def test_a_file_of_the_job_is_not_overwritten(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster = folder + "/lab.yaml"
            shutil.copy(EXAMPLES / "lab.yaml", cluster)
            result = predict("--timeline", folder + "/./lab.yaml", cluster=cluster, ranks="2")
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertEqual(result.stderr, f"paceline: --timeline: {folder}/./lab.yaml is --cluster too; give each a file of its own\n")
            self.assertEqual(pathlib.Path(cluster).read_text(), (EXAMPLES / "lab.yaml").read_text())

    def test_a_link_stays_a_link(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink("target.json", folder + "/link.json")
            pathlib.Path(folder, "target.json").write_text("old")
            self.assertEqual(predict("--timeline", folder + "/link.json", "--force").returncode, 0)
            self.assertTrue(os.path.islink(folder + "/link.json"))
            json.loads(pathlib.Path(folder, "target.json").read_text())
            os.symlink("not-there.json", folder + "/dangling.json")
            self.assertEqual(predict("--timeline", folder + "/dangling.json").returncode, 0)
            self.assertTrue(os.path.islink(folder + "/dangling.json"))
            json.loads(pathlib.Path(folder, "not-there.json").read_text())

    def test_a_full_disk_is_a_failure(self):
        self.assertEqual(predict("--timeline", "/dev/full").returncode, 1)
        with open("/dev/full", "w") as full:
            result = run("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "8", stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write to standard output", result.stderr)


class Topology(unittest.TestCase):
    def times(self, *words, **where):
        rows = json.loads(predict("--json", "--strategy", "ring,halving-doubling", *words, **where).stdout)
        return [row["communication_s"] for row in rows["strategies"]]

    def test_placement_is_told_by_name_list_and_file(self):
        node_major = self.times(ranks="32")
        dealt = self.times("--placement", "round-robin", ranks="32")
        self.assertGreater(dealt[0], 1.4 * node_major[0], "eight messages of a ring leave each node")
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

    def test_strategies_that_cannot_be_timed_are_left_out_with_a_line(self):
        asked = ("--strategy", "halving-doubling,direct-exchange", "--placement", "round-robin")
        why = "2048 ranks have too little in common to be timed as a few: they have more than 8 million messages"
        remedy = "choose fewer ranks, or equal nodes and a placement node by node"
        result, document = run_as_both("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "2048", *asked)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (0, 1), result.stderr)
        self.assertEqual([row["name"] for row in document["strategies"]], ["halving-doubling"])
        self.assertEqual(document["left_out"], [{"name": "direct-exchange", "wire_type": "fp16", "why": why, "remedy": remedy}])
        self.assertIn(f"\ndirect-exchange: left out: {why}; {remedy}\n", result.stdout)
        if not IS_THOROUGH:
            return  # each takes eight seconds
        alone = predict("--strategy", "direct-exchange", "--placement", "round-robin", ranks="2048")
        self.assertEqual((alone.returncode, alone.stdout, alone.stderr), (2, "", f"paceline: {why}; {remedy}\n"))
        curve = run("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "64,2048", *asked)
        self.assertRegex(curve.stdout, r"2048 .* -\n")
        self.assertIn(f"direct-exchange: left out because it would take long; {remedy} (2048 ranks)\n", curve.stdout)

    # Unless they are named, strategies may not take long: the table is there at once.
    def test_rows_that_would_take_long_say_so_and_which_option_asks_for_them(self):
        job = ("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "1024", "--strategy", "all")
        table = run(*job, "--wide").stdout
        self.assertRegex(table, r"\n  double-binary-tree .* step ")
        self.assertIn("\ndouble-binary-tree: timed by the step engine (the flow engine would follow 3.9 million messages; --strategy double-binary-tree asks for that)\n", table)
        self.assertIn("\nparameter-server: left out: its buckets travel together, and that takes 0.99 million messages to follow; --strategy parameter-server asks for it\n", table)
        document = json.loads(run(*job, "--json").stdout)
        self.assertEqual([row["name"] for row in document["left_out"]], ["parameter-server"])
        rows = {row["name"]: row for row in document["strategies"]}
        self.assertGreater(rows["double-binary-tree"]["messages_not_followed"], 3e6)
        self.assertEqual(rows["ring"]["messages_not_followed"], 0)
        named = predict("--strategy", "double-binary-tree", "--json", ranks="64")
        self.assertEqual(json.loads(named.stdout)["strategies"][0]["timed_by"], "flow engine")

    def test_tables_of_many_ranks_name_no_multiple_that_the_ranks_already_are(self):
        table = run("predict", "--model", "resnet50", "--cluster", "h200-ndr", "--ranks", "65536").stdout
        self.assertIn("double-binary-tree: left out", table)
        for line in table.splitlines():
            if "left out" in line:
                self.assertRegex(line, r"; --strategy \S+( --engine step)? asks for it$")
        advice = re.search(r"\ndouble-binary-tree: left out: .*; (--strategy .*) asks for it\n", table).group(1)
        followed = run("predict", "--model", "resnet50", "--cluster", "h200-ndr", "--ranks", "65536", *advice.split())
        self.assertEqual((followed.returncode, followed.stderr), (0, ""))
        self.assertNotIn("choose a multiple", table)

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
            self.assertGreater(ours[1], 1.05 * flat_times[1], "halving-doubling crosses pods")

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


class ComputeEfficiency(CommandTest):
    def test_a_compute_efficiency_is_that_of_a_cluster_s_file(self):
        file = self.folder / "faster.yaml"
        file.write_text("{cluster: faster, nodes: 8, ranks_per_node: 8, device: {base: h200, compute_efficiency: 0.6}, intra: nvlink4,"
                        " nic: {base: infiniband-ndr, count: 8}}\n")
        job = ("--model", "vgg16", "--ranks", "16", "--strategy", "fused-ring", "--json")
        documents = [json.loads(self.done(run("predict", *job, *words))) for words in (
            ("--cluster", "h200-ndr", "--compute-efficiency", "60%"), ("--cluster", str(file)), ("--cluster", "h200-ndr", "--compute-efficiency", "0.3"))]
        iterations = [document["strategies"][0]["iteration_s"] for document in documents]
        self.assertEqual(iterations[0], iterations[1])
        self.assertLess(iterations[0], iterations[2])
        self.assertIn("compute efficiency 0.6 ", documents[0]["strategies"][0]["compute_source"])
        job = ("--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "16", "--compute-efficiency", "60%")
        self.refused(run("predict", *job), "--compute-efficiency: profile ", "add --profile none")
        self.refused(run("predict", *job, "--profile", "none", "--throughput", "100"), "--compute-efficiency: a throughput is stated, too")
        self.refused(run("predict", *job[:-1], "160%"), "--compute-efficiency: '160' is not a number from 0.1 to 100")


if __name__ == "__main__":
    unittest.main()
