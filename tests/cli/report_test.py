"""Reports (--html) as files: what they hold, that nothing of them is loaded from elsewhere, and how paths
that cannot be written are refused. How they look in a browser: report_browser_test.py.
"""

import json
import os
import stat
import statistics
import unittest

from paceline import EXAMPLES, REPORT_DATA, SOURCE, CommandTest, report_documents, run

JOB = ("--model", "resnet50", "--cluster", "jizhi-p40", "--strategy", "fused-ring,binary-blocks")


class ReportTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.report = self.folder / "report.html"

    def reported(self, *words):
        """The documents of the report that a command writes, and what it printed."""
        printed = self.done(run(*words, "--html", str(self.report)))
        return report_documents(self.report), printed


class Documents(ReportTest):
    def test_predict_holds_what_it_prints_as_json_and_the_timeline(self):
        timeline = self.folder / "timeline.json"
        words = ("predict", *JOB, "--ranks", "64")
        held, printed = self.reported(*words, "--json", "--timeline", str(timeline))
        self.assertEqual(held["result"], json.loads(printed))
        self.assertEqual(held["timeline"], json.loads(timeline.read_text()))
        self.assertEqual(held["about"]["title"], "resnet50 on jizhi-p40, 64 ranks")
        self.assertTrue(held["about"]["command"].startswith("paceline predict --model resnet50 "), held["about"])

    def test_scale_holds_its_points_and_the_timeline_of_the_most_ranks(self):
        held, printed = self.reported("scale", *JOB, "--ranks", "8-64", "--json")
        self.assertEqual(held["result"], json.loads(printed))
        self.assertEqual([point["ranks"] for point in held["result"]["points"]], [8, 16, 32, 64])
        self.assertEqual(held["timeline"]["otherData"]["timelines"][0]["ranks"], 64)

    def test_scale_holds_what_was_measured(self):
        held, _ = self.reported("scale", *JOB, "--ranks", "8-16", "--measured", "8=1650images/s,12=2400 images/s")
        self.assertEqual([(one["ranks"], one["throughput_per_s"], one["provenance"]) for one in held["result"]["measured"]],
                         [(8, 1650, "measured"), (12, 2400, "measured")])
        for text, problem in (("8", "no throughput"), ("8=1650", "no unit"), ("0=1images/s", "0"), ("8=0images/s", "more than 0"),
                              ("4096=1images/s", "4096")):
            self.refused(run("scale", *JOB, "--ranks", "8-16", "--measured", text), "--measured", problem)

    def test_tune_holds_the_timeline_of_the_plan(self):
        held, printed = self.reported("tune", *JOB, "--ranks", "64", "--json")
        self.assertEqual(held["result"], json.loads(printed))
        traced = held["timeline"]["otherData"]["timelines"][0]
        self.assertEqual([bucket["bytes"] for bucket in traced["buckets"]],
                         [bucket["bytes"] for bucket in held["result"]["buckets"]])

    def test_time_and_reproduce_hold_what_they_print_as_json(self):
        for words in (("time", "ring", "--cluster", "jizhi-p40", "--ranks", "64"),
                      ("time", "all", "--cluster", "jizhi-p40", "--ranks", "8", "--size", "8-1MiB"),
                      ("reproduce", "jizhi")):
            with self.subTest(command=words):
                held, printed = self.reported(*words, "--json")
                self.assertEqual(held["result"], json.loads(printed))

    def test_compare_holds_both_timelines(self):
        measured, predicted, merged = (str(self.folder / name) for name in ("run.json", "prediction.json", "merged.json"))
        lab = str(EXAMPLES / "lab.yaml")
        plan = ("--model", "cnn-small", "--ranks", "2", "--batch", "32", "--theta", "100 KB", "--wire", "fp16")
        self.done(run("train", *plan, "--data", "synthetic", "--threads", "1", "--epochs", "1", "--timeline", measured))
        self.done(run("predict", *plan, "--cluster", lab, "--precision", "fp32", "--strategy", "fused-ring", "--timeline", predicted))
        held, printed = self.reported("compare", measured, predicted, "--json", "--merged", merged)
        self.assertEqual(held["result"], json.loads(printed))
        with open(merged) as file:
            self.assertEqual(held["timeline"], json.load(file))
        self.refused(run("compare", measured, "--what-if", "compute=2", "--html", str(self.report)), "--html", "asks about the run alone")

    def test_calibrate_holds_the_profile_and_the_measurements_of_its_curves(self):
        profile = self.folder / "profile.json"
        held, _ = self.reported("calibrate", "--ranks", "2", "--time", "1 s", "--largest", "64 KiB", "--out", str(profile))
        self.assertEqual(held["profile"], json.loads(profile.read_text()))
        self.assertEqual(held["result"]["schema"], "paceline.fits/1")
        self.check_fits(held["result"]["curves"])

    def test_imported_curves_hold_their_samples(self):
        measured = SOURCE / "tests" / "golden" / "imports" / "nccl_tests" / "2.13-half-two-nodes.txt"
        profile = self.folder / "profile.json"
        held, _ = self.reported("calibrate", "import", str(measured), "--out", str(profile))
        self.assertEqual(held["profile"], json.loads(profile.read_text()))
        self.check_fits(held["result"]["curves"])
        pieces = held["profile"]["curves"][0]["pieces"]
        self.assertEqual(len(held["result"]["curves"][0]["pieces"]), len(pieces))

    def check_fits(self, curves):
        """Sizes are those of the samples, with their medians; the fit is that of the piece of each size."""
        self.assertTrue(curves)
        for curve in curves:
            times = {}
            for sample in curve["samples"]:
                times.setdefault(sample["bytes"], []).append(sample["time_s"])
            self.assertEqual([size["bytes"] for size in curve["sizes"]], sorted(times))
            for size in curve["sizes"]:
                self.assertAlmostEqual(size["measured_s"] / statistics.median(times[size["bytes"]]), 1, 9)
                self.assertLessEqual(size["low_s"], size["fitted_s"] * (1 + 1e-9))
                piece = [p for p in curve["pieces"] if p["from_bytes"] <= size["bytes"]][-1]
                self.assertAlmostEqual((piece["alpha_s"] + size["bytes"] * piece["beta_s_per_byte"]) / size["fitted_s"], 1, 9)

    def test_say_what_numbers_rest_on_as_the_table_does(self):
        held, printed = self.reported("predict", *JOB, "--ranks", "64", "--provenance")
        lines = printed.split("They rest on:\n")[1].splitlines()
        self.assertEqual([line[2:20].strip() for line in lines],
                         ["compute"] + [entry["what"] for entry in held["result"]["rests_on"]])
        for line, entry in zip(lines[1:], held["result"]["rests_on"]):
            self.assertIn(entry["provenance"], line)
            self.assertIn(entry["source"], line)
            self.assertLessEqual(entry["low"], entry["value"])
            self.assertLessEqual(entry["value"], entry["high"])

    def test_are_the_same_for_the_same_command(self):
        self.reported("predict", *JOB, "--ranks", "64")
        first = self.report.read_bytes()
        self.reported("predict", *JOB, "--ranks", "64")
        self.assertEqual(self.report.read_bytes(), first)


class Safety(ReportTest):
    def test_names_of_files_are_data(self):
        hostile = "</script><script>document.title='owned'</script>"
        network = self.folder / "net.yaml"
        network.write_text((EXAMPLES / "tiny-net.yaml").read_text().replace("network: tiny-net", f'network: "{hostile}"', 1))
        held, _ = self.reported("predict", "--model", str(network), "--cluster", "jizhi-p40", "--ranks", "8",
                                "--strategy", "ring")
        text = self.report.read_text()
        self.assertEqual(held["result"]["model"], hostile)
        self.assertNotIn("<script>document.title", text)
        self.assertEqual(text.count("</script"), 4)  # about, result, timeline and the script

    def test_nothing_is_loaded_from_elsewhere(self):
        self.reported("predict", *JOB, "--ranks", "64")
        text = REPORT_DATA.sub("", self.report.read_text())
        self.assertIn("default-src 'none'", text)
        for word in (" src=", "<link", "@import", "url(http", "<iframe", "fetch(", "XMLHttpRequest"):
            self.assertNotIn(word, text)


class Paths(ReportTest):
    def test_that_cannot_be_written_are_refused_before_any_work(self):
        for path, problem in ((self.folder / "nowhere" / "r.html", "there is no folder"), (self.folder, "is a folder")):
            for words in (("predict", *JOB, "--ranks", "64"), ("scale", *JOB, "--ranks", "8-64")):
                with self.subTest(path=path, command=words[0]):
                    self.refused(run(*words, "--html", str(path)), "--html", problem)

    def test_two_outputs_need_two_files(self):
        self.refused(run("predict", *JOB, "--ranks", "64", "--html", str(self.report), "--timeline", str(self.report)),
                     "--timeline", "is --html too")
        self.assertFalse(self.report.exists())

    def test_of_every_command_are_refused_before_any_work(self):
        nowhere = str(self.folder / "nowhere" / "r.html")
        for words in (("tune", *JOB, "--ranks", "64"), ("time", "ring", "--cluster", "jizhi-p40", "--ranks", "8"),
                      ("reproduce", "jizhi"), ("calibrate", "--out", str(self.folder / "p.json")),
                      ("calibrate", "import", str(SOURCE / "NOTICE")), ("compare", "a", "b")):
            with self.subTest(command=words):
                self.refused(run(*words, "--html", nowhere), "--html", "there is no folder")

    def test_reports_are_of_rows(self):
        self.refused(run("reproduce", "all", "--mechanisms", "--html", str(self.report)), "--html", "leave out --mechanisms")

    def test_one_report_is_of_one_network(self):
        self.refused(run("predict", *JOB[2:], "--model", "resnet50,alexnet", "--ranks", "64", "--html", str(self.report)),
                     "--html", "2 networks and one report")

    def test_a_report_that_is_there_is_replaced_as_a_whole(self):
        self.report.write_text("before")
        self.report.chmod(stat.S_IRUSR | stat.S_IWUSR)
        self.reported("predict", *JOB, "--ranks", "64", "--force")
        self.assertTrue(self.report.read_text().startswith("<!DOCTYPE html>"))
        self.assertEqual(os.listdir(self.folder), ["report.html"])


if __name__ == "__main__":
    unittest.main()
