"""paceline sweep, end to end: rows as predict has them, the same bytes from any number of ranks and threads, and
after any kill; cells that cannot be; what is refused.
"""

import csv
import io
import itertools
import json
import os
import random
import signal
import subprocess
import time
import unittest

from paceline import EXAMPLES, HANG_S, MPI_ENVIRONMENT, PACELINE, CommandTest, run as paceline

SWEEP = """
model: [resnet50, cnn-small]
cluster: [jizhi-p40, h200-ndr]
bandwidth: [1, 2]
batch: [32, 64]
ranks: [8-64]
strategy: [ring, fused-ring, hierarchical, halving-doubling]
theta: [auto, 1 MiB]
group: [auto, 8]
"""
CELLS = 2 * 2 * 2 * 2 * 4 * 4 * 2 * 2


def mpirun(ranks, *words):
    return ["mpirun", "--oversubscribe", "-n", str(ranks), PACELINE, *map(str, words)]


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


class Sweep(CommandTest):
    def setUp(self):
        super().setUp()
        self.file, self.out = self.folder / "sweep.yaml", self.folder / "rows.csv"
        self.journal = self.folder / "rows.csv.journal"
        self.file.write_text(SWEEP)

    def sweep(self, *words, text=None):
        if text is not None:
            self.file.write_text(text)
        return paceline("sweep", str(self.file), *map(str, words))

    def whole(self, *words):
        """The bytes of an undisturbed run."""
        result = self.sweep(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_rows_are_what_predict_says_in_the_order_of_the_axes(self):
        rows = rows_of(self.whole())
        self.assertEqual([int(row["cell"]) for row in rows], list(range(CELLS)))
        axes = [("resnet50", "cnn-small"), ("jizhi-p40", "h200-ndr"), ("1", "2"), ("32", "64"), ("8", "16", "32", "64"),
                ("ring", "fused-ring", "hierarchical", "halving-doubling"), ("auto", "1 MiB"), ("auto", "8")]
        names = ("model", "cluster", "bandwidth", "batch", "ranks", "strategy", "theta", "group")
        self.assertEqual([tuple(row[name] for name in names) for row in rows], list(itertools.product(*axes)))
        checked = 0
        for row in random.Random(1).sample([row for row in rows if row["bandwidth"] == "1" and row["status"] == "ok"], 12):
            # predict refuses what the strategy does not take; a cell of the sweep is then that of "auto".
            words = ["--theta", row["theta"]] if row["theta"] != "auto" and row["strategy"] != "ring" else []
            words += ["--group", row["group"]] if row["group"] != "auto" and row["strategy"] == "hierarchical" else []
            result = paceline("predict", "--model", row["model"], "--cluster", row["cluster"], "--ranks", row["ranks"], "--batch",
                              row["batch"], "--strategy", row["strategy"], *words, "--json")
            predicted = json.loads(self.done(result))["strategies"][0]
            for ours, theirs in (("iteration_s", "iteration_s"), ("exposed_communication_s", "exposed_communication_s"),
                                 ("throughput_per_s", "throughput_per_s")):
                self.assertAlmostEqual(float(row[ours]), predicted[theirs], delta=1e-8 * max(1, predicted[theirs]), msg=row)
            checked += 1
        self.assertEqual(checked, 12)
        by_place = {tuple(row[name] for name in names): row for row in rows}
        faster = 0
        # Collectives of GPUs take more from computation beside them where their links are faster, as those of h200-ndr do.
        for key, row in by_place.items():
            if row["cluster"] == "jizhi-p40" and row["bandwidth"] == "2" and row["theta"] == "1 MiB" and row["status"] == "ok":
                slow = by_place[key[:2] + ("1",) + key[3:]]
                self.assertLessEqual(float(row["iteration_s"]), float(slow["iteration_s"]) * (1 + 1e-9))
                faster += float(row["iteration_s"]) < 0.999 * float(slow["iteration_s"])
        self.assertGreater(faster, 0)

    def test_places_are_those_of_their_factors(self):
        rows = rows_of(self.whole_of("model: cnn-small\ncluster: [jizhi-p40, aws-p3-16xlarge]\nprofile: [auto, none]\nbandwidth: [1, 4]\n"
                                     "latency: [1, 0.5]\ncompute: [1, 2]\nranks: 64\nstrategy: ring\nprecision: fp32\n"))
        self.assertEqual(len(rows), 32)
        place = {tuple(row[name] for name in ("cluster", "profile", "bandwidth", "latency", "compute")): row for row in rows}
        for (cluster, profile, bandwidth, latency, compute), row in place.items():
            words = ("--profile", "none") if profile == "none" else ()
            if (bandwidth, latency, compute) == ("1", "1", "1"):
                result = paceline("predict", "--model", "cnn-small", "--cluster", cluster, "--ranks", "64", "--strategy", "ring", "--precision",
                                  "fp32", "--json", *words)
                predicted = json.loads(self.done(result))["strategies"][0]["iteration_s"]
                self.assertAlmostEqual(float(row["iteration_s"]), predicted, delta=1e-8)
        for cluster in ("jizhi-p40", "aws-p3-16xlarge"):
            at = lambda *factors: float(place[(cluster, "none", *factors)]["iteration_s"])
            self.assertLess(at("1", "0.5", "1"), at("1", "1", "1"))
            self.assertLess(at("1", "1", "2"), at("1", "1", "1"))
            self.assertLess(at("4", "0.5", "2"), at("1", "0.5", "1"))

    def test_threads_and_ranks_give_the_same_bytes(self):
        whole = self.whole("--threads", 1)
        for threads in (2, 5):
            self.assertEqual(self.whole("--threads", threads), whole)
        for ranks in (1, 2, 3):
            out = self.folder / f"rows-{ranks}.csv"
            result = subprocess.run(mpirun(ranks, "sweep", self.file, "--threads", 2, "--out", out), capture_output=True, text=True,
                                    env=MPI_ENVIRONMENT, timeout=HANG_S)
            self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
            self.assertEqual(out.read_text(), whole, ranks)
            self.assertIn(f"{CELLS} cells in ", result.stderr)

    def test_json_lines_say_the_same(self):
        rows = rows_of(self.whole())
        documents = [json.loads(line) for line in self.whole("--json").splitlines()]
        self.assertEqual(len(documents), len(rows))
        for row, document in zip(rows, documents):
            self.assertEqual(list(document), list(row))
            for key, text in row.items():
                value = document[key]
                if value is None:
                    self.assertEqual(text, "", key)
                elif isinstance(value, str):
                    self.assertEqual(text, value, key)
                else:
                    self.assertEqual(float(text), value, key)

    def test_wherever_a_sweep_is_cut_off_it_ends_with_the_same_bytes(self):
        whole = self.whole()
        self.done(self.sweep("--out", self.out, "--journal-every", 32))
        rows, journal = self.out.read_bytes(), self.journal.read_bytes()
        self.assertEqual(rows.decode(), whole)
        self.assertGreater(journal.count(b"\n"), 10)
        draw = random.Random(2)
        went_on = 0
        for cut in [0, 5, journal.index(b"\n") + 1, len(journal)] + [draw.randrange(len(journal)) for _ in range(12)]:
            kept = journal[:cut]
            lines = kept[:kept.rfind(b"\n") + 1].splitlines()
            counted = int(lines[-1].split()[1]) if len(lines) > 1 else 0
            # The rows have at least what the journal counts, and perhaps others, whole or not, or what was never theirs.
            beyond = draw.choice([b"", rows[counted:counted + draw.randrange(1000)], b"nonsense"])
            # Without a row that the journal counts, nonsense is a file of somebody else.
            if counted == 0 and beyond == b"nonsense":
                beyond = b""
            self.journal.write_bytes(kept)
            self.out.write_bytes(rows[:counted] + beyond)
            result = self.sweep("--out", self.out, "--resume", "--journal-every", 32, "--threads", draw.choice([1, 3]))
            self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
            self.assertEqual(self.out.read_bytes(), rows, cut)
            went_on += " cells are there\n" in result.stderr
            self.assertIn(f"{CELLS} ", self.journal.read_text().splitlines()[-1])
        self.assertGreater(went_on, 8)

    def test_a_sweep_that_is_killed_goes_on(self):
        whole = self.whole()
        draw = random.Random(3)
        kills = 0
        for attempt in range(20):
            ranks = draw.choice([1, 2, 3])
            words = ("sweep", self.file, "--out", self.out, "--resume", "--journal-every", 32, "--threads", 1)
            command = [PACELINE, *map(str, words)] if ranks == 1 else mpirun(ranks, *words)
            lines = self.journal.read_text().count("\n") if self.journal.exists() else 0
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=MPI_ENVIRONMENT, start_new_session=True)
            deadline = time.monotonic() + HANG_S
            # Killed once it has got a little further, or at its end.
            while process.poll() is None and time.monotonic() < deadline:
                if self.journal.exists() and self.journal.read_text().count("\n") >= lines + draw.randrange(2, 8):
                    os.killpg(process.pid, signal.SIGKILL)
                    break
                time.sleep(0.001)
            process.communicate(timeout=HANG_S)
            kills += process.returncode == -signal.SIGKILL
            self.wait_for_writers()
            if process.returncode == 0:
                break
        else:
            result = self.sweep("--out", self.out, "--resume")
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(kills, 0)
        self.assertEqual(self.out.read_text(), whole)
        # All is there: nothing is left to do.
        result = self.sweep("--out", self.out, "--resume")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"{CELLS} of {CELLS} cells are there\n", result.stderr)
        self.assertEqual(self.out.read_text(), whole)

    def wait_for_writers(self):
        """Ranks of a killed mpirun may live for a moment, and hold the journal's lock."""
        for _ in range(HANG_S * 10):
            if subprocess.run(["flock", "--nonblock", str(self.journal), "true"], check=False).returncode == 0:
                return
            time.sleep(0.1)

    def test_cells_that_cannot_be_say_why(self):
        rows = rows_of(self.whole_of("model: resnet50\ncluster: jizhi-p40\nbatch: [64, 4096]\nranks: [8, 12, 3000]\n"
                                     "strategy: [hierarchical, ring]\ngroup: [auto, 8]\n"))
        self.assertEqual(len(rows), 24)
        by_place = {(row["batch"], row["ranks"], row["strategy"], row["group"]): row for row in rows}
        self.assertEqual(by_place["64", "8", "ring", "auto"]["status"], "ok")
        self.assertIn("3000 ranks do not fit cluster jizhi-p40", by_place["64", "3000", "ring", "8"]["status"])
        self.assertIn("out of memory: a rank needs ", by_place["4096", "8", "ring", "auto"]["status"])
        self.assertGreater(float(by_place["4096", "8", "ring", "auto"]["memory_bytes"]), 24e9)
        self.assertNotEqual(by_place["64", "12", "hierarchical", "8"]["status"], "ok")
        for row in rows:
            figures = (row["iteration_s"], row["throughput_per_s"], row["exposed_communication_s"])
            self.assertEqual([figure != "" for figure in figures], [row["status"] == "ok"] * 3, row)

    def whole_of(self, text):
        return self.done(self.sweep(text=text))

    def test_the_example_runs(self):
        rows = rows_of(self.done(paceline("sweep", str(EXAMPLES / "sweep.yaml"))))
        self.assertEqual(len(rows), 2 * 2 * 2 * 2 * 8 * 3 * 4 * 2)
        self.assertEqual({row["status"].partition(":")[0] for row in rows}, {"ok", "out of memory"})

    def test_what_is_no_sweep_is_refused(self):
        base = "model: resnet50\ncluster: jizhi-p40\nranks: 8\nstrategy: ring\n"
        for text, problem in (
                ("model: resnet50\ncluster: jizhi-p40\nranks: 8\n", "a sweep without strategy; add a list, as in strategy: [fused-ring]"),
                (base + "bandwith: 2\n", "did you mean 'bandwidth'?"), (base + "batch: [64, 64]\n", "batch: '64' is there twice"),
                (base + "batch: []\n", "batch: the list is empty"), (base + "batch: 0\n", "'0' is not a whole number from 1"),
                (base + "bandwidth: [1, -1]\n", "'-1' is not a number from 0.001 to 1000"), (base + "theta: [1 MiBB]\n", "sweep.yaml:5:"),
                (base.replace("ring", "rong"), "unknown strategy 'rong'"), (base.replace("resnet50", "nosuch"), "unknown network 'nosuch'"),
                (base.replace("ranks: 8", "ranks: 64-8"), "'64-8' goes down; write 8-64"),
                (base + "wire: fp8\n", "fp8"), (base + "engine: warp\n", "warp"), ("[1, 2]\n", "sweep.yaml")):
            with self.subTest(text=text):
                self.refused(self.sweep(text=text), problem)
        self.refused(self.sweep("--resume", text=base), "--resume: rows that go to standard output have no journal")
        self.refused(self.sweep("--out", self.file, text=base), "is FILE too")
        self.refused(self.sweep("--threads", "0", text=base), "--threads: '0' is not a whole number")

    def test_journals_that_do_not_fit_are_refused(self):
        def refused(*words, problem):
            rows = self.out.read_bytes()
            self.refused(self.sweep("--out", self.out, *words), problem)
            self.assertEqual(self.out.read_bytes(), rows)

        self.done(self.sweep("--out", self.out, "--journal-every", 32))
        rows, journal = self.out.read_bytes(), self.journal.read_bytes()
        refused(problem="there is a journal of a sweep already; go on with it by --resume, or remove it")
        refused("--resume", "--json", problem="the journal belongs to another sweep, or to another version")
        self.file.write_text(SWEEP.replace("[32, 64]", "[32, 65]"))
        refused("--resume", problem="the journal belongs to another sweep, or to another version")
        self.file.write_text(SWEEP)
        self.journal.write_bytes(b"hello\n")
        refused("--resume", problem="this is no journal of a sweep; remove it to begin anew")
        lines = journal.splitlines(keepends=True)
        self.journal.write_bytes(b"".join(lines[:3] + [b"1 2\n"] + lines[4:]))
        refused("--resume", problem=":4: the journal is damaged; remove it to begin anew")
        self.journal.write_bytes(journal)
        for damaged in (rows[:-1], rows[:100] + b"#" + rows[101:]):
            self.out.write_bytes(damaged)
            refused("--resume", problem=f"its first {len(rows)} bytes are not those that the journal counts")

    def test_a_network_file_is_part_of_the_job(self):
        network = self.folder / "net.yaml"
        network.write_text((EXAMPLES / "tiny-net.yaml").read_text())
        self.file.write_text(f"model: {network}\ncluster: jizhi-p40\nranks: 8\nstrategy: ring\n")
        self.done(self.sweep("--out", self.out))
        network.write_text(network.read_text() + "\n# another\n")
        self.refused(self.sweep("--out", self.out, "--resume"), "the journal belongs to another sweep")


if __name__ == "__main__":
    unittest.main()
