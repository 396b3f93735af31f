"""Plan documents that are broken, or of another job, through everything that takes one: predict, train, replay,
show plan, compare, every format of export, and the Python module for DDP. Each is refused in one line that names
the file, and nothing is written.
"""

import json
import os
import shutil
import sys
import unittest

from paceline import EXAMPLES, IS_THOROUGH, SOURCE, CommandTest, run

sys.path.insert(0, str(SOURCE / "runtime" / "ddp"))
import paceline_ddp  # noqa: E402

MODEL, RANKS = "cnn-small", 2
FORMATS = ("nccl-tuner", "nccl-constants", "nccl-csv", "nccl-config", "horovod", "ddp", "msccl")
NOT_JSON = "this is not JSON"


def first(plan, bucket=0):
    return plan["buckets"][bucket]["gradients"][0]


def overlap(plan):
    plan["buckets"][1]["gradients"].insert(0, dict(first(plan)))


def swap(plan):
    plan["buckets"][0], plan["buckets"][1] = plan["buckets"][1], plan["buckets"][0]


# What is changed in a plan, what all readers of it say, and what the module for DDP says where that differs. None: DDP
# takes it, for it matches gradients by size where names differ, in any order, and does not look at what it has no use for.
DOCUMENTS = {
    "unknown tensor": (lambda p: first(p).update(name="fc.wieght"), "'fc.wieght'", None),
    "tensor that is not text": (lambda p: first(p).update(name=7), "name: ", None),
    "overlapping buckets": (overlap, "is in the buckets twice", "is in the buckets twice"),
    "missing last bucket": (lambda p: p["buckets"].pop(), "the buckets end before gradient ", "is in no bucket"),
    "missing bucket": (lambda p: p["buckets"].pop(1), " of the buckets is ", "is in no bucket"),
    "duplicated bucket": (lambda p: p["buckets"].append(p["buckets"][0]), "is in the buckets twice", "is in the buckets twice"),
    "buckets out of order": (swap, " of the buckets is ", None),
    "no bucket": (lambda p: p.update(buckets=[]), "no bucket uses entry 0", "buckets: there is none"),
    "empty bucket": (lambda p: p["buckets"][0].update(gradients=[]), "buckets[0].gradients", "buckets[0].gradients"),
    "other elements": (lambda p: first(p).update(elements=7), " has 7 elements in the plan", " elements"),
    "no elements": (lambda p: first(p).update(elements=0), "buckets[0].gradients[0].elements: 0", "buckets[0].gradients[0].elements: 0"),
    "negative elements": (lambda p: first(p).update(elements=-1), "buckets[0].gradients[0].elements: -1", "buckets[0].gradients[0].elements: -1"),
    "elements beyond all bounds": (lambda p: first(p).update(elements=10**400), "", " elements"),
    "half an element": (lambda p: first(p).update(elements=2.5), "buckets[0].gradients[0].elements", "buckets[0].gradients[0].elements"),
    "another network": (lambda p: p.update(network="vgg16"), "vgg16", None),
    "no ranks": (lambda p: p.update(ranks=0), "ranks: 0", "ranks: 0"),
    "no such all-reduce": (lambda p: p["buckets"][0].update(all_reduce=9), "buckets[0].all_reduce", "buckets[0].all_reduce"),
    "unknown algorithm": (lambda p: p["all_reduces"][0].update(algorithm="rong"), "unknown schedule 'rong'", None),
    "unknown wire type": (lambda p: p.update(wire_type="fp8"), "wire_type", "wire_type"),
    "unknown overlap": (lambda p: p.update(overlap="sometimes"), "overlap", "overlap"),
    "no streams": (lambda p: p.update(streams=0), "streams: 0", "streams: 0"),
    "another schema": (lambda p: p.update(schema="paceline.profile/1"), "schema", "schema"),
    "another version": (lambda p: p.update(schema="paceline.plan/2"), "schema", "schema"),
    "no schema": (lambda p: p.pop("schema"), "schema", "schema"),
    "no wire type": (lambda p: p.pop("wire_type"), "'wire_type' is missing", "'wire_type' is missing"),
    "buckets that are no list": (lambda p: p.update(buckets={}), "buckets", "buckets"),
    "a bucket that is a number": (lambda p: p["buckets"].append(3), "buckets[", "'all_reduce' is missing"),
}
# The same of a document's text.
TEXTS = {
    "empty": (lambda text: "", NOT_JSON, NOT_JSON),
    "truncated": (lambda text: text[:len(text) // 2], NOT_JSON, NOT_JSON),
    "without its last byte": (lambda text: text.rstrip()[:-1], NOT_JSON, NOT_JSON),
    "not a number": (lambda text: text.replace('"elements": ', '"elements": NaN, "x": ', 1), NOT_JSON, "NaN is no number of JSON"),
    "an endless number": (lambda text: text.replace('"ranks": 2', '"ranks": Infinity', 1), NOT_JSON, "Infinity is no number of JSON"),
    "a key twice": (lambda text: text.replace('"ranks": 2', '"ranks": 2, "ranks": 2', 1), "", "a key is there twice"),
    "nested without end": (lambda text: "[" * 100000, "", "nested too deeply"),
    "a list": (lambda text: "[]", "", "schema"),
    "two documents": (lambda text: text + text, NOT_JSON, NOT_JSON),
    "a NUL": (lambda text: text.replace("{", "{\0", 1), NOT_JSON, NOT_JSON),
}


class HostilePlans(CommandTest):
    def setUp(self):
        super().setUp()
        self.refusals = 0
        self.plan = self.folder / "plan.json"
        self.cluster = self.folder / "two-cores.yaml"
        shutil.copy(EXAMPLES / "two-cores.yaml", self.cluster)
        self.done(self.small("predict", "--strategy", "ring", "--ranks", str(RANKS), "--plan-out", str(self.plan)))
        self.text = self.plan.read_text()
        self.runs = [str(self.folder / name) for name in ("run.json", "prediction.json")]
        self.done(self.small("replay", "--plan", str(self.plan), "--iterations", "2", "--timeline", self.runs[0]))
        self.done(self.small("predict", "--plan", str(self.plan), "--timeline", self.runs[1]))
        self.outputs = {name: str(self.folder / f"{name}.out") for name in ("timeline", "plan", *FORMATS)}

    def small(self, command, *words):
        return run(*command.split(), "--model", MODEL, "--cluster", str(self.cluster), "--batch", "2", "--precision", "fp32", *words)

    def readers(self):
        """Everything that reads the plan, by name."""
        plan = ("--plan", str(self.plan))
        ranks = ("--ranks", str(RANKS))
        exported = lambda format: run("export", str(self.plan), "--format", format, "--model", MODEL, "--output", self.outputs[format],
                                      *(("--cluster", "h200-ndr") if format != "msccl" else ()))
        return {"predict": lambda: self.small("predict", *plan, *ranks, "--timeline", self.outputs["timeline"], "--plan-out", self.outputs["plan"]),
                "replay": lambda: self.small("replay", *plan, "--iterations", "1", "--timeline", self.outputs["timeline"]),
                "show plan": lambda: self.small("show plan", *plan, *ranks),
                "train": lambda: run("train", "--model", MODEL, "--data", "synthetic", *ranks, *plan, "--timeline", self.outputs["timeline"]),
                "compare": lambda: run("compare", *self.runs, *plan),
                } | {f"export {format}": (lambda format=format: exported(format)) for format in FORMATS}

    def parameters(self):
        """The network's parameters in forward order, as a model of PyTorch would name them."""
        gradients = [gradient for bucket in json.loads(self.text)["buckets"] for gradient in bucket["gradients"]]
        return [(gradient["name"].replace(".", "_"), gradient["elements"]) for gradient in reversed(gradients)]

    def expect_refused(self, what, problem, problem_of_ddp):
        self.refusals += 1
        for number, (name, read) in enumerate(self.readers().items()):
            if not IS_THOROUGH and number % 3 != self.refusals % 3:
                continue  # each reader sees every third plan
            with self.subTest(plan=what, reader=name):
                result = read()
                if name != "compare":
                    self.refused(result, str(self.plan), problem)
                else:  # It has no network to hold the plan against, and says which run did not follow it.
                    self.refused(result)
                    self.assertRegex(result.stderr, f"{self.plan}|this did not follow the plan: ")
                self.assertEqual([path for path in self.outputs.values() if os.path.exists(path)], [])
        if problem_of_ddp is None:
            return
        with self.subTest(plan=what, reader="paceline_ddp"):
            with self.assertRaises(paceline_ddp.PlanError) as raised:
                paceline_ddp.match(paceline_ddp.read_plan(self.plan), self.parameters())
            self.assertIn(problem_of_ddp, str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))

    def test_a_good_plan_is_taken_by_all(self):
        for name, read in self.readers().items():
            with self.subTest(reader=name):
                result = read() if name != "train" else run("train", "--model", MODEL, "--data", "synthetic", "--batch", "2", "--ranks", str(RANKS), "--threads", "1",
                                                            "--stop-after", "1", "--plan", str(self.plan))
                # The example plugin's formats speak of GPUs; two ranks of one node are there on any cluster.
                self.done(result)
        self.assertEqual(len(paceline_ddp.match(paceline_ddp.read_plan(self.plan), self.parameters())), len(self.parameters()))

    def test_documents(self):
        for what, (change, problem, of_ddp) in DOCUMENTS.items():
            plan = json.loads(self.text)
            change(plan)
            self.plan.write_text(json.dumps(plan))
            self.expect_refused(what, problem, of_ddp)

    def test_texts(self):
        for what, (change, problem, of_ddp) in TEXTS.items():
            self.plan.write_text(change(json.dumps(json.loads(self.text))))
            self.expect_refused(what, problem, of_ddp)

    def test_other_ranks(self):
        plan = json.loads(self.text)
        plan["ranks"] = 4
        self.plan.write_text(json.dumps(plan))
        for name in ("predict", "show plan", "train"):
            with self.subTest(reader=name):
                self.refused(self.readers()[name](), "4 ranks")
        self.refused(self.readers()["compare"](), "ranks: 2 in place of 4")

    def test_files(self):
        for what, prepare in (("not UTF-8", lambda: self.plan.write_bytes(b"\xff\xfe" + self.text.encode())), ("missing", self.plan.unlink), ("a folder", self.plan.mkdir)):
            prepare()
            self.expect_refused(what, "", "")


if __name__ == "__main__":
    unittest.main()
