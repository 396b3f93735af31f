"""The command, end to end, as a user runs it: what it prints, where, and with which exit code.
predict, calibrate import, train and compare have files of their own.

README.md is a test too: every console block that starts with "$ paceline" is run and compared.
"""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from paceline import EXAMPLES, HANG_S, PACELINE, SOURCE, predict, run


class Documentation(unittest.TestCase):
    def test_the_algorithms_are_those_of_the_catalogue(self):
        self.assertEqual((SOURCE / "docs" / "algorithms.md").read_text(), run("show", "schedules").stdout,
                         "write it anew: paceline show schedules > docs/algorithms.md")


class BadInput(unittest.TestCase):
    def check(self, result, message, code=2):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr, f"paceline: {message}\n")

    def test_each_fault_is_one_line(self):
        self.check(predict(model="resnet5"), "--model: unknown network 'resnet5'; did you mean 'resnet50'?")
        self.check(predict(cluster="jizhi-p4"), "--cluster: unknown cluster 'jizhi-p4'; did you mean 'jizhi-p40'?")
        self.check(predict(ranks="4096"), "--ranks: 4096 ranks do not fit cluster jizhi-p40; choose 1 to 2048 (256 nodes x 8 ranks)")
        self.check(predict(ranks="0"), "--ranks: '0' is not a whole number from 1 to 1048576")
        self.check(predict("--group", "7"), "group size 7 does not divide 1024 ranks; choose one of 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024")
        self.check(predict("--theta", "64"), "--theta: '64' has no unit; write one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, as in 64 MiB")
        self.check(predict("--batch", "0"), "--batch: '0' is not a whole number from 1 to 1048576")
        self.check(predict("--precision", "fp8"), "--precision: fp8 is predicted for networks with fused attention, as resnet50 is not; choose mixed or fp32")
        self.check(predict("--strategy", "fsdp2"), "--strategy: unknown strategy 'fsdp2'; write fsdp, or hsdp with --group")
        self.check(predict("--strategy", "hsdp", "--group", "7"), "--group: groups of 7 do not divide 1024 ranks; choose a divisor of the ranks")
        self.check(predict("--strategy", "fsdp", "--overlap", "priority"), "--overlap: fsdp has no overlap priority; choose wait-free or none")
        self.check(predict("--strategy", "ring", "--reshard-after-forward", "no"), "--reshard-after-forward: ring does not take it; leave it out, or choose a strategy such as fsdp, hsdp")
        self.check(predict("--recompute", "some"), "--recompute: unknown recomputation 'some'; known: none, selective, per-op, full")
        self.check(predict("--tensor-parallel", "8"), "unknown option '--tensor-parallel'; give --tensor T")
        self.check(run("version"), "unknown command 'version'; write paceline --version")
        self.check(predict("--sequence", "128"), "--sequence: network 'resnet50' reads no sequence; leave the length of a sequence out")
        self.check(predict("--sequence", "0", model="bert-base"), "--sequence: '0' is not a whole number from 1 to 1000000")
        self.check(run("show", "network", "gpt2-small", "--sequence", "1025"),
                   "--sequence: layer 'wpe': a sequence of 1025, and a table of 1024 positions; use at most 1024")
        self.check(run("show", "network", "vgg16", "--sequence", "8"), "--sequence: network 'vgg16' reads no sequence; leave the length of a sequence out")
        for network, layer, kind in (("bert-large", "pooler.first", "first_token"), ("mixtral-8x7b", "h0.router", "route_tokens")):
            self.check(run("train", "--model", network, "--data", "synthetic"),
                       f"--model: layer '{layer}' is of kind {kind}, which is not trained yet; predict, scale and replay take such networks")
        self.check(run("train", "--model", "googlenet", "--data", "synthetic"),
                   "--model: layer 'loss1/loss' is a loss and not the last layer; end the network there: training takes one loss")
        self.check(predict("--strategy", "rign"), "--strategy: unknown strategy 'rign'; did you mean 'ring'?")
        nccl = ("show", "nccl", "--cluster", "h200-ndr", "--ranks", "8")
        self.check(run(*nccl, "--nccl", "2.21"), "--nccl: unknown NCCL version '2.21'; did you mean '2.20'?")
        self.check(predict("--nccl", "2.27"), "--nccl: unknown NCCL version '2.27'; did you mean '2.28'?")
        self.check(run(*nccl, "--sizes", "1MiB-1KiB"), "--sizes: '1MiB-1KiB' goes down; write 1KiB-1MiB")
        self.check(run(*nccl, "--sizes", "0 B"), "--sizes: a message of 0 B; choose 1 B to 1 PB")
        self.check(run(*nccl, "--cpu", "arm"), "--cpu: unknown processor 'arm'; known: intel, amd")
        self.check(predict("--engine", "flaw"), "--engine: unknown engine 'flaw'; did you mean 'flow'?")
        self.check(predict("--engine", "step", "--streams", "4"),
                   "the step engine does not see that buckets in flight share links; choose --engine flow, or --streams 1")
        self.check(predict("--profile", "jizhi-p4"), "--profile: unknown profile 'jizhi-p4'; did you mean 'jizhi-p40'?")
        self.check(predict(model="no-such.yaml"), "no-such.yaml: no such file; give the path of a file that exists")
        self.check(predict(model=str(EXAMPLES) + "/"), f"{EXAMPLES}/: this is a directory; give the path of a file")
        self.check(run("predic"), "unknown command 'predic'; did you mean 'predict'?")
        self.check(run("predict"), "--model is missing; give it, as in --model resnet50")
        self.check(run("verify", "--schedule", "hierarchical", "--ranks", "24", "--group", "5"),
                   "--group: group size 5 does not divide 24 ranks; choose one of 1, 2, 3, 4, 6, 8, 12, 24")
        self.check(run("show", "schedule", "rings", "--ranks", "4"), "unknown schedule 'rings'; did you mean 'ring'?")
        self.check(run("export", "ring", "--ranks", "4"),
                   "--format is missing; give goal (LogGOPSim, ATLAHS), msccl (MSCCL XML) or svg (a picture)")
        self.check(run("export", "ring", "--ranks", "4", "--format", "gaol"), "--format: unknown format 'gaol'; did you mean 'goal'?")
        self.check(run("export", "rign", "--ranks", "4", "--format", "goal"), "unknown schedule 'rign'; did you mean 'ring'?")
        self.check(run("export", "ring", "--format", "goal"), "--ranks is missing; give it, as in --ranks 24")
        self.check(run("export", "ring", "--ranks", "4", "--format", "goal", "--size", "10B"),
                   "--size: 10B are no whole elements of 4 bytes; give a multiple of 4 B, as in 64 MiB")
        self.check(run("export", "ring", "--ranks", "4", "--format", "svg", "--size", "8B"),
                   "--size: a file of format svg holds neither bytes nor times; leave it out")
        self.check(run("export", "ring", "--ranks", "65", "--format", "svg"), "a picture of 65 ranks is not legible; draw at most 64")
        self.check(run("export", "ring", "--ranks", "1", "--format", "msccl"), "one rank exchanges nothing; give --ranks 2 or more")
        self.check(run("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "64-8"), "--ranks: '64-8' goes down; write 8-64")

    def test_a_yaml_fault_names_file_line_and_column(self):
        with tempfile.TemporaryDirectory() as folder:
            faults = {
                "cluster: a\nnodes: 2\nranks_per_node: 8\ndevice: v100\nintra: nvlink2\nnic: {base: roce-25g, bandwidth: -25 Gbit/s}\n":
                    "c.yaml:6:34: bandwidth: '-25 Gbit/s' is negative; a bandwidth is at least 0",
                "cluster: a\nnodes: 2\nranks_per_node: 8\ndevice: v100\nintra: nvlink2\nnic: {base: roce-25g, bandwidth: 25}\n":
                    "c.yaml:6:34: bandwidth: '25' has no unit; write one of B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, bit/s, kbit/s, "
                    "Mbit/s, Gbit/s, Tbit/s, as in 100 Gbit/s",
                "": "c.yaml:1:1: the file is empty; write a description (docs/formats.md)",
            }
            for text, message in faults.items():
                pathlib.Path(folder, "c.yaml").write_text(text)
                self.check(run("predict", "--model", "resnet50", "--cluster", "c.yaml", "--ranks", "8", cwd=folder), message)
            pathlib.Path(folder, "n.yaml").write_text(
                "network: n\ninput: [3, 8, 8]\nlayers:\n  - {name: a, kind: relu, input: b}\n  - {name: b, kind: relu, input: a}\n")
            self.check(run("show", "network", "n.yaml", cwd=folder),
                       "n.yaml:4:5: layers read each other in a circle: a reads b reads a; a network has no loops")
            pathlib.Path(folder, "n.yaml").write_text("network: n\ninput: [3, 8, 8]\nlayers: []\n")
            self.check(run("show", "network", "n.yaml", cwd=folder), "n.yaml:3:9: network 'n' is empty; give it at least one layer")

    def test_random_bytes_do_no_harm(self):
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(20):
                data = bytes((seed * 7919 + i * i * 31) % 256 for i in range(500))
                pathlib.Path(folder, "x.yaml").write_bytes(data)
                for words in (("show", "network", "x.yaml"), ("show", "cluster", "x.yaml")):
                    result = subprocess.run([PACELINE, *words], capture_output=True, cwd=folder, timeout=HANG_S)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertEqual(result.stderr.count(b"\n"), 1)


class Show(unittest.TestCase):
    def test_network_json(self):
        document = json.loads(run("show", "network", "resnet50", "--json").stdout)
        self.assertEqual(document["parameters"], 25557032)
        self.assertEqual(document["parameter_tensors"], 161)
        self.assertEqual(document["forward_flops"], 2 * 4089184256)
        self.assertEqual(document["parameters"], sum(layer["parameters"] for layer in document["layers"]))
        self.assertEqual(document["backward_flops"],
                         sum(layer["data_gradient_flops"] + layer["weight_gradient_flops"] for layer in document["layers"]))

    def test_the_catalogue_says_what_devices_links_and_clusters_are(self):
        catalog = json.loads(run("show", "catalog", "--json").stdout)
        described = {entry["name"]: entry["description"] for key in ("devices", "links", "clusters", "prices") for entry in catalog[key]}
        self.assertTrue(described["v100"].endswith("[GPU, 2017, 300 W]"))
        self.assertTrue(described["titan-rtx"].endswith("[GPU, 2018, geforce cooling, 280 W]"))
        self.assertTrue(described["xeon-8160"].endswith("[processor, 2017, 150 W]"))
        self.assertTrue(described["tcp-10g"].endswith("[ethernet, TCP]"))
        self.assertTrue(described["aws-p5-48xlarge"].endswith("55.04 USD/h"))

    def test_clusters_stand_by_the_year_of_their_devices(self):
        clusters = json.loads(run("show", "clusters", "--json").stdout)["clusters"]
        years = [cluster["year"] for cluster in clusters]
        self.assertEqual(years, sorted(years))
        self.assertEqual({cluster["name"] for cluster in clusters},
                         {entry["name"] for entry in json.loads(run("show", "catalog", "--json").stdout)["clusters"]})
        table = run("show", "clusters").stdout
        self.assertLess(table.index("goyal-p100"), table.index("gb300-nvl72"))

    def test_every_name_of_the_catalogue_can_be_shown(self):
        catalog = json.loads(run("show", "catalog", "--json").stdout)
        for entry in catalog["networks"]:
            self.assertEqual(run("show", "network", entry["name"]).returncode, 0)
        for entry in catalog["clusters"]:
            text = run("show", "cluster", entry["name"], "--json")
            self.assertTrue(all(f["source"] for f in json.loads(text.stdout)["figures"]))
        for entry in catalog["schedules"]:
            self.assertEqual(run("show", "schedule", entry["name"], "--ranks", "12").returncode, 0)
        for entry in catalog["profiles"]:
            json.loads(run("show", "profile", entry["name"]).stdout)

    def test_verify_json(self):
        document = json.loads(run("verify", "--schedule", "hierarchical", "--ranks", "24", "--group", "8", "--json").stdout)
        self.assertIs(document["proved"], True)
        self.assertEqual(document["steps"], 32)

    def test_plan_lists_every_bucket(self):
        words = ("--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "1024", "--strategy", "hybrid")
        buckets = json.loads(run("predict", *words, "--json").stdout)["strategies"][0]["buckets"]
        lines = run("show", "plan", *words, "--wide").stdout.splitlines()
        self.assertIn(f"{buckets} buckets", lines[0])
        self.assertEqual(len([line for line in lines if re.match(r"^ *\d+ +\d+ ", line)]), buckets)

    def test_nccl_marks_its_choice(self):
        words = ("show", "nccl", "--cluster", "h200-ndr", "--ranks", "64", "--sizes", "1KiB,64 KiB,1GiB")
        document = json.loads(run(*words, "--json").stdout)
        self.assertEqual(document["schema"], "paceline.nccl/1")
        self.assertEqual(document["timed_by"], "NCCL 2.28.3-1's own tuning model (tuning.cc)")
        self.assertEqual([row["bytes"] for row in document["sizes"]], [1024, 65536, 1 << 30])
        for row in document["sizes"]:
            self.assertEqual(len(row["times"]), 6)
            self.assertEqual(row["choice"]["time_s"], min(entry["time_s"] for entry in row["times"]))
        self.assertEqual(document["sizes"][0]["choice"]["algorithm"], "tree")
        self.assertEqual(document["sizes"][2]["choice"]["protocol"], "Simple")
        text = run(*words).stdout
        self.assertEqual(len(re.findall(r"\* \d", text)), 3)
        self.assertIn("by NCCL 2.28.3-1's own tuning model (tuning.cc)", text)
        one = run("show", "nccl", "--cluster", "h200-ndr", "--ranks", "1")
        self.assertIn("one rank: nothing to do", one.stdout)
        self.assertIsNone(json.loads(run("show", "nccl", "--cluster", "h200-ndr", "--ranks", "1", "--json").stdout)["sizes"][0]["choice"])

    def test_nccl_takes_versions_processors_and_ranges(self):
        words = ("show", "nccl", "--cluster", "h200-ndr", "--ranks", "16", "--json")
        old = json.loads(run(*words, "--nccl", "2.20").stdout)
        self.assertEqual(old["tables"]["version"], "2.20.3-1")
        amd = json.loads(run(*words, "--cpu", "amd").stdout)
        self.assertNotEqual(amd["algorithms"], json.loads(run(*words).stdout)["algorithms"])
        sizes = json.loads(run(*words, "--sizes", "1KiB-20KiB").stdout)["sizes"]
        self.assertEqual([row["bytes"] for row in sizes], [1024, 4096, 16384, 20480])

    def test_nccl_is_timed_by_its_own_model(self):
        row = json.loads(predict("--json", "--strategy", "nccl").stdout)["strategies"][0]
        self.assertEqual(row["timed_by"], "NCCL 2.28.3-1's own choice (tuning.cc), at the links' rates and at latencies as measured")
        self.assertLess(row["iteration_low_s"], row["iteration_high_s"])
        self.assertEqual(json.loads(predict("--json", "--strategy", "ring").stdout)["strategies"][0]["timed_by"], "step engine")
        text = predict("--strategy", "ring,nccl").stdout
        self.assertRegex(text, r"(?m)^\* nccl ")
        self.assertIn("nccl: all-reduces timed by NCCL 2.28.3-1's own choice (tuning.cc), at the links' rates and at latencies as measured\n", text)
        old = predict("--json", "--strategy", "nccl", "--nccl", "2.20")
        self.assertIn("NCCL 2.20.3-1's own choice", json.loads(old.stdout)["strategies"][0]["timed_by"])
        plan = run("show", "plan", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "64", "--strategy", "nccl").stdout
        self.assertIn("nccl (timed by its own model)", plan)
        self.assertIn("not by an engine of ours", plan)
        scale = run("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "8-64", "--strategy", "ring,nccl").stdout
        self.assertIn("nccl: all-reduces timed by", scale)

    def test_nccl_is_for_gpus(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cpus.yaml"
            path.write_text("cluster: cpus\nnodes: 4\nranks_per_node: 2\ndevice: xeon-8160\nintra: pcie3-x16\nnic: tcp-10g\n")
            words = ("predict", "--model", "resnet50", "--cluster", str(path), "--ranks", "8", "--json")
            self.assertNotIn("nccl", [row["name"] for row in json.loads(run(*words).stdout)["strategies"]])
            refused = run(*words, "--strategy", "nccl")
            self.assertEqual(refused.returncode, 2)
            self.assertIn("NCCL does not run on xeon-8160; choose another strategy", refused.stderr)

    def test_help_everywhere(self):
        for words in ((), ("predict",), ("scale",), ("show",), ("show", "network"), ("show", "nccl"), ("verify",), ("time",), ("export",), ("reproduce",), ("agree",), ("doctor",), ("manual",), ("completion",)):
            result = run(*words, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("Usage", result.stdout)
        self.assertRegex(run("--version").stdout, r"^paceline \d+\.\d+\.\d+\nwith(out)? CUDA.*, with(out)? SimGrid.*\n$")


class Export(unittest.TestCase):
    def export(self, algorithm, format, *words, ranks="8"):
        result = run("export", algorithm, "--ranks", ranks, "--format", format, *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def test_every_schedule_has_every_format(self):
        for entry in json.loads(run("show", "catalog", "--json").stdout)["schedules"]:
            goal = self.export(entry["name"], "goal", "--size", "4 kB")
            self.assertEqual(re.findall(r"^rank (\d+) \{$", goal, re.M), [str(rank) for rank in range(8)])
            self.assertEqual(len(re.findall(r": send \d+b to \d+ tag \d+$", goal, re.M)),
                             len(re.findall(r": recv \d+b from \d+ tag \d+$", goal, re.M)))
            if entry["name"] in ("reduce", "chain-reduce", "gather", "scatter", "neighbour-exchange", "bruck-all-to-all"):
                refused = run("export", entry["name"], "--ranks", "8", "--format", "msccl")
                self.assertEqual((refused.returncode, refused.stderr.count("\n")), (2, 1), refused.stderr)
                self.assertRegex(refused.stderr, "MSCCL has no|sends blocks by way of other ranks")
            else:
                algo = xml.etree.ElementTree.fromstring(self.export(entry["name"], "msccl"))
                self.assertEqual((algo.tag, algo.get("ngpus"), len(algo.findall("gpu"))), ("algo", "8", 8))
                self.assertTrue(algo.get("name").startswith(entry["name"]))
            picture = xml.etree.ElementTree.fromstring(self.export(entry["name"], "svg"))
            self.assertEqual(picture.tag, "{http://www.w3.org/2000/svg}svg")

    def test_the_size_is_of_the_bucket(self):
        self.assertIn("send 131072b to 1 tag 0\n", self.export("ring", "goal", "--size", "1 MiB"))
        self.assertIn("send 8388608b to 1 tag 0\n", self.export("ring", "goal"))

    def test_a_cluster_says_what_reductions_cost(self):
        self.assertNotIn("calc", self.export("ring", "goal"))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "after.yaml")
            path.write_text("cluster: after\nnodes: 1\nranks_per_node: 8\nintra: pcie3-x16\n"
                            "device: {base: p40, reduction: after-receiving}\n")
            text = self.export("ring", "goal", "--size", "1 MiB", "--cluster", str(path))
        self.assertEqual(text.count(": calc 1515\n"), 7 * 8)  # 3 x 131072 B at 0.75 x 346 GB/s

    def test_a_file_is_what_is_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            for format in ("goal", "msccl", "svg"):
                path = pathlib.Path(folder, "out")
                self.assertEqual(self.export("torus-2d", format, "--output", str(path)), "")
                self.assertEqual(path.read_text(), self.export("torus-2d", format))
                self.assertEqual(os.listdir(folder), ["out"])

    def test_what_cannot_be_written_fails_with_nothing_left(self):
        with tempfile.TemporaryDirectory() as folder:
            for path, code, problem in ((folder, 2, "--output: "), (folder + "/no/such/folder/f", 2, "--output: "), ("/dev/full", 1, "cannot write ")):
                result = run("export", "ring", "--ranks", "4", "--format", "goal", "--output", path)
                self.assertEqual(result.returncode, code)
                self.assertRegex(result.stderr, rf"^paceline: {problem}[^\n]*\n$")
            kept = pathlib.Path(folder, "kept")
            kept.write_text("old")
            self.assertEqual(run("export", "ring", "--ranks", "65", "--format", "svg", "--output", str(kept), "--force").returncode, 2)
            self.assertEqual(kept.read_text(), "old")
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run(
                [PACELINE, "export", "ring", "--ranks", "64", "--format", "goal", "--output", folder + "/f"],
                capture_output=True, text=True, timeout=HANG_S,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
            self.assertEqual((result.returncode, result.stderr),
                             (1, f"paceline: cannot write {folder}/f: File too large\n"))
            self.assertEqual(os.listdir(folder), [])
        with open("/dev/full", "w") as full:
            result = run("export", "ring", "--ranks", "4", "--format", "svg", stdout=full)
        self.assertEqual((result.returncode, result.stderr), (1, "paceline: cannot write to standard output: No space left on device\n"))


class Completion(unittest.TestCase):
    def test_bash_completes_commands_options_and_names(self):
        script = run("completion", "bash").stdout
        def complete(*words):
            quoted = " ".join(f"'{w}'" for w in words)
            text = script + f'\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _paceline; echo "${{COMPREPLY[@]}}"\n'
            return subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=HANG_S).stdout.split()

        self.assertEqual(complete("paceline", "pre"), ["predict"])
        self.assertEqual(complete("paceline", "predict", "--the"), ["--theta"])
        self.assertIn("jizhi-p40", complete("paceline", "predict", "--cluster", "ji"))
        self.assertEqual(complete("paceline", "show", "net"), ["network"])
        self.assertIn("executor", complete("paceline", "predict", "--engine", "ex"))
        readme = str(SOURCE / "README")
        for option in ("--timeline", "--plan-out", "--checkpoint", "--metrics", "--profile-out", "--out"):
            self.assertEqual(complete("paceline", "predict", option, readme), [readme + ".md"])


class Agreement(unittest.TestCase):
    def agree(self, *words):
        result = run("agree", *words)
        if result.returncode == 2 and "SimGrid" in result.stderr:
            self.assertRegex(result.stderr, r"^paceline: .*\n$")
            self.skipTest(result.stderr)
        return result

    def test_every_engine_is_in_the_table(self):
        result = self.agree("--ranks", "4,8", "--sizes", "1MiB", "--schedule", "ring,direct-exchange", "--topology", "flat,nic-8")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0].split(), ["schedule", "topology", "ranks", "size", "links", "step", "flow", "SimGrid", "flow", "vs", "SimGrid"])
        self.assertEqual([line.split()[:3] for line in lines[1:9]],
                         [[s, t, p] for s in ("ring", "direct-exchange") for t in ("flat", "nic-8") for p in ("4", "8")])
        self.assertIn("  nic-8         8 ranks behind one NIC", result.stdout)
        self.assertRegex(result.stdout, r"\n8 cells, 0 apart; worst .*\nSimGrid 3\.32\.\d+; \d+\.\d s, measured, for all of it\n$")
        self.assertIn("\nAll times are predicted, by three engines. ", result.stdout)

    def test_json_has_what_the_table_has(self):
        document = json.loads(self.agree("--json", "--ranks", "16", "--sizes", "64KiB,1MiB", "--schedule", "ring,hierarchical").stdout)
        self.assertEqual(document["schema"], "paceline.agreement/1")
        topologies = [line.split()[0] for line in run("agree", "--topology", "help").stdout.splitlines()]
        self.assertEqual(list(document["topologies"]), topologies)
        self.assertEqual(len(document["cells"]), 2 * len(topologies) * 2)
        for cell in document["cells"]:
            self.assertTrue(cell["agrees"], cell)
            self.assertLessEqual(cell["flow_difference"], cell["tolerance"])
            self.assertAlmostEqual(cell["flow_s"], cell["simgrid_s"], delta=5e-3 * cell["simgrid_s"])
        shared = {cell["shares_links"] for cell in document["cells"]}
        self.assertEqual(shared, {False, True})
        self.assertEqual(document["cells_apart"], 0)

    def test_input_is_checked(self):
        for words, message in ((("--topology", "flit"), "--topology: unknown topology 'flit'; did you mean 'flat'?"),
                               (("--schedule", "rin"), "--schedule: unknown schedule 'rin'; did you mean 'ring'?"),
                               (("--ranks", "1"), "--ranks: "), (("--ranks", "257"), "--ranks: "), (("--sizes", "4"), "--sizes: ")):
            result = run("agree", *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)

    def test_without_simgrid_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(PACELINE, folder)
            result = subprocess.run([alone, "agree", "--ranks", "4"], capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertRegex(result.stderr, r"^paceline: the SimGrid engine is not installed: [^\n]*\n$")


class Reproduction(unittest.TestCase):
    def test_json_has_the_rows(self):
        document = json.loads(run("reproduce", "jizhi", "--json").stdout)
        self.assertEqual(len(document["rows"]), 14)
        for row in document["rows"]:
            for key in ("source", "what", "provenance", "published", "ours", "relative_error"):
                self.assertIn(key, row)
            self.assertAlmostEqual(row["relative_error"], row["ours"] / row["published"] - 1, places=12)
            large = abs(row["relative_error"]) > 0.1
            self.assertFalse(large and not row["note"], f"{row['what']} is off by more than 10 % without a word why")


class Readme(unittest.TestCase):
    def test_every_console_block_is_what_the_command_prints(self):
        text = (SOURCE / "README.md").read_text()
        blocks = re.findall(r"```console\n\$ paceline ([^\n]*)\n(.*?)```", text, re.S)
        self.assertGreaterEqual(len(blocks), 2)
        for words, expected in blocks:
            self.assertEqual(run(*words.split()).stdout, expected, f"README: paceline {words}")


if __name__ == "__main__":
    unittest.main()
