"""paceline manual and paceline completion: pages that man takes without a warning, of all commands and
options; and what zsh and fish complete with the scripts. Each is skipped where its program is not there.
"""

import os
import pty
import select
import shutil
import subprocess
import time
import unittest

from paceline import ENVIRONMENT, HANG_S, PACELINE, CommandTest, run


def groff(text, *words):
    return subprocess.run(["groff", "-man", "-Tutf8", "-K", "utf8", "-P", "-cbou", "-rLL=100n", *words], input=text, capture_output=True, text=True, timeout=HANG_S)


class Manual(CommandTest):
    def pages(self):
        self.done(run("manual", "--folder", str(self.folder)))
        return {path.stem: path.read_text() for path in self.folder.glob("*.1")}

    def test_each_command_has_a_page(self):
        pages = self.pages()
        bash = self.done(run("completion", "bash"))
        for command in ("predict", "show", "show-network", "calibrate-import", "train", "doctor", "manual"):
            self.assertIn(f"paceline-{command}", pages)
            self.assertEqual(pages[f"paceline-{command}"], self.done(run("manual", f"paceline-{command}")))
        self.assertEqual(pages["paceline"], self.done(run("manual")))
        top = [name for name in pages if name.count("-") == 1 or name == "paceline-plan-capacity"]
        for name in top:
            self.assertIn(f"'{name.removeprefix('paceline-')} '*)", bash)

    @unittest.skipUnless(shutil.which("groff"), "groff is not there")
    def test_pages_say_what_help_says_and_groff_has_no_warning(self):
        for name, text in self.pages().items():
            printed = groff(text, "-ww")
            self.assertEqual((printed.returncode, printed.stderr), (0, ""), name)
            page = " ".join(printed.stdout.replace("‐", "-").split())
            words = [word for word in name.split("-")[1:]] if name != "paceline-plan-capacity" else ["plan-capacity"]
            for line in self.done(run(*words, "--help-all")).splitlines():
                if line.startswith("  --"):
                    option, _, help_ = line.strip().partition("  ")
                    self.assertIn(option.split()[0], page, name)
                    self.assertIn(" ".join(help_.split()).split(";")[0].split(" (")[0].rstrip(".")[:60], page, name)

    def test_what_is_wrong_is_one_line(self):
        self.refused(run("manual", "paceline-predit"), "unknown page 'paceline-predit'; did you mean 'paceline-predict'?")
        self.refused(run("manual", "paceline", "--folder", str(self.folder)), "--folder: it takes all pages")
        self.refused(run("manual", "--folder", "/nowhere"), "there is no folder /nowhere")


@unittest.skipUnless(shutil.which("zsh"), "zsh is not there")
class Zsh(CommandTest):
    def complete(self, line, expected):
        """What zsh shows on a terminal for a line and two tabs, up to what is expected."""
        (self.folder / "_paceline").write_text(self.done(run("completion", "zsh")))
        process, terminal = pty.fork()
        if process == 0:
            os.environ.update(HOME=str(self.folder), TERM="dumb", COLUMNS="200", LINES="60")
            os.chdir(self.folder)
            os.execvp("zsh", ["zsh", "-f", "-i"])
        shown = ""

        def wait_for(text):
            nonlocal shown
            end = time.monotonic() + HANG_S
            while text not in shown:
                self.assertTrue(select.select([terminal], [], [], max(0, end - time.monotonic()))[0], f"{text!r} not in {shown!r}")
                shown += os.read(terminal, 65536).decode(errors="replace")

        try:
            os.write(terminal, b"unsetopt zle_bracketed_paste; PS1='ready> '; LISTMAX=999; fpath=($HOME $fpath); autoload -Uz compinit && compinit -u -D; echo is-$((1+1))\n")
            wait_for("is-2")
            os.write(terminal, line.encode() + b"\t\t")
            wait_for(expected)
        finally:
            os.kill(process, 9)
            os.waitpid(process, 0)
            os.close(terminal)
        return shown

    def test_commands_options_and_names(self):
        self.complete("paceline predi", "paceline predict ")
        self.complete("paceline ", "doctor  What of CUDA")
        self.complete("paceline show ", "network  Layer by layer")
        self.complete("paceline show network --seq", "--sequence")
        self.complete("paceline predict --cluster jizhi", "jizhi-p40")


@unittest.skipUnless(shutil.which("fish"), "fish is not there")
class Fish(CommandTest):
    def complete(self, line):
        script = self.folder / "paceline.fish"
        script.write_text(self.done(run("completion", "fish")))
        done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"], capture_output=True, text=True, env={**ENVIRONMENT, "HOME": str(self.folder)}, timeout=HANG_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_commands_options_and_names(self):
        self.assertEqual(self.complete("paceline predi").split("\t")[0], "predict")
        self.assertIn("network\tLayer by layer\n", self.complete("paceline show "))
        self.assertIn("nccl\tWhat NCCL's own tuning model expects", self.complete("paceline show "))
        self.assertIn("--sequence\t", self.complete("paceline show network --"))
        self.assertNotIn("--sequence", self.complete("paceline show --"))
        self.assertIn("jizhi-p40", self.complete("paceline predict --cluster "))


if __name__ == "__main__":
    unittest.main()
