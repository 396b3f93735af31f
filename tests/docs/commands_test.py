"""The pages of the manual: every command in them is run, page by page, in a folder that has the repository's
folders as links, or says why not. What each block means stands in pages.py.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import pages

PACELINE = pathlib.Path(os.environ["PACELINE"])
SOURCE = pathlib.Path(os.environ["PACELINE_SOURCE"])
HANG_S = 600
PAGES = [*sorted((SOURCE / "docs").glob("*.md")), *sorted((SOURCE / "docs/how-to").glob("*.md"))]

# Tables are 100 columns wide, whatever the terminal of the test says of itself.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
ENVIRONMENT |= {"PATH": f"{PACELINE.parent}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1",
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def has_torch():
    return subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode == 0


NEEDS = {"torch": (has_torch, "python3-torch is not installed"),
         "mpi": (lambda: shutil.which("mpirun") is not None, "Open MPI is not installed"),
         "fashion-mnist": (pathlib.Path("/usr/share/datasets/fashion-mnist").is_dir, "dataset-fashion-mnist is not installed")}


@functools.cache
def help_of(words):
    """What --help prints for these words; empty where they name no command."""
    result = subprocess.run([PACELINE, *words, "--help-all"], capture_output=True, text=True, timeout=HANG_S, env=ENVIRONMENT)
    return result.stdout if result.returncode == 0 else ""


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for entry in SOURCE.iterdir():
            if entry.is_dir() and not entry.name.startswith(".") and entry.name != "build":
                (self.folder / entry.name).symlink_to(entry)

    def shell(self, script, place):
        result = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(result.returncode, 0, f"{place}: {script}\n{result.stderr}")
        return result.stdout

    def run_block(self, block, place):
        if block.not_run:
            return
        if block.language == "sh":
            self.shell(block.text, place)
        elif block.language == "console":
            for command, expected in pages.commands(block):
                printed = self.shell(command, place)
                different = pages.first_difference(expected, printed)
                self.assertIsNone(different, f"{place}: {command}\nprinted:\n{printed}")

    def run_page(self, path):
        text = path.read_text(encoding="utf-8")
        for block in pages.blocks(text):
            place = f"{path.relative_to(SOURCE)}:{block.line}"
            missing = [NEEDS[need][1] for need in block.needs if not NEEDS[need][0]()]
            with self.subTest(place):
                if missing:
                    self.skipTest(f"{place}: {missing[0]}")
                self.run_block(block, place)
        # A picture that the page shows and its commands write is what they write.
        for name in re.findall(r"!\[[^\]]*\]\(([\w.]+)\)", text):
            if (self.folder / name).exists():
                with self.subTest(name):
                    self.assertEqual((self.folder / name).read_bytes(), (path.parent / name).read_bytes(), name)


def add_tests():
    for path in PAGES:
        name = "test_" + re.sub(r"\W", "_", path.relative_to(SOURCE / "docs").with_suffix("").as_posix())
        setattr(Commands, name, lambda self, path=path: self.run_page(path))


add_tests()


class Blocks(unittest.TestCase):
    """No command hides from the test."""

    def setUp(self):
        self.found = [(path, path.read_text(encoding="utf-8")) for path in PAGES]

    def test_every_block_says_what_it_is(self):
        for path, text in self.found:
            for block in pages.blocks(text):
                place = f"{path.name}:{block.line}"
                self.assertIn(block.language, pages.LANGUAGES, place)
                self.assertLessEqual(set(block.needs), set(NEEDS), place)
                self.assertEqual(block.not_run != "", "not-run" in block.info, f"{place}: a reason is missing")
                if block.language in ("text", "yaml", "cpp", "{toctree}"):
                    self.assertNotRegex(block.text, r"(?m)^\s*(\$|paceline|mpirun|python3|cmake)\s", place)
            outside = pages.FENCE.sub("", text)
            self.assertNotIn("```", outside, path.name)
            self.assertNotRegex(outside, r"(?m)^(\t| {4,})\S", f"{path.name}: an indented block is no test")

    def test_what_is_spelled_is_there(self):
        """Commands and options that no test runs, in blocks and in the text, are those of paceline --help."""
        for path, text in self.found:
            shells = [block.text for block in pages.blocks(text) if block.not_run]
            for words, options in [call for part in [*shells, *pages.CODE.findall(pages.FENCE.sub("", text))] for call in pages.spelled(part)]:
                if words:
                    printed = help_of(words) or help_of(words[:1])
                    self.assertTrue(printed, f"{path.name}: paceline {' '.join(words)}")
                    for option in options:
                        self.assertRegex(printed, rf"(?m)(^|[\s,]){re.escape(option)}([\s,]|$)", f"{path.name}: paceline {' '.join(words)}")

    def test_what_builds_is_what_the_readme_builds(self):
        readme = (SOURCE / "README.md").read_text(encoding="utf-8")
        for path, text in self.found:
            for block in pages.blocks(text):
                for line in block.text.splitlines() if block.language == "bash" else ():
                    if not re.fullmatch(r"git clone \S+ paceline && cd paceline|export PATH=\$PWD/build/release:\$PATH", line):
                        self.assertIn(line, readme, f"{path.name}:{block.line}")

    def test_python_is_that_of_an_example(self):
        for path, text in self.found:
            examples = "\n".join((SOURCE / "docs/examples" / name).read_text() for name in re.findall(r"examples/(\w+\.py)", text))
            for block in pages.blocks(text):
                for line in block.text.splitlines() if block.language == "python" and not block.not_run else ():
                    if line.strip():
                        self.assertIn(line.strip(), examples, f"{path.name}:{block.line}")


class Reading(unittest.TestCase):
    """What a page's text stands for."""

    def test_outputs_with_dots(self):
        for expected, printed, same in (("a\n", "a\n", True), ("a\n", "b\n", False), ("a\n", "a\nb\n", False), ("a\n...\n", "a\n", True),
                                        ("a\n...\nc\n", "a\nb\nb\nc\n", True), ("a\n...\nc\n", "a\nb\nd\n", False), ("...\nb\n", "a\nb\n", True),
                                        ("t ... ms\n", "t 3.5 ms\n", True), ("t ... ms\n", "t 3\n.5 ms\n", False), ("a.c\n", "abc\n", False)):
            self.assertEqual(pages.first_difference(expected, printed) is None, same, (expected, printed))

    def test_the_line_that_differs(self):
        self.assertEqual(pages.first_difference("a\nb\nc\n", "a\nx\nc\n"), "b")
        self.assertEqual(pages.first_difference("a\n...\nd\n", "a\nb\nc\n"), "d")
        self.assertEqual(pages.first_difference("a\n", "a\nb\n"), "the end of the output")

    def test_blocks_and_commands(self):
        found = pages.blocks("x\n```sh needs=torch\nls\n```\n\n```console\n$ a\n1\n2\n$ b\n```\n")
        self.assertEqual([(block.line, block.language, block.needs) for block in found], [(3, "sh", ("torch",)), (7, "console", ())])
        left = pages.blocks("```sh needs=a,b not-run: it takes a day\nls\n```\n")[0]
        self.assertEqual((left.language, left.needs, left.not_run), ("sh", ("a", "b"), "it takes a day"))
        self.assertEqual(pages.commands(found[1]), [("a", "1\n2\n"), ("b", "")])
        self.assertEqual(pages.spelled("mpirun ... paceline calibrate import F \\\n  --out x [--model N]   # paceline no\npaceline show a | paceline b --c"),
                         [(("calibrate", "import"), ("--out", "--model")), (("show", "a"), ()), (("b",), ("--c",))])
        self.assertEqual(pages.commands(pages.Block(1, "console", (), "$ a \\\n    b\nc\n")), [("a b", "c\n")])


if __name__ == "__main__":
    unittest.main()
