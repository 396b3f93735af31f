"""paceline train under mpirun, where SIGTERM goes to mpirun itself: apart from train_test.py, for it waits 20 s for Open MPI."""

import os
import signal
import unittest

import train_test
from paceline import HANG_S


class MpirunItself(train_test.LongJob):
    def test_mpirun_passes_the_signal_on(self):
        path = self.path("checkpoint")
        words = train_test.mpirun(self.words("--checkpoint", path))
        # Open MPI waits so many seconds before it sends SIGTERM to the ranks, and as many again before
        # SIGKILL. What ranks print after that may be lost with mpirun, so the checkpoint is looked at.
        job = self.started([words[0], "--mca", "odls_base_sigkill_timeout", "10", *words[1:]], self.path("metrics.jsonl"))
        os.kill(job.pid, signal.SIGTERM)
        job.communicate(timeout=HANG_S)
        self.assertNotEqual(job.returncode, 0)
        resumed = train_test.train_mpi((*self.words("--resume", path), "--stop-after", "2"))
        self.assertEqual(resumed.returncode, 0, resumed.stderr)


if __name__ == "__main__":
    unittest.main()
