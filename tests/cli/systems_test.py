"""Models of other systems, end to end: predict times them where they are named, plans hold them, and
what runs plans refuses them.
"""

import json
import unittest

from paceline import CommandTest, predict, run


class Systems(CommandTest):
    def setUp(self):
        super().setUp()
        self.plan = self.folder / "plan.json"
        self.names = [entry["name"] for entry in json.loads(run("show", "catalog", "--json").stdout)["systems"]]

    def row(self, *words, ranks="64"):
        return json.loads(self.done(predict("--json", *words, ranks=ranks)))["strategies"][0]

    def test_the_table_has_them_where_they_are_asked_for(self):
        names = lambda *words: [row["name"] for row in json.loads(self.done(predict("--json", *words, ranks="16")))["strategies"]]
        self.assertEqual(names("--strategy", "ring"), ["ring"])
        self.assertEqual(names("--strategy", "ring", "--others"), ["ring", *self.names])
        self.assertFalse(set(self.names) & set(names("--strategy", "all")))
        self.assertIn("horovod", self.names)

    def test_a_plan_is_predicted_as_the_row_that_wrote_it(self):
        for name in self.names:
            with self.subTest(name):
                row = self.row("--strategy", name, "--plan-out", str(self.plan))
                document = json.loads(self.done(run("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--json", "--plan", str(self.plan))))
                self.assertEqual({**document["strategies"][0], "thresholds": row["thresholds"]}, row)
                shown = self.done(run("show", "plan", "--model", "resnet50", "--cluster", "jizhi-p40", "--plan", str(self.plan)))
                self.assertIn(f"{name}: resnet50 on jizhi-p40", shown)

    def test_what_runs_plans_refuses_them(self):
        small = ("--model", "cnn-small", "--cluster", "jizhi-p40", "--batch", "2", "--precision", "fp32", "--ranks", "2")
        data = ("train", "--model", "cnn-small", "--data", "synthetic", "--ranks", "2")
        runnable = {"ddp", "ddp-ring", "one-bucket", "inductor", "mg-wfbp"}
        self.assertTrue(runnable < set(self.names))
        for name in sorted(set(self.names) - runnable):
            with self.subTest(name):
                problem = f"{name} models what another system does: it can be predicted, not run"
                self.done(run("predict", *small, "--strategy", name, "--plan-out", str(self.plan)))
                if name not in ("horovod", "horovod-hierarchical"):
                    self.refused(run("replay", *small, "--strategy", name), "--strategy", problem)
                    self.refused(run("replay", *small, "--plan", str(self.plan)), str(self.plan), problem)
                self.refused(run(*data, "--strategy", name), "--strategy", problem)
                self.refused(run(*data, "--plan", str(self.plan)), str(self.plan), problem)
        self.refused(run("replay", *small, "--strategy", "ring", "--host-copies"), "--host-copies")

    def test_what_runs_plans_runs_those_of_our_kind(self):
        small = ("--model", "cnn-small", "--cluster", "jizhi-p40", "--batch", "2", "--precision", "fp32", "--ranks", "2")
        data = ("train", "--model", "cnn-small", "--data", "synthetic", "--ranks", "2", "--stop-after", "1")
        for name in ("ddp-ring", "one-bucket", "mg-wfbp"):
            with self.subTest(name):
                self.done(run("predict", *small, "--strategy", name, "--plan-out", str(self.plan)))
                self.done(run("replay", *small, "--strategy", name))
                self.done(run("replay", *small, "--plan", str(self.plan)))
                self.done(run(*data, "--plan", str(self.plan)))
        for name in ("ddp-ring", "one-bucket"):
            self.done(run(*data, "--strategy", name))
        for name in ("mg-wfbp", "inductor"):
            self.refused(run(*data, "--strategy", name), "--strategy", f"the buckets of {name} depend on how long all-reduces take")
        for words in (("--strategy", "ddp"), ("--strategy", "inductor")):
            self.refused(run("replay", *small, *words), "--strategy", "is a library's own all-reduce")

    def test_a_replay_waits_for_cycles(self):
        small = ("--model", "cnn-small", "--cluster", "jizhi-p40", "--batch", "2", "--precision", "fp32", "--ranks", "2")
        slow = ("--strategy", "horovod", "--cycle", "400ms")
        self.done(run("predict", *small, *slow, "--plan-out", str(self.plan)))
        for words in (slow, ("--plan", str(self.plan))):
            row = json.loads(self.done(run("replay", *small, *words, "--iterations", "2", "--json")))["strategies"][0]
            # A cycle of 400 ms begins half of it after the last gradient, in the mean.
            self.assertGreater(row["measured"]["iteration_s"], 0.2)
            self.assertGreater(row["measured"]["exposed_communication_s"], 0.15)
            self.assertGreater(row["predicted"]["iteration_s"], 0.2)
        self.assertIn("what ranks agree on before a cycle is left out", self.done(run("replay", *small, *slow, "--iterations", "1")))
        self.refused(run("replay", *small, *slow, "--overlap", "none"), "--overlap", "replayed wait-free")
        late = json.loads(self.plan.read_text()) | {"overlap": "none"}
        self.plan.write_text(json.dumps(late))
        self.refused(run("replay", *small, "--plan", str(self.plan)), str(self.plan), "replayed wait-free")

    def test_ddp_closes_its_first_bucket_early(self):
        ours = self.row("--strategy", "fused-ring", "--theta", "25MiB", "--wire", "fp32")
        row = self.row("--strategy", "ddp-ring", "--wire", "fp32", "--plan-out", str(self.plan))
        sizes = lambda: [sum(gradient["elements"] for gradient in bucket["gradients"]) * 4 / 2**20 for bucket in json.loads(self.plan.read_text())["buckets"]]
        first, *others = sizes()
        self.assertEqual(row["thresholds"]["theta_bytes"], 25 * 2**20)
        self.assertTrue(1 <= first < 25)
        self.assertTrue(all(25 <= size for size in others[:-1]))
        self.assertEqual(row["buckets"], ours["buckets"] + 1)
        # A wire of half the size changes no bucket.
        wide = sizes()
        half = self.row("--strategy", "ddp-ring", "--wire", "fp16", "--plan-out", str(self.plan))
        self.assertEqual(half["thresholds"]["theta_bytes"], 12.5 * 2**20)
        self.assertEqual(sizes(), wide)
        # A theta that is named is the first bucket's, too.
        self.row("--strategy", "ddp-ring", "--wire", "fp32", "--theta", "25MiB", "--plan-out", str(self.plan))
        self.assertGreaterEqual(sizes()[0], 25)
        self.assertEqual(self.row("--strategy", "one-bucket")["buckets"], 1)

    def test_shorter_cycles_make_smaller_buckets(self):
        slow = self.row("--strategy", "horovod")
        fast = self.row("--strategy", "horovod", "--horovod", "0.21")
        self.assertEqual((slow["thresholds"]["cycle_s"], slow["thresholds"]["theta_bytes"]), (0.005, 64 * 2**20))
        self.assertEqual((fast["thresholds"]["cycle_s"], fast["thresholds"]["theta_bytes"]), (0.001, 128 * 2**20))
        self.assertGreater(fast["buckets"], slow["buckets"])
        given = self.row("--strategy", "horovod", "--cycle", "20ms")
        self.assertEqual(given["thresholds"]["cycle_s"], 0.02)
        self.assertGreater(given["iteration_s"], slow["iteration_s"])

    def test_host_copies_cost(self):
        for strategy in ("ring", "fused-ring", "no-overlap"):
            bare = self.row("--strategy", strategy)
            copied = self.row("--strategy", strategy, "--host-copies")
            self.assertGreater(copied["iteration_s"], bare["iteration_s"])
            self.assertTrue(copied["thresholds"]["host_copies"])

    def test_tensors_are_cut_and_credit_is_kept(self):
        whole = self.row("--strategy", "byte-scheduler", "--partition", "1GB", "--credit", "0B")
        self.assertEqual(whole["buckets"], 161)
        cut = self.row("--strategy", "byte-scheduler", "--plan-out", str(self.plan))
        self.assertGreater(cut["buckets"], 161)
        plan = json.loads(self.plan.read_text())
        self.assertEqual(plan["dispatch"]["credit_bytes"], 8e6)  # 4e6 parameters in FP16
        self.assertEqual(plan["overlap"], "priority")
        parts = [bucket for bucket in plan["buckets"] if "part" in bucket]
        self.assertTrue(parts)
        self.assertLessEqual(max(part["part"]["elements"] for part in parts), 1_000_000)
        self.assertLess(self.row("--strategy", "byte-scheduler")["iteration_s"],
                        self.row("--strategy", "byte-scheduler", "--credit", "0B")["iteration_s"])

    def test_servers_of_their_own_and_what_they_speak(self):
        among = self.row("--strategy", "byteps", "--wire", "fp32")
        own = self.row("--strategy", "byteps", "--wire", "fp32", "--server-machines", "32")
        self.assertEqual((among["thresholds"]["servers"], among["thresholds"]["own_machines"]), (8, False))
        self.assertEqual((own["thresholds"]["servers"], own["thresholds"]["own_machines"]), (32, True))
        self.assertLess(own["communication_s"], among["communication_s"])
        times = [self.row("--strategy", "tf-parameter-server", "--wire", "fp32", "--server-transport", speech)["iteration_s"] for speech in ("rdma", "grpc")]
        self.assertLess(*times)
        # One machine: nothing is pushed.
        self.row("--strategy", "tf-parameter-server", ranks="8")
        self.refused(predict("--strategy", "byteps", "--servers", "9", ranks="64"), "--servers", "9 servers on 8 machines of workers")
        self.refused(predict("--strategy", "byteps", "--servers", "2", "--server-machines", "2", ranks="64"), "--server-machines")
        for words in (("--server-machines", "0"), ("--server-machines", "-1"), ("--server-machines", "1e9"), ("--server-transport", "pigeon")):
            self.refused(predict("--strategy", "byteps", *words, ranks="64"), words[0])

    def test_accumulated_batches_share_an_update(self):
        one = self.row("--strategy", "ring")
        four = self.row("--strategy", "ring", "--accumulate", "4")
        passes = one["compute_s"] - one["update_s"]
        # Only the last of the four backward passes runs beside the all-reduces, which slow it.
        self.assertLessEqual(four["compute_s"], one["compute_s"] + 3 * passes + 1e-9)
        self.assertGreater(four["compute_s"], one["compute_s"] + 2.5 * passes)
        self.assertAlmostEqual(four["throughput_per_s"], 64 * 64 * 4 / four["iteration_s"], delta=1e-3)
        self.assertAlmostEqual(four["exposed_communication_s"], one["exposed_communication_s"], delta=1e-6)
        # Each batch is booked as the forward and the backward pass that it is.
        shares = []
        for batches in ("1", "8"):
            row = self.row("--strategy", "ring", "--accumulate", batches, ranks="8")
            path = row["critical_path"]
            self.assertAlmostEqual(sum(path.values()) / row["iteration_s"], 1, delta=1e-9)
            shares.append(path["forward_s"] / (path["forward_s"] + path["backward_s"]))
        self.assertAlmostEqual(*shares, delta=0.05)
        for wrong in ("0", "-1", "two", "1e9", "1.5"):
            self.refused(predict("--strategy", "ring", "--accumulate", wrong), "--accumulate")
        self.refused(run("replay", "--model", "cnn-small", "--cluster", "jizhi-p40", "--batch", "2", "--ranks", "2", "--strategy", "ring", "--accumulate", "2"),
                     "--accumulate")

    def test_plans_with_wrong_parts_are_one_line(self):
        self.row("--strategy", "byte-scheduler", "--plan-out", str(self.plan))
        good = json.loads(self.plan.read_text())
        first = next(i for i, bucket in enumerate(good["buckets"]) if "part" in bucket)

        def check(change, problem):
            plan = json.loads(json.dumps(good))
            change(plan)
            self.plan.write_text(json.dumps(plan))
            self.refused(run("show", "plan", "--model", "resnet50", "--cluster", "jizhi-p40", "--plan", str(self.plan)), problem)

        def part(index, **values):
            return lambda plan: plan["buckets"][index]["part"].update(values)

        check(lambda plan: plan["buckets"].pop(first + 1), "")
        check(lambda plan: plan["buckets"].pop(first), "begins with element")
        check(part(first + 1, first_element=3), "begins with element")
        check(part(first, elements=0), "")
        check(part(first, first_element=-1), "")
        check(part(first, elements=10**18), "")
        check(lambda plan: plan["buckets"][first].pop("part"), "")
        check(lambda plan: plan["dispatch"].update(cycle_s=-1), "")
        check(lambda plan: plan["dispatch"].update(negotiation="telepathy"), "unknown negotiation")
        check(lambda plan: plan["dispatch"].update(color=1), "color")
        check(lambda plan: plan["buckets"][0].update(wait_s="long"), "")

    def test_hostile_options_are_one_line(self):
        for words in (("--cycle", "-1ms"), ("--cycle", "5"), ("--cycle", "1h"), ("--cycle", "2000s"), ("--cycle", "1ns"), ("--cycle", "nan ms"),
                      ("--horovod", "0.8"), ("--horovod", "new"), ("--horovod", "0.21.0.0"), ("--partition", "-4MB"), ("--partition", "4"),
                      ("--partition", "1B"), ("--credit", "much"), ("--credit", "-1MB")):
            with self.subTest(words):
                strategy = "byte-scheduler" if words[0] in ("--partition", "--credit") else "horovod"
                self.refused(predict("--strategy", strategy, *words, ranks="16"), "" if words[1] == "1B" else words[0])
        self.row("--strategy", "byte-scheduler", "--plan-out", str(self.plan))
        job = ("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--plan", str(self.plan))
        for words in (("--cycle", "1ms"), ("--horovod", "0.21"), ("--partition", "4MB"), ("--credit", "4MB"), ("--host-copies",), ("--others",)):
            self.refused(run(*job, *words), words[0], "the plan of --plan says this already")


if __name__ == "__main__":
    unittest.main()
