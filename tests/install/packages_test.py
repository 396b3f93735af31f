"""The packages of Debian that CPack makes of the build, and the command of one of them as an installed
system sees it: in a mount namespace of the test's own, without the source tree and without the build.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["PACELINE_BUILD"])
SOURCE = pathlib.Path(os.environ["PACELINE_SOURCE"])
HANG_S = 900
TOOLS = [tool for tool in (os.environ["PACELINE_CPACK"], "dpkg-deb", "dpkg-shlibdeps", "dpkg", "file", "gzip") if not shutil.which(tool)]


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, **options)


def may_mount():
    return run("unshare", "--mount", "true").returncode == 0


@unittest.skipIf(TOOLS, f"not there: {', '.join(TOOLS)}")
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="paceline-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        done = run(os.environ["PACELINE_CPACK"], "-G", "DEB", "--config", str(BUILD / "CPackConfig.cmake"), "-B", str(cls.folder))
        assert done.returncode == 0, done.stdout + done.stderr
        cls.packages = {path.name.split("_")[0]: path for path in cls.folder.glob("*.deb")}

    def field(self, package, name):
        return run("dpkg-deb", "--field", str(self.packages[package]), name).stdout.strip()

    def files(self, package):
        return set(re.findall(r" \./(\S*[^/\s])(?:\n| ->)", run("dpkg-deb", "--contents", str(self.packages[package])).stdout))

    def test_each_says_what_it_is_and_what_it_needs(self):
        self.assertLessEqual({"paceline", "paceline-dev"}, set(self.packages))
        for package in self.packages:
            self.assertEqual((self.field(package, "Package"), self.field(package, "Version")), (package, os.environ["PACELINE_VERSION"]))
            self.assertIn(f"usr/share/doc/{package}/copyright", self.files(package))
        needs = self.field("paceline", "Depends")
        for library in ("libc6", "libfmt", "libyaml-cpp", "libdnnl"):
            self.assertIn(library, needs)
        for optional in ("simgrid", "cuda", "nccl", "cudnn", "torch"):
            self.assertNotIn(optional, needs)
        self.assertIn("paceline-simgrid", self.field("paceline", "Suggests"))
        for package in set(self.packages) - {"paceline", "python3-paceline"}:
            self.assertIn(f"paceline (= {os.environ['PACELINE_VERSION']})", self.field(package, "Depends"))

        if "python3-paceline" in self.packages:
            self.assertRegex(self.field("python3-paceline", "Depends"), r"^python3 \(>= 3\.\d+~\), python3 \(<< 3\.\d+\), python3-numpy, libc6 ")

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not there")
    def test_lintian_finds_nothing_but_what_cpack_does(self):
        found = run("lintian", "--allow-root", *map(str, self.packages.values())).stdout
        self.assertEqual({line for line in found.splitlines() if not re.fullmatch(r"(N:.*|W: \S+: maintscript-calls-ldconfig \[post(inst|rm)\])", line)}, set())

    def test_files_are_where_debian_has_them(self):
        files = self.files("paceline")
        self.assertLessEqual({"usr/bin/paceline", "usr/share/man/man1/paceline-predict.1.gz", "usr/share/zsh/vendor-completions/_paceline",
                              "usr/share/bash-completion/completions/paceline", "usr/share/paceline/schemas/prediction-1.json"}, files)
        for package in self.packages:
            self.assertTrue(all(name.startswith("usr/") for name in self.files(package)), package)
        self.assertFalse({name for name in files if name.endswith((".a", ".h"))})
        self.assertIn("usr/include/paceline/models/base/units.h", self.files("paceline-dev"))
        text = run("sh", "-c", f"dpkg-deb --fsys-tarfile {self.packages['paceline']} | tar -xO ./usr/share/doc/paceline/copyright").stdout
        self.assertIn("Copyright 2026", text)
        self.assertIn("uPlot", text)

    def test_what_the_command_depends_on_is_the_debian_that_it_runs_on(self):
        for need in self.field("paceline", "Depends").split(", "):
            name, least = re.fullmatch(r"(\S+) \(>= (\S+)\)", need).groups()
            version = run("dpkg-query", "--show", "--showformat=${Version}", name).stdout
            self.assertEqual(run("dpkg", "--compare-versions", version, "ge", least).returncode, 0, f"{need}: {version!r} is installed")

    @unittest.skipUnless(may_mount(), "mount namespaces are not allowed here")
    def test_the_first_command_of_the_readme_without_source_and_build(self):
        command, expected = re.search(r"```console\n\$ (paceline predict [^\n]*)\n(.*?)```", (SOURCE / "README.md").read_text(), re.S).groups()
        script = f"""
            set -e
            mount --make-rprivate /
            mkdir {self.folder}/system
            for name in paceline paceline-simgrid; do
              for file in {self.folder}/${{name}}_*.deb; do [ ! -e "$file" ] || dpkg -x "$file" {self.folder}/system; done
            done
            mount -t tmpfs none /mnt
            mkdir /mnt/system
            mount --bind {self.folder}/system /mnt/system
            cd /
            for hidden in {BUILD} {SOURCE} {self.folder}; do if [ -d "$hidden" ]; then mount -t tmpfs none "$hidden"; fi; done
            [ -z "$(ls {SOURCE})" ] && [ -z "$(ls {BUILD} 2>/dev/null)" ]
            exec env -i PATH=/mnt/system/usr/bin:/usr/bin:/bin COLUMNS=100 HOME=/nonexistent sh -c '{command}; paceline predict --model resnet50 --cluster jizhi-p40 --ranks 4 --engine simgrid --strategy ring'
        """
        done = run("unshare", "--mount", "sh", "-c", script)
        self.assertTrue(done.stdout.startswith(expected), done.stderr + done.stdout[:2000])
        if "paceline-simgrid" in self.packages:
            self.assertIn("\nengine: simgrid, for all schedules", done.stdout[len(expected):])


if __name__ == "__main__":
    unittest.main()
