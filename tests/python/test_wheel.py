"""The wheel: installed into a fresh environment without a network, it imports and runs the example."""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

import paceline


def clean_environment():
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    package = pathlib.Path(paceline.__file__).parent
    source = pathlib.Path(os.environ["PACELINE_SOURCE"])
    written = [subprocess.run([sys.executable, source / "cli/python/write_wheel.py", "--version",
                               paceline.__version__, "--package", package, "--source", source, "--out",
                               folder / name], capture_output=True, text=True, check=True).stdout.strip()
               for name in ("first", "second")]
    first, second = map(pathlib.Path, written)
    assert first.read_bytes() == second.read_bytes()  # the same package makes the same bytes
    return first


def test_what_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    assert {"paceline/__init__.py", "paceline/py.typed", "paceline/_core.pyi"} <= set(names)
    assert sum(name.startswith("paceline/_core.") and name.endswith(".so") for name in names) == 1
    assert sum(".dist-info/licenses/" in name for name in names) == 2
    assert not any("__pycache__" in name for name in names)


def test_a_fresh_environment_installs_and_runs_it(wheel, tmp_path, source, command):
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", environment], check=True,
                   env=clean_environment())
    python = environment / "bin" / "python"
    done = subprocess.run([python, "-m", "pip", "install", "--no-index", "--find-links", wheel.parent, "paceline"],
                          capture_output=True, text=True, env=clean_environment(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    where = subprocess.run([python, "-c", "import paceline; print(paceline.__file__)"], capture_output=True,
                           text=True, check=True, env=clean_environment(), cwd=tmp_path).stdout
    assert where.startswith(str(environment))
    printed = subprocess.run([python, "-c", "import paceline; print(paceline.predict('resnet50', 'jizhi-p40', 1024), end='')"],
                             capture_output=True, text=True, check=True, env=clean_environment(), cwd=tmp_path).stdout
    assert printed == command("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", 1024)
    shown = subprocess.run([python, "-m", "pip", "show", "paceline"], capture_output=True, text=True, check=True,
                           env=clean_environment(), cwd=tmp_path).stdout
    assert f"Version: {paceline.__version__}" in shown
    pytest.importorskip("matplotlib")
    subprocess.run([python, source / "docs/examples/scaling.py", "--out", tmp_path], check=True, cwd=tmp_path,
                   stdout=subprocess.DEVNULL, env=clean_environment() | {"MPLCONFIGDIR": str(tmp_path)})
    assert (tmp_path / "scaling.png").exists()
