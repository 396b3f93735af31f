"""--csv and --markdown, end to end: the numbers of --json, and the cells of the table for people."""

import csv
import io
import json
import re
import unittest

from paceline import EXAMPLES, CommandTest, run

JOB = ("--model", "alexnet", "--cluster", "h200-ndr")
FEW = ("--strategy", "ring,fused-ring,no-overlap", "--wire", "fp16,fp32")
# Words of a command; where --json has the list of records, and the keys that stand before them.
RECORDS = {
    "predict": (("predict", *JOB, "--ranks", "16", *FEW), ("strategies",), ("model", "cluster", "ranks", "batch_per_rank", "precision")),
    "several": (("predict", "--model", "alexnet,vgg16", *JOB[2:], "--ranks", "16", *FEW), ("predictions", "strategies"), ("model", "cluster", "ranks", "batch_per_rank", "precision")),
    "scale": (("scale", *JOB, "--ranks", "8,16", *FEW), ("points", "strategies"), ("model", "cluster", "ranks", "batch_per_rank", "precision")),
    "tune": (("tune", *JOB, "--ranks", "16", "--engine", "step", "--strategy", "fused-ring"), ("buckets",), ("model", "cluster", "ranks")),
    "cost": (("cost", *JOB, "--ranks", "16", *FEW, "--epochs", "90", "--dataset", "imagenet"), ("strategies",), ("model", "cluster", "ranks")),
    "reproduce": (("reproduce", "goyal"), ("rows",), ("name",)),
    "show network": (("show", "network", "alexnet"), ("layers",), ()),
    "show cluster": (("show", "cluster", "jizhi-p40"), ("figures",), ("name",)),
    "show plan": (("show", "plan", *JOB, "--ranks", "16", "--strategy", "ring,fused-ring"), ("plans", "buckets"), ("model", "cluster", "ranks", "strategy", "wire_type", "iteration_s")),
    "show recipes": (("show", "recipes"), ("recipes",), ()),
    "show nccl": (("show", "nccl", "--cluster", "h200-ndr", "--ranks", "16", "--sizes", "1KiB,1GiB"), ("sizes", "times"), ("cluster", "ranks", "bytes")),
    "show nccl of an all-gather": (("show", "nccl", "--cluster", "gb10-pair", "--ranks", "2", "--sizes", "1KiB,1GiB", "--collective", "all-gather"),
                                   ("sizes", "times"), ("cluster", "ranks", "bytes")),
    "doctor": (("doctor",), ("parts",), ()),
    "agree": (("agree", "--ranks", "4", "--sizes", "64KiB", "--schedule", "ring,binary-blocks", "--topology", "flat"), ("cells",), ()),
}
TABLES = {
    **{name: words for name, (words, *_) in RECORDS.items() if name != "several"},
    "show catalog": ("show", "catalog"),
    "time": ("time", "ring", "--cluster", "h200-ndr", "--ranks", "16", "--size", "1KiB,1GiB"),
    "time all": ("time", "all", "--cluster", "h200-ndr", "--ranks", "16", "--size", "1KiB,1GiB"),
    "plan-capacity": ("plan-capacity", *JOB, "--nodes", "1,2", "--iterations", "100", *FEW[:2], "--node-price", "9 USD/h"),
}
# What has no table, or another list of forms, and which it has.
OTHERWISE = {
    "verify": ["--json"],           # one proof
    "train": ["--json"],            # a report of one run, with a line of --metrics for each iteration
    "calibrate": ["--json"],        # a profile
    "calibrate import": ["--json"],
    "sweep": ["--json"],            # CSV, where it is not asked for JSON lines
    "show profile": ["--json"],     # which is JSON in any case
}


def flat(value, prefix=""):
    cells = {}
    for key, of in value.items():
        if isinstance(of, dict):
            cells.update(flat(of, f"{prefix}{key}."))
        elif not isinstance(of, list):
            cells[prefix + key] = of
    return cells


def records(at, path, keys):
    if not path:
        return [flat(at)]
    before = {key: at[key] for key in keys if key in at}
    return [{**before, **record} for element in at[path[0]] for record in records(element, path[1:], keys)]


class Formats(CommandTest):
    def test_csv_has_the_numbers_of_json(self):
        for name, (words, path, keys) in RECORDS.items():
            with self.subTest(name):
                text = run(*words, "--csv")
                self.assertEqual(text.returncode, 0, text.stderr)
                wanted = records(json.loads(run(*words, "--json").stdout), path, keys)
                rows = list(csv.DictReader(io.StringIO(text.stdout), strict=True))
                self.assertEqual(len(rows), len(wanted))
                self.assertGreater(len(rows), 0)
                titles = list(dict.fromkeys(key for record in wanted for key in record))
                self.assertEqual(text.stdout.split("\n")[0].split(","), titles)
                for row, record in zip(rows, wanted):
                    for title in titles:
                        value = record.get(title)
                        if isinstance(value, bool):
                            self.assertEqual(row[title], str(value).lower())
                        elif isinstance(value, (int, float)):
                            self.assertEqual(float(row[title]), value)
                        else:
                            self.assertEqual(row[title], value or "")

    def test_markdown_has_the_cells_of_the_table(self):
        for name, words in TABLES.items():
            with self.subTest(name):
                text = run(*words, "--markdown")
                self.assertEqual(text.returncode, 0, text.stderr)
                wide = run(*words, *(("--wide",) if name == "tune" else ()), columns=1000).stdout
                for block in text.stdout.split("\n\n"):
                    lines = block.splitlines()
                    self.assertGreater(len(lines), 2)
                    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
                    self.assertEqual({len(row) for row in cells}, {len(cells[0])})
                    self.assertTrue(all(re.fullmatch("---:?", cell) for cell in cells[1]))
                    for row in cells[2:]:
                        for cell in row:
                            self.assertIn(cell, wide)

    def test_every_table_has_all_forms(self):
        """A command that prints a document of JSON has it as CSV and Markdown, too, where the document is a list."""
        commands = [line.split()[0] for line in run("--help").stdout.split("Commands:")[1].splitlines() if re.match(r"  \S", line)]
        self.assertIn("predict", commands)
        shows = [line.split()[0] for line in run("show", "--help").stdout.split("Commands:")[1].splitlines() if re.match(r"  \S", line)]
        self.assertIn("network", shows)
        for words in [[name] for name in commands] + [["show", name] for name in shows]:
            help_text = run(*words, "--help-all").stdout
            forms = [form for form in ("--json", "--csv", "--markdown") if re.search(rf"^\s+{form}\b", help_text, re.M)]
            with self.subTest(words):
                if " ".join(words) in OTHERWISE:
                    self.assertEqual(forms, OTHERWISE[" ".join(words)])
                elif forms:
                    self.assertEqual(forms, ["--json", "--csv", "--markdown"])

    def test_a_measured_table_has_its_rows_in_every_form(self):
        words = ("replay", "--model", str(EXAMPLES / "tiny-net.yaml"), "--cluster", str(EXAMPLES / "two-cores.yaml"), "--ranks", "2", "--strategy", "ring,fused-ring", "--iterations", "1", "--scale-gradients", "0.01")
        rows = list(csv.DictReader(io.StringIO(self.done(run(*words, "--csv")))))
        self.assertEqual([row["name"] for row in rows], ["ring", "fused-ring"])
        self.assertGreater(float(rows[0]["measured.iteration_s"]), 0)
        self.assertEqual(len(self.done(run(*words, "--markdown")).splitlines()), 4)

    def test_top_has_the_fastest_first(self):
        job = (*JOB, "--ranks", "16")
        document = json.loads(self.done(run("predict", *job, "--json")))
        rows, best = document["strategies"], document["best"]["name"]
        others = sorted((row for row in rows if row["name"] != best), key=lambda row: row["iteration_s"])
        wanted = [best, *(row["name"] for row in others[:3])]
        names = lambda text: [re.match(r"[* ] (\S+)", line)[1] for line in text.split("\n\n")[1].splitlines()[1:]]
        text = self.done(run("predict", *job, "--top", "4"))
        self.assertEqual(names(text), wanted)
        self.assertIn(f"not shown: {len(rows) - 4} strategies that take longer", text)
        self.assertEqual(names(self.done(run("predict", *job, "--top", "1000"))), [row["name"] for row in rows])
        self.assertEqual(len(json.loads(self.done(run("predict", *job, "--top", "4", "--json")))["strategies"]), len(rows))
        markdown = self.done(run("predict", *job, "--top", "4", "--markdown")).splitlines()
        self.assertEqual([re.match(r"\| (?:\* )?(\S+)", line)[1] for line in markdown[2:]], wanted)
        curve = self.done(run("scale", *JOB, "--ranks", "8,16", "--top", "4", "--markdown")).splitlines()
        self.assertEqual([title.split()[0] for title in curve[0].strip("| ").split(" | ")[1:]], wanted)
        tuned = self.done(run("tune", *job, "--engine", "step", "--strategy", "ring,hybrid,fused-ring,no-overlap", "--top", "2"))
        self.assertEqual([line.split()[0] for line in tuned.split("\nstrategy")[1].splitlines()[1:3]], ["fused-ring", "hybrid"])
        for words in (("predict", *job), ("time", "all", "--cluster", "h200-ndr", "--ranks", "16", "--size", "1KiB"), TABLES["plan-capacity"]):
            self.top_is_refused(words)
        self.refused(run(*TABLES["time"], "--top", "2"), "--top: one algorithm is timed; time all, or leave it out")

    def top_is_refused(self, words):
        for wrong in ("0", "-1", "many", "1.5"):
            result = run(*words, "--top", wrong)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertRegex(result.stderr, r"^paceline: --top: .*whole number.*\n$")

    def test_top_of_all_all_reduces_is_of_each_size(self):
        words = TABLES["time all"]
        document = json.loads(self.done(run(*words, "--json")))
        asked = {column["name"] for column in document["columns"] if column["as"] == "asked"}
        text = self.done(run(*words, "--top", "3", "--wide"))
        lines = text.split("\n\n")[1].splitlines()
        self.assertEqual(re.split("  +", lines[0].strip()), ["size", "1. us", "algorithm", "2. us", "algorithm", "3. us", "algorithm", "nccl us"])
        self.assertIn(f"not shown: {len(asked) - 3} algorithms that take longer", text)
        for line, size in zip(lines[1:], document["sizes"]):
            fastest = sorted((at for at in size["times"] if at["name"] in asked), key=lambda at: at["time_s"])[:3]
            self.assertEqual(re.split("  +", line.strip())[2:8:2], [at["all_reduce"] for at in fastest])
            self.assertEqual(fastest[0]["name"], size["best"])
        markdown = self.done(run(*words, "--top", "3", "--markdown")).splitlines()
        self.assertEqual([[cell.strip() for cell in line.strip("|").split("|")] for line in (markdown[0], *markdown[2:])], [re.split("  +", line.strip()) for line in lines])
        many = self.done(run(*words, "--top", "1000", "--wide"))
        self.assertNotIn("not shown", many)
        self.assertIn(f"{len(asked)}. us", many)
        self.assertEqual(self.done(run(*words, "--top", "1", "--json")), self.done(run(*words, "--json")))

    def test_top_of_candidates_has_the_answer_first(self):
        job = ("plan-capacity", *JOB, "--nodes", "1,2,4,8", "--epochs", "90", "--dataset", "imagenet", "--strategy", "fused-ring")
        def ranks(*words):
            lines = self.done(run(*job, *words, "--markdown")).splitlines()[2:]
            return [int(line.split("|")[3]) for line in lines]
        candidates = {row["ranks"]: row for row in json.loads(self.done(run(*job, "--node-price", "9 USD/h", "--json")))["candidates"]}
        by_time = sorted(candidates, key=lambda at: candidates[at]["time_s"])
        by_cost = sorted(candidates, key=lambda at: candidates[at]["cost_usd"])
        self.assertEqual(ranks("--top", "2"), by_time[:2])
        self.assertEqual(ranks("--node-price", "9 USD/h", "--within", "90 days", "--top", "3"), by_cost[:3])
        self.assertEqual(ranks("--top", "1000"), ranks())
        text = self.done(run(*job, "--top", "1"))
        self.assertIn(f"not shown: {len(candidates) - 1} candidates (without --top all are shown)\n", text)

    def test_one_form_at_a_time(self):
        for words in [words for words, _, _ in RECORDS.values()] + list(TABLES.values()):
            result = run(*words, "--csv", "--json")
            self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", "paceline: --csv: --json is given, too; choose one\n"))
        for form in ("--csv", "--json"):
            result = run(*TABLES["cost"], "--markdown", form)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", f"paceline: --markdown: {form} is given, too; choose one\n"))


if __name__ == "__main__":
    unittest.main()
