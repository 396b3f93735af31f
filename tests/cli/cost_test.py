"""paceline cost, end to end: times of training runs and what they use up, phases, documents, and what
is refused.
"""

import json
import pathlib
import tempfile
import unittest

from paceline import EXAMPLES, predict, run

JOB = ("--model", "resnet50", "--cluster", "aws-p3-16xlarge", "--ranks", "16", "--strategy", "hybrid,nccl,no-overlap")


def cost(*words):
    return run("cost", *JOB, *words)


def document(*words):
    result = cost(*words, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def row(*words, name="hybrid"):
    return next(r for r in document(*words)["strategies"] if r["name"] == name)


class Run(unittest.TestCase):
    """Documents with phases, and the command on them."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = str(pathlib.Path(self.folder.name, "run.yaml"))

    def write(self, text):
        pathlib.Path(self.path).write_text(text)
        return self.path

    def phases(self, text, *words):
        return document("--phases", self.write(text), *words)["strategies"]


class Cost(unittest.TestCase):
    def test_json_is_one_document_that_agrees_with_predict(self):
        result = cost("--epochs", "90", "--dataset", "imagenet", "--json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        whole = json.loads(result.stdout)
        self.assertEqual(whole["schema"], "paceline.cost/1")
        self.assertEqual((whole["ranks"], whole["nodes"]), (16, 2))
        predicted = json.loads(predict(*JOB[6:], "--json", cluster="aws-p3-16xlarge", ranks="16").stdout)
        self.assertEqual([r["name"] for r in whole["strategies"]], [r["name"] for r in predicted["strategies"]])
        for ours, theirs in zip(whole["strategies"], predicted["strategies"]):
            iterations = 90 * 1281167 / (16 * 64)
            self.assertAlmostEqual(ours["iterations"], iterations, delta=1e-6)
            for end in ("", "_low", "_high"):
                self.assertAlmostEqual(ours[f"time{end}_s"], iterations * theirs[f"iteration{end}_s"], delta=1e-6)
            self.assertAlmostEqual(ours["throughput_per_s"], theirs["throughput_per_s"], delta=1e-6)
        self.assertEqual(whole["best"]["name"], predicted["best"]["name"])

    def test_what_is_used_up_follows_from_the_time(self):
        whole = document("--epochs", "90", "--dataset", "imagenet")
        price = whole["price_of_node"]
        self.assertEqual((price["value"], price["provenance"]), (24.48, "published"))
        for r in whole["strategies"]:
            hours = r["time_s"] / 3600
            self.assertAlmostEqual(r["device_hours"], 16 * hours, delta=1e-9)
            self.assertAlmostEqual(r["cost_usd"], 2 * hours * price["value"], delta=1e-9)
            self.assertAlmostEqual(r["energy_kwh"], hours * whole["power"]["value"] / 1000, delta=1e-9)
            for name in ("cost{}_usd", "energy{}_kwh", "time{}_s", "device{}_hours"):
                self.assertLess(r[name.format("_low")], r[name.format("")])
                self.assertGreater(r[name.format("_high")], r[name.format("")])

    def test_a_run_of_twice_the_epochs_takes_and_costs_twice_as_much(self):
        once, twice = (row("--epochs", n, "--dataset", "imagenet") for n in ("45", "90"))
        for key in ("time_s", "time_low_s", "time_high_s", "device_hours", "cost_usd", "energy_kwh", "cost_high_usd"):
            self.assertAlmostEqual(twice[key] / once[key], 2, delta=1e-9)

    def test_samples_and_iterations_are_lengths_too(self):
        of = [row(*words)["time_s"] for words in (("--epochs", "2", "--dataset", "10240"), ("--samples", "20480"), ("--iterations", "20"))]
        self.assertAlmostEqual(of[0], of[1], delta=1e-9)
        self.assertAlmostEqual(of[0], of[2], delta=1e-9)

    def test_start_up_evaluations_and_checkpoints_are_added(self):
        words = ("--epochs", "90", "--dataset", "imagenet")
        plain = row(*words)
        more = row(*words, "--evaluate", "50000@4 epochs", "--checkpoint", "20s@1000 iterations", "--start-up", "3min")
        self.assertEqual(more["training_s"], plain["training_s"])
        self.assertEqual(more["start_up_s"], 180)
        self.assertEqual(more["checkpoint_s"], 20 * (plain["iterations"] // 1000))
        parts = sum(more[f"{part}_s"] for part in ("training", "evaluation", "checkpoint", "start_up"))
        self.assertAlmostEqual(more["time_s"], parts, delta=1e-6)
        # 22 times 50,000 samples forward: a third of the work of as many samples of training, or less
        # where training waits for the network.
        of_training = plain["training_s"] * 22 * 50000 / (90 * 1281167)
        self.assertGreater(more["evaluation_s"], 0.05 * of_training)
        self.assertLess(more["evaluation_s"], 0.6 * of_training)

    def test_price_and_power_of_a_node_can_be_stated(self):
        words = ("--epochs", "90", "--dataset", "imagenet", "--node-price", "12.24 USD/h", "--node-power", "4 kW")
        whole = document(*words)
        hours = whole["strategies"][0]["time_s"] / 3600
        self.assertAlmostEqual(whole["strategies"][0]["cost_usd"], 2 * 12.24 * hours, delta=1e-9)
        self.assertAlmostEqual(whole["strategies"][0]["energy_kwh"], 2 * 4 * 1.25 * hours, delta=1e-9)
        self.assertEqual(document("--samples", "9", "--node-price", "aws-p5-48xlarge")["price_of_node"]["value"], 55.04)

    def test_a_cluster_without_a_price_has_none_and_says_what_would_give_one(self):
        words = ("cost", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "64", "--strategy", "hybrid", "--iterations", "100")
        text = run(*words).stdout
        self.assertIn("--node-price '24.48 USD/h'", text)
        self.assertIn("price:", text)
        self.assertNotIn("USD\n", text)
        whole = json.loads(run(*words, "--json").stdout)
        self.assertIsNone(whole["price_of_node"])
        self.assertIsNone(whole["strategies"][0]["cost_usd"])
        self.assertGreater(whole["strategies"][0]["energy_kwh"], 0)

    def test_the_table_says_what_it_rests_on_and_what_it_leaves_out(self):
        text = cost("--epochs", "90", "--dataset", "imagenet", "--evaluate", "50000").stdout
        for part in ("90 epochs of 1281167 samples (imagenet)", "GPU-hours", "90 evaluations", "not counted: checkpoints (--checkpoint), start-up (--start-up), interruptions (--failures)",
                     "price of a node    24.48 USD/h, published", "rated power        300 W, published", "PUE", "compute            roofline of v100"):
            self.assertIn(part, text)
        self.assertTrue(all(len(line) <= 100 for line in text.split("\n\n")[1].splitlines()))

    def test_interruptions_lose_work_and_checkpoints_come_at_the_best_interval(self):
        words = ("--iterations", "1000000", "--checkpoint", "20s")
        plain = row("--iterations", "1000000")
        typical = row(*words, "--failures", "typical")
        self.assertIsNone(plain["interrupted"])
        lost = typical["interrupted"]
        self.assertAlmostEqual(typical["time_s"], sum(typical[f"{part}_s"] for part in ("training", "checkpoint", "start_up")) + lost["lost_s"], places=3)
        self.assertEqual(typical["training_s"], plain["training_s"])
        self.assertAlmostEqual(lost["between_s"], 50_000 * 3600 / 16, places=3)
        # Young's first order.
        self.assertAlmostEqual(lost["interval_s"] / (2 * 20 * lost["between_s"]) ** 0.5, 1, delta=0.02)
        self.assertTrue(plain["time_s"] < lost["median_s"] <= lost["p90_s"] <= lost["p99_s"])
        frequent = row(*words, "--failures", "50h@10min")
        self.assertGreater(frequent["interrupted"]["lost_s"], 10 * lost["lost_s"])
        stated = row("--iterations", "1000000", "--checkpoint", "20s@10 iterations", "--failures", "50h@10min")
        self.assertGreater(stated["time_s"], frequent["time_s"])
        text = cost(*words, "--failures", "50h@10min").stdout
        for part in ("goodput ", "lost to interruptions", "checkpoints every", "half of simulated runs end within", "recovery           10 min, datasheet"):
            self.assertIn(part, text)

    def test_spares_are_paid(self):
        ours, more = row("--iterations", "1000"), row("--iterations", "1000", "--spares", "2")
        self.assertAlmostEqual(more["cost_usd"], 2 * ours["cost_usd"], places=6)
        self.assertEqual((more["time_s"], more["energy_kwh"]), (ours["time_s"], ours["energy_kwh"]))

    def test_ranks_of_processors_have_device_hours(self):
        text = run("cost", "--model", "resnet50", "--cluster", str(EXAMPLES / "two-cores.yaml"), "--ranks", "2", "--batch", "8", "--iterations", "10", "--strategy", "ring").stdout
        self.assertIn("device-hours", text)
        self.assertNotIn("GPU-hours", text)


class Phases(Run):
    def test_one_phase_is_the_simple_form(self):
        rows = self.phases("training: t\ndataset: imagenet\nphases: [{epochs: 90}]\nevaluation: {samples: 50000, every: 4 epochs}\nstart_up: 90 s\n")
        simple = document("--epochs", "90", "--dataset", "imagenet", "--evaluate", "50000@4 epochs", "--start-up", "90s")["strategies"]
        self.assertEqual(rows, simple)

    def test_failures_of_the_document_are_those_of_the_option(self):
        rows = self.phases("training: t\nphases: [{iterations: 1000000}]\ncheckpoint: {time: 20 s}\nfailures: {between: 500 h, recovery: 10 min}\nspares: 1\n")
        simple = document("--iterations", "1000000", "--checkpoint", "20s@best", "--failures", "500h@10min", "--spares", "1")["strategies"]
        self.assertEqual(rows, simple)

    def test_phases_add_up_to_runs_of_one_each(self):
        rows = self.phases("training: t\nphases:\n- {iterations: 100, batch: 32}\n- {iterations: 300, batch: 128, precision: fp32}\n")
        first, second = row("--iterations", "100", "--batch", "32"), row("--iterations", "300", "--batch", "128", "--precision", "fp32")
        for key in ("time_s", "time_low_s", "time_high_s", "device_hours", "cost_usd", "energy_kwh"):
            self.assertAlmostEqual(rows[0][key], first[key] + second[key], delta=1e-9 * rows[0][key])
        self.assertEqual([p["wire_type"] for p in rows[0]["phases"]], ["fp16", "fp32"])

    def test_sequences_of_phases_and_their_accumulation(self):
        text = "training: t\nphases:\n- {iterations: 10, batch: 8, sequence: 128, accumulate: 4}\n- {iterations: 10, batch: 8, sequence: 512}\n"
        words = ("cost", "--model", "bert-base", "--cluster", "h200-ndr", "--ranks", "16", "--strategy", "hybrid", "--json")
        whole = json.loads(run(*words, "--phases", self.write(text)).stdout)
        self.assertEqual([(p["sequence"], p["accumulate"], p["samples"]) for p in whole["phases"]], [(128, 4, 10 * 16 * 8 * 4), (512, 1, 10 * 16 * 8)])
        alone = json.loads(run(*words, "--iterations", "10", "--batch", "8", "--sequence", "128", "--accumulate", "4").stdout)
        self.assertEqual(whole["strategies"][0]["phases"][0]["training_s"], alone["strategies"][0]["time_s"])

    def test_a_throughput_of_a_phase_is_that_of_the_option(self):
        rows = self.phases("training: t\nphases:\n- {iterations: 10, batch: 64, throughput: 700 images/s}\n")
        self.assertAlmostEqual(rows[0]["time_s"], row("--iterations", "10", "--throughput", "700@64")["time_s"], delta=1e-9)

    def test_examples_run(self):
        for file, words in (("bert-phases.yaml", ("--model", "bert-large", "--cluster", "h200-ndr", "--ranks", "64")),
                            ("batch-warm-up.yaml", ("--model", "resnet50", "--cluster", "aws-p3-16xlarge", "--ranks", "64"))):
            result = run("cost", *words, "--phases", str(EXAMPLES / file), "--strategy", "hybrid")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("phases with hybrid:", result.stdout)
            self.assertNotIn("not counted: evaluation", result.stdout)


class Refusals(Run):
    def refused(self, result, *parts):
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    def test_lengths(self):
        self.refused(cost(), "--epochs 90")
        self.refused(cost("--epochs", "90"), "--dataset")
        self.refused(cost("--epochs", "90", "--samples", "9", "--dataset", "imagenet"), "--samples", "--epochs")
        for bad in ("0", "-1", "nan", "inf", "x", "1e99", "90 epochs"):
            self.refused(cost("--epochs", bad, "--dataset", "imagenet"), "--epochs")
            self.refused(cost("--samples", bad), "--samples")
            self.refused(cost("--iterations", bad), "--iterations")
        for bad in ("imagnet", "0", "-5", "1e99"):
            self.refused(cost("--epochs", "9", "--dataset", bad), "--dataset")

    def test_what_interrupts_a_run(self):
        words = ("--iterations", "9")
        self.refused(cost(*words, "--evaluate", "50000"), "--dataset")
        for bad in ("x", "0", "-1", "1.5", "5@", "@4 epochs", "5@4", "5@4 weeks", "5@0 iterations", "5@1 iterations@2 iterations"):
            self.refused(cost(*words, "--evaluate", bad), "--evaluate")
        for bad in ("20", "-1s", "20 parsecs", "20s@5", "99 days", "@5 iterations"):
            self.refused(cost(*words, "--checkpoint", bad), "--checkpoint")
        for bad in ("20", "-1s", "nan s", "99 days"):
            self.refused(cost(*words, "--start-up", bad), "--start-up")
        for bad in ("x", "0", "-1", "nan", "5h@", "@5min", "5h@5", "5h@99 days", "usual", "1e99h"):
            self.refused(cost(*words, "--checkpoint", "9s", "--failures", bad), "--failures")
        for bad in ("-1", "1.5", "x", "99999"):
            self.refused(cost(*words, "--spares", bad), "--spares")
        self.refused(cost(*words, "--failures", "typical"), "--checkpoint is missing")
        self.refused(cost(*words, "--checkpoint", "9s@best"), "--checkpoint", "--failures typical")
        self.refused(cost(*words, "--checkpoint", "9s", "--failures", "0.001h@1h"), "--failures", "get nowhere")
        self.refused(cost("--phases", self.write("training: t\nphases: [{iterations: 9}]\nfailures: {between: 5 h, recovery: 9 s}\n")), "run.yaml:3")
        self.refused(cost("--phases", self.write("training: t\nphases: [{iterations: 9}]\ncheckpoint: {time: 9 s, every: best}\n")), "run.yaml:3")

    def test_price_and_power(self):
        for bad in ("24.48", "-1 USD/h", "24 EUR/h", "nan USD/h", "1e99 USD/h", "aws-p9"):
            self.refused(cost("--iterations", "9", "--node-price", bad), "--node-price")
        for bad in ("3000", "-1 W", "0 W", "3 kWh", "1e99 W"):
            self.refused(cost("--iterations", "9", "--node-power", bad), "--node-power")

    def test_options_beside_phases(self):
        path = self.write("training: t\ndataset: 9\nphases: [{epochs: 9}]\n")
        for words in (("--epochs", "9"), ("--evaluate", "9"), ("--checkpoint", "9s"), ("--start-up", "9s"), ("--samples", "9"), ("--iterations", "9")):
            self.refused(cost("--phases", path, *words), words[0], "--phases")
        self.refused(cost("--phases", self.path + "x"), "run.yamlx")

    def test_what_a_phase_says_is_refused_at_its_line(self):
        bert = ("cost", "--model", "bert-base", "--cluster", "h200-ndr", "--ranks", "16", "--strategy", "hybrid", "--phases")
        text = "training: t\nphases:\n- {iterations: 9, sequence: 128}\n- {name: long, iterations: 9, sequence: 4096}\n"
        self.refused(run(*bert, self.write(text)), "run.yaml:4", "long", "512")
        self.refused(cost("--phases", self.write("training: t\nphases:\n- {iterations: 9, sequence: 128}\n")), "run.yaml:3")

    def test_a_throughput_that_is_not_that_of_all_phases(self):
        text = "training: t\nphases:\n- {iterations: 9, batch: 8}\n- {iterations: 9, batch: 16}\n"
        self.refused(cost("--phases", self.write(text), "--throughput", "300"), "--throughput", "253.1@64")
        self.assertEqual(cost("--phases", self.path, "--throughput", "300@8").returncode, 0)
        text = "training: t\nphases:\n- {iterations: 9, throughput: 300 images/s}\n"
        self.refused(cost("--phases", self.write(text), "--throughput", "300"), "run.yaml:3", "--throughput")

    def test_several_networks(self):
        self.refused(run("cost", "--model", "resnet50,vgg16", "--cluster", "aws-p3-16xlarge", "--ranks", "8", "--iterations", "9"), "--model")


if __name__ == "__main__":
    unittest.main()
