"""The keywords are the command's options, with their types; stubs and types agree with the module."""

import inspect
import os
import pathlib
import re
import subprocess
import sys
import typing

import pytest

import paceline
from paceline import _core, predictions

POSITIONAL = {"model", "cluster", "ranks", "algorithm", "schedule"}
SETTINGS = {"predict": predictions.PredictSettings, "scale": predictions.ScaleSettings,
            "tune": predictions.TuneSettings, "cost": predictions.CostSettings, "time": predictions.TimeSettings,
            "compare": predictions.CompareSettings, "plan-capacity": predictions.PlanCapacitySettings, "export": predictions.ExportSettings}
# Parameters of functions that are in no dictionary of types.
PARAMETERS = {"compare": {"plan", "what_if"}, "plan-capacity": {"model", "cluster"}, "export": {"cluster"}}


# What the command prints or writes for people.
OF_THE_COMMAND_ALONE = {"--help", "--json", "--csv", "--markdown", "--json-out", "--csv-out", "--markdown-out", "--provenance", "--wide", "--top",
                        "--timeline", "--plan-out", "--html", "--merged", "--layers", "--layouts", "--fail-below", "--fail-slower", "--force", "--plot"}


@pytest.mark.parametrize("command", SETTINGS)
def test_the_types_name_every_option(command):
    named = set(typing.get_type_hints(SETTINGS[command], localns=vars(predictions)))
    parameters = PARAMETERS.get(command, POSITIONAL)
    assert parameters <= set(inspect.signature(getattr(paceline, command.replace("-", "_"))).parameters) | POSITIONAL
    assert named == set(_core.keywords(command)) - parameters


@pytest.mark.parametrize("name", [*(SETTINGS.keys() - {"export"}), "verify"])  # export takes schedules, too
def test_the_module_knows_every_option_of_the_command(name, command):
    printed = set(re.findall(r"^  (--[a-z0-9-]+)", command(name, "--help-all"), re.MULTILINE))
    options = {option[2:].replace("-", "_") for option in printed - OF_THE_COMMAND_ALONE}
    assert options == set(_core.keywords(name)) - {"algorithm"}


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """The settings of mypy: what the package can do without has no types, or too many to read here."""
    pytest.importorskip("mypy")
    file = tmp_path_factory.mktemp("mypy") / "mypy.ini"
    file.write_text("[mypy]\nenable_incomplete_feature = Unpack\ncache_dir = /dev/null\n"
                    "[mypy-torch.*,onnx.*,google.*,pandas.*]\nignore_missing_imports = true\nfollow_imports = skip\n")
    return file


def mypy(*words, folder):
    package = pathlib.Path(paceline.__file__).parents[1]
    return subprocess.run([sys.executable, "-m", *map(str, words)], cwd=folder, capture_output=True, text=True,
                          env=os.environ | {"MYPYPATH": str(package)})


def test_the_types_are_sound(settings):
    done = mypy("mypy", "--strict", "--config-file", settings, "-p", "paceline",
                folder=pathlib.Path(paceline.__file__).parents[1])
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_agree_with_the_module(settings, tmp_path):
    # pybind11's classes have a metaclass and a constructor that no stub can name.
    allowed = tmp_path / "allowed.txt"
    allowed.write_text("paceline\\._core\\.[A-Z]\\w+\npaceline\\._core\\.[A-Z]\\w+\\.__init__\n")
    done = mypy("mypy.stubtest", "paceline._core", "--mypy-config-file", settings, "--allowlist", allowed,
                folder=pathlib.Path(paceline.__file__).parents[1])
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_users_mistake_is_found_by_types(settings, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import paceline\n"
                       "good: float = paceline.predict('resnet50', 'jizhi-p40', 8, batch=32).best.iteration_s\n"
                       "paceline.predict('resnet50', 'jizhi-p40', 8, batch='many')\n"
                       "paceline.verify('ring', '8')\n"
                       "paceline.tune('resnet50', 'jizhi-p40', 8, robust='yes')\n"
                       "asked: paceline.WhatIf = paceline.compare('run.json', what_if=[{'bandwidth': 2}, 'without-slowest'])\n"
                       "paceline.compare('run.json')\n"
                       "paceline.scale('resnet50', 'jizhi-p40', measured={8: 1700.5}).measured['ranks']\n")
    done = mypy("mypy", "--config-file", settings, program, folder=tmp_path)
    lines = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line.split(":")[1] for line in lines] == ["3", "4", "5", "7"], done.stdout
