"""Strategy k-fac, end to end: predict, scale, cost, plans and timelines have it where it is named, and
what runs plans refuses it.
"""

import collections
import json
import unittest

from paceline import SOURCE, CommandTest, predict, run

ABCI = str(SOURCE / "experiments" / "kfac" / "clusters" / "abci.yaml")
STAGES = ["forward", "factor A", "backward", "factor G", "reduce-scatter", "invert", "precondition", "all-gather", "update"]


class Kfac(CommandTest):
    def row(self, *words, ranks="64"):
        return json.loads(self.done(predict("--json", "--strategy", "k-fac", *words, ranks=ranks)))["strategies"][0]

    def test_it_is_in_the_table_only_where_it_is_named(self):
        names = lambda *words: [row["name"] for row in json.loads(self.done(predict("--json", *words, ranks="16")))["strategies"]]
        self.assertNotIn("k-fac", names())
        self.assertNotIn("k-fac", names("--strategy", "ring", "--others"))
        self.assertEqual(names("--strategy", "ring,k-fac"), ["ring", "k-fac"])
        self.assertIn("k-fac", self.done(run("predict", "--help-all")))
        self.refused(predict("--strategy", "kfac"), "did you mean 'k-fac'?")
        self.assertEqual([entry["name"] for entry in json.loads(self.done(run("show", "catalog", "--json")))["optimizers"]], ["k-fac"])

    def test_bytes_on_the_wire_are_triangles_and_gradients(self):
        half, whole = self.row(), self.row("--wire", "fp32")
        for row, size in ((half, 2), (whole, 4)):
            stages = row["k_fac"]
            gradients = size * 25_557_032
            self.assertEqual(stages["all_gather"]["bytes"], gradients)
            # A of 53 convolutions and the last layer; of their outputs, and of 53 batch norms of both parameters.
            self.assertEqual(stages["reduce_scatter_beside_backward"]["bytes"], size * 62_348_671)
            self.assertEqual(stages["reduce_scatter"]["bytes"], size * 71_063_220 + gradients)
            self.assertEqual(stages["owners"], 64)
            self.assertEqual(row["buckets"], 1)
            self.assertGreater(row["memory"]["factors_bytes"], 0)
        after = self.row("--overlap", "none")["k_fac"]
        self.assertEqual(after["reduce_scatter_beside_backward"]["bytes"], 0)
        self.assertEqual(after["reduce_scatter"]["bytes"],
                         half["k_fac"]["reduce_scatter"]["bytes"] + half["k_fac"]["reduce_scatter_beside_backward"]["bytes"])
        self.assertNotIn("factors_bytes", json.loads(self.done(predict("--json", "--strategy", "ring")))["strategies"][0]["memory"])

    def test_one_rank_sends_nothing_and_inverts_all(self):
        one, many = self.row(ranks="1"), self.row(ranks="1024")
        self.assertEqual((one["communication_s"], one["exposed_communication_s"], one["k_fac"]["owners"]), (0, 0, 1))
        self.assertEqual(many["k_fac"]["owners"], 107)
        self.assertGreater(one["k_fac"]["invert_s"], 2 * many["k_fac"]["invert_s"])
        self.assertLess(one["iteration_low_s"], one["iteration_s"])
        self.assertGreater(one["iteration_high_s"], one["iteration_s"])

    def test_factors_that_are_seldom_refreshed_cost_less(self):
        once, tenth = self.row("--overlap", "none"), self.row("--overlap", "none", "--factors-every", "10")
        self.assertEqual((once["thresholds"]["factors_every"], tenth["thresholds"]["factors_every"]), (1, 10))
        self.assertLess(tenth["iteration_s"], once["iteration_s"])
        # The ends of ranks wait by the same factor in both rows.
        for key in ("factors_s", "invert_s"):
            self.assertAlmostEqual(tenth["k_fac"][key], once["k_fac"][key] / 10, delta=1e-9)
        self.assertEqual(tenth["k_fac"]["precondition_s"], once["k_fac"]["precondition_s"])
        text = self.done(predict("--strategy", "k-fac", "--factors-every", "10", ranks="64"))
        self.assertIn("means of 10 iterations, one of which has factors", text)
        turns = self.row("--server-placement", "round-robin", ranks="8")
        self.assertEqual(turns["thresholds"]["placement"], "round-robin")
        self.assertGreaterEqual(turns["k_fac"]["invert_s"], self.row(ranks="8")["k_fac"]["invert_s"])

    def test_the_timeline_has_the_stages_in_their_order(self):
        path = self.folder / "timeline.json"
        row = self.row("--timeline", str(path))
        events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X" and event["args"]["iteration"] == 0]
        found = collections.Counter(event["cat"] for event in events)
        self.assertEqual(set(STAGES) - set(found), set())
        self.assertEqual((found["factor A"], found["factor G"], found["all-gather"]), (54, 107, 1))
        self.assertEqual(found["reduce-scatter"], 2)
        first = {stage: min(event["ts"] for event in events if event["cat"] == stage) for stage in STAGES}
        last = {stage: max(event["ts"] + event["dur"] for event in events if event["cat"] == stage) for stage in STAGES}
        for before, after in (("factor A", "backward"), ("backward", "invert"), ("reduce-scatter", "invert"), ("precondition", "all-gather"), ("all-gather", "update")):
            self.assertLessEqual(last[before], first[after] + 1e-3, (before, after))
        # Factors A are on their way while the backward pass runs.
        self.assertLess(first["reduce-scatter"], last["backward"])
        self.assertIn("layer", next(event for event in events if event["cat"] == "invert")["args"])
        self.assertEqual(row["critical_path"].keys() & {"factor_a_s", "factor_g_s", "invert_s", "all_gather_s"},
                         {"factor_a_s", "factor_g_s", "invert_s", "all_gather_s"})

    def test_a_plan_is_predicted_as_the_row_that_wrote_it(self):
        path = self.folder / "plan.json"
        row = self.row("--factors-every", "3", "--plan-out", str(path))
        job = ("--model", "resnet50", "--cluster", "jizhi-p40", "--plan", str(path))
        again = json.loads(self.done(run("predict", *job, "--json")))["strategies"][0]
        for key in ("iteration_s", "iteration_low_s", "efficiency", "k_fac"):
            self.assertEqual(row[key], again[key], key)
        self.assertIn("k-fac, owners balanced, factors every 3", self.done(run("show", "plan", *job)))
        self.refused(run("predict", *job, "--factors-every", "2"), "--factors-every", "the plan of --plan says this already")
        problem = "k-fac models what another system does: it can be predicted, not run"
        self.refused(run("replay", *job), problem)
        self.refused(run("replay", "--model", "cnn-small", "--cluster", "jizhi-p40", "--ranks", "2", "--batch", "2", "--strategy", "k-fac"), problem)
        self.refused(run("train", "--model", "cnn-small", "--data", "synthetic", "--strategy", "k-fac"), problem)

    def test_scale_and_cost_have_it(self):
        job = ("--model", "resnet50", "--cluster", ABCI, "--batch", "32", "--strategy", "k-fac", "--overlap", "none")
        curve = json.loads(self.done(run("scale", *job, "--ranks", "4,64,1024", "--json")))
        self.assertEqual([point["ranks"] for point in curve["points"]], [4, 64, 1024])
        cost = json.loads(self.done(run("cost", *job, "--ranks", "1024", "--epochs", "45", "--dataset", "1281167", "--json")))
        row = json.loads(self.done(run("predict", *job, "--ranks", "1024", "--json")))["strategies"][0]
        self.assertAlmostEqual(cost["strategies"][0]["time_s"], row["iteration_s"] * 45 * 1281167 / 32768, delta=1e-6)

    def test_the_published_row_is_predicted(self):
        document = json.loads(self.done(run("reproduce", "kfac", "--json")))
        self.assertEqual(document["left_out"], [])
        [row] = document["rows"]
        self.assertEqual((row["provenance"], row["published"], row["unit"]), ("predicted", 10, "min"))
        self.assertLess(row["low"], row["ours"])
        self.assertLess(row["ours"], row["high"])
        # Nothing calibrates it: the roofline, and 45 epochs.
        self.assertIn("roofline of v100", row["configuration"])
        cost = json.loads(self.done(run("cost", "--model", "resnet50", "--cluster", ABCI, "--batch", "32", "--ranks", "1024", "--strategy", "k-fac",
                                        "--overlap", "none", "--epochs", "45", "--dataset", "1281167", "--json")))
        self.assertAlmostEqual(cost["strategies"][0]["time_s"] / 60, row["ours"], delta=1e-6)

    def test_bad_options_are_one_line(self):
        for words in ("0", "-1", "1.5", "two", "1e9", "10000000"):
            self.refused(predict("--strategy", "k-fac", "--factors-every", words), "--factors-every")
        for overlap in ("priority", "double-buffered"):
            self.refused(predict("--strategy", "k-fac", "--overlap", overlap), "--overlap: k-fac has no overlap " + overlap)
        self.refused(predict("--strategy", "k-fac", "--spread", "normal:0.1"), "no stragglers are simulated with k-fac")
        self.refused(predict("--strategy", "k-fac", "--scale-gradients", "0.1"), "--scale-gradients")
        self.refused(predict("--strategy", "k-fac", "--server-placement", "anywhere"), "--server-placement")
        self.refused(run("train", "--model", "cnn-small", "--factors-every", "2"), "--factors-every")


if __name__ == "__main__":
    unittest.main()
