"""paceline tune, end to end: its plan is predicted, replayed and trained as it says."""

import json
import shutil
import unittest

from paceline import EXAMPLES, CommandTest, run, run_as_both

JOB = ("--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "64")
# The runtime that takes any all-reduce for each bucket.
TUNE = (*JOB, "--runtime", "paceline")


def merged(plan, buckets, i, all_reduce):
    """The plan with buckets i and i + 1 as one, or nothing if no bucket has its all-reduce."""
    known = {bucket["all_reduce"]: row["all_reduce"] for bucket, row in zip(buckets, plan["buckets"])}
    if all_reduce not in known:
        return None
    rows = [dict(row) for row in plan["buckets"]]
    rows[i : i + 2] = [{**rows[i], "all_reduce": known[all_reduce], "gradients": rows[i]["gradients"] + rows[i + 1]["gradients"]}]
    used = sorted({row["all_reduce"] for row in rows})
    for row in rows:
        row["all_reduce"] = used.index(row["all_reduce"])
    return {**plan, "buckets": rows, "all_reduces": [plan["all_reduces"][j] for j in used]}


class Tune(CommandTest):
    def setUp(self):
        super().setUp()
        self.plan = self.folder / "plan.json"
        self.changed_plan = self.folder / "changed.json"

    def tuned(self, *words):
        return json.loads(self.done(run("tune", *TUNE, "--json", "--plan-out", str(self.plan), *words)))

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
        ours = {entry["name"] for entry in json.loads(run("show", "catalog", "--json").stdout)["strategies"]}
        for row in document["strategies"]:
            if row["name"] in ours - {"nccl"}:
                self.assertGreaterEqual(row["gain"], -1e-9, row["name"])
        best = document["by_thresholds"]
        self.assertAlmostEqual(best["iteration_s"], document["iteration_s"] * (1 + best["price"]), delta=1e-12)

    def test_what_runtimes_do_by_default_stands_beside_it(self):
        document = self.tuned("--time-limit", "0 s")
        rows = {row["name"]: row for row in document["strategies"]}
        self.assertLessEqual({"horovod", "horovod-hierarchical", "ddp", "ddp-ring", "one-bucket", "inductor", "mg-wfbp", "no-overlap"}, set(rows))
        self.assertEqual([(entry["runtime"], entry["name"]) for entry in document["runtime_defaults"]], [("Horovod", "horovod"), ("PyTorch DDP", "ddp")])
        for entry in document["runtime_defaults"]:
            self.assertEqual(entry["iteration_s"], rows[entry["name"]]["iteration_s"])
            self.assertAlmostEqual(entry["iteration_s"], document["iteration_s"] * (1 + entry["gain"]), delta=1e-12)
        # As predict --others says them, whose table has them only where it is asked for.
        predicted = json.loads(self.done(run("predict", *JOB, "--others", "--json")))["strategies"]
        served = {"byteps", "tf-parameter-server", "tf-distributed-replicated", "kvstore", "p3"}
        self.assertEqual({row["name"]: row["iteration_s"] for row in predicted if row["name"] not in served}, {name: row["iteration_s"] for name, row in rows.items()})
        text = self.done(run("tune", *TUNE, "--time-limit", "0 s"))
        gain = abs(100 * document["runtime_defaults"][0]["gain"])
        self.assertIn(f"defaults: Horovod's take {gain:.1f} % ", text)
        # Where there are no GPUs, DDP's process group is Gloo's.
        document = json.loads(self.done(run("tune", "--model", "cnn-small", "--cluster", str(EXAMPLES / "two-cores.yaml"), "--ranks", "2", "--time-limit", "0 s", "--json")))
        self.assertEqual([entry["name"] for entry in document["runtime_defaults"]], ["horovod", "ddp-ring"])
        self.assertNotIn("ddp", [row["name"] for row in document["strategies"]])
        # Strategies that the user names are all that there is.
        named = self.tuned("--time-limit", "0 s", "--strategy", "ring,fused-ring")
        self.assertEqual([row["name"] for row in named["strategies"]], ["ring", "fused-ring"])
        self.assertEqual(named["runtime_defaults"], [])
        self.assertNotIn("defaults:", self.done(run("tune", *TUNE, "--time-limit", "0 s", "--strategy", "ring")))

    def test_a_process_group_takes_its_own_all_reduce(self):
        whole = self.tuned("--engine", "step")
        document = self.tuned("--engine", "step", "--all-reduce", "ring")
        self.assertEqual((document["optimal"], document["candidates"]), (True, 1))
        self.assertEqual({bucket["all_reduce"] for bucket in document["buckets"]}, {"ring"})
        self.assertEqual(json.loads(self.plan.read_text())["all_reduces"], [{"algorithm": "ring"}])
        self.assertGreaterEqual(document["iteration_s"], whole["iteration_s"] * (1 - 1e-9))
        for row in document["strategies"]:
            if row["name"] in ("ring", "fused-ring"):
                self.assertGreaterEqual(row["gain"], -1e-9)
        # The best of all plans by rings is none that another all-reduce drives.
        self.assertEqual(document["by_thresholds"]["name"], "fused-ring")
        two = self.tuned("--time-limit", "0 s", "--all-reduce", "ring,double-binary-tree")
        self.assertLessEqual({bucket["all_reduce"].split(",")[0].split(" ")[0] for bucket in two["buckets"]}, {"ring", "double-binary-tree"})
        self.refused(run("tune", *TUNE, "--all-reduce", "rong"), "--all-reduce: unknown all-reduce 'rong'; did you mean 'ring'?")

    def test_buckets_of_several_streams_are_searched(self):
        job = ("--all-reduce", "ring", "--strategy", "ring,fused-ring", "--time-limit", "5 s")
        one = self.tuned(*job)
        row = lambda *words: json.loads(self.done(run("predict", *JOB, "--json", "--plan", str(self.plan), *words)))["strategies"][0]["iteration_s"]
        plan = json.loads(self.plan.read_text())
        plan["streams"] = 2
        self.plan.write_text(json.dumps(plan))
        one_with_two = row()
        document = self.tuned(*job, "--streams", "2")
        self.assertEqual((json.loads(self.plan.read_text())["streams"], document["optimal"]), (2, False))
        self.assertIn("travel together", document["why_not_optimal"])
        self.assertAlmostEqual(row() / document["iteration_s"], 1, delta=1e-9)
        self.assertLessEqual(document["least_iteration_s"], document["iteration_s"])
        # The search begins with the buckets of one stream, and with the rows.
        self.assertLessEqual(document["iteration_s"], one_with_two * (1 + 1e-9))
        for other in document["strategies"]:
            self.assertGreaterEqual(other["gain"], -1e-9, other["name"])
        self.assertGreater(one["iteration_s"], 0)

    def test_the_bound_of_one_stream_is_not_that_of_buckets_that_travel_together(self):
        job = ("--model", "resnet50", "--cluster", "h200-ndr", "--ranks", "64", "--strategy", "ring,parameter-server", "--time-limit", "2 s")
        result, document = run_as_both("tune", *job)
        text = self.done(result)
        self.assertEqual(document["strategy"], "parameter-server")
        self.assertGreater(document["gap"], 0)
        self.assertFalse(document["optimal"])
        self.assertIn("travel together", document["why_not_optimal"])
        self.assertIn("so that no plan is faster by more than", text)

    def test_text_says_what_is_proven(self):
        step = self.done(run("tune", *TUNE, "--engine", "step"))
        self.assertIn("the best plan: iteration", step)
        self.assertIn("proven: no contiguous buckets", step)
        auto = self.done(run("tune", *TUNE, "--time-limit", "0 s"))
        self.assertIn("lower bound:", auto)
        self.assertIn("not proven to be the best: links are shared", auto)
        self.assertIn("the search was stopped", auto)

    def test_the_first_and_the_last_of_many_buckets_are_listed(self):
        job = ("--model", "resnet50", "--cluster", "h200-ndr", "--ranks", "16", "--strategy", "parameter-server", "--time-limit", "1 s")
        text = self.done(run("tune", *job, "--why"))
        rows = [line.split()[0] for line in text.split("\n\n")[2].splitlines()[1:]]
        self.assertEqual(rows[:8], [*map(str, range(4)), "...", *map(str, range(158, 161))])
        self.assertIn("154 buckets are not listed (--wide lists all)", text)

    def test_an_engine_that_is_asked_for_leaves_out_what_it_would_follow_for_long(self):
        job = ("--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "1024", "--engine", "flow", "--time-limit", "0 s", "--strategy", "all")
        result, document = run_as_both("tune", *job, "--why")
        text = self.done(result)
        names = {row["name"] for row in document["left_out"]}
        self.assertIn("byte-scheduler", names)
        self.assertFalse(names & {row["name"] for row in document["strategies"]})
        for row in document["left_out"]:
            self.assertIn("million messages to follow", row["why"])
            self.assertEqual(row["remedy"], f"--strategy {row['name']} asks for it")
        for name in names:
            self.assertIn(f"{name}: left out: ", text)

    def test_each_bucket_says_what_its_next_best_choice_loses(self):
        for engine in ("step", "auto"):
            with self.subTest(engine=engine):
                document = self.tuned("--engine", engine, "--time-limit", "60 s", "--why")
                plan = json.loads(self.plan.read_text())
                seen = 0
                for i, bucket in enumerate(document["buckets"]):
                    losses = [other["loss"] for other in bucket["alternatives"]]
                    self.assertTrue(losses)
                    self.assertEqual(losses, sorted(losses))
                    self.assertGreater(losses[0], -2e-6)
                    for other in bucket["alternatives"]:
                        self.assertIn(other["change"], ("all-reduce", "merged", "cut", "ends-earlier", "ends-later"))
                        if other["change"] != "merged":
                            continue
                        changed = merged(plan, document["buckets"], i, other["buckets"][0]["all_reduce"])
                        if changed is None:
                            continue
                        seen += 1
                        self.changed_plan.write_text(json.dumps(changed))
                        row = json.loads(self.done(run("predict", *JOB, "--engine", engine, "--json", "--plan", str(self.changed_plan))))["strategies"][0]
                        self.assertAlmostEqual(row["iteration_s"] / other["iteration_s"], 1, delta=1e-9)
                self.assertGreater(seen, 0)
        text = self.done(run("tune", *TUNE, "--engine", "step", "--why", "--time-limit", "60 s"))
        self.assertIn("next best", text)
        self.assertIn("what would help most: ", text)
        self.assertIn("what each bucket would lose by other choices", text)

    def test_only_why_pays_for_explanations(self):
        result, document = run_as_both("tune", *TUNE, "--engine", "step", "--time-limit", "60 s")
        self.assertEqual([bucket["alternatives"] for bucket in document["buckets"]], [[]] * len(document["buckets"]))
        self.assertEqual(document["cut_short"], [])
        self.assertNotIn("next best", self.done(result))

    def test_what_the_time_cuts_short_is_a_line_each(self):
        report = self.folder / "report.html"
        words = ("tune", *TUNE, "--time-limit", "0 s", "--why")
        text = self.done(run(*words, "--html", str(report)))
        document = self.tuned("--time-limit", "0 s", "--why")
        last = len(document["buckets"]) - 1
        lines = ["the search was stopped: more time may find a better plan",
                 f"buckets 0 to {last} were not explained: the time was over (--time-limit)" if last else
                 "bucket 0 was not explained: the time was over (--time-limit)",
                 "what would help most was not tried: the time was over (--time-limit)"]
        self.assertEqual(document["cut_short"], lines)
        self.assertEqual(document["twice_as_good"], [])
        for line in lines:
            self.assertIn(f"  {line}\n", text)
            self.assertIn(line, report.read_text())

    def test_a_robust_plan_is_none_worse_on_the_same_samples(self):
        job = ("--engine", "step", "--robust", "--time-limit", "60 s")
        robust = self.tuned(*job)["robust"]
        self.assertEqual(robust, self.tuned(*job)["robust"])
        self.assertLessEqual(robust["robust"]["p95_s"], robust["best"]["p95_s"])
        self.assertGreaterEqual(robust["robust"]["iteration_s"], robust["best"]["iteration_s"] * (1 - 1e-9))
        self.assertEqual(robust["default"]["name"], "ddp")
        self.assertLessEqual(robust["gain"]["low"], robust["gain"]["high"])
        self.assertEqual(robust["keeps_default"], robust["gain"]["low"] <= 0)
        chosen = robust["default" if robust["keeps_default"] else "robust"]
        self.assertEqual(json.loads(self.plan.read_text())["strategy"], chosen["strategy"])
        self.assertNotEqual(robust["best"]["p95_s"], self.tuned(*job, "--seed", "3")["robust"]["best"]["p95_s"])
        ring = self.tuned(*job, "--strategy", "fused-ring", "--default", "fused-ring")["robust"]
        self.assertEqual(ring["default"]["name"], "fused-ring")
        text = self.done(run("tune", *TUNE, *job, "--default", "ring"))
        self.assertRegex(text, r"(is taken: the gain over ring is|ring is kept: the gain over it is) .* to ")

    def test_latency_that_streams_may_not_hide_is_in_robust_plans(self):
        job = ("--streams", "2", "--strategy", "fused-ring", "--all-reduce", "ring", "--robust", "--default", "fused-ring", "--time-limit", "2 s")
        robust = self.tuned(*job)["robust"]
        chosen = robust["robust"]
        plan = json.loads(self.plan.read_text())
        self.assertEqual(plan["streams"], 2)
        # Where the plan is kept, it gains on the default whether latency is hidden or not.
        times = {}
        for streams in (2, 1):
            self.changed_plan.write_text(json.dumps(plan | {"streams": streams}))
            times[streams] = json.loads(self.done(run("predict", *JOB, "--json", "--plan", str(self.changed_plan))))["strategies"][0]
        ours = robust["default"] if robust["keeps_default"] else chosen
        self.assertAlmostEqual(times[2]["iteration_s"], ours["iteration_s"], delta=1e-12)
        self.assertAlmostEqual(times[1]["iteration_s"] / times[2]["iteration_s"] - 1, ours["unhidden"], delta=1e-9)
        self.assertGreaterEqual(times[2]["iteration_high_s"] * (1 + 1e-9), times[1]["iteration_s"])
        in_order = robust["default"]["iteration_s"] * (1 + robust["default"]["unhidden"]) / (chosen["iteration_s"] * (1 + chosen["unhidden"])) - 1
        self.assertLessEqual(robust["gain"]["low"], min(in_order, robust["gain"]["value"]) + 1e-12)
        result, document = run_as_both("tune", *TUNE, *job)
        hidden = max(document["robust"][plan]["unhidden"] for plan in ("robust", "default")) > 1e-9
        self.assertEqual("streams hide from each other" in self.done(result), hidden)
        self.assertEqual(self.tuned("--robust", "--engine", "step")["robust"]["robust"]["unhidden"], 0)

    def test_show_plan_says_why_as_tune_does(self):
        heading = "what each bucket would lose by other choices"
        tuned = self.done(run("tune", *TUNE, "--engine", "step", "--why", "--wide", "--plan-out", str(self.plan)))
        whys = tuned[tuned.index(heading) :]
        whys = whys[: whys.index("\nstrategy ")]
        shown = self.done(run("show", "plan", *JOB, "--engine", "step", "--why", "--wide", "--plan", str(self.plan)))
        self.assertIn(whys.strip(), shown)
        self.assertGreater(len(whys.splitlines()), 8)
        self.assertNotIn(heading, self.done(run("show", "plan", *JOB, "--engine", "step", "--plan", str(self.plan))))
        # Of a strategy's plan a choice may gain.
        ring = self.done(run("show", "plan", *JOB, "--engine", "step", "--why", "--strategy", "ring"))
        self.assertRegex(ring[ring.index(heading) :], r"merged with the next .* -\d")
        self.assertRegex(self.done(run("show", "plan", *JOB, "--why", "--strategy", "nccl")), r"merged with the next .* nccl")
        self.assertIn("nothing was tried", self.done(run("show", "plan", *JOB, "--why", "--strategy", "horovod")))

    def test_a_plan_may_be_the_default(self):
        self.done(run("predict", *JOB, "--strategy", "ring", "--plan-out", str(self.changed_plan)))
        job = ("--engine", "step", "--robust", "--default")
        robust = self.tuned(*job, str(self.changed_plan))["robust"]
        same = self.tuned(*job, "ring")["robust"]
        self.assertEqual(robust["default"] | {"name": "ring"}, same["default"])
        self.assertEqual(robust["gain"], same["gain"])
        # The best plan gains nothing on itself, and so it is kept as it is.
        self.tuned("--engine", "step")
        best = json.loads(self.plan.read_text())
        best["strategy"] = "tuned"
        self.changed_plan.write_text(json.dumps(best))
        self.assertTrue(self.tuned(*job, str(self.changed_plan))["robust"]["keeps_default"])
        self.assertEqual(json.loads(self.plan.read_text())["buckets"], best["buckets"])
        self.refused(run("tune", "--model", "resnet50", *JOB[2:], *job, str(self.changed_plan)), "changed.json")
        self.refused(run("tune", *TUNE, "--wire", "fp32", *job, str(self.changed_plan)), "--default")
        self.refused(run("tune", *TUNE, *job, "nothing.json"), "nothing.json")

    def test_stragglers_are_in_the_sampled_states(self):
        job = ("--engine", "step", "--robust", "--time-limit", "60 s")
        alike = self.tuned(*job)["robust"]
        slow = self.tuned(*job, "--slow-rank", "3=2", "--spread", "normal:0.1")["robust"]
        self.assertEqual((alike["stragglers"], slow["stragglers"]), (None, {"spread": "normal:0.1", "slow_ranks": {"3": 2.0}}))
        for plan in ("best", "robust", "default"):
            self.assertGreater(slow[plan]["iteration_s"], alike[plan]["iteration_s"])
            self.assertGreater(slow[plan]["p95_s"], slow[plan]["iteration_s"])
        # The mean is that of predict for the plan, to its standard error.
        mean = json.loads(self.done(run("predict", *JOB, "--engine", "step", "--json", "--plan", str(self.plan), "--slow-rank", "3=2", "--spread", "normal:0.1")))
        chosen = slow["default" if slow["keeps_default"] else "robust"]
        self.assertAlmostEqual(mean["strategies"][0]["iteration_mean_s"] / chosen["iteration_s"], 1, delta=0.02)
        for option, value in (("--spread", "normal:0.1"), ("--slow-rank", "3=2"), ("--seed", "3"), ("--default", "ring")):
            self.refused(run("tune", *TUNE, option, value), option)
        self.refused(run("tune", *TUNE, "--robust", "--slow-rank", "64=2"), "--slow-rank")
        self.refused(run("tune", *TUNE, "--robust", "--slow-rank", "3=2", "--default", "k-fac"), "--default")

    def test_gpus_are_told_what_a_person_would_run(self):
        job = ("tune", "--model", "resnet50", "--cluster", "aws-p3-16xlarge", "--ranks", "64")
        result, document = run_as_both(*job, "--plan-out", str(self.plan))
        text = self.done(result)
        self.assertEqual(document["runtimes"], ["ddp", "nccl"])
        self.assertEqual([one["runtime"] for one in document["tried"]], ["ddp", "nccl"])
        self.assertEqual({bucket["all_reduce"] for bucket in document["buckets"]}, {"nccl (timed by its own model)"})
        default = document["runtime_defaults"][0]
        for one in document["tried"]:
            self.assertAlmostEqual(default["iteration_s"] / one["iteration_s"] - 1, one["gain"], delta=1e-9)
        # The plan that is written is the advised one, or the one that is kept.
        advice = document["advice"]
        self.assertIsNotNone(advice)
        self.assertGreater(advice["gain_low"], 0)
        self.assertGreaterEqual(advice["gain"], 0.01)
        row = json.loads(self.done(run("predict", *job[1:], "--json", "--plan", str(self.plan))))["strategies"][0]
        self.assertAlmostEqual(row["iteration_s"] / advice["iteration_s"], 1, delta=1e-6)
        self.assertLess(len(text.splitlines()), 10)
        self.assertLess(len(self.done(run(*job, "--why")).splitlines()), 60)

        kept, document = run_as_both("tune", "--model", "bert-large", "--cluster", "h200-ndr", "--ranks", "64", "--batch", "16",
                                     "--plan-out", str(self.changed_plan))
        self.assertIn("keep the defaults of PyTorch DDP: nothing that was tried gains more than", self.done(kept))
        self.assertIsNone(document["advice"])
        self.assertEqual(json.loads(self.changed_plan.read_text())["strategy"], "ddp")

    def test_a_runtime_takes_what_it_can_be_told(self):
        job = ("tune", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "64")
        document = json.loads(self.done(run(*job, "--runtime", "horovod", "--json")))
        self.assertEqual(document["runtime_defaults"][0]["runtime"], "Horovod")
        self.assertRegex(document["tried"][0]["setting"], r"HOROVOD_FUSION_THRESHOLD=\d+ HOROVOD_CYCLE_TIME=[\d.]+")
        ours = json.loads(self.done(run(*job, "--runtime", "paceline", "--json", "--time-limit", "0 s")))
        self.assertEqual((ours["runtimes"], ours["tried"], ours["advice"]), (["paceline"], [], None))
        self.refused(run(*job, "--runtime", "dpp"), "--runtime: unknown runtime 'dpp'; did you mean 'ddp'?")
        self.refused(run(*job, "--runtime", "ddp", "--all-reduce", "ring"), "--runtime: ddp takes no all-reduces, strategies or robust plans")
        self.refused(run("tune", "--model", "alexnet", "--cluster", "oci-bm-gpu-mi300x-8", "--ranks", "64", "--runtime", "nccl"),
                     "--runtime: NCCL does not run on mi300x; choose ddp, horovod or paceline")

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
        for words, part in ((("--plan", str(self.plan)), "plan"), (("--time-limit", "5"), "--time-limit"),
                            (("--host-copies",), "--host-copies"), (("--model", "alexnet,resnet50"), "--model"),
                            (("--plan-out", "/nonexistent/plan.json"), "--plan-out")):
            with self.subTest(words=words):
                self.refused(run("tune", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "8", *words), part)
        self.refused(run("train", "--model", "cnn-small", "--data", "synthetic", "--ranks", "2", "--strategy", "tuned"), "paceline tune")


if __name__ == "__main__":
    unittest.main()
