"""Holds the folders of published results in experiments/ to their rules.

A folder is a source if it has expected.csv or all_reduce.csv. What is held: rows and their words,
what may calibrate, and that every file that a row names exists.
Run: source_folders_test.py [FOLDER...].
"""

import csv
import functools
import os
import pathlib
import re
import sys
import unittest
from collections import Counter, defaultdict

EXPERIMENTS = pathlib.Path(os.environ.get(
    "PACELINE_SOURCE", pathlib.Path(__file__).resolve().parents[2])) / "experiments"

COLUMNS = ("id,where,what,series,role,cluster,model,batch,sequence,precision,ranks,strategy,"
           "options,quantity,against,published,unit,note").split(",")
ALL_REDUCE_COLUMNS = ("id,where,series,role,cluster,ranks,library,algorithm,bytes,published_us,"
                      "note").split(",")
# What a folder's own code reads; it is held by that code's test.
OTHER_COLUMNS = "id,source,what,role,unit,published".split(",")
ROLES = {"calibrates", "second-point", "predicted", "reference", "left-out"}
UNITS = {
    "throughput": {"images/s", "sequences/s", "tokens/s", "tokens/s/GPU"},
    "iteration": {"ms", "s"},
    "efficiency": {"%"},
    "ratio": {"x"},
    "minutes": {"s", "min", "h"},
    "flops-per-parameter": {"FLOP"},
    "idle-ranks": {"ranks"},
    "memory": {"GiB"},
}
# How series are called that nothing calibrates.
DATASHEET = "datasheet-"
# What an option takes; None for a word of its own.
OPTIONS = {
    "--theta": r"\d+(KiB|MiB|GiB)", "--eta": r"\d+(KiB|MiB|GiB)", "--wire": "fp32|fp16|bf16",
    "--overlap": "wait-free|none|double-buffered|priority", "--streams": r"\d+",
    "--accumulate": r"\d+", "--servers": r"\d+", "--server-placement": "balanced|round-robin",
    "--cycle": r"[\d.]+ms", "--group": r"\d+", "--rings": r"\d+", "--segments": r"\d+",
    "--horovod": r"\d+\.\d+(\.\d+)?", "--partition": r"\d+(MB|MiB)", "--credit": r"\d+(MB|MiB)",
    "--server-machines": r"\d+", "--server-transport": "grpc|tcp|rdma",
    "--tensor": r"\d+", "--context": r"\d+", "--pipeline": r"\d+", "--chunks": r"\d+",
    "--pipeline-schedule": "1f1b|gpipe", "--no-sequence-parallel": None, "--tensor-overlap": None, "--expert": r"\d+", "--tokens-once": None,
    "--factors-every": r"\d+", "--recompute": "none|selective|per-op|full(:\\d+)?", "--reshard-after-forward": "yes|no", "--stack": "eager|compiled|graphs", "--offload": "optimizer", "--attention-kernel": "flash-[123]",
    "--epochs": r"[\d.]+", "--dataset": r"\d+", "--backup": r"\d+", "--spread": r"[a-z-]+:[\d.]+",
}


def lines_of(path):
    """Returns the rows of a file of ours as (line, row), without its comments."""
    with open(path, encoding="utf-8", newline="") as file:
        text = [line for line in file if not line.startswith("#")]
    return list(csv.reader(text))


def is_positive(text):
    return bool(re.fullmatch(r"\d+(\.\d+)?", text)) and float(text) > 0


def sources():
    """Returns the folders that have this format."""
    chosen = [EXPERIMENTS / name for name in FOLDERS] or sorted(EXPERIMENTS.iterdir())
    return [folder for folder in chosen
            if (folder / "all_reduce.csv").is_file()
            or ((folder / "expected.csv").is_file()
                and lines_of(folder / "expected.csv")[0] != OTHER_COLUMNS)]


@functools.lru_cache(maxsize=None)
def rows_of(folder, name, columns):
    """Returns the rows of a file as dictionaries; none where the folder lacks the file."""
    path = folder / name
    if not path.is_file():
        return []
    lines = lines_of(path)
    assert tuple(lines[0]) == columns, f"{path}: the header is not that of the format"
    for number, line in enumerate(lines[1:], 2):
        assert len(line) == len(columns), f"{path}: row {number} has {len(line)} columns"
    return [dict(zip(columns, line)) for line in lines[1:]]


def training(folder):
    return rows_of(folder, "expected.csv", tuple(COLUMNS))


def all_reduces(folder):
    return rows_of(folder, "all_reduce.csv", tuple(ALL_REDUCE_COLUMNS))


def names_in(path, pattern):
    return set(re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE))


def catalogued_clusters():
    catalog = EXPERIMENTS.parent / "models/cluster/catalog/clusters.yaml"
    return names_in(catalog, r"^  ([a-z0-9-]+):")


def zoo():
    """Returns the networks of the zoo; the three that are named here need no entry in zoo.cc."""
    there = names_in(EXPERIMENTS.parent / "models/network/zoo.cc", r'ZooEntry\{"([^"]+)"')
    return there | {"bert-base", "bert-large", "googlenet"}


def for_rows(*reads):
    """Makes a test of (self, folder, row) one of all rows of all sources, each a sub-test."""
    def decorate(test):
        @functools.wraps(test)
        def run(self):
            for read in reads:
                for folder in sources():
                    for row in read(folder):
                        with self.subTest(source=folder.name, row=row["id"]):
                            test(self, folder, row)
        return run
    return decorate


class SourceFolders(unittest.TestCase):
    def test_there_are_sources(self):
        self.assertTrue(sources())

    def test_every_source_is_described(self):
        for folder in sources():
            with self.subTest(source=folder.name):
                self.assertTrue((folder / "README.md").is_file())

    def test_ids_are_there_once(self):
        for folder in sources():
            for read in (training, all_reduces):
                ids = [row["id"] for row in read(folder)]
                self.assertEqual([i for i, n in Counter(ids).items() if n > 1], [], folder.name)
                self.assertNotIn("", ids)

    @for_rows(training)
    def test_words_are_known(self, _, row):
        self.assertIn(row["role"], ROLES)
        self.assertIn(row["quantity"], UNITS)
        self.assertIn(row["precision"], {"fp32", "mixed", "fp8"})
        self.assertTrue(row["what"] and row["series"])
        if row["role"] == "reference":
            self.assertEqual((row["published"], row["unit"]), ("", ""))
        else:
            self.assertIn(row["unit"], UNITS[row["quantity"]])
            self.assertTrue(is_positive(row["published"]), row["published"])

    @for_rows(training)
    def test_left_out_rows_say_why(self, _, row):
        if row["role"] == "left-out":
            self.assertTrue(row["note"].endswith("."), "a sentence in `note`")

    @for_rows(training)
    def test_rows_that_are_timed_say_what_of(self, _, row):
        if row["role"] == "left-out":
            return
        self.assertRegex(row["ranks"], r"^[1-9]\d*$")
        self.assertRegex(row["batch"], r"^[1-9]\d*$")
        self.assertRegex(row["sequence"], r"^([1-9]\d*)?$")
        self.assertEqual(bool(row["sequence"]), row["model"].startswith(("bert", "deepseek", "gpt", "llama", "mpt", "nemotron", "qwen")))
        self.assertRegex(row["strategy"], r"^[a-z0-9.-]+$")

    @for_rows(training)
    def test_options_are_known(self, _, row):
        words = row["options"].split()
        rest = iter(words)
        for option in rest:
            self.assertIn(option, OPTIONS)
            if OPTIONS[option] is not None:  # else it is a flag
                self.assertRegex(next(rest, ""), f"^({OPTIONS[option]})$")
        if row["quantity"] == "minutes" and row["role"] != "left-out":
            self.assertIn("--epochs", words)
            self.assertIn("--dataset", words)

    @for_rows(training, all_reduces)
    def test_named_files_exist(self, folder, row):
        catalogue, networks = catalogued_clusters(), zoo()
        if row["role"] == "left-out" and row["cluster"] == "":
            return
        if not (folder / "clusters" / f"{row['cluster']}.yaml").is_file():
            self.assertIn(row["cluster"], catalogue)
        if "model" in row and not any((folder / "networks" / f"{row['model']}{suffix}").is_file()
                                      for suffix in (".yaml", ".json")):
            self.assertIn(row["model"], networks)

    def test_files_are_named_and_hold_their_name(self):
        for folder in sources():
            used = {row["cluster"] for row in training(folder) + all_reduces(folder)}
            used |= {row["model"] for row in training(folder)}
            for path in [*folder.glob("clusters/*"), *folder.glob("networks/*")]:
                with self.subTest(file=str(path.relative_to(EXPERIMENTS))):
                    self.assertIn(path.stem, used)
                    if path.suffix == ".json":  # a config.json of Hugging Face has no name
                        self.assertEqual(path.parent.name, "networks")
                        continue
                    self.assertEqual(path.suffix, ".yaml")
                    self.assertIn(path.stem, names_in(path, r"^(?:cluster|network): (\S+)$"))

    @for_rows(training, all_reduces)
    def test_a_job_fits_its_cluster(self, folder, row):
        path = folder / "clusters" / f"{row['cluster']}.yaml"
        if row["role"] == "left-out" or not path.is_file():
            return
        places = 1
        for key in ("nodes", "ranks_per_node"):
            places *= int(*names_in(path, rf"^{key}: (\d+)$"))
        self.assertLessEqual(int(row["ranks"]), places)

    @for_rows(training)
    def test_references_are_of_the_folder(self, folder, row):
        if row["quantity"] in ("efficiency", "ratio") and row["role"] == "predicted":
            against = [r for r in training(folder) if r["id"] == row["against"]]
            self.assertEqual(len(against), 1, row["against"])
            self.assertIn(against[0]["role"], ROLES - {"left-out"})
            self.assertNotEqual(row["against"], row["id"])
        else:
            self.assertEqual(row["against"], "")

    def test_throughputs_have_what_calibrates_them(self):
        for folder in sources():
            series = defaultdict(list)
            for row in training(folder):
                series[row["series"]].append(row)
            for name, rows in series.items():
                with self.subTest(source=folder.name, series=name):
                    roles = {row["role"] for row in rows}
                    timed = [row for row in rows if row["role"] == "predicted"
                             and row["quantity"] in ("throughput", "iteration")]
                    profiled = any("profile" in names_in(path, r"^(profile):") for path in (
                        folder / "clusters" / f"{row['cluster']}.yaml" for row in timed)
                        if path.is_file())
                    self.assertTrue(not timed or "calibrates" in roles or profiled
                                    or name.startswith(DATASHEET))

    def test_a_series_is_of_one_precision_and_calibrates_one_network(self):
        for folder in sources():
            series = defaultdict(list)
            for row in training(folder):
                if row["role"] != "left-out":
                    series[row["series"]].append(row)
            for name, rows in series.items():
                with self.subTest(source=folder.name, series=name):
                    self.assertEqual(len({row["precision"] for row in rows}), 1)
                    if name.startswith(DATASHEET):
                        continue
                    networks = {(row["model"], row["sequence"]) for row in rows}
                    spent = {(row["model"], row["sequence"]) for row in rows
                             if row["role"] in ("calibrates", "second-point")}
                    # Other networks are predicted from the one that calibrates.
                    self.assertEqual(len(spent or networks), 1)

    def test_only_the_smallest_scales_calibrate(self):
        for folder in sources():
            scales = defaultdict(list)
            for row in training(folder):
                if row["role"] in ("calibrates", "second-point", "predicted"):
                    scales[row["series"]].append((int(row["ranks"]), row["role"]))
            for series, points in scales.items():
                with self.subTest(source=folder.name, series=series):
                    sizes = sorted({ranks for ranks, _ in points})
                    spent = {ranks for ranks, role in points if role != "predicted"}
                    if len(sizes) > 1:
                        self.assertNotIn(sizes[-1], spent)
                    self.assertLessEqual(len(spent), 2)
                    first = {ranks for ranks, role in points if role == "calibrates"}
                    second = {ranks for ranks, role in points if role == "second-point"}
                    self.assertTrue(not second or max(first) < min(second))
                    self.assertEqual(sorted(spent), sizes[:len(spent)])

    def test_no_figure_is_both_spent_and_predicted(self):
        for folder in sources():
            of = defaultdict(set)
            for row in training(folder):
                if row["role"] in ("calibrates", "second-point", "predicted"):
                    key = tuple(row[c] for c in COLUMNS if c not in ("id", "role", "where", "what",
                                                                     "note"))
                    of[key].add(row["role"])
            for key, roles in of.items():
                self.assertEqual(len(roles), 1, f"{folder.name}: {key}")

    @for_rows(all_reduces)
    def test_all_reduces_are_complete(self, _, row):
        self.assertIn(row["role"], ROLES - {"reference", "second-point"})
        self.assertRegex(row["ranks"], r"^[1-9]\d*$")
        self.assertRegex(row["bytes"], r"^[1-9]\d*$")
        self.assertTrue(row["library"] and row["series"])
        self.assertRegex(row["algorithm"], r"^[a-z0-9-]+( [a-z-]+)?$")
        self.assertTrue(is_positive(row["published_us"]))
        if row["role"] == "left-out":
            self.assertTrue(row["note"].endswith("."))

    def test_only_the_fewest_ranks_of_all_reduces_calibrate(self):
        """For each algorithm on a cluster: two at most, of its fewest ranks there."""
        for folder in sources():
            jobs = defaultdict(list)
            for row in all_reduces(folder):
                if row["role"] != "left-out":
                    jobs[row["cluster"], row["algorithm"]].append(row)
            for job, rows in jobs.items():
                spent = [row for row in rows if row["role"] == "calibrates"]
                fewest = min(int(row["ranks"]) for row in rows)
                with self.subTest(folder=folder.name, job=job):
                    self.assertLessEqual(len(spent), 2)
                    self.assertTrue(all(int(row["ranks"]) == fewest for row in spent))


FOLDERS = []

if __name__ == "__main__":
    FOLDERS = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    unittest.main(argv=[sys.argv[0]] + [a for a in sys.argv[1:] if a.startswith("-")])
