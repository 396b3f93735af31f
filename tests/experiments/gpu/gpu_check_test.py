"""experiments/gpu/check.py: packing, a run on the doubles, a run without a GPU, and what programs do that fail.

PACELINE_BUILD is a build with CUDA. It is packed as it is, and two of its test programs are enough here.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import types
import unittest
import unittest.mock

SOURCE = pathlib.Path(os.environ["PACELINE_SOURCE"])
BUILD = pathlib.Path(os.environ["PACELINE_BUILD"])
CHECK = SOURCE / "experiments/gpu/check.py"
HANG_S = 600
sys.path.insert(0, str(CHECK.parent))
sys.dont_write_bytecode = True

from gpucheck import checks, machine, packing, running, testing  # noqa: E402
from gpucheck.errors import CheckError  # noqa: E402
from gpucheck.gtest import listed_tests, read_report  # noqa: E402
from gpucheck.processes import Ended, run_limited  # noqa: E402

PROGRAMS = "paceline_cuda_contract_tests,paceline_nccl_contract_tests"

# A test program of five tests, in the words of GoogleTest. What the second and third do is in DOES.
FAKE = r"""#!/bin/sh
filter=All
for word in "$@"; do case "$word" in
  --gtest_list_tests) printf 'Fake.\n  Passes\n  %s\n  Fails/0  # GetParam() = 1\n  Skips\n  Last\n' Odd; exit 0;;
  --gtest_filter=\*) ;;
  --gtest_filter=*) filter=${word#--gtest_filter=};;
esac; done
runs() { [ "$filter" = All ] || case ":$filter:" in *":$1:"*) ;; *) return 1;; esac; echo "[ RUN      ] $1"; }
code=0
runs Fake.Passes && echo '[       OK ] Fake.Passes (0 ms)'
runs Fake.Odd && { echo 'its last words'; DOES; }
runs Fake.Fails/0 && { echo 'file.cc:1: Failure'; echo '  Expected: 2'; echo '[  FAILED  ] Fake.Fails/0, where GetParam() = 1 (3 ms)'; code=1; }
runs Fake.Skips && { echo 'no reason'; echo '[  SKIPPED ] Fake.Skips (0 ms)'; }
runs Fake.Last && echo 'said without a line end[       OK ] Fake.Last (0 ms)'
exit $code
"""


def command(*words, env=None, cwd=None):
    return subprocess.run([sys.executable, "-B", *map(str, words)], capture_output=True, text=True, env=env, cwd=cwd,
                          timeout=HANG_S)


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refused(self, result, *problems):
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), result.stderr)
        for problem in problems:
            self.assertIn(problem, result.stderr)

    def program(self, name, text):
        file = self.folder / name
        file.write_text(text)
        file.chmod(0o755)
        return file

    def check(self, **others):
        """What a step sees, where programs are those of the folder."""
        made = types.SimpleNamespace(bin=self.folder, folder=self.folder, scratch=self.folder, env=dict(os.environ), plain_env=dict(os.environ),
                                     rehearses=False, driver_folder=None, filter="*", quick=True, python=None, missing=lambda program: [],
                                     manifest={"programs": {}, "data": True}, runtime={}, found={})
        vars(made).update(others)
        return made


class PackAndRun(InAFolder):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.home.cleanup)
        cls.packed = pathlib.Path(cls.home.name) / "packed"
        cls.pack = command(CHECK, "pack", cls.packed, "--build", BUILD, "--as-built", "--doubles", "--data", "none", "--peer", "none",
                           "--programs", PROGRAMS)

    def run_packed(self, *words):
        """Runs the copy of the script that was packed, with nothing of this environment."""
        (self.folder / "tmp").mkdir()
        result = command(self.packed / "check.py", "run", self.packed, "--output", self.folder / "result.json", *words,
                         env={"PATH": "/usr/bin:/bin", "TMPDIR": str(self.folder / "tmp")}, cwd="/")
        self.assertEqual(os.listdir(self.folder / "tmp"), [], "something was left behind")
        return result

    def test_has_what_the_programs_need_and_nothing_of_the_base_system(self):
        self.assertEqual(self.pack.returncode, 0, self.pack.stderr)
        with tarfile.open(self.packed / "payload.tar.xz") as tar:
            names = {name.removeprefix("./") for name in tar.getnames()}
        self.assertLessEqual({"bin/paceline_nccl_contract_tests", "lib/libcudart.so.13", "lib-last/libstdc++.so.6", "doubles/libcudart.so.13",
                              "doubles/libnccl.so.2"}, names)
        self.assertFalse([name for name in names if re.search(r"/(lib(c|m|nccl|cuda)\.so|ld-linux)", name) and not name.startswith("doubles")])
        manifest = json.loads((self.packed / "manifest.json").read_text())
        self.assertEqual(manifest["programs"]["paceline_nccl_contract_tests"], ["libnccl.so.2"])

    def test_runs_on_the_doubles(self):
        result = self.run_packed("--doubles", "--quick", "--budget", "300", "--tests", "CudaKernel.*:CudaError.*:NcclGroup.*")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads((self.folder / "result.json").read_text())
        self.assertEqual(os.listdir(self.folder / "tmp") + sorted(os.listdir(self.folder)), ["result.json", "tmp"])
        self.assertTrue(document["complete"])
        self.assertIn("says nothing of a GPU", document["provenance"]["kind"])
        self.assertIn("(double)", document["provenance"]["device"])
        steps = {step["step"]: step for step in document["steps"]}
        self.assertEqual(list(steps), ["machine", "throughput", "tests", "sanitizer", "benchmark", "layers", "calibration", "training", "peer"])
        for step in steps.values():
            self.assertLessEqual({"kind", "device", "driver", "date", "commit", "commands"}, set(step["provenance"]))
        self.assertEqual(steps["tests"]["state"], "passed", steps["tests"])
        for program in steps["tests"]["programs"]:
            self.assertLessEqual({end["how"] for end in program["each"].values()}, {"passed", "skipped"})
            expected = listed_tests(subprocess.run([BUILD / "tests/cuda" / program["program"], "--gtest_list_tests", "--gtest_filter=CudaKernel.*:CudaError.*:NcclGroup.*"],
                                                   capture_output=True, text=True, check=True).stdout)
            self.assertGreater(len(expected), 1)
            self.assertEqual(list(program["each"]), expected)
        for name in ("throughput", "benchmark", "layers", "calibration", "training", "peer"):
            self.assertEqual(steps[name]["state"], "skipped")

    def test_without_a_gpu_it_says_so_and_leaves_nothing(self):
        if os.path.exists("/dev/nvidia0"):
            self.skipTest("this machine has a GPU")
        self.refused(self.run_packed(), "no CUDA device was found on this machine")
        self.assertFalse((self.folder / "result.json").exists())

    def test_a_folder_that_is_not_whole_is_refused(self):
        copy = self.folder / "copy"
        subprocess.run(["cp", "-r", self.packed, copy], check=True)
        whole = (copy / "payload.tar.xz").read_bytes()
        (copy / "payload.tar.xz").write_bytes(whole[:-1])
        words = (copy / "check.py", "run", copy, "--output", self.folder / "result.json")
        self.refused(command(*words), "is not as it was packed")
        (copy / "payload.tar.xz").unlink()
        self.refused(command(*words), "No such file")
        (copy / "manifest.json").unlink()
        self.refused(command(*words), "was not made by check.py pack")
        self.refused(command(*words[:2], self.packed, *words[3:], "--steps", "dance"), "there is no step 'dance'")


class RefusedPacks(InAFolder):
    def pack(self, *words, build=BUILD):
        return command(CHECK, "pack", self.folder / "packed", "--build", build, "--as-built", "--data", "none", "--peer", "none", *words)

    def test_over_the_limit(self):
        self.refused(self.pack("--programs", PROGRAMS, "--limit-mib", "0.5"), "and the limit is 0.5 MiB")
        self.assertFalse((self.folder / "packed").exists())

    def test_what_was_not_built(self):
        (self.folder / "tests/cuda").mkdir(parents=True)
        self.refused(self.pack(build=self.folder), "is no build with CUDA and tests")
        (self.folder / "tests/cuda/CTestTestfile.cmake").write_text('add_test([=[paceline_new_tests.device]=] "x")')
        self.refused(self.pack("--programs", "paceline_new_tests", build=self.folder), "paceline_new_tests was not built: cmake --build")
        self.refused(self.pack("--programs", "paceline_old_tests"), "there is no program paceline_old_tests")

    def test_the_folder_of_another(self):
        (self.folder / "packed").mkdir()
        (self.folder / "packed/mine").write_text("dear")
        self.refused(self.pack("--programs", PROGRAMS), "is not empty and was not packed by this command")
        self.assertEqual((self.folder / "packed/mine").read_text(), "dear")


class Data(unittest.TestCase):
    def test_of_an_idx_file_half_travels(self):
        def idx(count):
            return bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (count, 2, 3)) + bytes(i // 6 for i in range(6 * count))
        self.assertEqual(packing.first_half(idx(10)), idx(5))
        labels = bytes([0, 0, 8, 1, 0, 0, 0, 4, 9, 8, 7, 6])
        self.assertEqual(packing.first_half(labels), bytes([0, 0, 8, 1, 0, 0, 0, 2, 9, 8]))


class Programs(InAFolder):
    def run_fakes(self, limit_s=60, **does):
        """Runs test programs, each of which is called NAME_tests and has a test that does this."""
        for name, what in does.items():
            self.program(f"{name}_tests", FAKE.replace("DOES", what))
        return testing.run_tests(self.check(manifest={"programs": {f"{name}_tests": [] for name in does}}), limit_s)

    def ends(self, result, index=0):
        return {test: end["how"] for test, end in result["programs"][index]["each"].items()}

    def test_a_test_that_passes(self):
        result = self.run_fakes(fake="echo '[       OK ] Fake.Odd (1 ms)'")
        self.assertEqual(self.ends(result), {"Fake.Passes": "passed", "Fake.Odd": "passed", "Fake.Fails/0": "failed", "Fake.Skips": "skipped",
                                             "Fake.Last": "passed"})
        each = result["programs"][0]["each"]
        self.assertEqual(each["Fake.Odd"], {"how": "passed", "ms": 1})
        self.assertEqual(each["Fake.Fails/0"], {"how": "failed", "ms": 3, "text": "file.cc:1: Failure\n  Expected: 2", "alone": "failed"})
        self.assertEqual(each["Fake.Skips"], {"how": "skipped", "ms": 0, "text": "no reason"})
        self.assertEqual((result["state"], result["reason"]), ("failed", "fake_tests: 1 failed"))
        self.assertEqual(result["said"], "5 tests: 3 passed, 1 skipped, 1 failed")
        self.assertEqual(result["programs"][0]["starts"], 2)

    def test_tests_that_make_plans_run_in_parts_with_the_same_result(self):
        passes = "echo '[       OK ] Fake.Odd (1 ms)'"
        alone = self.run_fakes(fake=passes)
        with unittest.mock.patch.object(os, "cpu_count", return_value=8):
            parts = self.run_fakes(cudnn_fake=passes)
        self.assertEqual(parts["programs"][0]["each"], alone["programs"][0]["each"])
        self.assertEqual(parts["totals"], alone["totals"])
        self.assertEqual(parts["programs"][0]["starts"], 4 + 1)  # the last is what failed, alone

    def test_a_test_that_crashes_is_passed_over(self):
        result = self.run_fakes(fake="kill -ABRT $$")
        self.assertEqual(self.ends(result), {"Fake.Passes": "passed", "Fake.Odd": "crashed", "Fake.Fails/0": "failed", "Fake.Skips": "skipped",
                                             "Fake.Last": "passed"})
        self.assertEqual(result["programs"][0]["each"]["Fake.Odd"],
                         {"how": "crashed", "end": "ended with -6", "text": "its last words", "alone": "ended with -6"})

    def test_a_test_that_hangs_costs_no_other_its_turn(self):
        with unittest.mock.patch.object(testing, "LONGEST_TEST_S", 2):
            result = self.run_fakes(15, first="sleep 1000", second="echo '[       OK ] Fake.Odd (1 ms)'")
        self.assertEqual(self.ends(result), {"Fake.Passes": "passed", "Fake.Odd": "hung", "Fake.Fails/0": "failed", "Fake.Skips": "skipped",
                                             "Fake.Last": "passed"})
        self.assertEqual(self.ends(result, 1)["Fake.Odd"], "passed")
        self.assertIn("without output", result["programs"][0]["each"]["Fake.Odd"]["end"])
        self.assertEqual(result["totals"]["not_reached"], 0)

    def test_a_test_that_is_slow_passes_at_its_second_turn(self):
        with unittest.mock.patch.object(testing, "LONGEST_TEST_S", 1):
            result = self.run_fakes(60, fake="sleep 3; echo '[       OK ] Fake.Odd (3000 ms)'")
        self.assertEqual(result["programs"][0]["each"]["Fake.Odd"], {"how": "passed", "ms": 3000, "at_first": "was stopped after 1 s without output"})
        self.assertEqual(self.ends(result)["Fake.Last"], "passed")
        self.assertEqual(result["reason"], "fake_tests: 1 failed")

    def test_what_had_no_time_is_neither_passed_nor_failed(self):
        result = self.run_fakes(4, first="sleep 1000", second="sleep 1000")
        self.assertEqual([self.ends(result, i)["Fake.Odd"] for i in range(2)], ["cut_off"] * 2)
        self.assertEqual([self.ends(result, i)["Fake.Passes"] for i in range(2)], ["passed"] * 2)
        late = testing.run_tests(self.check(manifest={"programs": {"first_tests": []}}), 0)
        self.assertEqual((late["state"], set(self.ends(late).values())), ("incomplete", {"not_reached"}))

    def test_programs_come_from_the_ground_up(self):
        programs = [*reversed(testing.PROGRAMS_FIRST), "other_tests"]
        for name in programs:
            self.program(name, FAKE.replace("DOES", ":"))
        result = testing.run_tests(self.check(filter="none", manifest={"programs": dict.fromkeys(programs, [])}), 60)
        self.assertEqual([program["program"] for program in result["programs"]], [*testing.PROGRAMS_FIRST, "other_tests"])

    def test_a_program_that_does_not_start(self):
        self.program("fake_tests", "#!/bin/sh\necho 'libnccl.so.2: undefined symbol' >&2\nexit 127\n")
        programs = {"programs": {"fake_tests": []}}
        result = testing.run_tests(self.check(manifest=programs), 60)
        self.assertEqual(result["state"], "failed")
        self.assertIn("undefined symbol", result["reason"])
        result = testing.run_tests(self.check(manifest=programs, missing=lambda program: ["libnccl.so.2"]), 60)
        self.assertEqual(result["reason"], "fake_tests: libnccl.so.2 is not on this machine")
        self.program("fake_tests", "#!/bin/sh\ncase $1 in --gtest_list*) printf 'A.\\n  B\\n';; *) echo 'cannot map memory'; exit 4;; esac\n")
        result = testing.run_tests(self.check(manifest=programs), 60)
        self.assertEqual((result["reason"], self.ends(result)), ("fake_tests: the program ended with 4: cannot map memory", {"A.B": "not_reached"}))

    def test_a_limit_ends_all_processes_of_a_program(self):
        ended = run_limited(["sh", "-c", "sleep 1000 & echo $!; wait"], 0.5)
        self.assertIsNone(ended.code)
        self.assertIn("its limit", ended.problem)
        state = subprocess.run(["ps", "-o", "stat=", "-p", ended.out.strip()], capture_output=True, text=True, check=False).stdout
        self.assertIn(state.strip()[:1], ("", "Z"))

    def test_reports_that_were_cut_off(self):
        report = read_report("[ RUN      ] A.b\n[       OK ] A.b (0 ms)\n[ RUN      ] A.c\nhalf a li")
        self.assertEqual((report.those("passed"), report.unfinished, report.unfinished_text), (["A.b"], "A.c", "half a li"))
        row = '{"name": "Fill/iterations:31/manual_time", "real_time": 2.0, "share": 0.9}'
        self.assertEqual([r["share"] for r in checks.read_benchmark('{"benchmarks": [' + row + ', {"name": "Ad')], [0.9])
        self.assertEqual(checks.read_benchmark("Segmentation fault"), [])


class Tools(InAFolder):
    def sanitize(self, summary, code):
        self.program("compute-sanitizer", f"#!/bin/sh\necho '[ RUN      ] A.b'; echo '[       OK ] A.b (0 ms)'\necho '========= {summary}'\nexit {code}\n")
        check = self.check(manifest={"programs": {"paceline_cuda_device_tests": []}})
        with unittest.mock.patch.object(machine, "find_tool", lambda name: self.folder / name):
            return checks.sanitize(check, 30)

    def test_programs_go_where_programs_start(self):
        packed = self.folder / "packed"
        packed.mkdir()
        starts = []  # in the folder of temporary files, and beside the packed one

        def start(command, limit_s):
            return Ended(starts.pop(0), 0.0, "", "")
        with unittest.mock.patch.object(running, "run_limited", start), unittest.mock.patch.object(running.pathlib.Path, "cwd", lambda: self.folder):
            starts[:] = [126, 0]
            made = running.folder_for_programs(packed)
            self.assertEqual((made.parent, os.listdir(made)), (self.folder, []))
            starts[:] = [126, 126, 126]
            with self.assertRaisesRegex(CheckError, "set TMPDIR"):
                running.folder_for_programs(packed)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(["packed", made.name]))

    def test_a_driver_that_is_too_old_is_named(self):
        runtime = {"cudaGetDeviceCount": [35, 0], "cudaDriverGetVersion": [0, 12080], "cudaRuntimeGetVersion": [0, 13000],
                   "error": "cudaErrorInsufficientDriver"}
        self.assertFalse(machine.has_device(runtime))
        self.assertEqual(machine.why_no_device(runtime), "cudaErrorInsufficientDriver: its driver knows CUDA up to 12.8, and the programs want 13.0")
        runtime["cudaDriverGetVersion"] = [0, 0]
        self.assertIn("there is no libcuda.so.1 that the loader finds", machine.why_no_device(runtime))
        self.assertEqual(machine.why_no_device({"error": "no answer"}), "no answer")

    def test_toolkits_are_found_where_the_environment_says(self):
        for path in ("bin/compute-sanitizer", "lib64/libnccl.so.2", "compat/libcuda.so.1"):
            (self.folder / path).parent.mkdir()
            self.program(path, "#!/bin/sh\n")
        with unittest.mock.patch.dict(os.environ, {"CUDA_HOME": str(self.folder), "LD_LIBRARY_PATH": ""}):
            self.assertEqual(machine.find_libraries(["libnccl.so.2"]), {"libnccl.so.2": self.folder / "lib64/libnccl.so.2"})
            self.assertIn(f"{self.folder}/compat", machine.driver_folders())
            with unittest.mock.patch.object(machine.shutil, "which", lambda name, path="": next(
                    (f"{folder}/{name}" for folder in path.split(":") if folder and os.path.exists(f"{folder}/{name}")), None)):
                self.assertEqual(machine.find_tool("compute-sanitizer"), f"{self.folder}/bin/compute-sanitizer")

    def test_the_sanitizers_summary(self):
        clean = self.sanitize("ERROR SUMMARY: 0 errors", 0)
        self.assertEqual((clean["state"], [r["summary"] for r in clean["runs"]]), ("passed", ["ERROR SUMMARY: 0 errors"] * 2))
        self.assertEqual([r["tool"] for r in clean["runs"]], ["memcheck", "racecheck"])
        found = self.sanitize("ERROR SUMMARY: 3 errors", 99)
        self.assertEqual(found["state"], "failed")
        self.assertIn("memcheck of paceline_cuda_device_tests: ERROR SUMMARY: 3 errors", found["reason"])
        self.assertEqual(self.sanitize("Device not supported", 0)["state"], "failed")

    def test_the_peer_runs_where_there_is_pytorch(self):
        (self.folder / "peer_baseline.py").write_text("import json, sys\njson.dump({'throughput': [], 'words': sys.argv[2:]}, open(sys.argv[1], 'w'))\n")
        skipped = checks.run_peer(self.check(plain_env={"PATH": "/nonexistent"}), 30)
        self.assertIn(skipped["state"], ("skipped", "passed"))
        done = checks.run_peer(self.check(python=sys.executable), 30)
        self.assertEqual((done["state"], done["peer"]["words"]), ("passed", ["--seconds", "25", "--quick"]))
        (self.folder / "peer_baseline.py").write_text("import sys\nprint('{\"model\": 1}', file=sys.stderr)\nsys.exit(3)\n")
        (self.folder / "peer.json").unlink()
        failed = checks.run_peer(self.check(python=sys.executable), 30)
        self.assertEqual((failed["state"], failed["throughput_printed"]), ("failed", ['{"model": 1}']))

    def test_layers_that_do_not_add_up_fail_the_calibration(self):
        programs = {"programs": {"paceline": [], "paceline-cuda.so": []}}
        for sums, problem in (([0.96, 1.04], None), ([0.9, 1.0], "the layers of n at batch 4, fp32 add up to -10.0% off the iteration"),
                              ([], "cnn-small: no iteration was held against its layers")):
            profile = json.dumps({"checks": [{"network": "n", "precision": "fp32", "batch_per_rank": 4, "iteration_s": {"value": 1.0}, "sum_s": {"value": s}}
                                             for s in sums]})
            self.program("paceline", f"#!/bin/sh\nfor word in \"$@\"; do out=$word; done\necho '{profile}' > \"$out\"\n")
            result = checks.calibrate(self.check(manifest=programs), 30)
            self.assertEqual(result["state"], "failed" if problem else "passed")
            self.assertEqual(result.get("reason"), problem)
            self.assertEqual(result["runs"][0]["profile"], json.loads(profile))
        self.program("paceline", "#!/bin/sh\necho 'paceline: cannot start' >&2\nexit 1\n")
        result = checks.calibrate(self.check(manifest=programs), 30)
        self.assertIn("cannot start", result["reason"])
        self.assertEqual(checks.calibrate(self.check(manifest={"programs": {}}), 30)["state"], "skipped")

    def test_a_device_that_learns_less_than_the_cpu_fails(self):
        self.program("paceline", """#!/bin/sh
accuracy=0.85
while [ $# -gt 0 ]; do case "$1" in --device) [ $2 = cuda ] && accuracy=ACCURACY;; --metrics) file=$2;; esac; shift; done
echo '{"event": "start"}' >"$file"; echo '{"event": "iteration", "loss": '$accuracy'}' >>"$file"
echo '{"event": "epoch", "test_accuracy": '$accuracy'}' >>"$file"; printf '{"event": "ep' >>"$file"
""")
        text = (self.folder / "paceline").read_text()
        check = self.check(manifest={"programs": {"paceline": [], "paceline-cuda.so": []}, "data": True})
        for accuracy, expected in (("0.84", "passed"), ("0.70", "failed")):
            self.program("paceline", text.replace("ACCURACY", accuracy))
            result = checks.train(check, 60)
            self.assertEqual(result["state"], expected, result)
            self.assertEqual([pair["test_accuracy"] for pair in result["compared"]], [{"cuda": float(accuracy), "cpu": 0.85}] * 2)
            self.assertAlmostEqual(result["compared"][0]["largest_difference_of_loss"], 0.85 - float(accuracy))
        self.program("paceline", text.replace("ACCURACY", "0.84").replace("accuracy=0.85", "accuracy=0.85; case \" $* \" in *' cpu '*) sleep 60;; esac"))
        result = checks.train(check, 3)
        self.assertEqual((result["state"], [run["exit_code"] for run in result["runs"]]), ("incomplete", [0, 0, None, None]), result)


if __name__ == "__main__":
    unittest.main()
