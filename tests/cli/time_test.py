"""paceline time, end to end: a table like that of nccl-tests, as text, JSON and CSV, and what it refuses."""

import csv
import io
import json
import unittest

from paceline import CommandTest, run


def time(algorithm, *words, cluster="h200-ndr", ranks="16"):
    return run("time", algorithm, "--cluster", cluster, "--ranks", ranks, *words)


class Time(CommandTest):
    def done(self, result):
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def document(self, *words, **job):
        document = json.loads(self.done(time(*words, "--json", **job)))
        self.assertEqual((document["schema"], document["provenance"]), ("paceline.time/1", "predicted"))
        return document

    def test_the_columns_of_nccl_tests(self):
        document = self.document("ring", "--size", "8-1GiB")
        self.assertEqual([row["bytes"] for row in document["sizes"]], [8 * 2**i for i in range(28)])
        self.assertEqual([(column["name"], column["as"]) for column in document["columns"]], [("ring", "asked"), ("nccl", "nccl")])
        for row in document["sizes"]:
            self.assertEqual(row["count"], row["bytes"] / 4)
            for at in row["times"]:
                self.assertLessEqual(at["time_low_s"], at["time_s"])
                self.assertLessEqual(at["time_s"], at["time_high_s"])
                self.assertAlmostEqual(at["algbw_bytes_per_s"], row["bytes"] / at["time_s"], delta=1)
                self.assertAlmostEqual(at["busbw_bytes_per_s"], at["algbw_bytes_per_s"] * 2 * 15 / 16, delta=1)
        last = document["sizes"][-1]["times"][0]
        text = self.done(time("ring", "--size", "8-1GiB"))
        self.assertIn("all-reduce ring on h200-ndr: 16 ranks (2 nodes of 8 h200)", text)
        self.assertRegex(text, r"(?m)^ *1 GiB +268435456 +fp32 +%.1f " % (last["time_s"] * 1e6))
        self.assertIn("All times are predicted", text)

    def test_every_collective_has_the_bus_bandwidth_of_nccl_tests(self):
        """Sizes and factors of nccl-tests: sends and receives count the buffer of one rank, all others the whole bucket."""
        factors = {"all-reduce": 2 * 15 / 16, "broadcast": 1, "reduce": 1, "neighbour-exchange": 1}
        others = ("reduce-scatter", "all-gather", "broadcast", "all-to-all", "reduce", "gather", "scatter", "neighbour-exchange")
        names = [entry["name"] for entry in json.loads(run("show", "catalog", "--json").stdout)["schedules"]]
        entries = [{"name": name, "collective": next(other for other in others if name.endswith(other))} for name in names
                   if name.endswith(others) and not name.startswith("hierarchical")]
        self.assertEqual({entry["collective"] for entry in entries}, set(others))
        self.assertEqual(len(entries), 20)
        for entry in entries:
            with self.subTest(entry["name"]):
                document = self.document(entry["name"], "--size", "64MiB")
                of_nccl = entry["collective"] not in ("gather", "scatter")  # which NCCL leaves to its users
                self.assertEqual((document["collective"], [column["as"] for column in document["columns"]]),
                                 (entry["collective"], ["asked", "nccl"] if of_nccl else ["asked"]))
                at = document["sizes"][0]["times"][0]
                self.assertAlmostEqual(at["algbw_bytes_per_s"], 2**26 / at["time_s"], delta=1)
                self.assertAlmostEqual(at["busbw_bytes_per_s"], at["algbw_bytes_per_s"] * factors.get(entry["collective"], 15 / 16), delta=1)
                text = self.done(time(entry["name"], "--size", "64MiB"))
                self.assertIn(f"All times are predicted, of one {entry['collective']} with nothing else in flight", text)
                measured = self.document(entry["name"], "--size", "64MiB", "--measured", f"64MiB={3 * at['time_s']}s")["sizes"][0]["times"][0]
                self.assertAlmostEqual(measured["time_s"] / at["time_s"], 3, delta=0.001)

    def test_nccl_times_every_collective_that_it_has(self):
        gathered, reduced = (self.document("nccl", "--collective", name, "--size", "64,1GiB") for name in ("all-gather", "all-reduce"))
        self.assertEqual((gathered["collective"], [column["name"] for column in gathered["columns"]]), ("all-gather", ["nccl"]))
        for half, whole in zip(gathered["sizes"], reduced["sizes"]):
            self.assertLess(half["times"][0]["time_s"], whole["times"][0]["time_s"])
        for name in ("reduce-scatter", "broadcast", "reduce", "all-to-all", "neighbour-exchange"):
            text = self.done(time("nccl", "--collective", name, "--size", "1GiB"))
            self.assertIn(f"{name} nccl on h200-ndr: 16 ranks", text)
            at = self.document("nccl", "--collective", name, "--size", "1GiB")["sizes"][0]["times"][0]
            self.assertLess(at["busbw_bytes_per_s"], 800e9)
        for name in ("all-gather", "broadcast", "all-to-all", "neighbour-exchange"):
            measured = self.document("nccl", "--collective", name, "--size", "64,1GiB", "--measured", "64B=70us,1GiB=9ms")["sizes"]
            for row, time_s in zip(measured, (70e-6, 9e-3)):
                self.assertAlmostEqual(row["times"][0]["time_s"] / time_s, 1, delta=1e-4)
        self.refused(time("nccl", "--collective", "all-gather", "--measured", "1GiB=100us"), "are faster than the links of h200-ndr")
        every = self.document("all", "--collective", "all-gather", "--size", "1MiB")
        self.assertEqual([column["name"].split(" ")[0] for column in every["columns"]],
                         ["all-gather", "bruck-all-gather", "direct-all-gather", "doubling-all-gather", "pat-all-gather", "hierarchical-all-gather", "nccl"])
        self.assertIn("every all-gather on h200-ndr", self.done(time("all", "--collective", "all-gather", "--size", "1MiB")))
        for words, problem in (
            (("nccl", "--collective", "allgather"), "--collective: unknown collective 'allgather'; did you mean 'all-gather'?"),
            (("nccl", "--collective", "gather"), "--collective: NCCL has no gather of its own; time gather of the catalogue"),
            (("nccl-tree", "--collective", "all-gather"), "--collective: NCCL has no all-gather by trees; time nccl, or an all-reduce"),
            (("nccl-ring", "--collective", "all-to-all"), "--collective: NCCL chooses no algorithm for all-to-all; time nccl"),
            (("ring", "--collective", "all-gather"), "--collective: ring is of all-reduce; leave it out"),
            (("nccl", "--collective", ""), "--collective is empty; give it a value, or leave it out"),
        ):
            with self.subTest(str(words)):
                self.refused(time(*words), problem)

    def test_few_steps_are_faster_for_few_bytes_and_no_slower_for_many(self):
        for ring, few in (("all-gather", "bruck-all-gather"), ("reduce-scatter", "bruck-reduce-scatter")):
            one = self.document(ring, "--size", "1KiB,1GiB", ranks="8")["sizes"]
            other = self.document(few, "--size", "1KiB,1GiB", ranks="8")["sizes"]
            of = [[row["times"][0]["time_s"] for row in rows] for rows in (one, other)]
            self.assertAlmostEqual(of[0][0] / of[1][0], 7 / 3, places=1)
            self.assertLessEqual(of[1][1], of[0][1])

    def test_csv_has_the_same_numbers(self):
        document = self.document("nccl", "--size", "1KiB,64MiB", "--dtype", "fp16")
        rows = list(csv.DictReader(io.StringIO(self.done(time("nccl", "--size", "1KiB,64MiB", "--dtype", "fp16", "--csv")))))
        self.assertEqual([(row["size_bytes"], row["count"], row["type"], row["provenance"]) for row in rows],
                         [("1024", "512", "fp16", "predicted"), ("67108864", "33554432", "fp16", "predicted")])
        for row, size in zip(rows, document["sizes"]):
            self.assertAlmostEqual(float(row["time_us"]), size["times"][0]["time_s"] * 1e6, delta=1e-5 * float(row["time_us"]))
            self.assertEqual(row["timed_by"], size["times"][0]["timed_by"])

    def test_all_marks_the_best_and_says_what_is_left_out(self):
        document = self.document("all", "--size", "1KiB,64MiB", cluster="jizhi-p40")
        names = [column["name"] for column in document["columns"]]
        self.assertIn("ring", names)
        self.assertIn("nccl", names)
        for row in document["sizes"]:
            ours = {at["name"]: at["time_s"] for at in row["times"] if at["name"] != "nccl"}
            self.assertEqual(ours[row["best"]], min(ours.values()))
        text = self.done(time("all", "--size", "1KiB,64MiB", cluster="jizhi-p40"))
        self.assertEqual(text.count("* "), 3)  # one a size, and what it means
        catalogue = {entry["name"] for entry in json.loads(run("show", "catalog", "--json").stdout)["schedules"]}
        odd = self.document("all", "--size", "1KiB", "--group", "7")
        self.assertTrue({entry["name"] for entry in odd["left_out"]} <= catalogue)
        self.assertIn("group size 7 does not divide 16 ranks", odd["left_out"][0]["why"])

    def test_what_nobody_named_is_the_fastest_of_a_scan(self):
        sizes = ("--size", "1KiB,64KiB,1MiB,16MiB,64MiB,1GiB")
        for algorithm, cluster, ranks, option, values in (("hierarchical", "h200-ndr", "64", "--group", (1, 2, 4, 8, 16, 32, 64)),
                                                          ("torus-2d", "jizhi-p40", "32", "--group", (1, 2, 4, 8, 16, 32)),
                                                          ("double-binary-tree", "h200-ndr", "24", "--segments", (1, 2, 4, 8, 16, 32, 64, 128, 256))):
            chosen = [row["times"][0] for row in self.document(algorithm, *sizes, cluster=cluster, ranks=ranks)["sizes"]]
            scans = {}
            for value in values:
                row = self.document(algorithm, *sizes, option, str(value), cluster=cluster, ranks=ranks)["sizes"]
                for i, at in enumerate(row):
                    scans[i, at["times"][0]["all_reduce"]] = at["times"][0]["time_s"]
            for i, at in enumerate(chosen):
                with self.subTest(algorithm=algorithm, size=i):
                    self.assertEqual(at["time_s"], scans[i, at["all_reduce"]])
                    self.assertLessEqual(at["time_s"], 1.001 * min(time_s for (at_size, _), time_s in scans.items() if at_size == i))
        text = self.done(time("hierarchical", *sizes, "--wide", ranks="64"))
        document = self.document("hierarchical", *sizes, ranks="64")
        self.assertIn("--group: the fastest for each size, as none is given", text)
        records = list(csv.DictReader(io.StringIO(self.done(time("hierarchical", *sizes, "--csv", ranks="64")))))
        self.assertGreater(len({row["times"][0]["all_reduce"] for row in document["sizes"]}), 1)
        for row, line, record in zip(document["sizes"], text.splitlines()[3:], records[::2]):
            all_reduce = row["times"][0]["all_reduce"]
            self.assertIn(" " + all_reduce.split()[-1] + " ", line)
            self.assertEqual(record["algorithm"], all_reduce)
        named = self.done(time("hierarchical", *sizes, "--group", "8", ranks="64"))
        self.assertIn("all-reduce hierarchical k=8 on", named)
        self.assertNotIn("fastest for each size", named)

    def test_sizes(self):
        def sizes(*words):
            return [row["bytes"] for row in self.document("ring", *words)["sizes"]]
        self.assertEqual(sizes("--size", "4"), [4])
        self.assertEqual(sizes("--size", "8-100", "--factor", "3"), [8, 24, 72, 100])
        self.assertEqual(sizes("--size", "25MiB,1kB"), [25 * 2**20, 1000])

    def test_nccls_version_changes_its_choice_only(self):
        new, old = (self.document("ring", "--size", "256KiB", "--nccl", version, cluster="jizhi-p40")["sizes"][0]["times"] for version in ("2.28", "2.20"))
        self.assertEqual(new[0], old[0])
        self.assertNotEqual(new[1]["time_s"], old[1]["time_s"])

    def test_what_was_measured_is_what_comes_out(self):
        measured = "64B=50us,1GiB=6.5ms@16"
        document = self.document("nccl-ring", "--size", "64,1GiB", "--measured", measured)
        self.assertEqual([(one["ranks"], one["bytes"]) for one in document["measured"]], [(16, 64), (16, 2**30)])
        asked = [row["times"][0] for row in document["sizes"]]
        for at, time_s in zip(asked, (50e-6, 6.5e-3)):
            self.assertAlmostEqual(at["time_s"] / time_s, 1, delta=1e-4)
            self.assertLessEqual(at["latency_s"], at["time_s"])
        plain = self.document("nccl-ring", "--size", "64,1GiB")
        for row, without in zip(document["sizes"], plain["sizes"]):
            self.assertEqual(row["times"][1], without["times"][1])  # NCCL's choice beside it

    def test_hostile_input(self):
        for words, problem in (
            (("rong",), "unknown collective 'rong'; did you mean 'ring'?"),
            (("ring", "--size", "0"), "--size: a message of 0 B; choose 1 B to 1 PB"),
            (("ring", "--size", "6"), "--size: 6 B are no whole elements of 4 bytes; give multiples of 4 B"),
            (("ring", "--size", "1GiB-8"), "--size: '1GiB-8' goes down; write 8-1GiB"),
            (("ring", "--size", "1-1-1"), "--size: "),
            (("ring", "--size", ","), "--size: "),
            (("ring", "--size", "nan"), "--size: "),
            (("ring", "--size", "9" * 400), "--size: "),
            (("ring", "--size", "4," * 1001 + "4"), "--size: more than 1000 sizes; give fewer"),
            (("ring", "--size", "1B-1PB", "--factor", "1"), "--factor: "),
            (("ring", "--size", "4-1TB", "--factor", "1.0000001"), "--factor: "),
            (("ring", "--factor", "-2"), "--factor: "),
            (("ring", "--dtype", "fp8"), "--dtype: unknown"),
            (("ring", "--nccl", "2.27"), "--nccl: unknown NCCL version '2.27'; did you mean '2.28'?"),
            (("ring", "--nccl", "two"), "--nccl: unknown NCCL version 'two'; did you mean '2.20'?"),
            (("ring", "--engine", "flaw"), "--engine: unknown engine 'flaw'; did you mean 'flow'?"),
            (("ring", "--profile", "/nowhere.json"), "/nowhere.json"),
            (("hierarchical", "--group", "7"), "group size 7 does not divide 16 ranks"),
            (("ring", "--json", "--csv"), "--csv: --json is given, too; choose one"),
            (("all", "--measured", "8B=1us"), "--measured: every algorithm is asked for; name the one that was measured"),
            (("ring", "--measured", "8B"), "--measured: '8B' has no time; write SIZE=TIME@RANKS, such as 64B=40.5us@16"),
            (("ring", "--measured", "8B=4"), "--measured: "),
            (("ring", "--measured", "8B=0us"), "--measured: a collective of 0 s; give more than 0 s and at most a day"),
            (("ring", "--measured", "0B=1us"), "--measured: a message of 0 B; choose 1 B to 1 PB"),
            (("ring", "--measured", "8B=1us@1"), "--measured: "),
            (("ring", "--measured", "8B=1us@99999"), "--measured: "),
            (("ring", "--measured", "8B=1us,"), "--measured: "),
            (("ring", "--measured", "=@"), "--measured: "),
            (("ring", "--measured", "1GiB=1ns"), "--measured: 1 GiB among 16 ranks in 1 ns are faster than the links of h200-ndr; give at least "),
            (("nccl", "--measured", "64B=20us,1GiB=10us@8"), "--measured: 1 GiB among 8 ranks in 10 us are faster than the links of h200-ndr; give at least "),
        ):
            with self.subTest(words=str(words)[:80]):
                result = time(*words)
                self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), result.stderr)
                self.assertIn(problem, result.stderr)
        for words, problem in ((("ring", "--ranks", "8"), "--cluster is missing"), (("ring", "--cluster", "h200-ndr"), "--ranks is missing"),
                               (("ring", "--cluster", "h200-ndr", "--ranks", "1"), "--ranks: one rank sends nothing; give at least 2"),
                               (("ring", "--cluster", "h200-ndr", "--ranks", "70000"), "do not fit cluster h200-ndr")):
            result = run("time", *words)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1), result.stderr)
            self.assertIn(problem, result.stderr)


if __name__ == "__main__":
    unittest.main()
