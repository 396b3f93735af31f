"""What needs no lab of the lab: what it takes and refuses, when it distrusts a run, its cluster files."""
import argparse
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SOURCE = pathlib.Path(os.environ["PACELINE_SOURCE"])
LAB = SOURCE / "experiments/lab/lab.py"
sys.path.insert(0, str(LAB.parent))
sys.dont_write_bytecode = True

import lab as command  # noqa: E402
from labnet.errors import LabError  # noqa: E402
from labnet.files import write_whole  # noqa: E402
from labnet import commands, load  # noqa: E402
from labnet.load import Limits, Meters, Processors, share, used_between, why_disturbed  # noqa: E402
from labnet.networks import ShapedBridge, TapSwitch  # noqa: E402
from labnet.quantities import parse_rate, parse_share, parse_time, rate_text, time_text  # noqa: E402


def lab(*arguments):
    return subprocess.run([sys.executable, "-B", LAB, *map(str, arguments)], capture_output=True, text=True,
                          timeout=600)


class Quantities(unittest.TestCase):
    def test_are_read_as_people_write_them(self):
        self.assertEqual(parse_rate("250mbit"), 250e6)
        self.assertEqual(parse_rate("1.5Gbit"), 1.5e9)
        self.assertEqual(parse_rate("100000000"), 1e8)
        self.assertEqual(parse_time("1ms"), 1000)
        self.assertEqual(parse_time("50us"), 50)
        self.assertEqual(parse_time("0"), 0)
        self.assertEqual(parse_share("10%"), 0.1)
        self.assertEqual(parse_share("0.1"), 0.1)

    def test_are_refused_otherwise(self):
        for parse, texts in ((parse_rate, ("", "fast", "1.2.3mbit", "-1mbit", "0", "1zbit", "nan", "1e9", "200gbit")),
                             (parse_time, ("", "1", "ms", "-1ms", "1m", "11s")),
                             (parse_share, ("", "10", "101%", "-1%", "%"))):
            for text in texts:
                with self.subTest(parse=parse.__name__, text=text), self.assertRaises(argparse.ArgumentTypeError):
                    parse(text)

    def test_print_as_they_are_read(self):
        for text in ("250mbit", "1gbit", "1.5gbit", "100kbit", "12.5mbit"):
            self.assertEqual(rate_text(parse_rate(text)), text)
        for text in ("1ms", "50us", "0", "1.5s", "250us"):
            self.assertEqual(time_text(parse_time(text)), text)


class BadInput(unittest.TestCase):
    def test_is_one_line_and_exit_code_2(self):
        for verb, arguments, hint in (
                ("run", ["--hosts", "1"], "2 to 250"), ("run", ["--hosts", "many"], "many"),
                ("run", ["--rate", "0"], "100kbit"), ("run", ["--rate", "fast"], "250mbit"),
                ("run", ["--latency", "1"], "1ms"), ("run", ["--hosts", "4", "--racks", "2"], "--uplink"),
                ("run", ["--racks", "5", "--uplink", "1gbit"], "--racks"),
                ("run", ["--ranks-per-host", "0"], "--ranks-per-host"),
                ("run", ["--network", "netem"], "tbf"), ("run", ["--max-foreign", "10"], "10%"),
                ("run", ["--network", "tbf", "--latency", "1ms"], "--network switch"),
                ("run", ["--network", "tbf", "--racks", "2", "--uplink", "1gbit"], "--network switch"),
                ("run", ["--wait-quiet", "-1"], "--wait-quiet"), ("run", ["--time-limit", "-1"], "--time-limit"),
                ("run", ["--wait-quiet", "nan"], "--wait-quiet"), ("run", ["--wait-quiet", "inf"], "--wait-quiet"),
                ("run", ["--time-limit", "99999999999999"], "--time-limit must be from 0 to 31536000 seconds"),
                ("run", ["--report", "/nowhere/report.json"], "/nowhere/report.json"),
                ("run", ["--uplink", "1gbit"], "--uplink is of racks"),
                ("cluster", ["--uplink", "1gbit"], "--uplink is of racks"),
                ("cluster", ["--device", "v100\nnodes: 9"], "no name of a device"),
                ("cluster", ["--device", ""], "no name of a device"),
                ("cluster", ["--network", "tbf", "--latency", "1ms"], "--network switch"),
                ("cluster", ["--hosts", "7", "--racks", "2", "--uplink", "1gbit"], "multiple"),
                ("cluster", ["--racks", "2", "--rate", "100gbit", "--uplink", "1mbit"], "raise --uplink"),
                ("cluster", ["--out", "/nowhere/lab.yaml"], "/nowhere/lab.yaml")):
            with self.subTest(verb=verb, arguments=arguments):
                words = ["lab.py", verb, *arguments, *(["--", "true"] if verb == "run" else [])]
                with unittest.mock.patch.object(sys, "argv", words), self.assertRaises(LabError) as raised:
                    command.main()
                self.assertEqual(raised.exception.code, 2)
                self.assertEqual(len(str(raised.exception).splitlines()), 1)
                self.assertIn(hint, str(raised.exception))

    def test_a_report_that_cannot_be_written_is_refused_before_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            circle, dangling = pathlib.Path(folder, "circle"), pathlib.Path(folder, "dangling")
            circle.symlink_to(circle)
            dangling.symlink_to("no/such/folder.json")
            for path in (circle, dangling, folder):
                with self.subTest(path=path):
                    result = lab("run", "--report", path, "--", "true")
                    self.assertEqual((result.returncode, result.stdout), (2, ""))
                    self.assertEqual(result.stderr, f"lab: --report: no file can be written to {path}\n")

    def test_is_told_on_standard_error(self):
        for arguments in (["run", "--hosts", "many", "--", "true"], ["cluster", "--hosts", "1"], [], ["fly"]):
            result = lab(*arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertRegex(result.stderr, r"\Alab: .+\n\Z")


class Commands(unittest.TestCase):
    def test_have_parts_of_any_kind_and_are_printed_where_asked(self):
        for is_printed, text in ((True, "$ sh -c 'exit $1' 2.5 0\n"), (False, "")):
            out = io.StringIO()
            with contextlib.redirect_stderr(out):
                commands.run(["sh", "-c", "exit $1", 2.5, 0], is_printed=is_printed)
            self.assertEqual(out.getvalue(), text)

    def test_that_fail_raise(self):
        with self.assertRaises(subprocess.CalledProcessError) as failed:
            commands.run(["sh", "-c", "exit 5"])
        self.assertEqual(failed.exception.returncode, 5)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_are_replaced_as_a_whole(self):
        path = self.folder / "report.json"
        path.write_text("old")
        before = os.stat(path).st_ino
        write_whole(path, "new")
        self.assertEqual(path.read_text(), "new")
        self.assertNotEqual(os.stat(path).st_ino, before)
        self.assertEqual(os.listdir(self.folder), ["report.json"])
        with self.assertRaises(OSError):
            write_whole(self.folder / "none" / "report.json", "")

    def test_keep_what_was_where_writing_fails(self):
        path = self.folder / "report.json"
        path.write_text("old")
        with unittest.mock.patch("os.fsync", side_effect=OSError(28, "No space left on device")), self.assertRaises(OSError):
            write_whole(path, "new")
        self.assertEqual((path.read_text(), os.listdir(self.folder)), ("old", ["report.json"]))

    def test_links_stay_links(self):
        link = self.folder / "link.json"
        link.symlink_to("report.json")
        write_whole(link, "text")
        self.assertTrue(link.is_symlink())
        self.assertEqual((self.folder / "report.json").read_text(), "text")

    def test_what_is_no_file_is_written_to(self):
        with self.assertRaises(OSError):
            write_whole("/dev/full", "text")


class Networks(unittest.TestCase):
    def test_have_buckets_that_hold_the_largest_packet(self):
        for rate in (1e6, 1e8, 2.5e8, 4e8, 1e9, 1e10):
            segment = ShapedBridge.largest_segment(rate)
            segments = -(-segment // 1448)
            self.assertGreaterEqual(ShapedBridge.burst(segment), segment + 66 * segments)
            self.assertTrue(4096 <= segment <= 65536)
            self.assertTrue(4096 <= TapSwitch.largest_segment(rate) <= 65536)
        self.assertEqual([ShapedBridge.largest_segment(rate) for rate in (1e8, 2.5e8, 1e9)], [4096, 8192, 65536])


class Trust(unittest.TestCase):
    fine = {"cpu_foreign": 0.05, "cpu_steal": 0.0, "held_up_s": 0.01, "command_s": 2.0}

    def test_is_lost_for_each_reason(self):
        self.assertEqual(why_disturbed(self.fine, Limits()), [])
        for key, value, word in (("cpu_foreign", 0.3, "30%"), ("cpu_steal", 0.031, "3.1%"),
                                 ("held_up_s", 0.06, "3.0%")):
            why = why_disturbed(self.fine | {key: value}, Limits())
            self.assertEqual(len(why), 1)
            self.assertIn(word, why[0])
        self.assertEqual(len(why_disturbed({key: 1e6 for key in self.fine} | {"command_s": 1.0}, Limits())), 3)

    def test_needs_no_lateness_where_there_is_no_switch(self):
        self.assertEqual(why_disturbed({"cpu_foreign": 0.0, "cpu_steal": 0.0, "command_s": 1.0}, Limits()), [])

    def test_shares_are_of_all_processors(self):
        passed = Processors(1200, 700, 30).since(Processors(1000, 600, 10))
        self.assertEqual((passed.total, passed.idle, passed.steal, passed.busy), (200, 100, 20, 80))
        self.assertEqual(share(passed.busy, passed), 0.4)
        self.assertEqual(share(-5, passed), 0.0)
        self.assertEqual(share(5, Processors(0, 0, 0)), 0.0)

    def test_what_is_neither_the_labs_nor_stolen_nor_keeps_awake_is_foreign(self):
        before = Meters(clock_s=5.0, processors=Processors(1000, 400, 100), lab=50, awake=20, wire=10, wire_waited_s=0.5,
                        retransmits=3)
        # 300 of 1000 ticks were idle, 100 stolen, 150 kept awake what would be idle, 200 were the lab's: 250 are left.
        after = Meters(clock_s=10.0, processors=Processors(2000, 700, 200), lab=250, awake=170, wire=40, wire_waited_s=0.75,
                       retransmits=5)
        self.assertEqual(used_between(before, after), {
            "command_s": 5.0, "cpu_busy": 0.45, "cpu_lab": 0.2, "cpu_network": 0.03, "network_waited_s": 0.25,
            "cpu_foreign": 0.25, "cpu_steal": 0.1, "retransmits": 2})

    def test_what_was_stolen_from_the_lab_makes_nobody_foreign(self):
        before = Meters(0.0, Processors(0, 0, 0), 0, 0, 0, 0.0, 0)
        figures = used_between(before, Meters(5.0, Processors(1000, 0, 750), 900, 0, 0, 0.0, 0))
        self.assertEqual((figures["cpu_lab"], figures["cpu_busy"], figures["cpu_foreign"]), (0.9, 0.25, 0.0))


class Quiet(unittest.TestCase):
    def wait(self, readings, patience_s):
        """With a clock that goes on by a second for each reading, of processors that are busy by so much in it."""
        clock, ticks, said = 0.0, Processors(0, 0, 0), []
        shares = iter(readings)

        def sleep(seconds):
            nonlocal clock, ticks
            clock += seconds
            ticks = Processors(ticks.total + 200, ticks.idle + 200 - round(200 * next(shares)), 0)

        with unittest.mock.patch.object(load.time, "sleep", sleep), \
             unittest.mock.patch.object(load.time, "monotonic", lambda: clock), \
             unittest.mock.patch.object(Processors, "now", lambda: ticks):
            return *load.wait_until_quiet(patience_s, 0.08, said.append), said

    def test_a_quiet_machine_is_not_waited_for(self):
        self.assertEqual(self.wait([0.05], 60), (0.05, 1.0, ["the machine is quiet: 5% busy, after 1 s"]))

    def test_a_busy_one_is_until_it_is_quiet(self):
        busy, waited, said = self.wait([0.5, 0.25, 0.05], 60)
        self.assertEqual((busy, waited), (0.05, 3.0))
        self.assertIn("waiting up to 60 s for a quiet machine: 50% of the processors are busy (quiet: 8%)", said[0])
        self.assertEqual(said[1:], ["the machine is quiet: 5% busy, after 3 s"])

    def test_a_run_starts_nevertheless_when_patience_ends(self):
        busy, waited, said = self.wait([0.5, 0.5, 0.75, 0.5], 3)
        self.assertEqual((busy, waited), (0.75, 3.0))
        self.assertEqual(said[1:], ["the machine is not quiet after 3 s: 75% busy; running nevertheless"])


class ClusterFile(unittest.TestCase):
    def lines(self, *arguments):
        result = lab("cluster", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [line.strip() for line in result.stdout.splitlines()]

    def test_says_what_the_lab_is(self):
        lines = self.lines("--hosts", 8, "--rate", "250mbit", "--latency", "1ms", "--racks", 2, "--uplink", "250mbit",
                           "--ranks-per-host", 3)
        for line in ("nodes: 8", "ranks_per_node: 3", "line_rate: 250 Mbit/s", "kind: fat-tree",
                     "levels: [{nodes: 4, oversubscription: 4}]", f"bandwidth: {250 * 1448 / 1538:.6g} Mbit/s"):
            self.assertIn(line, lines)
        self.assertTrue(any(line.startswith("latency: {value: 1000 us, low: 1000 us,") for line in lines))
        self.assertIn("lab.py cluster --network switch --hosts 8 --rate 250mbit --latency 1ms --racks 2 "
                      "--uplink 250mbit --ranks-per-host 3", lines[0])

    def test_has_a_flat_fabric_for_one_rack(self):
        self.assertNotIn("fabric:", self.lines("--hosts", 3))

    def test_has_no_uplink_faster_than_its_hosts(self):
        self.assertIn("levels: [{nodes: 2, oversubscription: 1}]",
                      self.lines("--hosts", 4, "--racks", 2, "--uplink", "10gbit"))

    def test_is_one_that_predict_takes(self):
        paceline = os.environ["PACELINE"]
        for arguments in (["--hosts", 2], ["--network", "tbf", "--rate", "100mbit"],
                          ["--hosts", 8, "--racks", 2, "--uplink", "250mbit", "--ranks-per-host", 2]):
            with self.subTest(arguments=arguments), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "lab.yaml")
                self.assertEqual(lab("cluster", *arguments, "--out", path).returncode, 0)
                result = subprocess.run(
                    [paceline, "predict", "--cluster", path, "--model", "resnet-small", "--ranks", "2", "--strategy",
                     "ring", "--json"], capture_output=True, text=True, timeout=600)
                self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
