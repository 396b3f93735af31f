"""paceline tune --layouts, and predictions of layouts, as a user meets them."""

import json
import unittest

from paceline import CommandTest, run

JOB = ("--model", "llama-3-8b", "--cluster", "h100-ndr", "--ranks", "64")


class Layouts(CommandTest):
    def found(self, *words):
        return json.loads(self.done(run("tune", "--layouts", *words, "--json")))

    def test_the_first_is_the_fastest_and_all_fit(self):
        found = self.found(*JOB, "--global-batch", "128")
        times = [row["prediction"]["iteration_s"] for row in found["layouts"]]
        self.assertEqual(times, sorted(times))
        self.assertTrue(found["is_proven"])
        self.assertGreaterEqual(self.found(*JOB, "--global-batch", "128", "--time-limit", "0 s")["timed"], 1)
        self.assertEqual(len(found["why"]), 5)
        for row in found["layouts"]:
            self.assertTrue(row["prediction"]["fits_memory"])
            self.assertLessEqual(row["least_s"], row["prediction"]["iteration_s"])

    def test_predict_shows_a_layout_in_full(self):
        found = self.found("--model", "llama-3-70b", *JOB[2:], "--global-batch", "64")
        row = found["layouts"][0]
        layout = row["prediction"]["layout"]
        words = ("predict", "--model", "llama-3-70b", *JOB[2:], "--tensor", str(layout["tensor"]), "--pipeline", str(layout["pipeline"]),
                 "--chunks", str(layout["chunks"]), "--batch", str(row["batch_per_rank"]), "--accumulate", str(row["accumulate"]),
                 "--recompute", row["recompute"], "--strategy", row["prediction"]["name"])
        predicted = json.loads(self.done(run(*words, "--json")))["strategies"][0]
        self.assertAlmostEqual(predicted["iteration_s"] / row["prediction"]["iteration_s"], 1, 9)
        text = self.done(run(*words))
        self.assertIn("layout: tensor", text)
        self.assertIn("stages wait for each other", text)

    def test_predict_has_the_layouts_that_people_would_try(self):
        words = ("predict", *JOB, "--batch", "1")
        document = json.loads(self.done(run(*words, "--json")))
        layouts = [row["prediction"]["layout"] for row in document["layouts"]]
        self.assertEqual({(of["tensor"], of["pipeline"]) for of in layouts}, {(8, 1), (8, 2)})
        for row in document["layouts"]:
            of = row["prediction"]
            samples = of["iteration_s"] * of["throughput_per_s"]
            self.assertAlmostEqual(samples, 64, 6)
        self.assertIn("paceline tune --layouts --global-batch 64 searches", self.done(run(*words)))
        self.assertNotIn("layouts", json.loads(self.done(run(*words, "--strategy", "fsdp", "--json"))))
        self.assertNotIn("layouts", json.loads(self.done(run("predict", "--model", "resnet50", *JOB[2:], "--json"))))

    def test_a_plan_of_a_layout_is_predicted_and_not_run(self):
        plan = self.folder / "plan.json"
        words = (*JOB[:4], "--ranks", "16", "--batch", "1")
        self.done(run("predict", *words, "--strategy", "zero1", "--tensor", "4", "--plan-out", str(plan)))
        again = json.loads(self.done(run("predict", *words, "--plan", str(plan), "--json")))["strategies"][0]
        self.assertEqual(again["layout"]["tensor"], 4)
        self.refused(run("predict", *words, "--plan", str(plan), "--tensor", "4"), "--tensor")
        self.refused(run("export", str(plan), "--format", "ddp", "--cluster", "h100-ndr"), "layout")
        self.assertIn("16 ranks", self.done(run("show", "plan", *words, "--plan", str(plan))))
        damaged = json.loads(plan.read_text())
        for key, value in (("tensor", 0), ("tensor", "4"), ("tensor", 3), ("pipeline", 10**9), ("schedule", "zigzag"), ("context", 3)):
            with self.subTest(key=key, value=value):
                plan.write_text(json.dumps({**damaged, "layout": {**damaged["layout"], key: value}}))
                self.refused(run("predict", *words, "--plan", str(plan)))

    def test_other_commands_count_the_samples_of_groups(self):
        words = ("--model", "llama-3-8b", "--cluster", "aws-p5-48xlarge", "--strategy", "zero1", "--samples", "100000")
        cost = json.loads(self.done(run("cost", *words, "--ranks", "16", "--batch", "2", "--tensor", "4", "--json")))
        self.assertEqual(cost["phases"][0]["iterations"], 100000 / (16 / 4 * 2))
        capacity = json.loads(self.done(run("plan-capacity", *words, "--ranks", "16", "--global-batch", "8", "--tensor", "4", "--json")))
        self.assertAlmostEqual(capacity["candidates"][0]["time_s"] / cost["strategies"][0]["time_s"], 1, 6)
        curve = json.loads(self.done(run("scale", *words[:6], "--ranks", "8,16", "--global-batch", "16", "--batch", "2", "--tensor", "4", "--json")))
        self.assertEqual(len(curve["points"]), 2)
        self.refused(run("replay", "--model", "gpt2-small", "--cluster", "jizhi-p40", "--ranks", "2", "--tensor", "2"), "--tensor")

    def test_what_is_wrong_is_one_line(self):
        for words, said in ((("--tensor", "3"), "--tensor"), (("--tensor", "0"), "--tensor"), (("--tensor", "x"), "--tensor"),
                            (("--pipeline", "48"), "--pipeline"), (("--chunks", "2"), "--chunks"), (("--context", "7"), "--context"),
                            (("--pipeline", "4", "--chunks", "2", "--accumulate", "3"), "--chunks"),
                            (("--pipeline-schedule", "zigzag"), "zigzag"), (("--global-batch", "100"), "--global-batch"),
                            (("--global-batch", "64", "--accumulate", "2"), "--global-batch")):
            with self.subTest(words=words):
                self.refused(run("predict", *JOB, "--batch", "1", "--strategy", "zero1", *words), said)
        self.refused(run("tune", "--layouts", *JOB), "--global-batch")
        for words in (("--tensor", "2"), ("--batch", "2"), ("--strategy", "fsdp"), ("--recompute", "full"), ("--why",), ("--robust",)):
            with self.subTest(words=words):
                self.refused(run("tune", "--layouts", *JOB, "--global-batch", "64", *words), "--layouts")
        for words in (("--no-sequence-parallel",), ("--pipeline-schedule", "gpipe")):
            self.refused(run("predict", *JOB, "--batch", "1", *words), words[0])
        self.refused(run("tune", "--layouts", *JOB[:4], "--ranks", "1", "--global-batch", "2"), "no layout of 1 ranks fits")
        self.refused(run("tune", *JOB, "--batch", "1", "--pipeline", "2"), "--pipeline")


if __name__ == "__main__":
    unittest.main()
