"""paceline train --rendezvous: one process for each rank, without MPI, started by hand or as torchrun
and srun start them.
"""

import json
import os
import signal
import subprocess
import time
import unittest

from paceline import HANG_S, PACELINE, CommandTest, free_port, run

OPTIONS = {"--model": "cnn-small", "--data": "synthetic", "--batch": "8", "--epochs": "1", "--threads": "1"}
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_", "OMPI_", "PMIX_", "TORCHELASTIC_")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}


def job(words):
    """A small job with these words, which take the place of its own options."""
    own = [word for option, value in OPTIONS.items() if option not in words for word in (option, value)]
    return ["train", *own, *words]


def start(*words, patience="60 s", **environment):
    return subprocess.Popen([PACELINE, *job(words), "--patience", patience], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**CLEAN, **environment})


def ends(processes):
    """Exit code, standard output and standard error of each."""
    results = []
    for process in processes:
        out, err = process.communicate(timeout=HANG_S)
        results.append((process.returncode, out, err))
    return results


class Rendezvous(CommandTest):
    def meet(self, ranks, *words, of_rank=lambda rank: ()):
        place = f"127.0.0.1:{free_port()}"
        return ends([start("--rendezvous", place, "--ranks", str(ranks), "--rank", str(rank), *words, *of_rank(rank))
                     for rank in reversed(range(ranks))])[::-1]

    def lines(self, path):
        return [json.loads(line) for line in path.read_text().splitlines()]

    def losses(self, path):
        return [line["loss"] for line in self.lines(path) if line["event"] == "iteration"]

    def refused_by_all(self, results, line, code=2):
        for result in results:
            self.assertEqual(result, (code, "", f"paceline: {line}\n"))

    def test_trains_as_threads_do_to_the_bit(self):
        words = ("--precision", "mixed", "--stop-after", "4", "--strategy", "hierarchical")
        threads = self.folder / "threads.jsonl"
        self.done(run(*job(words), "--ranks", "3", "--metrics", str(threads)))
        processes = self.folder / "processes.jsonl"
        results = self.meet(3, *words, of_rank=lambda rank: ("--metrics", str(processes)) if rank == 0 else ())
        self.assertEqual([(code, err) for code, _, err in results], 3 * [(0, "")])
        self.assertIn("cnn-small on synthetic: 3 ranks (tcp)", results[0][1])
        self.assertEqual([out for _, out, _ in results[1:]], ["", ""])
        self.assertEqual(len(self.losses(processes)), 4)
        self.assertEqual(self.losses(processes), self.losses(threads))

    def test_takes_ranks_as_torchrun_and_srun_say_them(self):
        expected = self.folder / "expected.jsonl"
        self.done(run(*job(("--ranks", "2", "--stop-after", "2", "--metrics", str(expected)))))
        port = free_port()
        said = {
            "torchrun": (("--rendezvous", "env"), lambda rank: {
                "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}),
            # torchrun's own store listens at MASTER_PORT.
            "torchrun with a store": (("--rendezvous", "env"), lambda rank: {
                "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port - 1),
                "TORCHELASTIC_USE_AGENT_STORE": "True"}),
            "srun": (("--rendezvous", f"localhost:{port}"), lambda rank: {
                "SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": str(rank)}),
            "options before torchrun": (("--rendezvous", "env", "--ranks", "2"), lambda rank: {
                "RANK": str(rank), "WORLD_SIZE": "64", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}),
        }
        for name, (words, environment) in said.items():
            with self.subTest(name):
                made = self.folder / "made.jsonl"
                made.unlink(missing_ok=True)
                results = ends([start(*words, "--stop-after", "2", "--metrics", str(made), **environment(rank)) for rank in (1, 0)])
                self.assertEqual([(code, err) for code, _, err in results], 2 * [(0, "")])
                self.assertEqual(self.losses(made), self.losses(expected))

    def test_one_rank_meets_nobody(self):
        self.assertEqual(self.meet(1, "--stop-after", "1")[0][0], 0)

    def test_ranks_that_do_not_fit_are_refused_by_all(self):
        place = f"127.0.0.1:{free_port()}"
        both = [start("--rendezvous", place, "--ranks", "3", "--rank", rank) for rank in ("0", "1", "1")]
        self.refused_by_all(ends(both), "two processes say that they are rank 1; give each one of the ranks 0 to 2")
        both = [start("--rendezvous", place, "--ranks", ranks, "--rank", rank) for rank, ranks in (("0", "2"), ("1", "3"))]
        self.refused_by_all(ends(both), "rank 1 was started for 3 ranks, and rank 0 for 2; start all with the same --ranks")
        for words in (("--wire", "bf16"), ("--learning-rate", "0.3"), ("--strategy", "hierarchical"), ("--model", "resnet-small")):
            for code, out, err in self.meet(2, of_rank=lambda rank: words if rank == 1 else ()):
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                self.assertIn("ranks", err)

    def test_says_who_did_not_come(self):
        place = f"127.0.0.1:{free_port()}"
        waiting = [start("--rendezvous", place, "--ranks", "4", "--rank", rank, patience="1 s") for rank in ("0", "2")]
        self.refused_by_all(ends(waiting), "cannot start the job: ranks 1, 3 did not come in 1 s", code=1)
        code, out, err = ends([start("--rendezvous", place, "--ranks", "2", "--rank", "1", patience="0.2 s")])[0]
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, r"^paceline: cannot connect to rank 0 at 127\.0\.0\.1 port \d+: Connection refused\n$")

    def test_wrong_options_are_refused_before_anybody_is_met(self):
        place = ("--rendezvous", "127.0.0.1:29500")
        wrong = {
            ("--rendezvous", "node7", "--ranks", "2", "--rank", "0"): "--rendezvous: 'node7' is no place to meet; give a host and a port",
            ("--rendezvous", "node7:65536", "--ranks", "2", "--rank", "0"): "'node7:65536' is no place to meet",
            ("--rendezvous", "env", "--ranks", "2", "--rank", "0"): "--rendezvous: MASTER_ADDR and MASTER_PORT are not set; give HOST:PORT",
            (*place, "--ranks", "2", "--rank", "2"): "--rank: there is no rank 2 of 2; ranks are 0 to 1",
            (*place, "--ranks", "2", "--rank", "-1"): "--rank",
            (*place, "--ranks", "0", "--rank", "0"): "--ranks",
            (*place, "--ranks", "2"): "--rendezvous: it is not known which rank this process is; add --rank R",
            (*place, "--rank", "0"): "--rendezvous: it is not known how many ranks there are; add --ranks N",
            ("--rank", "1", "--ranks", "2"): "--rank: a rank by itself has nobody to meet; add --rendezvous HOST:PORT",
            (*place, "--ranks", "2", "--rank", "0", "--model", "resnet-smal"): "resnet-smal",
            (*place, "--ranks", "2", "--rank", "0", "--device", "gpu"): "there is no device 'gpu'",
        }
        for words, problem in wrong.items():
            with self.subTest(words):
                code, out, err = ends([start(*words)])[0]
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(problem, err)
        torchrun = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        for words, environment, problem in (
                ((), torchrun, "RANK and WORLD_SIZE say that this is one process of 2; add --rendezvous env"),
                (("--rendezvous", "env"), {**torchrun, "RANK": "x"}, "RANK: 'x' is not a whole number"),
                (("--rendezvous", "env"), {**torchrun, "MASTER_PORT": "0"}, "MASTER_ADDR, MASTER_PORT: '127.0.0.1:0' is no place to meet")):
            code, out, err = ends([start(*words, **environment)])[0]
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            self.assertIn(problem, err)

    def test_a_killed_rank_ends_the_others_and_is_named(self):
        place = f"127.0.0.1:{free_port()}"
        metrics = self.folder / "metrics.jsonl"
        processes = [start("--rendezvous", place, "--ranks", "3", "--rank", str(rank), "--epochs", "1000",
                           *(("--metrics", str(metrics)) if rank == 0 else ())) for rank in range(3)]
        end = time.monotonic() + HANG_S
        while (not metrics.exists() or metrics.read_text().count("\n") < 3) and time.monotonic() < end:
            self.assertEqual([process.poll() for process in processes], [None, None, None])
            time.sleep(0.02)
        # The one that trains is the child of the one that was started.
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(processes[2].pid)], capture_output=True, text=True, check=True)
        os.kill(int(children.stdout), signal.SIGKILL)
        results = ends(processes)
        self.assertEqual([code for code, _, _ in results], [1, 1, 1])
        self.assertEqual([err.count("\n") for _, _, err in results], [1, 1, 1], results)
        self.assertRegex(results[2][2], r"^paceline: rank 2 \(process \d+\) was killed by SIGKILL: the job ends\n$")
        # The others lose rank 2, or one that has lost it before.
        self.assertTrue(any("rank 2: it is gone" in results[rank][2] for rank in (0, 1)), results)
        for _, _, err in results[:2]:
            self.assertRegex(err, r"^paceline: cannot (send to|receive from) rank [012]: it is gone\n$")


if __name__ == "__main__":
    unittest.main()
