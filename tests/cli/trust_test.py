"""What a user takes from an answer is true in all its forms: the star is on the fastest row, a tuned plan lies between its
bound and the best row of its table, and what a device does not hold is neither recommended nor priced."""

import json
import random
import unittest

from paceline import CommandTest, report_documents, run

NETWORKS = ("resnet50", "vgg16", "bert-base", "alexnet")
CLUSTERS = ("h200-ndr", "jizhi-p40", "aws-p3-16xlarge", "aws-p4d-24xlarge")
SOME = "nccl,ddp,fused-ring,binary-blocks,hierarchical-scatter,halving-doubling,horovod"
PRICED = "aws-p3-16xlarge"  # its catalogue entry has a price

H100 = "{cluster: my-h100, nodes: 128, ranks_per_node: 8, device: h100, intra: nvlink4, nic: {base: infiniband-ndr, count: 8, use: affinity}}\n"


def questions(count, seed):
    """Random jobs, the same for a seed."""
    draw = random.Random(seed)
    for _ in range(count):
        yield ("--model", draw.choice(NETWORKS), "--cluster", draw.choice(CLUSTERS), "--ranks", str(8 * draw.choice((1, 2, 3, 4, 8, 16))),
               "--batch", str(draw.choice((1, 4, 16, 64))), "--precision", draw.choice(("mixed", "fp32")))


def starred(text):
    return [line.split()[1] for line in text.splitlines() if line.startswith("* ") and " s " in f"{line} " and "iteration:" not in line]


def fastest(rows):
    return min(rows, key=lambda row: row["iteration_s"])


class Trust(CommandTest):
    def test_the_star_is_on_the_fastest_row_in_every_form(self):
        page = self.folder / "report.html"
        for words in questions(12, seed=31):
            for strategies in (("--strategy", SOME), ("--others",), ()):
                with self.subTest(words=words, strategies=strategies):
                    result = run("predict", *words, *strategies, "--html", str(page))
                    if result.returncode == 2:
                        self.assertIn("does not fit", result.stderr)
                        self.assertEqual(result.stdout, "")
                        continue
                    document = report_documents(page)["result"]
                    best = fastest(document["strategies"])
                    self.assertEqual(document["best"]["name"], best["name"])
                    self.assertTrue(all(row["fits_memory"] for row in document["strategies"]))
                    first = next(line for line in result.stdout.splitlines() if line.startswith("* "))
                    self.assertEqual(first.split()[1], best["name"])
                    page.unlink()

    def test_the_star_of_a_curve_is_on_the_most_samples(self):
        words = ("scale", "--model", "resnet50", "--cluster", "h200-ndr", "--ranks", "8-1024", "--strategy", "nccl,ddp,fused-ring")
        document = json.loads(self.done(run(*words, "--json")))
        text = self.done(run(*words))
        for point in document["points"]:
            rows = {row["name"]: row["throughput_per_s"] for row in point["strategies"]}
            best = max(rows, key=rows.get)
            self.assertEqual(point["best"]["name"], best)
            self.assertRegex(text, rf"(?m)^ *{point['ranks']} .*\* {rows[best]:.0f} /s")
        top = self.done(run("predict", "--model", "resnet50", "--cluster", "h200-ndr", "--ranks", "64", "--top", "3")).splitlines()
        rows = [line for line in top if " fp16 " in line]
        self.assertTrue(rows[0].startswith("* "), rows)

    def test_no_table_of_gpus_has_servers_that_nobody_named(self):
        words = ("--model", "resnet50", "--cluster", "h200-ndr", "--ranks", "64")
        result = run("predict", *words, "--json")
        document = json.loads(self.done(result))
        self.assertNotIn("parameter-server", [row["name"] for row in document["strategies"]])
        self.assertIn({"name": "parameter-server", "wire_type": "fp16", "why": "NCCL has no servers among GPUs",
                       "remedy": "--strategy parameter-server asks for it"}, document["left_out"])
        named = json.loads(self.done(run("predict", *words, "--json", "--strategy", "parameter-server,nccl")))
        self.assertEqual([row["name"] for row in named["strategies"]], ["parameter-server", "nccl"])
        tuned = json.loads(self.done(run("tune", *words, "--time-limit", "1 s", "--json")))
        self.assertNotEqual(tuned["strategy"], "parameter-server")
        self.assertFalse({"parameter-server", "byteps", "kvstore", "p3"} & {row["name"] for row in tuned["strategies"]})

    def test_a_tuned_plan_is_between_its_bound_and_the_best_row(self):
        cluster = self.folder / "h100.yaml"
        cluster.write_text(H100)
        jobs = [("--model", "gpt2-xl", "--cluster", str(cluster), "--ranks", "128", "--batch", "4"),
                ("--model", "resnet50", "--cluster", "h200-ndr", "--ranks", "64"), *questions(4, seed=7)]
        for words in jobs:
            for only in ((), ("--all-reduce", "nccl"), ("--all-reduce", "ring"), ("--all-reduce", "ring,nccl")):
                with self.subTest(words=words, only=only):
                    result = run("tune", *words, *only, "--time-limit", "1 s", "--json")
                    if result.returncode == 2:
                        self.assertIn("does not fit", result.stderr)
                        continue
                    document = json.loads(result.stdout)
                    rounding = 1 + 1e-12
                    self.assertLessEqual(document["least_iteration_s"], rounding * document["iteration_s"])
                    if document["strategies"]:
                        self.assertLessEqual(document["iteration_s"], rounding * fastest(document["strategies"])["iteration_s"])
                    self.assertLessEqual(document["iteration_low_s"], document["iteration_s"])
                    self.assertLessEqual(document["iteration_s"], document["iteration_high_s"])

    def test_buckets_of_nccl_are_a_plan_that_is_predicted_as_it_is_printed(self):
        plan = self.folder / "plan.json"
        words = ("--model", "resnet50", "--cluster", "h200-ndr", "--ranks", "64")
        document = json.loads(self.done(run("tune", *words, "--all-reduce", "nccl", "--plan-out", str(plan), "--json")))
        self.assertEqual(document["strategy"], "nccl")
        self.assertEqual(json.loads(plan.read_text())["all_reduces"], [{"library": "nccl"}])
        row = json.loads(self.done(run("predict", *words, "--plan", str(plan), "--json")))["strategies"][0]
        self.assertAlmostEqual(row["iteration_s"] / document["iteration_s"], 1, delta=1e-9)
        self.assertEqual((row["iteration_low_s"], row["iteration_high_s"]), (document["iteration_low_s"], document["iteration_high_s"]))
        by_theta = {row["name"]: row["iteration_s"] for row in document["strategies"]}["nccl"]
        self.assertLessEqual(document["iteration_s"], by_theta * (1 + 1e-12))
        text = self.done(run("tune", *words, "--all-reduce", "nccl"))
        self.assertIn("each by nccl's own all-reduce", text)
        self.assertIn("keep the defaults of PyTorch DDP", text)
        cpus = run("tune", "--model", "cnn-small", "--cluster", "docs/examples/two-cores.yaml", "--ranks", "2", "--all-reduce", "nccl")
        self.assertEqual(cpus.returncode, 2)

    def test_what_does_not_fit_is_refused_by_every_command(self):
        words = ("--model", "gpt2-xl", "--cluster", PRICED, "--batch", "64")
        for command in (("predict", "--ranks", "16"), ("scale", "--ranks", "8-16"), ("tune", "--ranks", "16"),
                        ("cost", "--ranks", "16", "--samples", "1000000")):
            with self.subTest(command=command):
                result = run(*command, *words)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertRegex(result.stderr, r"^paceline: --batch: a batch of 64 does not fit the 16 GB of a v100.*--ignore-memory")
                self.assertEqual(result.stderr.count("\n"), 1)
                self.assertEqual(run(*command, *words, "--ignore-memory").returncode, 0)

    def test_the_warning_and_the_table_say_the_same_of_memory(self):
        result = run("predict", "--model", "gpt2-xl", "--cluster", PRICED, "--ranks", "16", "--batch", "64", "--ignore-memory")
        warning = result.stderr.split("a rank needs ")[1].split(";")[0]
        self.assertIn(f"memory of a rank: {warning} of 16 GB: IT DOES NOT FIT", result.stdout)

    def test_a_note_claims_a_choice_of_rows_that_have_one_only(self):
        words = ("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "64")
        text = self.done(run(*words, "--strategy", "hierarchical,halving-doubling,goyal"))
        self.assertNotIn("theta, ", text)
        self.assertIn("\nk: chosen by the planner (--group sets it)\n", text)
        self.assertIn("one bucket for each tensor, by definition: hierarchical, halving-doubling, goyal "
                      "(--theta fuses tensors of hierarchical, halving-doubling and goyal)\n", text)
        text = self.done(run(*words, "--strategy", "ring,fused-ring"))
        self.assertIn("\ntheta: chosen by the planner (--theta sets it)\n", text)
        self.assertIn("one bucket for each tensor, by definition: ring\n", text)
        text = self.done(run(*words, "--strategy", "ring,fused-ring", "--theta", "1 MiB"))
        self.assertNotIn("chosen by the planner", text)


if __name__ == "__main__":
    unittest.main()
