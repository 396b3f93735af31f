"""Plans as documents, end to end: predict writes them; predict, train, replay, compare and show plan
take them, and refuse what is not for their job. And what stands beside the rows of a prediction:
one baseline, ties, memory.
"""

import json
import shutil
import struct
import unittest
import xml.etree.ElementTree

from paceline import EXAMPLES, CommandTest, predict, run



class Plans(CommandTest):
    def setUp(self):
        super().setUp()
        self.plan = self.folder / "plan.json"
        self.cluster = self.folder / "two-cores.yaml"
        shutil.copy(EXAMPLES / "two-cores.yaml", self.cluster)

    def small(self, command, *words):
        return run(command, "--model", "cnn-small", "--cluster", str(self.cluster), "--batch", "2", "--precision", "fp32", *words)

    def written(self, *words):
        self.done(self.small("predict", "--ranks", "2", *words, "--plan-out", str(self.plan)))
        return json.loads(self.plan.read_text())

    def test_a_plan_is_predicted_as_the_row_that_wrote_it(self):
        catalogue = json.loads(run("show", "catalog", "--json").stdout)["strategies"]
        for strategy in (entry["name"] for entry in catalogue if entry["name"] != "open-mpi"):
            with self.subTest(strategy=strategy):
                streams = () if strategy in ("parameter-server", "nccl") else ("--streams", "2")
                row = json.loads(self.done(predict("--json", "--strategy", strategy, *streams, "--plan-out", str(self.plan),
                                                   ranks="16")))["strategies"][0]
                document = json.loads(self.done(run("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--json", "--plan", str(self.plan))))
                again = document["strategies"][0]
                self.assertEqual((document["ranks"], document["plan"], len(document["strategies"])), (16, str(self.plan), 1))
                self.assertIsNone(again["thresholds"])
                # Exposed communication may differ in its last digit, and so may the ends of the interval.
                ends = ("iteration_low_s", "iteration_high_s")
                for end in ends:
                    self.assertAlmostEqual(again[end] / row[end], 1, places=12)
                self.assertEqual({**again, "thresholds": row["thresholds"], **{end: row[end] for end in ends}}, row)

    def test_the_starred_row_writes_its_plan(self):
        document = json.loads(self.done(predict("--json", "--plan-out", str(self.plan), ranks="64")))
        plan = json.loads(self.plan.read_text())
        self.assertEqual(plan["schema"], "paceline.plan/1")
        self.assertEqual((plan["strategy"], plan["network"], plan["ranks"]), (document["best"]["name"], "resnet50", 64))

    def test_training_a_plan_gives_the_weights_of_its_strategy(self):
        weights = []
        thresholds = ("--theta", "64 KiB")
        for number, words in enumerate((("--strategy", "halving-doubling", *thresholds), ("--plan", str(self.plan)), ("--strategy", "ring"))):
            checkpoint = self.folder / f"{number}.checkpoint"
            self.written("--strategy", "halving-doubling", *thresholds)
            self.done(run("train", "--model", "cnn-small", "--data", "synthetic", "--batch", "8", "--threads", "1", "--ranks", "2", "--stop-after", "4",
                          "--checkpoint", str(checkpoint), *words))
            data = checkpoint.read_bytes()
            (length,) = struct.unpack("<I", data[12:16])
            header = json.loads(data[32:32 + length])
            weights.append((header["job"], header["arrays"][0], data[32 + length:][:4 * header["arrays"][0]["elements"]]))
        # They are of the same job, and the same to the bit. Other arrays hold times, which are each run's own.
        self.assertEqual(header["arrays"][0]["name"], "weights")
        self.assertEqual(weights[0], weights[1])
        self.assertNotEqual(weights[0][0], weights[2][0])

    def test_a_run_its_prediction_and_their_comparison_take_one_plan(self):
        plan = self.written("--strategy", "fused-ring", "--theta", "16 KiB", "--streams", "2")
        buckets = len(plan["buckets"])
        self.assertGreater(buckets, 1)
        measured, predicted = str(self.folder / "run.json"), str(self.folder / "prediction.json")
        replayed = json.loads(self.done(self.small("replay", "--iterations", "2", "--json", "--timeline", measured, "--plan", str(self.plan))))
        self.assertEqual((replayed["ranks"], replayed["strategies"][0]["buckets"]), (2, buckets))
        self.done(self.small("predict", "--plan", str(self.plan), "--timeline", predicted))
        shown = self.done(run("show", "plan", "--model", "cnn-small", "--cluster", str(self.cluster), "--batch", "2", "--precision", "fp32",
                              "--plan", str(self.plan)))
        self.assertIn(f"2 ranks, {buckets} buckets, fp32 on the wire", shown)
        self.done(run("compare", measured, predicted, "--plan", str(self.plan)))
        def move(changed):
            changed["buckets"][1]["gradients"].insert(0, changed["buckets"][0]["gradients"].pop())
        for change, problem in (
                (lambda p: p.update(network="vgg16"), "network 'cnn-small' in place of 'vgg16'"),
                (lambda p: p.update(ranks=4), "ranks: 2 in place of 4"),
                (lambda p: p.update(wire_type="bf16"), "wire type fp32 in place of bf16"),
                (lambda p: p.update(overlap="none"), "overlap wait-free in place of none"),
                (lambda p: p.update(streams=3), "streams: 2 in place of 3"),
                (lambda p: p["buckets"][0]["gradients"][0].update(name="x"), "bucket 0 begins with gradient 'fc2.bias' in place of 'x'"),
                (lambda p: p["buckets"][0]["gradients"][0].update(elements=11), "bucket 0 bytes: "),
                (move, "bucket 0 gradients: ")):
            changed = json.loads(json.dumps(plan))
            change(changed)
            self.plan.write_text(json.dumps(changed))
            with self.subTest(problem=problem):
                self.refused(run("compare", measured, predicted, "--plan", str(self.plan)),
                             f"{measured}: this did not follow the plan: {problem}")
        # Another plan is neither's.
        self.written("--strategy", "fused-ring", "--theta", "1 MiB", "--streams", "2")
        self.refused(run("compare", measured, predicted, "--plan", str(self.plan)),
                     f"{measured}: this did not follow the plan: buckets: {buckets} in place of 1")
        self.written("--strategy", "ring", "--streams", "2")
        self.refused(run("compare", measured, predicted, "--plan", str(self.plan)),
                     f"{measured}: this did not follow the plan: strategy 'fused-ring' in place of 'ring'")

    def test_a_plan_that_is_not_of_the_job_is_refused_in_one_line(self):
        original = self.written("--strategy", "hierarchical", "--group", "2")

        def train(*words):
            return run("train", "--model", "cnn-small", "--data", "synthetic", "--ranks", "2", "--plan", str(self.plan), *words)
        commands = (lambda: self.small("predict", "--plan", str(self.plan)), train,
                    lambda: self.small("replay", "--iterations", "1", "--plan", str(self.plan)),
                    lambda: run("show", "plan", "--model", "cnn-small", "--cluster", str(self.cluster), "--plan", str(self.plan)))

        def order(plan):
            gradients = plan["buckets"][2]["gradients"] + plan["buckets"][3]["gradients"]
            plan["buckets"][2]["gradients"], plan["buckets"][3]["gradients"] = [gradients[1]], [gradients[0]]
        for change, problem in (
                (lambda p: p.update(network="vgg16"), "the plan is for network 'vgg16', not for cnn-small"),
                (lambda p: p["buckets"].pop(), "the buckets end before gradient "),
                (order, "gradient 3 of the buckets is "),
                (lambda p: p["buckets"].append(p["buckets"][0]), " is in the buckets twice"),
                (lambda p: p["buckets"][0]["gradients"][0].update(elements=7), " has 7 elements in the plan, and 10 in cnn-small"),
                (lambda p: p["all_reduces"][0].update(algorithm="hierarchial"), "all_reduces[0].algorithm: unknown schedule 'hierarchial'; did you mean 'hierarchical'?"),
                (lambda p: p["all_reduces"][0].update(group=3), "all_reduces[0]: group size 3 does not divide 2 ranks"),
                (lambda p: p.update(ranks=0), "ranks: 0 is not a whole number from 1 to"),
                (lambda p: p.pop("wire_type"), "'wire_type' is missing"),
                (lambda p: p.update(schema="paceline.profile/1"), "schema: 'paceline.profile/1' is not what this version reads")):
            plan = json.loads(json.dumps(original))
            change(plan)
            self.plan.write_text(json.dumps(plan))
            for number, command in enumerate(commands):
                with self.subTest(problem=problem, command=number):
                    self.refused(command(), f"{self.plan}: ", problem)
        self.plan.write_text(json.dumps(original))
        self.refused(self.small("predict", "--plan", str(self.plan), "--ranks", "1"), "the plan is for 2 ranks, not for 1")
        for option, value in (("--strategy", "ring"), ("--wire", "fp32"), ("--theta", "1 MiB"), ("--streams", "2"), ("--overlap", "none")):
            for command in (lambda *words: self.small("predict", "--plan", str(self.plan), *words), train):
                with self.subTest(option=option):
                    self.refused(command(option, value), f"{option}: the plan of --plan says this already; leave one of the two out")
        self.refused(self.small("predict", "--plan", str(self.folder / "none.json")), "none.json")
        self.plan.write_text("{")
        self.refused(self.small("predict", "--plan", str(self.plan)), "this is not JSON")

    def test_sensitivity_says_what_would_help(self):
        job = ("--strategy", "ring,fused-ring", "--sensitivity")
        document = json.loads(self.done(predict(*job, "--json", ranks="64")))
        best = min(document["strategies"], key=lambda row: row["iteration_s"])
        parts = {(part["part"], part["factor"]): part for part in document["sensitivity"]["parts"]}
        self.assertEqual(document["sensitivity"]["name"], best["name"])
        self.assertEqual({name for name, _ in parts}, {"nic_bandwidth", "nic_latency", "link_bandwidth", "link_latency", "compute"})
        for part in parts.values():
            self.assertLessEqual(part["iteration_s"], best["iteration_s"] * (1 + 1e-9))
        twice = parts["compute", 2]["iteration_s"]
        self.assertLess(twice, 0.6 * best["iteration_s"])
        text = self.done(predict(*job, ranks="64"))
        self.assertIn("NIC bandwidth", text)
        self.assertIn(f"{100 * (1 - min(twice, parts['compute', 2]['iteration_chosen_anew_s']) / best['iteration_s']):.1f} %", text)
        self.assertNotIn("sensitivity", json.loads(self.done(predict("--strategy", "ring", "--json", ranks="64"))))
        plan = self.plan
        self.done(predict("--strategy", "ring", "--plan-out", str(plan), ranks="64"))
        document = json.loads(self.done(run("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--plan", str(plan), "--sensitivity", "--json")))
        for part in document["sensitivity"]["parts"]:
            self.assertEqual(part["iteration_s"], part["iteration_chosen_anew_s"])

    def test_a_picture_has_every_bucket(self):
        picture = self.folder / "plan.svg"
        job = ("show", "plan", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "64")
        for strategy in ("hybrid", "ring", "no-overlap", "horovod", "byteps", "p3", "k-fac", "nccl"):
            with self.subTest(strategy=strategy):
                text = self.done(run(*job, "--strategy", strategy, "--plot", str(picture)))
                self.assertNotIn("<svg", text)
                root = xml.etree.ElementTree.parse(picture).getroot()
                rows = [line.split() for line in text.splitlines() if line.strip() and line.split()[0].isdigit()]
                buckets = [element for element in root.iter("{http://www.w3.org/2000/svg}rect") if element.get("class") == "bucket"]
                self.assertEqual(len(buckets), len(rows))
                self.assertTrue(all(float(element.get("width")) > 0 for element in buckets))
                self.assertIn(strategy, root.find("{http://www.w3.org/2000/svg}title").text)
                self.assertIn("predicted", root.find("{http://www.w3.org/2000/svg}desc").text)
        refused = lambda *words: self.refused(run(*job, *words), "--plot")
        refused("--strategy", "ring,hybrid", "--plot", str(picture))
        refused("--strategy", "ring", "--plot", str(self.folder / "no" / "folder.svg"))
        before = self.cluster.read_text()
        self.refused(run("show", "plan", "--model", "resnet50", "--cluster", str(self.cluster), "--ranks", "2", "--strategy", "ring", "--plot", str(self.cluster)), "")
        self.assertEqual(self.cluster.read_text(), before)

    def test_a_plan_is_not_written_over_an_input(self):
        text = self.cluster.read_text()
        self.refused(self.small("predict", "--ranks", "2", "--plan-out", str(self.cluster)), f"--plan-out: {self.cluster} is --cluster too")
        self.refused(self.small("predict", "--ranks", "2", "--plan-out", "/nowhere/p.json"), "--plan-out: there is no folder /nowhere")
        self.assertEqual(self.cluster.read_text(), text)


class Baselines(unittest.TestCase):
    def test_a_curve_has_one_baseline(self):
        for words, expected in (((), 1), (("--baseline", "2"), 2)):
            ranks = "4-32" if words else "1-32"
            document = json.loads(run("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--strategy", "ring,hybrid", "--ranks", ranks, "--json",
                                      *words).stdout)
            rows = [(point["ranks"], row) for point in document["points"] for row in point["strategies"]]
            self.assertEqual({row["efficiency_baseline_ranks"] for _, row in rows}, {expected})
            for name in ("ring", "hybrid"):
                per_rank = [(row["throughput_per_s"] / ranks) / row["efficiency"] for ranks, row in rows if row["name"] == name]
                for value in per_rank:
                    self.assertAlmostEqual(value / per_rank[0], 1, delta=1e-9)

    def test_the_baseline_is_said_and_checked(self):
        self.assertIn("against p0 = 8 ranks with the best plan of the same strategy", predict().stdout)
        self.assertIn("against p0 = 16 ranks with the best plan of the same strategy", predict("--baseline", "16").stdout)
        curve = run("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--strategy", "ring", "--ranks", "8,16")
        self.assertIn("efficiency is against p0 = 8 ranks with the best plan of the same strategy", curve.stdout)
        for words, problem in ((("--baseline", "2048"), "--baseline: 2048 ranks are no baseline of 1024; choose 1 to 1024"),
                               (("--baseline", "0"), "--baseline: '0' is not a whole number from 1 to")):
            result = predict(*words)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1))
            self.assertIn(problem, result.stderr)
        result = run("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--strategy", "ring", "--ranks", "4-16", "--baseline", "8")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1))
        self.assertIn("--baseline: 8 ranks are no baseline of 4; choose 1 to 4", result.stderr)

    def test_efficiency_beside_stragglers_counts_them(self):
        document = json.loads(predict("--json", "--strategy", "fused-ring", "--slow-rank", "3=2", "--iterations", "50", ranks="16").stdout)
        row = document["strategies"][0]
        self.assertLess(row["efficiency_mean"], 0.7 * row["efficiency"])
        table = predict("--strategy", "fused-ring", "--slow-rank", "3=2", "--iterations", "50", ranks="16").stdout
        self.assertIn(f"{100 * row['efficiency_mean']:.1f} %", table)
        self.assertIn("efficiency: mean throughput against p0 = 8 ranks with the best plan of the same strategy and without stragglers", table)

    def test_ties_are_said(self):
        result = predict("--json", "--strategy", "bidirectional-ring,multi-ring,ring", ranks="64")
        document = json.loads(result.stdout)
        rows = {row["name"]: row["iteration_s"] for row in document["strategies"]}
        best = document["best"]
        self.assertEqual(best["name"], min(rows, key=rows.get))
        tied = sorted(name for name, time in rows.items() if name != best["name"] and time <= 1.001 * rows[best["name"]])
        self.assertEqual(sorted(row["name"] for row in best["tied"]), tied)
        self.assertTrue(tied)
        self.assertIn(f"within 0.1 %, and so no worse: {', '.join(row['name'] for row in best['tied'])}",
                      predict("--strategy", "bidirectional-ring,multi-ring,ring", ranks="64").stdout)


class Memory(unittest.TestCase):
    def test_what_does_not_fit_is_said(self):
        words = ("--strategy", "fused-ring")
        small = predict("--json", *words, ranks="16")
        row = json.loads(small.stdout)["strategies"][0]
        self.assertEqual((row["fits_memory"], small.stderr), (True, ""))
        memory = row["memory"]
        self.assertEqual(memory["total_bytes"], sum(value for key, value in memory.items() if key != "total_bytes"))
        most = row["largest_batch_per_rank"]
        self.assertIn(f"the largest batch that fits is {most}", predict(*words, ranks="16").stdout)
        fitting = predict("--json", *words, "--batch", str(most), ranks="16")
        self.assertEqual((json.loads(fitting.stdout)["strategies"][0]["fits_memory"], fitting.stderr), (True, ""))
        large = predict("--json", *words, "--batch", str(most + 1), ranks="16")
        self.assertEqual((large.returncode, large.stdout), (2, ""))
        problem = f"a batch of {most + 1} does not fit the 24 GB of a p40"
        self.assertIn(f"--batch: {problem}", large.stderr)
        self.assertIn(f"the largest batch that fits is {most}; --ignore-memory times it all the same", large.stderr)
        ignored = predict("--json", *words, "--batch", str(most + 1), "--ignore-memory", ranks="16")
        document = json.loads(ignored.stdout)
        self.assertEqual((ignored.returncode, document["strategies"][0]["fits_memory"], document["ignore_memory"]), (0, False, True))
        self.assertIn(problem, ignored.stderr)
        self.assertIn(problem, document["warnings"][0])
        text = predict(*words, "--batch", "100000", "--ignore-memory", model="vgg16", ranks="16").stdout
        self.assertIn("IT DOES NOT FIT", text)

    def test_rows_that_do_not_fit_are_left_out(self):
        words = ("--strategy", "ring,fused-ring,no-overlap")
        rows = json.loads(predict("--json", *words, ranks="16").stdout)["strategies"]
        most = {row["name"]: row["largest_batch_per_rank"] for row in rows}
        batch = min(most.values()) + 1
        fitting = [name for name in most if most[name] >= batch]
        self.assertTrue(fitting, "buffers of fused buckets are larger than those of one tensor")
        result = predict("--json", *words, "--batch", str(batch), ranks="16")
        document = json.loads(result.stdout)
        self.assertEqual([row["name"] for row in document["strategies"]], fitting)
        self.assertEqual({row["name"] for row in document["left_out"]}, set(most) - set(fitting))
        for row in document["left_out"]:
            self.assertIn(f"a batch of {batch} does not fit", row["why"])
            self.assertEqual(row["remedy"], f"the largest batch that fits is {most[row['name']]}")
        text = predict(*words, "--batch", str(batch), ranks="16").stdout
        self.assertRegex(text, rf"(?m)^{document['left_out'][0]['name']}: left out: a batch of {batch} does not fit")


if __name__ == "__main__":
    unittest.main()
