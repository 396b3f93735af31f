"""--csv and --markdown, end to end: the numbers of --json, and the cells of the table for people."""

import csv
import io
import json
import re
import unittest

from paceline import CommandTest, run

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
}
TABLES = {
    **{name: RECORDS[name][0] for name in ("predict", "scale", "tune", "cost")},
    "time": ("time", "ring", "--cluster", "h200-ndr", "--ranks", "16", "--size", "1KiB,1GiB"),
    "time all": ("time", "all", "--cluster", "h200-ndr", "--ranks", "16", "--size", "1KiB,1GiB"),
    "plan-capacity": ("plan-capacity", *JOB, "--nodes", "1,2", "--iterations", "100", *FEW[:2], "--node-price", "9 USD/h"),
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
                wide = run(*words, *(() if name == "scale" else ("--wide",))).stdout
                for block in text.stdout.split("\n\n"):
                    lines = block.splitlines()
                    self.assertGreater(len(lines), 2)
                    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
                    self.assertEqual({len(row) for row in cells}, {len(cells[0])})
                    self.assertTrue(all(re.fullmatch("---:?", cell) for cell in cells[1]))
                    for row in cells[2:]:
                        for cell in row:
                            self.assertIn(cell, wide)

    def test_one_form_at_a_time(self):
        for words in [words for words, _, _ in RECORDS.values()] + list(TABLES.values()):
            result = run(*words, "--csv", "--json")
            self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", "paceline: --csv: --json is given, too; choose one\n"))
        for form in ("--csv", "--json"):
            result = run(*TABLES["cost"], "--markdown", form)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", f"paceline: --markdown: {form} is given, too; choose one\n"))
        result = run("reproduce", "all", "--mechanisms", "--csv")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1))


if __name__ == "__main__":
    unittest.main()
