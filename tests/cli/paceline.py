"""The command, as the tests of this folder run it. Those of what runs long, under mpirun or until a
signal comes start their processes themselves.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import unittest

PACELINE = os.environ["PACELINE"]
SOURCE = pathlib.Path(os.environ["PACELINE_SOURCE"])
EXAMPLES = SOURCE / "docs" / "examples"
HANG_S = 600  # what takes longer hangs, however little of the machine others leave


# All is looked at, and not a part alone: `ctest --test-dir build/release -C slow -R thorough`.
IS_THOROUGH = "PACELINE_SLOW" in os.environ


def paired(things, cases):
    """Yields each thing with each case where all is looked at, else each with one case, in turn."""
    for number, thing in enumerate(things):
        for case in cases if IS_THOROUGH else [cases[number % len(cases)]]:
            yield thing, case


# mpirun refuses root, which containers run as, unless it is told to start.
MPI_ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

# Tables are 100 columns wide, whatever the terminal that the tests were started in says of itself.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "COLUMNS"}


def run(*words, cwd=None, stdout=subprocess.PIPE, columns=None):
    environment = ENVIRONMENT if columns is None else {**ENVIRONMENT, "COLUMNS": str(columns)}
    return subprocess.run([PACELINE, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=cwd, env=environment, timeout=HANG_S)


# Strategies of all kinds, but for those whose flows take seconds to follow over 1,024 ranks.
QUICK = "ring,fused-ring,halving-doubling,hierarchical,hybrid,torus-2d,no-overlap"


def predict(*words, model="resnet50", cluster="jizhi-p40", ranks="1024"):
    if "--strategy" not in words:
        words = (*words, "--strategy", QUICK)
    return run("predict", "--model", model, "--cluster", cluster, "--ranks", ranks, *words)


REPORT_DATA = re.compile(r'<script type="application/json" data-role="([a-z-]+)">(.*?)</script>', re.DOTALL)


def report_documents(path):
    """The documents in a report (--html), by role."""
    return {role: json.loads(text) for role, text in REPORT_DATA.findall(path.read_text())}


def run_as_both(*words):
    """What a command says as text, and the document of its --json (the report of --html holds both; report_test.py): one
    computation serves both."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.html"
        result = run(*words, "--html", str(report))
        return result, report_documents(report)["result"] if result.returncode == 0 else None


def shown_on(terminal):
    """All bytes that a program shows on a terminal, until it closes its side."""
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # the other end is closed
        pass
    return shown


def free_port():
    """A port of this machine that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class CommandTest(unittest.TestCase):
    """Tests of a command in a folder of their own, with what all say of a result."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def done(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def refused(self, result, *problems):
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), result.stderr)
        for problem in problems:
            self.assertIn(problem, result.stderr)
