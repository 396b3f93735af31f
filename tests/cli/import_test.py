"""paceline calibrate import, end to end: other tools' output to profiles that predict takes."""

import gzip
import json
import os
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

from paceline import EXAMPLES, SOURCE, run


class CalibrationImport(unittest.TestCase):
    GOLDEN = SOURCE / "tests" / "golden" / "imports"

    def test_every_golden_file_is_read_and_its_format_found(self):
        """Those that do not say on how many nodes their ranks were are asked for them, and for nothing else."""
        silent = set()
        for path, words in ((self.GOLDEN / "nccl_tests", ()), (self.GOLDEN / "osu", ("--ranks", "4")), (self.GOLDEN / "imb", ()),
                            (self.GOLDEN / "torch_bench", ()), (self.GOLDEN / "horovod", ()), (self.GOLDEN / "kineto", ("--model", str(EXAMPLES / "tiny-net.yaml"))),
                            (self.GOLDEN / "pytorch", None)):
            files = sorted(path.iterdir())
            self.assertGreaterEqual(len(files), 1, path)
            for file in files:
                if words is None:
                    network = "tiny-encoder.yaml" if "transformer" in file.name else "tiny-net.yaml"
                    words_of_file = () if "shapes" in file.name else ("--model", str(EXAMPLES / network))
                else:
                    words_of_file = () if "latency" in file.name or "bw" in file.name else words
                result = run("calibrate", "import", str(file), *words_of_file)
                if "it does not say on how many nodes its ranks were; give --intra for one node, or --nodes N" in result.stderr:
                    silent.add(f"{path.name}/{file.name}")
                    result = run("calibrate", "import", str(file), *words_of_file, "--nodes", "2")
                self.assertEqual(result.returncode, 0, f"{file}: {result.stderr}")
                self.assertEqual(result.stderr, "")
                self.assertTrue("residual" in result.stdout or "iterations" in result.stdout, file)
        said = {f"nccl_tests/{name}" for name in ("2.13-without-marks-and-devices.txt", "rccl-2024-json-lines.json")}
        self.assertEqual({name for name in silent if name.startswith("nccl_tests")}, said)
        self.assertEqual(len([name for name in silent if name.startswith("osu")]), len(list((self.GOLDEN / "osu").iterdir())))
        self.assertLessEqual({"kineto/2.5-cuda.json", "horovod/0.28-closed.json", "imb/2021.7-several.txt", "torch_bench/h200-32-ranks.txt"}, silent)

    def test_a_curve_is_fitted_plotted_and_written(self):
        with tempfile.TemporaryDirectory() as folder:
            profile, plot = os.path.join(folder, "p.json"), os.path.join(folder, "fit.svg")
            result = run("calibrate", "import", str(self.GOLDEN / "nccl_tests" / "2.13-half-two-nodes.txt"), "--cluster", "jizhi-p40",
                         "--name", "lab", "--out", profile, "--plot", plot)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("all_reduce_perf, in place, half sum: 25 samples of 25 sizes", result.stdout)
            self.assertIn("beware: at 2.828 MiB the fit jumps by -37 %", result.stdout)
            self.assertRegex(result.stdout, r"\n *size +measured +calibrated +error")
            self.assertRegex(result.stdout, r"\ncalibrated, with 90 % intervals:\n *from +alpha")
            self.assertEqual(xml.etree.ElementTree.parse(plot).getroot().tag, "{http://www.w3.org/2000/svg}svg")
            document = json.loads(pathlib.Path(profile).read_text())
            self.assertEqual((document["schema"], document["name"], document["cluster"]), ("paceline.profile/1", "lab", "jizhi-p40"))
            curve = document["curves"][0]
            self.assertEqual((curve["kind"], curve["library"], curve["wire_type"], curve["ranks"]), ("all-reduce", "nccl", "fp16", 16))
            self.assertEqual(curve["pieces"][0]["alpha_s"]["provenance"], "calibrated")
            self.assertIn("2.13-half-two-nodes.txt (nccl-tests", curve["source"])
            shown = run("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "16", "--strategy", "ring", "--profile", profile)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))

    def predicted(self, folder, file, strategy, *arguments, words=()):
        """The row of the strategy, from the profile that is imported from the file, and the table."""
        profile = os.path.join(folder, "p.json")
        result = run("calibrate", "import", str(self.GOLDEN / file), "--cluster", "jizhi-p40", "--out", profile, *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        command = ("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--profile", profile, "--strategy", strategy, *arguments)
        shown = run(*command, "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return json.loads(shown.stdout)["strategies"][0], run(*command).stdout

    def test_a_trace_that_gzip_has_packed_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = self.GOLDEN / "kineto" / "2.5-named.json"
            packed = pathlib.Path(folder) / "trace.json.gz"
            packed.write_bytes(gzip.compress(trace.read_bytes()))
            words = ("--model", str(EXAMPLES / "tiny-net.yaml"))
            plain, found = (run("calibrate", "import", str(path), *words) for path in (trace, packed))
            self.assertEqual((found.returncode, found.stderr), (0, ""))
            self.assertEqual(found.stdout.replace("trace.json.gz", trace.name), plain.stdout)

    def test_a_scripts_output_is_a_curve_for_each_number_of_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            profile = os.path.join(folder, "p.json")
            result = run("calibrate", "import", str(self.GOLDEN / "nccl_tests" / "2.17-several-runs-kubectl.txt"), "--out", profile)
            self.assertEqual(result.returncode, 0, result.stderr)
            curves = json.loads(pathlib.Path(profile).read_text())["curves"]
            self.assertEqual([(curve["kind"], curve["ranks"], curve["between_nodes"]) for curve in curves],
                             [("all-reduce", 8, False), ("all-gather", 8, False), ("all-reduce", 16, True)])
            shown = run("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "16", "--profile", profile, "--strategy", "nccl", "--json")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertIn("its calibrated curve of fp32 (2.17-several-runs-kubectl.txt", json.loads(shown.stdout)["strategies"][0]["timed_by"])

    def test_curves_of_other_collectives_time_them_and_no_job(self):
        with tempfile.TemporaryDirectory() as folder:
            profile = os.path.join(folder, "p.json")
            words = ("--cluster", "h100-ndr", "--ranks", "16", "--profile", profile)
            self.assertEqual(run("calibrate", "import", str(self.GOLDEN / "nccl_tests" / "2.17-all-gather-two-nodes.txt"), "--out", profile).returncode, 0)
            columns = [c["name"] for c in json.loads(run("time", "nccl", "--collective", "all-gather", *words, "--json").stdout)["columns"]]
            self.assertEqual(columns, ["nccl", "nccl curve"])
            # 35 us + 64 MiB at 0.0026 ns, with 1 % of noise.
            rows = json.loads(run("time", "nccl", "--collective", "all-gather", "--size", "64MiB", *words, "--json").stdout)["sizes"]
            self.assertAlmostEqual(rows[0]["times"][1]["time_s"] / (35e-6 + 2**26 * 0.0026e-9), 1, delta=0.02)
            self.assertEqual([c["name"] for c in json.loads(run("time", "nccl", *words, "--json").stdout)["columns"]], ["nccl"])
            job = json.loads(run("predict", "--model", "alexnet", *words, "--strategy", "nccl", "--json").stdout)
            self.assertIn("NCCL 2.28", job["strategies"][0]["timed_by"])

    def test_what_is_no_output_of_a_tool_is_refused_in_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, content, why in (("empty", b"", "there is nothing in this file"), ("utf-16", "# size".encode("utf-16"), "this text is UTF-16"),
                                       ("binary", bytes(range(256)) * 40, "the output of no tool"), ("t.json.gz", b"\x1f\x8b\x08\0" * 9, "the gzip stream is damaged"),
                                       ("cut.gz", gzip.compress(b"# size" * 1000)[:-9], "the gzip stream ends early"), ("nothing.gz", gzip.compress(b""), "there is nothing in this file"),
                                       ("deep.json", b'{"traceEvents": ' + b"[" * 100000, "an event that is no object"),
                                       ("2018.log", b":::MLPv0.5.0 ncf 1538678136 (a.py:1) run_start\n", "2018.log:1: this is a log of MLPerf 0.5")):
                path = pathlib.Path(folder) / name
                path.write_bytes(content)
                words = ("--model", str(EXAMPLES / "tiny-net.yaml")) if name == "deep.json" else ()
                result = run("calibrate", "import", str(path), *words, "--out", os.path.join(folder, "p.json"))
                self.assertEqual((result.returncode, result.stdout), (2, ""), name)
                self.assertRegex(result.stderr, r"\A[^\n]*\n\Z")
                self.assertIn(why, result.stderr)
                self.assertFalse(os.path.exists(os.path.join(folder, "p.json")))
            self.assertIn("this is a directory", run("calibrate", "import", folder).stderr)

    def test_an_imported_all_reduce_times_nccl_and_predict_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            file = "nccl_tests/2.13-half-two-nodes.txt"
            source = "(2.13-half-two-nodes.txt (nccl-tests, all_reduce_perf, in place, half sum))"
            row, table = self.predicted(folder, file, "nccl", "--ranks", "16", "--theta", "8MiB")
            self.assertEqual(row["timed_by"], f"its calibrated curve {source}")
            self.assertIn(f"nccl: all-reduces timed by its calibrated curve {source}\n", table)
            # Buckets of 8 MiB or more at 190 us + 0.0215 ns a byte, which the file was written with.
            gradients = 25557032 * 2
            # Packing and unpacking add less than a millisecond.
            all_reduces = row["buckets"] * 190e-6 + gradients * 0.0215e-9
            self.assertGreater(row["communication_s"], 0.97 * all_reduces)
            self.assertLess(row["communication_s"], 1.03 * all_reduces + 1e-3)
            self.assertLess(row["iteration_low_s"], row["iteration_high_s"])
            more, _ = self.predicted(folder, file, "nccl", "--ranks", "64", "--theta", "8MiB")
            self.assertEqual(more["timed_by"], f"its calibrated curve of 16 ranks, scaled to 64 {source}")
            self.assertGreater(more["communication_s"], row["communication_s"])

    def test_a_curve_of_one_number_of_ranks_times_the_points_of_scale(self):
        """The points say for themselves what timed them, whatever times the first one."""
        with tempfile.TemporaryDirectory() as folder:
            source = "(2.13-half-two-nodes.txt (nccl-tests, all_reduce_perf, in place, half sum))"
            job = ("--model", "resnet50", "--cluster", "jizhi-p40", "--strategy", "nccl", "--profile", str(pathlib.Path(folder) / "p.json"))
            row, _ = self.predicted(folder, "nccl_tests/2.13-half-two-nodes.txt", "nccl", "--ranks", "16")
            predicted = json.loads(run("predict", *job, "--ranks", "16", "--baseline", "8", "--json").stdout)["strategies"][0]
            points = json.loads(run("scale", *job, "--ranks", "8,16,32,64", "--json").stdout)["points"]
            self.assertEqual(points[1]["strategies"][0], predicted)
            self.assertEqual(predicted["iteration_s"], row["iteration_s"])
            timed_by = [point["strategies"][0]["timed_by"] for point in points]
            self.assertIn("NCCL 2.28.3-1's own choice", timed_by[0])
            self.assertEqual(timed_by[1], f"its calibrated curve {source}")
            text = run("scale", *job, "--ranks", "8,16,32,64").stdout
            notes = [line for line in text.splitlines() if line.startswith("nccl: all-reduces")]
            self.assertEqual(notes, [f"nccl: all-reduces timed by {timed_by[0]} (8 ranks)",
                                     f"nccl: all-reduces timed by its calibrated curve {source} (16 ranks)",
                                     f"nccl: all-reduces timed by its calibrated curve of 16 ranks, scaled {source} (32, 64 ranks)"])
            # Nothing differs: no numbers of ranks.
            text = run("scale", *job, "--ranks", "32,64").stdout
            self.assertIn(f"nccl: all-reduces timed by its calibrated curve of 16 ranks, scaled {source}\n", text)

    def test_an_imported_all_reduce_of_osu_times_open_mpi(self):
        with tempfile.TemporaryDirectory() as folder:
            row, table = self.predicted(folder, "osu/5.6.2-allreduce.txt", "open-mpi", "--ranks", "16", "--wire", "fp32",
                                        words=("--ranks", "16", "--nodes", "4", "--wire", "fp32"))
            self.assertIn("its calibrated curve of mpi, extrapolated beyond 1 MiB (5.6.2-allreduce.txt (OSU", row["timed_by"])
            self.assertIn("open-mpi: all-reduces timed by its calibrated curve of mpi", table)
            # Without such a curve, nothing is known of it.
            refused = run("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "16", "--strategy", "open-mpi")
            self.assertEqual(refused.returncode, 2)
            self.assertIn("the profile does not know the library's own all-reduce", refused.stderr)

    def test_layers_of_a_trace_are_what_predict_takes(self):
        network = str(EXAMPLES / "tiny-net.yaml")
        with tempfile.TemporaryDirectory() as folder:
            profile = os.path.join(folder, "p.json")
            trace = str(self.GOLDEN / "kineto" / "2.5-named.json")
            result = run("calibrate", "import", trace, "--model", network, "--batch", "16", "--precision", "fp32", "--out", profile)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"\n10 of 10 layers of .*, measured:\n")
            self.assertRegex(result.stdout, r"together +565 us +1.023 ms")
            layers = json.loads(pathlib.Path(profile).read_text())["layers"]
            self.assertEqual(len(layers), 10)
            self.assertEqual((layers[0]["layer"], layers[0]["forward_s"]["provenance"]), ("conv1", "measured"))
            shown = run("predict", "--model", network, "--cluster", str(EXAMPLES / "lab.yaml"), "--ranks", "2", "--batch", "16", "--precision", "fp32",
                        "--strategy", "ring", "--profile", profile, "--json")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            row = json.loads(shown.stdout)["strategies"][0]
            self.assertIn("10 of 10 layers as calibrated in profile 2.5-named", row["compute_source"])
            self.assertAlmostEqual(row["compute_s"], 565e-6 + 1023e-6, delta=50e-6)

    def test_another_network_than_the_traced_one_is_said(self):
        trace = str(self.GOLDEN / "kineto" / "2.5-named.json")
        self.assertIn("note: layers that no record_function of the trace names: 19 of 24", run("calibrate", "import", trace, "--model", "alexnet").stdout)
        unnamed = str(self.GOLDEN / "kineto" / "1.8-operators.json")
        self.assertIn("note: layers of kind convolution are left out: the network has 13, an iteration of the trace 2",
                      run("calibrate", "import", unnamed, "--model", "vgg16").stdout)

    def test_a_trace_of_debians_pytorch_is_read(self):
        network = str(EXAMPLES / "tiny-net.yaml")
        trace = self.GOLDEN / "pytorch" / "1.13-autograd-profiler.json"
        with tempfile.TemporaryDirectory() as folder:
            profile = os.path.join(folder, "p.json")
            result = run("calibrate", "import", str(trace), "--model", network, "--batch", "4", "--precision", "fp32", "--out", profile)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("1.13-autograd-profiler.json: torch.profiler without Kineto\n\n10 of 10 layers of tiny-net, 3 iterations, measured:", result.stdout)
            durations = sorted(event["dur"] for event in json.loads(trace.read_text())
                               if event["name"] == "autograd::engine::evaluate_function: AddmmBackward0")
            layers = {layer["layer"]: layer for layer in json.loads(pathlib.Path(profile).read_text())["layers"]}
            self.assertEqual(len(durations), 3)
            # TBackward0, which runs beside it, takes some microseconds.
            self.assertGreaterEqual(layers["fc"]["backward_s"]["value"], durations[1] * 1e-6 - 1e-12)
            self.assertLess(layers["fc"]["backward_s"]["value"], (durations[1] + 20) * 1e-6)
            self.assertEqual(layers["fc"]["backward_s"]["provenance"], "measured")

    def test_machines_become_clusters_that_the_command_takes(self):
        with tempfile.TemporaryDirectory() as folder:
            for file, words, nodes, device, intra, nic in (
                    ("nvidia_topo/525-a100-nic-legend.txt", ("--nodes", "4", "--device", "a100", "--nic", "infiniband-hdr"), 4, "a100", "nvlink3", "infiniband-hdr"),
                    ("nccl_topology/2.8-dgx1-v100.xml", ("--nodes", "2"), 2, "v100", "nvlink2-mesh", "infiniband-edr"),
                    ("nccl_log/2.21-h100-one-node-of-four.log", ("--device", "h100"), 4, "h100", "nvlink4", "infiniband-ndr")):
                cluster = os.path.join(folder, "cluster.yaml")
                result = run("calibrate", "import", str(self.GOLDEN / file), "--cluster-out", cluster, "--force", "--name", "lab", *words)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(pathlib.Path(cluster).read_text(), result.stdout)
                shown = run("show", "cluster", cluster, "--json")
                self.assertEqual(shown.returncode, 0, shown.stderr)
                document = json.loads(shown.stdout)
                self.assertEqual((document["nodes"], document["ranks_per_node"], document["device"]), (nodes, 8, device))
                self.assertEqual((document["intra"], document["nic"]), (intra, nic))
                predicted = run("predict", "--model", "resnet50", "--cluster", cluster, "--ranks", "16", "--strategy", "ring")
                self.assertEqual((predicted.returncode, predicted.stderr), (0, ""))

    def test_what_a_machine_does_not_say_is_left_to_fill_in(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster = os.path.join(folder, "cluster.yaml")
            result = run("calibrate", "import", str(self.GOLDEN / "nvidia_topo" / "550-pcie.txt"), "--cluster-out", cluster)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("note: to be filled in before this is a cluster: device, intra\n", result.stdout)
            shown = run("show", "cluster", cluster)
            self.assertEqual(shown.returncode, 2)
            self.assertIn("device", shown.stderr)

    def test_every_machine_of_the_golden_files_is_read(self):
        for folder in ("nvidia_topo", "nccl_topology", "nccl_log"):
            for file in sorted((self.GOLDEN / folder).iterdir()):
                result = run("calibrate", "import", str(file))
                self.assertEqual((result.returncode, result.stderr), (0, ""), file)
                self.assertRegex(result.stdout, r"\nranks_per_node: \d+\n", file)

    def test_an_mlperf_log_is_a_throughput_that_predict_matches(self):
        log = self.GOLDEN / "mlperf" / "0.7-resnet-blocks.log"
        with tempfile.TemporaryDirectory() as folder:
            profile = os.path.join(folder, "p.json")
            result = run("calibrate", "import", str(log), "--model", "resnet50", "--ranks", "128", "--out", profile)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("resnet, batch 3200: 20500 samples/s (90 %: ", result.stdout)
            self.assertIn("note: run_start to run_stop: ", result.stdout)
            row = json.loads(pathlib.Path(profile).read_text())["throughputs"][0]
            self.assertEqual((row["network"], row["batch_per_rank"], row["ranks"], row["precision"]), ("resnet50", 25, 128, "mixed"))
            self.assertEqual(row["samples_per_s"]["provenance"], "measured")
            shown = run("predict", "--model", "resnet50", "--cluster", "h200-ndr", "--ranks", "128", "--batch", "25", "--strategy", "fused-ring", "--profile", profile, "--json")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            predicted = json.loads(shown.stdout)["strategies"][0]
            self.assertAlmostEqual(25 * 128 / predicted["iteration_s"], row["samples_per_s"]["value"], delta=0.02 * row["samples_per_s"]["value"])
            for file in sorted((self.GOLDEN / "mlperf").iterdir()):
                read = run("calibrate", "import", str(file))
                self.assertEqual((read.returncode, read.stderr), (0, ""), file)
                self.assertIn("samples/s", read.stdout)
            refused = run("calibrate", "import", str(log), "--model", "resnet50", "--out", profile)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("it does not say on how many ranks the run was; give --ranks", refused.stderr)

    def test_a_trace_with_shapes_is_a_network_and_a_profile(self):
        trace = self.GOLDEN / "pytorch" / "2.5-shapes.json"
        with tempfile.TemporaryDirectory() as folder:
            network, profile = os.path.join(folder, "net.yaml"), os.path.join(folder, "p.json")
            result = run("calibrate", "import", str(trace), "--name", "traced", "--precision", "fp32", "--network-out", network, "--out", profile)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("11 of 11 layers of traced, 3 iterations, measured:", result.stdout)
            self.assertIn("note: 11 operators of forward became layers: ", result.stdout)
            layers = json.loads(pathlib.Path(profile).read_text())["layers"]
            self.assertEqual((len(layers), layers[0]["network"], layers[0]["batch_per_rank"]), (11, "traced", 4))
            shown = run("predict", "--model", network, "--cluster", str(EXAMPLES / "lab.yaml"), "--ranks", "2", "--batch", "4", "--precision", "fp32",
                        "--strategy", "ring", "--profile", profile, "--json")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertIn("11 of 11 layers as calibrated in profile traced", json.loads(shown.stdout)["strategies"][0]["compute_source"])

    def test_bad_files_are_one_line_and_exit_code_2(self):
        def golden(name):
            return (self.GOLDEN / name).read_text()

        json_run, topology = golden("nccl_tests/2.17-json-float-two-nodes.json"), golden("nccl_topology/2.21-dgx-a100.xml")
        matrix, mlperf = golden("nvidia_topo/550-pcie.txt"), golden("mlperf/0.7-resnet-blocks.log")
        cases = (
            ("cut.json", golden("pytorch/1.13-autograd-profiler.json")[:5000], "cut.json:1:5001: the JSON ends early; give a trace as the tool writes it"),
            ("branch.json", golden("pytorch/2.5-shapes.json").replace("aten::dropout", "aten::add"), "branch.json: aten::add: branches meet in it, and a trace does not say which; give --model"),
            ("size.json", json_run.replace('"size":1024', '"size":-1'), "size.json: results[0].size: -1 is not a whole number from 0 to 1000000000000000"),
            ("gather.json", json_run.replace("all_reduce_perf", "all_gather_perf"), "gather.json: busbw is 1.875 algbw, and 0.938 in an all-gather over 16 ranks; give the output of one run as it is"),
            ("path.txt", matrix.replace("GPU1\tPHB", "GPU1\tPHX"), "path.txt:3: 'PHX' is no path; a cell is X, NV#, PIX, PXB, PHB, NODE or SYS"),
            ("rows.txt", matrix[:matrix.index("GPU6\tSYS")], "rows.txt: 6 of 8 rows of GPUs; give all of what nvidia-smi topo -m printed"),
            ("sm.xml", topology.replace('sm="80"', 'sm="eighty"'), "sm.xml:5:13: sm of <gpu> is 'eighty'; it is a whole number up to 1000"),
            ("cut.xml", topology[:4000], "this is not XML: start-end tags mismatch; give what NCCL wrote to NCCL_TOPO_DUMP_FILE"),
            ("rank.log", "\na:1:2 [0] NCCL INFO comm 0x1 rank 9 nranks 8 cudaDev 0 - Init COMPLETE\n", "rank.log:2: rank 9 of 8; ranks are counted from 0, and are up to 1000000"),
            ("none.log", "a:1:2 [0] NCCL INFO Bootstrap : Using eth0\n", "none.log: there is no rank of a communicator in this log; run with NCCL_DEBUG=INFO"),
            ("many.log", mlperf.replace('"value": 1281167', '"value": "many"'), "many.log:6: train_samples is no number; it is a whole number"),
            ("unended.log", "".join(line for line in mlperf.splitlines(True) if "run_stop" not in line), "unended.log: there is no run_stop; give the log of a run that has ended"))
        with tempfile.TemporaryDirectory() as folder:
            written = os.path.join(folder, "out")
            for name, text, problem in cases:
                source = pathlib.Path(folder, name)
                source.write_text(text)
                words = ("--network-out", written) if name == "branch.json" else ("--model", str(EXAMPLES / "tiny-net.yaml"))
                result = run("calibrate", "import", str(source), *words)
                self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), name)
                self.assertIn(problem, result.stderr)
                self.assertFalse(os.path.exists(written))

    def test_messages_give_predict_its_link(self):
        with tempfile.TemporaryDirectory() as folder:
            profile = os.path.join(folder, "p.json")
            run("calibrate", "import", str(self.GOLDEN / "osu" / "5.6.2-bw.txt"), "--nodes", "2", "--out", profile)
            link = json.loads(pathlib.Path(profile).read_text())["links"]["nic"]["bandwidth_bytes_per_s"]
            self.assertAlmostEqual(link["value"], 1.17e9, delta=0.02e9)

    def test_what_makes_no_profile_is_refused(self):
        title = "# OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)\n"
        rows = "".join(f"{2 ** i} {{}}\n" for i in range(2, 12))
        falling = "# OSU MPI Bandwidth Test v7.3\n# Size      Bandwidth (MB/s)\n" + "".join(f"{2 ** i} {2 ** i}\n" for i in range(12))
        trace = json.loads((self.GOLDEN / "kineto" / "2.5-named.json").read_text())
        for event in trace["traceEvents"]:
            if "dur" in event:
                event["dur"] = 1e17
        with tempfile.TemporaryDirectory() as folder:
            source, profile = pathlib.Path(folder, "in.txt"), pathlib.Path(folder, "p.json")
            all_reduce, network = ("--ranks", "4", "--wire", "fp32"), ("--model", str(EXAMPLES / "tiny-net.yaml"))
            for text, words, problem in (
                    (title + rows.replace("{}", "5") + title + rows.replace("{}", "7"), all_reduce,
                     "in.txt:13: a second table of the same collective, and none says over how many ranks it ran; give one table a file, each with its --ranks"),
                    (json.dumps(trace), network,
                     "in.txt: layers[0].forward_s: 100000000000 to 100000000000 is out of range; it must be 0 s to 1000 s"),
                    (falling, ("--nodes", "2"), "in.txt: the time of a stream does not grow with its messages; give a run with larger ones")):
                source.write_text(text)
                result = run("calibrate", "import", str(source), "--out", str(profile), *words)
                self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), result.stderr)
                self.assertIn(problem, result.stderr)
                self.assertFalse(profile.exists())

    def test_texts_of_windows_are_read(self):
        """A mark of UTF-8 and ends of lines as Windows has them change nothing; UTF-16 is told."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("nccl_topology/2.23-pcie-sockets.xml", "horovod/0.28-closed.json", "nvidia_topo/550-pcie.txt",
                         "nccl_tests/2.17-json-float-two-nodes.json", "osu/5.6.2-latency.txt"):
                whole = (self.GOLDEN / name).read_bytes()
                path = pathlib.Path(folder) / name.rsplit("/", 1)[1]
                words = ("--device", "v100") if name.startswith("nvidia") else ("--nodes", "2")
                expected = run("calibrate", "import", str(self.GOLDEN / name), *words)
                self.assertEqual(expected.returncode, 0, expected.stderr)
                path.write_bytes(b"\xef\xbb\xbf" + whole.replace(b"\n", b"\r\n"))
                self.assertEqual(run("calibrate", "import", str(path), *words).stdout, expected.stdout, name)
                path.write_bytes(whole.decode().encode("utf-16"))
                refused = run("calibrate", "import", str(path), *words)
                self.assertEqual((refused.returncode, refused.stderr.count("\n")), (2, 1))
                self.assertIn("this text is UTF-16, as PowerShell's > writes it; write it as UTF-8", refused.stderr)

    def test_input_is_checked(self):
        nccl = str(self.GOLDEN / "nccl_tests" / "2.13-half-two-nodes.txt")
        kineto = str(self.GOLDEN / "kineto" / "2.5-named.json")
        network, cluster = str(EXAMPLES / "tiny-net.yaml"), str(EXAMPLES / "lab.yaml")
        topology = str(self.GOLDEN / "nccl_topology" / "2.8-dgx1-v100.xml")
        for words, message in (((), "FILE is missing"), (("nowhere.txt",), "nowhere.txt: no such file"),
                               ((nccl, "--format", "nccl"), "--format: unknown format 'nccl'; did you mean 'nccl-tests'?"),
                               ((nccl, "--format", "osu"), "there is no table of OSU micro-benchmarks"),
                               ((nccl, "--ranks", "8"), "--ranks: 8, and 2.13-half-two-nodes.txt says 16; leave it out"),
                               ((kineto, "--model", network, "--collective", "all-gather"), "--collective: " + kineto + " says itself what it is; leave it out"),
                               ((nccl, "--out", nccl), f"--out: {nccl} is FILE too; give each a file of its own"),
                               ((nccl, "--out", "/tmp/x.svg", "--plot", "/tmp/../tmp/x.svg"), "--out: /tmp/x.svg is --plot too"),
                               ((nccl, "--out", network, "--model", network), f"--out: {network} is --model too"),
                               ((nccl, "--plot", cluster, "--cluster", cluster), f"--plot: {cluster} is --cluster too"),
                               ((nccl, "--out", "/nowhere/p.json"), "--out: there is no folder /nowhere"),
                               ((nccl, "--cluster-out", "/tmp/paceline-import-test.yaml"), "--cluster-out: 2.13-half-two-nodes.txt tells of no machine; leave it out"),
                               ((topology, "--out", "/tmp/paceline-import-test.json"), "--out: 2.8-dgx1-v100.xml tells of a machine, and of no times; give --cluster-out"),
                               ((topology, "--device", "p100"), "--device: p100, and 2.8-dgx1-v100.xml says v100; leave it out"),
                               ((topology, "--nic", "infiniband"), "--nic: unknown link 'infiniband'"),
                               ((topology, "--nodes", "0"), "--nodes: "),
                               ((kineto,), "give --model"),
                               ((kineto, "--network-out", "/tmp/n.yaml"), "aten::conv2d: the trace has no shapes; profile with record_shapes=True; give --model"),
                               ((str(self.GOLDEN / "pytorch" / "1.13-autograd-profiler.json"), "--network-out", "/tmp/n.yaml"), "this form of trace has no shapes"),
                               ((nccl, "--network-out", "/tmp/n.yaml"), "is no trace of torch.profiler; leave it out"),
                               ((kineto, "--model", network, "--network-out", "/tmp/n.yaml"), "--network-out: --model says what the network is"),
                               ((kineto, "--model", str(EXAMPLES / "tiny-net.yaml"), "--plot", "/tmp/x.svg"), "--plot: there is no curve"),
                               ((str(self.GOLDEN / "osu" / "5.6.2-allreduce.txt"),), "give --ranks"),
                               ((str(SOURCE / "README.md"),), "this is the output of no tool that is known here")):
            result = run("calibrate", "import", *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""), words)
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
