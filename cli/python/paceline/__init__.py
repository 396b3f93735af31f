"""Paceline predicts how a data-parallel training job scales, from Python.

>>> import paceline
>>> table = paceline.predict("resnet50", "jizhi-p40", 1024)
>>> table.best.name, table.best.iteration_s
>>> table.table["iteration_s"]
"""

from . import _core
from ._core import __version__, all_reduces, clusters, networks, profiles, strategies
from .answers import (AllReduceTimes, Capacity, Comparison, Cost, Counterexample, Prediction, Proof, RobustTuning, Row,
                      Scaling, Sweep, Tuning, WhatIf)
from .chakra import ExecutionTrace
from .errors import Error, InputError, RunError, UnavailableError
from .onnx_import import from_onnx
from .predictions import compare, cost, export, plan_capacity, predict, scale, sweep, time, tune, verify
from .torch_import import from_torch
from .values import Cluster, Figure, Network, Plan, Profile, Timeline

__all__ = [
    "AllReduceTimes", "Capacity", "Cluster", "Comparison", "Cost", "Counterexample", "Error", "ExecutionTrace", "Figure", "InputError",
    "Network", "Plan", "Prediction", "Profile", "Proof", "RobustTuning", "Row", "RunError", "Scaling", "Sweep", "Timeline",
    "Tuning", "UnavailableError", "WhatIf", "__version__", "all_reduces", "bytes_text", "clusters", "compare",
    "cost", "export", "from_onnx", "from_torch",
    "networks", "plan_capacity", "predict", "profiles", "scale", "seconds_text", "strategies", "sweep", "time", "tune", "verify",
]

seconds_text = _core.seconds_text  # "310.3 ms": a time as the command prints it
bytes_text = _core.bytes_text  # "51.11 MB"
