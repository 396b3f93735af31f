"""paceline time --against, end to end: all-reduces that another tool measured beside their prediction, and the
exit code of --fail-below.
"""

import csv
import io
import json
import re
import unittest

from nccl_tests_output import written
from paceline import SOURCE, CommandTest, run

IMPORTS = SOURCE / "tests" / "golden" / "imports"
TWO_NODES = str(IMPORTS / "nccl_tests" / "2.17-json-float-two-nodes.json")
HALF = str(IMPORTS / "nccl_tests" / "2.13-half-two-nodes.txt")
ONE_NODE = str(IMPORTS / "nccl_tests" / "2.0-float-one-node.txt")
OSU = str(IMPORTS / "osu" / "5.6.2-allreduce.txt")
NCCL = ("time", "nccl", "--cluster", "h200-ndr")

class Against(CommandTest):
    def file(self, rows, name="perf.txt", **job):
        path = self.folder / name
        path.write_text(written(rows, **job))
        return str(path)

    def document(self, *words):
        return json.loads(self.done(run(*words, "--json")))

    def predicted(self, *sizes, words=NCCL):
        """The prediction of each size: low, value and high, in s."""
        rows = self.document(*words, "--ranks", "16", "--size", ",".join(map(str, sizes)))["sizes"]
        return [(at["time_low_s"], at["time_s"], at["time_high_s"]) for at in (row["times"][0] for row in rows)]

    def test_each_size_of_the_file_is_beside_its_prediction(self):
        sizes = (4096, 1 << 20, 1 << 28)
        (low, at, high) = zip(*self.predicted(*sizes))
        measured = (0.9 * low[0], 1.0001 * at[1], 1.2 * high[2])
        file = self.file([(size, 1e6 * time) for size, time in zip(sizes, measured)])
        document = self.document(*NCCL, "--against", file)
        self.assertEqual((document["ranks"], document["type"], [row["bytes"] for row in document["sizes"]]), (16, "fp32", list(sizes)))
        against = document["against"]
        self.assertEqual((against["file"], against["tool"], against["provenance"]), (file, "nccl-tests", "measured"))
        for i, row in enumerate(against["rows"]):
            self.assertAlmostEqual(row["measured_s"] / measured[i], 1, delta=1e-5)
            self.assertEqual((row["bytes"], row["samples"], row["predicted_low_s"], row["predicted_s"], row["predicted_high_s"]), (sizes[i], 1, low[i], at[i], high[i]))
            self.assertAlmostEqual(row["measured_busbw_bytes_per_s"] * row["measured_s"], sizes[i] * 2 * 15 / 16, delta=1)
            self.assertAlmostEqual(row["busbw_share"], row["predicted_s"] / row["measured_s"])
            self.assertAlmostEqual(row["busbw_share"], row["measured_busbw_bytes_per_s"] / row["predicted_busbw_bytes_per_s"])
            self.assertEqual(row["verdict"], ("faster", "inside", "slower")[i])
        text = self.done(run(*NCCL, "--against", file, "--wide"))
        lines = text.splitlines()
        self.assertEqual(lines[1], f"measured: {file} (nccl-tests: all_reduce_perf, in place, float sum)")
        self.assertEqual([re.split("  +", line.strip())[-1] for line in lines[4:7]], ["faster", "inside", "slower"])
        self.assertIn("1 of 3 measured times inside the 90 % interval of their prediction, 1 slower, 1 faster\n", text)
        share = 100 * at[2] / measured[2]
        self.assertIn(f"the least share of a predicted one: {share:.1f} %, at 256 MiB\n", text)
        rows = list(csv.DictReader(io.StringIO(self.done(run(*NCCL, "--against", file, "--csv")))))
        self.assertEqual([row["verdict"] for row in rows], ["faster", "inside", "slower"])
        for row, of in zip(rows, against["rows"]):
            for title, value in (("measured_us", 1e6 * of["measured_s"]), ("predicted_us", 1e6 * of["predicted_s"]), ("predicted_low_us", 1e6 * of["predicted_low_s"]),
                                 ("predicted_high_us", 1e6 * of["predicted_high_s"]), ("measured_busbw_gb_per_s", of["measured_busbw_bytes_per_s"] / 1e9),
                                 ("predicted_busbw_gb_per_s", of["predicted_busbw_bytes_per_s"] / 1e9), ("busbw_share", of["busbw_share"])):
                self.assertAlmostEqual(float(row[title]) / value, 1, delta=1e-5)
        markdown = self.done(run(*NCCL, "--against", file, "--markdown")).splitlines()
        self.assertEqual([line.strip("| ").split(" | ")[-1] for line in markdown], ["verdict", "---:|---:|---:|---:|---:|---:|---:|---:|---:|---", "faster", "inside", "slower"])

    def test_each_run_is_judged(self):
        """The median of three runs is inside; one of them took eight times as long."""
        size = 1 << 28
        (low, at, high), = self.predicted(size)
        runs = "".join(written([(size, 1e6 * factor * at)]) for factor in (1, 1.001, 8))
        path = self.folder / "runs.txt"
        path.write_text(runs)
        row, = self.document(*NCCL, "--against", str(path))["against"]["rows"]
        self.assertEqual((row["samples"], row["verdict"]), (3, "slower"))
        self.assertAlmostEqual(row["measured_least_s"] / at, 1, delta=1e-5)
        self.assertAlmostEqual(row["measured_s"] / at, 1.001, delta=1e-5)
        self.assertAlmostEqual(row["measured_most_s"] / at, 8, delta=1e-4)
        self.assertAlmostEqual(row["busbw_share"], 1 / 8, delta=1e-4)
        text = self.done(run(*NCCL, "--against", str(path)))
        self.assertIn("slowest us", text.splitlines()[3])
        self.assertIn("3 runs of all_reduce_perf, in place, float sum, taken together by their medians; they differ most at 256 MiB:", text)
        refused = run(*NCCL, "--against", str(path), "--fail-below", "interval")
        self.assertEqual(refused.returncode, 1)
        # Two runs that are as predicted pass.
        path.write_text(runs[:runs.index("# nThread", runs.index("# nThread", 1) + 1)])
        self.done(run(*NCCL, "--against", str(path), "--fail-below", "interval"))

    def test_what_is_beside_it_moves_no_prediction(self):
        """The file is judged, and nothing is calibrated on it."""
        file = self.file([(1 << 20, 1e5), (1 << 28, 1e7)])
        rows = self.document(*NCCL, "--against", file)["against"]["rows"]
        self.assertEqual([(row["predicted_low_s"], row["predicted_s"], row["predicted_high_s"]) for row in rows], self.predicted(1 << 20, 1 << 28))

    def test_what_calibrates_is_never_called_predicted(self):
        measured = "1MiB=150us,1GiB=9ms@16"
        file = self.file([(1 << 20, 150), (1 << 28, 2500), (1 << 30, 9000)])
        document = self.document(*NCCL, "--against", file, "--measured", measured, "--size", "1MiB-1GiB")
        rows = document["against"]["rows"]
        self.assertEqual([row["verdict"] == "calibrated" for row in rows], [True, False, True])
        for row, size in zip(rows, document["sizes"]):
            is_calibrated = row["verdict"] == "calibrated"
            self.assertEqual([key for key in row if key.startswith("predicted")] == [], is_calibrated)
            self.assertEqual(row["busbw_share"] is None, is_calibrated)
            self.assertEqual(size["times"][0]["provenance"], "calibrated" if is_calibrated else "predicted")
        text = self.done(run(*NCCL, "--against", file, "--measured", measured, "--wide"))
        self.assertIn("calibrated on --measured, not predicted: 1 MiB, 1 GiB of nccl\n", text)
        self.assertRegex(text, r"(?m)^ *1 GiB +268435456 +fp32 +9000\.0 +- +- +[\d.]+ +- +- +calibrated$")
        self.assertRegex(text, r"(?m)^[01] of 1 measured times inside")
        csv_rows = list(csv.DictReader(io.StringIO(self.done(run(*NCCL, "--against", file, "--measured", measured, "--csv")))))
        self.assertEqual([row["predicted_us"] == "" for row in csv_rows], [True, False, True])
        # However bad: what calibrates is not judged.
        only = self.file([(1 << 20, 150), (1 << 30, 9000)], "only.txt")
        self.done(run(*NCCL, "--against", only, "--measured", measured, "--fail-below", "99%"))
        # It is not called predicted where nothing stands beside it, either.
        alone = run(*NCCL, "--ranks", "16", "--measured", measured, "--size", "1MiB,2MiB")
        self.assertIn("calibrated on --measured, not predicted: 1 MiB of nccl\nAll other times are predicted,", alone.stdout)
        provenance = [row["provenance"] for row in csv.DictReader(io.StringIO(self.done(run(*NCCL, "--ranks", "16", "--measured", measured, "--size", "1MiB,2MiB", "--csv"))))]
        self.assertEqual(provenance, ["calibrated", "predicted"])

    def test_a_bandwidth_that_is_too_low_is_exit_code_1(self):
        sizes = (4096, 1 << 20, 1 << 28)
        predicted = self.predicted(*sizes)
        file = self.file([(size, 1e6 * at / share) for size, (_, at, _), share in zip(sizes, predicted, (0.93, 1.0, 0.85))])
        words = (*NCCL, "--against", file)
        whole = self.done(run(*words))
        for limit in ("80%", "0.8", "84.9 %"):
            self.assertEqual(self.done(run(*words, "--fail-below", limit)), whole)
        for limit in ("90%", "0.9", "90 %"):
            result = run(*words, "--fail-below", limit)
            self.assertEqual((result.returncode, result.stdout), (1, whole))
            self.assertRegex(result.stderr, rf"^paceline: cannot reach 90 % of the predicted bus bandwidth: {re.escape(file)} of 256 MiB has [\d.]+ GB/s, 85\.0 % of [\d.]+ GB/s\n$")
        # The worst is named, of those that --size leaves.
        result = run(*words, "--fail-below", "95%", "--size", "1KiB-1MiB")
        self.assertEqual(result.returncode, 1)
        self.assertIn("of 4 KiB has", result.stderr)
        self.assertEqual(self.document(*words, "--size", "1KiB-1MiB")["sizes"][-1]["bytes"], 1 << 20)
        self.done(run(*words, "--fail-below", "95%", "--size", "1MiB"))

    def test_a_bandwidth_below_the_interval_is_exit_code_1(self):
        (low, _, high), = self.predicted(1 << 28)
        inside = self.file([(1 << 28, 1e6 * high * 0.999)], "inside.txt")
        faster = self.file([(1 << 28, 1e6 * low * 0.5)], "faster.txt")
        slower = self.file([(1 << 28, 1e6 * high * 1.01)], "slower.txt")
        for file in (inside, faster):
            self.done(run(*NCCL, "--against", file, "--fail-below", "interval"))
        result = run(*NCCL, "--against", slower, "--fail-below", "interval")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, rf"^paceline: cannot reach the interval of the predicted bus bandwidth: {re.escape(slower)} of 256 MiB has [\d.]+ GB/s, "
                                        r"less than [\d.]+ to [\d.]+ GB/s\n$")
        found, least, most = map(float, re.findall(r"([\d.]+) (?:GB/s, less|to|GB/s\n)", result.stderr))
        self.assertLess(found, least)
        self.assertLess(least, most)

    def test_documents_are_written_before_it_fails(self):
        file, written_to = self.file([(1 << 28, 1e7)]), self.folder / "verdict.json"
        result = run(*NCCL, "--against", file, "--fail-below", "90%", "--json-out", str(written_to))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(json.loads(written_to.read_text())["against"]["rows"][0]["verdict"], "slower")

    def test_files_of_real_tools(self):
        for file, words, ranks, type_ in ((TWO_NODES, (), 16, "fp32"), (HALF, (), 16, "fp16"), (ONE_NODE, (), 8, "fp32"),
                                          (OSU, ("--ranks", "16"), 16, "fp32"), (OSU, ("--ranks", "8", "--dtype", "fp32"), 8, "fp32")):
            document = self.document(*NCCL, "--against", file, *words)
            self.assertEqual((document["ranks"], document["type"]), (ranks, type_))
            sizes = [row["bytes"] for row in document["against"]["rows"]]
            self.assertGreater(len(sizes), 4)
            self.assertEqual(sizes, sorted(set(sizes)))
            self.assertEqual(sizes, [row["bytes"] for row in document["sizes"]])

    def test_other_collectives_are_judged_as_what_they_are(self):
        for file, collective, ranks, factor in (("2.17-all-gather-two-nodes", "all-gather", 16, 15 / 16), ("2.13-reduce-scatter-one-node", "reduce-scatter", 8, 7 / 8),
                                                ("2.13-alltoall-one-node", "all-to-all", 8, 7 / 8), ("2.13-broadcast-four-gpus", "broadcast", 4, 1)):
            path = str(IMPORTS / "nccl_tests" / f"{file}.txt")
            document = self.document(*NCCL, "--against", path)
            self.assertEqual((document["collective"], document["ranks"], len(document["sizes"])), (collective, ranks, 21))
            for row in document["against"]["rows"]:
                self.assertAlmostEqual(row["measured_busbw_bytes_per_s"] * row["measured_s"] / row["bytes"], factor)
            self.assertIn(f"Predictions are of one {collective} with", self.done(run(*NCCL, "--against", path)))
        several = str(IMPORTS / "nccl_tests" / "2.17-several-runs-kubectl.txt")
        self.refused(run(*NCCL, "--against", several), "choose one with --collective, --dtype or --ranks")
        self.assertEqual(self.document(*NCCL, "--against", several, "--collective", "all-gather")["ranks"], 8)

    def test_several_runs_of_a_size_are_their_median(self):
        file = self.file([(1 << 20, 100), (1 << 20, 300), (1 << 20, 110), (1 << 21, 200)])
        rows = self.document(*NCCL, "--against", file)["against"]["rows"]
        self.assertEqual([(row["bytes"], row["samples"], round(1e6 * row["measured_s"])) for row in rows], [(1 << 20, 3, 110), (1 << 21, 1, 200)])

    def test_hostile_input(self):
        good = self.file([(1 << 20, 100)])
        two = self.folder / "two.txt"
        two.write_text(written([(1 << 20, 100)]) + written([(1 << 20, 60)], type_="half"))
        (self.folder / "empty.txt").write_text("")
        (self.folder / "binary.txt").write_bytes(bytes(range(256)) * 8)
        (self.folder / "cut.txt").write_text(written([(1 << 20, 100)])[:-30])
        one_node = self.file([(1 << 20, 100)], "one.txt", ranks=16, nodes=1)
        horovod = str(IMPORTS / "horovod" / "0.28-closed.json")
        latency = str(IMPORTS / "osu" / "5.6.2-latency.txt")
        for words, problem in (
            (("--against", "/nowhere.txt"), "/nowhere.txt: no such file"),
            (("--against", str(self.folder)), "this is a directory"),
            (("--against", str(self.folder / "empty.txt")), "there is nothing in this file; give what the tool printed"),
            (("--against", str(self.folder / "binary.txt")), "this is the output of no tool that is known here"),
            (("--against", str(self.folder / "cut.txt")), "cut.txt:"),
            (("--against", horovod), "0.28-closed.json: this is a file of horovod, which times no collectives by size; give the output of all_reduce_perf, osu_allreduce or another benchmark of collectives"),
            (("--against", latency), "it times messages between two ranks, and no collective"),
            (("--against", OSU), "it does not say on how many ranks the all-reduce ran; give --ranks"),
            (("--against", good, "--ranks", "8"), f"--ranks: 8, and {good} has all-reduces of fp32 over 16 ranks; leave it out"),
            (("--against", good, "--dtype", "fp16"), f"--dtype: fp16, and {good} has all-reduces of fp32 over 16 ranks; leave it out"),
            (("--against", str(two)), "it has all-reduces of fp16 over 16 ranks, all-reduces of fp32 over 16 ranks; choose one with --collective, --dtype or --ranks"),
            (("--against", good, "--collective", "all-gather"), "busbw is 1.875 algbw, and 0.938 in an all-gather over 16 ranks; give the output of one run as it is"),
            (("--against", one_node), f"--cluster: 16 ranks of h200-ndr are on 2 hosts, and those of {one_node} on 1; give the cluster that was measured"),
            (("--against", good, "--size", "8-1KiB"), f"--size: nothing from 8 B to 1 KiB was measured; {good} has 1 MiB to 1 MiB"),
            (("--against", good, "--cluster", "sony-abci", "--fail-below", "x"), "--fail-below: "),
            (("--against", good, "--fail-below", "0%"), "--fail-below: "),
            (("--against", good, "--fail-below", "101%"), "--fail-below: "),
            (("--against", good, "--fail-below", "90"), "--fail-below: "),
            (("--against", good, "--fail-below", "nan%"), "--fail-below: "),
            (("--ranks", "16", "--fail-below", "90%"), "--fail-below: nothing that was measured is given to judge; add --against FILE"),
            (("--against", good, "--html", good), f"--html: {good} is --against too; give each a file of its own"),
        ):
            with self.subTest(str(words)[:90]):
                base = NCCL if "--cluster" not in words else NCCL[:2]
                self.refused(run(*base, *words), problem)
        self.refused(run("time", "all", *NCCL[2:], "--against", good), "--against: every algorithm is asked for; name the one that was measured")
        self.assertEqual(json.loads(self.done(run(*NCCL, "--against", str(two), "--dtype", "fp16", "--json")))["type"], "fp16")


if __name__ == "__main__":
    unittest.main()
