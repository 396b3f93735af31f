"""Reports (--html) as files: what they hold, that nothing of them is loaded from elsewhere, and how paths
that cannot be written are refused. How they look in a browser: report_browser_test.py.
"""

import json
import os
import re
import stat
import unittest

from paceline import EXAMPLES, CommandTest, run

JOB = ("--model", "resnet50", "--cluster", "jizhi-p40", "--strategy", "fused-ring,binary-blocks")
DATA = re.compile(r'<script type="application/json" data-role="([a-z-]+)">(.*?)</script>', re.DOTALL)


def documents(path):
    """The documents in a report, by role."""
    return {role: json.loads(text) for role, text in DATA.findall(path.read_text())}


class ReportTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.report = self.folder / "report.html"

    def reported(self, *words):
        """The documents of the report that a command writes, and what it printed."""
        printed = self.done(run(*words, "--html", str(self.report)))
        return documents(self.report), printed


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

    def test_say_what_numbers_rest_on_as_the_table_does(self):
        held, printed = self.reported("predict", *JOB, "--ranks", "64")
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
        text = DATA.sub("", self.report.read_text())
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

    def test_one_report_is_of_one_network(self):
        self.refused(run("predict", *JOB[2:], "--model", "resnet50,alexnet", "--ranks", "64", "--html", str(self.report)),
                     "--html", "2 networks and one report")

    def test_a_report_that_is_there_is_replaced_as_a_whole(self):
        self.report.write_text("before")
        self.report.chmod(stat.S_IRUSR | stat.S_IWUSR)
        self.reported("predict", *JOB, "--ranks", "64")
        self.assertTrue(self.report.read_text().startswith("<!DOCTYPE html>"))
        self.assertEqual(os.listdir(self.folder), ["report.html"])


if __name__ == "__main__":
    unittest.main()
