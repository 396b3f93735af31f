"""The study's report: its statistics are those of calibration/fit/statistics.h, and it counts right."""
import contextlib
import io
import json
import math
import os
import pathlib
import random
import sys
import tempfile
import types
import unittest

SOURCE = pathlib.Path(os.environ["PACELINE_SOURCE"])
sys.path.insert(0, str(SOURCE / "experiments/lab/study"))
import coverage  # noqa: E402
import figures  # noqa: E402
import report  # noqa: E402
import study  # noqa: E402
import tuned  # noqa: E402


class Figures(unittest.TestCase):
    def test_they_are_those_of_calibration(self):
        cases = json.loads((SOURCE / "tests/golden/statistics.json").read_text())["cases"]
        self.assertGreater(len(cases), 8)
        for case in cases:
            samples = case["samples"]
            with self.subTest(samples=samples):
                low, high = figures.median_interval(samples)
                found = {"median": figures.statistics.median(samples), "low": low, "high": high,
                         "quantile_5": figures.quantile(samples, 0.05),
                         "quantile_95": figures.quantile(samples, 0.95),
                         "typical_iteration": figures.typical_iteration(samples)}
                for name, value in found.items():
                    self.assertAlmostEqual(value, case[name], delta=1e-12 * (1 + abs(case[name])), msg=name)

    def test_nine_of_ten_intervals_hold_the_median(self):
        draws = random.Random(1)
        for count in (3, 6, 11, 40):
            held = 0
            for _ in range(4000):
                low, high = figures.median_interval([draws.gauss(0, 1) for _ in range(count)])
                held += low <= 0 <= high
            self.assertAlmostEqual(held / 4000, 0.9, delta=0.02, msg=count)

    def test_the_interval_of_a_share_is_wilsons(self):
        # Its ends are the shares p from which the counted one is 1.645 of their own deviations away.
        for successes, count in ((9, 10), (335, 368), (1, 2), (24, 24)):
            for end in figures.share_interval(successes, count):
                deviation = math.sqrt(max(0, end * (1 - end)) / count)
                self.assertAlmostEqual(abs(successes / count - end), 1.6449 * deviation, delta=1e-4)


class Drawn(unittest.TestCase):
    def test_a_seed_draws_the_same_study_and_more_clusters_go_on_from_fewer(self):
        few, many = study.drawn_study(5, 6), study.drawn_study(5, 12)
        self.assertEqual(list(few.jobs.items()), list(many.jobs.items())[:6])
        self.assertNotEqual(few.cells(), study.drawn_study(6, 6).cells())
        self.assertEqual((few.results.name, few.profiles.name), ("results-seed5.jsonl", "profiles-seed5"))

    def test_what_is_drawn_fits_the_lab_and_the_strategies(self):
        takes_group = {"hierarchical", "torus-2d", "hierarchical-scatter"}
        for seed in range(50):
            for place, jobs in study.drawn_study(seed, 10).jobs.items():
                self.assertTrue(2 <= place.hosts <= 12 and place.hosts * place.mbit <= 1200, place)
                self.assertTrue(40 <= place.mbit <= 250 and 0 <= place.latency_ms <= 2, place)
                for job in jobs:
                    self.assertEqual(len(set(job.strategies)), 3)
                    self.assertFalse("open-mpi" in job.strategies and job.wire == "fp16")
                    self.assertEqual(bool(job.group), bool(set(job.strategies) & takes_group))
                    if job.group:
                        self.assertTrue(1 < job.group < place.hosts and place.hosts % job.group == 0)

    def test_cells_have_names_of_their_own(self):
        for chosen in (study.designed_study(), study.drawn_study(3, 20)):
            self.assertEqual(len(set(chosen.cells())), len(chosen.cells()))


class Results(unittest.TestCase):
    def test_the_last_line_of_a_cell_holds(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "results.jsonl")
            self.assertEqual(study.read_results(path), {})
            first, again, other = {"cell": "a", "tries": 1}, {"cell": "a", "tries": 2}, {"cell": "b", "tries": 1}
            path.write_text("".join(json.dumps(entry) + "\n" for entry in (first, other, again)))
            results = study.read_results(path)
            self.assertEqual(results, {"a": again, "b": other})
            study.write_results(path, results)
            self.assertEqual(study.read_results(path), results)
            self.assertEqual(len(path.read_text().splitlines()), 2)

    def test_a_file_stays_whole_where_writing_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "results.jsonl")
            study.write_results(path, {"a": {"cell": "a"}})
            with self.assertRaises(TypeError):
                study.write_results(path, {"a": {"cell": "a"}, "b": {"cell": object()}})
            self.assertEqual(study.read_results(path), {"a": {"cell": "a"}})


def cell(measured, predicted, strategy="ring", disturbed=False):
    return {"cell": strategy, "hosts": 2, "mbit": 50, "latency_ms": 0, "racks": 1, "model": "vgg16", "wire": "fp32",
            "group": 0, "strategy": strategy, "lab": {"disturbed": disturbed},
            "measured": {"iteration_s": 99.0, "iterations_s": measured},
            "predicted": {"iteration_s": predicted, "iteration_low_s": 0.95 * predicted,
                          "iteration_high_s": 1.05 * predicted}}


class Report(unittest.TestCase):
    def text(self, cells):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            report.report(dict(enumerate(cells)), len(cells), None)
        return out.getvalue()

    def test_what_is_measured_is_the_typical_iteration(self):
        # Long and short ones in turn: 1.5 s, whatever the median of single ones is.
        self.assertAlmostEqual(report.error(cell([1, 2, 1, 2, 1], 1.5)), 0)

    def test_covered_cells_are_counted_with_the_interval_of_their_share(self):
        inside, outside = cell([1.0] * 6, 1.02), cell([1.0] * 6, 1.2, "hybrid")
        text = self.text([inside] * 9 + [outside] + [cell([1.0] * 6, 9.0, disturbed=True)])
        self.assertIn("11 cells designed, 11 measured, 1 of them disturbed", text)
        self.assertIn("| 90% (65-98) |", text)


def profile():
    def figure():
        return {"value": 10, "low": 8, "high": 16, "provenance": "calibrated", "source": "a test"}
    return {"links": {"nic": {"bandwidth_bytes_per_s": figure(), "latency_s": figure()}},
            "transport": {"message_gap_s": figure(), "message_header_bytes": figure()},
            "rates": [{"bytes_per_s": figure()}]}


class Coverage(unittest.TestCase):
    def test_spreads_are_narrowed_and_the_rest_stays(self):
        kept = profile()
        narrow = coverage.with_widths(kept, 0.5, 0.25, 0)
        self.assertEqual(kept, profile())
        ends = [(figure["low"], figure["high"]) for figure in
                (narrow["links"]["nic"]["bandwidth_bytes_per_s"], narrow["links"]["nic"]["latency_s"],
                 narrow["transport"]["message_gap_s"], narrow["rates"][0]["bytes_per_s"])]
        self.assertEqual(ends, [(9, 13), (8, 16), (9.5, 11.5), (10, 10)])

    def test_a_median_is_known_better_than_a_sample(self):
        # Normal samples: a median's interval is 2 x 1.645 x 1.2533 / sqrt(n) wide, a spread about 2 x 1.645.
        self.assertAlmostEqual(coverage.GAP, 1.2533 / 20 ** 0.5, delta=0.06)
        self.assertLess(coverage.STREAM, 1)


def compared(kind="study", disturbed=False, **seconds):
    """A cell of the comparison, with measured and predicted seconds of each run."""
    runs = {key: {"strategy": key, "measured": {"iterations_s": [of_run[0]] * 5}, "predicted": {"iteration_s": of_run[1]},
                  "lab": {"disturbed": disturbed}} for key, of_run in seconds.items()}
    return {"cell": f"{kind}/{seconds['tuned'][0]}", "kind": kind, "runs": runs, "tries": 1}


class Tuned(unittest.TestCase):
    def test_half_of_the_cells_are_of_clusters_that_the_study_does_not_have(self):
        cells = list(tuned.all_cells())
        self.assertEqual(len({name for name, *_ in cells}), 40)
        known = {place.name for place in study.designed_places()}
        of_seed = [place for _, kind, place, *_ in cells if kind == "seed"]
        self.assertEqual(len(of_seed), 20)
        self.assertFalse(known & {place.name for place in of_seed})
        self.assertEqual(cells, list(tuned.all_cells()))

    def test_the_report_counts_right(self):
        entries = [compared(tuned=(1, 1.1), horovod=(1.5, 1.1), ddp=(1.2, 1.1), **{"best-1": (1.1, 1)}),
                   compared("seed", tuned=(2, 2), horovod=(3, 4), ddp=(2, 4), **{"best-1": (1.9, 2)}),
                   compared("seed", disturbed=True, tuned=(9, 9), horovod=(1, 1), ddp=(1, 1))]
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "results.jsonl"
            results.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                tuned.report(types.SimpleNamespace(results=results))
        text = output.getvalue()
        self.assertIn("2 cells of 40; 1 were disturbed and are left out", text)
        self.assertIn("| of the study | 1 | 1 | +10.0% | +10.0% | +50.0% | +0.0% | +20.0% | +0.0% |", text)
        self.assertIn("| drawn by a seed | 1 | 0 | -5.0% | -5.0% | +50.0% | +100.0% | +0.0% | +100.0% |", text)
        self.assertIn("| all | 2 | 1 | -5.0% | +2.5% |", text)
        self.assertIn("median 5.0%, worst 10.0%", text)

    @unittest.skipUnless("PACELINE" in os.environ, "needs the command")
    def test_ddp_has_the_buckets_of_the_whole_network(self):
        name, _, place, profiles, model, wire = next(cell for cell in tuned.all_cells() if cell[4] == "resnet50")
        options = types.SimpleNamespace(build=pathlib.Path(os.environ["PACELINE"]).parent, wait_quiet=0, study=None, results=None)
        with tempfile.TemporaryDirectory() as folder:
            cell = tuned.Cell(options, place, profiles, model, wire, pathlib.Path(folder))
            plan = json.loads(cell.ddp_plan().read_text())
            whole = json.loads((pathlib.Path(folder) / "whole.json").read_text())
            counts = [[len(bucket["gradients"]) for bucket in document["buckets"]] for document in (plan, whole)]
            self.assertEqual(*counts)
            self.assertGreater(len(counts[0]), 3)
            names = [[gradient["name"] for bucket in document["buckets"] for gradient in bucket["gradients"]]
                     for document in (plan, whole)]
            self.assertEqual(*names)
            self.assertLess(plan["buckets"][0]["gradients"][1]["elements"], whole["buckets"][0]["gradients"][1]["elements"])
            # The command takes it.
            self.assertIn("ddp-ring", study.run(
                [cell.lab.paceline, "predict", *cell.job(), "--plan", pathlib.Path(folder) / "ddp.json"]))


if __name__ == "__main__":
    unittest.main()
