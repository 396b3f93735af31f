"""Where the command writes: streams that are closed or full, text that would steer a terminal, and
tables that fit it.
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import tempfile
import termios
import unittest

from output_formats_test import TABLES
from paceline import ENVIRONMENT, HANG_S, PACELINE, SOURCE, predict, run, shown_on

QUICK = ("--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "16", "--strategy", "ring")


def shell(words, redirection, env=None):
    """Runs the command with a redirection of the shell; its exit code, standard output and error."""
    quoted = " ".join(f"'{w}'" for w in (PACELINE, *words))
    result = subprocess.run(["bash", "-c", f"{quoted} {redirection}"], capture_output=True, text=True, timeout=HANG_S,
                            env=None if env is None else {**os.environ, **env})
    return result.returncode, result.stdout, result.stderr


def terminal(words, columns):
    """Runs the command on a terminal of so many columns; its exit code, and what is shown, without colours."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([PACELINE, *words], stdout=slave, stderr=subprocess.DEVNULL, env={**ENVIRONMENT, "TERM": "xterm"})
    os.close(slave)
    shown = shown_on(master).decode().replace("\r\n", "\n")
    os.close(master)
    return process.wait(HANG_S), re.sub("\x1b\\[[0-9]*m", "", shown)


class Streams(unittest.TestCase):
    def test_a_full_standard_error_loses_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "t.json")
            whole = run("predict", *QUICK).stdout
            code, out, _ = shell(("predict", *QUICK, "--timeline", str(path)), "2>/dev/full")
            self.assertEqual((code, out), (0, whole))
            self.assertIn("traceEvents", json.loads(path.read_text()))

    def test_a_closed_standard_error_loses_nothing_and_hits_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "t.json")
            code, out, _ = shell(("predict", *QUICK, "--timeline", str(path)), "2>&-")
            self.assertEqual(code, 0)
            self.assertEqual(out, run("predict", *QUICK).stdout)
            json.loads(path.read_text())  # no message was written into it

    def test_bad_input_is_2_whatever_becomes_of_its_message(self):
        for redirection in ("2>&-", "2>/dev/full", ">&- 2>&-", "<&- >&- 2>&-"):
            self.assertEqual(shell(("foo",), redirection)[0], 2, redirection)

    def test_a_result_that_cannot_be_written_is_a_failed_run(self):
        for words in (("predict", *QUICK), ("predict", *QUICK, "--json"), ("show", "network", "resnet50", "--json"), ("--version",),
                      ("--help",), ("show", "catalog"), ("completion", "bash"), ("show", "schedules")):
            for redirection in (">/dev/full", ">&-"):
                code, _, error = shell(words, redirection)
                self.assertEqual(code, 1, (words, redirection))
                self.assertRegex(error, r"^paceline: cannot write to standard output: [^\n]*\n$")

    def test_files_are_written_before_what_is_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "t.json")
            for words in (("predict", *QUICK), ("replay", *QUICK[:4], "--ranks", "2", "--strategy", "ring", "--iterations", "1", "--warm-up", "1",
                                                "--scale-gradients", "0.001")):
                path.unlink(missing_ok=True)
                self.assertEqual(shell((*words, "--timeline", str(path)), ">/dev/full")[0], 1)
                json.loads(path.read_text())


class Terminal(unittest.TestCase):
    CLUSTER = ("cluster: evil\ndescription: \"a \\x1b[31mred\\x1b[0m one\"\nnodes: 2\nranks_per_node: 8\ndevice: p40\nintra: pcie3-x16\n"
               "nic:\n  base: roce-25g\n  latency: {value: 5 us, source: \"\\x1b]0;title\\x07 \\x9b31m\"}\n")

    def test_no_control_character_of_a_file_is_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "c.yaml").write_text(self.CLUSTER)
            for words in (("show", "cluster", "c.yaml"), ("show", "cluster", "c.yaml", "--json"),
                          ("predict", "--model", "alexnet", "--cluster", "c.yaml", "--ranks", "8", "--strategy", "ring", "--provenance")):
                result = run(*words, cwd=folder)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual([c for c in result.stdout if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160], [])
                self.assertIn("\\u001b]0;title\\u0007 \\u009b31m", result.stdout)
            json.loads(run("show", "cluster", "c.yaml", "--json", cwd=folder).stdout)


class Width(unittest.TestCase):
    def rows(self, text):
        """The lines of the table: from its titles up to the first empty line."""
        lines = text.splitlines()
        first = next(i for i, line in enumerate(lines) if line.split()[:1] in (["strategy"], ["ranks"]))
        return lines[first:len(lines) - 1 - lines[::-1].index("")] if "ranks" in lines[first].split()[:1] else lines[first:lines.index("", first)]

    def test_a_table_is_no_wider_than_the_terminal(self):
        words = ("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "64", "--strategy", "ring,hierarchical-scatter,hybrid")
        for columns in (80, 100, 120, 200):
            out = shell(words, "", env={"COLUMNS": str(columns)})[1]
            rows = self.rows(out)
            self.assertEqual(len(rows), 4)
            self.assertLessEqual(max(len(line) for line in rows), columns)
            self.assertEqual("--wide" in out, "thresholds" not in rows[0])
        env = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
        out = subprocess.run([PACELINE, *words], capture_output=True, text=True, env=env, timeout=HANG_S).stdout
        self.assertLessEqual(max(len(line) for line in self.rows(out)), 100)
        self.assertIn("not shown in 100 columns: comm., buckets, engine, thresholds (--wide shows them)", out)
        wide = run(*words, "--wide").stdout
        self.assertIn("thresholds", self.rows(wide)[0])
        self.assertNotIn("--wide", wide)

    def test_a_reproduction_and_a_cluster_are_no_wider(self):
        for words in (("reproduce", "jizhi"), ("show", "cluster", "jizhi-p40"), ("show", "catalog")):
            for columns in (100, 130):
                out = shell(words, "", env={"COLUMNS": str(columns)})[1]
                table = out if words[0] != "show" else "\n".join(line for line in out.splitlines() if "  " in line)
                self.assertLessEqual(max(len(line) for line in table.splitlines()), columns, words)

    def test_nothing_is_wider_than_the_terminal(self):
        """Tables leave out columns, break words of one or have blocks; notes are broken at blanks."""
        imports = SOURCE / "tests" / "golden" / "imports"
        more = {
            "show plan --why": ("show", "plan", "--model", "alexnet", "--cluster", "h200-ndr", "--ranks", "16", "--strategy", "fused-ring", "--why"),
            "tune --why": (*TABLES["tune"], "--why"),
            "time --against": ("time", "nccl", "--cluster", "h200-ndr", "--against", str(imports / "nccl_tests" / "2.13-half-two-nodes.txt")),
            "time --top": (*TABLES["time all"], "--top", "2"),
            "verify": ("verify", "--schedule", "ring", "--ranks", "8"),
            "import": ("calibrate", "import", str(imports / "osu" / "5.6.2-allreduce.txt"), "--ranks", "8", "--nodes", "2", "--wire", "fp32"),
            "horovod": ("calibrate", "import", str(imports / "horovod" / "0.28-closed.json"), "--intra"),
        }
        for name, words in {**TABLES, **more}.items():
            for columns in (60, 80, 100, 200):
                with self.subTest(name, columns=columns):
                    code, shown = terminal(words, columns)
                    self.assertEqual(code, 0, shown)
                    wider = [line for line in shown.splitlines() if len(line) > columns and " " in line.strip()]
                    self.assertEqual(wider, [])

    def test_a_curve_of_many_strategies_has_blocks(self):
        words = ("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "8,16", "--strategy",
                 "ring,fused-ring,halving-doubling,hierarchical,hybrid,binary-blocks,no-overlap")
        out = shell(words, "", env={"COLUMNS": "100"})[1]
        table = out.split("\n* the most")[0]
        self.assertLessEqual(max(len(line) for line in table.splitlines()[2:]), 100)
        self.assertEqual(len([line for line in table.splitlines() if line.startswith("ranks")]), 2)
        self.assertEqual(len([line for line in run(*words, "--wide").stdout.splitlines() if line.startswith("ranks")]), 1)


class Settings(unittest.TestCase):
    """Every option that changes the answer leaves its trace, in the table and in JSON."""

    OPTIONS = {
        ("--scale-gradients", "0.0625"): ("gradients are scaled: 0.0625 of the network's elements", ("gradient_scale", 0.0625)),
        ("--exact-compute",): ("compute times are taken as stated", ("exact_compute", True)),
        ("--overlap", "double-buffered"): ("overlap: double-buffered", ("overlap", "double-buffered")),
        ("--engine", "flow"): ("engine: flow", ("engine", "flow")),
        ("--theta", "1 MiB"): ("theta 1 MiB given", ("given_thresholds", {"theta_bytes": 1048576})),
        ("--group", "4", "--streams", "2"): ("thresholds: k 4, 2 streams given", ("given_thresholds", {"group": 4, "streams": 2})),
        ("--server-placement", "round-robin", "--servers", "3"):
            ("3 servers, servers round-robin given", ("given_thresholds", {"servers": 3, "server_placement": "round-robin"})),
        ("--segments", "8", "--rings", "2", "--eta", "1 MB"):
            ("eta 1 MB, 8 segments, 2 rings given", ("given_thresholds", {"eta_bytes": 1e6, "segments": 8, "rings": 2})),
        ("--placement", "round-robin"): ("placement", ("placement", "round-robin")),
        ("--profile", "none"): ("roofline", ("profile", None)),
    }

    def test_each_option_is_in_the_table_and_in_json(self):
        for command in ("predict", "scale"):
            words = (command, "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "16",
                     "--strategy", "ring,hybrid,multi-ring,double-binary-tree,parameter-server")
            default = json.loads(run(*words, "--json").stdout)
            for option, (text, (key, value)) in self.OPTIONS.items():
                document = json.loads(run(*words, *option, "--json").stdout)
                self.assertEqual(document[key], value, (command, option))
                self.assertNotEqual(document[key], default[key], (command, option))
                if command == "predict" or key != "given_thresholds":
                    self.assertIn(text, run(*words, *option).stdout, (command, option))

    def test_training_says_what_options_put_in_place_of_the_recipe(self):
        words = ("train", "--model", "cnn-small", "--data", "synthetic", "--batch", "32", "--threads", "1", "--stop-after", "1",
                 "--learning-rate", "0.02", "--epochs", "3", "--json")
        document = json.loads(run(*words).stdout)
        self.assertEqual((document["base_learning_rate"], document["epochs_asked"], document["batch_per_rank"]), (0.02, 3, 32))

    def test_a_part_of_a_profile_that_is_not_used_is_a_warning(self):
        profile = json.loads(run("show", "profile", "jizhi-p40").stdout)
        for entry in profile["throughputs"]:
            entry["network"] = "resnet5"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "p.json")
            path.write_text(json.dumps(profile))
            result = predict("--profile", str(path), "--json", "--strategy", "ring")
            self.assertEqual(result.returncode, 0, result.stderr)
            line = "profile jizhi-p40: its throughputs of network 'resnet5' are not used for 'resnet50'"
            self.assertEqual(json.loads(result.stdout)["warnings"], [line])
            self.assertEqual(result.stderr, f"paceline: warning: {line}\n")
        self.assertEqual(json.loads(predict("--json", "--strategy", "ring").stdout)["warnings"], [])

    def test_an_empty_value_is_bad_input(self):
        for option in ("--strategy", "--wire", "--profile", "--theta", "--overlap", "--placement", "--engine", "--scale-gradients"):
            for words in ((option, ""), (f"{option}=",), (f"{option}=", "--json")):
                result = run("predict", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "8", *words)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertEqual(result.stderr, f"paceline: {option} is empty; give it a value, or leave it out\n")


class Nccl(unittest.TestCase):
    WORDS = ("--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "16", "--strategy", "ring,nccl")

    def test_its_row_has_an_interval_of_latencies_in_practice(self):
        rows = {row["name"]: row for row in json.loads(run("predict", *self.WORDS, "--json").stdout)["strategies"]}
        self.assertIn("iteration_low_s", rows["ring"])
        row = rows["nccl"]
        self.assertLess(row["iteration_low_s"], row["iteration_s"])
        self.assertLess(row["iteration_s"], row["iteration_high_s"])
        line = next(line for line in run("predict", *self.WORDS).stdout.splitlines() if line[2:].startswith("nccl "))
        self.assertRegex(line, r"^\* nccl +fp16 +[\d.]+ \w+ +[\d.]+ - [\d.]+ \w+ +\d")

    def test_it_is_not_for_clusters_of_cpus_unless_asked_for(self):
        device = ("device: {name: my-core, provenance: assumed, fp32: 100 GFLOP/s, memory_bandwidth: 8 GB/s, memory: 4 GB, source: mine}\n")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "cpus.yaml")
            path.write_text("cluster: cpus\nnodes: 4\nranks_per_node: 2\nintra: pcie3-x16\nnic: tcp-10g\n" + device)
            words = ("predict", "--model", "alexnet", "--cluster", str(path), "--ranks", "8", "--json")
            names = [row["name"] for row in json.loads(run(*words).stdout)["strategies"]]
            self.assertIn("ring", names)
            self.assertNotIn("nccl", names)
            asked = json.loads(run(*words, "--strategy", "nccl").stdout)
            self.assertEqual([row["name"] for row in asked["strategies"]], ["nccl"])


class Names(unittest.TestCase):
    def test_reproduce_knows_the_experiment_that_trains(self):
        result = run("reproduce", "convergense")
        self.assertEqual((result.returncode, result.stderr), (2, "paceline: unknown experiment 'convergense'; did you mean 'convergence'?\n"))
        result = run("reproduce", "foo")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^paceline: unknown experiment 'foo'; known: aiconfigurator, .*, \.\.\.\n$")



class Colours(unittest.TestCase):
    JOB = ("predict", "--model", "alexnet", "--cluster", "h200-ndr", "--ranks", "16", "--batch", "200000", "--ignore-memory", "--strategy", "ring,fused-ring")

    def on_terminal(self, words, **env):
        """What a terminal gets that both outputs lead to."""
        master, slave = pty.openpty()
        inherited = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "CLICOLOR", "TERM")}
        process = subprocess.Popen([PACELINE, *words], stdout=slave, stderr=slave,
                                   env={**inherited, "COLUMNS": "100", "TERM": "xterm", "PACELINE_PROGRESS_AFTER_S": str(HANG_S), **env})
        os.close(slave)
        shown = shown_on(master)
        os.close(master)
        self.assertEqual(process.wait(HANG_S), 0)
        return shown.decode().replace("\r\n", "\n")

    def test_the_best_row_is_bold_and_a_warning_yellow_on_a_terminal_only(self):
        shown = self.on_terminal(self.JOB)
        self.assertRegex(shown, r"\n\x1b\[1m\* ring [^\n]*\x1b\[0m\n")
        self.assertEqual(shown.count("\x1b[1m"), 1)
        self.assertRegex(shown, r"\x1b\[33mpaceline: warning: [^\n]*\n\x1b\[0m")
        plain = re.sub("\x1b\\[[0-9]*m", "", shown)
        self.assertNotIn("\x1b", plain)
        for env in ({"NO_COLOR": "1"}, {"CLICOLOR": "0"}, {"TERM": "dumb"}):
            self.assertEqual(self.on_terminal(self.JOB, **env), plain)
        self.assertEqual(self.on_terminal(self.JOB, NO_COLOR=""), shown)
        in_pipe = run(*self.JOB)
        self.assertNotIn("\x1b", in_pipe.stdout + in_pipe.stderr)
        self.assertNotIn("\x1b", self.on_terminal((*self.JOB[:-5], "--strategy", "ring", "--json")))


if __name__ == "__main__":
    unittest.main()
