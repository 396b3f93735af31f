"""Every option of train and replay with values that are none, end to end: each is refused in one line, with exit code 2 and
before anything is printed or done.
"""

import re
import unittest

from paceline import CommandTest, paired, run

BASES = {
    "train": ("--model", "cnn-small", "--data", "synthetic", "--batch", "32", "--epochs", "1", "--threads", "1", "--stop-after", "1"),
    "replay": ("--model", "cnn-small", "--cluster", "h200-ndr", "--ranks", "2", "--strategy", "ring", "--iterations", "1", "--warm-up", "1"),
}
NOWHERE = "nonsense/none.yaml"  # no name, no number, and a file in a folder that is not there
NUMBERS = ("-1", "1e999", "nan", "0x10", "1 parsec", "")


def options_of(command):
    """The options that take a value, with what stands for it in the help."""
    return re.findall(r"^  (--[a-z0-9-]+) ([A-Za-z].*?)(?:  .*)?$", run(command, "--help-all").stdout, re.M)


class BadValues(CommandTest):
    def bad(self, command, option, value):
        words = list(BASES[command])
        if option in words:
            at = words.index(option)
            del words[at:at + 2]
        result = run(command, *words, option, value, cwd=self.folder)
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), f"{option} {value!r}: {result.stdout}{result.stderr}")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_each_is_refused_before_anything_is_printed(self):
        for command in BASES:
            options = options_of(command)
            self.assertGreater(len(options), 20, command)
            for option, _ in options:
                with self.subTest(command, option=option):
                    self.bad(command, option, NOWHERE)
            takes_numbers = [option for option, shown in options if not re.search("FILE|NAME|FOLDER|PREFIX", shown)]
            for option, value in paired(takes_numbers, NUMBERS):
                with self.subTest(command, option=option, value=value):
                    self.bad(command, option, value)
            for option in {option for option, _ in options} - set(takes_numbers):
                with self.subTest(command, option=option, value=""):
                    self.bad(command, option, "")

    def test_what_does_not_fit_the_job_is_refused_before_anything_is_printed(self):
        for words in (("--batch", "1000000"), ("--strategy", "hierarchical", "--ranks", "4", "--group", "3"), ("--strategy", "nccl"), ("--strategy", "tuned"),
                      ("--ranks", "2", "--rank", "1"), ("--rendezvous", "127.0.0.1:1"), ("--resume", "none"), ("--checkpoint-every", "3"), ("--device", "cuda:999"),
                      ("--layers", "own"), ("--cuda-graphs", "on"), ("--model", "bert-large"), ("--data", "/"), ("--recipe", "nonsense"), ("--epochs", "0"),
                      ("--storage", "fp16"), ("--learning-rate", "0"), ("--plan", "/dev/null")):
            with self.subTest(words=words):
                base = list(BASES["train"])
                for option in words[::2]:
                    if option in base:
                        at = base.index(option)
                        del base[at:at + 2]
                result = run("train", *base, *words, cwd=self.folder)
                if result.returncode == 0:
                    continue
                self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), result.stderr)


if __name__ == "__main__":
    unittest.main()
