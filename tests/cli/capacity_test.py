"""paceline plan-capacity, end to end: candidates against predict and cost, the front and the answer
against brute force, where efficiency falls against a scan, and what is refused.
"""

import csv
import io
import json
import unittest
import xml.etree.ElementTree as xml

from paceline import EXAMPLES, CommandTest, run

QUICK = "fused-ring,hierarchical,hybrid,torus-2d,binary-blocks"
RUN = ("--epochs", "90", "--dataset", "imagenet", "--strategy", QUICK)
PRICES = {"h200-ndr": "aws-p5en-48xlarge", "sony-abci": "9 USD/h"}
CLUSTERS = "aws-p3-16xlarge,h200-ndr,sony-abci"


def plan(*words, model="resnet50", cluster=CLUSTERS, price=PRICES):
    if price is PRICES:
        price = ",".join(f"{name}={value}" for name, value in PRICES.items() if name in cluster.split(",") and "--nic" not in words)
    return run("plan-capacity", "--model", model, "--cluster", cluster, *RUN, *(("--node-price", price) if price else ()), *words)


def document(*words, code=0, **named):
    result = plan(*words, "--json", **named)
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)


def dominates(a, b):
    return a["time_s"] <= b["time_s"] and a["cost_usd"] <= b["cost_usd"] and (a["time_s"], a["cost_usd"]) != (b["time_s"], b["cost_usd"])


class Candidates(CommandTest):
    def test_each_is_the_starred_row_of_cost_and_of_predict(self):
        for words in (("--batch", "128"), ("--global-batch", "2048")):
            whole = document("--nodes", "4,16", *words)
            self.assertEqual(len(whole["candidates"]), 6)
            for candidate in whole["candidates"]:
                price = PRICES.get(candidate["cluster"], candidate["cluster"])
                job = ("--model", "resnet50", "--cluster", candidate["cluster"], "--ranks", str(candidate["ranks"]), "--batch", str(candidate["batch_per_rank"]))
                cost = json.loads(run("cost", *job, *RUN, "--node-price", price, "--json").stdout)
                row = next(r for r in cost["strategies"] if r["name"] == cost["best"]["name"])
                self.assertEqual(candidate["strategy"], row["name"])
                self.assertEqual(candidate["nodes"], cost["nodes"])
                for key in ("time_s", "time_low_s", "time_high_s", "cost_usd", "cost_low_usd", "cost_high_usd", "energy_kwh", "energy_high_kwh", "device_hours"):
                    self.assertEqual(candidate[key], row[key], key)
                predicted = json.loads(run("predict", *job, "--strategy", QUICK, "--json").stdout)
                row = next(r for r in predicted["strategies"] if r["name"] == candidate["strategy"])
                self.assertEqual(candidate["efficiency"], row["efficiency"])
                self.assertEqual(candidate["efficiency_baseline_ranks"], row["efficiency_baseline_ranks"])
                self.assertEqual(candidate["phases"][0]["iteration_s"], row["iteration_s"])
                self.assertEqual(candidate["phases"][0]["memory_bytes"], row["memory"]["total_bytes"])
                self.assertLessEqual(candidate["efficiency_low"], candidate["efficiency"])
                self.assertLessEqual(candidate["efficiency"], candidate["efficiency_high"])

    def test_without_named_strategies_rows_are_those_of_cost_but_for_the_slow_ones(self):
        words = ("--model", "resnet50", "--cluster", "h200-ndr", "--iterations", "100")
        whole = json.loads(run("plan-capacity", *words, "--ranks", "16", "--json").stdout)["candidates"][0]
        rows = json.loads(run("cost", *words, "--ranks", "16", "--json").stdout)["strategies"]
        rows = [r for r in rows if r["name"] not in ("parameter-server", "direct-exchange")]
        self.assertGreater(len(rows), 10)
        best = min(rows, key=lambda r: r["time_s"])
        self.assertEqual((whole["strategy"], whole["time_s"]), (best["name"], best["time_s"]))

    def test_strategies_that_are_not_compared_are_said(self):
        words = ("plan-capacity", "--model", "resnet50", "--cluster", "h200-ndr", "--iterations", "100", "--ranks", "8,16")
        slow = ["parameter-server", "direct-exchange"]
        for asked, left_out in (((), slow), (("--strategy", "all"), []), (("--strategy", "fused-ring,direct-exchange"), [])):
            document = json.loads(run(*words, *asked, "--json").stdout)
            self.assertCountEqual([one["name"] for one in document["not_compared"]], left_out)
            text = run(*words, *asked).stdout
            for name in slow:
                self.assertEqual(text.count(f"left out: {name}: it takes a second a candidate to follow; "), name in left_out)
        # What a candidate's own table leaves out stands there, too.
        words = ("--model", "alexnet", "--cluster", "jizhi-p40", "--iterations", "100", "--strategy", "all")
        document = json.loads(run("plan-capacity", *words, "--ranks", "8,1024", "--json").stdout)
        cost = json.loads(run("cost", *words, "--ranks", "1024", "--json").stdout)
        self.assertEqual([(one["name"], one["candidates"]) for one in document["not_compared"]], [(row["name"], [1]) for row in cost["left_out"]])
        self.assertIn("left out: parameter-server of 1 of 2 candidates: ", run("plan-capacity", *words, "--ranks", "8,1024").stdout)

    def test_phases_are_those_of_cost(self):
        path = str(EXAMPLES / "batch-warm-up.yaml")
        words = ("--model", "resnet50", "--cluster", "aws-p3-16xlarge", "--phases", path, "--strategy", "hybrid")
        whole = json.loads(run("plan-capacity", *words, "--nodes", "2", "--json").stdout)["candidates"][0]
        row = json.loads(run("cost", *words, "--ranks", "16", "--json").stdout)["strategies"][0]
        self.assertEqual((whole["time_s"], whole["cost_high_usd"]), (row["time_s"], row["cost_high_usd"]))
        self.assertEqual(len(whole["phases"]), len(row["phases"]))
        effs = [p["efficiency"] for p in whole["phases"]]
        self.assertTrue(min(effs) <= whole["efficiency"] <= max(effs))

    def test_other_nics_are_those_of_predict(self):
        whole = document("--nodes", "8", "--nic", "own,2xroce-100g,4 GB/s", cluster="aws-p3-16xlarge", price="aws-p3-16xlarge+2xroce-100g=30 USD/h")
        self.assertEqual([c["cluster"] for c in whole["candidates"]], ["aws-p3-16xlarge", "aws-p3-16xlarge + 2xroce-100g", "aws-p3-16xlarge + 4 GB/s"])
        self.assertEqual([c["cost_usd"] is None for c in whole["candidates"]], [False, False, True])
        self.assertAlmostEqual(whole["candidates"][1]["cost_usd"], whole["candidates"][1]["time_s"] / 3600 * 8 * 30, delta=1e-9)
        for candidate, nic in zip(whole["candidates"], ((), ("--nic", "2xroce-100g"), ("--nic", "4 GB/s"))):
            predicted = json.loads(run("predict", "--model", "resnet50", "--cluster", "aws-p3-16xlarge", "--ranks", "64", "--strategy", QUICK, *nic, "--json").stdout)
            row = next(r for r in predicted["strategies"] if r["name"] == candidate["strategy"])
            self.assertEqual(candidate["phases"][0]["iteration_s"], row["iteration_s"])
            self.assertEqual(predicted["nic"], nic[1] if nic else None)
        times = [c["time_s"] for c in whole["candidates"]]
        self.assertTrue(times[1] < times[2] < times[0])

    def test_numbers_of_nodes_and_ranks(self):
        def ranks(*words, cluster="aws-p3-16xlarge"):
            whole = document(*words, cluster=cluster, price="1 USD/h")
            return [c["ranks"] for c in whole["candidates"]]
        self.assertEqual(ranks("--nodes", "1-6"), [8, 16, 32, 48])
        self.assertEqual(ranks("--nodes", "2-7:2,3"), [16, 24, 32, 48])
        self.assertEqual(ranks("--ranks", "12,4"), [4, 12])
        self.assertEqual(ranks(), [8 * n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)])
        whole = document("--nodes", "32,64", cluster="goyal-p100,jizhi-p40", price="1 USD/h")
        self.assertEqual([(c["cluster"], c["nodes"]) for c in whole["candidates"]], [("goyal-p100", 32), ("jizhi-p40", 32), ("jizhi-p40", 64)])
        self.assertEqual([(line["cluster"], line["ranks"]) for line in whole["left_out"]], [("goyal-p100", [512])])
        self.assertIn("it has 256 ranks", whole["left_out"][0]["why"])


class Memory(CommandTest):
    def test_what_does_not_fit_is_left_out_and_auto_cuts_it(self):
        words = ("--global-batch", "8192", "--nodes", "1-64")
        whole = document(*words, cluster="aws-p3-16xlarge")
        out = whole["left_out"][0]
        self.assertEqual(out["ranks"], [8, 16])
        self.assertIn("16 GB of a v100 do not hold it: at 8 ranks, batch 1024 needs", out["why"])
        self.assertIn("--accumulate auto", out["remedy"])
        for candidate in whole["candidates"]:
            self.assertLessEqual(candidate["phases"][0]["memory_bytes"], 16e9)
        cut = document(*words, "--accumulate", "auto", cluster="aws-p3-16xlarge")
        self.assertEqual(cut["left_out"], [])
        for candidate in cut["candidates"]:
            self.assertEqual(candidate["ranks"] * candidate["batch_per_rank"] * candidate["accumulate"], 8192)
            self.assertLessEqual(candidate["phases"][0]["memory_bytes"], 16e9)
            if candidate["accumulate"] == 1:
                continue
            # One part fewer would not be equal, or would not fit.
            whole_batch = 8192 // candidate["ranks"]
            fewer = [k for k in range(1, candidate["accumulate"]) if whole_batch % k == 0]
            self.assertTrue(all(whole_batch // k > candidate["phases"][0]["largest_batch_per_rank"] for k in fewer))
            cost = json.loads(run("cost", "--model", "resnet50", "--cluster", "aws-p3-16xlarge", "--ranks", str(candidate["ranks"]), "--batch", str(candidate["batch_per_rank"]),
                                  "--accumulate", str(candidate["accumulate"]), *RUN, "--json").stdout)
            row = next(r for r in cost["strategies"] if r["name"] == candidate["strategy"])
            self.assertEqual(candidate["time_s"], row["time_s"])
        # Those that fit are the same either way.
        self.assertEqual([c["time_s"] for c in whole["candidates"]], [c["time_s"] for c in cut["candidates"] if c["accumulate"] == 1])

    def test_a_global_batch_without_equal_parts_is_left_out(self):
        whole = document("--global-batch", "1000", "--ranks", "8,16,40", cluster="aws-p3-16xlarge")
        self.assertEqual([(c["ranks"], c["batch_per_rank"]) for c in whole["candidates"]], [(8, 125), (40, 25)])
        self.assertIn("no equal parts", whole["left_out"][0]["why"])

    def test_nothing_that_fits_is_bad_input(self):
        self.refused(plan("--batch", "4096", "--nodes", "1,2", cluster="aws-p3-16xlarge"), "there is no candidate", "v100", "at most")


class Answers(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.words = ("--global-batch", "4096", "--accumulate", "auto", "--nodes", "1-64")
        cls.all = document(*cls.words)

    def test_the_front_is_what_nothing_dominates(self):
        candidates = self.all["candidates"]
        self.assertGreater(len(candidates), 15)
        front = self.all["front"]
        self.assertEqual(sorted(front), [i for i, c in enumerate(candidates) if not any(dominates(o, c) for o in candidates)])
        self.assertEqual([c["on_front"] for c in candidates], [i in front for i in range(len(candidates))])
        times = [candidates[i]["time_s"] for i in front]
        self.assertEqual(times, sorted(times))
        self.assertGreater(len(front), 2)

    def test_the_answer_is_that_of_brute_force_and_monotone(self):
        candidates = self.all["candidates"]
        asked = []
        for minutes in (3, 6, 12, 60, 600):
            within = [i for i, c in enumerate(candidates) if c["time_s"] <= 60 * minutes]
            whole = document(*self.words, "--within", f"{minutes} min", code=0 if within else 1)
            expected = min(within, key=lambda i: candidates[i]["cost_usd"]) if within else None
            self.assertEqual(whole["answer"], expected)
            if within:
                asked.append(whole["candidates"][expected]["cost_usd"])
            else:
                self.assertEqual(whole["nearest"], min(range(len(candidates)), key=lambda i: candidates[i]["time_s"]))
        self.assertGreater(len(asked), 2)
        self.assertEqual(asked, sorted(asked, reverse=True))
        asked = []
        for budget in (45, 60, 100, 300):
            whole = document(*self.words, "--budget", f"{budget} USD")
            within = [i for i, c in enumerate(candidates) if c["cost_usd"] <= budget]
            self.assertEqual(whole["answer"], min(within, key=lambda i: candidates[i]["time_s"]))
            asked.append(candidates[whole["answer"]]["time_s"])
        self.assertEqual(asked, sorted(asked, reverse=True))
        self.assertLess(asked[-1], asked[0])

    def test_cautious_answers_hold_at_the_bad_end(self):
        candidates = self.all["candidates"]
        whole = document(*self.words, "--within", "30 min", "--cautious")
        within = [i for i, c in enumerate(candidates) if c["time_high_s"] <= 1800]
        self.assertEqual(whole["answer"], min(within, key=lambda i: candidates[i]["cost_usd"]))
        bold = document(*self.words, "--within", "30 min")
        self.assertGreater(candidates[bold["answer"]]["time_high_s"], 1800)
        self.assertIn("--cautious", plan(*self.words, "--within", "30 min").stdout)

    def test_nothing_does_it_is_exit_code_1_with_all_that_is_known(self):
        result = plan(*self.words, "--within", "5 s")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertIn("cannot find the cheapest within 5 s: no candidate is; the nearest is", result.stderr)
        self.assertIn("nearest:", result.stdout)
        self.assertIn("time against cost", result.stdout)

    def test_the_text_says_the_answer_first_and_where_prices_come_from(self):
        result = plan(*self.words, "--within", "1h")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertIn("batch 4096 of all ranks", lines[0])
        self.assertTrue(lines[2].startswith("cheapest within 1 h: "))
        for part in ("* the answer", "which measurement would narrow the answer most", "paceline calibrate import", "not predicted: how many epochs",
                     "AWS on demand, us-east-1, 6 August 2026", "rated power        300 W, published", "price of a node    9 USD/h, datasheet: --node-price",
                     "not counted: evaluation (--evaluate)"):
            self.assertIn(part, " ".join(result.stdout.split()) if "  " not in part else result.stdout)
        table = result.stdout.split("\n\n")[2].splitlines()
        self.assertTrue(all(len(line) <= 100 for line in table))
        answer = next(line for line in table if line.startswith("* "))
        self.assertIn(answer.split()[1], lines[2])

    def test_numbers_of_nodes_beside_the_answer_that_nobody_compared_are_named(self):
        words = ("--batch", "64", "--within", "40 min")
        hint = "nothing was compared between 4 and 16 nodes: --nodes 4-16:1 does"
        self.assertIn(hint, plan(*words, "--nodes", "4,16", cluster="aws-p3-16xlarge").stdout)
        all_between = plan(*words, "--nodes", "4-16:1", cluster="aws-p3-16xlarge")
        self.assertEqual(all_between.returncode, 0)
        self.assertNotIn("nothing was compared", all_between.stdout)
        # No number of nodes in between has equal parts of a batch of all ranks.
        text = self.done(plan("--global-batch", "2048", "--within", "60 min", "--nodes", "4,8", cluster="aws-p3-16xlarge"))
        self.assertIn("64 ranks of aws-p3-16xlarge", text)
        self.assertNotIn("nothing was compared", text)

    def test_what_has_no_price_is_not_on_the_front(self):
        whole = document("--nodes", "1-8", price=None, cluster="aws-p3-16xlarge,sony-abci")
        self.assertEqual({whole["candidates"][i]["cluster"] for i in whole["front"]}, {"aws-p3-16xlarge"})
        text = plan("--nodes", "1-8", price=None, cluster="aws-p3-16xlarge,sony-abci").stdout
        self.assertIn("left out of the front: sony-abci: nothing says what a node costs", text)
        text = plan("--nodes", "1-8", price=None, cluster="sony-abci").stdout
        self.assertIn("no front of time against cost", text)
        self.refused(plan("--nodes", "1-8", "--within", "9h", price=None, cluster="sony-abci"), "sony-abci", "--node-price")

    def test_iterations_of_a_batch_per_rank_are_warned_of(self):
        words = ("plan-capacity", "--model", "resnet50", "--cluster", "aws-p3-16xlarge", "--strategy", "hybrid", "--iterations", "100", "--nodes", "1,2")
        self.assertIn("--global-batch", run(*words).stderr)
        self.assertEqual(run(*words, "--global-batch", "1024").stderr, "")


class Efficiency(CommandTest):
    def test_where_it_falls_is_where_a_scan_finds_it(self):
        words = ("--batch", "64", "--efficiency", "0.95")
        whole = document(*words, "--nodes", "1,2,20", cluster="aws-p3-16xlarge")
        reach = whole["efficiency"][0]
        self.assertTrue(reach["is_exact"])
        self.assertEqual(reach["falls"]["nodes"], reach["holds"]["nodes"] + 1)
        scan = document("--batch", "64", "--nodes", "1-20:1", cluster="aws-p3-16xlarge")["candidates"]
        by_nodes = {c["nodes"]: c["efficiency"] for c in scan}
        for side in ("holds", "falls"):
            self.assertEqual(reach[side]["efficiency"], by_nodes[reach[side]["nodes"]])
        # The first number of nodes of the scan that is below.
        self.assertEqual(reach["falls"]["nodes"], min(n for n, efficiency in by_nodes.items() if efficiency < 0.95))
        self.assertEqual(whole["answer"], max((i for i, c in enumerate(whole["candidates"]) if c["efficiency"] >= 0.95), key=lambda i: whole["candidates"][i]["ranks"]))
        text = plan(*words, "--nodes", "1,2,20", cluster="aws-p3-16xlarge").stdout
        self.assertIn(f"where efficiency falls below 95.0 %:\n  aws-p3-16xlarge: between {reach['holds']['ranks']} ranks ({reach['holds']['nodes']} nodes)", text)
        text = plan(*words, "--nodes", "1,2,8", cluster="aws-p3-16xlarge").stdout
        self.assertIn("at no candidate up to 64 ranks (8 nodes)", text)

    def test_the_bandwidth_that_it_takes_is_where_predict_crosses_it(self):
        whole = document("--batch", "64", "--nodes", "1,9", "--efficiency", "97 %", cluster="aws-p3-16xlarge,sony-abci")
        self.assertEqual([r["bandwidth"]["at"]["nodes"] for r in whole["efficiency"]], [9, 9])
        for reach, nics in zip(whole["efficiency"], (1, 2)):
            bandwidth = reach["bandwidth"]
            self.assertGreaterEqual(bandwidth["efficiency"], 0.97)

            def best(bytes_per_s):
                rows = json.loads(run("predict", "--model", "resnet50", "--cluster", reach["cluster"], "--ranks", str(bandwidth["at"]["ranks"]), "--strategy", QUICK,
                                      "--nic", f"{bytes_per_s / nics:.9g} B/s", "--json").stdout)
                return next(r for r in rows["strategies"] if r["name"] == rows["best"]["name"])["efficiency"]
            self.assertGreaterEqual(best(1.0001 * bandwidth["needed_bytes_per_s"]), 0.9699)
            self.assertLess(best(bandwidth["needed_bytes_per_s"] / 1.011), 0.97)
        # The first has less than it takes, the second has more.
        first, second = (r["bandwidth"] for r in whole["efficiency"])
        self.assertGreater(first["needed_bytes_per_s"], first["own_bytes_per_s"])
        self.assertLess(second["needed_bytes_per_s"], second["own_bytes_per_s"])

    def test_no_bandwidth_makes_up_for_waiting(self):
        whole = document("--batch", "64", "--nodes", "1,8", "--efficiency", "0.999", cluster="sony-abci")
        bandwidth = whole["efficiency"][0]["bandwidth"]
        self.assertIsNone(bandwidth["needed_bytes_per_s"])
        self.assertIn("64 times as much gives", bandwidth["why_not"])
        self.assertIsNotNone(whole["answer"], "one node has 100 %")


class Narrowing(CommandTest):
    def cluster(self, nic_ends, price_ends=""):
        path = self.folder / "lab.yaml"
        path.write_text("cluster: lab\nnodes: 16\nranks_per_node: 4\ndevice: v100\nintra: nvlink2\n"
                        f"nic: {{base: roce-25g, bandwidth: {{value: 1 GB/s{nic_ends}}}}}\n"
                        f"price: {{value: 10 USD/h{price_ends}}}\n")
        return str(path)

    def test_a_known_figure_narrows_as_stating_it_would(self):
        ask = ("--nodes", "16", "--within", "5 days")
        wide = document(*ask, cluster=self.cluster(", low: 0.5 GB/s, high: 2 GB/s", ", low: 5 USD/h, high: 20 USD/h"), price=None)
        known = {n["known"]: n for n in wide["narrowing"]}
        exact = document(*ask, cluster=self.cluster("", ", low: 5 USD/h, high: 20 USD/h"), price=None)["candidates"][0]
        self.assertAlmostEqual(known["NIC bandwidth"]["low"], exact["cost_low_usd"], delta=1e-9 * exact["cost_usd"])
        self.assertAlmostEqual(known["NIC bandwidth"]["high"], exact["cost_high_usd"], delta=1e-9 * exact["cost_usd"])
        exact = document(*ask, cluster=self.cluster(", low: 0.5 GB/s, high: 2 GB/s"), price=None)["candidates"][0]
        self.assertAlmostEqual(known["price"]["high"], exact["cost_high_usd"], delta=1e-9 * exact["cost_usd"])
        self.assertGreater(known["NIC bandwidth"]["share"], 0.1)
        self.assertEqual(known["input"]["share"], 0)
        shares = [n["share"] for n in wide["narrowing"]]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertEqual(len(shares), 10)

    def test_it_is_of_the_time_where_that_is_asked_for(self):
        whole = document("--nodes", "1-16", "--budget", "200", cluster=self.cluster(", low: 0.5 GB/s, high: 2 GB/s"), price=None)
        answer = whole["candidates"][whole["answer"]]
        for narrowing in whole["narrowing"]:
            self.assertEqual(narrowing["of"], "time_s")
            self.assertLessEqual(narrowing["low"], answer["time_s"])
            self.assertLessEqual(answer["time_s"], narrowing["high"])
        self.assertEqual(next(n for n in whole["narrowing"] if n["known"] == "price")["share"], 0)


class Documents(CommandTest):
    def test_csv_has_what_json_has(self):
        words = ("--nodes", "1-8", "--within", "3h")
        whole = document(*words)
        rows = list(csv.DictReader(io.StringIO(self.done(plan(*words, "--csv")))))
        self.assertEqual(len(rows), len(whole["candidates"]))
        for i, (row, candidate) in enumerate(zip(rows, whole["candidates"])):
            for key in ("time_s", "time_low_s", "time_high_s", "cost_usd", "cost_high_usd", "energy_kwh", "efficiency", "efficiency_low"):
                self.assertAlmostEqual(float(row[key]) / candidate[key], 1, delta=1e-8)
            self.assertEqual((row["cluster"], int(row["ranks"]), row["strategy"]), (candidate["cluster"], candidate["ranks"], candidate["strategy"]))
            self.assertEqual((int(row["on_front"]), int(row["answer"])), (candidate["on_front"], i == whole["answer"]))

    def test_the_picture_has_every_candidate_and_the_same_text_twice(self):
        paths = [self.folder / name for name in ("a.svg", "b.svg")]
        words = ("--nodes", "1-8", "--within", "3h", "--budget", "1000")
        for path in paths:
            self.done(plan(*words, "--plot", str(path)))
        self.assertEqual(paths[0].read_text(), paths[1].read_text())
        whole = document(*words)
        root = xml.fromstring(paths[0].read_text())
        space = "{http://www.w3.org/2000/svg}"
        circles = [c.get("class") for c in root.iter(space + "circle")]
        self.assertEqual(circles.count("other"), len(whole["candidates"]))
        self.assertEqual(len([g for g in root.iter(space + "g")]), len(whole["front"]))
        self.assertEqual(len([line for line in root.iter(space + "line") if line.get("class") == "limit"]), 3)
        texts = {t.text for t in root.iter(space + "text")}
        self.assertTrue(set(CLUSTERS.split(",")) <= texts)
        for element in root.iter():
            for value in element.attrib.values():
                self.assertNotIn("nan", value)
                self.assertNotIn("inf", value)


class Refusals(CommandTest):
    def test_options(self):
        quick = ("--nodes", "1", )
        for words, problems in (
                (("--within", "0 s"), ("--within",)), (("--within", "12"), ("--within",)), (("--within", "9999 days"), ("--within",)), (("--within", "nan h"), ("--within",)),
                (("--budget", "0"), ("--budget",)), (("--budget", "-5 USD"), ("--budget",)), (("--budget", "5 EUR"), ("--budget",)), (("--budget", "1e99"), ("--budget",)),
                (("--efficiency", "0"), ("--efficiency",)), (("--efficiency", "1.5"), ("--efficiency",)), (("--efficiency", "120 %"), ("--efficiency",)),
                (("--efficiency", "x"), ("--efficiency",)), (("--cautious",), ("--cautious", "--within")),
                (("--ranks", "8"), ("--nodes", "--ranks")), (("--global-batch", "0"), ("--global-batch",)), (("--global-batch", "1.5"), ("--global-batch",)), (("--global-batch", "64", "--batch", "8"), ("--global-batch", "--batch")),
                (("--accumulate", "0"), ("--accumulate",)), (("--accumulate", "automatic"), ("--accumulate",)),
                (("--nic", "nvlink4"), ("--nic", "nvlink4")), (("--nic", "roce-100"), ("--nic", "roce-100g")), (("--nic", "0xroce-100g"), ("--nic",)),
                (("--nic", "999xroce-100g"), ("--nic",)), (("--nic", "100"), ("--nic",)), (("--nic", "own,own"), ("--nic", "twice")), (("--nic", "1e30 GB/s"), ("--nic",)),
                (("--json", "--csv"), ("--csv", "--json")), (("--plot", "/nowhere/a.svg"), ("--plot",)), (("--throughput", "300"), ("--throughput", "v100")),
                (("--batch", "0"), ("--batch",))):
            self.refused(plan(*quick, *words), *problems)
        bare = ("plan-capacity", "--model", "resnet50", "--cluster", "aws-p3-16xlarge", *quick)
        for words, problems in ((("--iterations", "9", "--strategy", "ringg"), ("--strategy", "ring")), (("--epochs", "0", "--dataset", "9"), ("--epochs",)), (("--epochs", "9"), ("--dataset",)),
                                (("--iterations", "9", "--node-power", "3"), ("--node-power",)), (("--iterations", "9", "--evaluate", "0"), ("--evaluate",))):
            self.refused(run(*bare, *words), *problems)
        for bad in ("0", "x", "8-", "4-2", "1-8:0", "1,,2", "-3"):
            self.refused(plan("--nodes", bad), "--nodes")
            self.refused(plan("--ranks", bad), "--ranks")
        self.refused(plan("--nodes", "1-1000000:1"), "at most 10000")
        self.refused(plan("--nodes", "500", cluster="goyal-p100", price="1 USD/h"), "it has 256 ranks")

    def test_clusters_and_prices(self):
        self.refused(plan("--nodes", "1", cluster="aws-p3-16xlarge,aws-p3-16xlarge", price=None), "--cluster", "twice")
        self.refused(plan("--nodes", "1", cluster="aws-p3", price=None), "--cluster")
        for bad in ("x=3 USD/h", "h200-ndr=", "h200-ndr=3", "h200-ndr=3 USD/h,4 USD/h", "h200-ndr=aws-p9"):
            self.refused(plan("--nodes", "1", price=bad), "--node-price")
        self.refused(run("plan-capacity", "--cluster", CLUSTERS, *RUN), "--model")
        self.refused(run("plan-capacity", "--model", "resnet50", *RUN), "--cluster")
        self.refused(run("plan-capacity", "--model", "resnet50", "--cluster", CLUSTERS), "--epochs")
        self.refused(plan("--nodes", "1", model="resnet50,vgg16"), "--model")

    def test_phases_beside_batches_of_all_ranks(self):
        words = ("plan-capacity", "--model", "resnet50", "--cluster", "aws-p3-16xlarge", "--phases", str(EXAMPLES / "batch-warm-up.yaml"))
        self.refused(run(*words, "--global-batch", "1024"), "--global-batch", "--phases")
        self.refused(run(*words, "--accumulate", "auto"), "--accumulate", "--phases")

    def test_a_picture_never_takes_the_place_of_a_cluster(self):
        path = self.folder / "lab.yaml"
        path.write_text((EXAMPLES / "lab.yaml").read_text())
        self.refused(plan("--nodes", "1", "--plot", str(path), cluster=f"aws-p3-16xlarge,{path}", price="1 USD/h"), "--plot")
        self.assertIn("cluster: lab", path.read_text())

    def test_nics_of_single_jobs(self):
        words = ("predict", "--model", "resnet50", "--ranks", "16", "--strategy", "ring")
        self.assertIn("NIC: roce-100g in place of the cluster's own (--nic)", self.done(run(*words, "--cluster", "jizhi-p40", "--nic", "roce-100g")))
        self.refused(run(*words, "--cluster", "jizhi-p40", "--nic", "roce-100g,roce-50g"), "--nic")
        self.refused(run(*words, "--cluster", str(EXAMPLES / "two-cores.yaml"), "--nic", "12 GB/s"), "")


if __name__ == "__main__":
    unittest.main()
