"""What the command shows while it works, on a terminal: a pseudo-terminal stands in for it."""

import os
import pty
import subprocess
import threading
import unittest

from paceline import HANG_S, PACELINE, shown_on


def on_terminal(*words, after_s):
    """Runs the command with standard error on a terminal, on which it says how far it is after so many seconds, and
    standard output in a pipe. Both texts."""
    master, slave = pty.openpty()
    process = subprocess.Popen([PACELINE, *words], stdout=subprocess.PIPE, stderr=slave, text=True,
                               env={**os.environ, "COLUMNS": "100", "PACELINE_PROGRESS_AFTER_S": str(after_s)})
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

    def test_what_is_done_before_shows_nothing(self):
        code, _, shown = on_terminal("predict", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "8", "--strategy", "ring",
                                     after_s=HANG_S)
        self.assertEqual((code, shown), (0, ""))


if __name__ == "__main__":
    unittest.main()
