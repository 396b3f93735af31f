"""Files that a command is to write, end to end: every option of every command that names one. What is there and is not
ours is refused before any work, and so is what cannot be written; --force, links and special files.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from paceline import HANG_S, PACELINE, SOURCE, CommandTest, paired, run

GOLDEN = SOURCE / "tests" / "golden"
JOB = ("--model", "alexnet", "--cluster", "h200-ndr", "--ranks", "16", "--strategy", "ring")
FEW = ("--dataset", "imagenet", "--epochs", "1")
FORMS = ("--json-out", "--csv-out", "--markdown-out")
SWEEP = "model: [alexnet]\ncluster: [h200-ndr]\nranks: [8]\nstrategy: [ring]\n"
TRAIN = ("train", "--model", "cnn-small", "--data", "synthetic", "--batch", "32", "--epochs", "1", "--threads", "1", "--stop-after", "8")
REPLAY = ("--model", "cnn-small", "--cluster", "h200-ndr", "--strategy", "ring", "--ranks", "2", "--iterations", "2", "--warm-up", "1")

# By name: the words of a command, and its options that write a file.
COMMANDS = {
    "predict": (("predict", *JOB), (*FORMS, "--html", "--timeline", "--plan-out")),
    "scale": (("scale", *JOB[:4], "--ranks", "8-16", "--strategy", "ring"), (*FORMS, "--html")),
    "tune": (("tune", *JOB), (*FORMS, "--html", "--plan-out")),
    "time": (("time", "ring", "--cluster", "h200-ndr", "--ranks", "16"), (*FORMS, "--html")),
    "cost": (("cost", *JOB, *FEW), FORMS),
    "plan-capacity": (("plan-capacity", "--model", "alexnet", "--cluster", "h200-ndr", "--strategy", "ring", "--nodes", "1,2", "--node-price", "9 USD/h", *FEW),
                      (*FORMS, "--plot")),
    "show plan": (("show", "plan", *JOB), (*FORMS, "--plot")),
    "show network": (("show", "network", "alexnet"), FORMS),
    "reproduce": (("reproduce", "goyal"), (*FORMS, "--html", "--plot")),
    "reproduce jizhi": (("reproduce", "jizhi"), ("--profile-out",)),
    "replay": (("replay", *REPLAY), ("--timeline",)),
    "train": (TRAIN, ("--metrics", "--timeline")),
    "sweep": (("sweep", "{folder}/sweep.yaml"), ("--out",)),
    "import": (("calibrate", "import", str(GOLDEN / "imports/nccl_tests/2.0-float-one-node.txt")), ("--out", "--plot", "--html")),
    "import a machine": (("calibrate", "import", str(GOLDEN / "imports/nvidia_topo/525-a100-nic-legend.txt")), ("--cluster-out",)),
    "import a trace": (("calibrate", "import", str(GOLDEN / "imports/pytorch/2.5-shapes.json")), ("--network-out",)),
    "export goal": (("export", "ring", "--ranks", "4", "--format", "goal"), ("--output",)),
    "export msccl": (("export", "ring", "--ranks", "4", "--format", "msccl"), ("--output",)),
    "export svg": (("export", "ring", "--ranks", "4", "--format", "svg"), ("--output",)),
    **{f"export plan {form}": (("export", str(GOLDEN / "exports/two-streams.json"), "--format", form, "--cluster", "h200-ndr"), ("--output",))
       for form in ("nccl-tuner", "nccl-csv", "nccl-config", "horovod")},
    "platform": (("platform", "--cluster", "h200-ndr", "--ranks", "8"), ("--output",)),
    "compare": (("compare", "{made}/run.json", "{made}/prediction.json"), (*FORMS, "--html", "--merged")),
    # These measure for long, and so are only refused.
    "calibrate": (("calibrate", "--cluster", "jizhi-p40", "--out", "{folder}/new.json"), ("--html",)),
    "calibrate profile": (("calibrate", "--cluster", "jizhi-p40"), ("--out",)),
}
MEASURES = ("calibrate", "calibrate profile")
EDITED = ("--cluster-out", "--network-out")  # people complete these files, so that none is replaced unasked


class Outputs(CommandTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.made = pathlib.Path(folder.name)
        predicted = REPLAY[:8]
        for words in (("replay", *REPLAY, "--timeline", str(cls.made / "run.json")),
                      ("predict", *predicted, "--timeline", str(cls.made / "prediction.json"), "--plan-out", str(cls.made / "plan.json"))):
            made = run(*words)
            assert made.returncode == 0, made.stderr

    def setUp(self):
        super().setUp()
        (self.folder / "sweep.yaml").write_text(SWEEP)
        self.here = set(os.listdir(self.folder))

    def each(self):
        for name, (words, options) in COMMANDS.items():
            for option in options:
                yield name, [word.replace("{folder}", str(self.folder)).replace("{made}", str(self.made)) for word in words], option

    def clean(self):
        for name in set(os.listdir(self.folder)) - self.here:
            path = self.folder / name
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()

    def test_a_file_of_somebody_else_is_refused_before_any_work(self):
        file = self.folder / "precious"
        texts = ("precious\n", "# My notes\n\n| a | b |\n", '{"name": "package"}\n', "<!DOCTYPE html>\n<html></html>\n", "<svg/>\n", "name,age\n")
        for (name, words, option), text in paired(self.each(), texts):
            if option in ("--csv-out",) and text == "name,age\n":
                continue  # below
            file.write_text(text)
            self.refused(run(*words, option, str(file)), f"{option}: {file}: exists and is no ", "; choose another name, or add --force\n")
            self.assertEqual(file.read_text(), text)
            self.assertEqual(set(os.listdir(self.folder)) - self.here, {"precious"})

    def test_a_table_of_other_columns_is_not_replaced(self):
        for text, option in (("name,age\nme,7\n", "--csv-out"), ("| name | age |\n|---|---|\n| me | 7 |\n", "--markdown-out")):
            file = self.folder / "table"
            file.write_text(text)
            self.refused(run("predict", *JOB, option, str(file)), f"{option}: {file}: exists and is no such table of paceline")
            self.assertEqual(file.read_text(), text)
            # The columns of one command and those of another differ; those of two runs of one do not.
            file.unlink()
            for words in (JOB, (*JOB[:-1], "fused-ring,hierarchical")):
                self.done(run("predict", *words, option, str(file)))
            self.refused(run("show", "network", "alexnet", option, str(file)), "no such table")

    def test_what_a_command_wrote_is_replaced_and_force_replaces_the_rest(self):
        for name, words, option in self.each():
            if name in MEASURES:
                continue
            self.clean()
            file = self.folder / "out"
            file.touch()  # an empty file is anybody's
            self.done(run(*words, option, str(file)))
            first = file.read_bytes()
            self.assertGreater(len(first), 0)
            if name == "sweep":
                (self.folder / "out.journal").unlink()
            again = run(*words, option, str(file))
            if option in EDITED:
                self.refused(again, "people complete descriptions; choose another name, or add --force")
                self.assertEqual(file.read_bytes(), first)
            else:
                self.done(again)
            file.write_text("precious\n")
            if name == "sweep":
                (self.folder / "out.journal").unlink()
            self.done(run(*words, option, str(file), "--force"))
            self.assertNotEqual(file.read_text(), "precious\n")
            # A plan, which is ours, but not what the option writes.
            if option not in ("--plan-out",):
                plan = (self.made / "plan.json").read_text()
                file.write_text(plan)
                (self.folder / "out.journal").unlink(missing_ok=True)
                self.refused(run(*words, option, str(file)), "exists and is no ")
                self.assertEqual(file.read_text(), plan)

    def test_what_cannot_be_written_is_refused_before_any_work(self):
        (self.folder / "a").symlink_to("b")
        (self.folder / "b").symlink_to("a")
        (self.folder / "self").symlink_to("self")
        (self.folder / "nowhere").symlink_to("none/out")
        (self.folder / "folder").mkdir()
        (self.folder / "file").touch()
        here = set(os.listdir(self.folder))
        cases = (("none/out", f"there is no folder {self.folder}/none"), ("folder", "is a folder"),
                 ("a", "is a link that leads in a circle"), ("self", "is a link that leads in a circle"),
                 ("nowhere", "there is no folder"), ("file/out", "there is no folder"), ("x" * 250, "longer than 240 bytes"))
        for (name, words, option), (path, problem) in paired(self.each(), cases):
            self.refused(run(*words, option, str(self.folder / path)), f"{option}: ", problem)
            self.assertEqual(set(os.listdir(self.folder)), here)
        self.assertEqual(os.readlink(self.folder / "a"), "b")

    def test_links_are_written_through(self):
        for name, words, option in self.each():
            if name in MEASURES or name == "sweep":
                continue
            self.clean()
            (self.folder / "link").symlink_to("hop")
            (self.folder / "hop").symlink_to("target")
            for _ in range(1 if option in EDITED else 2):  # a target that is not there yet, and one that is
                self.done(run(*words, option, str(self.folder / "link")))
                self.assertEqual((os.readlink(self.folder / "link"), os.readlink(self.folder / "hop")), ("hop", "target"))
                self.assertGreater((self.folder / "target").stat().st_size, 0)
                self.assertFalse((self.folder / "target").is_symlink())
            (self.folder / "target").write_text("precious\n")
            self.refused(run(*words, option, str(self.folder / "link")), "exists and is no ")

    def test_special_files_are_outputs(self):
        for name, words, option in self.each():
            if name in MEASURES or name == "sweep":
                continue
            self.done(run(*words, option, "/dev/null"))

    def test_every_option_that_writes_a_file_is_tried_here(self):
        writes = re.compile(r"^  (--(?:out|output|html|plot|timeline|merged|metrics|[a-z]+-out))\b", re.M)
        tried = {}
        for words, options in COMMANDS.values():
            named = 2 if words[0] == "show" or words[1] == "import" else 1
            tried.setdefault(words[:named], set()).update(options)
        for words, options in tried.items():
            text = run(*words, "--help-all").stdout
            self.assertEqual(set(writes.findall(text)) - options - set(FORMS) - {"--plot"}, set(), words)
            self.assertIn("  --force", text)

    def test_a_folder_is_checked_before_any_work(self):
        (self.folder / "file").touch()
        for words, option in ((("manual",), "--folder"), (("export", str(GOLDEN / "exports/by-size.json"), "--format", "msccl"), "--output")):
            for path in ("none/folder", "file"):
                self.refused(run(*words, option, str(self.folder / path)), f"{option}: ")
        self.assertEqual(set(os.listdir(self.folder)) - self.here, {"file"})

    def test_files_in_a_folder_are_replaced_by_the_same_rule(self):
        for words, name in ((("manual", "--folder"), "paceline-predict.1"),
                            (("export", str(GOLDEN / "exports/by-size.json"), "--format", "msccl", "--output"), "01-ring-4-ranks.xml")):
            folder = self.folder / "made"
            folder.mkdir()
            for _ in range(2):
                self.assertEqual(run(*words, str(folder)).returncode, 0)
            (folder / name).write_text("precious\n")
            before = {file.name: file.read_bytes() for file in folder.iterdir()}
            self.refused(run(*words, str(folder)), name, "--force")
            self.assertEqual({file.name: file.read_bytes() for file in folder.iterdir()}, before)
            self.assertEqual(run(*words, str(folder), "--force").returncode, 0)
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()

    def test_plots_of_several_curves_are_checked(self):
        file = str(GOLDEN / "imports/nccl_tests/2.17-several-runs-kubectl.txt")
        plot, second = self.folder / "fit.svg", self.folder / "fit-2.svg"
        second.write_text("precious\n")
        self.refused(run("calibrate", "import", file, "--plot", str(plot)), str(second), "picture of paceline")
        curve = self.folder / "fit-exchange-within-node.svg"
        curve.write_text("precious\n")
        self.refused(run("calibrate", "--cluster", "jizhi-p40", "--out", str(self.folder / "p.json"), "--ranks", "2", "--plot", str(self.folder / "fit")), str(curve))
        self.assertEqual((second.read_text(), curve.read_text()), ("precious\n", "precious\n"))

    def test_a_journal_of_somebody_else_is_left_alone(self):
        journal = self.folder / "rows.csv.journal"
        for text in ("precious", "precious\n"):
            journal.write_text(text)
            for words in ((), ("--resume",)):
                self.refused(run("sweep", str(self.folder / "sweep.yaml"), "--out", str(self.folder / "rows.csv"), *words), "no journal of a sweep")
            self.assertEqual(journal.read_text(), text)
        journal.unlink()


class Inputs(CommandTest):
    """Files that have no end, or none in sight: each is refused in one line, before it fills the memory."""

    def test_every_reader_refuses_what_has_no_end(self):
        readers = [
            "calibrate import {}", "show network {}", "show cluster {}", "show profile {}",
            "predict --model alexnet --cluster h200-ndr --ranks 16 --profile {}", "predict --model alexnet --cluster h200-ndr --ranks 16 --plan {}",
            "predict --model alexnet --cluster h200-ndr --ranks 16 --placement {}", "predict --model {} --cluster h200-ndr --ranks 16",
            "predict --model alexnet --cluster {} --ranks 16", "predict --model alexnet --cluster h200-ndr --ranks 16 --spread {}",
            "sweep {}", "compare {} {}", "time nccl --cluster h200-ndr --ranks 16 --against {}",
            "train --model cnn-small --data synthetic --recipe {}", "train --model cnn-small --data synthetic --plan {}",
            "export {} --format nccl-tuner --cluster h200-ndr", "platform --cluster {}",
            "cost --model alexnet --cluster h200-ndr --ranks 16 --phases {}",
            "calibrate import --format osu {}", "calibrate import --format kineto --model alexnet {}",
        ]
        for words in readers:
            with self.subTest(words):
                for source in ("/dev/zero", "<(yes)" if "calibrate" not in words or "--format" not in words else "<(yes | tr -d '\\n')"):
                    shell = f"{PACELINE} {words.replace('{}', source)}"
                    result = subprocess.run(["bash", "-c", f"ulimit -v 1000000; {shell}"], capture_output=True, text=True, timeout=HANG_S)
                    self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), f"{shell}: {result.stderr}")

    def test_a_pipe_is_refused_by_its_beginning(self):
        for source, problem in (("/dev/zero", "it has a NUL byte"), ("<(yes)", "the output of no tool that is known here"),
                                ("--format kineto --model alexnet <(printf '['; yes | tr -d '\\n')", "4 MiB without the end of a line or of a value")):
            shell = f"ulimit -v 600000; {PACELINE} calibrate import {source}"
            result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=HANG_S)
            self.refused(result, problem)

    def test_a_long_file_is_refused_by_its_size(self):
        file = self.folder / "long"
        with open(file, "wb") as long:
            long.truncate(3 << 30)
        result = subprocess.run(["bash", "-c", f"ulimit -v 600000; {PACELINE} calibrate import {file}"], capture_output=True, text=True, timeout=HANG_S)
        self.refused(result, "the file is larger than 1024 MiB")

    def test_a_trace_that_unpacks_to_too_much_is_refused(self):
        file = self.folder / "bomb.gz"
        subprocess.run(["bash", "-c", f"head -c 300M /dev/zero | gzip -1 > {file}"], check=True)
        result = subprocess.run(["bash", "-c", f"ulimit -v 900000; {PACELINE} calibrate import {file}"], capture_output=True, text=True, timeout=HANG_S)
        self.refused(result, "inflates to more than")

    def test_a_trace_from_a_pipe_is_read(self):
        file = GOLDEN / "imports/nccl_tests/2.0-float-one-node.txt"
        whole = self.done(run("calibrate", "import", str(file)))
        for shell in (f"{PACELINE} calibrate import <(cat {file})", f"{PACELINE} calibrate import <(gzip < {file})"):
            result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout.split("\n", 1)[1].count("\n"), whole.split("\n", 1)[1].count("\n"))


if __name__ == "__main__":
    unittest.main()
