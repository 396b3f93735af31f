"""What Paceline answers, and the questions.

The keywords are the command's options, with underscores for dashes (docs/python.md). A quantity with a
unit is a text, as the command takes it ("64 MiB", "5 ms"); a count is a number.
"""

import csv
import functools
import html
import io
import json
import os
import tempfile
import textwrap
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence, Unpack, overload

import numpy as np

from . import _core
from .arrays import StructuredArray, structured
from .settings import (Changes, CompareSettings, CostSettings, ExportSettings, PlanCapacitySettings,
                       PredictSettings, ScaleSettings, Texts, TimeSettings, TuneSettings)
from .values import Cluster, Network, PathOrName, Plan, Profile, Timeline, place

__all__ = ["AllReduceTimes", "Capacity", "CompareSettings", "Comparison", "Cost", "CostSettings", "Counterexample",
           "ExportSettings", "PlanCapacitySettings", "PredictSettings", "Prediction", "Proof", "RobustTuning", "Row",
           "ScaleSettings", "Scaling", "Sweep", "TimeSettings", "TuneSettings", "Tuning", "WhatIf", "compare", "cost",
           "export", "plan_capacity", "predict", "scale", "sweep", "time", "tune", "verify"]


class _Table:
    """What has a table: a notebook shows it, and pandas takes it."""

    @property
    def table(self) -> StructuredArray:
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame; pandas must be installed."""
        import pandas

        return pandas.DataFrame(self.table)

    def _repr_html_(self) -> str:
        names = self.table.dtype.names or ()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = ("".join(f"<td>{html.escape(_shown(value))}</td>" for value in row) for row in self.table)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Row:
    """The prediction of one strategy and wire type. Seconds, bytes and shares, as its document has
    them (schema paceline.prediction/1)."""

    document: dict[str, Any] = field(repr=False)
    _prediction: _core.Prediction = field(repr=False)
    _index: int = field(repr=False)
    name: str = field(init=False)
    wire_type: str = field(init=False)
    iteration_s: float = field(init=False)
    iteration_low_s: float = field(init=False)
    iteration_high_s: float = field(init=False)
    throughput_per_s: float = field(init=False)
    efficiency: float = field(init=False)
    exposed_communication_s: float = field(init=False)

    def __post_init__(self) -> None:
        for name in ("name", "wire_type", "iteration_s", "iteration_low_s", "iteration_high_s",
                     "throughput_per_s", "efficiency", "exposed_communication_s"):
            object.__setattr__(self, name, self.document[name])

    @property
    def critical_path_s(self) -> dict[str, float]:
        """The time that each kind of task has on the critical path."""
        return {name.removesuffix("_s"): value
                for name, value in self.document["critical_path"].items()}

    @property
    def memory_bytes(self) -> dict[str, float]:
        return {name.removesuffix("_bytes"): value for name, value in self.document["memory"].items()}

    @property
    def plan(self) -> Plan:
        return Plan(self._prediction.plan(self._index))

    def timeline(self) -> Timeline:
        """Every task of two iterations of the steady state."""
        return Timeline(self._prediction.timeline(self._index))


_ROW = {"name": "U", "wire_type": "U", "iteration_s": "f8", "iteration_low_s": "f8",
        "iteration_high_s": "f8", "throughput_per_s": "f8", "efficiency": "f8", "compute_s": "f8",
        "update_s": "f8", "exposed_communication_s": "f8", "input_wait_s": "f8",
        "communication_s": "f8", "buckets": "i8", "memory_bytes": "f8", "fits_memory": "?",
        "largest_batch_per_rank": "i8"}


class _Kept:
    """What pickle keeps of a value of the core: its document. The value is made again when its text, a plan or a
    timeline is asked for."""

    def __init__(self, document: str, again: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._document, self._again, self._arguments = document, again, arguments
        self._made: Any = None

    def to_json(self) -> str:
        return self._document

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._made is None:
            self._made = self._again(*self._arguments)
        return getattr(self._made, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Kept, (self._document, self._again, self._arguments)


def _kept(value: Any, again: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return value if isinstance(value, _Kept) else _Kept(value.to_json(), again, arguments)


@dataclass(frozen=True, eq=False)
class Prediction(_Table):
    """The iteration time of every strategy on one number of ranks."""

    _value: _core.Prediction = field(repr=False)
    _again: tuple[Any, ...] = field(repr=False)  # a function that makes the value, and its arguments
    document: dict[str, Any] = field(init=False, repr=False)  # paceline.prediction/1
    network: str = field(init=False)
    cluster: str = field(init=False)
    ranks: int = field(init=False)
    warnings: list[str] = field(init=False)

    def __post_init__(self) -> None:
        document = json.loads(self._value.to_json())
        for name, value in (("document", document), ("network", document["model"]),
                            ("cluster", document["cluster"]), ("ranks", document["ranks"]),
                            ("warnings", document["warnings"])):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Prediction, (_kept(self._value, *self._again), self._again)

    def __iter__(self) -> Iterator[Row]:
        for index, row in enumerate(self.document["strategies"]):
            yield Row(row, self._value, index)

    def __len__(self) -> int:
        return len(self.document["strategies"])

    def __contains__(self, strategy: object) -> bool:
        """Whether the table has a row of the strategy."""
        return any(row["name"] == strategy for row in self.document["strategies"])

    def row(self, strategy: str, wire_type: str | None = None) -> Row:
        """The row of a strategy. Raises KeyError if the table has none."""
        for row in self:
            if row.name == strategy and wire_type in (None, row.wire_type):
                return row
        raise KeyError(strategy if wire_type is None else f"{strategy} {wire_type}")

    def __getitem__(self, strategy: str) -> Row:
        return self.row(strategy)

    @property
    def best(self) -> Row:
        """The row of the shortest iteration, which the command marks with a star."""
        best = self.document["best"]
        return self.row(best["name"], best["wire_type"])

    @property
    def tied(self) -> list[Row]:
        """The rows that no prediction tells from the best one."""
        return [self.row(row["name"], row["wire_type"]) for row in self.document["best"]["tied"]]

    @property
    def left_out(self) -> dict[str, str]:
        """The strategies that are not timed, and why."""
        return {row["name"]: row["why"] for row in self.document["left_out"]}

    @property
    def table(self) -> StructuredArray:
        """A row for each strategy: name, wire_type, iteration_s and its interval (iteration_low_s,
        iteration_high_s), throughput_per_s, efficiency, compute_s, update_s,
        exposed_communication_s, input_wait_s, communication_s, buckets, memory_bytes, fits_memory,
        largest_batch_per_rank."""
        return structured([row | {"memory_bytes": row["memory"]["total_bytes"]}
                           for row in self.document["strategies"]], _ROW)

    def text(self, width: int = 100) -> str:
        """What ``paceline predict`` prints in so many columns."""
        return self._value.to_text(width)

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, eq=False)
class Scaling(_Table):
    """Predictions over a range of ranks, against one baseline."""

    _value: _core.Scaling = field(repr=False)
    _again: tuple[Any, ...] = field(repr=False)  # as in Prediction
    document: dict[str, Any] = field(init=False, repr=False)  # paceline.scaling/1

    def __post_init__(self) -> None:
        object.__setattr__(self, "document", json.loads(self._value.to_json()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Scaling, (_kept(self._value, *self._again), self._again)

    @functools.cached_property
    def points(self) -> list[Prediction]:
        """The prediction at each number of ranks."""
        return [Prediction(point, (_point, (self._again, index)))
                for index, point in enumerate(self._value.points())]

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.document["points"])

    @property
    def measured(self) -> StructuredArray:
        """ranks, throughput_per_s: what was given as ``measured``."""
        return structured(self.document["measured"], {"ranks": "i8", "throughput_per_s": "f8"})

    def text(self, width: int = 100) -> str:
        """What ``paceline scale`` prints in so many columns."""
        return self._value.to_text(width)

    def __str__(self) -> str:
        return self.text()

    @property
    def table(self) -> StructuredArray:
        """The rows of all points: ranks, and what Prediction.table has."""
        return structured([row | {"memory_bytes": row["memory"]["total_bytes"], "ranks": point["ranks"]}
                           for point in self.document["points"] for row in point["strategies"]],
                          {"ranks": "i8"} | _ROW)

    @property
    def ranks(self) -> list[int]:
        return [point.ranks for point in self.points]

    @property
    def strategies(self) -> list[str]:
        """The names of all rows, in the order in which they appear."""
        return list(dict.fromkeys(row.name for point in self.points for row in point))

    def curve(self, strategy: str, wire_type: str | None = None) -> StructuredArray:
        """A row for each number of ranks on which the strategy was timed: ranks, iteration_s,
        iteration_low_s, iteration_high_s, throughput_per_s, efficiency, exposed_communication_s.
        Raises KeyError if it was timed on none."""
        rows: list[dict[str, Any]] = []
        for point in self.points:
            try:
                rows.append(point.row(strategy, wire_type).document | {"ranks": point.ranks})
            except KeyError:
                continue
        if not rows:
            raise KeyError(strategy)
        return structured(rows, {"ranks": "i8", "iteration_s": "f8", "iteration_low_s": "f8",
                                 "iteration_high_s": "f8", "throughput_per_s": "f8",
                                 "efficiency": "f8", "exposed_communication_s": "f8"})

    @property
    def best(self) -> list[Row]:
        """The best row of each number of ranks."""
        return [point.best for point in self.points]

    @property
    def warnings(self) -> list[str]:
        return list(self.document["warnings"])


@dataclass(frozen=True)
class Cost(_Table):
    """What a training run takes with every strategy: time, GPU-hours, dollars and energy."""

    document: dict[str, Any] = field(repr=False)  # paceline.cost/1
    _text: str = field(repr=False)

    @property
    def table(self) -> StructuredArray:
        """A row for each strategy: name, wire_type, and what the document has of it as numbers."""
        rows = self.document["strategies"]
        numbers = [key for key, value in rows[0].items() if type(value) in (int, float)]
        return structured(rows, {"name": "U", "wire_type": "U"} | dict.fromkeys(numbers, "f8"))

    @property
    def warnings(self) -> list[str]:
        return list(self.document["warnings"])

    def text(self) -> str:
        """What ``paceline cost`` prints."""
        return self._text

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, eq=False)
class Capacity(_Table):
    """Clusters that train in time or within a budget, beside those that do not."""

    document: dict[str, Any] = field(repr=False)  # paceline.capacity/1
    _text: str = field(repr=False)

    @property
    def table(self) -> StructuredArray:
        """A row for each candidate: cluster, device, strategy, and what the document has of it as numbers."""
        rows = self.document["candidates"]
        numbers = [key for key, value in rows[0].items() if type(value) in (int, float)]
        return structured(rows, {"cluster": "U", "device": "U", "strategy": "U"} | dict.fromkeys(numbers, "f8"))

    @property
    def answer(self) -> dict[str, Any] | None:
        """The candidate that does what is asked; None where nothing is asked, or no candidate does it."""
        index = self.document["answer"]
        return None if index is None else dict(self.document["candidates"][index])

    @property
    def front(self) -> list[dict[str, Any]]:
        """The candidates that no other beats in both time and cost, by time."""
        return [dict(self.document["candidates"][index]) for index in self.document["front"]]

    @property
    def warnings(self) -> list[str]:
        return list(self.document["warnings"])

    def text(self) -> str:
        """What ``paceline plan-capacity`` prints."""
        return self._text

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, eq=False)
class Sweep(_Table):
    """The cells of a sweep."""

    csv: str = field(repr=False)  # what ``paceline sweep`` writes

    @property
    def rows(self) -> list[dict[str, str]]:
        """A mapping of texts for each cell, by the columns of the file."""
        return list(csv.DictReader(io.StringIO(self.csv)))

    @property
    def table(self) -> StructuredArray:
        """A row for each cell. A column is of numbers where all its cells are, or are empty (NaN)."""
        rows = self.rows
        kinds = {name: "f8" if all(_is_number(row[name]) for row in rows) else "U" for name in rows[0]}
        return structured([{name: (float(row[name] or "nan") if kinds[name] == "f8" else row[name]) for name in row}
                           for row in rows], kinds)


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class RobustTuning:
    """The plan that is best in bad states of the world, beside the best as stated and the runtime's own.

    Times of a plan are the stated iteration and its 95th percentile over the samples."""

    document: dict[str, Any] = field(repr=False)  # "robust" of paceline.tuning/1
    name: str  # of the robust plan
    iteration_s: float
    p95_s: float
    default: str  # the runtime's own strategy, or the file of its plan
    default_iteration_s: float
    default_p95_s: float
    gain: float  # of the robust plan over the default, as a share
    gain_low: float
    gain_high: float
    keeps_default: bool  # the gain is not certain, and the plan is the default's
    complete: bool  # the search was not stopped


class _Found:
    """What pickle keeps of a tuning, whose search would end elsewhere another time."""

    def __init__(self, document: str, plan: str, text: str) -> None:
        self._parts = document, plan, text

    def to_json(self) -> str:
        return self._parts[0]

    def plan(self) -> _core.Plan:
        return _core.Plan.parse(self._parts[1], "plan")

    def to_text(self, width: int) -> str:
        return self._parts[2]

    def __reduce__(self) -> tuple[Any, ...]:
        return _Found, self._parts


@dataclass(frozen=True, eq=False)
class Tuning:
    """The best plan that was found, and what it gains."""

    _value: _core.Tuning = field(repr=False)
    document: dict[str, Any] = field(init=False, repr=False)  # paceline.tuning/1
    iteration_s: float = field(init=False)
    least_iteration_s: float = field(init=False)  # a bound that no plan is below
    optimal: bool = field(init=False)
    why_not_optimal: str | None = field(init=False)
    complete: bool = field(init=False)  # the search was not stopped
    warnings: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "document", json.loads(self._value.to_json()))
        for name in ("iteration_s", "least_iteration_s", "optimal", "why_not_optimal", "complete",
                     "warnings"):
            object.__setattr__(self, name, self.document[name])

    def __reduce__(self) -> tuple[Any, ...]:
        value = self._value
        kept = value if isinstance(value, _Found) else _Found(value.to_json(), value.plan().to_json(), self.text())
        return Tuning, (kept,)

    @property
    def plan(self) -> Plan:
        """The best plan; with ``robust``, the one that --plan-out writes: the robust one, or the runtime's
        default where that stays."""
        return Plan(self._value.plan())

    @property
    def robust(self) -> RobustTuning | None:
        """None unless ``robust`` was asked for."""
        of = self.document["robust"]
        if of is None:
            return None
        chosen, default, gain = of["robust"], of["default"], of["gain"]
        return RobustTuning(of, chosen["name"], chosen["iteration_s"], chosen["p95_s"], default["name"],
                            default["iteration_s"], default["p95_s"], gain["value"], gain["low"],
                            gain["high"], of["keeps_default"], of["complete"])

    @property
    def alternatives(self) -> StructuredArray:
        """What each bucket would lose by every other choice that was tried: bucket, change, all_reduce (of
        the buckets that the change makes, by commas), iteration_s, loss (as a share). The least loss of a
        bucket is its first row."""
        rows = [{"bucket": number, "change": other["change"],
                 "all_reduce": ", ".join(part["all_reduce"] for part in other["buckets"]),
                 "iteration_s": other["iteration_s"], "loss": other["loss"]}
                for number, bucket in enumerate(self.document["buckets"])
                for other in bucket["alternatives"]]
        return structured(rows, {"bucket": "i8", "change": "U", "all_reduce": "U", "iteration_s": "f8",
                                 "loss": "f8"})

    def text(self, width: int = 100) -> str:
        """What ``paceline tune`` prints in so many columns."""
        return self._value.to_text(width)

    def __str__(self) -> str:
        return self.text()

    @property
    def buckets(self) -> StructuredArray:
        """first, last (gradients), gradients, bytes, all_reduce, ready_s, start_s, end_s, exposed_s."""
        return structured(self.document["buckets"],
                          {"first": "U", "last": "U", "gradients": "i8", "bytes": "f8",
                           "all_reduce": "U", "ready_s": "f8", "start_s": "f8", "end_s": "f8",
                           "exposed_s": "f8"})

    @property
    def strategies(self) -> StructuredArray:
        """name, wire_type, iteration_s, gain: by what share the strategy's iteration is longer."""
        return structured(self.document["strategies"],
                          {"name": "U", "wire_type": "U", "iteration_s": "f8", "gain": "f8"})


@dataclass(frozen=True, eq=False)
class AllReduceTimes:
    """The times of single all-reduces, size by size."""

    document: dict[str, Any] = field(repr=False)  # paceline.time/1

    @property
    def names(self) -> list[str]:
        return [column["name"] for column in self.document["columns"]]

    @property
    def best(self) -> list[str]:
        """The name of the shortest time of each size, of those that were asked for."""
        return [row["best"] for row in self.document["sizes"]]

    @property
    def left_out(self) -> dict[str, str]:
        return {row["name"]: row["why"] for row in self.document["left_out"]}

    def times(self, name: str | None = None) -> StructuredArray:
        """A row for each size: bytes, time_s, time_low_s, time_high_s, latency_s,
        algbw_bytes_per_s, busbw_bytes_per_s. By default of the first name. Raises KeyError."""
        names = self.names
        name = names[0] if name is None else name
        if name not in names:
            raise KeyError(name)
        at = names.index(name)
        return structured([row["times"][at] | {"bytes": row["bytes"]}
                           for row in self.document["sizes"]],
                          {"bytes": "f8", "time_s": "f8", "time_low_s": "f8", "time_high_s": "f8",
                           "latency_s": "f8", "algbw_bytes_per_s": "f8",
                           "busbw_bytes_per_s": "f8"})


@dataclass(frozen=True)
class Counterexample:
    """Where a schedule does not do what its collective promises."""

    fault: str
    step: int  # from 0
    rank: int
    chunk: int
    chunks: int
    why: str


@dataclass(frozen=True)
class Proof:
    """What was proven of a schedule. It is true where the schedule does what it promises."""

    schedule: str
    collective: str
    ranks: int
    steps: int
    proved: bool
    chunk_counts: list[int]
    transfers: int | None
    counterexample: Counterexample | None

    def __bool__(self) -> bool:
        return self.proved


_COMPARED = {"measured_s": "f8", "measured_low_s": "f8", "measured_high_s": "f8",
             "predicted_s": "f8", "difference_s": "f8", "relative_difference": "f8"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run beside its prediction. Times that a side does not have are NaN."""

    document: dict[str, Any] = field(repr=False)  # paceline.comparison/1
    _text: str = field(repr=False)

    @property
    def iteration(self) -> dict[str, float]:
        return dict(self.document["iteration"])

    @property
    def parts(self) -> StructuredArray:
        """part, measured_s, measured_low_s, measured_high_s, predicted_s, difference_s,
        relative_difference; the largest difference first."""
        return structured(self.document["parts"], {"part": "U"} | _COMPARED)

    @property
    def layers(self) -> StructuredArray:
        """layer, kind, direction ("forward" or "backward"), and the times as in ``parts``."""
        rows = [{"layer": row["layer"], "kind": row["kind"], "direction": direction} | row[direction]
                for row in self.document["layers"] for direction in ("forward", "backward")]
        return structured(rows, {"layer": "U", "kind": "U", "direction": "U"} | _COMPARED)

    @property
    def buckets(self) -> StructuredArray:
        """bucket, first_gradient, bytes, part ("ready" to "exposed"), and the times as in ``parts``."""
        parts = ("ready", "wait", "cast", "pack", "transfer", "unpack", "exposed")
        rows = [{"bucket": row["bucket"], "first_gradient": row["first_gradient"],
                 "bytes": row["bytes"], "part": part} | row[part]
                for row in self.document["buckets"] for part in parts]
        return structured(rows, {"bucket": "i8", "first_gradient": "U", "bytes": "f8",
                                 "part": "U"} | _COMPARED)

    @property
    def notes(self) -> list[str]:
        return list(self.document["notes"])

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True, eq=False)
class WhatIf:
    """How long an iteration of a measured run would take if something were different."""

    document: dict[str, Any] = field(repr=False)  # paceline.what_if/1
    _text: str = field(repr=False)

    @property
    def iteration_s(self) -> float:
        """The measured iteration."""
        return float(self.document["measured_iteration_s"])

    @property
    def residual(self) -> float:
        """By what share the model with the run's own durations is longer than the run."""
        return float(self.document["residual"])

    @property
    def is_doubtful(self) -> bool:
        """Whether the residual is too large to trust the answers."""
        return bool(self.document["is_doubtful"])

    @property
    def slowest_rank(self) -> int | None:
        slowest = self.document["slowest_rank"]
        return None if slowest is None else int(slowest)

    @property
    def answers(self) -> StructuredArray:
        """name (the question), iteration_s, dag_iteration_s, gain: by what share the run is longer. All are
        predicted."""
        return structured(self.document["answers"], {"name": "U", "iteration_s": "f8",
                                                     "dag_iteration_s": "f8", "gain": "f8"})

    @property
    def ranks(self) -> StructuredArray:
        """rank, passes_s, update_s, rest_s: what each rank measured."""
        return structured(self.document["measured_ranks"], {"rank": "i8", "passes_s": "f8",
                                                            "update_s": "f8", "rest_s": "f8"})

    def __str__(self) -> str:
        return self._text


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


def _point(scaling: tuple[Any, ...], index: int) -> _core.Prediction:
    again, arguments = scaling
    points: list[_core.Prediction] = again(*arguments).points()
    return points[index]


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
