"""paceline compare --fail-slower, end to end: an exit code for a run that is slower than predicted.

The runs are the prediction itself with every time multiplied, so that how much slower they are is known.
"""

import json
import unittest

from paceline import CommandTest, run

PREDICT = ("predict", "--model", "alexnet", "--cluster", "h200-ndr", "--ranks", "16", "--strategy", "fused-ring")


class Gate(CommandTest):
    def setUp(self):
        super().setUp()
        self.prediction = str(self.folder / "prediction.json")
        self.row = json.loads(self.done(run(*PREDICT, "--timeline", self.prediction, "--json")))["strategies"][0]

    def done(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def timeline(self, name, change):
        document = json.loads((self.folder / "prediction.json").read_text())
        change(document["otherData"]["timelines"][0], document["traceEvents"])
        path = self.folder / name
        path.write_text(json.dumps(document))
        return str(path)

    def run_of(self, factor):
        """A run whose iteration takes so many times as long as predicted."""
        def change(timeline, events):
            timeline["provenance"] = "measured"
            for key in ("period_low_us", "period_high_us"):
                del timeline[key]
            timeline["period_us"] *= factor
            for event in events:
                if event["ph"] == "X":
                    event["ts"] = round(event["ts"] * factor, 3)
                    event["dur"] = round(event["dur"] * factor, 3)
        return self.timeline(f"run-{factor}.json", change)

    def interval(self):
        return [self.row[key] for key in ("iteration_low_s", "iteration_s", "iteration_high_s")]

    def test_a_prediction_says_its_interval(self):
        timeline = json.loads((self.folder / "prediction.json").read_text())["otherData"]["timelines"][0]
        for key, value in zip(("period_low_us", "period_us", "period_high_us"), self.interval()):
            self.assertAlmostEqual(timeline[key] / (1e6 * value), 1)
        low, at, high = self.interval()
        for factor, verdict in ((0.9 * low / at, "faster"), (1.001, "inside"), (1.1 * high / at, "slower")):
            words = ("compare", self.run_of(factor), self.prediction)
            interval = json.loads(self.done(run(*words, "--json")))["predicted_interval"]
            self.assertEqual(interval["verdict"], verdict)
            self.assertAlmostEqual(interval["low_s"] / low, 1)
            self.assertAlmostEqual(interval["high_s"] / high, 1)
            self.assertRegex(self.done(run(*words)), rf"\niteration: [\d.]+ ms measured, [\d.]+ ms predicted \(90 %: [\d.]+ to [\d.]+; the run is {verdict}( it)?\): ")

    def test_an_iteration_that_is_too_slow_is_exit_code_1(self):
        words = ("compare", self.run_of(1.2), self.prediction)
        whole = self.done(run(*words))
        for limit in ("21%", "0.21", "1000%", "10"):
            self.assertEqual(self.done(run(*words, "--fail-slower", limit)), whole)
        for limit in ("10%", "0.1", "10 %"):
            result = run(*words, "--fail-slower", limit)
            self.assertEqual((result.returncode, result.stdout), (1, whole))
            self.assertRegex(result.stderr, r"^paceline: cannot hold the iteration to 10 % above its prediction: it took [\d.]+ ms, 20\.0 % longer than the predicted [\d.]+ ms\n$")
        for limit in ("0%", "5%"):
            self.done(run("compare", self.run_of(0.9), self.prediction, "--fail-slower", limit))

    def test_an_iteration_above_the_interval_is_exit_code_1(self):
        low, at, high = self.interval()
        for factor in (0.5 * low / at, 1, 0.99 * high / at):
            self.done(run("compare", self.run_of(factor), self.prediction, "--fail-slower", "interval"))
        result = run("compare", self.run_of(1.05 * high / at), self.prediction, "--fail-slower", "interval")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^paceline: cannot hold the iteration to the interval of its prediction: it took [\d.]+ ms, [\d.]+ % longer than the predicted [\d.]+ ms, "
                                        r"whose interval ends at [\d.]+ ms\n$")

    def test_documents_are_written_before_it_fails(self):
        written = self.folder / "comparison.json"
        words = ("compare", self.run_of(2), self.prediction, "--fail-slower", "10%")
        self.assertEqual(run(*words, "--json-out", str(written)).returncode, 1)
        self.assertEqual(json.loads(written.read_text())["predicted_interval"]["verdict"], "slower")

    def test_timelines_without_an_interval_compare_as_before(self):
        def without(timeline, events):
            del timeline["period_low_us"], timeline["period_high_us"]
        old = self.timeline("old.json", without)
        words = ("compare", self.run_of(1.2), old)
        self.assertIsNone(json.loads(self.done(run(*words, "--json")))["predicted_interval"])
        self.assertRegex(self.done(run(*words)), r"\niteration: [\d.]+ ms measured, [\d.]+ ms predicted: \+")
        self.assertEqual(run(*words, "--fail-slower", "10%").returncode, 1)
        self.refused(run(*words, "--fail-slower", "interval"), f"{old}: it does not say the interval of its iteration; write it again with paceline predict --timeline, or give "
                                                               "--fail-slower a share such as 10%")

    def test_hostile_input(self):
        measured = self.run_of(1)
        for limit in ("-1%", "1001%", "x", "%", "nan", "10 percent", "intervall"):
            self.refused(run("compare", measured, self.prediction, "--fail-slower", limit), "--fail-slower: ")
        self.refused(run("compare", measured, "--what-if", "bandwidth=2", "--fail-slower", "10%"), "--fail-slower: --what-if asks about the run alone")
        for change, problem in ((lambda timeline, _: timeline.update(period_low_us=2 * timeline["period_us"]), "the period is not between period_low_us and period_high_us"),
                                (lambda timeline, _: timeline.update(period_high_us=0), "the period is not between"),
                                (lambda timeline, _: timeline.pop("period_high_us"), "period_high_us"),
                                (lambda timeline, _: timeline.update(period_low_us="1"), "period_low_us"),
                                (lambda timeline, _: timeline.update(period_high_us=-1), "period_high_us")):
            self.refused(run("compare", measured, self.timeline("wrong.json", change)), "wrong.json", problem)


if __name__ == "__main__":
    unittest.main()
