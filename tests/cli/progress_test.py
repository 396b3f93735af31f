"""What the command shows while it works, on a terminal: a pseudo-terminal stands in for it."""

import os
import pathlib
import pty
import subprocess
import tempfile
import threading
import unittest

from paceline import HANG_S, PACELINE, SOURCE, run, shown_on


def on_terminal(*words, after_s, kind="xterm"):
    """Runs the command with standard error on a terminal of this kind, on which it says how far it is after so many
    seconds, and standard output in a pipe. Both texts."""
    master, slave = pty.openpty()
    process = subprocess.Popen([PACELINE, *words], stdout=subprocess.PIPE, stderr=slave, text=True,
                               env={**os.environ, "TERM": kind, "COLUMNS": "100", "PACELINE_PROGRESS_AFTER_S": str(after_s)})
    os.close(slave)
    killer = threading.Timer(HANG_S, process.kill)
    killer.start()
    shown = shown_on(master)
    out = process.communicate()[0]
    killer.cancel()
    os.close(master)
    return process.returncode, out, shown.decode()


class Progress(unittest.TestCase):
    def check(self, words, what):
        code, out, shown = on_terminal(*words, after_s=0)
        self.assertEqual(code, 0, shown)
        self.assertIn(what, shown)
        # The line is taken away before the result is printed.
        self.assertTrue(shown.endswith("\x1b[J"), shown[-80:])
        self.assertNotIn("\x1b", out)
        self.assertEqual(out, subprocess.run([PACELINE, *words], capture_output=True, text=True, timeout=HANG_S,
                                             env={**os.environ, "COLUMNS": "100"}).stdout)

    def test_a_proof_says_what_it_proves(self):
        self.check(("verify", "--schedule", "ring", "--ranks", "64"), "proving ring over 64 ranks with ")

    def test_a_choice_of_clusters_says_where_it_is(self):
        self.check(("plan-capacity", "--model", "resnet50", "--cluster", "aws-p3-16xlarge", "--nodes", "1-8", "--iterations", "9", "--global-batch", "512"), " ranks of aws-p3-16xlarge")

    def test_each_command_says_how_far_it_is(self):
        """What may take longer than a second, with a job that does not."""
        with tempfile.TemporaryDirectory() as folder:
            def at(name):
                return f"{folder}/{name}"
            job = ("--model", "alexnet", "--cluster", "jizhi-p40")
            for name in ("run.json", "prediction.json"):
                self.assertEqual(run("predict", *job, "--ranks", "8", "--strategy", "fused-ring", "--timeline", at(name)).returncode, 0)
            run_file = pathlib.Path(at("run.json"))
            run_file.write_text(run_file.read_text().replace('"predicted"', '"measured"'))
            with open(at("sweep.yaml"), "w") as file:
                file.write("sweep: one\nmodel: [alexnet]\ncluster: [jizhi-p40]\nranks: [8]\nstrategy: [ring]\n")
            trace = SOURCE / "tests/golden/imports/pytorch/2.5-shapes.json"
            for words, what in ((("predict", *job, "--ranks", "16", "--strategy", "ring,fused-ring"), "ring (1 of 2)"),
                                (("scale", *job, "--ranks", "8,16", "--strategy", "ring"), "8 ranks, ring"),
                                (("tune", *job, "--ranks", "16", "--engine", "step", "--strategy", "fused-ring"), "tuning for 16 ranks"),
                                (("time", "ring", *job[2:], "--ranks", "16", "--size", "1KiB"), "timing ring"),
                                (("cost", *job, "--ranks", "16", "--strategy", "ring", "--epochs", "9", "--dataset", "imagenet"), "phase 1, ring"),
                                (("show", "plan", *job, "--ranks", "16", "--strategy", "ring"), "timing the plan of ring"),
                                (("export", "ring", "--ranks", "8", "--format", "goal", "--output", at("ring.goal")), "writing ring"),
                                (("reproduce", "goyal"), "predicting the rows of goyal"),
                                (("agree", "--ranks", "8", "--schedule", "ring", "--topology", "flat", "--sizes", "1KiB"), "every engine"),
                                (("compare", at("run.json"), at("prediction.json")), "reading both timelines"),
                                (("sweep", at("sweep.yaml"), "--out", at("rows.csv")), "1"),
                                (("calibrate", "import", trace), "reading "),
                                (("doctor",), "asking libraries and drivers")):
                with self.subTest(words[0]):
                    code, _, shown = on_terminal(*words, after_s=0)
                    self.assertEqual(code, 0, shown)
                    self.assertIn(what, shown)
                    self.assertRegex(shown, r"\d s: ")
                    # In a file there are no codes of a terminal, and no line of this kind.
                    self.assertNotRegex(run(*words).stderr, r"\x1b|\d s: ")

    def test_what_is_done_before_shows_nothing(self):
        code, _, shown = on_terminal("predict", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "8", "--strategy", "ring",
                                     after_s=HANG_S)
        self.assertEqual((code, shown), (0, ""))

    def test_a_dumb_terminal_gets_no_codes(self):
        words = ("predict", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "8", "--strategy", "ring")
        self.assertIn("\x1b", on_terminal(*words, after_s=0)[2])
        self.assertEqual(on_terminal(*words, after_s=0, kind="dumb")[::2], (0, ""))


if __name__ == "__main__":
    unittest.main()
