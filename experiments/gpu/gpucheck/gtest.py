"""The output of a GoogleTest program, also of one that did not come to its end."""
import re
from dataclasses import dataclass, field

RUN = re.compile(r"\[ RUN      \] (\S+)$")
END = re.compile(r"\[(       OK |  FAILED  |  SKIPPED )\] ([^\s,]+)(?:, where .*)? \(\d+ ms\)$")
LONGEST_TEXT = 4000


@dataclass
class Report:
    passed: list = field(default_factory=list)
    failed: dict = field(default_factory=dict)  # test: what it printed
    skipped: dict = field(default_factory=dict)  # test: what it printed
    unfinished: "str | None" = None  # the test in which the program ended
    unfinished_text: str = ""

    def ended(self):
        return [*self.passed, *self.failed, *self.skipped]


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
            said = "\n".join(lines).strip()[:LONGEST_TEXT]
            if "OK" in end[1]:
                report.passed.append(current)
            else:
                (report.failed if "FAILED" in end[1] else report.skipped)[current] = said
            current = None
        elif current:
            lines.append(line)
    report.unfinished, report.unfinished_text = current, "\n".join(lines).strip()[-LONGEST_TEXT:] if current else ""
    return report
