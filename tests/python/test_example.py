"""docs/examples/scaling.py prints the numbers of the command's table, to the digit, and plots."""

import os
import re
import subprocess
import sys

import pytest


def rows_of(text):
    """The cells of each row of a table of predictions, by strategy."""
    rows = {}
    for line in text.splitlines():
        cells = re.split(r"\s{2,}", re.sub(r"^[*>]?\s+", "", line.replace("* ", "  ", 1)).strip())
        cells = [cell for part in cells for cell in re.findall(r"[\d.]+ - [\d.]+ m?s|[\d.]+ [a-zµ%/]+|\S+", part)]
        if len(cells) > 2 and cells[1] in ("fp16", "fp32"):
            rows[cells[0]] = cells[1:]
    return rows


def test_the_example_reproduces_the_command(tmp_path, source, command):
    pytest.importorskip("matplotlib")
    done = subprocess.run([sys.executable, source / "docs/examples/scaling.py", "--out", tmp_path],
                          capture_output=True, text=True, env=os.environ | {"MPLCONFIGDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    ours = rows_of(done.stdout)
    theirs = rows_of(command("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", 1024))
    assert len(theirs) == 16 and ours.keys() == theirs.keys()
    for strategy, (wire, iteration, *_, throughput, efficiency, exposed) in theirs.items():
        assert ours[strategy] == [wire, iteration, throughput, efficiency, exposed], strategy
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
