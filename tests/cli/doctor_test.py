"""paceline doctor, end to end: what is there, what is missing, and drivers that hang, crash or are not
loaded. PACELINE_NVML_DOUBLE is the double of NVML (tests/support/nvml_double.cc).
"""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from paceline import ENVIRONMENT, HANG_S, PACELINE, CommandTest, run

NVML = os.environ.get("PACELINE_NVML_DOUBLE", "")


class DoctorTest(CommandTest):
    def look(self, *words, **variables):
        result = subprocess.run([PACELINE, "doctor", *words], capture_output=True, text=True, env={**ENVIRONMENT, **variables}, timeout=HANG_S)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def parts(self, *words, **variables):
        document = json.loads(self.look("--json", *words, **variables))
        self.assertEqual(document["schema"], "paceline.doctor/1")
        return {part["name"]: part for part in document["parts"]}, document


class Doctor(DoctorTest):
    def test_what_paceline_runs_on_is_found_where_it_is(self):
        parts, document = self.parts()
        self.assertEqual(parts["oneDNN"]["state"], "found")  # or this command would not have started
        for part in parts.values():
            self.assertEqual(part["state"] == "found", part["why"] is None, part)
            self.assertTrue(part["needed_by"] and part["package"], part)
            if part["where"]:
                self.assertTrue(pathlib.Path(part["where"]).exists(), part)
        flags = next(line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(("flags", "Features"))).split()
        cpu = document["processor"]
        self.assertEqual((cpu["avx2"], cpu["bf16"], cpu["amx"]), ("avx2" in flags, "avx512_bf16" in flags, "amx_bf16" in flags and "amx_tile" in flags))
        version = run("--version").stdout
        self.assertTrue(version.startswith(f"paceline {document['version']}\n"))
        for part in document["built_with"]:
            self.assertIn(f"with{'' if part['is_there'] else 'out'} {part['name']}{' ' + part['version'] if part['version'] else ''}", version)
        self.assertTrue(self.look().startswith(version.rstrip("\n") + "\n\nprocessor: "))

    def test_a_part_of_another_folder_is_named_with_it(self):
        library = self.folder / "libsimgrid.so.3.32"
        parts, _ = self.parts()
        if parts["SimGrid"]["state"] != "found":
            self.skipTest("SimGrid is not there")
        shutil.copy(parts["SimGrid"]["where"], library)
        self.assertEqual(self.parts(LD_LIBRARY_PATH=str(self.folder))[0]["SimGrid"]["where"], str(library))

    def test_what_is_missing_is_no_failure(self):
        library = self.folder / "libsimgrid.so.3.32"
        library.write_text("no library")
        (self.folder / "libmpi.so.40").symlink_to("/nowhere")
        parts, _ = self.parts(LD_LIBRARY_PATH=str(self.folder), PATH="/nowhere")
        self.assertEqual((parts["SimGrid"]["state"], parts["paceline-simgrid.so"]["state"]), ("missing", "missing"))
        self.assertIn("file too short", parts["SimGrid"]["why"])
        text = self.look(LD_LIBRARY_PATH=str(self.folder))
        self.assertRegex(text, r"\nSimGrid \(missing\): [^\n]*\n  needed by: --engine simgrid and agree\n  comes with: libsimgrid3.32\n")

    def test_the_time_limit_is_checked(self):
        for limit in ("0 s", "1 h", "soon", "-1s"):
            self.refused(run("doctor", "--time-limit", limit), "--time-limit: ")


@unittest.skipUnless(NVML, "the double of NVML is not built")
class Driver(DoctorTest):
    def setUp(self):
        super().setUp()
        self.loaded = self.folder / "loaded"
        for name in ("libnvidia-ml.so.1", "libcuda.so.1"):
            shutil.copy(NVML, self.folder / name)

    def driver(self, behaviour, *words):
        parts, document = self.parts(*words, LD_LIBRARY_PATH=str(self.folder), NVML_DOUBLE=behaviour, PACELINE_LOADED=str(self.loaded))
        return parts["NVIDIA driver"], document

    def test_gpus_are_listed_and_nothing_runs_on_them(self):
        part, document = self.driver("")
        self.assertEqual((part["state"], part["version"], part["where"]), ("found", "580.65.06", str(self.folder / "libnvidia-ml.so.1")))
        self.assertEqual(document["gpus"], [{"name": "NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "compute_capability": "9.0"}] * 2)
        self.assertEqual(self.loaded.read_text().splitlines(), [str(self.folder / "libnvidia-ml.so.1")])  # and not libcuda, without which no context is made
        self.assertIn("\nGPU 1: NVIDIA H100 80GB HBM3, 85.52 GB, compute capability 9.0\n", self.look(LD_LIBRARY_PATH=str(self.folder)))

    def test_a_driver_that_hangs_is_left(self):
        part, document = self.driver("hang", "--time-limit", "2 s")
        self.assertEqual((part["state"], part["why"], document["gpus"]), ("no answer", "it did not answer within 2000 ms", []))

    def test_a_driver_that_crashes_takes_nothing_with_it(self):
        part, _ = self.driver("crash")
        self.assertEqual((part["state"], part["why"]), ("no answer", "it ended by Aborted"))

    def test_a_driver_that_is_not_loaded(self):
        part, document = self.driver("not-loaded")
        self.assertEqual((part["state"], part["why"], document["gpus"]), ("missing", "cannot ask NVIDIA's driver: Driver Not Loaded", []))


if __name__ == "__main__":
    unittest.main()
