"""The questions that Paceline answers: a function for each command.

The keywords are the command's options, with underscores for dashes (docs/python.md). A quantity with a
unit is a text, as the command takes it ("64 MiB", "5 ms"); a count is a number.
"""

import json
import os
import tempfile
import textwrap
from typing import Any, Iterable, Mapping, Sequence, Unpack, overload

from . import _core
from .answers import (AllReduceTimes, Capacity, Comparison, Cost, Counterexample, Prediction, Proof, RobustTuning, Row,
                      Scaling, Sweep, Tuning, WhatIf)
from .settings import (Changes, CompareSettings, CostSettings, ExportSettings, PlanCapacitySettings,
                       PredictSettings, ScaleSettings, Texts, TimeSettings, TuneSettings)
from .values import Cluster, Network, PathOrName, Plan, Profile, Timeline, place

__all__ = ["AllReduceTimes", "Capacity", "CompareSettings", "Comparison", "Cost", "CostSettings", "Counterexample",
           "ExportSettings", "PlanCapacitySettings", "PredictSettings", "Prediction", "Proof", "RobustTuning", "Row",
           "ScaleSettings", "Scaling", "Sweep", "TimeSettings", "TuneSettings", "Tuning", "WhatIf", "compare", "cost",
           "export", "plan_capacity", "predict", "scale", "sweep", "time", "tune", "verify"]


def _text(value: object) -> str:
    """A value of a keyword as the command's option has it."""
    if isinstance(value, Mapping):
        return ",".join(f"{_text(key)}={_text(entry)}" for key, entry in value.items())
    if isinstance(value, os.PathLike):
        return place(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(_text(entry) for entry in value)
    return str(value)


def _changes(value: object) -> str:
    """The changes of one question are joined by +, and questions by commas."""
    if isinstance(value, Mapping):
        return "+".join(f"{key}={_text(entry)}" for key, entry in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(_changes(entry) for entry in value)
    return str(value)


def _keywords(settings: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(name, _changes(value) if name == "what_if" else _text(value))
            for name, value in settings.items() if value is not None]


class _Asked:
    """The values of a question, apart from those that are names, files, numbers and texts."""

    def __init__(self, command: str, settings: Mapping[str, object],
                 network: Network | PathOrName | None, cluster: Cluster | PathOrName | None) -> None:
        unknown = sorted(settings.keys() - set(_core.keywords(command)))
        if unknown:
            raise TypeError(f"{command}() got an unexpected keyword argument '{unknown[0]}'")
        texts = dict(settings)
        self.network: _core.Network | None = None
        self.cluster: _core.Cluster | None = None
        self.profile: _core.Profile | None = None
        self.plan: _core.Plan | None = None
        if isinstance(network, Network):
            self.network = network._value
        elif network is not None:
            texts["model"] = network
        if isinstance(cluster, Cluster):
            self.cluster = cluster._value
        else:
            texts["cluster"] = cluster
        if isinstance(profile := texts.get("profile"), Profile):
            self.profile = profile._value
            del texts["profile"]
        elif "profile" in texts and profile is None:
            texts["profile"] = "none"
        if isinstance(plan := texts.get("plan"), Plan):
            self.plan = plan._value
            del texts["plan"]
        self.keywords = _keywords(texts)
        self._given = (command, dict(settings), network, cluster)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Asked, self._given

    def predict(self) -> _core.Prediction:
        return _core.predict(self.keywords, self.network, self.cluster, self.profile, self.plan)

    def scale(self) -> _core.Scaling:
        return _core.scale(self.keywords, self.network, self.cluster, self.profile)


def predict(network: Network | PathOrName, cluster: Cluster | PathOrName, ranks: int | None = None,
            **settings: Unpack[PredictSettings]) -> Prediction:
    """Predicts the iteration time of every strategy. ``ranks`` may be left out beside a plan."""
    asked = _Asked("predict", {**settings, "ranks": ranks}, network, cluster)
    return Prediction(asked.predict(), (_Asked.predict, (asked,)))


def scale(network: Network | PathOrName, cluster: Cluster | PathOrName,
          ranks: str | Sequence[int] | None = None, **settings: Unpack[ScaleSettings]) -> Scaling:
    """Predicts a scaling curve: ``ranks`` is a list, or a range as "8-2048", whose numbers double; by
    default from 1 to all of the cluster."""
    given: dict[str, object] = {**settings, "ranks": ranks}
    if isinstance(measured := settings.get("measured"), Mapping):
        given["measured"] = {at: value if isinstance(value, str) else f"{value} samples/s"
                             for at, value in measured.items()}
    asked = _Asked("scale", given, network, cluster)
    return Scaling(asked.scale(), (_Asked.scale, (asked,)))


def tune(network: Network | PathOrName, cluster: Cluster | PathOrName, ranks: int,
         **settings: Unpack[TuneSettings]) -> Tuning:
    """Looks for the best plan, for at most ``time_limit`` ("10 s"). With ``robust``, also for the plan
    that is best in bad states of the world, and for as long again."""
    asked = _Asked("tune", {**settings, "ranks": ranks}, network, cluster)
    return Tuning(_core.tune(asked.keywords, asked.network, asked.cluster, asked.profile))


def cost(network: Network | PathOrName, cluster: Cluster | PathOrName, ranks: int | None = None,
         **settings: Unpack[CostSettings]) -> Cost:
    """What a training run takes with every strategy. Its length is ``epochs`` of a ``dataset``,
    ``samples``, ``iterations`` or a document of ``phases``."""
    asked = _Asked("cost", {**settings, "ranks": ranks}, network, cluster)
    return Cost(*_document_and_text(_core.cost(asked.keywords, asked.network, asked.cluster, asked.profile,
                                               asked.plan)))


def plan_capacity(network: PathOrName, cluster: Texts, **settings: Unpack[PlanCapacitySettings]) -> Capacity:
    """Which cluster to buy or rent: the cheapest that trains ``within`` a time, the fastest for a ``budget``.
    Networks and clusters are names or files."""
    unknown = sorted(settings.keys() - set(_core.keywords("plan-capacity")))
    if unknown:
        raise TypeError(f"plan_capacity() got an unexpected keyword argument '{unknown[0]}'")
    return Capacity(*_document_and_text(_core.plan_capacity(
        _keywords({**settings, "model": network, "cluster": cluster}))))


def export(plan: Plan | PathOrName, format: str, cluster: PathOrName | None = None,
           **settings: Unpack[ExportSettings]) -> str:
    """A plan for another runtime: what ``paceline export PLAN --format FORMAT`` prints (docs/exports.md). Format
    msccl writes a folder, which only the command does."""
    unknown = sorted(settings.keys() - set(_core.keywords("export")))
    if unknown:
        raise TypeError(f"export() got an unexpected keyword argument '{unknown[0]}'")
    keywords = _keywords({**settings, "cluster": cluster})
    if not isinstance(plan, Plan):
        return _core.export_plan(keywords, place(plan), format)[0]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.json")
        plan.save(path)
        return _core.export_plan(keywords, path, format)[0]


def sweep(file: PathOrName) -> Sweep:
    """Every cell of a sweep's file (docs/sweep.md), computed here by one thread."""
    return Sweep(_core.sweep(place(file)))


def _document_and_text(answer: tuple[str, str]) -> tuple[dict[str, Any], str]:
    return json.loads(answer[0]), answer[1]


def time(algorithm: str, cluster: Cluster | PathOrName, ranks: int,
         **settings: Unpack[TimeSettings]) -> AllReduceTimes:
    """Times an all-reduce by itself, size by size: a name of ``paceline.all_reduces()``, one of NCCL's
    ("nccl", "nccl-ring", "nccl-tree"), or "all"."""
    asked = _Asked("time", {**settings, "algorithm": algorithm, "ranks": ranks}, None, cluster)
    return AllReduceTimes(json.loads(_core.time(asked.keywords, asked.cluster, asked.profile)))


def verify(schedule: str, ranks: int, *, group: int | None = None, segments: int | None = None,
           rings: int | None = None, servers: int | None = None, chunks: int | None = None) -> Proof:
    """Proves that a schedule does what its collective promises, or finds where it does not."""
    document = json.loads(_core.verify(_keywords({
        "schedule": schedule, "ranks": ranks, "group": group, "segments": segments, "rings": rings,
        "servers": servers, "chunks": chunks})))
    fault = document.get("counterexample")
    return Proof(document["schedule"], document["collective"], document["ranks"], document["steps"],
                 document["proved"], document["chunk_counts"], document.get("transfers"),
                 Counterexample(**fault) if fault else None)


@overload
def compare(run: Timeline | PathOrName, prediction: Timeline | PathOrName,
            plan: Plan | PathOrName | None = None) -> Comparison: ...


@overload
def compare(run: Timeline | PathOrName, *, plan: Plan | PathOrName | None = None,
            what_if: Changes | Iterable[Changes], **settings: Unpack[CompareSettings]) -> WhatIf: ...


def compare(run: Timeline | PathOrName, prediction: Timeline | PathOrName | None = None,
            plan: Plan | PathOrName | None = None, *,
            what_if: Changes | Iterable[Changes] | None = None,
            **settings: Unpack[CompareSettings]) -> Comparison | WhatIf:
    """Sets the timeline of a run beside that of its prediction. With a plan, both must be of it.

    With ``what_if`` in place of a prediction: how long an iteration of the run would take. A question is
    a text ("without-slowest", "strategy=hybrid+bandwidth=2") or a mapping of changes ({"bandwidth": 2,
    "latency": 0.5}); several are a list. What nobody measured needs the ``cluster`` that it ran on."""
    if what_if is not None and prediction is not None:
        raise TypeError("compare() takes a prediction or what_if, and not both")
    if what_if is None and prediction is None:
        raise TypeError("compare() takes a prediction, or what_if")
    if what_if is None and settings:
        raise TypeError(f"compare() takes {next(iter(settings))} only with what_if")
    sides = [side if isinstance(side, Timeline) else Timeline.load(side)
             for side in (run, prediction) if side is not None]
    followed = plan if plan is None or isinstance(plan, Plan) else Plan.load(plan)
    of_plan = followed._value if followed else None
    if what_if is None:
        document, text = _core.compare(sides[0]._value, sides[1]._value, of_plan, sides[0].name,
                                       sides[1].name)
        return Comparison(json.loads(document), text)
    job = dict(settings)
    network, cluster = job.pop("model", None), job.pop("cluster", None)
    asked = _Asked("compare", {**job, "what_if": what_if}, network, cluster)  # type: ignore[arg-type]
    document, text = _core.what_if(asked.keywords, sides[0].to_chrome_trace(), sides[0].name,
                                   asked.network, asked.cluster, asked.profile, of_plan)
    return WhatIf(json.loads(document), text)


def _explain(function: Any, command: str) -> None:
    """Adds to a function's help what its keywords are, as the command declares them."""
    parameters = function.__code__.co_varnames[:function.__code__.co_argcount]
    lines = [f"    {name}: {kind}\n" + textwrap.fill(meaning, 90, initial_indent=8 * " ", subsequent_indent=8 * " ")
             for name, kind, meaning in _core.options(command) if name not in (*parameters, "model", "algorithm")]
    function.__doc__ = "\n".join([function.__doc__, "", f"Keywords, as ``paceline {command} --help`` has them:", "", *lines])


for _function in (predict, scale, tune, cost, plan_capacity, export, time):
    _explain(_function, _function.__name__.replace("_", "-"))
