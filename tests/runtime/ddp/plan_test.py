#!/usr/bin/env python3
"""paceline_ddp without PyTorch: reading plans, matching gradients, and the caps that come nearest."""

import json
import os
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, os.environ["PACELINE_DDP"])
import paceline_ddp  # noqa: E402
from plans import cut, document  # noqa: E402

GRADIENTS = [("c.bias", 10), ("c.weight", 300), ("b.bias", 30), ("b.weight", 600), ("a.bias", 20), ("a.weight", 40)]


def parsed(text):
    return paceline_ddp.parse_plan(text, "p.json")


class Plans(unittest.TestCase):
    def refused(self, text, problem):
        with self.assertRaises(paceline_ddp.PlanError) as raised:
            parsed(text)
        self.assertIn(problem, str(raised.exception))
        self.assertTrue(str(raised.exception).startswith("p.json: "))
        self.assertNotIn("\n", str(raised.exception))

    def test_a_plan_is_read(self):
        plan = parsed(document(cut(GRADIENTS, (2, 4)), ranks=4, wire="fp16"))
        self.assertEqual((plan.ranks, plan.wire, plan.overlap, plan.notes), (4, "fp16", "wait-free", ()))
        self.assertEqual([[g.name for g in bucket] for bucket in plan.buckets], [["c.bias", "c.weight"], ["b.bias", "b.weight", "a.bias", "a.weight"]])

    def test_what_ddp_cannot_be_told_is_a_note_each(self):
        plan = parsed(document(cut(GRADIENTS, (6,)), streams=2, all_reduces=[{"algorithm": "hierarchical", "group": 2}]))
        self.assertEqual(len(plan.notes), 2)
        self.assertIn("hierarchical: the process group takes its own", plan.notes[0])

    def test_what_is_no_plan_is_one_line(self):
        good = json.loads(document(cut(GRADIENTS, (2, 4))))

        def changed(change):
            plan = json.loads(json.dumps(good))
            change(plan)
            return json.dumps(plan)
        for change, problem in (
                (lambda p: p.update(schema="paceline.plan/2"), "its schema is not paceline.plan/1"),
                (lambda p: p.pop("ranks"), "'ranks' is missing"),
                (lambda p: p.update(ranks=0), "ranks: 0 is less than 1"),
                (lambda p: p.update(ranks=True), "ranks: not a whole number"),
                (lambda p: p.update(ranks=2.0), "ranks: not a whole number"),
                (lambda p: p.update(wire_type="fp8"), "wire_type: 'fp8' is none of fp32, fp16, bf16"),
                (lambda p: p.update(overlap="priority"), "overlap: DDP has no 'priority'"),
                (lambda p: p.update(buckets=[]), "buckets: there is none"),
                (lambda p: p["buckets"][1].update(all_reduce=1), "buckets[1].all_reduce: there is no all-reduce 1"),
                (lambda p: p["buckets"][1].update(all_reduce=-1), "buckets[1].all_reduce: -1 is less than 0"),
                (lambda p: p["buckets"][1].update(part={"first_element": 0, "elements": 1}), "buckets[1].part: DDP cannot"),
                (lambda p: p["buckets"][1].update(gradients=[]), "this bucket has no gradient"),
                (lambda p: p["buckets"][1].update(gradients={}), "buckets[1].gradients: not a list"),
                (lambda p: p["buckets"].append(p["buckets"][0]), "gradient 'c.bias' is in the buckets twice"),
                (lambda p: p["buckets"][0]["gradients"][0].update(elements=0), "elements: 0 is less than 1"),
                (lambda p: p["buckets"][0]["gradients"][0].update(name=7), "buckets[0].gradients[0].name: not text"),
                (lambda p: p.update(all_reduces=[{"served_by": 2}]), "all_reduces[0]: DDP has no servers"),
                (lambda p: p.update(all_reduces=[7]), "all_reduces[0]: DDP has no servers"),
                (lambda p: p["buckets"].append(3), "'all_reduce' is missing")):
            self.refused(changed(change), problem)
        text = json.dumps(good)
        for size in range(len(text)):
            self.refused(text[:size], "this is not JSON")
        self.refused(text.replace('"ranks": 2', '"ranks": 2, "ranks": 3'), "a key is there twice")
        self.refused(text.replace('"ranks": 2', '"ranks": NaN'), "NaN is no number of JSON")
        self.refused("[" * 100000, "nested too deeply")
        self.refused("[]", "its schema is not")

    def test_a_file_that_cannot_be_read_is_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "p.json"
            for write, problem in ((lambda: None, "cannot be read: No such file"), (lambda: path.write_bytes(b"\xff\xfe{}"), "is not UTF-8"),
                                   (lambda: path.write_bytes(b" " * (paceline_ddp.LARGEST_FILE + 1)), "is larger than 16 MiB"),
                                   (lambda: path.write_text("{"), "this is not JSON")):
                write()
                with self.assertRaisesRegex(paceline_ddp.PlanError, problem):
                    paceline_ddp.read_plan(path)
            with self.assertRaisesRegex(paceline_ddp.PlanError, "Is a directory"):
                paceline_ddp.read_plan(folder)


class Matching(unittest.TestCase):
    def test_names_decide_where_they_are_the_same(self):
        plan = parsed(document(cut(GRADIENTS, (6,))))
        self.assertEqual(paceline_ddp.match(plan, GRADIENTS[::-1]), [name for name, _ in GRADIENTS])

    def test_otherwise_sizes_and_backward_order_do(self):
        plan = parsed(document([[("x", 5), ("y", 7), ("z", 5)]]))
        self.assertEqual(paceline_ddp.match(plan, [("first", 5), ("second", 5), ("third", 7)]), ["second", "third", "first"])

    def test_what_does_not_fit_is_one_line(self):
        plan = parsed(document([[("x", 5), ("y", 7)]]))
        for parameters, problem in (([("a", 5)], "gradient 'y' has 7 elements, and no parameter"), ([("a", 5), ("b", 7), ("c", 9)], "'c' of the model is in no bucket"),
                                    ([("x", 5), ("y", 8)], "gradient 'y' has 7 elements, and 8 in the model"), ([("x", 5), ("x", 7)], "two parameters of the model have one name")):
            with self.assertRaisesRegex(paceline_ddp.PlanError, problem):
                paceline_ddp.match(plan, parameters)


def random_plan(draw):
    """Sizes of gradients, the gradients that buckets end before, and the plan."""
    sizes = [draw.randint(1, 12) for _ in range(draw.randint(2, 12))]
    ends = sorted({len(sizes), *(draw.randint(1, len(sizes)) for _ in range(3))})
    counts = [end - begin for begin, end in zip([0, *ends], ends)]
    return sizes, ends, parsed(document(cut([(str(i), size) for i, size in enumerate(sizes)], counts)))


class CapsOfPlans(unittest.TestCase):
    def test_plans_with_a_threshold_are_caps_exactly(self):
        draw = random.Random(4)
        for _ in range(200):
            sizes = [draw.randint(1, 1000) for _ in range(draw.randint(1, 40))]
            first, others = draw.randint(1, 3000), draw.randint(1, 3000)
            counts = paceline_ddp.assigned(sizes, [first, others])
            self.assertEqual(sum(counts), len(sizes))
            plan = parsed(document(cut([(str(i), size) for i, size in enumerate(sizes)], counts)))
            caps = paceline_ddp.nearest_caps(plan, element_bytes=1)
            self.assertTrue(caps.is_exact)
            self.assertEqual(paceline_ddp.assigned(sizes, [caps.first, caps.others]), counts)

    def test_no_cap_comes_nearer(self):
        draw = random.Random(9)
        for _ in range(150):
            sizes, ends, plan = random_plan(draw)
            for one_cap in (False, True):
                caps = paceline_ddp.nearest_caps(plan, element_bytes=1, one_cap=one_cap)

                def wrong(cap):
                    made = paceline_ddp.assigned(sizes, [cap if one_cap else caps.first, cap])
                    return len({sum(made[:i + 1]) for i in range(len(made))} ^ set(ends))
                self.assertEqual(wrong(caps.others), caps.wrong)
                self.assertEqual(caps.wrong, min(wrong(cap) for cap in range(1, sum(sizes) + 2)))
                self.assertEqual(caps.buckets, len(paceline_ddp.assigned(sizes, [caps.first, caps.others])))

    def test_no_refining_caps_make_fewer_buckets(self):
        draw = random.Random(10)
        for _ in range(150):
            sizes, ends, plan = random_plan(draw)
            for one_cap in (False, True):
                caps = paceline_ddp.refining_caps(plan, element_bytes=1, one_cap=one_cap)

                def made(cap):
                    counted = paceline_ddp.assigned(sizes, [cap if one_cap else caps.first, cap])
                    return {sum(counted[:i + 1]) for i in range(len(counted))}
                self.assertLessEqual(set(ends), made(caps.others))
                self.assertEqual(caps.buckets, min(len(made(cap)) for cap in range(1, sum(sizes) + 2) if set(ends) <= made(cap)))

    def test_arguments_follow_the_versions_of_ddp(self):
        plan = parsed(document(cut(GRADIENTS, (2, 3, 1))))

        def with_list(module, bucket_cap_mb=None, bucket_cap_mb_list=None):
            pass

        def one_cap(module, bucket_cap_mb=None):
            pass

        def two_caps(module, bucket_cap_mb=25):
            pass
        arguments, caps = paceline_ddp.caps_as_arguments(plan, with_list)
        self.assertEqual(([int(mebibytes * 1024 * 1024) for mebibytes in arguments["bucket_cap_mb_list"]], caps.is_exact), ([1240, 2600, 160], True))
        arguments, caps = paceline_ddp.caps_as_arguments(plan, one_cap)
        self.assertEqual((caps.first, int(arguments["bucket_cap_mb"] * 1024 * 1024)), (caps.others, caps.others))
        arguments, caps = paceline_ddp.caps_as_arguments(plan, two_caps)
        self.assertEqual((caps.first, caps.is_exact, int(arguments["bucket_cap_mb"] * 1024 * 1024)), (1240, True, caps.others))


if __name__ == "__main__":
    unittest.main()
