"""paceline compare --what-if, end to end: a replay with a slow rank, and a timeline of planted times."""

import copy
import json
import pathlib
import shutil
import tempfile
import unittest

from paceline import EXAMPLES, run as paceline

CLUSTER = str(EXAMPLES / "two-cores.yaml")
QUICK = ("without-slowest", "compute=2", "bandwidth=2", "latency=0.5", "strategy=ring")


class WhatIf(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="paceline-what-if-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.recorded = str(cls.folder / "run.json")
        result = paceline("replay", "--model", "cnn-small", "--cluster", CLUSTER, "--ranks", "2", "--batch", "128", "--precision",
                          "fp32", "--strategy", "fused-ring", "--theta", "100KB", "--iterations", "4", "--slow-rank", "1=4",
                          "--timeline", cls.recorded)
        assert result.returncode == 0, result.stderr

    def ask(self, question, *words, file=None):
        return paceline("compare", file or self.recorded, "--what-if", question, *words)

    def answers(self, question, *words, file=None):
        result = self.ask(question, *words, "--json", file=file)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        document = json.loads(result.stdout)
        self.assertEqual(document["schema"], "paceline.what_if/1")
        return document, {answer["name"]: answer for answer in document["answers"]}

    def refused(self, result, problem):
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), result.stderr)
        self.assertIn(problem, result.stderr)

    def planted(self, **changes):
        """The recorded timeline with times that are known: an iteration of 200 ms of which rank 1 computes 150, and
        rank 0 half of that; two buckets, of which the second travels for 30 ms behind the backward pass."""
        document = json.loads(pathlib.Path(self.recorded).read_text())
        job = document["otherData"]["timelines"][0]
        layers, buckets = len(job["layers"]), len(job["buckets"])
        self.assertEqual(buckets, 2)

        def rank(times):
            return {"forward_s": [times * 0.05 / layers] * layers, "backward_s": [times * 0.1 / layers] * layers,
                    "update_s": 0.004, "rest_s": 0.016}

        document["otherData"]["rank_times"] = {"transfers_s": [0.001, 0.03], "ranks": [rank(0.5), rank(1)]}
        events = []
        for event in document["traceEvents"]:
            if event["ph"] != "X" or event["cat"] not in ("forward", "backward", "update", "all-reduce"):
                continue
            index, start = event["args"]["index"], 0.2 * event["args"]["iteration"]
            length = 0.0375 / layers
            if event["cat"] == "forward":
                begin = index * length
            elif event["cat"] == "backward":
                begin = 0.0375 + (layers - 1 - index) * length
            elif event["cat"] == "update":
                begin, length = 0.18, 0.004
            else:
                begin, length = (0.075, 0.076) if index == 0 else (0.151, 0.029)
            event["ts"], event["dur"] = (start + begin) * 1e6, length * 1e6
            events.append(event)
        document["traceEvents"] = events
        document["otherData"].update(changes.pop("other", {}))
        for key, value in changes.items():
            job[key] = value
        path = self.folder / "planted.json"
        path.write_text(json.dumps(document))
        return str(path)

    def test_the_slow_rank_of_a_replay_is_named(self):
        document, answers = self.answers(",".join(QUICK), "--cluster", CLUSTER)
        self.assertEqual((document["ranks"], document["slowest_rank"], len(document["measured_ranks"])), (2, 1, 2))
        slow, other = document["measured_ranks"][1]["passes_s"], document["measured_ranks"][0]["passes_s"]
        self.assertAlmostEqual(slow / other, 4, delta=1e-3)  # a replay's layers take what they are told
        self.assertEqual(list(answers), list(QUICK))
        self.assertLess(answers["without-slowest"]["iteration_s"], document["measured_iteration_s"])
        for answer in answers.values():
            self.assertEqual(answer["provenance"], "predicted")
            self.assertAlmostEqual(answer["gain"], 1 - answer["iteration_s"] / document["measured_iteration_s"], delta=1e-9)
            self.assertAlmostEqual(answer["iteration_s"] - answer["dag_iteration_s"],
                                   document["measured_iteration_s"] - document["dag_iteration_s"], delta=1e-9)
            self.assertTrue(answer["rests_on"])

    def test_planted_times_have_answers_that_are_known(self):
        document, answers = self.answers("without-slowest,without-rank=0,compute=2,bandwidth=1,compute=2+without-rank=0", file=self.planted())
        self.assertAlmostEqual(document["measured_iteration_s"], 0.2, delta=1e-8)
        # Rank 1 computes for 150 ms; then the second bucket, 30 ms, and 20 ms for the update and the rest. What it takes
        # rank 0's events to hand over is nothing: the stream is busy until its second bucket is there.
        self.assertAlmostEqual(document["dag_iteration_s"], 0.2, delta=1e-8)
        expected = {"without-slowest": 0.075 + 0.03 + 0.02, "without-rank=0": 0.2, "compute=2": 0.075 + 0.03 + 0.018, "bandwidth=1": 0.2,
                    "compute=2+without-rank=0": 0.075 + 0.03 + 0.018}
        for name, iteration in expected.items():
            self.assertAlmostEqual(answers[name]["iteration_s"], iteration, delta=1e-8, msg=name)

    def test_the_table_says_what_answers_rest_on(self):
        result = self.ask("without-slowest,bandwidth=2", "--cluster", CLUSTER, file=self.planted())
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("an iteration takes 200 ms, measured; the DAG with the measured durations takes 200 ms: ", result.stdout)
        self.assertIn("\nslowest rank: 1 of 2, 154 ms of passes and update; ", result.stdout)
        self.assertRegex(result.stdout, r"\nwithout-slowest +125 ms +\+37.5 % +1.6 x\n")
        self.assertIn("\n  bandwidth=2: all-reduces: measured, each times what the model says of it (", result.stdout)
        self.assertNotIn("doubtful", result.stdout)

    def test_a_run_that_the_dag_does_not_explain_has_doubtful_answers(self):
        planted = json.loads(pathlib.Path(self.planted()).read_text())
        for rank in planted["otherData"]["rank_times"]["ranks"]:
            rank["rest_s"] = 0.1
        path = self.folder / "doubtful.json"
        path.write_text(json.dumps(planted))
        result = self.ask("compute=2", file=str(path))
        self.assertIn("so the DAG does not explain this run to 3 %, and each answer is doubtful by as much\n", result.stdout)
        self.assertRegex(result.stdout, r"\nwhat if +iteration +saved +speed +doubtful by\ncompute=2 .* \+42.0 %\n")

    def test_another_plan_is_that_of_the_strategy(self):
        plan = str(self.folder / "plan.json")
        result = paceline("predict", "--model", "cnn-small", "--cluster", CLUSTER, "--ranks", "2", "--batch", "128", "--precision", "fp32",
                          "--strategy", "ring", "--plan-out", plan)
        self.assertEqual(result.returncode, 0, result.stderr)
        _, answers = self.answers(f"strategy=ring,plan={plan},strategy=fused-ring+bandwidth=2", "--cluster", CLUSTER, file=self.planted())
        self.assertEqual(answers["strategy=ring"]["iteration_s"], answers[f"plan={plan}"]["iteration_s"])
        self.assertIn(" all-reduces of the other plan: predicted, times ", answers["strategy=ring"]["rests_on"][0])

    def test_what_cannot_be_answered_is_refused(self):
        planted = self.planted()
        for question, words, problem in (
                ("bandwith=2", (), "--what-if: unknown question 'bandwith'; did you mean 'bandwidth'?"),
                ("bandwidth", (), "--what-if: 'bandwidth' has no value; write it as in bandwidth=2"),
                ("bandwidth=0", (), "--what-if: '0' is not a number from 0.001 to 1000"),
                ("without-slowest=2", (), "--what-if: 'without-slowest' takes no value"),
                ("compute=2+compute=3", (), "--what-if: 'compute' is there twice"),
                ("strategy=ring+plan=x", (), "names a strategy and a plan; leave one of the two out"),
                ("without-rank=2", (), "--what-if: without-rank=2: the timeline has no times of rank 2; choose 0 to 1"),
                ("without-rank=0+without-rank=1", (), "no rank is left"),
                ("bandwidth=2", (), "--cluster is missing; a model says what other links or another plan do"),
                ("strategy=nosuch", ("--cluster", CLUSTER), "--what-if: unknown strategy 'nosuch'"),
                ("strategy=byteps", ("--cluster", CLUSTER), "--what-if: byteps models what another system does"),
                ("plan=/nowhere.json", ("--cluster", CLUSTER), "/nowhere.json"),
                ("bandwidth=2", ("--cluster", CLUSTER, "--model", "resnet-small"), "its buckets do not hold the gradients of resnet-small"),
                ("compute=2", ("--merged", "x.json"), "--merged: --what-if asks about the run alone")):
            with self.subTest(question=question, words=words):
                self.refused(self.ask(question, *words, file=planted), problem)
        self.refused(paceline("compare", planted, "--cluster", CLUSTER), "--cluster: a comparison predicts nothing")
        self.refused(paceline("compare", planted), "PREDICTION is missing; give the --timeline of paceline predict")

    def test_a_timeline_of_rank_zero_alone_has_no_slowest_rank(self):
        document = json.loads(pathlib.Path(self.planted()).read_text())
        whole = copy.deepcopy(document)
        del document["otherData"]["rank_times"]
        path = self.folder / "rank0.json"
        path.write_text(json.dumps(document))
        self.refused(self.ask("without-slowest", file=str(path)), "it has the times of rank 0 only, and so no slowest rank; record the run again")
        result = self.ask("compute=2", file=str(path))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("\nthe timeline has the times of rank 0 only", result.stdout)
        whole["otherData"]["rank_times"]["ranks"].pop()
        path.write_text(json.dumps(whole))
        self.refused(self.ask("compute=2", file=str(path)), "otherData.rank_times.ranks: 1 ranks of 2")

    def test_a_prediction_is_no_run(self):
        path = str(self.folder / "prediction.json")
        result = paceline("predict", "--model", "cnn-small", "--cluster", CLUSTER, "--ranks", "2", "--strategy", "ring", "--timeline", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.refused(self.ask("compute=2", file=path), "this is no run: its times are 'predicted'; give the --timeline of paceline train or replay")


if __name__ == "__main__":
    unittest.main()
