"""What the command shows while it works, on a terminal: a pseudo-terminal stands in for it."""

import os
import pty
import select
import subprocess
import time
import unittest

from paceline import HANG_S, PACELINE


def on_terminal(*words):
    """Runs the command with standard error on a terminal, and standard output in a pipe. Both texts."""
    master, slave = pty.openpty()
    process = subprocess.Popen([PACELINE, *words], stdout=subprocess.PIPE, stderr=slave, text=True, env={**os.environ, "COLUMNS": "100"})
    os.close(slave)
    shown = b""
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    out = process.communicate(timeout=HANG_S)[0]
    os.close(master)
    return process.returncode, out, shown.decode()


class Progress(unittest.TestCase):
    def check(self, words, what):
        code, out, shown = on_terminal(*words)
        self.assertEqual(code, 0, shown)
        self.assertIn(what, shown)
        # The line is taken away before the result is printed.
        self.assertTrue(shown.endswith("\x1b[J"), shown[-80:])
        self.assertNotIn("\x1b", out)
        self.assertEqual(out, subprocess.run([PACELINE, *words], capture_output=True, text=True, timeout=HANG_S,
                                             env={**os.environ, "COLUMNS": "100"}).stdout)

    def test_a_long_proof_says_what_it_proves(self):
        self.check(("verify", "--schedule", "ring", "--ranks", "1024"), "proving ring over 1024 ranks with ")

    def test_what_is_done_at_once_shows_nothing(self):
        code, _, shown = on_terminal("predict", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "8", "--strategy", "ring")
        self.assertEqual((code, shown), (0, ""))


if __name__ == "__main__":
    unittest.main()
