"""paceline reproduce, as a user runs it."""

import json
import os
import pathlib
import shlex
import tempfile
import unittest

from paceline import PACELINE, run

HEADER = ("id,where,what,series,role,cluster,model,batch,sequence,precision,ranks,strategy,options,quantity,against,"
          "published,unit,note\n")
ROWS = HEADER + """one,p. 1,one GPU,s,calibrates,jizhi-p40,resnet50,64,,fp32,1,ring,,throughput,,172,images/s,
node,p. 1,"a node, fused",s,predicted,jizhi-p40,resnet50,64,,fp32,8,fused-ring,--theta 32MiB,throughput,,1300,images/s,
ring,p. 2,64 GPUs,s,predicted,jizhi-p40,resnet50,64,,fp32,64,ring,,throughput,,9000,images/s,
fused,p. 2,"64 GPUs, fused",s,predicted,jizhi-p40,resnet50,64,,fp32,64,fused-ring,,throughput,,10000,images/s,
gone,p. 3,over gRPC,,left-out,,,,,,,,,,,,,there is no gRPC
"""


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "lab"
        self.folder.mkdir()
        self.write(ROWS)

    def write(self, text, name="expected.csv"):
        (self.folder / name).write_text(text)

    def test_rows_stand_beside_ours(self):
        result = run("reproduce", str(self.folder))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("over gRPC (gone): there is no gRPC", result.stdout)
        self.assertRegex(result.stdout, r"one GPU +calibrated +172 images/s +172 images/s")
        self.assertRegex(result.stdout, r"1 of 1 pairs of strategies in the published order|0 of 1 pairs")

    def test_json_has_every_row(self):
        document = json.loads(run("reproduce", str(self.folder), "--json").stdout)
        self.assertEqual(document["schema"], "paceline.reproduction/2")
        self.assertEqual([row["id"] for row in document["rows"]], ["one", "node", "ring", "fused"])
        self.assertEqual([row["provenance"] for row in document["rows"]], ["calibrated"] + 3 * ["predicted"])
        self.assertEqual([row["id"] for row in document["left_out"]], ["gone"])
        self.assertEqual(document["summary"]["training"]["rows"], 3)
        for row in document["rows"]:
            self.assertLessEqual(row["low"], row["ours"])
            self.assertLessEqual(row["ours"], row["high"])
            self.assertEqual(row["inside"], row["low"] <= row["published"] <= row["high"])

    def commands(self):
        """Returns the predicted throughput of each command with the one that reproduce has."""
        ours = {row["id"]: row["ours"] for row in json.loads(run("reproduce", str(self.folder), "--json").stdout)["rows"]}
        lines = run("reproduce", str(self.folder), "--commands").stdout.splitlines()
        for comment, command in zip(lines[::2], lines[1::2], strict=True):
            words = shlex.split(command)
            self.assertEqual(words[0], "paceline")
            document = json.loads(run(*words[1:], "--json").stdout)
            yield document["strategies"][0]["throughput_per_s"], ours[comment.split()[2].rstrip(":")]

    def test_commands_print_the_same(self):
        rows = list(self.commands())
        self.assertEqual(len(rows), 4)
        for theirs, ours in rows:
            self.assertAlmostEqual(theirs / ours, 1, delta=1e-6)

    def test_commands_have_the_slowdown_of_two_points(self):
        self.write(ROWS.replace("predicted,jizhi-p40,resnet50,64,,fp32,8", "calibrates,jizhi-p40,resnet50,64,,fp32,8"))
        self.assertIn("--slowdown 1.", run("reproduce", str(self.folder), "--commands").stdout)
        for theirs, ours in self.commands():
            self.assertAlmostEqual(theirs / ours, 1, delta=1e-6)

    def test_a_folder_of_faults_is_one_line(self):
        for text, message in ((ROWS.replace("fused-ring", "fusedring"), "expected.csv:3: unknown strategy"),
                              (ROWS.replace("jizhi-p40", "lab"), "expected.csv:2: unknown cluster 'lab'"),
                              (ROWS.replace("32MiB", "32"), "expected.csv:3: --theta: '32' has no unit"),
                              (ROWS.replace("1300", "1300\x1b[2J"), "expected.csv:3: control character"),
                              ("", "expected.csv:1: an empty table")):
            self.write(text)
            result = run("reproduce", str(self.folder))
            self.assertEqual((result.returncode, result.stdout), (2, ""), message)
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)

    def test_clusters_and_networks_of_the_folder_are_read(self):
        for name in ("clusters", "networks"):
            (self.folder / name).mkdir()
        source = pathlib.Path(os.environ["PACELINE_SOURCE"]) / "docs/examples"
        (self.folder / "clusters/lab.yaml").write_text((source / "lab.yaml").read_text())
        (self.folder / "networks/tiny.yaml").write_text((source / "tiny-net.yaml").read_text())
        rows = ROWS.replace("jizhi-p40", "lab").replace("resnet50", "tiny")
        self.write(rows)
        result = run("reproduce", str(self.folder))
        self.assertEqual(result.returncode, 0, result.stderr)
        (self.folder / "clusters/lab.yaml").write_text("cluster: lab\nnodes: many\n")
        result = run("reproduce", str(self.folder))
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^paceline: [^\n]*clusters/lab.yaml:\d+:\d+: [^\n]*\n$")


class Shipped(unittest.TestCase):
    def test_all_has_a_line_for_each_source(self):
        result = run("reproduce", "all")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(run("reproduce", "all", "--json").stdout)
        self.assertEqual(document["schema"], "paceline.reproductions/1")
        for source in document["sources"]:
            self.assertEqual(source["schema"], "paceline.reproduction/2")
            if source["summary"]["training"]["rows"]:
                self.assertIn(source["name"], result.stdout)


class StatedCompute(unittest.TestCase):
    words = ("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--profile", "none", "--strategy", "fused-ring")

    def throughput(self, *words):
        result = run(*self.words, *words, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["strategies"][0]["throughput_per_s"]

    def test_throughput_is_what_one_rank_computes(self):
        self.assertAlmostEqual(self.throughput("--ranks", "1", "--throughput", "253.1"), 253.1, delta=1e-6)
        self.assertAlmostEqual(self.throughput("--ranks", "1", "--throughput", "253.1 images/s"), 253.1, delta=1e-6)
        self.assertAlmostEqual(self.throughput("--ranks", "1", "--throughput", "300@64,31@8", "--batch", "8"), 31, delta=1e-6)

    def test_node_throughput_is_what_a_node_trains(self):
        node = ("--node-throughput", "1900")
        self.assertAlmostEqual(self.throughput("--ranks", "8", *node) / 1900, 1, delta=1e-6)
        self.assertLess(self.throughput("--ranks", "16", *node), 3800 + 1e-6)
        both = ("--throughput", "253.1", "--node-throughput", "1900")
        self.assertAlmostEqual(self.throughput("--ranks", "8", *both) / 1900, 1, delta=1e-6)
        self.assertAlmostEqual(self.throughput("--ranks", "1", *both), 253.1, delta=1e-6)
        self.assertIn("as calibrated (1900 samples/s of 8 ranks with fused-ring: --node-throughput)",
                      run(*self.words, *both, "--ranks", "8").stdout.replace("\n ", ""))

    def test_nonsense_is_one_line(self):
        for words, message in ((("--throughput", "-1"), "--throughput: "), (("--throughput", "fast"), "--throughput: 'fast' is not a rate"),
                               (("--throughput", "200@64,300@64"), "--throughput: two rates at batch 64"),
                               (("--throughput", "200@0"), "--throughput: '0' is not a whole number"),
                               (("--throughput", "nan"), "--throughput: "), (("--throughput", "1e30"), "--throughput: "),
                               (("--throughput", "100", "--node-throughput", "1900"), "--node-throughput: 1900 samples/s are more than 8 ranks"),
                               (("--node-throughput", "1e8"), "--node-throughput: "),
                               (("--node-throughput", "1,2"), "--node-throughput: two rates at batch 64"),
                               (("--slowdown", "0"), "--slowdown: "),
                               (("--slowdown", "1.1", "--node-throughput", "1900"), "--slowdown: --node-throughput says it, too"),
                               (("--throughput", "100", "--model", "resnet50,vgg16"), "--throughput: one rate for 2 networks")):
            line = [word for word in self.words]
            if "--model" in words:
                line[line.index("--model"):line.index("--model") + 2] = []
            result = run(*line, "--ranks", "8", *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""), words)
            self.assertTrue(result.stderr.startswith(f"paceline: {message}"), result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)

    def test_a_profile_may_say_what_a_node_trains(self):
        source = pathlib.Path(os.environ["PACELINE_SOURCE"]) / "docs/examples/profile.json"
        words = [word if word != "none" else str(source) for word in self.words]
        document = json.loads(run(*words, "--ranks", "8", "--json").stdout)
        self.assertAlmostEqual(document["strategies"][0]["throughput_per_s"] / 1650, 1, delta=1e-6)


if __name__ == "__main__":
    unittest.main()
