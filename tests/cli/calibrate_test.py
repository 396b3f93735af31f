"""paceline calibrate, end to end: on threads and under mpirun; what it prints, what its profile holds
and what predictions make of it, and what it refuses.
"""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from paceline import HANG_S, MPI_ENVIRONMENT, PACELINE

MPIRUN = ("mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-np", "2")

RACKS = """\
cluster: racks
nodes: 4
ranks_per_node: 1
device: v100
intra: nvlink2
nic: infiniband-edr
fabric: {kind: fat-tree, levels: [{nodes: 2, oversubscription: 2}]}
"""


def run(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S, env=MPI_ENVIRONMENT)


class Calibrate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.profile = str(self.folder / "profile.json")

    def calibrate(self, *words, launcher=()):
        result = run(*launcher, PACELINE, "calibrate", "--out", self.profile, "--time", "1 s", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout, json.loads(pathlib.Path(self.profile).read_text())

    def is_kept(self, text, what, links, key):
        """Whether the profile has the figure. If it has not, a warning says why; if it has, it is worth having."""
        self.assertEqual(f"warning: {what} is left out of the profile: it " in text, key not in links, text)
        if key in links:
            figure = links[key]
            self.assertEqual(figure["provenance"], "calibrated")
            self.assertLessEqual(figure["low"], figure["value"])
            self.assertLessEqual(figure["high"], 4 * figure["low"])
        return key in links

    def test_a_figure_is_kept_or_its_absence_is_explained(self):
        text, profile = self.calibrate("--ranks", "2")
        intra = profile["links"]["intra"]
        if self.is_kept(text, "both ways at once within a node", intra, "both_ways"):
            self.assertIn("\nboth ways at once within a node: ", text)
            self.assertGreaterEqual(intra["both_ways"]["value"], 0.9)
            self.assertLessEqual(intra["both_ways"]["value"], 2.2)
        self.is_kept(text, "bandwidth within a node", intra, "bandwidth_bytes_per_s")
        self.is_kept(text, "message gap", profile["transport"], "message_gap_s")
        self.assertNotIn("both_ways", profile["links"]["nic"])
        self.assertNotIn("uplink", profile["links"])

    def test_what_is_measured_stands_apart_from_what_is_calibrated(self):
        text, profile = self.calibrate("--ranks", "2", "--model", "cnn-small", "--batch", "2")
        calibrated, measured = text.split("\nmeasured, with 90 % intervals:\n")
        self.assertIn("\ncalibrated, with 90 % intervals:\n", calibrated)
        self.assertIn("messages of ", calibrated)
        self.assertGreater(len(profile["rates"]), 0)
        for rate in profile["rates"]:
            figure = rate["bytes_per_s"]
            self.assertEqual(figure["provenance"], "measured")
            self.assertIn(f"{rate['kind']} {rate['type']}: ", measured)
        if "layers" in profile:
            self.assertIn("\nlayers of cnn-small at batch 2: forward ", measured)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_the_librarys_all_reduce_goes_on_above_the_largest_message(self):
        text, profile = self.calibrate("--largest", "1 KiB", "--largest-all-reduce", "4 KiB", launcher=MPIRUN)
        self.assertIn("all-reduce within a node", text)
        self.assertNotIn("larger buckets are extrapolated", text)
        for curve in profile.get("curves", []):
            largest = 4096 if curve["kind"] == "all-reduce" else 1024
            self.assertEqual((curve["least_bytes"], curve["most_bytes"]), (4, largest))
            self.assertEqual(curve.get("library"), "open-mpi" if curve["kind"] == "all-reduce" else None)
        # On a busy machine it may be too noisy to be kept.
        kept = any(curve["kind"] == "all-reduce" for curve in profile.get("curves", []))
        self.assertNotEqual(kept, "warning: all-reduce within a node, 2 ranks is left out of the profile" in text, text)

    def test_a_size_that_is_none_is_one_line(self):
        for option in ("--largest", "--largest-all-reduce"):
            for size, problem in (("2 GiB", "2 GiB is no size of a message; give 1 KiB to 1 GiB"), ("much", "'much'")):
                result = run(PACELINE, "calibrate", "--out", self.profile, option, size)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn(option, result.stderr)
                self.assertIn(problem, result.stderr)

    def test_what_cannot_be_written_is_said_before_anything_is_measured(self):
        cluster, circle = self.folder / "racks.yaml", self.folder / "circle.json"
        cluster.write_text(RACKS)
        circle.symlink_to(circle)
        for words, problem in ((("--out", str(cluster), "--cluster", str(cluster)), f"--out: {cluster} is --cluster too"),
                               (("--out", str(circle)), f"--out: {circle} is a link that leads in a circle"),
                               (("--out", self.profile, "--plot", str(self.folder / "none" / "fit")), "--plot: there is no folder"),
                               (("--out", self.profile, "--plot", "fit", "--ranks", "1"), "--plot: one rank has nothing to send")):
            ranks = () if "--ranks" in words else ("--ranks", "2")
            result = run(PACELINE, "calibrate", "--time", "3600 s", *ranks, *words)
            self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), result.stderr)
            self.assertIn(problem, result.stderr)
        self.assertEqual(cluster.read_text(), RACKS)
        self.assertFalse(pathlib.Path(self.profile).exists())

    def test_a_link_to_a_file_that_is_not_there_stays_a_link(self):
        link = self.folder / "link.json"
        link.symlink_to("profile.json")
        result = run(PACELINE, "calibrate", "--out", str(link), "--name", "two\nlines\x1b[31m")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(link.is_symlink())
        self.assertEqual(json.loads(pathlib.Path(self.profile).read_text())["name"], "two?lines?[31m")

    def test_predictions_take_the_measured_uplink(self):
        cluster = self.folder / "racks.yaml"
        cluster.write_text(RACKS)
        figure = {"value": 8, "low": 7, "high": 9, "provenance": "calibrated", "source": "a test"}
        profile = {"schema": "paceline.profile/1", "name": "racks", "cluster": "racks", "device": "v100", "origin": "a test"}

        def predict(links):
            pathlib.Path(self.profile).write_text(json.dumps({**profile, "links": links}))
            words = ("predict", "--cluster", str(cluster), "--profile", self.profile, "--model", "resnet50", "--ranks", "4",
                     "--batch", "32", "--strategy", "ring")
            result, table = run(PACELINE, *words, "--provenance"), run(PACELINE, *words, "--json")
            self.assertEqual((result.returncode, table.returncode), (0, 0), result.stderr)
            return result.stdout, json.loads(table.stdout)["strategies"][0]["communication_s"]

        stated_text, stated = predict({})
        measured_text, measured = predict({"uplink": {"oversubscription": figure}})
        self.assertNotIn("uplink of a leaf", stated_text)
        self.assertIn("uplink of a leaf   8:1 (7:1 to 9:1), calibrated: a test", measured_text)
        self.assertGreater(measured, stated)


if __name__ == "__main__":
    unittest.main()
