"""Files of every format that plans are exported to: their bytes are those of tests/golden/exports, and an
independent reader (export_readers.py) finds in these what the plan says.

Run as `export_golden_test.py golden` it writes tests/golden/exports anew.
"""

import json
import re
import sys
import unittest

import export_readers
from paceline import SOURCE, CommandTest, run

GOLDEN = SOURCE / "tests" / "golden" / "exports"
CLUSTER, NODES = "h200-ndr", 2
# The plans: their ranks, the options with which predict writes them, and the formats of each.
PLANS = {
    "two-streams": (16, ("--strategy", "fused-ring", "--theta", "512 KiB", "--streams", "2"), ("nccl-tuner", "nccl-csv", "nccl-config", "horovod", "ddp")),
    "library": (16, ("--strategy", "nccl"), ("nccl-constants",)),
    "by-size": (4, ("--strategy", "hybrid", "--theta", "512 KiB", "--eta", "600 KiB", "--group", "2"), ("msccl",)),
}
MODEL = "alexnet"


def exported(name, format, output):
    """The command's standard output; files go to the folder `output` where the format has several."""
    words = ("--cluster", CLUSTER) if format != "msccl" else ("--output", str(output))
    return run("export", str(GOLDEN / f"{name}.json"), "--format", format, *words)


def golden(name, format):
    """The golden files of an export, by name."""
    paths = sorted((GOLDEN / f"{name}.msccl").iterdir()) if format == "msccl" else [GOLDEN / f"{name}.{format}"]
    return {path.name: path.read_text() for path in paths}


def all_exports():
    return [(name, format) for name, (_, _, formats) in PLANS.items() for format in formats]


class Goldens(CommandTest):
    def test_exports_are_the_golden_files_to_the_byte(self):
        for name, format in all_exports():
            with self.subTest(plan=name, format=format):
                text = self.done(exported(name, format, self.folder / format))
                made = {path.name: path.read_text() for path in (self.folder / format).iterdir()} if format == "msccl" else {f"{name}.{format}": text}
                self.assertEqual(made, golden(name, format))

    def text(self, name, format):
        (text,) = golden(name, format).values()
        return text

    def sizes(self, name):
        plan = json.loads((GOLDEN / f"{name}.json").read_text())
        element = {"fp32": 4, "fp16": 2, "bf16": 2}[plan["wire_type"]]
        return plan, [element * sum(gradient["elements"] for gradient in bucket["gradients"]) for bucket in plan["buckets"]]

    def test_rules_of_the_tuner_ask_for_the_plans_rings(self):
        plan, sizes = self.sizes("two-streams")
        title, rules, constants = export_readers.nccl_tuner(self.text("two-streams", "nccl-tuner"))
        self.assertEqual(title, f"{MODEL}, fused-ring, 16 ranks")
        self.assertEqual(constants, {})
        self.assertEqual({(rule.function, rule.ranks, rule.nodes) for rule in rules}, {("allreduce", plan["ranks"], NODES)})
        for size in sizes:
            self.assertEqual([rule.algorithm for rule in rules if rule.least <= size <= rule.most], ["ring"], size)

    def test_the_csv_has_one_line_for_every_size(self):
        plan, sizes = self.sizes("two-streams")
        rules = export_readers.nccl_csv(self.text("two-streams", "nccl-csv"))
        self.assertEqual({(rule.function, rule.ranks, rule.nodes, rule.channels) for rule in rules}, {("allreduce", plan["ranks"], NODES, 0)})
        ordered = sorted(rules, key=lambda rule: rule.least)
        self.assertEqual(ordered[0].least, 1)
        self.assertGreaterEqual(ordered[-1].most, 16 << 30)
        for rule, other in zip(ordered, ordered[1:]):
            self.assertEqual(rule.most + 1, other.least)
        for size in sizes:
            self.assertEqual([rule.algorithm for rule in rules if rule.least <= size <= rule.most], ["ring"], size)

    def test_constants_are_of_the_plans_communicator(self):
        plan, _ = self.sizes("library")
        title, _, constants = export_readers.nccl_tuner(self.text("library", "nccl-constants"))
        self.assertEqual(title, f"{MODEL}, nccl, 16 ranks")
        self.assertTrue(constants)
        self.assertEqual({key[:2] for key in constants}, {(plan["ranks"], NODES)})

    def test_communicators_share_the_buckets(self):
        plan, sizes = self.sizes("two-streams")
        communicators = export_readers.nccl_config(self.text("two-streams", "nccl-config"))
        self.assertEqual([stream for stream, _, _ in communicators], list(range(plan["streams"])))
        for stream, buckets, config in communicators:
            self.assertEqual(buckets, list(range(stream, len(sizes), plan["streams"])))
            self.assertLessEqual(config["minCTAs"], config["maxCTAs"])

    def test_horovod_is_told_numbers(self):
        plan, _ = self.sizes("two-streams")
        values = export_readers.horovod(self.text("two-streams", "horovod"))
        self.assertEqual(int(values.pop("HOROVOD_NUM_NCCL_STREAMS")), plan["streams"])
        self.assertGreaterEqual(int(values.pop("HOROVOD_FUSION_THRESHOLD")), 0)
        self.assertGreater(float(values.pop("HOROVOD_CYCLE_TIME")), 0)
        for value in values.values():
            self.assertIn(value, ("0", "1"))

    def test_ddp_is_told_a_cap_and_a_hook(self):
        plan, _ = self.sizes("two-streams")
        text = self.text("two-streams", "ddp")
        ddp = export_readers.ddp(text)
        self.assertEqual(ddp.hook, plan["wire_type"])
        elements = [gradient["elements"] for bucket in plan["buckets"] for gradient in bucket["gradients"]]
        cap = (ddp.cap_mb or 25) * 2**20
        # The caps of an explicit bucket_cap_mb, from PyTorch 2.3 on and before.
        made = {tuple(export_readers.ddp_buckets(elements, cap, first)) for first in ((cap, ddp.first_bytes) if ddp.cap_mb else (ddp.first_bytes,))}
        self.assertEqual(len(made), 1)
        buckets = len(plan["buckets"])
        made = len(made.pop())
        said = f"DDP makes the plan's {buckets} buckets" if made == buckets else rf"DDP would make {made} buckets? of its {buckets},"
        self.assertRegex(text, said)

    def test_every_bucket_has_one_algorithm_that_sums(self):
        plan, sizes = self.sizes("by-size")
        files = [export_readers.msccl(text) for text in golden("by-size", "msccl").values()]
        self.assertGreater(len(files), 1)
        for size in sizes:
            chosen = [file for file in files if int(file["minBytes"]) <= size < int(file["maxBytes"])]
            self.assertEqual(len(chosen), 1, size)
            self.assertEqual(int(chosen[0]["ngpus"]), plan["ranks"])


class Readers(unittest.TestCase):
    """The readers see what is broken: a test with them can fail."""

    def test_a_changed_file_is_refused(self):
        (tuner,) = golden("two-streams", "nccl-tuner").values()
        for broken in (tuner[:-1], tuner.replace("allreduce", "all_reduce", 1), tuner + "end 0\n", tuner.replace("\nend ", "\nend 1"),
                       "\n".join(line for i, line in enumerate(tuner.splitlines()) if not line.startswith("plan ")) + "\n"):
            with self.assertRaises(ValueError):
                export_readers.nccl_tuner(broken)
        (script,) = golden("two-streams", "ddp").values()
        for broken in (script.replace("DistributedDataParallel(model", "DistributedDataParallel(network"), script.replace("default_hooks.", "hooks."),
                       script.replace("bucket_cap_mb=", "bucket_cap="), "\n".join(line for line in script.splitlines() if not line.startswith("ddp = "))):
            self.assertNotEqual(broken, script)
            with self.assertRaises(ValueError):
                export_readers.ddp(broken)
        for text in golden("by-size", "msccl").values():
            for broken in (text.replace('type="rrc"', 'type="r"', 1), text.replace('type="s"', 'type="nop"', 1)):
                with self.assertRaises(ValueError):
                    export_readers.msccl(broken)


def write_goldens():
    GOLDEN.mkdir(exist_ok=True)
    for name, (ranks, words, formats) in PLANS.items():
        run("predict", "--model", MODEL, "--cluster", CLUSTER, "--ranks", str(ranks), *words, "--plan-out", str(GOLDEN / f"{name}.json")).check_returncode()
        for format in formats:
            result = exported(name, format, GOLDEN / f"{name}.{format}")
            result.check_returncode()
            if format != "msccl":
                (GOLDEN / f"{name}.{format}").write_text(result.stdout)


if __name__ == "__main__":
    if sys.argv[1:] == ["golden"]:
        write_goldens()
    else:
        unittest.main()
