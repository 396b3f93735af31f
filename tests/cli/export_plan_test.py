"""Plans for other runtimes, end to end: what predict writes, export turns into files of NCCL's tuner
plugins, of MSCCL and of Horovod; the plugin takes the file; and what is no plan of the job is refused
in one line.
"""

import ctypes
import json
import os
import re
import subprocess
import unittest
import xml.etree.ElementTree

from paceline import EXAMPLES, CommandTest, run

CLUSTER = "h200-ndr"
FORMATS = ("nccl-tuner", "nccl-constants", "nccl-csv", "nccl-config", "horovod", "ddp", "msccl")
LOGGER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p)


class TunerV4(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p),
                ("init", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))),
                ("get", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_int,
                                         ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int))),
                ("destroy", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p))]


def answer(path, ranks, nodes, size):
    """What the plugin makes cheapest of an all-reduce, as (algorithm, protocol); None where it leaves it to NCCL."""
    os.environ["PACELINE_NCCL_TUNER_FILE"] = str(path)
    # getenv of the C library, which the plugin asks, sees what os.environ sets.
    tuner = TunerV4.in_dll(ctypes.CDLL(os.environ["PACELINE_NCCL_TUNER"]), "ncclTunerPlugin_v4")
    context = ctypes.c_void_p()
    tuner.init(ranks, nodes, None, ctypes.byref(context))
    costs = (ctypes.c_float * 21)(*[7.0] * 21)
    channels = ctypes.c_int(0)
    tuner.get(context, 4, size, 1, costs, 7, 3, 0, ctypes.byref(channels))
    tuner.destroy(context)
    chosen = [divmod(i, 3) for i, cost in enumerate(costs) if cost == 0]
    return chosen[0] if chosen else None


def needs_plugin(test):
    return unittest.skipUnless(os.environ["PACELINE_NCCL_TUNER"], "the plugin is built for a sanitizer")(test)


class ExportedPlans(CommandTest):
    def setUp(self):
        super().setUp()
        self.plan = self.folder / "plan.json"

    def written(self, *words, model="resnet50", cluster=CLUSTER, ranks="16"):
        self.done(run("predict", "--model", model, "--cluster", cluster, "--ranks", ranks, *words, "--plan-out", str(self.plan)))
        return json.loads(self.plan.read_text())

    def export(self, format, *words):
        if format != "msccl":
            words = ("--cluster", CLUSTER, *words)
        return run("export", str(self.plan), "--format", format, *words)

    @needs_plugin
    def test_the_plugin_takes_what_is_exported(self):
        names = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
        for strategy, format in (("nccl", "nccl-tuner"), ("ddp-ring", "nccl-tuner"), ("ddp-ring", "nccl-constants")):
            self.written("--strategy", strategy)
            path = self.folder / f"{strategy}-{format}"
            self.done(self.export(format, "--output", str(path)))
            rules = [line.split() for line in path.read_text().splitlines() if line.startswith("rule ")]
            self.assertTrue(rules)
            for rule in rules:
                expected = (names.index(rule[6]), ("ll", "ll128", "simple").index(rule[7]))
                for size in (int(rule[4]), int(rule[5])):
                    self.assertEqual(answer(path, 16, 2, size), expected)
                self.assertIsNone(answer(path, 8, 1, int(rule[4])))
            self.assertIsNone(answer(path, 16, 2, 1 << 40))
        self.assertIsNone(answer(self.folder / "none", 16, 2, int(rules[0][4])))

    @needs_plugin
    def test_buckets_of_a_ring_are_rules_of_their_sizes(self):
        plan = self.written("--strategy", "ddp-ring", "--theta", "4 MiB")
        self.done(self.export("nccl-tuner", "--output", str(self.folder / "rules")))
        for bucket in plan["buckets"]:
            size = 2 * sum(gradient["elements"] for gradient in bucket["gradients"])
            self.assertEqual(answer(self.folder / "rules", 16, 2, size)[0], 1)

    def test_values_of_communicators_are_fields_of_nccl(self):
        self.written("--strategy", "fused-ring", "--theta", "4 MiB", "--streams", "2")
        document = json.loads(self.done(self.export("nccl-config")))
        self.assertEqual((document["schema"], len(document["communicators"])), ("paceline.nccl-config/1", 2))
        buckets = sorted(number for entry in document["communicators"] for number in entry["buckets"])
        self.assertEqual(buckets, list(range(len(json.loads(self.plan.read_text())["buckets"]))))
        header = os.environ["PACELINE_NCCL_HEADER"]
        if not os.path.exists(header):
            self.skipTest("no toolkit has nccl.h")
        with open(header, encoding="utf-8") as file:
            fields = re.search(r"typedef struct ncclConfig_v\w+ \{(.*?)\} ncclConfig_t;", file.read(), re.DOTALL)[1]
        for entry in document["communicators"]:
            for key in entry["config"]:
                self.assertRegex(fields, rf"\b{key};")

    def test_measured_all_reduces_change_the_rules(self):
        self.written("--strategy", "nccl")
        self.assertNotEqual(self.done(self.export("nccl-tuner")), self.done(self.export("nccl-tuner", "--measured", "64KiB=150us,1GiB=12ms")))

    def test_horovods_variables_are_a_shells(self):
        self.written("--strategy", "fused-ring")
        text = self.done(self.export("horovod"))
        values = subprocess.run(["env", "-i", "sh", "-c", f"set -a\n{text}\nexec env"], capture_output=True, text=True, check=True).stdout.splitlines()
        values = dict(line.split("=", 1) for line in values if line.startswith("HOROVOD_"))
        self.assertEqual(set(values), {"HOROVOD_FUSION_THRESHOLD", "HOROVOD_CYCLE_TIME", "HOROVOD_HIERARCHICAL_ALLREDUCE", "HOROVOD_TORUS_ALLREDUCE", "HOROVOD_AUTOTUNE"})
        self.assertGreaterEqual(int(values["HOROVOD_FUSION_THRESHOLD"]), 0)
        self.assertIn("an iteration is predicted to take", text)

    def test_times_are_those_of_the_job_that_the_plan_was_made_for(self):
        job = ("--batch", "4", "--accumulate", "2", "--precision", "fp32")
        plan = self.written("--strategy", "fused-ring", *job)
        self.assertEqual({key: plan["made_for"][key] for key in ("cluster", "batch_per_rank", "accumulate", "precision")},
                         {"cluster": CLUSTER, "batch_per_rank": 4, "accumulate": 2, "precision": "fp32"})
        told = json.loads(self.done(run("predict", "--model", "resnet50", "--cluster", CLUSTER, "--ranks", "16", "--strategy", "fused-ring", *job, "--json")))
        asked_s = told["strategies"][0]["iteration_s"]
        for format in ("horovod", "ddp"):
            result = self.export(format)
            text = self.done(result)
            # "% of the plan's 12.34 ms", by a unit that the value fits.
            value, unit = re.search(r"% of the plan's ([\d.]+) (\w+)", text).groups()
            self.assertAlmostEqual(float(value) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit] / asked_s, 1, delta=1e-3)
            self.assertNotIn("batch 64", result.stderr)
            self.assertIn("2 accumulated batches are the script's", text)
            # An option takes the place of what the plan says.
            self.assertNotEqual(self.done(self.export(format, "--batch", "64")), text)
            self.assertEqual(self.done(self.export(format, "--batch", "4", "--precision", "fp32")), text)
        # A plan that does not say it is read as before, and the batch that is taken is said.
        del plan["made_for"]
        self.plan.write_text(json.dumps(plan))
        for format in ("horovod", "ddp"):
            self.assertIn("the plan does not say its job: times are those of batch 64 per rank in mixed; give --batch and --precision", self.export(format).stderr)
            self.assertNotIn("does not say", self.export(format, "--batch", "8", "--precision", "mixed").stderr)
        self.assertNotIn("does not say", self.export("nccl-tuner").stderr)

    def test_another_cluster_than_the_plans_is_said(self):
        plan = self.written("--strategy", "fused-ring")
        for format in ("nccl-tuner", "horovod", "ddp"):
            self.assertNotIn("was made for", self.export(format).stderr)
            other = run("export", str(self.plan), "--format", format, "--cluster", "jizhi-p40")
            self.done(other)
            self.assertIn(f"the plan was made for cluster {CLUSTER}, and is exported for jizhi-p40", other.stderr)
        plan["made_for"]["cluster_digest"] = "0" * 16
        self.plan.write_text(json.dumps(plan))
        self.assertIn(f"the plan was made for another description of cluster {CLUSTER}", self.export("ddp").stderr)

    def test_ddp_is_predicted_as_predict_does(self):
        self.written("--strategy", "ddp")
        text = self.done(self.export("ddp"))
        self.assertIn("ddp = DistributedDataParallel(model", text)
        self.assertRegex(text, r"(DDP makes the plan's|with DDP's default caps of 25 MiB and 1 MiB:)")
        self.assertIn("ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)", text)
        self.written("--strategy", "fused-ring", "--wire", "fp32", "--overlap", "none", "--streams", "2")
        text = self.done(self.export("ddp"))
        self.assertNotIn("hook", text)
        for note in ("overlap none: DDP sends a bucket once its gradients are there", "2 streams: DDP sends its buckets on one", "ring: DDP has no such choice"):
            self.assertIn(note, text)

    def test_an_option_without_a_use_is_refused(self):
        self.written("--strategy", "fused-ring")
        for format, words in (("nccl-tuner", ("--batch", "4")), ("nccl-csv", ("--precision", "fp32")), ("horovod", ("--measured", "64KiB=150us,1GiB=12ms")),
                              ("ddp", ("--measured", "64KiB=150us,1GiB=12ms")), ("msccl", ("--cluster", CLUSTER)), ("msccl", ("--batch", "4")), ("msccl", ("--nccl", "2.28"))):
            self.refused(self.export(format, *words), f"{words[0]}: it is of ")

    def test_all_schedules_of_a_plan_are_msccl_files(self):
        self.written("--strategy", "hybrid", "--eta", "1 MiB", "--theta", "256 KiB", "--group", "4")
        self.refused(self.export("msccl"), "--output: ", " files, for bucket sizes of their own; give a folder for them")
        self.done(self.export("msccl", "--output", str(self.folder / "xml")))
        ranges = []
        for path in sorted((self.folder / "xml").iterdir()):
            algo = xml.etree.ElementTree.fromstring(path.read_text())
            self.assertEqual((algo.get("coll"), algo.get("ngpus")), ("allreduce", "16"))
            ranges.append((int(algo.get("minBytes")), int(algo.get("maxBytes")), path.name))
        self.assertGreater(len(ranges), 1)
        self.assertTrue(all(a[1] <= b[0] for a, b in zip(ranges, ranges[1:])), ranges)
        self.written("--strategy", "fused-ring")
        self.refused(self.export("msccl"), "nccl (timed by its own model): it has no steps that we know")
        self.written("--strategy", "ddp-ring")
        self.assertTrue(self.done(self.export("msccl")).startswith("<algo "))

    def test_what_is_no_plan_of_the_job_is_refused_in_one_line(self):
        # One all-reduce for several buckets, so that a plan is also one of its document without a bucket.
        original = self.written("--strategy", "hierarchical-scatter", "--group", "2", "--theta", "1 MiB")

        def rename(plan):
            plan["buckets"][0]["gradients"][0]["name"] = "fc.wieght"
        for change, problem in (
                (rename, "gradient 1 of the buckets is 'fc.wieght', but 1 of resnet50 is "),
                (lambda p: p.update(network="vgg16"), " of vgg16 is "),
                (lambda p: p.update(network="resnet5000"), "the zoo has no network 'resnet5000'; give its file as --model"),
                (lambda p: p.update(ranks=15), "group size 2 does not divide 15 ranks")):
            plan = json.loads(json.dumps(original))
            change(plan)
            self.plan.write_text(json.dumps(plan))
            for format in FORMATS:
                with self.subTest(problem=problem, format=format):
                    self.refused(self.export(format), problem)
        self.refused(run("export", str(self.folder / "none.json"), "--format", "nccl-csv", "--cluster", CLUSTER), "none.json")
        self.refused(run("export", str(self.folder), "--format", "nccl-csv", "--cluster", CLUSTER), str(self.folder))

    def test_what_does_not_go_together_is_refused_in_one_line(self):
        self.written("--strategy", "ring", cluster="jizhi-p40", ranks="1024")
        plan = str(self.plan)
        self.refused(run("export", plan, "--format", "nccl-tuner", "--cluster", "goyal-p100"), "the plan is for 1024 ranks, and goyal-p100 has ")
        self.refused(run("export", plan, "--format", "nccl-tuner"), "--cluster")
        self.refused(run("export", plan, "--format", "nccl-tuna", "--cluster", "jizhi-p40"), "--format: unknown format of plans 'nccl-tuna'; did you mean 'nccl-tuner'?")
        self.refused(run("export", plan, "--cluster", "jizhi-p40"), "--format is missing; give nccl-tuner")
        self.refused(run("export", plan, "--format", "goal"), "--format: goal is a format of one schedule")
        self.refused(run("export", plan, "--format", "nccl-tuner", "--cluster", "jizhi-p40", "--ranks", "8"), "--ranks: the plan says this already")
        self.refused(run("export", plan, "--format", "msccl"), "no schedule of the plan has a file: ring: ")
        self.refused(run("export", plan, "--format", "nccl-tuner", "--cluster", "jizhi-p40", "--output", plan), "--output: ")
        self.refused(run("export", "ring", "--ranks", "4", "--format", "horovod"), "--format: horovod is a format of plans")
        self.refused(run("export", "ring", "--ranks", "4", "--format", "goal", "--model", "resnet50"), "--model: it is of plans")
        cores = str(EXAMPLES / "two-cores.yaml")
        self.written("--strategy", "ring", model="cnn-small", cluster=cores, ranks="2")
        for format in ("nccl-tuner", "nccl-constants", "nccl-csv", "nccl-config"):
            self.refused(run("export", plan, "--format", format, "--cluster", cores), "--cluster: NCCL does not run on one-core")
        self.written("--strategy", "ring", cluster="jizhi-p40", ranks="1")
        self.refused(run("export", plan, "--format", "nccl-tuner", "--cluster", "jizhi-p40"), "one rank exchanges nothing")


if __name__ == "__main__":
    unittest.main()
