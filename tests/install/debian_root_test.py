"""The packages of Debian in a minimal Debian of the test's own: apt resolves what they depend on from a mirror, the
README's first command, doctor, the manual pages, completion and Debian's Python work, and nothing is left
after their removal. It is skipped, with the reason, where it is not root, where mmdebstrap is not there (setup.sh
does not install it) or where no mirror answers. PACELINE_DEBIAN_MIRROR names another mirror.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
import urllib.request

BUILD = pathlib.Path(os.environ["PACELINE_BUILD"])
SOURCE = pathlib.Path(os.environ["PACELINE_SOURCE"])
CPACK = os.environ["PACELINE_CPACK"]
MIRROR = os.environ.get("PACELINE_DEBIAN_MIRROR", "http://deb.debian.org/debian")
HANG_S = 900
INSTALLED = ("paceline", "paceline-simgrid", "python3-paceline")

# A process namespace and a mount namespace: what the script mounts, and what it starts, ends with it. $1: the root.
ENTER = """set -e
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount -t tmpfs none "$1/dev"
for name in full null random tty urandom zero; do touch "$1/dev/$name"; mount --bind "/dev/$name" "$1/dev/$name"; done
mkdir "$1/dev/pts" "$1/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 none "$1/dev/pts"
ln -s pts/ptmx "$1/dev/ptmx"
exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 COLUMNS=100 DEBIAN_FRONTEND=noninteractive sh -c "$2"
"""


def release():
    """The name of the Debian that this runs on, as in bookworm."""
    return dict(line.split("=", 1) for line in shlex.split(pathlib.Path("/etc/os-release").read_text()) if "=" in line).get("VERSION_CODENAME", "")


def why_not():
    missing = [tool for tool in (CPACK, "mmdebstrap", "dpkg-deb", "unshare", "chroot") if not shutil.which(tool)]
    if missing:
        return f"not there: {', '.join(missing)}"
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        return "only root makes a Debian here, where namespaces are allowed"
    try:
        urllib.request.urlopen(f"{MIRROR}/dists/{release()}/InRelease", timeout=20).close()
    except OSError as problem:
        return f"no mirror at {MIRROR} for {release()!r}: {problem}"
    return ""


WHY_NOT = why_not()


@unittest.skipIf(WHY_NOT, WHY_NOT)
class DebianRoot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="paceline-debian-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.root = cls.folder / "root"
        for words in ((CPACK, "-G", "DEB", "--config", str(BUILD / "CPackConfig.cmake"), "-B", str(cls.folder / "packages")),
                      ("mmdebstrap", "--variant=minbase", "--include=bash-completion,man-db", release(), str(cls.root), MIRROR)):
            done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S)
            assert done.returncode == 0, done.stdout + done.stderr
        shutil.copy("/etc/resolv.conf", cls.root / "etc/resolv.conf")
        cls.packages = {path.name.split("_")[0]: path.name for path in (cls.folder / "packages").glob("*.deb")}
        for name in cls.packages.values():
            shutil.copy(cls.folder / "packages" / name, cls.root / "tmp")
        cls.before = cls.files(cls.root)
        files = " ".join(f"/tmp/{cls.packages[name]}" for name in INSTALLED if name in cls.packages)
        cls.inside(f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {files}")

    @classmethod
    def inside(cls, script, root=None):
        """What the script prints in the root; it has to succeed."""
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "enter", str(root or cls.root), script],
                              capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    @staticmethod
    def files(root):
        """All files of a root but those that apt and dpkg keep of their own work, and what was handed to the test."""
        kept = re.compile(r"(dev|proc|run|sys|tmp|var/(backups|cache|log|lib/(apt|dpkg|systemd)))(/|$)|etc/(ld\.so\.cache|(passwd|group|shadow|gshadow)-|resolv\.conf)$")
        paths = (str(path.relative_to(root)) for path in root.rglob("*"))
        return {path for path in paths if not kept.match(path)}

    def test_the_first_command_of_the_readme(self):
        command, expected = re.search(r"```console\n\$ (paceline predict [^\n]*)\n(.*?)```", (SOURCE / "README.md").read_text(), re.S).groups()
        self.assertEqual(self.inside(command), expected)

    def test_doctor_finds_what_was_installed_and_says_which_package_brings_the_rest(self):
        text = self.inside("paceline doctor")
        for part in ("MPI", "oneDNN"):
            self.assertRegex(text, rf"\n{part} +found")
        if "paceline-simgrid" in self.packages:
            self.assertRegex(text, r"\npaceline-simgrid\.so +found")
            self.assertIn("engine: simgrid", self.inside("paceline predict --model resnet50 --cluster jizhi-p40 --ranks 4 --engine simgrid --strategy ring"))
        self.assertRegex(text, r"\npaceline-cuda\.so +missing")
        self.assertRegex(text, r"\n  comes with: paceline-cuda,")

    def test_training_runs(self):
        text = self.inside("cd /tmp && paceline train --model cnn-small --data synthetic --batch 8 --epochs 1 --stop-after 2")
        self.assertIn("stopped after 2 iterations", text)

    def test_manual_pages(self):
        self.assertIn("--placement", self.inside("man -P cat paceline-predict"))
        self.assertIn("paceline-doctor", self.inside("man -P cat paceline"))

    def test_bash_completes_without_being_told(self):
        script = """. /usr/share/bash-completion/bash_completion
            COMP_WORDS=(paceline predict --cluster jiz) COMP_CWORD=3 COMP_LINE="${COMP_WORDS[*]}" COMP_POINT=${#COMP_LINE}
            _completion_loader paceline
            $(complete -p paceline | sed "s/.*-F \\([^ ]*\\) .*/\\1/")
            echo "${COMPREPLY[@]}" """
        self.assertEqual(self.inside(f"bash -c {shlex.quote(script)}"), "jizhi-p40\n")

    @unittest.skipUnless(pathlib.Path("/usr/bin/python3").exists(), "Debian's Python is not there: no package for it")
    def test_python_imports_it(self):
        self.assertIn("python3-paceline", self.packages)
        printed = self.inside("python3 -c 'import paceline; print(paceline.predict(\"resnet50\", \"jizhi-p40\", 1024), end=\"\")'")
        self.assertEqual(printed, self.inside("paceline predict --model resnet50 --cluster jizhi-p40 --ranks 1024"))

    def test_apt_finds_what_the_other_packages_need(self):
        for name, file in self.packages.items():
            own = "" if name in INSTALLED else f"/tmp/{self.packages['paceline']}"
            self.assertIn(f"Inst {name} " if name not in INSTALLED else f"{name} is already", self.inside(f"apt-get install --simulate --no-install-recommends {own} /tmp/{file}"))

    def test_nothing_is_left_after_a_removal(self):
        copy = self.folder / "removed"
        subprocess.run(["cp", "-a", "--reflink=auto", str(self.root), str(copy)], check=True, timeout=HANG_S)
        self.inside("python3 -c 'import paceline'", copy)
        names = " ".join(name for name in INSTALLED if name in self.packages)
        self.inside(f"apt-get purge -y -qq {names} && apt-get autoremove --purge -y -qq", copy)
        self.assertEqual(self.files(copy) - self.before, set())
        self.assertEqual(self.before - self.files(copy), set())


if __name__ == "__main__":
    unittest.main()
