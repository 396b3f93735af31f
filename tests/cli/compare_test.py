"""paceline compare, end to end: a real run on threads beside the prediction of its plan; what it
prints, what it writes, and what it refuses.
"""

import json
import pathlib
import re
import shutil
import tempfile
import unittest

from paceline import SOURCE, run as paceline

LAB = str(SOURCE / "docs/examples/lab.yaml")


def train(path, *words):
    result = paceline("train", "--data", "synthetic", "--model", "cnn-small", "--batch", "32", "--ranks", "2", "--threads", "1",
                      "--epochs", "1", "--theta", "100 KB", "--wire", "fp16", "--timeline", path, *words)
    assert result.returncode == 0, result.stderr


def predict(path, **changes):
    options = {"model": "cnn-small", "cluster": LAB, "ranks": "2", "batch": "32", "precision": "fp32", "strategy": "fused-ring",
               "wire": "fp16", "theta": "100 KB", "timeline": path}
    options.update(changes)
    result = paceline("predict", *(word for name, value in options.items() if value is not None for word in (f"--{name}", value)))
    assert result.returncode == 0, result.stderr


def document_of(path):
    return json.loads(pathlib.Path(path).read_text())


def check_trace(test, document):
    """The Trace Event Format: complete events, names of processes and threads, and on each thread
    tasks that follow one another or hold one another in the whole nanoseconds that Perfetto reads."""
    named, threads = set(), {}
    for event in document["traceEvents"]:
        test.assertIsInstance(event["name"], str)
        test.assertTrue(isinstance(event["pid"], int) and isinstance(event["tid"], int), event)
        if event["ph"] == "M":
            test.assertIn(event["name"], ("process_name", "thread_name", "thread_sort_index"))
            named.add((event["pid"], event["tid"], event["name"]))
            continue
        test.assertEqual(event["ph"], "X")
        test.assertTrue(event["cat"] and isinstance(event["args"], dict), event)
        test.assertGreaterEqual(min(event["ts"], event["dur"]), 0)
        start_ns, length_ns = round(event["ts"] * 1000), round(event["dur"] * 1000)
        threads.setdefault((event["pid"], event["tid"]), []).append((start_ns, start_ns + length_ns))
    for (process, thread), tasks in threads.items():
        test.assertIn((process, 0, "process_name"), named)
        test.assertIn((process, thread, "thread_name"), named)
        open_ends = []
        for start, end in sorted(tasks, key=lambda task: (task[0], -task[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            if open_ends:
                test.assertLessEqual(end, open_ends[-1], (process, thread, start))
            open_ends.append(end)


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="paceline-compare-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.run_file, cls.prediction = str(cls.folder / "run.json"), str(cls.folder / "prediction.json")
        train(cls.run_file)
        predict(cls.prediction)

    def compare(self, *words):
        return paceline("compare", *(words or (self.run_file, self.prediction)))

    def rejected(self, result, *fragments, code=2):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("paceline: "), result.stderr)
        for fragment in fragments:
            self.assertIn(fragment, result.stderr)

    def document(self):
        result = self.compare(self.run_file, self.prediction, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def test_json_has_every_task_of_both(self):
        document = self.document()
        self.assertEqual(document["schema"], "paceline.comparison/1")
        self.assertEqual((document["run"]["provenance"], document["prediction"]["provenance"]), ("measured", "predicted"))
        self.assertEqual((document["model"], document["ranks"], document["run"]["iterations"]), ("cnn-small", 2, 10))

        trace = [event for event in document_of(self.run_file)["traceEvents"] if event["ph"] == "X"]
        layers = {event["args"]["layer"] for event in trace if event["cat"] == "forward"}
        self.assertEqual({layer["layer"] for layer in document["layers"]}, layers)
        buckets = {event["args"]["bucket"]: event["args"]["bytes"] for event in trace if event["cat"] == "all-reduce"}
        self.assertGreater(len(buckets), 1)
        self.assertEqual({bucket["bucket"]: bucket["bytes"] for bucket in document["buckets"]}, buckets)
        for bucket in document["buckets"]:
            for task in ("ready", "wait", "cast", "transfer", "unpack", "exposed"):
                for key in ("measured_s", "predicted_s", "difference_s"):
                    self.assertIsInstance(bucket[task][key], float, (bucket, task))
            self.assertIsNone(bucket["pack"]["measured_s"])
            self.assertGreater(bucket["transfer"]["measured_s"], 0)
            self.assertGreaterEqual(bucket["wait"]["measured_s"], -1e-9)
        self.assertIn(("predicted", "decode"), {(only["provenance"], only["task"]) for only in document["one_sided"]})

    def test_times_are_the_medians_of_the_files(self):
        document = self.document()
        for path, side in ((self.run_file, "measured_s"), (self.prediction, "predicted_s")):
            durations = {}
            for event in document_of(path)["traceEvents"]:
                if event["ph"] == "X" and event["cat"] == "all-reduce":
                    durations.setdefault(event["args"]["bucket"], []).append(event["dur"])
            for bucket in document["buckets"]:
                own = sorted(durations[bucket["bucket"]])
                median = (own[(len(own) - 1) // 2] + own[len(own) // 2]) / 2
                # Files hold nanoseconds n as (n + 0.2) / 1000.
                self.assertAlmostEqual(bucket["transfer"][side] * 1e6, median - 0.0002, delta=1e-6)

    def test_parts_add_up_and_come_by_size(self):
        document = self.document()
        for key in ("measured_s", "predicted_s", "difference_s"):
            self.assertAlmostEqual(sum(part[key] for part in document["parts"]), document["iteration"][key], delta=1e-12)
        sizes = [abs(part["difference_s"]) for part in document["parts"][:-1]]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        predicted = json.loads(paceline("predict", "--model", "cnn-small", "--cluster", LAB, "--ranks", "2", "--batch", "32",
                                        "--precision", "fp32", "--strategy", "fused-ring", "--wire", "fp16", "--theta", "100 KB",
                                        "--json").stdout)["strategies"][0]
        self.assertAlmostEqual(document["iteration"]["predicted_s"], predicted["iteration_s"], delta=2e-9)  # of the file
        exposed = next(part for part in document["parts"] if part["part"] == "exposed communication")
        self.assertAlmostEqual(exposed["predicted_s"], predicted["exposed_communication_s"], delta=1e-8)

    def test_the_table_says_whose_each_column_is(self):
        result = self.compare(self.run_file, self.prediction, "--wide")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertIn("measured: cnn-small on synthetic", lines[0])
        self.assertIn("predicted: cnn-small on lab", lines[1])
        self.assertRegex(result.stdout, r"\niteration: [\d.]+ m?s measured, [\d.]+ ms predicted "
                                        r"\(90 %: [\d.]+ to [\d.]+; the run is (?:inside it|slower|faster)\): [+-][\d.]+ (us|m?s) \(([+-][\d.]+ %|\d+ times)\)\n")
        self.assertRegex(result.stdout, r"measured ms +least to most +predicted ms +difference ms")
        self.assertRegex(result.stdout, r"\nonly predicted, in an iteration: .*decode")
        document = self.document()
        for bucket in document["buckets"]:
            self.assertRegex(result.stdout, rf"\n +{bucket['bucket']}  .*{re.escape(bucket['first_gradient'])}\n")
        self.assertNotIn("\n" + document["layers"][0]["layer"] + " ", result.stdout)
        layers = self.compare(self.run_file, self.prediction, "--layers").stdout
        for layer in document["layers"]:
            self.assertIn("\n" + layer["layer"] + " ", layers)

    def test_markdown_has_the_tables(self):
        parts, buckets = self.compare(self.run_file, self.prediction, "--markdown").stdout.split("\n\n")
        text = self.compare(self.run_file, self.prediction, "--wide").stdout
        for table in (parts, buckets):
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
            self.assertEqual({len(row) for row in rows}, {len(rows[0])})
            self.assertTrue(all(cell in text for row in rows[2:] for cell in row))
        self.assertIn("| iteration |", parts)
        self.assertEqual(self.compare(self.run_file, self.prediction, "--markdown", "--layers").stdout.count("\n\n"), 2)

    def test_merged_holds_both_from_one_start(self):
        merged = str(self.folder / "merged.json")
        result = self.compare(self.run_file, self.prediction, "--merged", merged)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("ui.perfetto.dev", result.stderr)
        events = document_of(merged)["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual([names[pid].split(":")[0] for pid in sorted(names)], ["measured", "predicted"])
        for pid, path in ((0, self.run_file), (1, self.prediction)):
            own = [event for event in document_of(path)["traceEvents"] if event["ph"] == "X"]
            both = [event for event in events if event["ph"] == "X" and event["pid"] == pid]
            self.assertEqual([event["name"] for event in own], [event["name"] for event in both])
            for a, b in zip(own, both):
                self.assertAlmostEqual(b["ts"] - a["ts"], both[0]["ts"] - own[0]["ts"], delta=1e-3)
                self.assertAlmostEqual(a["dur"], b["dur"], delta=1e-6)
        starts = {pid: {} for pid in names}
        for event in events:
            if event["ph"] == "X":
                self.assertGreaterEqual(event["ts"], 0)
                if event["cat"] == "forward":
                    iteration = starts[event["pid"]]
                    key = event["args"]["iteration"]
                    iteration[key] = min(iteration.get(key, event["ts"]), event["ts"])
        first = starts[1][min(starts[1])]
        self.assertTrue(any(abs(start - first) < 1e-3 for start in starts[0].values()))
        # It is no run.
        self.rejected(self.compare(merged, self.prediction), merged, "2 timelines")

    def test_merged_leaves_what_is_there(self):
        before = pathlib.Path(self.run_file).read_text()
        self.rejected(self.compare(self.run_file, self.prediction, "--merged", self.run_file), "--merged", "is RUN too")
        self.assertEqual(pathlib.Path(self.run_file).read_text(), before)
        self.rejected(self.compare(self.run_file, self.prediction, "--merged", "/nowhere/at/all.json"), "--merged", "/nowhere/at")
        self.rejected(self.compare(self.run_file, self.prediction, "--merged", "/dev/full"), "/dev/full", code=1)
        kept = self.folder / "kept.json"
        kept.write_text("what was there")
        self.rejected(self.compare(self.prediction, self.run_file, "--merged", str(kept), "--force"), "swapped")
        self.assertEqual(kept.read_text(), "what was there")

    def test_merged_is_what_trace_viewers_read(self):
        merged = str(self.folder / "viewed.json")
        self.assertEqual(self.compare(self.run_file, self.prediction, "--merged", merged).returncode, 0)
        check_trace(self, document_of(merged))

    def test_a_timeline_that_runs_backwards_is_refused(self):
        document = document_of(self.run_file)
        events = [event for event in document["traceEvents"] if event["ph"] == "X"]
        last = max(event["args"]["iteration"] for event in events)
        for event in events:
            event["args"]["iteration"] = last - event["args"]["iteration"]
        path = self.folder / "backwards.json"
        path.write_text(json.dumps(document))
        self.rejected(self.compare(str(path), self.prediction), "of the run does not start after iteration 0")
        for event in events:
            event["tid"] = 5
        path.write_text(json.dumps(document))
        self.rejected(self.compare(str(path), self.prediction), "backwards.json", "forward on the communication stream")

    def test_what_is_no_pair_is_one_line(self):
        self.rejected(self.compare(self.prediction, self.run_file), "swapped", "give the run first")
        self.rejected(self.compare(self.prediction, self.prediction), "no run")
        self.rejected(self.compare(self.run_file, self.run_file), "no prediction")
        self.rejected(self.compare(str(self.folder / "none.json"), self.prediction), "none.json", "no such file")
        self.rejected(self.compare(str(self.folder), self.prediction), "directory")
        self.rejected(self.compare(self.run_file), "PREDICTION is missing; give the --timeline of paceline predict")
        garbage = self.folder / "garbage.json"
        for text in ("", "{", "[]", "\x00\xff", '{"traceEvents": [], "otherData": {"schema": "paceline.timeline/1"}}'):
            garbage.write_text(text)
            self.rejected(self.compare(self.run_file, str(garbage)), "garbage.json")

    def test_another_job_is_one_line(self):
        other = str(self.folder / "other.json")
        for changes, fragments in (({"batch": "64"}, ("batch of 32", "--batch 32")),
                                   ({"ranks": "4"}, ("2 and 4 ranks", "--ranks 2")),
                                   ({"wire": "fp32"}, ("fp16 and fp32", "--wire fp16")),
                                   ({"theta": "1 GB"}, ("buckets", "--theta")),
                                   ({"strategy": "ring", "theta": None}, ("'fused-ring'", "'ring'")),
                                   ({"model": "resnet-small"}, ("'cnn-small'", "'resnet-small'")),
                                   ({"overlap": "none"}, ("wait-free", "--overlap wait-free"))):
            with self.subTest(changes=changes):
                predict(other, **changes)
                self.rejected(self.compare(self.run_file, other), "not of one job", *fragments)
        predict(other, strategy="halving-doubling")
        result = self.compare(self.run_file, other)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("note: bucket 0 travelled by ring, and is predicted by halving-doubling", result.stdout)

    def test_other_overlaps_compare_too(self):
        run, prediction = str(self.folder / "a.json"), str(self.folder / "b.json")
        for overlap in ("none", "double-buffered"):
            train(run, "--overlap", overlap)
            predict(prediction, overlap=overlap)
            result = self.compare(run, prediction, "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            parts = {part["part"]: part for part in json.loads(result.stdout)["parts"]}
            if overlap == "none":
                self.assertGreater(parts["exposed communication"]["measured_s"], 0)

    def test_the_example_of_the_documentation(self):
        prediction = str(self.folder / "two-cores.json")
        predict(prediction, cluster=str(SOURCE / "docs/examples/two-cores.yaml"))
        result = self.compare(self.run_file, prediction)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("predicted: cnn-small on two-cores", result.stdout)
        self.assertRegex(result.stdout, r"\nbucket  cast, ms +")


if __name__ == "__main__":
    unittest.main()
