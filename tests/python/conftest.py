"""What the tests of the package for Python share."""

import json
import os
import pathlib
import subprocess

import pytest

SOURCE = pathlib.Path(os.environ["PACELINE_SOURCE"])


@pytest.fixture(scope="session")
def source():
    return SOURCE


@pytest.fixture(scope="session")
def command():
    """Runs the command, and returns what it prints."""
    def run(*words, code=0):
        done = subprocess.run([os.environ["PACELINE"], *map(str, words)], capture_output=True,
                              text=True, env=os.environ | {"COLUMNS": "100"}, cwd=SOURCE)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr
    return run


@pytest.fixture(scope="session")
def document(command):
    """Runs the command with --json, and returns the document."""
    return lambda *words: json.loads(command(*words, "--json"))


@pytest.fixture(scope="module")
def models():
    """torchvision's models with weights of zero: what is asked of them is their shape, and drawing 138 million takes a second."""
    torchvision, init = pytest.importorskip("torchvision"), pytest.importorskip("torch").nn.init
    with pytest.MonkeyPatch.context() as patch:
        for name in ("kaiming_normal_", "kaiming_uniform_", "normal_", "trunc_normal_", "uniform_"):
            patch.setattr(init, name, lambda tensor, *_, **__: tensor.data.zero_())
        yield torchvision.models


@pytest.fixture(scope="session")
def readme():
    return (SOURCE / "README.md").read_text(encoding="utf-8")
