"""--json-out, --csv-out and --markdown-out, end to end: files with what --json, --csv and --markdown print,
beside what is printed, each whole or not at all.
"""

import os
import pathlib
import re
import subprocess
import unittest

from output_formats_test import TABLES
from paceline import HANG_S, PACELINE, CommandTest, run

FORMS = ("json", "csv", "markdown")
JOB = ("predict", "--model", "alexnet", "--cluster", "h200-ndr", "--ranks", "16", "--strategy", "ring")
# Their documents hold how long they took, or files of their own.
CHANGING = {"agree", "doctor"}


class Files(CommandTest):
    def files_of(self, name):
        return [self.folder / f"{name}.{form}" for form in FORMS]

    def options_of(self, files):
        return [word for form, file in zip(FORMS, files) for word in (f"--{form}-out", str(file))]

    def test_one_run_writes_what_three_others_print(self):
        for name, words in TABLES.items():
            with self.subTest(name):
                files = self.files_of(name.replace(" ", "-"))
                both = run(*words, *self.options_of(files))
                self.assertEqual(both.returncode, 0, both.stderr)
                notices = "".join(f"{what} written to {file}\n" for what, file in zip(("JSON", "CSV", "Markdown"), files))
                self.assertEqual(both.stderr, run(*words).stderr + notices)
                if name in CHANGING:
                    continue
                self.assertEqual(both.stdout, run(*words).stdout)
                for form, file in zip(FORMS, files):
                    self.assertEqual(file.read_text(), run(*words, f"--{form}").stdout)

    def test_every_command_with_the_forms_has_the_files(self):
        for words in TABLES.values():
            named = 2 if words[0] == "show" else 1
            help_text = run(*words[:named], "--help-all").stdout
            self.assertEqual(re.findall(r"^  --([a-z]+)-out FILE", help_text, re.M), [*(["plan"] if words[0] in ("predict", "tune") else ["profile"] if words[0] == "reproduce" else []), *FORMS])

    def test_a_form_is_printed_and_another_written(self):
        file = self.folder / "table.md"
        printed = run(*JOB, "--json", "--markdown-out", str(file))
        self.assertEqual((printed.returncode, printed.stdout), (0, run(*JOB, "--json").stdout))
        self.assertEqual(file.read_text(), run(*JOB, "--markdown").stdout)

    def test_a_bad_path_is_refused_before_any_work(self):
        cluster = self.folder / "cluster.yaml"
        cluster.write_text("cluster: little\nnodes: 2\nranks_per_node: 8\ndevice: p40\nintra: pcie3-x16\nnic: roce-25g\n")
        before = cluster.read_text()
        report = str(self.folder / "report.html")
        for form in FORMS:
            option = f"--{form}-out"
            for words, problem in (((option, str(self.folder / "none" / "t")), f"{option}: there is no folder {self.folder}/none; make it first"),
                                   ((option, str(self.folder)), f"{option}: {self.folder} is a folder; give the path of a file"),
                                   ((option, ""), f"{option} is empty; give it a value, or leave it out"),
                                   ((option, report, "--html", report), f"{report} is {option} too; give each a file of its own"),
                                   ((option, str(cluster), "--cluster", str(cluster)), f"{option}: {cluster} is --cluster too; give each a file of its own"),
                                   ((option, report, "--json-out" if form != "json" else "--csv-out", report), f"{report} is --")):
                job = [word for word in JOB if "--cluster" not in words or word not in ("--cluster", "h200-ndr")]
                self.refused(run(*job, *words), problem)
        self.assertEqual((cluster.read_text(), os.listdir(self.folder)), (before, ["cluster.yaml"]))
        for words in (("show", "cluster", str(cluster)), ("show", "nccl", "--cluster", str(cluster), "--ranks", "4"), ("time", "ring", "--cluster", str(cluster), "--ranks", "4"),
                      ("cost", "--model", "alexnet", "--cluster", str(cluster), "--ranks", "4", "--epochs", "1", "--dataset", "imagenet"),
                      ("plan-capacity", "--model", "alexnet", "--cluster", f"h200-ndr,{cluster}", "--epochs", "1", "--dataset", "imagenet"),
                      ("show", "plan", "--model", "alexnet", "--cluster", str(cluster), "--ranks", "4"),
                      ("replay", "--model", "alexnet", "--cluster", str(cluster), "--ranks", "2")):
            self.refused(run(*words, "--csv-out", str(cluster)), f"--csv-out: {cluster} is ")
            self.assertEqual(cluster.read_text(), before)

    def test_what_has_no_such_form_is_refused(self):
        file = str(self.folder / "t")
        for words in (("reproduce", "goyal", "--commands"), ("show", "recipes", "fashion-mnist"), ("agree", "--topology", "help")):
            self.assertEqual(run(*words).returncode, 0)
            for option in (("--json",), ("--csv",), ("--markdown-out", file)):
                self.refused(run(*words, *option), f"{option[0]}: ")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_write_that_fails_leaves_the_old_file(self):
        for form in FORMS:
            file = self.folder / f"old.{form}"
            self.done(run(*TABLES["show network"], f"--{form}-out", str(file)))
            old = file.read_text()
            words = " ".join(f"'{word}'" for word in (PACELINE, *TABLES["show network"], f"--{form}-out", str(file)))
            # No file of this process may hold a byte.
            result = subprocess.run(["bash", "-c", f"ulimit -f 0; {words} | cat"], capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual(result.stdout, "")
            self.assertRegex(result.stderr, rf"^paceline: cannot write {re.escape(str(file))}: [^\n]*\n$")
            self.assertEqual(file.read_text(), old)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(f"old.{form}" for form in FORMS))

    def test_files_are_written_where_nobody_reads_what_is_printed(self):
        file = self.folder / "t.json"
        for redirection in (">/dev/full", ">&-"):
            file.unlink(missing_ok=True)
            words = " ".join(f"'{word}'" for word in (PACELINE, *JOB, "--json-out", str(file)))
            self.assertEqual(subprocess.run(["bash", "-c", words + redirection], capture_output=True, timeout=HANG_S).returncode, 1)
            self.assertEqual(file.read_text(), run(*JOB, "--json").stdout)

    def test_an_answer_that_fails_is_written_too(self):
        file = self.folder / "t.json"
        words = (*TABLES["plan-capacity"], "--within", "1ms")
        result = run(*words, "--json-out", str(file))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(file.read_text(), run(*words, "--json").stdout)


if __name__ == "__main__":
    unittest.main()
