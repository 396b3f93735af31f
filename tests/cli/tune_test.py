"""paceline tune, end to end: its plan is predicted, replayed and trained as it says."""

import json
import shutil
import unittest

from paceline import EXAMPLES, CommandTest, run

JOB = ("--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "64")


class Tune(CommandTest):
    def setUp(self):
        super().setUp()
        self.plan = self.folder / "plan.json"

    def tuned(self, *words):
        return json.loads(self.done(run("tune", *JOB, "--json", "--plan-out", str(self.plan), *words)))

    def test_the_plan_is_predicted_as_it_is_printed(self):
        for engine, optimal in (("step", True), ("auto", False)):
            with self.subTest(engine=engine):
                document = self.tuned("--engine", engine, "--time-limit", "3 s")
                self.assertEqual((document["schema"], document["optimal"]), ("paceline.tuning/1", optimal))
                self.assertEqual(document["why_not_optimal"] is None, optimal)
                row = json.loads(self.done(run("predict", *JOB, "--engine", engine, "--json", "--plan", str(self.plan))))["strategies"][0]
                self.assertAlmostEqual(row["iteration_s"] / document["iteration_s"], 1, delta=1e-9)
                self.assertLessEqual(document["least_iteration_s"], document["iteration_s"] * (1 + 1e-12))
                self.assertEqual(row["buckets"], len(document["buckets"]))
                self.assertEqual(sum(bucket["gradients"] for bucket in document["buckets"]), 16)

    def test_no_row_that_runs_is_faster(self):
        document = self.tuned("--time-limit", "1 s")
        names = [row["name"] for row in document["strategies"]]
        self.assertIn("fused-ring", names)
        for row in document["strategies"]:
            if row["name"] != "nccl":
                self.assertGreaterEqual(row["gain"], -1e-9, row["name"])
        best = document["by_thresholds"]
        self.assertAlmostEqual(best["iteration_s"], document["iteration_s"] * (1 + best["price"]), delta=1e-12)

    def test_the_bound_of_one_stream_is_not_that_of_buckets_that_travel_together(self):
        job = ("--model", "resnet50", "--cluster", "h200-ndr", "--ranks", "64", "--strategy", "ring,parameter-server", "--time-limit", "2 s")
        document = json.loads(self.done(run("tune", *job, "--json")))
        self.assertEqual(document["strategy"], "parameter-server")
        self.assertGreater(document["gap"], 0)
        self.assertFalse(document["optimal"])
        self.assertIn("travel together", document["why_not_optimal"])
        self.assertIn("so that no plan is faster by more than", self.done(run("tune", *job)))

    def test_text_says_what_is_proven(self):
        step = self.done(run("tune", *JOB, "--engine", "step"))
        self.assertIn("the best plan: iteration", step)
        self.assertIn("proven: no contiguous buckets", step)
        auto = self.done(run("tune", *JOB, "--time-limit", "0 s"))
        self.assertIn("lower bound:", auto)
        self.assertIn("not proven to be the best: links are shared", auto)
        self.assertIn("the search was stopped", auto)

    def test_the_plan_runs(self):
        cluster = self.folder / "two-cores.yaml"
        shutil.copy(EXAMPLES / "two-cores.yaml", cluster)
        job = ("--model", "cnn-small", "--cluster", str(cluster), "--batch", "2", "--precision", "fp32")
        self.done(run("tune", *job, "--ranks", "2", "--plan-out", str(self.plan)))
        self.assertEqual(json.loads(self.plan.read_text())["strategy"], "tuned")
        replayed = json.loads(self.done(run("replay", *job, "--iterations", "2", "--json", "--plan", str(self.plan))))
        self.assertEqual(replayed["strategies"][0]["name"], "tuned")
        self.done(run("train", "--model", "cnn-small", "--data", "synthetic", "--batch", "8", "--threads", "1", "--ranks", "2",
                      "--stop-after", "2", "--plan", str(self.plan)))

    def test_bad_input_is_one_line(self):
        self.plan.write_text("{}")
        for words, part in ((("--streams", "2"), "--streams"), (("--plan", str(self.plan)), "plan"), (("--time-limit", "5"), "--time-limit"),
                            (("--host-copies",), "--host-copies"), (("--model", "alexnet,resnet50"), "--model"),
                            (("--plan-out", "/nonexistent/plan.json"), "--plan-out")):
            with self.subTest(words=words):
                self.refused(run("tune", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "8", *words), part)
        self.refused(run("train", "--model", "cnn-small", "--data", "synthetic", "--ranks", "2", "--strategy", "tuned"), "paceline tune")


if __name__ == "__main__":
    unittest.main()
