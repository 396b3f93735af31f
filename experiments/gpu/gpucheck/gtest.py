"""The output of a GoogleTest program, also of one that did not come to its end."""
import re
from dataclasses import dataclass, field

RUN = re.compile(r"\[ RUN      \] (\S+)$")
END = re.compile(r"\[(       OK |  FAILED  |  SKIPPED )\] ([^\s,]+)(?:, where .*)? \((\d+) ms\)$")
HOW = {"       OK ": "passed", "  FAILED  ": "failed", "  SKIPPED ": "skipped"}
LONGEST_TEXT = 4000


@dataclass
class Ran:
    """How one test ended: passed, failed or skipped. `text` is what it printed."""

    how: str
    ms: int
    text: str


@dataclass
class Report:
    ended: dict = field(default_factory=dict)  # test: Ran
    unfinished: "str | None" = None  # the test in which the program ended
    unfinished_text: str = ""

    def those(self, how):
        return [test for test, ran in self.ended.items() if ran.how == how]


def listed_tests(text):
    """Returns the tests of --gtest_list_tests."""
    tests, suite = [], None
    for line in text.splitlines():
        name = line.split("#")[0].rstrip()
        if re.fullmatch(r"[\w/]+\.", name):
            suite = name
        elif suite and re.fullmatch(r"  [\w/]+", name):
            tests.append(suite + name.strip())
    return tests


def read_report(text):
    report, current, lines = Report(), None, []
    for line in text.splitlines():
        if begin := RUN.search(line):
            current, lines = begin[1], []
        elif current and (end := END.search(line)) and end[2] == current:
            report.ended[current] = Ran(HOW[end[1]], int(end[3]), "\n".join(lines).strip()[:LONGEST_TEXT])
            current = None
        elif current:
            lines.append(line)
    report.unfinished, report.unfinished_text = current, "\n".join(lines).strip()[-LONGEST_TEXT:] if current else ""
    return report
